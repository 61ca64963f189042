//! Orders through every door.

use proptest::prelude::*;

use super::*;
use crate::command::{
    Answer, Cancel, ClientGets, Cut, CutAt, Effect, Flow, Key, Process, RaceOrder, Rate, Retry, Side, Spoil,
    Times, Which, json,
};
use crate::filter::Filter;
use crate::time::Ms;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(r#"a "b" \ 'c' = x"#.to_owned()),
        Just("reverse".to_owned()),
        "[a-z =\"'\\\\#%é~/]{0,12}",
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let texts = ["", "tool:slow kind:result", "id:7 or id:\"a b\"", "-is:error size>2KiB", "it's"];
    prop::sample::select(texts.to_vec()).prop_map(|text| Filter::parse(text).unwrap())
}

fn json_text() -> impl Strategy<Value = String> {
    let texts = ["{}", r#"{"a":[1,"x y"]}"#, "7", r#""it's""#];
    prop::sample::select(texts.to_vec()).prop_map(str::to_owned)
}

fn ms() -> impl Strategy<Value = Ms> {
    prop_oneof![Just(0), Just(u64::MAX), 0..100_000u64].prop_map(Ms)
}

fn cancel() -> impl Strategy<Value = Cancel> {
    let gets = [ClientGets::Nothing, ClientGets::Error, ClientGets::Reset];
    (prop::option::of(text()), prop::sample::select(gets.to_vec()))
        .prop_map(|(reason, client_gets)| Cancel { reason, client_gets })
}

fn cut() -> impl Strategy<Value = Cut> {
    let sides = [None, Some(Side::Client), Some(Side::Server)];
    (prop::sample::select(sides.to_vec()), any::<bool>()).prop_map(|(side, is_reset)| Cut { side, is_reset })
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        (any::<i64>(), text()).prop_map(|(code, message)| Answer::Error { code, message }),
        json_text().prop_map(Answer::Result),
        (200..600u16).prop_map(Answer::Status),
        Just(Answer::Malformed),
        (1..1000usize).prop_map(Answer::Oversized),
    ]
}

fn process() -> impl Strategy<Value = Process> {
    let all = [Process::Kill, Process::Stop, Process::Continue, Process::CloseStdin, Process::Restart];
    prop::sample::select(all.to_vec())
}

fn effect() -> impl Strategy<Value = Effect> {
    let pointer = prop_oneof![Just(String::new()), "(/[a-z=%é]{0,3}(~[01])?){1,2}"];
    let sets = prop::collection::vec((pointer, prop_oneof![Just(String::new()), json_text()]), 1..3);
    let at = prop_oneof![
        Just(CutAt::Now),
        (1..u64::MAX).prop_map(CutAt::AfterEvents),
        (1..9u64).prop_map(CutAt::AfterBytes),
        Just(CutAt::BeforeFinal),
        Just(CutAt::MidEvent),
    ];
    prop_oneof![
        prop::option::of(ms()).prop_map(|limit| Effect::Hold { limit }),
        prop::sample::select(vec![Effect::Drop, Effect::Swap, Effect::Compress]),
        (2..100u32).prop_map(|copies| Effect::Duplicate { copies }),
        sets.prop_map(|set| Effect::Edit { set }),
        (ms(), ms()).prop_map(|(ms, jitter)| Effect::Delay { ms, jitter }),
        any::<u64>().prop_map(|bytes| Effect::Throttle(Rate::Bytes(bytes))),
        any::<u64>().prop_map(|messages| Effect::Throttle(Rate::Messages(messages))),
        (1..99usize, ms()).prop_map(|(bytes, gap)| Effect::Slice { bytes, gap }),
        (1..99usize, ms()).prop_map(|(bytes, ms)| Effect::Buffer { bytes, ms }),
        ("[a-z'`-]{1,5}", prop::option::of("[ -~]{0,9}"))
            .prop_map(|(name, value)| Effect::Header { name, value }),
        answer().prop_map(Effect::Answer),
        prop::sample::select(&Spoil::ALL[..]).prop_map(Effect::Spoil),
        cancel().prop_map(Effect::Cancel),
        (cut(), at).prop_map(|(cut, at)| Effect::Disconnect { cut, at }),
        process().prop_map(Effect::Process),
        (1..9u32, 1..9u32).prop_map(|(per_s, count)| Effect::Flood { per_s, count }),
        ms().prop_map(|margin| Effect::Race(RaceOrder::CancelFirst { margin })),
        ms().prop_map(|margin| Effect::Race(RaceOrder::AnswerFirst { margin })),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let times = prop_oneof![Just(Times::Always), (1..9u64).prop_map(Times::Only)];
    let head = (prop::option::of(text()), filter(), any::<u64>(), times);
    (head, 0.0..=1.0f64, prop::option::of(any::<u64>()), effect()).prop_map(
        |((name, on, skip, times), chance, seed, effect)| Rule {
            name,
            on,
            skip,
            times,
            chance,
            seed,
            effect,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let which = || prop_oneof![Just(Which::All), any::<u64>().prop_map(Which::One)];
    let keys = prop::sample::select(&[Key::Same, Key::New, Key::None][..]);
    let arguments = prop::option::of(Just(r#"{"a": "it's"}"#.to_owned()));
    let retry = (keys, arguments, any::<bool>(), any::<bool>())
        .prop_map(|(key, arguments, has_same_id, is_sure)| Retry { key, arguments, has_same_id, is_sure });
    let sides = prop::sample::select(&[Side::Client, Side::Server][..]);
    let at_once = prop_oneof![
        which().prop_map(Command::Disarm),
        (filter(), cancel()).prop_map(|(on, cancel)| Command::Cancel { on, cancel }),
        (filter(), cut()).prop_map(|(on, cut)| Command::Disconnect { on, cut }),
        process().prop_map(Command::Process),
        (filter(), retry).prop_map(|(on, retry)| Command::Retry { on, retry }),
        (sides, text(), prop::option::of(any::<u64>())).prop_map(|(to, text, stream)| Command::Send {
            to,
            text,
            stream
        }),
        (which(), any::<bool>(), prop::option::of(filter()))
            .prop_map(|(which, in_reverse, after)| Command::Release { which, in_reverse, after }),
        (any::<u64>(), text()).prop_map(|(held, text)| Command::Edit { held, text }),
        which().prop_map(Command::Drop),
        (any::<u64>(), answer()).prop_map(|(held, answer)| Command::AnswerHeld { held, answer }),
        (any::<u64>(), ms()).prop_map(|(held, by)| Command::Extend { held, by }),
        Just(Command::Flow(Flow::PassThrough)),
        (2..99usize).prop_map(|limit| Command::Flow(Flow::Bounded(limit))),
        Just(Command::Status),
    ];
    prop_oneof![rule().prop_map(Command::Arm), at_once]
}

proptest! {
    #[test]
    fn an_order_is_the_same_through_every_door(command in command()) {
        let words = command.to_string();
        prop_assert_eq!(parse(&words), Ok(command.clone()), "{}", words);
        let json = json::of_command(&command).to_string();
        prop_assert_eq!(json::parse(json.as_bytes()), Ok((command, None)), "{}", json);
    }

    #[test]
    fn no_line_is_too_strange(line in ".{0,60}") {
        let _ = parse(&line);
        let _ = json::parse(line.as_bytes());
    }
}

#[test]
fn people_write_orders_in_several_ways() {
    let cases = [
        ("release", "release all"),
        ("release 3", "release 3"),
        ("release which=all reverse=true", "release all reverse"),
        ("release all reverse=false after='kind:result id:2'", "release all after='kind:result id:2'"),
        ("race cancel on='tool:slow' margin=1s times=20", "race on=tool:slow cancel margin=1000 times=20"),
        ("cancel on=id:7 client=error", "cancel on=id:7 client=error"),
        ("cancel on=id:7 times=2", "cancel when=next on=id:7 times=2"),
        ("kill", "kill"),
        ("kill on='kind:request tool:slow'", "kill when=next on='kind:request tool:slow'"),
        ("disconnect at=mid-event", "disconnect when=next at=mid-event"),
        ("disconnect on='id:7' side=server reset", "disconnect on=id:7 side=server reset"),
        (r#"retry on='id:7' arguments={"x":1} sure"#, r#"retry on=id:7 arguments={"x":1} sure"#),
        (r#"edit 3 text='{"a": 1}'"#, r#"edit 3 text='{"a": 1}'"#),
        (r#"edit set=/a=1 set='#/b%3Dc="d e"'"#, r#"edit set=/a=1 set='#/b%3Dc="d e"'"#),
        ("edit set=/a=", "edit set=/a="),
        ("drop 3", "drop 3"),
        ("drop all", "drop all"),
        ("drop on=kind:progress times=always", "drop on=kind:progress times=always"),
        ("hold limit=30s", "hold limit=30000"),
        ("  status  ", "status"),
        ("header X-Trace", "header X-Trace"),
        ("answer error=-32603", "answer error=-32603 message='answered by midwire'"),
        ("throttle bytes=0 chance=0.5", "throttle bytes=0 chance=0.5"),
    ];
    for (line, plain) in cases {
        assert_eq!(parse(line).map(|command| command.to_string()), Ok(plain.to_owned()), "{line}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_is_allowed() {
    let cases = [
        ("", 1, "an order begins with a verb"),
        (" dely ms=3", 2, "no verb `dely`; there are hold, drop,"),
        ("delay", 1, "`delay` needs `ms`"),
        ("delay msx=3", 7, "`delay` takes no `msx`; it takes ms, jitter, on,"),
        ("delay ms=soon", 7, "`ms`: give a time such as 300, 300ms or 5s"),
        ("delay ms=-1", 7, "`ms`: give a time"),
        ("delay ms=3 ms=4", 12, "`ms` is said twice"),
        ("delay ms=3 on='method:('", 12, "`on`: filter, column"),
        ("delay ms=3 on='x", 15, "the ' is not closed"),
        ("delay ms=3 on='x'y", 18, "where a space should be"),
        ("delay 3", 7, "`3` has no name; `delay` takes ms=, jitter=,"),
        ("delay=3", 6, "where a space should be"),
        ("release 3 4", 11, "`4` has no name; `release` takes which=, reverse, after="),
        ("release some", 9, "`which`: give a number, or all"),
        ("race first=server", 6, "`first`: give cancel or answer"),
        ("throttle bytes=3 messages=4", 18, "`messages`: only one of bytes or messages"),
        ("throttle", 1, "`throttle` needs `bytes` or `messages` a second"),
        ("cancel", 1, "`cancel` needs `on`"),
        ("cancel when=now on=id:7 times=2", 25, "`times` is for a rule: leave out when=now"),
        ("edit 3 text=x times=2", 15, "`times` is for a rule, and `held`"),
        ("edit set=x=1", 6, "`set`: `x` is no JSON pointer"),
        ("edit set=/x=y", 6, "`y` is no JSON; text stands in \"quotes\""),
        ("drop times=0", 6, "`times`: give a whole number from 1, or always"),
        ("drop chance=1.5", 6, "`chance`: give a number from 0 to 1"),
        ("answer status=99", 8, "`status`: give a whole number from 200 to 599"),
        ("answer message=x status=500", 8, "`message`: goes with `error`"),
        ("answer malformed=false", 1, "`answer` needs one of error, result"),
        ("header field='a b'", 8, "`field`: is no name of a header field"),
        ("send server text='a\nb'", 13, "`text`: give text without a line end"),
        ("retry on=id:7 arguments=[1]", 15, "`arguments`: is a JSON object"),
        ("é status", 1, "no verb `é`"),
    ];
    for (line, column, why) in cases {
        let error = parse(line).unwrap_err();
        assert!(error.column == column && error.why.contains(why), "{line}: {error}");
    }
}

#[test]
fn words_from_a_shell_are_one_line() {
    let line = |words: &[&str]| line_of(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
    let cases: [(&[&str], &str); 4] = [
        (&["release all reverse"], "release all reverse"),
        (&["delay", "on=tool:slow kind:result", "ms=3"], "delay on='tool:slow kind:result' ms=3"),
        (&["send", "client", r#"text={"a": "it's"}"#], r#"send client text="{\"a\": \"it's\"}""#),
        (&["cancel", "on="], "cancel on=''"),
    ];
    for (words, expected) in cases {
        assert_eq!(line(words), expected);
        parse(&line(words)).unwrap();
    }
}

#[test]
fn json_orders_are_as_strict_as_words() {
    let cases = [
        (
            r#"{"do":"delay","on":"tool:slow","ms":300,"times":"always"}"#,
            Ok("delay on=tool:slow ms=300 times=always"),
        ),
        (r#"{"do":"retry","on":"id:7","arguments":{"x":1}}"#, Ok(r#"retry on=id:7 arguments={"x":1}"#)),
        (r#"{"do":"edit","set":["/a=1"]}"#, Ok("edit set=/a=1")),
        (r#"{"do":"delay","ms":3,"ms":4}"#, Err("`ms` is said twice")),
        (r#"{"do":"delay","ms":1.5}"#, Err("`ms`: give a time")),
        (r#"{"do":"cancel","on":"id:7","reason":{}}"#, Err("`reason`: give text")),
        (r#"{"do":"cancel","on":null}"#, Err("`on` is a text, a number")),
        (r#"{"verb":"status"}"#, Err("an order has a verb: `do`")),
        ("[]", Err("an order is a JSON object")),
        ("", Err("an order is a JSON object")),
    ];
    for (text, expected) in cases {
        match (json::parse(text.as_bytes()), expected) {
            (Ok((command, _)), Ok(words)) => assert_eq!(command.to_string(), words),
            (Err(error), Err(why)) => assert!(error.why.contains(why), "{text}: {error}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }
}
