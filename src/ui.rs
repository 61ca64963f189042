//! Screens. Views read the state and draw; updates change the state and return what is to be done; only `term.rs` touches the terminal.
