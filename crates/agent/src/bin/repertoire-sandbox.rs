//! Enters a sandbox, then executes the program given as its arguments. See
//! `repertoire_agent::sandbox`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    repertoire_agent::sandbox::helper_main(&args)
}
