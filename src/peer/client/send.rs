//! How a request goes out, and goes out again where authorization was wanted first.

use std::sync::atomic::Ordering;

use super::auth::Tries;
use super::message::Outgoing;
use super::{CallOptions, Client, Heard, Link, PeerError, Report, follow};
use crate::machine::deadlines::Deadlines;
use crate::machine::request::ClientRequest;
use crate::peer::faults::Fault;

impl Client {
    /// The one place where requests go out: each under a new id, again where authorization was
    /// wanted and is there now. The time that it takes to come to it is not the server's.
    pub(super) async fn send(
        &self,
        write: impl Fn(i64) -> Outgoing + Send,
        options: &CallOptions,
        mut on_heard: impl FnMut(Heard<'_>) + Send,
    ) -> Result<Report, PeerError> {
        let mut tries = Tries::default();
        loop {
            let number = self.auth.as_ref().map(|auth| auth.number());
            let report = self.send_once(write(self.take_id()), options, &mut on_heard).await?;
            let (Some(auth), Some(number), Some(challenge)) = (&self.auth, number, &report.challenge) else {
                return Ok(report);
            };
            tokio::select! {
                admitted = auth.admit(challenge, number, &mut tries) => admitted?,
                () = options.cancel.cancelled() => return Ok(report),
            }
        }
    }

    async fn send_once(
        &self,
        outgoing: Outgoing,
        options: &CallOptions,
        mut on_heard: impl FnMut(Heard<'_>) + Send,
    ) -> Result<Report, PeerError> {
        on_heard(Heard::Sent(&outgoing.id));
        let max = self.desk.wrongs.maximum(options.max);
        let deadlines = Deadlines::new(self.clock.now(), options.idle, max)?;
        let exchange = match &self.link {
            Link::Stdio(link) => link.open(&outgoing).await?,
            Link::Http(link) => link.open(&outgoing)?,
        };
        let record = ClientRequest::new(deadlines);
        follow::follow(outgoing.id, exchange, record, self.clock, options, on_heard).await
    }

    pub(super) fn take_id(&self) -> i64 {
        let step = i64::from(!self.desk.wrongs.is_on(Fault::ReusesId));
        self.next_id.fetch_add(step, Ordering::Relaxed)
    }
}
