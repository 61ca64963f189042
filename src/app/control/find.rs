//! Which tap a person means.

use std::path::PathBuf;

use anyhow::{anyhow, bail};

use crate::trace::library::{Library, Run};

/// Where the tap of this name takes orders: its label, the number of its process, the beginning of its
/// session's name, the path of its socket, or `-` for the only one.
///
/// # Errors
/// When there is none, or several, or when it takes no orders.
pub fn socket_of(name: &str) -> anyhow::Result<PathBuf> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let run = pick(name, Library::of_user()?.running())?;
    run.control.clone().ok_or_else(|| {
        let why = "it runs with --control off, or is older than orders";
        anyhow!("the tap {} takes no orders: {why}", said(&run))
    })
}

fn pick(name: &str, running: Vec<Run>) -> anyhow::Result<Run> {
    if running.is_empty() {
        bail!("no tap is running; start one with `midwire stdio` or `midwire http`");
    }
    let all: Vec<String> = running.iter().map(said).collect();
    let is_label = |run: &Run| run.label.as_deref() == Some(name);
    let is_process = |run: &Run| run.pid.to_string() == name;
    let is_session = |run: &Run| !name.is_empty() && run.session.starts_with(name);
    let ways: [&dyn Fn(&Run) -> bool; 3] = [&is_label, &is_process, &is_session];
    let meant: Vec<Run> = if name == "-" {
        running
    } else {
        let mut found = ways.iter().map(|way| running.iter().filter(|run| way(run)).cloned().collect());
        found.find(|runs: &Vec<Run>| !runs.is_empty()).unwrap_or_default()
    };
    match <[Run; 1]>::try_from(meant) {
        Ok([run]) => Ok(run),
        Err(meant) if meant.is_empty() => {
            Err(anyhow!("no running tap is called `{name}`; there are {}", all.join(", ")))
        }
        Err(meant) => {
            let these: Vec<String> = meant.iter().map(said).collect();
            Err(anyhow!("several taps are called `{name}`: {}; say the number of one", these.join(", ")))
        }
    }
}

fn said(run: &Run) -> String {
    let label = run.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    format!("{}{label}", run.pid)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn run(pid: u32, label: Option<&str>) -> Run {
        Run {
            session: format!("{pid}abc"),
            pid,
            transport: "stdio".to_owned(),
            started: DateTime::from_timestamp_millis(1).unwrap(),
            label: label.map(str::to_owned),
            command: Vec::new(),
            upstream: None,
            listen: None,
            recording: None,
            control: None,
        }
    }

    #[test]
    fn a_tap_is_found_by_label_process_or_session() {
        let all = || vec![run(12, Some("files")), run(34, Some("35")), run(35, None), run(36, Some("files"))];
        let cases: [(&str, Result<u32, &str>); 8] = [
            ("12", Ok(12)),
            ("12a", Ok(12)),
            ("35", Ok(34)),
            ("35a", Ok(35)),
            ("files", Err("several taps are called `files`: 12 (files), 36 (files)")),
            ("3", Err("several")),
            ("nobody", Err("no running tap is called `nobody`; there are 12 (files)")),
            ("-", Err("several")),
        ];
        for (name, expected) in cases {
            match (pick(name, all()), expected) {
                (Ok(run), Ok(pid)) => assert_eq!(run.pid, pid, "{name}"),
                (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{name}: {error}"),
                (other, _) => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(pick("-", vec![run(7, None)]).unwrap().pid, 7);
        assert!(pick("-", Vec::new()).unwrap_err().to_string().contains("no tap is running"));
    }
}
