//! The least that a tap on pipes can be: two threads that write on what they read. The stdio tap is
//! measured against it.
//!
//! `floor-stdio COMMAND [ARGUMENT …]`; exit status is the command's.
#![allow(clippy::print_stderr, reason = "a program of its own, for people who measure")]

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode, Stdio};

/// As much as a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, arguments @ ..] = words.as_slice() else {
        eprintln!("usage: floor-stdio COMMAND [ARGUMENT ...]");
        return Ok(ExitCode::from(2));
    };
    let mut server =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(to_server), Some(from_server)) = (server.stdin.take(), server.stdout.take()) else {
        return Err("no pipes to the command".into());
    };
    // The descriptors themselves: no buffer of the standard library is in the way.
    let from_client = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let to_client = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let back = std::thread::spawn(move || pass(from_server, to_client));
    pass(from_client, to_server);
    if back.join().is_err() {
        return Err("a pump broke".into());
    }
    let code = server.wait()?.code().unwrap_or(255);
    Ok(ExitCode::from(u8::try_from(code)?))
}

/// Until either side ends.
fn pass(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let Some(piece) = buffer.get(..read) else { return };
        if to.write_all(piece).is_err() {
            return;
        }
    }
}
