//! A port of this machine to which a browser brings the answer (RFC 8252 §7.3).

use std::convert::Infallible;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::peer::client::auth::error::AuthError;
use crate::peer::client::auth::form;
use crate::time::Ms;

const PATH: &str = "/callback";

/// Longest wait for a person to sign in. ours: five minutes.
const LIMIT: Ms = Ms(300_000);

/// Answers waiting to be looked at; one is enough.
const CAPACITY: usize = 4;

/// What the browser shows in the end.
const TAKEN: &str = "midwire has the answer. This window can be closed.\n";
const STRANGE: &str = "This is no answer to the sign-in that is under way. Nothing was done with it.\n";

/// The port, open as long as the client lives.
#[derive(Debug)]
pub(in crate::peer::client::auth) struct Landing {
    listener: TcpListener,
    redirect_uri: String,
}

impl Landing {
    /// Opens the port; 0: any free one.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) async fn open(port: u16) -> Result<Landing, AuthError> {
        let failed = |error: std::io::Error| AuthError::NotSignedIn {
            why: format!("port {port} of this machine, to which the answer comes, cannot be used: {error}"),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Landing { listener, redirect_uri: format!("http://{address}{PATH}") })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the answer with this state. Others are shown the door: any page in the browser may
    /// send something here.
    ///
    /// # Errors
    /// When it does not come in time.
    pub(super) async fn wait(&self, state: &str) -> Result<String, AuthError> {
        let (sender, mut answers) = mpsc::channel(CAPACITY);
        let connections = TaskTracker::new();
        let accepting = async {
            loop {
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        // A browser opens connections that it may never use, so each has its own task.
                        connections.spawn(serve(stream, state.to_owned(), sender.clone()));
                    }
                    Err(error) => return error,
                }
            }
        };
        let answer = async {
            tokio::select! {
                answer = answers.recv() => Ok(answer.unwrap_or_default()),
                error = accepting => Err(AuthError::NotSignedIn { why: error.to_string() }),
            }
        };
        timeout(LIMIT.into(), answer)
            .await
            .unwrap_or_else(|_| Err(AuthError::NotSignedIn { why: "no answer came in time".to_owned() }))
    }
}

async fn serve(stream: TcpStream, state: String, answers: mpsc::Sender<String>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (status, text) = match answer(&request, &state) {
            Some(query) => {
                // Full: another one came first.
                let _ = answers.try_send(query);
                (StatusCode::OK, TAKEN)
            }
            None => (StatusCode::BAD_REQUEST, STRANGE),
        };
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
        async move { Ok::<_, Infallible>(response) }
    });
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection of a browser ended");
    }
}

/// The query of a request that is the answer.
fn answer(request: &Request<Incoming>, state: &str) -> Option<String> {
    let query = request.uri().query().filter(|_| request.uri().path() == PATH)?;
    let is_ours = form::decode(query)?.iter().any(|(name, value)| name == "state" && value == state);
    is_ours.then(|| query.to_owned())
}
