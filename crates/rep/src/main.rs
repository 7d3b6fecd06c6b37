//! `rep`: passes the arguments to the library and returns its exit code.

use std::process::ExitCode;

use repertoire::env::SANDBOX_WORD;
use repertoire_cli::cli;
use repertoire_cli::env::CliEnvironment;

/// Several threads allocate thousands of small records at once. The system's allocator grows a heap
/// per thread, a page at a time, which costs more than reading the files.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The sandbox restricts the calling thread, so this must run before any other thread starts.
    if std::env::args_os().nth(1).is_some_and(|word| word == SANDBOX_WORD) {
        let args: Vec<String> =
            std::env::args_os().skip(2).map(|arg| arg.to_string_lossy().into_owned()).collect();
        return repertoire_sandbox::confinement::helper_main(&args);
    }
    let env = match CliEnvironment::of_process() {
        Ok(env) => env,
        Err(failure) => return cli::report_early(&failure),
    };
    repertoire_sandbox::process::install_supervisor(env.sandbox_helper());
    cli::main(&env, std::env::args_os())
}
