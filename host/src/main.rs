//! The program. All code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kiso::cli::main()
}
