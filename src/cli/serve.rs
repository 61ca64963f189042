//! `midwire serve`: the reference server.

mod steering;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{Answers, ServeArgs, ServeTransport, ServerArgs, SpokenEra};
use super::{CLEAN, say};
use crate::peer::PeerError;
use crate::peer::faults::{Fault, Side};
use crate::peer::server::{self, AnswerMode, ENDPOINT, LedgerPlace, ServerEra, ServerOptions};
use crate::time::Ms;
use crate::trace::library::Library;
use steering::Steering;

/// Serves until the client ends or this process is told to.
pub(super) fn serve(args: &ServeArgs) -> anyhow::Result<u8> {
    if args.faults {
        return list_faults(Side::Server);
    }
    let Some(transport) = &args.transport else {
        bail!("say which transport: `serve stdio` or `serve http`")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(run(transport));
    // A read of standard input may still be waiting.
    runtime.shutdown_background();
    served?;
    Ok(CLEAN)
}

/// One line for each fault of a side.
pub(super) fn list_faults(side: Side) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    for fault in Fault::of(side) {
        let rules = fault.rules();
        let rules = if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) };
        writeln!(out, "{:28} {}{rules}", fault.as_str(), fault.says())?;
    }
    Ok(CLEAN)
}

async fn run(transport: &ServeTransport) -> anyhow::Result<()> {
    let cancel = CancellationToken::new();
    let (ServeTransport::Stdio(args) | ServeTransport::Http { server: args, .. }) = transport;
    let mut steering = Steering::set_up(&args.steering)?;
    let options = ServerOptions {
        faults: Arc::clone(&steering.faults),
        telemetry: steering.telemetry.clone(),
        state_key: args.state_key.as_deref().map(state_key).transpose()?,
        ..options(args)
    };
    let serving = async {
        match transport {
            ServeTransport::Stdio(_) => server::serve_stdio(options, cancel.clone()).await,
            ServeTransport::Http {
                listen, listen_anywhere, allow_origin, answers, keep_alive_ms, ..
            } => {
                if *listen_anywhere && !listen.ip().is_loopback() {
                    say(&format!("others on the network can reach {listen}, and call every tool"));
                }
                let options = ServerOptions {
                    mode: match answers {
                        Answers::Auto => AnswerMode::Auto,
                        Answers::Sse => AnswerMode::Sse,
                        Answers::Json => AnswerMode::Json,
                        Answers::JsonDeaf => AnswerMode::JsonDeaf,
                        Answers::LegacyStateless => AnswerMode::LegacyStateless,
                    },
                    keep_alive: Ms(*keep_alive_ms),
                    is_open_to_network: *listen_anywhere,
                    allowed_origins: allow_origin.clone(),
                    ..options
                };
                let (address, serving) = server::serve_http(*listen, options, cancel.clone()).await?;
                say(&format!("serving http://{address}{ENDPOINT}"));
                serving.await;
                Ok::<(), PeerError>(())
            }
        }
    };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
        // The serving side ends by itself now.
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        served = serving => served.map_err(Into::into),
        broken = steering.obey(cancel.clone()) => Err(broken),
        () = told => Ok(()),
    };
    steering.end();
    served
}

/// What a file holds, as the key that servers share.
fn state_key(file: &Path) -> anyhow::Result<Vec<u8>> {
    let key = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    ensure!(!key.is_empty(), "{} is empty; put something into it that nobody can guess", file.display());
    Ok(key)
}

fn options(args: &ServerArgs) -> ServerOptions {
    ServerOptions {
        ledger: ledger(args.ledger.as_deref()),
        max_progress_per_s: Some(args.max_progress).filter(|most| *most > 0),
        buffer: args.buffer,
        page_size: args.page_size,
        cleanup_limit: Ms(args.cleanup_limit_ms),
        era: match args.era {
            SpokenEra::Modern => ServerEra::Modern,
            SpokenEra::Legacy => ServerEra::Legacy,
            SpokenEra::Dual => ServerEra::Dual,
            SpokenEra::LenientLegacy => ServerEra::LenientLegacy,
            SpokenEra::SilentLegacy => ServerEra::SilentLegacy,
        },
        conformance: args.conformance,
        ..ServerOptions::default()
    }
}

/// The ledger asked for; else the user's. It is not opened before something is to be written.
fn ledger(file: Option<&Path>) -> LedgerPlace {
    match file {
        Some(file) if file.as_os_str() == "memory" => LedgerPlace::Memory,
        Some(file) => LedgerPlace::File(file.to_owned()),
        // Without a home there is no place where it could be found again.
        None => Library::of_user()
            .map_or(LedgerPlace::Memory, |library| LedgerPlace::File(library.state().join("ledger.sqlite3"))),
    }
}
