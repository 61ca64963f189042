//! Recordings: read, written again, folded and judged.

use midwire::event::Event;
use midwire::model::Model;
use midwire::rules::{Finding, Judge, catalogue};
use midwire::trace::{Recording, encode_event};

/// Every event of a recording; none where it cannot be opened.
fn events(text: &[u8]) -> Vec<Event> {
    let Ok(mut recording) = Recording::read_from(&mut &*text, "fuzz") else { return Vec::new() };
    let mut events = Vec::new();
    while let Ok(Some((event, place))) = recording.next() {
        // Alone, a line without number or time of its own does not tell them.
        let again = recording.read_at(place).map(|again| again.what);
        assert_eq!(again.ok().as_ref(), Some(&event.what), "a place finds its event again");
        events.push(event);
    }
    events
}

/// What was read is written and read again as the same.
pub fn trace(data: &[u8]) {
    let first = events(data);
    let mut text = Vec::new();
    for event in &first {
        encode_event(event, &mut text);
    }
    assert_eq!(events(&text), first);
}

/// Whatever a recording says, it is folded and judged, twice alike, and what is found can be
/// looked up.
pub fn verdicts(data: &[u8]) {
    let events = events(data);
    let findings = judge(&events);
    assert_eq!(findings, judge(&events));
}

/// The same for traffic that looks like MCP.
pub fn traffic(data: &[u8]) {
    verdicts(&super::traffic::recording(data));
}

fn judge(events: &[Event]) -> Vec<Finding> {
    let (mut model, mut judge) = (Model::new(), Judge::new());
    for (event, idx) in events.iter().zip(0u32..) {
        model.fold(event, idx);
        judge.look(&model);
    }
    model.cut();
    judge.look(&model);
    let findings = judge.findings().to_vec();
    for (at, finding) in findings.iter().enumerate() {
        assert!(catalogue::find(finding.rule).is_some(), "{finding:?}");
        assert!(!finding.sentence.is_empty(), "{finding:?}");
        assert!(finding.calls.iter().all(|call| model.call(*call).is_some()), "{finding:?}");
        assert!(finding.evidence.is_sorted(), "{finding:?}");
        assert!(finding.cause.is_none_or(|cause| cause < findings.len() && cause != at), "{finding:?}");
    }
    findings
}
