//! The `midwire` binary.

fn main() {}
