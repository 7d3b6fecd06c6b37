//! Programs that the engine runs for a workflow, a check or a plan. They run like an agent's
//! commands: in the sandbox if there is one, in their own process group, with a timeout.

use std::time::Duration;

use crate::confinement::{NetworkAccess, ProtectedPathChange, ProtectedPathGuard};
use crate::process::{
    self, OutputFlow, ProcessError, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec,
    TerminationSettings,
};
use crate::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

use crate::limits::PROGRAM_GRACE;

/// A program to run.
pub struct EngineProgram {
    pub program: String,
    pub args: Vec<String>,
    /// Added to the workplace's environment, overriding variables of the same name.
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    pub network: NetworkAccess,
    /// Maximum number of bytes kept of each output stream.
    pub kept_bytes_max: usize,
}

pub struct EngineProgramResult {
    pub ended: ProcessResult,
    /// Changes that the program made to protected paths, and whether they were reverted.
    pub changes: Vec<ProtectedPathChange>,
}

/// Runs a program until it exits or times out. `on_line` gets each line of its standard output.
pub async fn run(
    program: EngineProgram,
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
    on_line: &mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
) -> Result<EngineProgramResult, ProcessError> {
    let name = program.program.clone();
    // Without a sandbox, the guard reverts the program's changes to protected paths afterwards.
    let place = workplace.clone();
    let (spawn, guard) = run_blocking(&name, move || {
        let guard = ProtectedPathGuard::for_workplace(&place);
        if let Some(refusal) = guard.refusal() {
            let source = std::io::Error::other(refusal);
            return Err(ProcessError::Start { program: program.program, source });
        }
        let spawn = place.sandbox.confine(build_spawn(&program, &place), &place, program.network);
        Ok((spawn, guard))
    })
    .await??;
    let ended = process::run(&spawn, cancel, on_line).await;
    let changes = run_blocking(&name, move || guard.restore_paths()).await?;
    Ok(EngineProgramResult { ended: ended?, changes })
}

fn build_spawn(program: &EngineProgram, workplace: &RunWorkplace) -> ProcessSpec {
    let mut environment = workplace.environment.clone();
    environment.retain(|(name, _)| !program.environment.iter().any(|(added, _)| added == name));
    environment.extend(program.environment.iter().cloned());
    ProcessSpec {
        program: program.program.clone(),
        args: program.args.clone(),
        dir: workplace.dir.clone(),
        environment,
        stdin: ProcessInput::Closed,
        limits: ProcessLimits {
            idle: None,
            absolute: program.timeout,
            grace: PROGRAM_GRACE,
            kept_bytes_max: program.kept_bytes_max,
        },
        termination: TerminationSettings::default(),
    }
}

async fn run_blocking<T: Send + 'static>(
    program: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ProcessError::Start {
        program: program.to_owned(),
        source: std::io::Error::other(format!("protected paths could not be looked at: {error}")),
    })
}
