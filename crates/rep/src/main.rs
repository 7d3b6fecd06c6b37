//! `rep`: arguments in, output and an exit code out. Everything else is the library's.

use std::process::ExitCode;

use repertoire_cli::cli;
use repertoire_cli::env::{Env, SANDBOX_WORD};

/// Thousands of small records are made by several threads at once. The system's allocator grows its heap
/// for each thread a page at a time, which costs more than reading the files.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The walls of the sandbox bind the thread that puts them up, so nothing may come before.
    if std::env::args_os().nth(1).is_some_and(|word| word == SANDBOX_WORD) {
        let args: Vec<String> =
            std::env::args_os().skip(2).map(|arg| arg.to_string_lossy().into_owned()).collect();
        return repertoire_sandbox::confinement::helper_main(&args);
    }
    repertoire_sandbox::process::install_supervisor(Env::sandbox_helper());
    let env = match Env::of_process() {
        Ok(env) => env,
        Err(failure) => return cli::report_early(&failure),
    };
    cli::main(&env, std::env::args_os())
}
