//! Runs asynchronous work that Ctrl-C cancels.

use tokio_util::sync::CancellationToken;

use crate::async_runtime::build_runtime;
use crate::failure::CliFailure;

/// Runs work to its end, and cancels its token on Ctrl-C.
pub(super) fn run_until_interrupted<T>(
    work: impl AsyncFnOnce(&CancellationToken) -> Result<T, CliFailure>,
) -> Result<T, CliFailure> {
    let cancel = CancellationToken::new();
    build_runtime()?.block_on(async {
        let stop = cancel.clone();
        let watch = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.cancel();
            }
        });
        let done = work(&cancel).await;
        watch.abort();
        done
    })
}
