//! The chapters: what is said, and the calls that show it.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::peer::PeerError;
use crate::peer::client::{CallOptions, Client, Outcome, Params, Report, raw};
use crate::spec::methods;
use crate::time::Ms;
use crate::wire::jsonrpc;

/// One chapter.
pub(super) struct Chapter {
    /// At most three lines of 78 columns.
    pub(super) text: &'static str,
    pub(super) scene: Scene,
}

/// What happens in a chapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    Discovery,
    Progress,
    Cancel,
    Disconnect,
    Flood,
    Parallel,
    Errors,
    Clocks,
    Question,
}

pub(super) const CHAPTERS: [Chapter; 9] = [
    Chapter {
        text: "\
1 Discovery. The client asks what the server can do, then lists its tools.
No handshake and no session: each request carries its own version in _meta.
Open a line with Enter; v goes on to the raw bytes, the headers, the timing.",
        scene: Scene::Discovery,
    },
    Chapter {
        text: "\
2 Progress. The tool slow works in six steps and tells each of them.
One POST, answered by an event stream: first the progress, last the result.
See its bar grow in the list. 3 shows every event, 2 the calls again.",
        scene: Scene::Progress,
    },
    Chapter {
        text: "\
3 Cancel. The client gives up after the third of eight steps.
On modern HTTP no message says so: closing the stream is the cancel signal.
The call ends as DISC, the client left, and no progress comes after that.",
        scene: Scene::Cancel,
    },
    Chapter {
        text: "\
4 Disconnect. The client breaks off before any answer, with a reset.
It cannot know what the server did. This tool changes nothing, so it asks
again with a new id. Open the second call: it says which one it repeats.",
        scene: Scene::Disconnect,
    },
    Chapter {
        text: "\
5 Flood. A thousand progress notifications, as fast as the wire takes them.
In the list they are one line and a count; each of them is in the recording.
3 shows them pass by, p holds the screen still while the recording goes on.",
        scene: Scene::Flood,
    },
    Chapter {
        text: "\
6 Six calls at once. Their ids tell the answers apart, in whatever order.
The bars show how they overlap and which is the first to end.
+ and - change how much time a column holds, 0 fits it to the screen.",
        scene: Scene::Parallel,
    },
    Chapter {
        text: "\
7 Two kinds of error. FAIL: the tool ran and failed; its result says isError.
ERR: there is no such tool. The request was wrong: JSON-RPC error -32602.
] and then e goes to the next error. / filters the list; try the word fails.",
        scene: Scene::Errors,
    },
    Chapter {
        text: "\
8 Two clocks. Nothing comes for two seconds: the idle clock ends the call.
In the next one progress keeps coming, until the maximum clock ends it.
Progress restarts the idle clock only, and nothing restarts the maximum.",
        scene: Scene::Clocks,
    },
    Chapter {
        text: "\
9 A question back. INPUT: the server needs a name, so its result asks for it.
The client calls again, with a new id, the answer and the state it was given.
Open the second call: it says which one it continues; see inputResponses.",
        scene: Scene::Question,
    },
];

/// How many notifications the flood has.
const FLOOD: u64 = 1000;

impl Scene {
    /// Plays the scene with a client of its own; times are divided by `speed`. Its ids begin at
    /// `first_id`; returns the one that comes next.
    pub(super) async fn play(
        self,
        connect: &Connect<'_>,
        first_id: i64,
        speed: f64,
        reports: &mut Vec<Report>,
    ) -> Result<i64, PeerError> {
        let mut stage = Stage { client: connect()?.with_ids_from(first_id), speed };
        match self {
            Scene::Discovery => {
                let options = CallOptions::default();
                reports.push(stage.client.discover(&options).await?);
                reports.push(stage.client.list(None, &options).await?);
            }
            Scene::Progress => reports.push(stage.slow(6, 500, &with_progress()).await?),
            Scene::Cancel => reports.push(stage.cancel_after_third().await?),
            Scene::Disconnect => {
                let arguments = json!({ "ms": stage.ms(2500).0 });
                let options = CallOptions { drop_after: Some(stage.ms(700)), ..CallOptions::default() };
                reports.push(stage.call("silent", &arguments, &options).await?);
                let next_id = stage.client.next_id();
                let broken = std::mem::replace(&mut stage.client, connect()?.with_ids_from(next_id));
                broken.close().await?;
                reports.push(stage.call("silent", &arguments, &CallOptions::default()).await?);
            }
            Scene::Flood => {
                let arguments = json!({ "n": FLOOD, "size": 40 });
                reports.push(stage.call("flood", &arguments, &with_progress()).await?);
            }
            Scene::Parallel => {
                let options = with_progress();
                let calls = (1..=6).map(|k| stage.slow(7 - k, 200 + 60 * k, &options));
                for report in join_all(calls).await {
                    reports.push(report?);
                }
            }
            Scene::Errors => {
                let options = CallOptions::default();
                reports.push(stage.call("fails", &json!({ "text": "out of paper" }), &options).await?);
                reports.push(stage.call("no_such_tool", &json!({}), &options).await?);
            }
            Scene::Clocks => {
                let silent = CallOptions { idle: stage.ms(2000), ..CallOptions::default() };
                reports.push(stage.call("silent", &json!({}), &silent).await?);
                let slow = CallOptions { idle: stage.ms(2000), max: stage.ms(3000), ..with_progress() };
                reports.push(stage.slow(100, 400, &slow).await?);
            }
            Scene::Question => stage.question(reports).await?,
        }
        let next_id = stage.client.next_id();
        stage.client.close().await?;
        Ok(next_id)
    }
}

/// Makes a client.
pub(super) type Connect<'a> = dyn Fn() -> Result<Client, PeerError> + Send + Sync + 'a;

/// A client, and how fast the tour goes.
struct Stage {
    client: Client,
    speed: f64,
}

impl Stage {
    fn ms(&self, ms: u32) -> Ms {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and is positive"
        )]
        Ms(((f64::from(ms) / self.speed) as u64).max(1))
    }

    async fn call(&self, tool: &str, arguments: &Value, options: &CallOptions) -> Result<Report, PeerError> {
        self.client.call(tool, &raw(arguments), options, |_| {}).await
    }

    async fn slow(&self, steps: u32, step_ms: u32, options: &CallOptions) -> Result<Report, PeerError> {
        self.call("slow", &json!({ "steps": steps, "step_ms": self.ms(step_ms).0 }), options).await
    }

    async fn cancel_after_third(&self) -> Result<Report, PeerError> {
        let cancel = CancellationToken::new();
        let options = CallOptions { cancel: cancel.clone(), ..with_progress() };
        let arguments = json!({ "steps": 8, "step_ms": self.ms(400).0 });
        let mut told = 0;
        let count = |_: &_| {
            told += 1;
            if told == 3 {
                cancel.cancel();
            }
        };
        self.client.call("slow", &raw(&arguments), &options, count).await
    }

    /// Two rounds: the question, and the call again with its answer.
    async fn question(&self, reports: &mut Vec<Report>) -> Result<(), PeerError> {
        let options =
            CallOptions { capabilities: json!({ "elicitation": { "form": {} } }), ..CallOptions::default() };
        let first = self.call("ask_user", &json!({}), &options).await?;
        let state = match &first.outcome {
            Outcome::InputRequired(result) => jsonrpc::at(result, &["requestState"]).map(ToOwned::to_owned),
            _ => None,
        };
        reports.push(first);
        tokio::time::sleep(self.ms(1500).into()).await;
        let answer = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
        let mut params = Params::from([
            ("name".to_owned(), raw("ask_user")),
            ("arguments".to_owned(), raw(&json!({}))),
            ("inputResponses".to_owned(), raw(&answer)),
        ]);
        params.extend(state.map(|state| ("requestState".to_owned(), state)));
        reports.push(self.client.request(methods::TOOLS_CALL, params, &options, |_| {}).await?);
        Ok(())
    }
}

fn with_progress() -> CallOptions {
    CallOptions { wants_progress: true, ..CallOptions::default() }
}
