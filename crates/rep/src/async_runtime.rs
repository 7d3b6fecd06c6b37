//! The runtime of commands that wait for models and processes.

use crate::failure::CliFailure;

/// Creates a runtime for commands that wait for models and processes.
pub(crate) fn build_runtime() -> Result<tokio::runtime::Runtime, CliFailure> {
    build_runtime_with_threads(2)
}

/// Creates a runtime with the given number of threads.
pub(crate) fn build_runtime_with_threads(
    threads: usize,
) -> Result<tokio::runtime::Runtime, CliFailure> {
    let made =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    made.map_err(|error| CliFailure::cannot_run(format!("no threads can be started: {error}")))
}
