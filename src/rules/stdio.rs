//! Pipes, lines and the life of a process (STD-01..13).

mod life;

use crate::event::Dir;
use crate::model::{FrameFault, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;

/// A line that is not whole after this long was not written in one go (STD-07).
const FLUSH_NS: u64 = 2_000_000_000;

/// A longer line may take its time. ours: writing megabytes takes seconds between slow peers.
const QUICK_LINE_BYTES: u64 = 1 << 20;

pub(super) fn rules(book: &mut Book) {
    let frame = [On::Sight(SightKind::Frame)];
    book.rule("STD-01", &frame, |case: &Case<'_>, out: &mut Out<'_>| noise(case, out, Dir::S2c));
    book.rule("STD-02", &frame, |case: &Case<'_>, out: &mut Out<'_>| noise(case, out, Dir::C2s));
    book.rule("STD-03", &frame, several_lines);
    book.rule("STD-04", &frame, line_end);
    book.rule("STD-05", &frame, byte_order_mark);
    book.rule("STD-06", &frame, torn);
    book.rule("STD-07", &[On::Message], slow_line);
    book.rule("STD-13", &frame, header_line);
    life::rules(book);
}

/// What is wrong with a frame, and the pipe that it came through.
fn fault<'a>(case: &Case<'a>) -> Option<(&'a FrameFault, Dir, &'static str)> {
    let Sight::Frame { dir, fault } = case.what() else { return None };
    Some((fault, *dir, if *dir == Dir::C2s { "stdin" } else { "stdout" }))
}

/// Text that is no JSON, and JSON that is no message at all.
fn noise(case: &Case<'_>, out: &mut Out<'_>, sender: Dir) {
    let Some((FrameFault::NotMessage | FrameFault::NoKind, dir, pipe)) = fault(case) else { return };
    if dir == sender && case.is_noise() {
        out.gather(case, case.seen.scope, |times| {
            let verb = if times == 1 { "is" } else { "are" };
            format!("{} on {pipe} that {verb} no message", count(times, "line"))
        });
    }
}

fn several_lines(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((FrameFault::SeveralLines { .. }, dir, pipe)) = fault(case) else { return };
    out.gather(case, (case.seen.scope, dir), |times| {
        format!("{} on {pipe} over several lines; a line reader sees none", count(times, "message"))
    });
}

fn line_end(case: &Case<'_>, out: &mut Out<'_>) {
    match fault(case) {
        Some((FrameFault::Blank, dir, pipe)) => out.gather(case, (case.seen.scope, dir, "blank"), |times| {
            format!("{} on {pipe}", count(times, "blank line"))
        }),
        Some((FrameFault::CrLf, dir, pipe)) => out.gather(case, (case.seen.scope, dir, "cr lf"), |times| {
            format!("{} on {pipe} with CR LF at the end", count(times, "line"))
        }),
        _ => {}
    }
}

fn byte_order_mark(case: &Case<'_>, out: &mut Out<'_>) {
    if let Some((FrameFault::ByteOrderMark, dir, pipe)) = fault(case) {
        out.gather(case, (case.seen.scope, dir), |times| {
            format!("{pipe} holds {}", count(times, "byte order mark"))
        });
    }
}

fn torn(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((FrameFault::Torn { bytes }, _, pipe)) = fault(case) else { return };
    let seems =
        case.seen.call.map_or_else(String::new, |idx| format!(", which seems to be of {}", case.name(idx)));
    out.say(case, format!("{pipe} ended inside a line, {bytes} bytes into it{seems}"));
}

fn header_line(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((FrameFault::HeaderLine, dir, pipe)) = fault(case) else { return };
    out.gather(case, (case.seen.scope, dir), |times| {
        format!("{} on {pipe} that belong to a header, not to a message", count(times, "line"))
    });
}

/// A row begins with its first byte and is seen with its last.
fn slow_line(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(row) = case.row() else { return };
    let took_ns = case.seen.at.ns_since(row.at);
    if took_ns > FLUSH_NS && row.source.len <= QUICK_LINE_BYTES {
        let (pipe, took) = (if row.dir == Dir::C2s { "stdin" } else { "stdout" }, Case::ms(took_ns));
        out.gather(case, (case.seen.scope, row.dir), |times| {
            format!("{} on {pipe} written in pieces; the last took {took}", count(times, "message"))
        });
    }
}
