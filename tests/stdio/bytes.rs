//! What goes in comes out: every byte, in order, both ways, whatever it is.

use sha2::{Digest, Sha256};

use crate::support::{Tap, recorded};

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A small generator of repeatable numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// `input` through a server that keeps what it got and says it again; `pieces`: sizes of writes.
fn check(name: &str, input: &[u8], pieces: Vec<usize>) {
    let ended = Tap::start(&[], &["tee", "got"]).talk(input.to_vec(), pieces);
    assert!(ended.status.success(), "{name}: {}", ended.status);
    let sent = digest(input);
    assert_eq!(
        digest(&std::fs::read(ended.folder.path().join("got")).unwrap()),
        sent,
        "{name}: client to server"
    );
    assert_eq!(digest(&ended.stdout), sent, "{name}: server to client");
    assert_eq!(digest(&recorded(&ended.recording, "c2s")), sent, "{name}: recorded from the client");
    assert_eq!(digest(&recorded(&ended.recording, "s2c")), sent, "{name}: recorded from the server");
}

#[test]
fn bytes_pass_unchanged_both_ways() {
    let call = br#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"a\/b","params":{"x":1e2,  "y":"\u00e9"}}"#;
    let lines = |ending: &[u8]| [&call[..], ending].concat().repeat(500);
    let mut numbers = Numbers(0x5eed);
    let noise: Vec<u8> = (0..300_000).map(|_| u8::try_from(numbers.next() & 0xff).unwrap()).collect();
    let mut random_pieces =
        |limit: usize| -> Vec<usize> { (0..200).map(|_| 1 + numbers.below(limit)).collect() };
    let cases: [(&str, Vec<u8>, Vec<usize>); 8] = [
        ("lines", lines(b"\n"), random_pieces(400)),
        ("lines byte by byte", lines(b"\n")[..2000].to_vec(), vec![1]),
        ("CRLF", lines(b"\r\n"), random_pieces(400)),
        ("no JSON at all", b"hello\n\n\0\x1b[31mred\x07\n{]\n".repeat(100), random_pieces(50)),
        ("invalid UTF-8", b"\xff\xfe{\"a\":\"\xc3\x28\"}\n\xed\xa0\x80\n".repeat(100), random_pieces(50)),
        ("no final newline", lines(b"\n").strip_suffix(b"\n").unwrap().to_vec(), random_pieces(400)),
        ("noise", noise, random_pieces(70_000)),
        ("nothing", Vec::new(), vec![1]),
    ];
    for (name, input, pieces) in cases {
        check(name, &input, pieces);
    }
}

#[test]
fn a_line_of_20_mib_passes() {
    let mut line = br#"{"jsonrpc":"2.0","id":1,"result":""#.to_vec();
    line.resize(20 << 20, b'x');
    line.extend_from_slice(b"\"}\n");
    check("20 MiB", &line, vec![1 << 20]);
}

#[test]
fn standard_error_passes_and_is_recorded() {
    let input = b"warning: \xff\nno newline".to_vec();
    let ended = Tap::start(&[], &["sh", "-c", "exec cat >&2"]).talk(input.clone(), vec![7]);
    assert_eq!(ended.stderr, input);
    assert_eq!(ended.stdout, b"");
    assert_eq!(recorded(&ended.recording, "stderr"), input);
}

#[test]
fn a_flood_of_standard_error_does_not_stall_the_answers() {
    let server = ["sh", "-c", "yes warning | head -c 100000000 >&2; exec cat"];
    let ended = Tap::start(&[], &server).talk(b"ping\n".to_vec(), vec![5]);
    assert_eq!(ended.stdout, b"ping\n");
    assert_eq!(ended.stderr.len(), 100_000_000);
    assert!(ended.status.success());
}
