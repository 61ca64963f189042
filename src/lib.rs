//! midwire: a terminal debugger and traffic inspector for the Model Context Protocol.
//!
//! It sits in the real data path, on stdio pipes or on Streamable HTTP, between any client and
//! any server; it never alters the wire by watching it. This page is the architecture.
//!
//! # One idea: the trace is the truth
//!
//! ```text
//!  client ⇄  tap  ⇄ server         proxy/: the only part in the data path
//!             │ events, in order of being read        event/tape.rs
//!             ▼
//!          trace (append-only JSON lines)             trace/: also written by hand
//!             │ follow (live) or open (recorded)
//!             ▼
//!           model  →  rules  →  findings              pure folds: same events, same answer
//!             │
//!             ▼
//!    ui · check · report                              readers; none of them is in the path
//! ```
//!
//! A tap is one process; it records and obeys, and never draws. A viewer follows the recording of
//! any running tap. `midwire http` and `midwire demo` on a terminal run both in one process, over
//! the same file.
//!
//! # The path of one message
//!
//! 1. `proxy` reads a chunk and pushes it to the [`event::tape::Tape`]: one short lock, in which
//!    it gets its place in the order and its time. Only then is its first byte written on, and
//!    after its last byte the tape is told so. Nothing is parsed on this way.
//! 2. `trace`'s recorder thread drains the tape, cuts stdio reads at line ends, numbers the events
//!    and appends them to the recording in batches.
//! 3. `trace`'s follower reads the growing file; `model` folds each event into rows and calls;
//!    `rules` turn what the model knows into findings.
//! 4. `ui` draws the rows that are on the screen, and asks for the bytes of the one message that
//!    a person has opened. `report` prints the same findings for scripts.
//!
//! Beside this path, a server that is prepared for it may tell a tap what it does, on a local socket
//! (`proxy::telemetry`). Nothing on the path waits for that, and none of it is on the wire.
//!
//! # Rooms
//!
//! | room | its one purpose | may import |
//! |---|---|---|
//! | [`time`] | clocks; nobody else reads one | – |
//! | [`wire`] | bytes ⇄ lines, SSE events, JSON-RPC members | – |
//! | [`spec`] | what MCP says: eras, methods, headers, codes | wire |
//! | [`event`] | what happened, and the tape that orders it | time wire spec |
//! | [`machine`] | what a *correct participant* does | time spec |
//! | [`filter`] | one language to pick events and calls | time spec event |
//! | [`command`] | what a person tells a tap to do to the traffic | time wire spec event machine filter |
//! | [`model`] | what an *observer can know* | time wire spec event machine filter |
//! | [`rules`] | model → findings | time wire spec event machine model |
//! | [`report`] | findings and timelines as text and JSON | time spec event model rules filter |
//! | [`trace`] | the recording: write, read, follow, list | time wire spec event |
//! | [`proxy`] | the man in the middle | time wire spec event machine filter command |
//! | [`peer`] | reference server and client | time wire spec event machine |
//! | [`config`] | settings, key map, theme files | – |
//! | [`ui`] | screens | config and all pure rooms |
//! | [`app`] | wires rooms together | all but cli |
//! | [`cli`] | arguments → app → exit code | all |
//!
//! The table is a test (`tests/layering.rs`).
//!
//! # What is deliberately absent
//!
//! - No clock outside `time`, so that the pure rooms replay exactly.
//! - No JSON parsing and no message framing in `proxy` until the first order of a person, and no
//!   waiting for the recorder ever: a message that cannot be read is an observation, not an error
//!   of the path.
//! - No file and no socket in `model`, `rules`, `filter`, `report`, `ui`.
//! - No verdict and no finding in a recording: better rules improve old recordings.
//! - No field that holds both what the client thinks and what the server thinks.

pub mod app;
pub mod cli;
pub mod command;
pub mod config;
pub mod event;
pub mod filter;
pub mod machine;
pub mod model;
pub mod peer;
pub mod proxy;
pub mod report;
pub mod rules;
pub mod spec;
pub mod time;
pub mod trace;
pub mod ui;
pub mod wire;
