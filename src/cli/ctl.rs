//! `midwire ctl`: orders to a running reference server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::args::steering::{CtlArgs, OnOff, Order};
use super::{CLEAN, FINDINGS, say};
use crate::peer::control::VERSION;

/// A living server answers at once.
const LIMIT: Duration = Duration::from_secs(5);

/// Gives one order and prints what comes of it.
pub(super) fn ctl(args: &CtlArgs) -> anyhow::Result<u8> {
    let path = args.serve.display();
    let stream = UnixStream::connect(&args.serve)
        .with_context(|| format!("nobody takes orders at {path}; start the server with --control={path}"))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let mut lines = BufReader::new(&stream).lines();
    let mut next = || -> anyhow::Result<Value> {
        let line = lines.next().context("the server said nothing")??;
        serde_json::from_str(&line).with_context(|| format!("{path} is no control socket"))
    };
    let greeting = next()?;
    if greeting["midwire"] != "control" || greeting["version"] != json!(VERSION) {
        bail!("{path} speaks another version than {VERSION} of this");
    }
    let order = match &args.order {
        Order::Fault { name, to } => json!({ "fault": name.as_str(), "on": *to == OnOff::On }),
        Order::Faults => json!({ "faults": "list" }),
    };
    (&stream).write_all(format!("{order}\n").as_bytes())?;
    let answer = next()?;
    if answer["ok"] != json!(true) {
        say(answer["error"].as_str().unwrap_or("refused"));
        return Ok(FINDINGS);
    }
    let mut out = std::io::stdout().lock();
    for fault in answer["faults"].as_array().into_iter().flatten() {
        let state = if fault["on"] == json!(true) { "on " } else { "off" };
        let text = |name: &str| fault[name].as_str().unwrap_or_default().to_owned();
        writeln!(out, "{state} {:28} {}", text("name"), text("says"))?;
    }
    Ok(CLEAN)
}
