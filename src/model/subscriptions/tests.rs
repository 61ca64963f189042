//! Subscriptions on small recordings: asked, granted, brought, lost and opened again.

use super::*;
use crate::event::Dir::{C2s, S2c};
use crate::model::script::{MODERN, Script};

fn listen(id: u32, filter: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{filter},{MODERN}}}}}"#
    )
}

fn tagged(id: &str, method: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{more}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

fn request(id: u32, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{MODERN}}}}}"#)
}

fn acknowledged(id: &str, filter: &str) -> String {
    tagged(id, "subscriptions/acknowledged", &format!(r#""notifications":{filter},"#))
}

/// What the model noticed about subscriptions while it folded.
fn sights(script: &Script) -> Vec<Sight> {
    let mut model = Model::new();
    let mut sights = Vec::new();
    for (idx, event) in script.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        let of_subscriptions = model.seen().iter().map(|seen| &seen.what).filter(|what| {
            matches!(
                what,
                Sight::Subscription { .. }
                    | Sight::SubscriptionAfterEnd
                    | Sight::SubscriptionAfterCancel(_)
                    | Sight::SubscriptionUnknown { .. }
            )
        });
        sights.extend(of_subscriptions.cloned());
    }
    sights
}

#[test]
fn what_is_asked_granted_and_brought_is_kept_apart() {
    let mut script = Script::default();
    let asked = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,"resourceSubscriptions":["a:b"],"taskIds":[]}"#;
    script.line(0, C2s, &listen(1, asked));
    script.line(1, S2c, &acknowledged("1", r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}"#));
    script.line(2, S2c, &tagged("1", "tools/list_changed", ""));
    script.line(3, S2c, &tagged("1", "resources/updated", r#""uri":"a:b","#));
    script.line(4, S2c, &tagged("1", "resources/updated", r#""uri":"a:b","#));
    let model = script.fold();
    let found = model.subscription(CallIdx(0)).unwrap();
    let kinds = Kinds { tools: true, updates: true, ..Kinds::default() };
    assert_eq!(found.asked.kinds, Kinds { prompts: true, ..kinds });
    let granted = found.granted.as_ref().unwrap();
    assert_eq!(granted.kinds, kinds);
    assert_eq!(granted.uris.iter().map(|uri| model.text(*uri)).collect::<Vec<_>>(), ["a:b"]);
    assert_eq!(found.delivered, Delivered { tools: 1, updates: 2, ..Delivered::default() });
    assert_eq!((found.messages, found.acknowledged), (4, Some(Mono(1_000_000))));
}

#[test]
fn a_message_stands_before_or_after_the_end_and_only_listens_have_tags() {
    let tools = r#"{"toolsListChanged":true}"#;
    let mut script = Script::default();
    script.line(0, C2s, &listen(1, tools)).line(0, C2s, &listen(2, tools)).line(
        0,
        C2s,
        &request(3, "tools/list"),
    );
    script.line(1, S2c, &acknowledged("1", tools)).line(1, S2c, &acknowledged("2", tools));
    script.line(2, S2c, r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#);
    script.line(3, S2c, &tagged("1", "tools/list_changed", ""));
    script.line(4, C2s, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    script.line(5, S2c, &tagged("2", "tools/list_changed", ""));
    script.line(6, S2c, &tagged("3", "tools/list_changed", ""));
    script.line(7, S2c, &tagged("\"1\"", "tools/list_changed", ""));
    let sights = sights(&script);
    let first = Sight::Subscription { nth: 0 };
    assert_eq!(sights[..3], [first.clone(), first, Sight::SubscriptionAfterEnd]);
    assert!(matches!(&sights[3], Sight::SubscriptionAfterCancel(lateness) if !lateness.is_late));
    let unknown = |id| Sight::SubscriptionUnknown { id };
    assert_eq!(sights[4..], [unknown(Id::Int("3".into())), unknown(Id::Str("1".into()))]);
}

#[test]
fn on_http_the_stream_says_which_subscription_it_is() {
    let headers: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
    let mut script = Script::default();
    for stream in [1, 2] {
        // Two clients may use the same id.
        script.post(0, stream, headers, &listen(1, r#"{"toolsListChanged":true}"#));
        script.head(1, stream, 200, &[("content-type", "text/event-stream")]);
    }
    let untagged = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    script.sse(2, 1, &format!("data: {untagged}\n\n"));
    let model = script.fold();
    assert_eq!(model.subscriptions().iter().map(|found| found.messages).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn after_a_loss_the_next_listen_and_what_is_read_anew_are_noted() {
    let headers: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28"), ("authorization", "Bearer a")];
    let other: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28"), ("authorization", "Bearer b")];
    let filter = r#"{"toolsListChanged":true,"promptsListChanged":true}"#;
    let mut script = Script::default();
    script.post(0, 1, headers, &listen(1, filter)).head(1, 1, 200, &[("content-type", "text/event-stream")]);
    script.sse(2, 1, &format!("data: {}\n\n", acknowledged("1", filter))).server_closed(3, Some(1));
    script.post(4, 2, other, &listen(1, filter)).post(5, 3, other, &request(2, "prompts/list"));
    script.post(6, 4, headers, &listen(2, filter)).post(7, 5, headers, &request(3, "tools/list"));
    let model = script.fold();
    let lost = model.subscription(CallIdx(0)).unwrap();
    assert_eq!(model.call(CallIdx(0)).unwrap().state, CallState::Lost);
    assert_eq!(lost.next, Some(CallIdx(3)));
    assert_eq!(lost.reread, Kinds { tools: true, ..Kinds::default() });
    assert_eq!(lost.unread(), Kinds { prompts: true, ..Kinds::default() });
}
