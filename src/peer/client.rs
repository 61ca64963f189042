//! The reference client: spawns a server or connects to a URL.
