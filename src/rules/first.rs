//! Rules that are not yet objects of their own.

pub(super) mod ends;
pub(super) mod pairing;

#[cfg(test)]
mod tests;
