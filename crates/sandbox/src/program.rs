//! Programs that the engine runs for a workflow, a check or a plan. They run as an agent's commands do: in the sandbox where
//! there is one, in a group of their own, with an end.

use std::time::Duration;

use crate::process::{self, Ended, Flow, ProcessError, ProcessLimits, Spawn, Stdin, Termination};
use crate::confinement::{Change, Guard, Network};
use crate::workplace::Workplace;
use tokio_util::sync::CancellationToken;

use crate::limits::PROGRAM_GRACE;

/// A program to run.
pub struct Program {
    pub program: String,
    pub args: Vec<String>,
    /// Added to the environment of the workplace.
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    pub network: Network,
    /// Most of each stream that is kept.
    pub kept_bytes_max: usize,
}

/// What a program did.
pub struct Ran {
    pub ended: Ended,
    /// What it did to protected paths, and what became of that.
    pub changes: Vec<Change>,
}

/// Runs a program to its end; `on_line` is given the lines of its standard output.
pub async fn run(
    program: Program,
    workplace: &Workplace,
    cancel: &CancellationToken,
    on_line: &mut (dyn FnMut(&[u8]) -> Flow + Send),
) -> Result<Ran, ProcessError> {
    let name = program.program.clone();
    // What a program does to protected paths is undone where no sandbox has kept it from them.
    let place = workplace.clone();
    let (spawn, guard) = blocking(&name, move || {
        let guard = Guard::before(&place);
        let spawn = place.sandbox.confine(spawn(&program, &place), &place, program.network);
        (spawn, guard)
    })
    .await?;
    let ended = process::run(&spawn, cancel, on_line).await;
    let changes = blocking(&name, move || guard.after()).await?;
    Ok(Ran { ended: ended?, changes })
}

fn spawn(program: &Program, workplace: &Workplace) -> Spawn {
    let mut environment = workplace.environment.clone();
    environment.retain(|(name, _)| !program.environment.iter().any(|(added, _)| added == name));
    environment.extend(program.environment.iter().cloned());
    Spawn {
        program: program.program.clone(),
        args: program.args.clone(),
        dir: workplace.dir.clone(),
        environment,
        stdin: Stdin::Closed,
        limits: ProcessLimits {
            idle: None,
            absolute: program.timeout,
            grace: PROGRAM_GRACE,
            kept_bytes_max: program.kept_bytes_max,
        },
        termination: Termination::default(),
    }
}

async fn blocking<T: Send + 'static>(
    program: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ProcessError::Start {
        program: program.to_owned(),
        source: std::io::Error::other(format!("protected paths could not be looked at: {error}")),
    })
}
