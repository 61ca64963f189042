//! Pages in, lists out.

use super::*;
use crate::event::Dir::{C2s, S2c};
use crate::model::script::{MODERN, Script};
use crate::spec::lists::ListKind;

/// One request for a page and its answer: cursor asked for, names told, next cursor.
type Step = (Option<&'static str>, &'static [&'static str], Option<&'static str>);

fn ask(script: &mut Script, ms: u64, id: usize, cursor: Option<&str>) {
    let cursor = cursor.map_or_else(String::new, |cursor| format!(r#""cursor":"{cursor}","#));
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{cursor}{MODERN}}}}}"#);
    script.line(ms, C2s, &text);
}

fn tell(script: &mut Script, ms: u64, id: usize, names: &[&str], next: Option<&str>) {
    let tools: Vec<_> = names.iter().map(|name| format!(r#"{{"name":"{name}","n":{ms}}}"#)).collect();
    let next = next.map_or_else(String::new, |next| format!(r#","nextCursor":"{next}""#));
    let tools = tools.join(",");
    script.line(ms, S2c, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]{next}}}}}"#));
}

fn script(steps: &[Step]) -> Script {
    let mut script = Script::default();
    for (id, (cursor, names, next)) in steps.iter().enumerate() {
        ask(&mut script, id as u64 * 10, id, *cursor);
        tell(&mut script, id as u64 * 10 + 5, id, names, *next);
    }
    script
}

fn tools(model: &Model) -> Option<Listed<'_>> {
    model.lists().find(|(_, kind, _)| *kind == ListKind::Tools).map(|(.., listed)| listed)
}

fn names(walk: &Walk) -> Vec<String> {
    walk.items().map(|(_, item)| item.get("name").unwrap().text().unwrap().into_owned()).collect()
}

#[test]
fn pages_are_joined_by_their_cursors_and_the_latest_whole_walk_counts() {
    let cases: [(&[Step], Option<&[&str]>); 8] = [
        (&[(None, &["a", "b"], None)], Some(&["a", "b"])),
        (&[(None, &["a"], Some("1")), (Some("1"), &["b"], None)], Some(&["a", "b"])),
        (&[(None, &["a"], Some("")), (Some(""), &["b"], None)], Some(&["a", "b"])),
        (&[(None, &["a"], Some("1"))], None),
        // Begun before the recording.
        (&[(Some("1"), &["b"], None)], None),
        // Two walks at once.
        (
            &[
                (None, &["a"], Some("1")),
                (None, &["x"], Some("2")),
                (Some("2"), &["y"], None),
                (Some("1"), &["b"], None),
            ],
            Some(&["x", "y"]),
        ),
        (&[(None, &["a"], None), (None, &["c"], Some("1"))], Some(&["a"])),
        (&[(None, &["a", "a"], None)], Some(&["a", "a"])),
    ];
    for (steps, expected) in cases {
        let model = script(steps).fold();
        let whole = tools(&model).and_then(|listed| listed.whole());
        let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(whole.map(names), expected, "{steps:?}");
    }
}

#[test]
fn a_definition_is_the_one_told_last_and_not_current_after_a_change() {
    let mut script = script(&[(None, &["a", "b"], None), (None, &["a"], Some("1"))]);
    let told = |script: &Script, name: &str| {
        let model = script.fold();
        let listed = tools(&model)?;
        let definition = listed.definition(name)?;
        Some((definition.value.get("n")?.integer()?, definition.is_current))
    };
    assert_eq!(told(&script, "a"), Some((15, true)), "on a page of a walk under way");
    assert_eq!(told(&script, "b"), Some((5, true)));
    assert_eq!(told(&script, "c"), None);
    script.line(20, S2c, r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    assert_eq!(told(&script, "a"), Some((15, true)));
    script.line(30, S2c, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert_eq!(told(&script, "a"), Some((15, false)));
    let model = script.fold();
    assert!(!tools(&model).unwrap().is_current());
    ask(&mut script, 40, 7, None);
    tell(&mut script, 45, 7, &["a"], None);
    assert_eq!(told(&script, "a"), Some((45, true)));
    assert_eq!(told(&script, "b"), None);
}

#[test]
fn a_call_finds_the_definition_that_its_own_viewer_was_told() {
    let mut script = Script::default();
    let mut list = |stream: u64, token: &str, note: &str| {
        let headers = [("authorization", token), ("mcp-protocol-version", "2026-07-28")];
        script
            .post(stream, stream, &headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
            .head(stream, stream, 200, &[("content-type", "application/json")])
            .body(
                stream,
                stream,
                &format!(
                    r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"a","note":"{note}"}}]}}}}"#
                ),
            )
            .server_closed(stream, Some(stream));
    };
    list(1, "Bearer one", "for one");
    list(2, "Bearer two", "for two");
    for (stream, token, expected) in
        [(3, "Bearer one", Some("for one")), (4, "Bearer two", Some("for two")), (5, "Bearer three", None)]
    {
        let mut script = Script { events: script.events.clone() };
        let headers = [("authorization", token), ("mcp-protocol-version", "2026-07-28")];
        let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a"}}"#;
        script.post(9, stream, &headers, call);
        let model = script.fold();
        let newest = CallIdx(u32::try_from(model.calls().len() - 1).unwrap());
        let note = model.definition(newest).and_then(|known| known.value.get("note")?.text());
        assert_eq!(note.as_deref(), expected, "{token}");
    }
}

#[test]
fn endless_walks_are_cut_and_old_lists_forgotten() {
    let mut script = Script::default();
    for id in 0..1_100_usize {
        let before = id.to_string();
        let next = (id + 1).to_string();
        ask(&mut script, id as u64, id, (id > 0).then_some(before.as_str()));
        tell(&mut script, id as u64, id, &["a"], (id < 1_099).then_some(next.as_str()));
    }
    let model = script.fold();
    let whole = tools(&model).and_then(|listed| listed.whole()).unwrap();
    assert!(whole.is_cut() && whole.pages().len() == 1_024, "{}", whole.pages().len());
    assert!(!tools(&model).unwrap().is_current());

    let mut lists = Lists::default();
    for number in 0..2 * LISTS as u64 {
        let viewer = Viewer { scope: ScopeIdx(0), era: None, who: number };
        let list = lists.by_viewer.entry((viewer, ListKind::Tools)).or_default();
        list.touch(Mono(number));
        lists.bound();
        assert!(lists.by_viewer.contains_key(&(viewer, ListKind::Tools)));
    }
    assert!(lists.by_viewer.len() <= LISTS, "{}", lists.by_viewer.len());
}
