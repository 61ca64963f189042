//! The place where one tap takes its orders: what a recipe says first, then what comes by the socket.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};

use super::before::Informed;
use super::{Control, Introduction};
use crate::app::session::Session;
use crate::app::sockets::{OwnerSocket, SocketAt};
use crate::command::{By, Command, Recipe, TakesOrders};

/// The control socket of a tap and its reader, which ends first.
#[derive(Debug)]
pub struct Desk {
    _control: Control,
    socket: OwnerSocket,
}

impl Desk {
    /// Opens it where it is wanted and says so in the session's announcement; `None`: nowhere.
    ///
    /// # Errors
    /// When the socket cannot be had.
    pub fn open(
        at: Option<&SocketAt>,
        session: &mut Session,
        tap: Arc<dyn TakesOrders>,
    ) -> anyhow::Result<Option<Desk>> {
        let Some(at) = at else { return Ok(None) };
        let mut socket = OwnerSocket::bind_at(at, &format!("{}.control", session.name()))?;
        let listener = socket.take_listener().context("the socket for orders is taken")?;
        let introduction =
            Introduction { session: session.name().to_owned(), label: session.label().map(str::to_owned) };
        let tap = Arc::new(Informed { tap, recording: session.recording() });
        let control = Control::start(listener, &introduction, tap)?;
        session.takes_orders_at(socket.path().to_owned());
        Ok(Some(Desk { _control: control, socket }))
    }

    /// Where orders go.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.socket.path()
    }
}

/// Arms the faults of a recipe, in their order.
///
/// # Errors
/// When one of them means nothing to this tap.
pub fn arm(recipe: &Recipe, tap: &dyn TakesOrders) -> anyhow::Result<()> {
    for rule in &recipe.faults {
        let armed = tap.order(&Command::Arm(rule.clone()), By::Recipe);
        armed.map_err(|refused| anyhow!("the fault `{rule}` cannot be armed: {refused}"))?;
    }
    Ok(())
}
