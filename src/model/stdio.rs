//! stdio: pipes cut into lines, and the life of the process.

use bytes::Bytes;

use super::fold::At;
use super::group::{Group, Step};
use super::overview::Capture;
use super::reading::Reading;
use super::row::{RowIdx, RowKind};
use super::scope::{Scope, ScopeIdx};
use super::seen::{FrameFault, Sight};
use super::track::{Piece, Track};
use super::{MarkKind, Model};
use crate::event::{Dir, Event, Transport};
use crate::time::Mono;
use crate::wire::jsonrpc::Kind;
use crate::wire::lines::{Ending, LINE_LIMIT_BYTES, Line, LineDecoder};

/// Why a signal was sent that somebody else had sent to the tap.
const PASSED_ON: &str = "passed on";

/// Signals that ask a process to end.
const ENDING_SIGNALS: [&str; 5] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGKILL"];

/// The pipes of the process now running.
#[derive(Debug, Default)]
pub(super) struct Stdio {
    /// The process.
    pub scope: Option<ScopeIdx>,
    to_server: Pipe,
    to_client: Pipe,
}

/// One pipe.
#[derive(Debug)]
struct Pipe {
    lines: LineDecoder,
    track: Track,
    group: Option<Group>,
    /// The last event that brought bytes.
    last: u32,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe { lines: LineDecoder::new(LINE_LIMIT_BYTES), track: Track::default(), group: None, last: 0 }
    }
}

impl Stdio {
    fn pipe(&mut self, dir: Dir) -> &mut Pipe {
        if dir == Dir::C2s { &mut self.to_server } else { &mut self.to_client }
    }
}

/// A field of the header that other protocols put before each message.
fn is_framing_header(name: &str) -> bool {
    ["content-length", "content-type"].iter().any(|known| name.trim().eq_ignore_ascii_case(known))
}

impl Model {
    /// The process that stdio events belong to.
    fn stdio_scope(&mut self, at: Mono) -> ScopeIdx {
        if let Some(scope) = self.stdio.scope {
            return scope;
        }
        let scope = self.new_scope(Transport::Stdio, at);
        self.stdio.scope = Some(scope);
        scope
    }

    pub(super) fn new_scope(&mut self, transport: Transport, at: Mono) -> ScopeIdx {
        let idx = ScopeIdx(u32::try_from(self.scopes.len()).unwrap_or(u32::MAX));
        self.scopes.push(Scope::new(transport, at));
        idx
    }

    pub(super) fn stdio_bytes(&mut self, event: &Event, idx: u32, bytes: &Bytes) {
        let scope = self.stdio_scope(event.at);
        let at = At::event(event, idx, scope);
        self.pipe_bytes(event, at, bytes.len());
        if event.dir == Dir::Stderr {
            self.stderr(at, bytes);
            return;
        }
        if event.dir == Dir::S2c {
            self.see(at, None, None, Sight::ServerOutput);
        }
        let piece = Piece { idx, at: event.at, len: bytes.len() };
        let pipe = self.stdio.pipe(event.dir);
        pipe.last = idx;
        pipe.track.begin();
        for line in pipe.lines.push_shared(bytes) {
            let (source, first) = self.stdio.pipe(event.dir).track.frame(piece, line.wire_len);
            self.line(at.frame(source, first), &line);
        }
        self.stdio.pipe(event.dir).track.end(piece);
    }

    fn stderr(&mut self, at: At, bytes: &Bytes) {
        self.overview.counts.stderr_bytes += bytes.len() as u64;
        if let Some(scope) = self.scope_mut(at.scope) {
            scope.process.stderr_bytes += bytes.len() as u64;
        }
        let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let head = first_line.get(..first_line.len().min(480)).unwrap_or_default();
        let detail = self.names.detail(String::from_utf8_lossy(head).trim());
        let at = At { source: super::Source { len: bytes.len() as u64, ..at.source }, ..at };
        let row = self.push_row(at, RowKind::Stderr, None, detail, None);
        self.see(at, Some(row), None, Sight::ServerOutput);
    }

    /// One line of stdin or stdout.
    fn line(&mut self, at: At, line: &Line) {
        let reading = Reading::of(&line.body);
        if self.stdio.pipe(at.dir).group.is_some() && self.continue_group(at, line, &reading) {
            return;
        }
        if line.is_over_limit {
            let row = self.push_row(at, RowKind::Invalid, None, None, None);
            self.see_fault(at, row, FrameFault::OverLimit);
            return;
        }
        if reading.holds_message() {
            self.pipe_message(at);
        }
        let row = match reading {
            Reading::Message(part) => self.message(at, part),
            Reading::Batch(parts) => self.batch(at, parts),
            Reading::Blank => {
                let row = self.push_row(at, RowKind::Note, None, None, None);
                self.see_fault(at, row, FrameFault::Blank);
                return;
            }
            Reading::NotUtf8 => self.line_not_utf8(at, line),
            Reading::NotJson if let Some(row) = self.framed(at, &line.body) => row,
            Reading::NotJson => {
                let place = (at.source, at.first, at.n);
                if let Some(group) = Group::begin(&line.body, place) {
                    self.stdio.pipe(at.dir).group = Some(group);
                    return;
                }
                self.noise(at, &line.body)
            }
            Reading::OtherJson => self.noise(at, &line.body),
        };
        self.line_manners(at, row, line);
    }

    /// Hints about the form of a line.
    fn line_manners(&mut self, at: At, row: RowIdx, line: &Line) {
        if line.ending == Ending::CrLf {
            self.see_fault(at, row, FrameFault::CrLf);
        }
        if line.has_bom {
            self.see_fault(at, row, FrameFault::ByteOrderMark);
        }
    }

    /// A line with bad bytes: it is read with those replaced, so that its call is found.
    fn line_not_utf8(&mut self, at: At, line: &Line) -> RowIdx {
        let text = Bytes::from(String::from_utf8_lossy(&line.body).into_owned());
        let row = match Reading::of(&text) {
            Reading::Message(part) if part.kind() != Kind::Invalid => self.message(at, part),
            Reading::Batch(parts) => self.batch(at, parts),
            _ => return self.noise(at, &line.body),
        };
        self.see_fault(at, row, FrameFault::NotUtf8);
        row
    }

    /// A line that is no message.
    fn noise(&mut self, at: At, line: &[u8]) -> RowIdx {
        let head = line.get(..line.len().min(480)).unwrap_or_default();
        let text = String::from_utf8_lossy(head);
        let is_header = text.split_once(':').is_some_and(|(name, _)| is_framing_header(name));
        let detail = self.names.detail(text.trim());
        let row = self.push_row(at, RowKind::Invalid, None, detail, None);
        self.see_fault(at, row, if is_header { FrameFault::HeaderLine } else { FrameFault::NotMessage });
        row
    }

    /// A message in a block with a header has no line end: the header of the next one follows it at
    /// once. `None`: it is no such line.
    fn framed(&mut self, at: At, line: &[u8]) -> Option<RowIdx> {
        let end = line.iter().rposition(|byte| *byte == b'}')? + 1;
        let (body, header) = line.split_at_checked(end)?;
        let (name, _) = std::str::from_utf8(header).ok()?.split_once(':')?;
        let text = Bytes::copy_from_slice(body);
        let Reading::Message(part) = Reading::of(&text) else { return None };
        if !is_framing_header(name) || part.kind() == Kind::Invalid {
            return None;
        }
        let row = self.message(at, part);
        self.see_fault(at, row, FrameFault::HeaderLine);
        Some(row)
    }

    /// A line while a group is open. True when the line became part of it.
    fn continue_group(&mut self, at: At, line: &Line, reading: &Reading) -> bool {
        let stands_alone = match reading {
            Reading::Message(part) => part.kind() != Kind::Invalid,
            Reading::NotUtf8 | Reading::Blank => true,
            _ => line.is_over_limit,
        };
        let Some(mut group) = self.stdio.pipe(at.dir).group.take() else { return false };
        if stands_alone {
            self.drop_group(at, &group);
            return false;
        }
        match group.push(&line.body, (at.source, at.first, at.n)) {
            Step::Open => self.stdio.pipe(at.dir).group = Some(group),
            Step::Broken => self.drop_group(at, &group),
            Step::Closed => self.close_group(at, &group),
        }
        true
    }

    fn close_group(&mut self, at: At, group: &Group) {
        let text = Bytes::from(group.whole());
        let whole = match Reading::of(&text) {
            Reading::Message(part) if part.kind() != Kind::Invalid => part,
            _ => return self.drop_group(at, group),
        };
        let (source, first) = group.place().unwrap_or((at.source, at.first));
        let at = at.frame(source, first);
        let row = self.message(at, whole);
        let lines = u32::try_from(group.lines.len()).unwrap_or(u32::MAX);
        self.see_fault(at, row, FrameFault::SeveralLines { lines });
    }

    /// The lines of a group were no message after all.
    fn drop_group(&mut self, at: At, group: &Group) {
        for (text, (source, first, n)) in group.text.split(|byte| *byte == b'\n').zip(&group.lines) {
            self.noise(At { n: *n, ..at.frame(*source, *first) }, text);
        }
    }

    /// One side of the pipe ended, or the recording did.
    pub(super) fn end_pipe(&mut self, at: At, dir: Dir, is_eof: bool) {
        let pipe = self.stdio.pipe(dir);
        let last = pipe.last;
        let at = At { dir, transport: Transport::Stdio, stream: None, conn: None, ..at };
        if let Some(group) = self.stdio.pipe(dir).group.take() {
            self.drop_group(at, &group);
        }
        let pipe = self.stdio.pipe(dir);
        let Some(line) = pipe.lines.finish() else { return };
        let (source, first) = pipe.track.tail(last, line.wire_len);
        let at = at.frame(source, first.unwrap_or(at.first));
        let row = match Reading::of(&line.body) {
            Reading::Message(part) => self.message(at, part),
            Reading::Batch(parts) => self.batch(at, parts),
            _ => {
                let head = line.body.get(..line.body.len().min(480)).unwrap_or_default();
                let detail = self.names.detail(&String::from_utf8_lossy(head));
                self.push_row(at, RowKind::Invalid, None, detail, None)
            }
        };
        if is_eof {
            self.see_fault(at, row, FrameFault::Torn { bytes: line.wire_len as u64 });
        }
    }

    pub(super) fn stdio_spawn(&mut self, event: &Event, idx: u32, pid: u32, command: &[String]) {
        let is_used = self
            .stdio
            .scope
            .and_then(|scope| self.scope(scope))
            .is_some_and(|scope| scope.process.pid.is_some() || scope.ended.is_some());
        let before = self.stdio.scope.filter(|_| is_used);
        if is_used {
            let at = At::event(event, idx, self.stdio_scope(event.at));
            self.end_pipe(at, Dir::C2s, false);
            self.end_pipe(at, Dir::S2c, false);
            self.stdio.scope = None;
        }
        let scope = self.stdio_scope(event.at);
        let command = self.names.intern(&command.join(" "));
        if let Some(scope) = self.scope_mut(scope) {
            scope.process.pid = Some(pid);
            scope.process.command = Some(command);
            scope.process.spawned = Some(event.at);
            scope.process.before = before;
        }
        self.push_row(At::event(event, idx, scope), RowKind::Process, None, Some(command), None);
    }

    pub(super) fn stdio_signal(&mut self, event: &Event, idx: u32, signal: &str, why: &str) {
        let scope = self.stdio_scope(event.at);
        if let Some(scope) = self.scope_mut(scope) {
            scope.process.signalled.get_or_insert(event.at);
            scope.process.signals += 1;
            if why == PASSED_ON && ENDING_SIGNALS.contains(&signal) {
                scope.process.dismissed.get_or_insert(event.at);
            }
        }
        let detail = self.names.detail(&format!("{signal} {why}"));
        self.push_row(At::event(event, idx, scope), RowKind::Process, None, detail, None);
    }

    /// The client closed the server's stdin.
    pub(super) fn stdio_client_closed(&mut self, event: &Event, idx: u32) {
        let scope = self.stdio_scope(event.at);
        let at = At::event(event, idx, scope);
        self.end_pipe(at, Dir::C2s, true);
        self.close_pipe(scope, Dir::C2s, event.at);
        if let Some(scope) = self.scope_mut(scope) {
            scope.process.stdin_closed.get_or_insert(event.at);
        }
        let row = self.push_row(at, RowKind::ClientClosed, None, None, None);
        let mut calls = self.open_calls(scope);
        calls.retain(|idx| self.call(*idx).is_some_and(|call| call.sender == Dir::C2s));
        for call in &calls {
            self.mark(*call, MarkKind::Disconnect, event.at, row);
        }
        self.see(at, Some(row), None, Sight::StdinClosed { calls });
    }

    /// The process ended, or closed its stdout.
    pub(super) fn stdio_server_closed(
        &mut self,
        event: &Event,
        idx: u32,
        exit_code: Option<i32>,
        signal: Option<i32>,
    ) {
        let scope = self.stdio_scope(event.at);
        let at = At::event(event, idx, scope);
        self.end_pipe(at, Dir::S2c, true);
        self.close_pipe(scope, Dir::S2c, event.at);
        self.close_pipe(scope, Dir::Stderr, event.at);
        let word = match (exit_code, signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => String::new(),
        };
        let detail = self.names.detail(&word);
        let row = self.push_row(at, RowKind::ServerClosed, None, detail, None);
        if let Some(scope) = self.scope_mut(scope) {
            scope.process.exited.get_or_insert(event.at);
            scope.process.exit_code = exit_code.or(scope.process.exit_code);
            scope.process.exit_signal = signal.or(scope.process.exit_signal);
        }
        let calls = self.end_scope(at, row);
        self.see(at, Some(row), None, Sight::ProcessEnded { calls });
    }

    /// The recording ended in order.
    pub(super) fn capture_end(&mut self, event: &Event, idx: u32, complete: Option<bool>) {
        let at = At::event(event, idx, self.stdio.scope.unwrap_or(ScopeIdx(0)));
        if complete == Some(false) {
            self.overview.is_full = false;
        }
        self.overview.capture = Capture::Ended { complete };
        let row = self.push_row(at, RowKind::Note, None, None, None);
        self.end_all(event.at, Some((at, row)));
    }
}
