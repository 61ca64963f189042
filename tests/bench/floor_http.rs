//! The least that a reverse proxy can be: one kept-alive connection to the server for each one of
//! a client, bodies passed frame by frame, nothing looked at. The HTTP tap is measured against it.
//!
//! `floor-http LISTEN UPSTREAM`, such as `floor-http 127.0.0.1:18401 127.0.0.1:18400`.
#![allow(clippy::print_stderr, reason = "a program of its own, for people who measure")]

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

type Sender = SendRequest<Incoming>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream] = arguments.as_slice() else {
        eprintln!("usage: floor-http LISTEN UPSTREAM (both as ADDRESS:PORT)");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(listen, Rc::from(upstream.as_str())))
}

async fn serve(listen: &str, upstream: Rc<str>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        let (upstream, kept) = (upstream.clone(), Rc::<RefCell<Option<Sender>>>::default());
        spawn_local(async move {
            let service = service_fn(move |request| pass(request, upstream.clone(), kept.clone()));
            let io = TokioIo::new(client);
            // How a connection ended is nothing that this program looks at.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

async fn pass(
    request: Request<Incoming>,
    upstream: Rc<str>,
    kept: Rc<RefCell<Option<Sender>>>,
) -> Result<Response<Incoming>, Box<dyn Error + Send + Sync>> {
    let idle = kept.borrow_mut().take().filter(|sender| !sender.is_closed());
    let mut sender = if let Some(sender) = idle { sender } else { connect(&upstream).await? };
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    *kept.borrow_mut() = Some(sender);
    Ok(response)
}

async fn connect(upstream: &str) -> Result<Sender, Box<dyn Error + Send + Sync>> {
    let server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(server)).await?;
    spawn_local(connection);
    Ok(sender)
}
