//! The demo: reference client → tap → reference server in one process, on loopback ports of the
//! system's choice, with a guided tour that is told in the recording itself as `mark` events.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::session::{About, Record};
use super::sockets::SocketAt;
use super::taps::{self, RunningHttp};
use crate::event::tape::Tape;
use crate::event::{Dir, What};
use crate::peer::client::Client;
use crate::peer::server::{self, ENDPOINT, ServerOptions};
use crate::peer::tour::{self, TourOptions};
use crate::proxy::http::{HttpOptions, Upstream};

/// Loopback, any free port.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A demo that runs on threads of its own.
#[derive(Debug)]
pub struct Demo {
    tap: RunningHttp,
    stop: CancellationToken,
    tour: JoinHandle<anyhow::Result<()>>,
    server: JoinHandle<()>,
}

/// Starts server, tap and tour; `tell` hears what the tour says, as the recording does.
///
/// # Errors
/// When no loopback port can be had or the recording cannot be written.
pub fn start(
    options: TourOptions,
    record: Record,
    tell: impl FnMut(&str) + Send + 'static,
) -> anyhow::Result<Demo> {
    let stop = CancellationToken::new();
    let (address, server) = start_server(stop.clone())?;
    let url = format!("http://{address}{ENDPOINT}");
    let http = HttpOptions {
        upstream: url.parse::<Upstream>()?,
        listen: ANY_PORT,
        is_open_to_network: false,
        allowed_hosts: Vec::new(),
        rewrites_origin: false,
        is_upstream_http2: false,
        extra_ca: None,
    };
    let about = About {
        record,
        label: Some("demo".to_owned()),
        upstream: Some(url),
        control: Some(SocketAt::Default),
        ..About::default()
    };
    let tap = taps::start_http(http, about)?;
    let tour = {
        let (url, tape, stop) = (tap.client_url.clone(), tap.tape.clone(), stop.clone());
        let run = move || run_tour(&url, &tape, options, &stop, tell);
        std::thread::Builder::new().name("tour".to_owned()).spawn(run).context("cannot start the tour")?
    };
    Ok(Demo { tap, stop, tour, server })
}

/// The reference server on a thread of its own; it listens when this returns.
fn start_server(stop: CancellationToken) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let (tell, told) = mpsc::channel();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result: anyhow::Result<()> = runtime.map_err(Into::into).and_then(|runtime| {
            runtime.block_on(async {
                // The tour sets the pace, and may be told to hurry.
                let options = ServerOptions { max_progress_per_s: None, ..ServerOptions::default() };
                let (address, serving) = server::serve_http(ANY_PORT, options, stop).await?;
                // The receiver waits for exactly this message.
                let _ = tell.send(Ok(address));
                serving.await;
                Ok(())
            })
        });
        if let Err(error) = result {
            let _ = tell.send(Err(error));
        }
    };
    let thread = std::thread::Builder::new().name("reference server".to_owned()).spawn(run);
    let thread = thread.context("cannot start the reference server")?;
    let address = told.recv().context("the reference server ended before it listened")??;
    Ok((address, thread))
}

fn run_tour(
    url: &str,
    tape: &Tape,
    options: TourOptions,
    stop: &CancellationToken,
    mut tell: impl FnMut(&str) + Send,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let say = |text: &str| {
        tell(text);
        tape.push_http(Dir::Tap, None, None, What::Mark(text.to_owned()));
    };
    runtime.block_on(tour::run(|| Client::http(url), options, stop, say))?;
    Ok(())
}

impl Demo {
    /// The file that is being written.
    #[must_use]
    pub fn recording(&self) -> Option<&Path> {
        self.tap.recording.as_deref()
    }

    /// Waits until the tour is over, then ends everything.
    ///
    /// # Errors
    /// When a call of the tour could not be sent.
    pub fn wait(self) -> anyhow::Result<()> {
        let toured = self.tour.join();
        self.stop.cancel();
        self.tap.stop();
        // A panic of either was reported by its thread.
        let _ = self.server.join();
        toured.unwrap_or(Ok(()))
    }

    /// Ends everything now.
    ///
    /// # Errors
    /// As for [`Demo::wait`].
    pub fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.wait()
    }
}
