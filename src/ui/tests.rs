//! Screens as a person sees them: scripted sessions, keys, and what stands on the screen then.

use std::fmt::Write as _;

use bytes::Bytes;
use crossterm::event::KeyEvent;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::msg::{Command, Entry, Facts, Feed, Msg, Recording};
use super::{Charset, State, update, view};
use crate::config::chord::Chord;
use crate::config::colour::Depth;
use crate::config::keys::{Action, KeyMap};
use crate::config::theme::Theme;
use crate::event::{Dir, Event, Transport, What};
use crate::model::script::Script;
use crate::spec::headers::encode;
use crate::time::Mono;

mod hands;

/// A viewer on a stage: keys in, screens out, and the events at hand that it asks for.
struct Stage {
    state: State,
    size: (u16, u16),
    events: Vec<Event>,
    /// What was asked of the outside and is not done by the stage itself.
    asked: Vec<Command>,
}

impl Stage {
    fn new(size: (u16, u16)) -> Stage {
        Stage::with(size, Charset { is_ascii: false })
    }

    fn with(size: (u16, u16), charset: Charset) -> Stage {
        let viewer = State::new(KeyMap::default(), charset, false);
        let mut stage = Stage { state: viewer, size, events: Vec::new(), asked: Vec::new() };
        stage.tell(Msg::Resize(size.0, size.1));
        stage
    }

    /// A stage on which a session was opened.
    fn on(size: (u16, u16), feed: Feed, script: &Script) -> Stage {
        let mut stage = Stage::new(size);
        stage.open(feed, script);
        stage
    }

    fn open(&mut self, feed: Feed, script: &Script) {
        self.events.clone_from(&script.events);
        self.tell(Msg::Opened(Facts {
            what: "http://127.0.0.1:3000/mcp".to_owned(),
            label: Some("lab".to_owned()),
            transport: Some(Transport::Http),
            started: "2026-12-01 12:00:00".to_owned(),
            is_own_tap: feed == Feed::Live,
            welcome: None,
            feed,
        }));
        self.tell(Msg::Events(script.events.clone()));
        self.tell(Msg::Recording(Recording { feed, bytes: 12_345, trouble: None, is_read: true }));
    }

    fn tell(&mut self, msg: Msg) {
        let mut commands = update(&mut self.state, msg);
        while let Some(command) = commands.pop() {
            match command {
                Command::Fetch { row, first, last } => {
                    let events = self.events[first as usize..=last as usize].to_vec();
                    commands.extend(update(&mut self.state, Msg::Fetched { row, events: Ok(events) }));
                }
                Command::Continue => commands.extend(update(&mut self.state, Msg::Continue)),
                other => self.asked.push(other),
            }
        }
    }

    /// Keys by their names, blank between them, `3j` in quick succession; `"…"` is typed.
    fn keys(&mut self, keys: &str) -> &mut Stage {
        for (idx, part) in keys.split('"').enumerate() {
            let names: Vec<String> = if idx % 2 == 1 {
                part.chars().map(|c| if c == ' ' { "space".to_owned() } else { c.to_string() }).collect()
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            };
            for name in names {
                match Chord::parse(&name) {
                    Some(chord) => self.press(chord),
                    None => name.chars().for_each(|c| self.press(Chord::parse(&c.to_string()).unwrap())),
                }
                self.tell(Msg::KeyPause);
            }
        }
        self
    }

    fn press(&mut self, chord: Chord) {
        self.tell(Msg::Key(KeyEvent::new(chord.code, chord.mods)));
    }

    fn draw(&self, theme: &Theme) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).unwrap();
        terminal.draw(|frame| view(&self.state, theme, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The screen as text, without the blanks at the ends of lines.
    fn screen(&self) -> String {
        let buffer = self.draw(&theme("no-colour", Depth::None));
        let area = buffer.area;
        let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..area.height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
    }

    /// The runs of one style on each line: columns, text, style.
    fn runs(&self, theme: &Theme) -> String {
        let buffer = self.draw(theme);
        let mut told = String::new();
        for y in 0..buffer.area.height {
            let mut x = 0;
            while x < buffer.area.width {
                let style = buffer[(x, y)].style();
                let end = (x..buffer.area.width)
                    .find(|x| buffer[(*x, y)].style() != style)
                    .unwrap_or(buffer.area.width);
                let text: String = (x..end).map(|x| buffer[(x, y)].symbol()).collect();
                if !text.trim().is_empty() {
                    let fg = style.fg.map(|fg| fg.to_string()).unwrap_or_default();
                    let _ = writeln!(told, "{y:2} {:20} {fg} {:?}", text.trim(), style.add_modifier);
                }
                x = end;
            }
        }
        told
    }
}

fn theme(name: &str, depth: Depth) -> Theme {
    Theme::load(name, depth).unwrap()
}

fn meta(token: Option<&str>) -> String {
    let token = token.map(|token| format!(r#","progressToken":"{token}""#)).unwrap_or_default();
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"lab","version":"1"}}{token}}}"#
    )
}

fn call(id: u64, tool: &str) -> String {
    let meta = meta(Some(&format!("t{id}")));
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"größe 日本"}},{meta}}}}}"#
    )
}

fn progress(id: u64, n: u64) -> String {
    format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":\"t{id}\",\"progress\":{n},\"total\":4}}}}\n\n"
    )
}

/// The result of a call, as JSON.
fn answer(id: u64, content: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{content}],"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"shop","version":"2"}}}}}}}}"#
    )
}

/// Posts the call of a tool whose name stands in JSON.
fn post(script: &mut Script, ms: u64, id: u64, tool: &str) {
    let name: String = serde_json::from_str(&format!("\"{tool}\"")).unwrap();
    let head = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", &encode(&name)),
    ];
    script.post(ms, id, &head, &call(id, tool));
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const SSE: &[(&str, &str)] =
    &[("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no")];

/// One call of each fate, over HTTP.
fn fates() -> Script {
    let mut script = Script::default();
    script.push(0, Dir::Tap, None, What::Mark("One call of each fate.\nWatch the bars.".to_owned()));
    post(&mut script, 1000, 1, "echo");
    script.head(1040, 1, 200, JSON).body(1041, 1, &answer(1, "")).server_closed(1041, Some(1));
    post(&mut script, 1500, 2, "slow");
    script.head(1600, 2, 200, SSE);
    for n in 1..=3 {
        script.sse(1500 + n * 400, 2, &progress(2, n));
    }
    script.sse(3000, 2, &format!("data: {}\n\n", answer(2, r#"{"type":"text","text":"done"}"#)));
    script.server_closed(3001, Some(2));
    post(&mut script, 2000, 3, "absent");
    script.head(2010, 3, 400, JSON);
    script.body(2011, 3, r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool"}}"#);
    script.server_closed(2011, Some(3));
    post(&mut script, 3200, 4, "slow");
    script.head(3250, 4, 200, SSE).sse(3600, 4, &progress(4, 1)).client_closed(4000, Some(4));
    post(&mut script, 4100, 5, "evil \\u001b[31m\\u202ename");
    script.head(4150, 5, 200, SSE);
    script.sse(4200, 5, "data: {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n\n");
    script
}

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

fn name(view: &str, (width, height): (u16, u16)) -> String {
    format!("{view}_{width}x{height}")
}

#[test]
fn every_view_at_every_size() {
    for size in SIZES {
        let mut stage = Stage::on(size, Feed::Live, &fates());
        stage.tell(Msg::Clock(Mono(6_000_000_000)));
        for (view, keys) in [
            ("calls", "g j"),
            ("call_opened", "enter"),
            ("call_message_tree", "enter"),
            ("call_message_raw", "v"),
            ("call_message_headers", "v"),
            ("call_timing", "v"),
            ("stream", "v esc esc 3 G"),
            ("findings", "4"),
            ("help", "?"),
            ("filter", "esc 2 / \"tool:slow dur>1s\""),
            ("filter_wrong", "\" colour:red\""),
        ] {
            stage.keys(keys);
            insta::assert_snapshot!(name(view, size), stage.screen());
        }
    }
}

fn entry(key: usize, feed: Feed, what: &str, runs: usize) -> Entry {
    Entry {
        key,
        feed,
        started: "2026-12-01 12:00:00".to_owned(),
        transport: Some(Transport::Stdio),
        what: what.to_owned(),
        label: (key == 1).then(|| "files".to_owned()),
        events: (feed != Feed::Live).then_some(1234),
        size_bytes: 98_765,
        runs,
    }
}

#[test]
fn home_with_and_without_anything_in_it() {
    for size in SIZES {
        let mut stage = Stage::new(size);
        stage.tell(Msg::Library(Vec::new()));
        insta::assert_snapshot!(name("home_empty", size), stage.screen());
        stage.tell(Msg::Library(vec![
            entry(0, Feed::Live, "python server.py", 1),
            entry(1, Feed::Whole, "npx -y server --root /srv", 2),
            entry(2, Feed::Cut, "evil\u{1b}]0;x\u{7}", 1),
        ]));
        insta::assert_snapshot!(name("home", size), stage.screen());
    }
}

#[test]
fn styles_with_colour_and_without() {
    let stage = Stage::on((120, 36), Feed::Whole, &fates());
    for (theme_name, depth) in [("dark", Depth::True), ("dark", Depth::None), ("no-colour", Depth::None)] {
        let told = stage.runs(&theme(theme_name, depth));
        let is_plain = told.lines().all(|line| line.contains(" Reset "));
        assert_eq!(is_plain, depth == Depth::None, "{told}");
        insta::assert_snapshot!(format!("styles_{theme_name}_{depth:?}"), told);
    }
}

#[test]
fn ascii_mode_draws_nothing_else() {
    let mut stage = Stage::with((120, 36), Charset { is_ascii: true });
    stage.open(Feed::Whole, &fates());
    for keys in ["g", "enter", "enter", "v", "esc esc 3", "4", "?", "esc 1"] {
        let screen = stage.keys(keys).screen();
        assert!(screen.is_ascii(), "after {keys}:\n{screen}");
    }
}

#[test]
fn nothing_in_traffic_reaches_the_terminal_as_a_control() {
    let mut script = fates();
    for n in 0..=255_u8 {
        script.push(5000, Dir::Stderr, None, What::Bytes { bytes: Bytes::from(vec![n, b'\n']), read: None });
    }
    script.line(5100, Dir::S2c, "{\"jsonrpc\":\"2.0\",\"method\":\"\u{9b}31m\u{200f}\u{2066}x\"}");
    let mut stage = Stage::on((200, 50), Feed::Whole, &script);
    for keys in ["2 g", "enter enter", "v", "esc esc 3 g", "ctrl-f", "ctrl-f", "ctrl-f", "G", "enter", "4"] {
        let screen = stage.keys(keys).screen();
        let bad = screen.chars().find(|c| {
            (c.is_control() && *c != '\n')
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(bad, None, "after {keys}");
    }
}

/// Characters that hide, turn the reading direction, or take no or two cells.
const TRICKY: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{2066}c\u{200b}d\u{200d}e\u{feff}f\u{2028}日本g";

#[test]
fn hidden_and_wide_characters_keep_every_cell_plain_and_in_place() {
    let mut script = Script::default();
    let quoted = serde_json::to_string(TRICKY).unwrap();
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":{quoted},"method":"tools/call","params":{{"name":{quoted},"arguments":{{{quoted}:{quoted}}}}}}}"#
    );
    script.line(100, Dir::C2s, &request);
    script.line(150, Dir::Stderr, TRICKY);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{quoted},"error":{{"code":-32602,"message":{quoted}}}}}"#);
    script.line(200, Dir::S2c, &answer).line(250, Dir::Tap, TRICKY);
    for size in SIZES {
        let mut stage = Stage::on(size, Feed::Whole, &script);
        for keys in ["2 g", "enter enter", "v", "esc esc esc 3 g", "j", "enter", "esc esc 4"] {
            let buffer = stage.keys(keys).draw(&theme("dark", Depth::True));
            for y in 0..buffer.area.height {
                for x in 0..buffer.area.width {
                    let symbol = buffer[(x, y)].symbol();
                    let is_hidden = |c: char| c.is_control() || c.width().unwrap_or(0) == 0;
                    assert!(!symbol.chars().any(is_hidden), "{symbol:?} at {x},{y} after {keys}");
                    let end = usize::from(x) + symbol.width();
                    assert!(end <= usize::from(buffer.area.width), "{symbol:?} at {x},{y} after {keys}");
                }
            }
        }
    }
}

#[test]
fn a_frame_costs_what_is_on_the_screen() {
    let fastest_ns = |calls: u64, keys: &str| {
        let mut script = Script::default();
        for id in 0..calls {
            script.line(id * 2, Dir::C2s, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
            script.line(id * 2 + 1, Dir::S2c, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
        let mut stage = Stage::on((200, 50), Feed::Whole, &script);
        stage.keys(keys);
        let theme = theme("dark", Depth::True);
        let draw_ns = |_| {
            let before = crate::time::boot_ns();
            stage.draw(&theme);
            crate::time::boot_ns() - before
        };
        (0..15).map(draw_ns).min().unwrap()
    };
    for keys in ["2", "3"] {
        let (short, long) = (fastest_ns(100, keys), fastest_ns(100_000, keys));
        // A frame that looks at every row costs hundreds of times as much.
        assert!(long < short * 8, "view {keys}: {long} ns with 200,000 rows, {short} ns with 200");
    }
}

/// What a script of keys leaves: a word that must stand on the screen, and what was asked.
#[test]
fn keys_do_what_the_help_says() {
    let cases: &[(&str, &str, &[Command])] = &[
        ("g", "line 1 of 5", &[]),
        ("g 2j", "line 3 of 5", &[]),
        ("g j G", "follow on", &[]),
        ("g", "follow off", &[]),
        ("g ] e", "line 3 of 5", &[]),
        ("/ \"state:ok\" enter", "2 of 5 shown", &[]),
        ("/ \"state:ok\" tab enter g n", "line 2 of 5", &[]),
        ("/ \"state:ok\" enter / ctrl-u enter", "line", &[]),
        ("/ \"nope:1\" enter", "column 1", &[]),
        (": \"stream\" enter", "[3 Stream]", &[]),
        (": \"strea\" tab enter", "[3 Stream]", &[]),
        (": \"nothing\" enter", "no action `nothing`", &[]),
        ("s", "sorted by duration", &[]),
        ("p", "PAUSED", &[]),
        ("g t", "time counts from this line", &[]),
        ("g m a G ' a", "line 1 of 5", &[]),
        ("f2", "mouse on", &[Command::Mouse(true)]),
        ("esc esc esc", "[2 Calls]", &[]),
        ("ctrl-z", "[2 Calls]", &[Command::Suspend]),
        ("ctrl-c", "ctrl-c again quits", &[]),
        ("ctrl-c ctrl-c", "", &[Command::Quit]),
        ("Q", "ends it and quits", &[]),
        ("Q n", "the session goes on", &[]),
        ("Q y", "", &[Command::Quit]),
        ("q", "ends it and quits", &[]),
    ];
    for (keys, expected, asked) in cases {
        let mut stage = Stage::on((120, 36), Feed::Live, &fates());
        let screen = stage.keys(keys).screen();
        assert!(screen.contains(expected), "{keys}: no {expected:?} in\n{screen}");
        assert_eq!(stage.asked, *asked, "{keys}");
    }
}

#[test]
fn a_recording_is_left_without_being_asked() {
    let mut stage = Stage::on((80, 24), Feed::Whole, &fates());
    stage.keys("q");
    assert_eq!(stage.asked, [Command::Quit]);
}

#[test]
fn while_the_screen_is_held_still_no_events_are_taken() {
    let mut stage = Stage::on((80, 24), Feed::Live, &fates());
    assert!(stage.state.wants_events());
    stage.keys("p");
    let before = stage.screen();
    stage.tell(Msg::Clock(Mono(9_000_000_000)));
    assert_eq!(stage.screen(), before);
    assert!(!stage.state.wants_events());
    stage.keys("p");
    assert!(stage.state.wants_events());
}

#[test]
fn a_cut_recording_leaves_its_open_calls_unresolved() {
    let mut stage = Stage::on((120, 36), Feed::Cut, &fates());
    let screen = stage.keys("G").screen();
    let last = screen.lines().find(|line| line.contains("evil")).unwrap();
    assert!(last.contains("CUT") && screen.contains("open 0"), "{screen}");
}

#[test]
fn every_key_is_harmless_on_every_view_at_every_size() {
    for size in [(1, 1), (39, 9), (79, 23), (80, 24), (300, 12)] {
        for script in [Script::default(), fates()] {
            for view in ["1", "2", "3", "4", "5", "2 enter", "2 enter enter", "3 enter", "/", ":"] {
                for action in Action::ALL {
                    let mut stage = Stage::on(size, Feed::Whole, &script);
                    stage.keys(view);
                    for key in KeyMap::default().keys_of(*action) {
                        let chords = Chord::parse_sequence(&key).unwrap_or_default();
                        for chord in chords {
                            stage.press(chord);
                        }
                    }
                    stage.screen();
                }
            }
        }
    }
}

#[test]
fn too_small_a_screen_says_what_it_needs() {
    let said = |size| Stage::on(size, Feed::Whole, &fates()).screen();
    assert!(said((79, 24)).contains("midwire needs 80x24; this is 79x24"));
    assert!(said((30, 8)).contains("too small"));
}
