//! Running what a workflow asks for, with an end by Ctrl-C.

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::running::runtime;

/// Waits for work that Ctrl-C ends.
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
