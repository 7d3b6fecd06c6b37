//! `rep`: arguments in, output and an exit code out. Everything else is the library's.

use std::process::ExitCode;

use repertoire::cli;
use repertoire::env::Env;

/// Thousands of small records are made by several threads at once. The system's allocator grows its heap
/// for each thread a page at a time, which costs more than reading the files.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let env = match Env::of_process() {
        Ok(env) => env,
        Err(failure) => return cli::report_early(&failure),
    };
    cli::main(&env, std::env::args_os())
}
