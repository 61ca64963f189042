//! What a person does to the traffic of the tap: orders are taken here and carried out by the
//! connections that they are for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::command::engine::Engine;
use crate::command::{Applied, By, Command, Refused, Status, TakesOrders};
use crate::event::Transport;
use crate::event::tape::Tape;

/// Takes the orders for one tap.
#[derive(Debug)]
pub struct Hands {
    #[expect(dead_code, reason = "effects are told on it")]
    tape: Tape,
    engine: Mutex<Engine>,
}

impl Hands {
    /// Of a tap that tells its effects on `tape`; `seed`: from which rules without a seed of their
    /// own draw. Nothing is armed.
    #[must_use]
    pub fn new(tape: Tape, seed: u64) -> Arc<Hands> {
        Arc::new(Hands { tape, engine: Mutex::new(Engine::new(seed)) })
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakesOrders for Hands {
    fn order(&self, command: &Command, _by: By) -> Result<Applied, Refused> {
        match command {
            Command::Status => {
                let rules = self.engine().armed().cloned().collect();
                let status = Some(Status { rules, ..Status::default() });
                Ok(Applied { status, ..Applied::default() })
            }
            _ => Err(Refused::NotHere("the tap on HTTP does not do this".to_owned())),
        }
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }
}
