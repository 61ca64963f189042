//! Faults by the command line: listed, given at the start, and turned while the server runs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use midwire::peer::faults::{Fault, Side};

use crate::rig::MIDWIRE;

fn midwire(arguments: &[&str]) -> Output {
    Command::new(MIDWIRE).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Ends with the test, however that ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_side_lists_its_own_faults_and_refuses_those_of_the_other() {
    for (command, side) in [("serve", Side::Server), ("call", Side::Client)] {
        let listed = said(&midwire(&[command, "--faults"]));
        let names: Vec<_> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let expected: Vec<_> = Fault::of(side).map(Fault::as_str).collect();
        assert_eq!(names, expected);
    }
    let url = "http://127.0.0.1:1/mcp";
    let wrong: [&[&str]; 3] = [
        &["serve", "stdio", "--fault", "posts_cancel"],
        &["call", "echo", "--fault", "prints", "--url", url],
        &["call", "echo", "--fault", "nonsense", "--url", url],
    ];
    for arguments in wrong {
        let refused = midwire(arguments);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(words.contains("fault"), "{words}");
    }
}

#[test]
fn a_running_server_takes_orders_about_its_faults() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ctl").display().to_string();
    let control = format!("--control={socket}");
    let server = Command::new(MIDWIRE)
        .args(["serve", "http", "--listen", "127.0.0.1:0", "--ledger", "memory", &control])
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Server(server.unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let mut url = None;
    let mut takes_orders = false;
    while url.is_none() || !takes_orders {
        let line = lines.next().unwrap().unwrap();
        url = url.or(line.strip_prefix("midwire: serving ").map(str::to_owned));
        takes_orders |= line.contains("taking orders at");
    }
    let url = url.unwrap();
    let echoes = || {
        let listed = said(&midwire(&["call", "list", "--json", "--url", &url]));
        listed.matches("\"name\":\"echo\"").count()
    };
    let order = |words: &[&str]| {
        let ordered = midwire(&[&["ctl", "--serve", &socket], words].concat());
        assert_eq!(ordered.status.code(), Some(0), "{ordered:?}");
        said(&ordered)
    };
    let right = echoes();
    order(&["fault", "twin_tools", "on"]);
    let wrong = echoes();
    assert_eq!(wrong, right + 1);
    let on: Vec<String> =
        order(&["faults"]).lines().filter(|line| line.starts_with("on ")).map(str::to_owned).collect();
    assert!(on.len() == 1 && on[0].contains("twin_tools"), "{on:?}");
    order(&["fault", "twin_tools", "off"]);
    assert_eq!(echoes(), right);
    let of_client = midwire(&["ctl", "--serve", &socket, "fault", "posts_cancel", "on"]);
    assert_eq!(of_client.status.code(), Some(1), "{of_client:?}");
    drop(server);
    let gone = midwire(&["ctl", "--serve", &socket, "faults"]);
    assert_eq!(gone.status.code(), Some(2), "{gone:?}");
}
