//! The tap on the pipes of a child process.
