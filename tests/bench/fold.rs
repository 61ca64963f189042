//! What folding and judging costs: nanoseconds an event and bytes of memory an event, for a million
//! events of plain stdio calls. `cargo run --release --example fold [CALLS]`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program reads the clock, prints, and fails by panicking"
)]

use bytes::Bytes;
use midwire::event::{Dir, Event, Transport, What};
use midwire::model::Model;
use midwire::rules::Judge;
use midwire::time::Mono;

/// Calls, unless the first argument says how many.
const CALLS: u64 = 500_000;

/// Calls whose events are made before their time is taken.
const BATCH: u64 = 1000;

fn event(n: u64, dir: Dir, text: String) -> Event {
    Event {
        n,
        at: Mono(n * 1000),
        out: None,
        dir,
        transport: Transport::Stdio,
        stream: None,
        conn: None,
        what: What::Bytes { bytes: Bytes::from(text), read: None },
    }
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The events of so many calls from number `first` on.
fn batch(first: u64) -> Vec<Event> {
    (first..first + BATCH)
        .flat_map(|id| {
            let request = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"hello\"}},\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}\n"
            );
            let answer = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"hello\"}}]}}}}\n"
            );
            [event(2 * id - 1, Dir::C2s, request), event(2 * id, Dir::S2c, answer)]
        })
        .collect()
}

/// Nanoseconds an event, without and with rules.
fn run(calls: u64, model: &mut Model, mut judge: Option<&mut Judge>) -> u128 {
    let mut spent = std::time::Duration::ZERO;
    for first in (1..=calls).step_by(usize::try_from(BATCH).unwrap()) {
        let events = batch(first);
        let start = std::time::Instant::now();
        for event in &events {
            model.fold(event, u32::try_from(event.n - 1).unwrap());
            if let Some(judge) = &mut judge {
                judge.look(model);
            }
        }
        spent += start.elapsed();
    }
    spent.as_nanos() / u128::from(calls * 2)
}

fn main() {
    let calls = std::env::args().nth(1).map_or(CALLS, |calls| calls.parse().unwrap());
    let (mut model, mut judge) = (Model::new(), Judge::new());
    let before = resident();
    let both = run(calls, &mut model, Some(&mut judge));
    let memory = resident() - before;
    let findings = judge.findings().len();
    drop(model);
    let fold = run(calls, &mut Model::new(), None);
    let events = calls * 2;
    println!("events          {events}");
    println!("fold            {fold} ns an event");
    println!("fold and rules  {both} ns an event, {} events a second", 1_000_000_000 / both);
    println!("memory          {} MB, {} bytes an event", memory >> 20, memory / events);
    println!("findings        {findings}");
}
