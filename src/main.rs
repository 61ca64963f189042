//! The `midwire` program: everything is in the library.

use std::process::ExitCode;

use midwire::proxy::child::guard;

fn main() -> ExitCode {
    // The guard of a stdio server is this program again; it needs no arguments read.
    if guard::is_asked_for(std::env::args_os()) {
        guard::run();
        return ExitCode::SUCCESS;
    }
    midwire::cli::main()
}
