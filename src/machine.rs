//! What a correct participant does: the life of a request as its server and as its client know it,
//! deadlines, cancel signals, durable tasks, the queue of a slow reader, retries, the wait before
//! one, what to do after a lost stream; and what is agreed outside the wire. Pure: time comes in as
//! whole milliseconds, nothing is read from a clock, a socket or a file.

pub mod backoff;
pub mod buffer;
pub mod cancel;
pub mod coordinator;
pub mod deadlines;
pub mod fingerprint;
pub mod policy;
pub mod reconnect;
pub mod request;
pub mod retry;
pub mod task;
