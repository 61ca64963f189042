//! Orders to a tap that only notes them.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use super::client::Client;
use super::*;
use crate::app::sockets::OwnerSocket;
use crate::command::{Applied, Command, Refused};

/// A tap that only notes what it is told, and refuses to flow.
#[derive(Default)]
struct Notes(Mutex<Vec<(String, By)>>);

impl TakesOrders for Notes {
    fn order(&self, command: &Command, by: By) -> Result<Applied, Refused> {
        self.0.lock().unwrap().push((command.to_string(), by));
        match command {
            Command::Flow(_) => Err(Refused::NotHere("no queue here".to_owned())),
            Command::Arm(_) => Ok(Applied { rule: Some(1), ..Applied::default() }),
            _ => Ok(Applied { to: vec!["id 7".to_owned()], ..Applied::default() }),
        }
    }

    fn transport(&self) -> Transport {
        Transport::Stdio
    }
}

/// A tap that takes orders, and its socket.
fn start(folder: &tempfile::TempDir) -> (Arc<Notes>, OwnerSocket, Control) {
    let mut socket = OwnerSocket::bind(&folder.path().join("s")).unwrap();
    let notes = Arc::new(Notes::default());
    let introduction = Introduction { session: "abc".to_owned(), label: None };
    let control = Control::start(socket.take_listener().unwrap(), &introduction, notes.clone()).unwrap();
    (notes, socket, control)
}

#[test]
fn each_order_gets_one_answer_and_bad_ones_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let (notes, socket, control) = start(&folder);
    let mode = std::fs::metadata(socket.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = Client::connect(socket.path(), "tap").unwrap();
    assert_eq!((&client.greeting["of"], &client.greeting["session"]), (&json!("tap"), &json!("abc")));
    let cases = [
        (json!({"do":"drop","on":"tool:x"}), json!({"ok":true,"rule":1})),
        (json!({"do":"cancel","on":"id:7","by":"viewer"}), json!({"ok":true,"to":["id 7"]})),
        (json!({"do":"flow"}), json!({"ok":false,"why":"not_here","error":"no queue here"})),
    ];
    for (order, answer) in cases {
        assert_eq!(client.order(&order).unwrap(), answer, "{order}");
    }
    for order in [json!({"do":"drop","on":"id:("}), json!({"do":"status","by":"me"}), json!([]), json!(7)] {
        let answer = client.order(&order).unwrap();
        assert_eq!((&answer["ok"], &answer["why"]), (&json!(false), &json!("unreadable")), "{order}");
    }
    let told = std::mem::take(&mut *notes.0.lock().unwrap());
    let words: Vec<(&str, By)> = told.iter().map(|(words, by)| (words.as_str(), *by)).collect();
    let expected = [("drop on=tool:x", By::Ctl), ("cancel on=id:7", By::Viewer), ("flow", By::Ctl)];
    assert_eq!(words, expected);
    drop(control);
    assert!(client.order(&json!({"do":"status"})).is_err());
    drop(socket);
    assert!(Client::connect(&folder.path().join("s"), "tap").unwrap_err().to_string().contains("nobody"));
}

#[test]
fn what_is_too_long_or_torn_ends_neither_the_socket_nor_the_tap() {
    let folder = tempfile::tempdir().unwrap();
    let (notes, socket, _control) = start(&folder);
    let mut rude = UnixStream::connect(socket.path()).unwrap();
    rude.write_all(&vec![b'x'; LINE_LIMIT_BYTES + 10]).unwrap();
    rude.write_all(b"\n\xff\xfe\n{\"do\":\"status\"}\n{\"do\":").unwrap();
    let mut lines = BufReader::new(&rude).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["midwire"], "control");
    let whys: Vec<Value> = (0..2).map(|_| next()["why"].clone()).collect();
    assert_eq!(whys, [json!("too_long"), json!("unreadable")]);
    assert_eq!(next()["ok"], true);
    drop(rude);
    Client::connect(socket.path(), "tap").unwrap().order(&json!({"do":"kill"})).unwrap();
    assert_eq!(notes.0.lock().unwrap().last().unwrap().0, "kill");
}

#[test]
fn only_so_many_give_orders_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_, socket, _control) = start(&folder);
    let clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| Client::connect(socket.path(), "tap").unwrap()).collect();
    let error = Client::connect(socket.path(), "tap").unwrap_err().to_string();
    assert!(error.contains("hung up") || error.contains("says nothing"), "{error}");
    drop(clients);
    let wrong = Client::connect(socket.path(), "server").unwrap_err().to_string();
    assert!(wrong.contains("not to a server") || wrong.contains("hung up"), "{wrong}");
}
