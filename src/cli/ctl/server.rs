//! Orders to a running reference server.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::app::control::client::Client;
use crate::cli::{CLEAN, FINDINGS, say};
use crate::peer::faults::Fault;

/// Gives one order and prints what comes of it.
pub(super) fn ctl(socket: &Path, words: &[String]) -> anyhow::Result<u8> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let order = match words[..] {
        ["faults"] => json!({ "faults": "list" }),
        ["fault", name, to @ ("on" | "off")] => {
            let fault: Fault = name.parse()?;
            json!({ "fault": fault.as_str(), "on": to == "on" })
        }
        _ => bail!("a reference server takes `fault NAME on`, `fault NAME off` and `faults`"),
    };
    let start = || format!("start the server with --control={}", socket.display());
    let mut client = Client::connect(socket, "server").with_context(start)?;
    let answer = client.order(&order)?;
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
