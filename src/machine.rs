//! What a correct participant does: deadlines, and the life of one request as its server and as
//! its client know it. Pure: time comes in as whole milliseconds, nothing is read from a clock,
//! a socket or a file.

pub mod deadlines;
pub mod policy;
pub mod request;
