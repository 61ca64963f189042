//! midwire: a terminal debugger and traffic inspector for the Model Context Protocol.

pub mod app;
pub mod cli;
pub mod config;
pub mod event;
pub mod filter;
pub mod machine;
pub mod model;
pub mod peer;
pub mod proxy;
pub mod report;
pub mod rules;
pub mod spec;
pub mod time;
pub mod trace;
pub mod ui;
pub mod wire;
