//! A person with a browser.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use midwire::peer::client::Outcome;
use midwire::peer::client::auth::{AuthSettings, Opener};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::world::{Manner, World};
use crate::{call, check_conduct, client};

/// No test waits longer for one thing.
const LIMIT: Duration = Duration::from_secs(20);

/// What a browser gets for a URL of http: status line, fields and body.
async fn browse(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, target) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn location(answer: &str) -> String {
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("location: ")).unwrap();
    line.split_once(": ").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_browser_brings_the_answer_to_this_machine() {
    let world = World::start(Manner {
        uses: 1,
        token: serde_json::json!({ "refresh_token": null }),
        ..Manner::default()
    })
    .await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let tell = Arc::new(move |line: &str| sender.send(line.to_owned()).unwrap());
    let client =
        client(&world, AuthSettings { opener: Opener::Person { tell, port: 0 }, ..AuthSettings::default() });
    let places = Mutex::new(Vec::new());
    let person = async {
        for _ in 0..2 {
            let line = told.recv().await.unwrap();
            let page = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
            let back = location(&browse(page).await);
            let (place, _) = back.split_once('?').unwrap();
            places.lock().unwrap().push(place.to_owned());
            // A browser opens connections that it does not use, and other pages may send anything here.
            let idle = TcpStream::connect(place.split('/').nth(2).unwrap()).await.unwrap();
            for stray in
                [place.to_owned(), format!("{place}?code=x&state=y"), back.replace("callback", "other")]
            {
                let answer = browse(&stray).await;
                assert!(answer.starts_with("HTTP/1.1 400"), "{stray}: {answer}");
            }
            let answer = browse(&back).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("can be closed"), "{answer}");
            drop(idle);
        }
    };
    let calls = async {
        for _ in 0..2 {
            let report = call(&client).await.unwrap();
            assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
        }
    };
    tokio::time::timeout(LIMIT, async { tokio::join!(person, calls) }).await.unwrap();
    // The place is registered with the client, so it stays the same.
    let places = places.into_inner().unwrap();
    assert!(places[0].starts_with("http://127.0.0.1:") && places[0] == places[1], "{places:?}");
    assert_eq!((world.count("/register"), world.count("/authorize")), (1, 2));
    check_conduct(&world);
}

#[tokio::test]
async fn where_nobody_is_nobody_is_asked() {
    let challenge = "Bearer scope=\"read\", resource_metadata=\"{host}/meta\"";
    let world = World::start(Manner { challenge, ..Manner::default() }).await;
    let error = call(&client(&world, AuthSettings::default())).await.unwrap_err().to_string();
    assert!(error.contains("for read, and nobody can sign in here"), "{error}");
    assert!(error.contains("--bearer-env"), "{error}");
    assert_eq!((world.count("/register"), world.count("/authorize")), (0, 0));
}
