//! Runs asynchronous work that Ctrl-C cancels.

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::running::runtime;

/// Runs work to its end, and cancels its token on Ctrl-C.
pub(super) fn attended<T>(
    work: impl AsyncFnOnce(&CancellationToken) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let cancel = CancellationToken::new();
    runtime()?.block_on(async {
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
