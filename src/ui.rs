//! Screens: one state, one kind of message, one loop.
//!
//! `update` takes a message and changes the state; `view` draws the state; neither does IO or
//! reads a clock, so that a script of messages gives the same screens live, replayed and in tests.
//! `run` is the loop around them and `term` alone touches the terminal. What the viewer wants from
//! outside it says as [`Command`](msg::Command); this room opens no recording and no socket.

pub mod msg;
pub mod run;
pub mod term;

mod act;
mod calls;
mod copy;
mod cursor;
mod detail;
mod filtering;
mod findings;
mod foot;
mod goto;
mod hands;
mod help;
mod home;
mod ink;
mod lane;
mod layout;
mod mouse;
mod outcome;
mod paint;
mod pick;
mod prompt;
mod session;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod top;
mod units;
mod update;
mod view;
mod words;

pub use state::State;
pub use text::Charset;
pub use update::update;
pub use view::view;
