//! The other end of a control socket: one order, one answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::peer::control::VERSION;

/// What takes orders answers at once.
const LIMIT: Duration = Duration::from_secs(5);

/// A connection to what takes orders.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    path: String,
    /// What it said of itself.
    pub greeting: Value,
}

impl Client {
    /// Connects; `of`: what it must be, such as `tap`.
    ///
    /// # Errors
    /// When nobody listens there, or not what is looked for.
    pub fn connect(at: &Path, of: &str) -> anyhow::Result<Client> {
        let path = at.display().to_string();
        let stream = UnixStream::connect(at).with_context(|| format!("nobody takes orders at {path}"))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut client = Client { stream: BufReader::new(stream), path, greeting: Value::Null };
        client.greeting = client.next()?;
        let greeting = &client.greeting;
        if greeting["midwire"] != "control" || greeting["version"] != json!(VERSION) {
            bail!("{} speaks another version than {VERSION} of this", client.path);
        }
        let is = greeting["of"].as_str().unwrap_or_default();
        if is != of {
            bail!("{} belongs to a {is}, not to a {of}", client.path);
        }
        Ok(client)
    }

    /// Gives one order and waits for what is said to it.
    ///
    /// # Errors
    /// When the other side is gone or says nothing.
    pub fn order(&mut self, order: &Value) -> anyhow::Result<Value> {
        let gone = || format!("who takes orders at {} is gone", self.path);
        self.stream.get_mut().write_all(format!("{order}\n").as_bytes()).with_context(gone)?;
        self.next()
    }

    fn next(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        let len = self.stream.read_line(&mut line);
        let len = len.with_context(|| format!("{} says nothing", self.path))?;
        if len == 0 {
            bail!("{} has hung up; it takes few orders at once", self.path);
        }
        serde_json::from_str(&line).with_context(|| format!("{} is no control socket", self.path))
    }
}
