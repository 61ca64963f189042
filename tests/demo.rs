//! The demo as its recording tells it: reference client, tap and reference server in one process,
//! and a model that sees in the traffic what the tour says about it.

use midwire::app::demo;
use midwire::app::session::Record;
use midwire::event::What;
use midwire::model::{Call, CallState, Model};
use midwire::peer::tour::TourOptions;
use midwire::trace::Recording;

/// Tool or method, and how the call ended.
fn told(model: &Model, call: &Call) -> (String, CallState) {
    (model.text(call.target.unwrap_or(call.method)).to_owned(), call.state)
}

#[test]
fn the_recording_of_the_tour_shows_what_the_tour_says() {
    use CallState::{AbandonedByDisconnect, AnsweredError, AnsweredOk, InputRequired};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.mw.jsonl");
    let options = TourOptions { speed: 15.0, rounds: Some(1) };
    demo::start(options, Record::File(path.clone()), |_| {}).unwrap().wait().unwrap();

    let mut recording = Recording::open(&path).unwrap();
    let mut model = Model::new();
    let mut chapters = Vec::new();
    for idx in 0.. {
        let Some((event, _)) = recording.next().unwrap() else { break };
        model.fold(&event, idx);
        match event.what {
            What::Mark(text) => chapters.extend(text.split(' ').next().map(str::to_owned)),
            What::Gap { .. } => panic!("something is missing: {event:?}"),
            _ => {}
        }
    }
    assert_eq!(chapters, ["Welcome.", "1", "2", "3", "4", "5", "6", "7", "8", "9", "That"]);

    let calls: Vec<(String, CallState)> = model.calls().iter().map(|call| told(&model, call)).collect();
    let mut expected = vec![
        ("server/discover", AnsweredOk),
        ("tools/list", AnsweredOk),
        ("slow", AnsweredOk),
        ("slow", AbandonedByDisconnect),
        ("silent", AbandonedByDisconnect),
        ("silent", AnsweredOk),
        ("flood", AnsweredOk),
    ];
    expected.extend([("slow", AnsweredOk); 6]);
    expected.extend([
        ("fails", AnsweredOk),
        ("no_such_tool", AnsweredError),
        ("silent", AbandonedByDisconnect),
        ("slow", AbandonedByDisconnect),
        ("ask_user", InputRequired),
        ("ask_user", AnsweredOk),
    ]);
    let expected: Vec<(String, CallState)> =
        expected.into_iter().map(|(target, state)| (target.to_owned(), state)).collect();
    assert_eq!(calls, expected);

    let linked = |link: fn(&Call) -> bool| -> Vec<String> {
        model.calls().iter().filter(|call| link(call)).map(|call| call.id.to_string()).collect()
    };
    assert_eq!(linked(|call| call.retry_of.is_some()), ["6"]);
    assert_eq!(linked(|call| call.round_of.is_some()), ["19"]);
    assert_eq!(linked(|call| call.is_tool_error), ["14"]);
    assert_eq!(linked(|call| call.progress.count == 1000), ["7"]);
    let errors: Vec<Option<i64>> = model.calls().iter().map(|call| call.error_code).collect();
    assert_eq!(errors.iter().flatten().collect::<Vec<_>>(), [&-32602]);
}
