//! What folding and judging costs: nanoseconds an event and bytes of memory an event, for a million
//! events of plain stdio calls. `cargo run --release --example fold`.
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

const CALLS: u64 = 500_000;

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

fn main() {
    let (mut model, mut judge) = (Model::new(), Judge::new());
    let before = resident();
    let (mut fold_ns, mut judge_ns) = (0u128, 0u128);
    for id in 1..=CALLS {
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"hello\"}},\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}\n"
        );
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"hello\"}}]}}}}\n"
        );
        for event in [event(2 * id - 1, Dir::C2s, request), event(2 * id, Dir::S2c, answer)] {
            let idx = u32::try_from(event.n - 1).unwrap();
            let start = std::time::Instant::now();
            model.fold(&event, idx);
            let folded = std::time::Instant::now();
            judge.look(&model);
            judge_ns += folded.elapsed().as_nanos();
            fold_ns += (folded - start).as_nanos();
        }
    }
    let events = CALLS * 2;
    println!("events          {events}");
    println!("fold            {} ns an event", fold_ns / u128::from(events));
    println!("rules           {} ns an event", judge_ns / u128::from(events));
    println!(
        "memory          {} MB, {} bytes an event",
        (resident() - before) >> 20,
        (resident() - before) / events
    );
    println!("findings        {}", judge.findings().len());
}
