//! The sandbox helper for the tests of this crate: confines itself, then becomes the program that it was given.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    repertoire_sandbox::confinement::helper_main(&args)
}
