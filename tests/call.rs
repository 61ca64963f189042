//! The reference client as a command, against the reference server as a process.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// A server on a free port, ended when it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn new(era: &str) -> Server {
        let mut child = Command::new(MIDWIRE)
            .args(["serve", "http", "--listen", "127.0.0.1:0", "--era", era])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut url = String::new();
        while url.is_empty() {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "the server ended");
            let found = line.split_whitespace().find(|word| word.starts_with("http://"));
            found.unwrap_or_default().clone_into(&mut url);
        }
        // Whatever it says later must not stop it.
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Runs a command; exit code, standard output, standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let done = Command::new(MIDWIRE).args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

/// Answers as they stand on a command line.
const ADA: &str = "name={\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}";
const BO: &str = "elicitation/create={\"action\":\"accept\",\"content\":{\"name\":\"Bo\"}}";

/// Arguments after `midwire`, in which `URL` is the server's; exit code; texts of standard output and
/// of standard error.
type Row = (&'static [&'static str], i32, &'static [&'static str], &'static [&'static str]);

fn check(server: &Server, rows: &[Row]) {
    for (args, code, out, err) in rows {
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "URL" { &*server.url } else { *arg }).collect();
        let (got, stdout, stderr) = run(&args);
        let told = format!("{args:?}\n{stdout}\n{stderr}");
        assert_eq!(got, *code, "{told}");
        for text in *out {
            assert!(stdout.contains(text), "{text} in {told}");
        }
        for text in *err {
            assert!(stderr.contains(text), "{text} in {told}");
        }
    }
}

#[test]
fn every_word_asks_for_what_it_says_and_the_exit_code_tells_how_it_went() {
    let server = Server::new("modern");
    check(
        &server,
        &[
            (&["call", "discover", "--url", "URL"], 0, &["supportedVersions"], &[]),
            (&["call", "list", "--url", "URL"], 0, &["\"echo\"", "ttlMs"], &[]),
            (&["call", "prompts", "--url", "URL"], 0, &["\"letter\""], &[]),
            (&["call", "resources", "--url", "URL"], 0, &["notes://today"], &[]),
            (&["call", "templates", "--url", "URL"], 0, &["resourceTemplates"], &[]),
            (&["call", "read", "notes://today", "--url", "URL"], 0, &["contents"], &[]),
            (&["call", "read", "notes://none", "--url", "URL"], 1, &["error -32602"], &[]),
            (&["call", "prompt", "letter", "--arg", "country=7", "--url", "URL"], 0, &["messages"], &[]),
            (&["call", "complete", "letter", "--arg", "country=", "--url", "URL"], 0, &["completion"], &[]),
            (&["call", "tool", "echo", "--arg", "text=list", "--url", "URL"], 0, &["\"list\""], &[]),
            (&["call", "fails", "--url", "URL"], 1, &["isError"], &[]),
            (&["call", "none", "--url", "URL"], 1, &["error -32602"], &[]),
            (&["call", "--method", "x/y", "--params", "{\"a\":1}", "--url", "URL"], 1, &["-32601"], &[]),
            (&["call", "read", "--url", "URL"], 2, &[], &["read of what?"]),
            (&["call", "echo", "extra", "--url", "URL"], 2, &[], &["takes no extra"]),
            (&["call", "listen", "--url", "URL"], 2, &[], &["listen to what?"]),
            (&["call", "region", "--arg", "region=größe", "--url", "URL"], 0, &["größe"], &[]),
            (
                &["call", "slow", "--arg", "steps=2", "--arg", "step_ms=1", "--progress", "--url", "URL"],
                0,
                &["2 steps done"],
                &["progress 2 of 2"],
            ),
            (
                &["call", "silent", "--cancel-after", "100", "--url", "URL"],
                1,
                &["given up: cancelled by the user"],
                &[],
            ),
            (
                &["call", "silent", "--timeout", "100", "--max", "200", "--url", "URL"],
                1,
                &["given up: idle timeout"],
                &["not made again: it is unsafe, for no contract says what it does"],
            ),
            (&["probe", "URL"], 0, &["era: 2026-07-28", "✓ session"], &[]),
        ],
    );
}

#[test]
fn questions_are_answered_and_tasks_are_followed() {
    let server = Server::new("dual");
    let rows: [Row; 7] = [
        (&["call", "ask_user", "--answer", ADA, "--url", "URL"], 0, &["Hello, Ada"], &[]),
        (&["call", "ask_user", "--answer", BO, "--url", "URL"], 0, &["Hello, Bo"], &[]),
        (&["call", "ask_user", "--answer", BO, "--legacy", "--url", "URL"], 0, &["Hello, Bo"], &[]),
        (
            &["call", "ask_user", "--capabilities", "{\"elicitation\":{\"form\":{}}}", "--url", "URL"],
            0,
            &["input_required"],
            &[],
        ),
        (&["call", "ask_user", "--url", "URL"], 1, &["-32021"], &[]),
        (
            &["call", "generate_report", "--arg", "section_ms=1", "--url", "URL"],
            0,
            &["5 sections"],
            &["the task is working", "the task is completed"],
        ),
        (
            &["call", "generate_report", "--cancel-after", "50", "--json", "--url", "URL"],
            1,
            &["\"task_cancelled\"", "\"cancel_sent\":true", "\"state\":\"cancelled\""],
            &[],
        ),
    ];
    check(&server, &rows);
}

#[test]
fn an_era_that_is_not_proven_is_not_called() {
    let server = Server::new("legacy");
    let named = "allow_legacy = [\"URL\"]";
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let listed = write("listed.toml", named.replace("URL", &server.url));
    let pattern = write("pattern.toml", named.replace("URL", "http://*"));
    check(
        &server,
        &[
            (&["call", "list", "--url", "URL"], 1, &[], &["no initialize"]),
            (&["call", "list", "--json", "--url", "URL"], 1, &["\"version\":null"], &[]),
            (&["call", "list", "--modern", "--url", "URL"], 1, &[], &[]),
            (&["call", "list", "--allow-legacy", "--url", "URL"], 0, &["\"echo\""], &[]),
            (&["call", "list", "--lenient", "--url", "URL"], 0, &["\"echo\""], &[]),
            (&["call", "ping", "--legacy", "--url", "URL"], 0, &["{}"], &[]),
            (&["probe", "URL"], 1, &["era: not established", "? mirror"], &[]),
            (&["probe", "--allow-legacy", "URL"], 0, &["era: 2025-11-25", "? mirror"], &[]),
            (&["call", "listen", "--watch", "tools", "--legacy", "--url", "URL"], 2, &[], &["of an era"]),
        ],
    );
    for (policy, code) in [(&listed, 0), (&pattern, 1)] {
        let (got, _, stderr) = run(&["call", "list", "--policy", policy, "--url", &server.url]);
        assert_eq!(got, code, "{policy}: {stderr}");
    }
}

#[test]
fn a_lost_call_is_made_again_by_its_contract() {
    let server = Server::new("modern");
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "[[contracts]]\ntools = [\"slow\"]\nside_effect = \"none\"\n").unwrap();
    let slow = ["call", "slow", "--arg", "steps=2", "--arg", "step_ms=150", "--drop-after", "100"];
    let place = ["--url", &server.url];
    let contract = ["--retries", "1", "--spread", "client-a", "--policy", policy.to_str().unwrap()];
    let (code, out, err) = run(&[&slow[..], &contract, &place].concat());
    assert_eq!(code, 0, "{out} {err}");
    assert!(err.contains("made again in 162 ms under a new id: it is safe"), "{err}");
    let (code, out, err) = run(&[&slow[..], &["--retries", "1"], &place].concat());
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("connection dropped") && err.contains("not made again"), "{out} {err}");
}

#[test]
fn several_servers_are_one_catalogue() {
    let server = Server::new("modern");
    let (alpha, beta) = (format!("alpha={}", server.url), format!("beta={MIDWIRE} serve stdio"));
    for order in [[&alpha, &beta], [&beta, &alpha]] {
        let peers = ["--peer", order[0], "--peer", order[1]];
        let (code, out, err) = run(&[&["call", "list"], &peers[..]].concat());
        assert_eq!(code, 0, "{err}");
        assert!(out.starts_with("alpha: 2026-07-28, public for 60000 ms: "), "{out}");
        assert!(out.contains(", echo,") && out.contains("\nbeta: ") && out.contains(" beta/echo,"), "{out}");
        let (code, out, err) = run(&[&["call", "beta/echo", "--arg", "text=hi"], &peers[..]].concat());
        assert_eq!((code, out.contains("\"hi\"")), (0, true), "{out} {err}");
        let (code, _, err) = run(&[&["call", "list", "--collisions", "reject"], &peers[..]].concat());
        assert_eq!(code, 2);
        assert!(err.contains("alpha and beta both have the tool"), "{err}");
        let (code, _, err) = run(&[&["call", "nobody/has"], &peers[..]].concat());
        assert_eq!((code, err.contains("no server has the tool")), (2, true), "{err}");
    }
}

/// The next line of a command that goes on.
fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    assert!(out.read_line(&mut line).unwrap() > 0, "it ended");
    line.trim_end().to_owned()
}

#[test]
fn a_subscription_tells_what_changes_and_reads_it_again() {
    let server = Server::new("modern");
    let watch =
        ["call", "listen", "--watch", "tools", "--changes", "1", "--for", "20000", "--url", &server.url];
    let mut listening = Command::new(MIDWIRE).args(watch).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(listening.stdout.take().unwrap());
    assert_eq!(line(&mut out), "granted, all of it");
    let (code, _, err) = run(&["call", "switch_extra", "--arg", "what=tool", "--url", &server.url]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(line(&mut out), "changed: tools");
    assert!(line(&mut out).starts_with("read again: tools: "));
    assert!(listening.wait().unwrap().success());
}

#[test]
fn a_server_that_is_not_known_to_be_modern_has_no_tools_and_gets_no_call() {
    let (modern, old) = (Server::new("modern"), Server::new("legacy"));
    let (first, second) = (format!("modern={}", modern.url), format!("old={}", old.url));
    let peers = ["--peer", &first, "--peer", &second];
    let (code, out, err) = run(&[&["call", "list"], &peers[..]].concat());
    assert_eq!(code, 1, "{out} {err}");
    assert!(out.contains("old: unavailable") && out.contains("its era is not known"), "{out}");
    let (code, _, err) = run(&[&["call", "old/echo", "--arg", "text=x"], &peers[..]].concat());
    assert_eq!((code, err.contains("no server has the tool old/echo")), (2, true), "{err}");
    // In the era of its owner each.
    let (code, out, _) = run(&[&["call", "list", "--allow-legacy"], &peers[..]].concat());
    assert_eq!((code, out.contains("old: 2025-11-25, private for 0 ms: ")), (0, true), "{out}");
    let call = ["call", "old/echo", "--arg", "text=x", "--allow-legacy", "--json"];
    let (code, out, err) = run(&[&call[..], &peers[..]].concat());
    assert_eq!((code, out.contains("\"version\":\"2025-11-25\"")), (0, true), "{out} {err}");
}

/// A TLS server that answers `server/discover` on each connection, and its certificate in a file.
fn over_tls(folder: &std::path::Path) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = folder.join("root.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = std::sync::Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
            let mut heard = Vec::new();
            let mut buf = [0; 4096];
            // One short request, which comes whole or with its body after its head.
            while !String::from_utf8_lossy(&heard).contains("\"server/discover\"") {
                match std::io::Read::read(&mut stream, &mut buf) {
                    Ok(len) if len > 0 => heard.extend_from_slice(&buf[..len]),
                    // A client that does not trust the certificate has left.
                    _ => break,
                }
            }
            let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let start = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let answer = format!("{start}Content-Length: {}\r\n\r\n{body}", body.len());
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.conn.write_tls(&mut stream.sock);
        }
    });
    (url, file.to_str().unwrap().to_owned())
}

#[test]
fn a_server_of_https_is_called_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (url, root) = over_tls(folder.path());
    let call = |root: &str| {
        let call =
            ["call", "--method", "server/discover", "--json", "--discover-limit", "5000", "--url", &url];
        Command::new(MIDWIRE).args(call).env("SSL_CERT_FILE", root).output().unwrap()
    };
    let trusted = call(&root);
    // The era is asked for under the id 1; the call itself is answered for that id too, and so refused.
    let said = String::from_utf8(trusted.stdout).unwrap();
    assert!(said.contains("\"version\":\"2026-07-28\""), "{said}");
    let empty = folder.path().join("none.pem");
    std::fs::write(&empty, "").unwrap();
    let refused = call(empty.to_str().unwrap());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot connect to https://localhost:"), "{said}");
}
