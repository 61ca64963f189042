//! Whether a call whose outcome is not known may be made again.
//!
//! The answer comes from the contract of the tool alone. Annotations of the server, a new id or a
//! new connection make nothing safer.

use serde_json::Value;

use super::policy::contract::{Contract, SideEffect};

/// What may be done with a call whose outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It changes nothing: again, under a new id, once it is known where it failed.
    Safe,
    /// It takes effect once for its key: again, under a new id, with the same key and exactly the
    /// same arguments.
    Conditional,
    /// It may take effect twice: not again by itself; find out first what became of it.
    Unsafe,
}

/// Why a call is of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The contract says that the tool changes nothing.
    NoEffect,
    /// The contract names a key, and the call has one.
    HasKey,
    /// The contract names a key, and the call has none.
    KeyMissing,
    /// The call has something in the place of the key that is no key: blank, or no string.
    KeyInvalid,
    /// The contract says that the tool changes something, and names no key.
    NoKeyDeclared,
    /// Nothing is declared about the tool.
    NoContract,
}

impl Class {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Safe => "safe",
            Class::Conditional => "conditional",
            Class::Unsafe => "unsafe",
        }
    }
}

impl Why {
    /// In words, about "the call".
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::NoEffect => "its contract says that it changes nothing",
            Why::HasKey => "it has an idempotency key",
            Why::KeyMissing => "it changes something and has no idempotency key",
            Why::KeyInvalid => "it changes something, and its idempotency key is blank or no string",
            Why::NoKeyDeclared => "it changes something, and its contract names no idempotency key",
            Why::NoContract => "no contract says what it does",
        }
    }
}

/// The class of a call with these arguments (`params.arguments`).
#[must_use]
pub fn classify(contract: Option<&Contract>, arguments: &Value) -> (Class, Why) {
    let Some(contract) = contract else { return (Class::Unsafe, Why::NoContract) };
    if contract.side_effect == SideEffect::None {
        return (Class::Safe, Why::NoEffect);
    }
    let Some(pointer) = &contract.key else { return (Class::Unsafe, Why::NoKeyDeclared) };
    match pointer.find(arguments) {
        None => (Class::Unsafe, Why::KeyMissing),
        // ours: a blank key would make one intent of all calls.
        Some(Value::String(key)) if !key.trim().is_empty() => (Class::Conditional, Why::HasKey),
        Some(_) => (Class::Unsafe, Why::KeyInvalid),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract(rest: &str) -> Contract {
        toml::from_str(&format!("tools = [\"t\"]\n{rest}")).unwrap()
    }

    #[test]
    fn the_class_comes_from_the_contract_and_the_key() {
        let reads = contract("side_effect = \"none\"");
        let bare = contract("side_effect = \"effect\"");
        let keyed = contract("side_effect = \"effect\"\nkey = \"/meta/key\"");
        let with_key = |key: Value| json!({"meta": {"key": key}, "readOnlyHint": true});
        let cases = [
            (Some(&reads), json!({}), Class::Safe, Why::NoEffect),
            (Some(&bare), with_key(json!("checkout-7")), Class::Unsafe, Why::NoKeyDeclared),
            (Some(&keyed), with_key(json!("checkout-7")), Class::Conditional, Why::HasKey),
            (Some(&keyed), json!({}), Class::Unsafe, Why::KeyMissing),
            (Some(&keyed), json!(null), Class::Unsafe, Why::KeyMissing),
            (Some(&keyed), with_key(json!("")), Class::Unsafe, Why::KeyInvalid),
            (Some(&keyed), with_key(json!(" \t")), Class::Unsafe, Why::KeyInvalid),
            (Some(&keyed), with_key(json!(7)), Class::Unsafe, Why::KeyInvalid),
            (Some(&keyed), with_key(json!(null)), Class::Unsafe, Why::KeyInvalid),
            (None, with_key(json!("checkout-7")), Class::Unsafe, Why::NoContract),
        ];
        for (contract, arguments, class, why) in cases {
            assert_eq!(classify(contract, &arguments), (class, why), "{arguments}");
        }
    }
}
