//! `docs/faults.md` is made from the table of faults.

use std::fmt::Write as _;
use std::path::Path;

use midwire::peer::faults::{Fault, Side};
use midwire::spec::transport::Transport;

/// Set it to write the page anew.
const WRITE: &str = "MIDWIRE_WRITE_DOCS";

const HEAD: &str = "\
# Faults of the reference peers

Each is a switch with which the reference server or client does one thing wrong, on purpose, so that what the rules say can be seen on a real
wire. All are off unless asked for. `tests/faults/every.rs` plays a scene for each of them behind a real tap: with the fault its rules fire,
without it the same scene brings neither error nor warning. (`MIDWIRE_WRITE_DOCS=1 cargo test --test faults` writes this page anew.)

```sh
midwire serve --faults                                        # the list
midwire stdio -- midwire serve stdio --fault late_answer,prints
midwire serve http --control=/tmp/server.ctl                  # and while it runs:
midwire ctl --serve /tmp/server.ctl fault mints_session on
midwire call echo --fault no_name_header --url http://127.0.0.1:7000/mcp
```

A switch counts for what begins after it was turned ([control.md](control.md)). Some show only with what the server tells of its work
([telemetry.md](telemetry.md)), those about effects only under a policy with the contract of the tool ([policy.md](policy.md)).
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (side, title) in [(Side::Server, "Server"), (Side::Client, "Client")] {
        writeln!(page, "\n## {title}\n\n| fault | on | what it does | rules |\n|---|---|---|---|").unwrap();
        for fault in Fault::of(side) {
            let on = match fault.transport() {
                None => "both",
                Some(Transport::Stdio) => "stdio",
                Some(Transport::Http) => "http",
            };
            let rules = fault.rules().join(", ");
            let rules = if rules.is_empty() { "–" } else { &rules };
            writeln!(page, "| `{fault}` | {on} | {} | {rules} |", fault.says()).unwrap();
        }
    }
    page
}

#[test]
fn the_page_of_faults_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let now = std::fs::read_to_string(path).unwrap_or_default();
    assert!(now == page(), "docs/faults.md is not what the table says; {WRITE}=1 writes it anew");
}
