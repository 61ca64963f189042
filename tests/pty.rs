//! The real program on a terminal: what stands on the screen, how it is left, and that the
//! terminal is as before afterwards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stand outside the test functions")]
#![allow(clippy::disallowed_methods, reason = "a test waits for another process, with a limit")]

use std::io::{Read as _, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const LIMIT: Duration = Duration::from_secs(20);

/// The program on a terminal of its own, with a state folder of its own.
struct Stage {
    terminal: Box<dyn MasterPty + Send>,
    child: Program,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    is_read: Arc<AtomicBool>,
    reading: JoinHandle<()>,
    screen: vt100::Parser,
    before: rustix::termios::Termios,
    folder: tempfile::TempDir,
}

/// Ended with the test, however that ends.
struct Program(Box<dyn Child + Send + Sync>);

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already where all went well.
        let _ = self.0.kill();
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_midwire")
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name)
}

impl Stage {
    fn start(arguments: &[&str], (cols, rows): (u16, u16)) -> Stage {
        let mut command = CommandBuilder::new(program());
        command.args(arguments);
        Stage::run(command, (cols, rows))
    }

    fn run(mut command: CommandBuilder, (cols, rows): (u16, u16)) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        command.env("MIDWIRE_STATE_DIR", folder.path());
        command.env("XDG_CONFIG_HOME", folder.path());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env_remove("LC_ALL");
        let pair =
            native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let before = modes(&*pair.master);
        let child = Program(pair.slave.spawn_command(command).unwrap());
        // The slave's end stays open in the child alone, so that its end is seen.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (tell, output) = channel();
        let is_read = Arc::new(AtomicBool::new(true));
        let reading = {
            let is_read = Arc::clone(&is_read);
            std::thread::spawn(move || {
                let mut buf = [0; 8192];
                while let Ok(len @ 1..) = reader.read(&mut buf) {
                    if tell.send(buf[..len].to_vec()).is_err() || !is_read.load(Ordering::Acquire) {
                        break;
                    }
                }
            })
        };
        let keys = pair.master.take_writer().unwrap();
        let screen = vt100::Parser::new(cells(rows), cells(cols), 0);
        Stage { terminal: pair.master, child, keys, output, is_read, reading, screen, before, folder }
    }

    fn press(&mut self, keys: &str) -> &mut Stage {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits until the screen is as wanted.
    fn until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) -> &mut Stage {
        let start = Instant::now();
        while !is_so(self.screen.screen()) {
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.screen.process(&bytes);
            }
            let contents = self.screen.screen().contents();
            assert!(start.elapsed() < LIMIT, "no {what} in\n{contents}");
        }
        self
    }

    fn sees(&mut self, text: &str) -> &mut Stage {
        self.until(text, |screen| screen.contents().contains(text))
    }

    fn signal(&mut self, signal: rustix::process::Signal) -> &mut Stage {
        let pid = i32::try_from(self.child.0.process_id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
        self
    }

    /// Closes the window that the terminal is in; says how the program ends.
    fn closes(mut self) -> u32 {
        self.is_read.store(false, Ordering::Release);
        // What is drawn at a key lets the reader see that it is to end.
        self.press("?");
        let Stage { terminal, keys, reading, mut child, .. } = self;
        reading.join().unwrap();
        drop((terminal, keys));
        let start = Instant::now();
        loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(start.elapsed() < LIMIT, "it goes on without a terminal");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end: its exit code, with the terminal as it was and nothing in the way.
    fn ends(mut self) -> (u32, String) {
        let start = Instant::now();
        let status = loop {
            while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.screen.process(&bytes);
            }
            if let Some(status) = self.child.0.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LIMIT, "it goes on:\n{}", self.screen.screen().contents());
        };
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
            self.screen.process(&bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left on");
        assert!(!screen.hide_cursor(), "the cursor is left hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is left on");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        let after = modes(&*self.terminal);
        assert_eq!(
            (after.input_modes, after.output_modes, after.local_modes, after.control_modes),
            (
                self.before.input_modes,
                self.before.output_modes,
                self.before.local_modes,
                self.before.control_modes
            ),
            "the terminal's modes are not as before"
        );
        (status.exit_code(), screen.contents())
    }
}

/// The modes of the terminal.
fn modes(terminal: &dyn MasterPty) -> rustix::termios::Termios {
    let path = terminal.tty_name().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    rustix::termios::tcgetattr(file).unwrap()
}

#[test]
fn an_empty_home_welcomes_and_q_leaves() {
    let mut stage = Stage::start(&[], (80, 24));
    stage.sees("starts the demo").sees("0 running, 0 recorded").press("q");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn a_recording_is_walked_through() {
    let path = recording("http-cancel-by-disconnect.mw.jsonl");
    let mut stage = Stage::start(&["open", path.to_str().unwrap()], (120, 36));
    stage.sees("[2 Calls]").sees("REPLAY").sees("DISC");
    stage.press("g").sees("line 1 of").press("\r").sees("next message");
    stage.press("\r").sees("h fold").press("v").sees("[Raw]");
    // Each escape is waited for: with a key right behind it, it would be another key.
    stage.press("\x1b").sees("next message").press("\x1b").sees("zoom in");
    stage.press("3").sees("[3 Stream]").press("?").sees("Everywhere");
    stage.press("\x1b").sees("[3 Stream]").press("/kind:request\r").sees("shown");
    stage.press("Q");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn several_recordings_are_listed_and_two_runs_of_one_server_are_one_of_them() {
    let names = ["http-clean", "stdio-typescript-probe", "stdio-typescript-session"];
    let paths = names.map(|name| recording(&format!("{name}.mw.jsonl")).to_string_lossy().into_owned());
    let arguments = ["open", &paths[0], &paths[1], &paths[2]];
    let mut stage = Stage::start(&arguments, (120, 36));
    stage.sees("[1 Home]").sees("2 recorded").sees("2 runs").press("\r").sees("[2 Calls]");
    stage.press("Q");
    assert_eq!(stage.ends().0, 0);

    let mut stage = Stage::start(&["open", &paths[1], &paths[2]], (120, 36));
    stage.sees("[2 Calls]").sees("REPLAY").press("Q");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn the_screen_follows_its_size() {
    let path = recording("stdio-clean.mw.jsonl");
    let mut stage = Stage::start(&["open", path.to_str().unwrap()], (120, 36));
    stage.sees("[2 Calls]");
    for (cols, rows, text) in
        [(79, 20, "needs 80x24; this is 79x20"), (30, 8, "too small"), (200, 50, "[2 Calls]")]
    {
        stage.terminal.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        stage.screen.screen_mut().set_size(cells(rows), cells(cols));
        stage.sees(text);
    }
    stage.press("Q");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn a_second_interrupt_always_leaves() {
    let mut stage = Stage::start(&[], (80, 24));
    stage.sees("starts the demo").press("\x03").sees("ctrl-c again quits").press("\x03");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn signals_end_it_with_the_terminal_restored() {
    use rustix::process::Signal;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut stage = Stage::start(&[], (80, 24));
        stage.sees("starts the demo").press("\x1bOQ").sees("mouse on").signal(signal);
        assert_eq!(stage.ends().0, code, "{signal:?}");
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    for arguments in [&[][..], &["demo"]] {
        let mut stage = Stage::start(arguments, (80, 24));
        stage.sees("midwire");
        let code = stage.closes();
        assert!(matches!(code, 0 | 129), "{code}");
    }
}

#[test]
fn the_demo_explains_itself_and_asks_before_it_ends() {
    let mut stage = Stage::start(&["demo", "--speed", "10"], (120, 36));
    stage.sees("LIVE").sees("DISC").sees("FAIL").sees("That was the tour");
    stage.press("q").sees("ends it and quits").press("n").sees("the session goes on").press("Qy");
    let (code, said) = stage.ends();
    assert_eq!(code, 0);
    assert!(said.contains("the tour is kept: midwire open "), "{said}");
}

#[test]
fn a_tap_on_a_terminal_shows_how_to_reach_it() {
    let arguments = ["http", "--upstream", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0"];
    let mut stage = Stage::start(&arguments, (120, 36));
    stage.sees("give clients http://127.0.0.1:").sees("LIVE").press("Qy");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn a_recording_that_grows_is_followed_and_a_killed_writer_is_seen() {
    let mut stage = Stage::start(&[], (120, 36));
    stage.sees("starts the demo");
    let mut tap = std::process::Command::new(program())
        .args(["stdio", "--label", "other", "--", program(), "serve", "stdio"])
        .env("MIDWIRE_STATE_DIR", stage.folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    stage.sees("1 running").press("\r").sees("LIVE").sees("[2 Calls]");
    let mut input = tap.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":{}}\n").unwrap();
    stage.sees("no/such");
    tap.kill().unwrap();
    tap.wait().unwrap();
    stage.sees("CUT").press("q").sees("[1 Home]").press("q");
    assert_eq!(stage.ends().0, 0);
}

#[test]
fn no_color_is_honoured() {
    for is_plain in [false, true] {
        let path = recording("http-cancel-by-disconnect.mw.jsonl");
        let mut command = CommandBuilder::new(program());
        command.args(["open", path.to_str().unwrap()]);
        command.env_remove("CLICOLOR_FORCE");
        command.env_remove("NO_COLOR");
        if is_plain {
            command.env("NO_COLOR", "1");
        }
        let mut stage = Stage::run(command, (120, 36));
        stage.sees("[2 Calls]").sees("DISC");
        let screen = stage.screen.screen();
        let mut cells = (0..36).flat_map(|y| (0..120).filter_map(move |x| screen.cell(y, x)));
        let default = vt100::Color::Default;
        let is_coloured = cells.any(|cell| cell.fgcolor() != default || cell.bgcolor() != default);
        assert_eq!(is_coloured, !is_plain);
        stage.press("Q");
        assert_eq!(stage.ends().0, 0);
    }
}

#[test]
fn without_a_terminal_it_says_so_in_one_line() {
    for arguments in [&[][..], &["open", "-"]] {
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(program())
            .args(arguments)
            .env("MIDWIRE_STATE_DIR", folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("the viewer needs a terminal"), "{said}");
    }
}

#[test]
fn wrong_input_is_told_before_the_screen_is_taken() {
    for (arguments, expected) in [
        (vec!["open", "/nowhere.mw.jsonl"], "cannot open the recording /nowhere.mw.jsonl"),
        (vec!["--theme", "pink"], "unknown theme `pink`; use one of dark, light"),
        (vec!["demo", "--record", "off"], "--record off needs --headless"),
    ] {
        let (code, said) = Stage::start(&arguments, (120, 36)).ends();
        let said = said.replace('\n', "");
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
