//! Whole policy files, and which part of them is for which call.

use super::*;
use crate::time::Ms;

const CALL: Subject<'static> = Subject {
    client: Some("nightly"),
    user_agent: None,
    server: Some("npx shop-server"),
    transport: Transport::Stdio,
    method: "tools/call",
    tool: Some("charge_account"),
};

fn read(text: &str) -> Result<Policy, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

#[test]
fn a_policy_says_what_is_for_which_call() {
    let policy = read(
        r#"
        allow_legacy = ["npx *", "https://old.example.com/mcp"]
        [[clocks]]
        name = "other"
        clients = ["someone else"]
        max_ms = 1
        [[clocks]]
        name = "charges"
        tools = ["charge_*"]
        transports = ["stdio"]
        idle_ms = 500
        max_ms = 2000
        [[clocks]]
        name = "the rest"
        idle_ms = 60000
        resets_on_progress = false
        [[contracts]]
        tools = ["charge_account"]
        servers = ["*shop*"]
        side_effect = "effect"
        key = "/idempotency_key"
        receipt = "/structuredContent/receipt"
        business_ids = ["/account", "/amount"]
        volatile = ["/structuredContent/served_at"]
        [limits]
        ping_ms = 1000
        "#,
    )
    .unwrap();
    let name = |subject: &Subject<'_>| policy.clock(subject).map(|clock| clock.name.clone());
    assert_eq!(name(&CALL).as_deref(), Some("charges"));
    assert_eq!(name(&Subject { transport: Transport::Http, ..CALL }).as_deref(), Some("the rest"));
    assert_eq!(name(&Subject { tool: None, method: "ping", ..CALL }).as_deref(), Some("the rest"));
    assert!(policy.clock(&CALL).unwrap().resets_on_progress);
    let contract = policy.contract(&CALL).unwrap();
    assert_eq!(contract.key.as_ref().unwrap().as_str(), "/idempotency_key");
    assert_eq!(contract.business_ids.len(), 2);
    assert!(policy.contract(&Subject { server: None, ..CALL }).is_none());
    assert!(policy.contract(&Subject { tool: Some("charge"), ..CALL }).is_none());
    assert_eq!(policy.may_be_legacy(&["NPX shop-server"]), Some(true));
    assert_eq!(policy.may_be_legacy(&["uvx other"]), Some(false));
    assert_eq!((policy.limits.ping, policy.limits.exit), (Ms(1000), Ms(5000)));
}

#[test]
fn the_policy_of_the_documentation_is_one() {
    let page = include_str!("../../../docs/policy.md");
    let mut examples = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let whole = read(examples.next().unwrap()).unwrap();
    assert!(whole.clocks.len() > 1 && whole.contracts.len() > 1 && whole.allow_legacy.is_some());
    assert_eq!(whole.limits, Limits { keep_alive: Ms(60_000), grace: Some(Ms(800)), ..Limits::default() });
    for heading in ["`allow_legacy`", "`[[clocks]]`", "`[[contracts]]`", "`[limits]`"] {
        assert!(page.contains(&format!("## {heading}")), "{heading}");
    }
    for example in examples {
        read(example).unwrap();
    }
}

#[test]
fn an_empty_policy_says_nothing() {
    let policy = read("").unwrap();
    assert_eq!(policy, Policy::default());
    assert_eq!((policy.clock(&CALL), policy.contract(&CALL)), (None, None));
    assert_eq!(policy.may_be_legacy(&["anything"]), None);
}

#[test]
fn a_wrong_policy_is_refused_with_a_reason() {
    let contract = |rest: &str| format!("[[contracts]]\ntools = [\"a\"]\n{rest}");
    let cases = [
        ("clock = 1".to_owned(), "unknown field `clock`"),
        ("[[clocks]]\nmax_ms = 1".to_owned(), "missing field `name`"),
        ("[[clocks]]\nname = \"a\"\nidle_ms = 0".to_owned(), "at least 1 ms"),
        ("[[clocks]]\nname = \"a\"\nmax_ms = -1".to_owned(), "invalid value"),
        ("[[clocks]]\nname = \"a\"\ntransports = [\"tcp\"]".to_owned(), "unknown variant `tcp`"),
        ("[limits]\nping = 1".to_owned(), "unknown field `ping`"),
        ("[limits]\ngrace_ms = 0".to_owned(), "at least 1 ms"),
        (contract("side_effect = \"maybe\""), "unknown variant `maybe`"),
        (contract(""), "missing field `side_effect`"),
        (contract("side_effect = \"none\"\nkey = \"id\""), "is no JSON Pointer"),
    ];
    for (text, why) in cases {
        let error = read(&text).unwrap_err();
        assert!(error.contains(why), "{text}\n{error}");
    }
}

#[test]
fn known_clients_are_found_by_name_and_libraries_by_nobody() {
    let of = |client, transport| {
        let clock = presets::of(&Subject { client: Some(client), transport, ..CALL })?;
        Some((clock.name.as_str(), clock.idle.or(clock.max)?.0))
    };
    let cases = [
        ("inspector-client", Transport::Http, Some(("MCP Inspector", 300_000))),
        ("claude-code", Transport::Http, Some(("Claude Code", 300_000))),
        ("claude-code", Transport::Stdio, Some(("Claude Code", 1_800_000))),
        ("gemini-cli-mcp-client-files", Transport::Stdio, Some(("Gemini CLI", 600_000))),
        ("Zed", Transport::Stdio, Some(("Zed", 60_000))),
        ("mcp", Transport::Stdio, None),
        ("my-app", Transport::Stdio, None),
    ];
    for (client, transport, expected) in cases {
        assert_eq!(of(client, transport), expected, "{client}");
    }
    let list = Subject { client: Some("Cline"), method: "tools/list", tool: None, ..CALL };
    assert_eq!(presets::of(&list).and_then(|clock| clock.idle), Some(Ms(5_000)));
    assert!(presets::clients().iter().all(|clock| !clock.clients.is_empty()));
    assert!(presets::libraries().iter().all(|clock| clock.clients.is_empty()));
}

/// A row of the table of known defaults.
fn row(clock: &ClockPolicy) -> String {
    let methods: Vec<String> = clock.methods.iter().map(|name| format!("`{}`", name.as_str())).collect();
    let methods = if methods.is_empty() { "every request".to_owned() } else { methods.join(", ") };
    let transport = match clock.transports.first() {
        None => "",
        Some(Transport::Stdio) => ", stdio",
        Some(Transport::Http) => ", HTTP",
    };
    let idle = if clock.resets_on_progress { "without progress" } else { "from the start" };
    let max = if clock.checks_max_on_progress { "in all, looked at when progress comes" } else { "in all" };
    let limits = [(clock.idle, idle), (clock.max, max), (clock.silence, "without a byte")];
    let limits = limits.into_iter().filter_map(|(limit, what)| Some(format!("{} s {what}", limit?.0 / 1000)));
    let limits = limits.collect::<Vec<_>>().join(", ");
    let setting = clock.setting.as_deref().unwrap_or("–");
    format!("| {} | {methods}{transport} | {limits} | {setting} |", clock.name)
}

#[test]
fn the_documentation_lists_every_preset() {
    let page = include_str!("../../../docs/policy.md");
    let missing: Vec<String> = presets::clients()
        .iter()
        .chain(presets::libraries())
        .map(row)
        .filter(|row| !page.lines().any(|line| line == row))
        .collect();
    assert!(missing.is_empty(), "rows missing in docs/policy.md:\n{}", missing.join("\n"));
}

#[test]
fn every_preset_has_a_name_and_a_limit() {
    for clock in presets::clients().iter().chain(presets::libraries()) {
        assert!(clock.idle.or(clock.max).or(clock.silence).is_some(), "{}", clock.name);
        assert!(!clock.name.is_empty() && clock.setting.as_deref() != Some(""));
    }
}
