//! Enters a sandbox, then executes the program given as its arguments. See
//! `repertoire_sandbox::confinement`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    repertoire_sandbox::confinement::helper_main(&args)
}
