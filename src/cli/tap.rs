//! `midwire stdio` and `midwire http`.

use std::io::IsTerminal as _;

use super::args::{HttpArgs, Screen, StdioArgs, TapArgs};
use super::{CLEAN, say, view};
use crate::app::session::{About, Record};
use crate::app::sockets::SocketAt;
use crate::app::taps::{self, EndSignals};
use crate::app::viewer::{self, Target};
use crate::app::{policy, recipe};
use crate::proxy::http::{HttpOptions, Upstream};
use crate::proxy::stdio;
use crate::time::Ms;

/// Runs the stdio tap; its exit code is the server's.
pub(super) fn stdio(args: &StdioArgs) -> anyhow::Result<u8> {
    let options = stdio::Options {
        command: args.command.clone(),
        waits: stdio::Waits {
            term: Ms(args.eof_wait_ms),
            kill: Ms(args.term_wait_ms),
            ..stdio::Waits::default()
        },
        telemetry: None,
    };
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let about = About { command, ..about(&args.tap)? };
    let status = taps::run_stdio(&options, about, say)?;
    // 128 + n fits; a status above 255 does not exist.
    Ok(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
}

/// Runs the HTTP tap, with a screen where there is one and something to show.
pub(super) fn http(args: &HttpArgs, screen: &Screen) -> anyhow::Result<u8> {
    let upstream: Upstream = args.upstream.parse()?;
    let options = HttpOptions {
        upstream,
        listen: args.listen,
        is_open_to_network: args.listen_anywhere,
        allowed_hosts: args.allow_host.clone(),
        rewrites_origin: args.rewrite_origin,
        is_upstream_http2: args.http2,
        extra_ca: args.ca.clone(),
    };
    let about = About { upstream: Some(args.upstream.clone()), ..about(&args.tap)? };
    let has_screen = !args.headless && std::io::stdout().is_terminal() && about.record != Record::Off;
    // Before anybody can know of the tap: whoever does may end it.
    let signals = if has_screen { None } else { Some(EndSignals::listen()?) };
    let tap = taps::start_http(options, about)?;
    if args.listen_anywhere && !args.listen.ip().is_loopback() {
        say(&format!("others on the network can reach {}, and read and change what passes", args.listen));
    }
    if let Some(trouble) = &tap.upstream_trouble {
        say(&format!("cannot reach {} yet: {trouble}; going on, start it when you like", args.upstream));
    }
    match (&tap.recording_trouble, &tap.recording) {
        (Some(trouble), _) => say(&format!("not recording: {trouble}")),
        (None, Some(file)) => say(&format!("recording to {}", file.display())),
        (None, None) => {}
    }
    match (&tap.telemetry_trouble, &tap.telemetry) {
        (Some(trouble), _) => say(&format!("the server can tell nothing about its work: {trouble}")),
        (None, Some(socket)) => {
            say(&format!("the server may tell about its work at {}", socket.display()));
        }
        (None, None) => {}
    }
    if let Some(trouble) = &tap.control_trouble {
        say(&format!("no orders are taken: {trouble}"));
    }
    say(&format!("give clients {} (passed on to {})", tap.client_url, args.upstream));
    let code = match (tap.recording.clone(), signals) {
        (Some(recording), None) => {
            let welcome = format!("give clients {} (passed on to {})", tap.client_url, args.upstream);
            viewer::run(Target::OwnTap { recording, welcome }, &view::looks(screen)).map(view::code)
        }
        (_, signals) => signals.map_or_else(EndSignals::listen, Ok).map(|signals| {
            signals.wait();
            CLEAN
        }),
    };
    tap.stop();
    code
}

fn about(args: &TapArgs) -> anyhow::Result<About> {
    let recipe = args.faults.as_deref().map(recipe::load).transpose()?.unwrap_or_default();
    Ok(About {
        record: Record::from_option(args.record.as_deref()),
        label: args.label.clone(),
        telemetry: args.telemetry.clone(),
        control: match args.control.as_deref() {
            None => Some(SocketAt::Default),
            Some("off") => None,
            Some(path) => Some(SocketAt::Path(path.into())),
        },
        recipe,
        seed: args.seed,
        policy: args.policy.as_deref().map(policy::load).transpose()?.unwrap_or_default(),
        ..About::default()
    })
}
