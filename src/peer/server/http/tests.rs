//! Exchanges without sockets, on paused time.
