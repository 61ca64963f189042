//! Orders and what taps answer, as JSON: the members of an order have the names that they have in
//! words, and its verb is `do`.

use serde_json::{Map, Number, Value, json};

use super::order::{Given, Order, Said, Wrong, verb};
use super::{Applied, ArmedRule, By, Command, HeldMessage, OpenRequest, Refused, Rule, Status, read, write};
use crate::time::Ms;
use crate::wire::json::{self, Document};

/// Why JSON is no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct JsonError {
    /// Why, and what is allowed.
    pub why: String,
}

/// Reads one order: an object whose `do` is a verb; `by` may say who gives it.
///
/// # Errors
/// When it is none: why, and what is allowed.
pub fn parse(text: &[u8]) -> Result<(Command, Option<By>), JsonError> {
    let read = order(text).and_then(|(order, by)| Ok((read::command(&order)?, by)));
    read.map_err(|wrong| JsonError { why: wrong.why })
}

fn order(text: &[u8]) -> Result<(Order, Option<By>), Wrong> {
    let document = Document::new(bytes::Bytes::copy_from_slice(text));
    let no_object = || Wrong::whole(r#"an order is a JSON object, such as {"do":"status"}"#);
    let document = document.ok_or_else(no_object)?;
    let root = document.root();
    if !root.is_object() {
        return Err(no_object());
    }
    let (mut found, mut by, mut members) = (None, None, Vec::new());
    for (name, value) in root.members() {
        if name == "do" {
            let text = value.text().ok_or_else(|| Wrong::whole("`do` is a verb"))?;
            found = Some(verb(&text, 0)?);
        } else if name == "by" {
            let one = value.text().and_then(|name| by_of(&name));
            let why = "`by` is viewer, ctl, recipe or lesson";
            by = Some(one.ok_or_else(|| Wrong::whole(why))?);
        } else {
            members.push(Said { value: given(&name, value)?, name: name.into_owned(), at: 0 });
        }
    }
    let verb = found.ok_or_else(|| Wrong::whole("an order has a verb: `do`"))?;
    Ok((Order { verb, members }, by))
}

fn given(name: &str, value: json::Value<'_>) -> Result<Given, Wrong> {
    let no_value = || Wrong::whole(format!("`{name}` is a text, a number, true, false, or a list of texts"));
    Ok(match value.kind() {
        json::Kind::String => Given::Text(value.text().ok_or_else(no_value)?.into_owned()),
        json::Kind::Number => match value.raw().parse::<i128>() {
            Ok(number) => Given::Whole(number),
            Err(_) => Given::Real(value.number().ok_or_else(no_value)?),
        },
        json::Kind::Bool => Given::Flag(value.bool().ok_or_else(no_value)?),
        json::Kind::Array if name == "set" => {
            let texts = value.items().map(|item| item.text().map(std::borrow::Cow::into_owned));
            Given::List(texts.collect::<Option<_>>().ok_or_else(no_value)?)
        }
        json::Kind::Object | json::Kind::Array => Given::Json(value.raw().to_owned()),
        json::Kind::Null => return Err(no_value()),
    })
}

/// An order as JSON.
#[must_use]
pub fn of_command(command: &Command) -> Value {
    of_order(&write::order(command))
}

/// A rule as the order that arms it.
#[must_use]
pub fn of_rule(rule: &Rule) -> Value {
    of_command(&Command::Arm(rule.clone()))
}

fn of_order(order: &Order) -> Value {
    let mut object = Map::new();
    object.insert("do".to_owned(), json!(order.verb.name));
    for said in &order.members {
        let value = match &said.value {
            Given::Text(text) | Given::Json(text) => json!(text),
            Given::Whole(number) => {
                let unsigned = u64::try_from(*number).map(Number::from);
                let signed = i64::try_from(*number).map(Number::from);
                unsigned.or(signed).map_or(Value::Null, Value::Number)
            }
            Given::Real(number) => json!(number),
            Given::Flag(flag) => json!(flag),
            Given::List(texts) => json!(texts),
        };
        object.insert(said.name.clone(), value);
    }
    Value::Object(object)
}

/// What a tap answers to an order that it has carried out; `ok` is true.
#[must_use]
pub fn of_applied(applied: &Applied) -> Value {
    let mut object = Map::new();
    object.insert("ok".to_owned(), json!(true));
    if !applied.to.is_empty() {
        object.insert("to".to_owned(), json!(applied.to));
    }
    if let Some(rule) = applied.rule {
        object.insert("rule".to_owned(), json!(rule));
    }
    if let Some(status) = &applied.status {
        object.insert("status".to_owned(), of_status(status));
    }
    Value::Object(object)
}

/// What a tap answers to an order that it has refused; `ok` is false.
#[must_use]
pub fn of_refused(refused: &Refused) -> Value {
    let why = match refused {
        Refused::NotFound(_) => "not_found",
        Refused::NotHere(_) => "not_here",
        Refused::Unsafe(_) => "unsafe",
        Refused::Invalid(_) => "invalid",
    };
    json!({ "ok": false, "why": why, "error": refused.to_string() })
}

fn of_status(status: &Status) -> Value {
    json!({
        "rules": status.rules.iter().map(armed).collect::<Vec<_>>(),
        "held": status.held.iter().map(held).collect::<Vec<_>>(),
        "open": status.open.iter().map(open).collect::<Vec<_>>(),
    })
}

fn armed(armed: &ArmedRule) -> Value {
    json!({
        "number": armed.number,
        "hits": armed.hits,
        "by": armed.by.as_str(),
        "words": armed.rule.to_string(),
        "rule": of_rule(&armed.rule),
    })
}

fn held(held: &HeldMessage) -> Value {
    json!({
        "number": held.number,
        "says": held.says,
        "stream": held.stream,
        "held_ms": held.held.0,
        "released_in_ms": held.released_in.0,
        "text": held.text,
    })
}

fn open(open: &OpenRequest) -> Value {
    json!({ "id": open.id, "says": open.says, "stream": open.stream })
}

/// What a tap says of its status; `None`: it is none. What cannot be read of it is left out.
#[must_use]
pub fn read_status(value: &Value) -> Option<Status> {
    let status = value.as_object()?;
    let list = |name: &str| status.get(name).and_then(Value::as_array).into_iter().flatten();
    let text = |of: &Value, name: &str| of[name].as_str().map(str::to_owned);
    let armed = |one: &Value| {
        let (command, _) = parse(one["rule"].to_string().as_bytes()).ok()?;
        let Command::Arm(rule) = command else { return None };
        let (number, hits) = (one["number"].as_u64()?, one["hits"].as_u64()?);
        Some(ArmedRule { number, rule, hits, by: by_of(one["by"].as_str()?)? })
    };
    let held = |one: &Value| {
        Some(HeldMessage {
            number: one["number"].as_u64()?,
            says: text(one, "says")?,
            stream: one["stream"].as_u64(),
            held: Ms(one["held_ms"].as_u64()?),
            released_in: Ms(one["released_in_ms"].as_u64()?),
            text: text(one, "text")?,
        })
    };
    let open = |one: &Value| {
        Some(OpenRequest { id: text(one, "id")?, says: text(one, "says")?, stream: one["stream"].as_u64() })
    };
    Some(Status {
        rules: list("rules").filter_map(armed).collect(),
        held: list("held").filter_map(held).collect(),
        open: list("open").filter_map(open).collect(),
    })
}

fn by_of(name: &str) -> Option<By> {
    [By::Viewer, By::Ctl, By::Recipe, By::Lesson].into_iter().find(|by| by.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::words;

    #[test]
    fn a_status_comes_back_as_it_was() {
        let rule = |line: &str| match words::parse(line) {
            Ok(Command::Arm(rule)) => rule,
            other => panic!("{line}: {other:?}"),
        };
        let armed = |number, line| ArmedRule { number, rule: rule(line), hits: number * 3, by: By::Recipe };
        let status = Status {
            rules: vec![
                armed(1, "delay on='tool:slow kind:result' ms=300 jitter=50 times=always seed=7"),
                armed(2, "hold on=kind:request times=2"),
                armed(3, "drop on=x chance=0.25"),
            ],
            held: vec![HeldMessage {
                number: 4,
                says: "c2s request id \"a\" tools/call slow".to_owned(),
                stream: Some(9),
                held: Ms(1200),
                released_in: Ms(28_800),
                text: "{}".to_owned(),
            }],
            open: vec![OpenRequest { id: "7".to_owned(), says: "tools/call slow".to_owned(), stream: None }],
        };
        assert_eq!(read_status(&of_status(&status)), Some(status));
        assert_eq!(read_status(&Value::Null), None);
    }
}
