//! The hands: give orders to the tap of the open session, and ask it now and then what it holds.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::app::control::client::Client;
use crate::command::{By, Status, json as orders, words};
use crate::trace::library::Library;
use crate::ui::msg::Msg;

/// Time between two questions. ours: soon enough for a person, and for the tap a few lines a second.
const LOOK: Duration = Duration::from_millis(250);

/// Time between two searches for a tap that takes orders.
const SEARCH: Duration = Duration::from_secs(1);

/// What the hands can be asked.
#[derive(Debug)]
pub(super) enum Request {
    /// Another session was opened, by its name; `None`: it has none, so nobody can order it.
    Session(Option<String>),
    /// An order, in words.
    Order(String),
}

/// The thread of the hands; ends when nobody can ask any more.
pub(super) fn run(requests: &Receiver<Request>, screen: &Sender<Msg>) {
    let mut hands = Hands::default();
    loop {
        let wait = if hands.tap.is_some() { LOOK } else { SEARCH };
        let told = match requests.recv_timeout(wait) {
            Ok(Request::Session(session)) => {
                hands = Hands { session, ..Hands::default() };
                None
            }
            Ok(Request::Order(line)) => Some(hands.order(&line)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let status = hands.look();
        for msg in told.into_iter().chain(status) {
            if screen.blocking_send(msg).is_err() {
                return;
            }
        }
    }
}

#[derive(Default)]
struct Hands {
    session: Option<String>,
    tap: Option<Client>,
    /// What the screen knows.
    told: Option<Status>,
}

impl Hands {
    /// Asks how things stand; what is new of it.
    fn look(&mut self) -> Option<Msg> {
        if self.tap.is_none() {
            self.tap = self.search();
        }
        let answer = self.ask(&json!({ "do": "status" }));
        let status = answer.and_then(|answer| orders::read_status(&answer["status"]));
        if status == self.told {
            return None;
        }
        self.told.clone_from(&status);
        Some(Msg::Hands(status))
    }

    /// The tap of the session, where it runs and takes orders.
    fn search(&self) -> Option<Client> {
        let session = self.session.as_ref()?;
        let running = Library::of_user().ok()?.running();
        let run = running.into_iter().find(|run| run.session == *session)?;
        Client::connect(&run.control?, "tap").ok()
    }

    /// An order and its answer; a tap that is gone is looked for again later.
    fn ask(&mut self, order: &Value) -> Option<Value> {
        let answer = self.tap.as_mut()?.order(order);
        if answer.is_err() {
            self.tap = None;
        }
        answer.ok()
    }

    /// Gives an order; what became of it, to be told.
    fn order(&mut self, line: &str) -> Msg {
        let mut order = match words::parse(line) {
            Ok(command) => orders::of_command(&command),
            Err(error) => return Msg::Trouble(error.to_string()),
        };
        order["by"] = json!(By::Viewer.as_str());
        let Some(answer) = self.ask(&order) else {
            return Msg::Trouble("the tap is gone, or takes no orders".to_owned());
        };
        if answer["ok"] != json!(true) {
            return Msg::Trouble(answer["error"].as_str().unwrap_or("refused").to_owned());
        }
        let to: Vec<&str> = answer["to"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let verb = order["do"].as_str().unwrap_or_default();
        Msg::Notice(match answer["rule"].as_u64() {
            Some(rule) => format!("rule {rule} is armed: {line}"),
            None if to.is_empty() => format!("{verb}: done"),
            None => format!("{verb}: {}", to.join(", ")),
        })
    }
}
