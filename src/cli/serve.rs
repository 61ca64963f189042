//! `midwire serve`: the reference server.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{Answers, ServeArgs, ServeTransport, ServerArgs};
use super::{CLEAN, say};
use crate::peer::PeerError;
use crate::peer::server::{self, AnswerMode, ENDPOINT, ServerOptions};
use crate::time::Ms;

/// Serves until the client ends or this process is told to.
pub(super) fn serve(args: &ServeArgs) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(run(args));
    // A read of standard input may still be waiting.
    runtime.shutdown_background();
    served?;
    Ok(CLEAN)
}

async fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let cancel = CancellationToken::new();
    let serving = async {
        match &args.transport {
            ServeTransport::Stdio(server) => server::serve_stdio(options(server), cancel.clone()).await,
            ServeTransport::Http { listen, allow_origin, answers, keep_alive_ms, server } => {
                let options = ServerOptions {
                    mode: match answers {
                        Answers::Auto => AnswerMode::Auto,
                        Answers::Sse => AnswerMode::Sse,
                        Answers::Json => AnswerMode::Json,
                    },
                    keep_alive: Ms(*keep_alive_ms),
                    allowed_origins: allow_origin.clone(),
                    ..options(server)
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
    tokio::select! {
        served = serving => served?,
        () = told => {}
    }
    Ok(())
}

fn options(args: &ServerArgs) -> ServerOptions {
    ServerOptions {
        max_progress_per_s: args.max_progress,
        page_size: args.page_size,
        ..ServerOptions::default()
    }
}
