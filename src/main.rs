//! The `midwire` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    midwire::cli::main()
}
