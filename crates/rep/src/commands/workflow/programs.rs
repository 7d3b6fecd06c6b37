//! Running what a workflow asks for, with an end by Ctrl-C.

use camino::Utf8Path;
use repertoire_agent::workplace::Workplace;
use tokio_util::sync::CancellationToken;

use crate::cli::Ctx;
use crate::failure::Failure;
use crate::running::runtime;

/// Where programs run: in the folder of the run, as an agent's commands do.
pub(super) fn workplace(ctx: &Ctx<'_>, folder: &Utf8Path) -> Result<Workplace, Failure> {
    let spill = ctx.env.cache_dir().join("output").join("workflows");
    let mut workplace = Workplace::new(folder, spill, ctx.sandbox()?);
    workplace.environment = ctx.env.tool_environment(false);
    Ok(workplace)
}

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
