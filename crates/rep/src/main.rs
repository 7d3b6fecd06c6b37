//! `rep`: arguments in, output and an exit code out. Everything else is the library's.

use std::process::ExitCode;

use repertoire::cli;
use repertoire::env::Env;

fn main() -> ExitCode {
    let env = match Env::of_process() {
        Ok(env) => env,
        Err(failure) => return cli::report_early(&failure),
    };
    cli::main(&env, std::env::args_os())
}
