//! The order in which checks run.

use futures_util::stream::{FuturesUnordered, StreamExt};
use repertoire_sandbox::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

use super::run::{STOPPED, run_check as run_one, skipped_result};
use super::{CheckDefinition, CheckEvent, CheckOptions, CheckRunResult, CheckStatus};

/// Runs valid checks, each as soon as those it depends on have passed.
pub(super) async fn run_scheduled(
    checks: &[CheckDefinition],
    workplace: &RunWorkplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
    options: CheckOptions,
) -> Vec<CheckRunResult> {
    let mut states: Vec<ScheduledCheckState> =
        checks.iter().map(|_| ScheduledCheckState::Waiting).collect();
    let mut running = FuturesUnordered::new();
    loop {
        let over = if cancel.is_cancelled() {
            Some(STOPPED.to_owned())
        } else if options.fail_fast {
            first_red(&states)
        } else {
            None
        };
        while let Some((at, why)) = next_skipped(checks, &states, over.as_deref()) {
            let result = skipped_result(&checks[at], &why);
            on_event(CheckEvent::Ended(result.clone()));
            states[at] = ScheduledCheckState::Over(result);
        }
        while running.len() < options.parallel.max(1)
            && let Some(at) = next_ready(checks, &states)
        {
            states[at] = ScheduledCheckState::Running;
            let one = run_one(&checks[at], workplace, cancel, on_event);
            running.push(async move { (at, one.await) });
        }
        let Some((at, result)) = running.next().await else { break };
        on_event(CheckEvent::Ended(result.clone()));
        states[at] = ScheduledCheckState::Over(result);
    }
    states.into_iter().filter_map(ScheduledCheckState::into_result).collect()
}

enum ScheduledCheckState {
    Waiting,
    Running,
    Over(CheckRunResult),
}

impl ScheduledCheckState {
    fn into_result(self) -> Option<CheckRunResult> {
        match self {
            ScheduledCheckState::Over(result) => Some(result),
            ScheduledCheckState::Waiting | ScheduledCheckState::Running => None,
        }
    }
}

/// A waiting check whose dependencies have all passed.
fn next_ready(checks: &[CheckDefinition], states: &[ScheduledCheckState]) -> Option<usize> {
    let passed = |name: &String| state_of(checks, states, name).is_some_and(has_passed);
    (0..checks.len()).find(|at| {
        matches!(states[*at], ScheduledCheckState::Waiting)
            && checks[*at].depends_on.iter().all(passed)
    })
}

/// The reason to start no more checks, if a critical one has failed.
fn first_red(states: &[ScheduledCheckState]) -> Option<String> {
    states.iter().find(|state| is_red(state)).and_then(|state| match state {
        ScheduledCheckState::Over(result) => {
            Some(format!("`{}` is red, and the first red ends it", result.name))
        }
        ScheduledCheckState::Waiting | ScheduledCheckState::Running => None,
    })
}

/// A waiting check that cannot run, and the reason: no more checks are started, or a dependency did
/// not pass.
fn next_skipped(
    checks: &[CheckDefinition],
    states: &[ScheduledCheckState],
    over: Option<&str>,
) -> Option<(usize, String)> {
    let waiting =
        (0..checks.len()).filter(|at| matches!(states[*at], ScheduledCheckState::Waiting));
    let lost = |name: &&String| state_of(checks, states, name).is_some_and(is_lost);
    waiting.into_iter().find_map(|at| {
        let lost = checks[at].depends_on.iter().find(lost);
        let lost = lost.map(|name| format!("`{name}` did not pass"));
        // A failed dependency is the better explanation, unless the whole run was stopped.
        let why = match over {
            Some(STOPPED) => Some(STOPPED.to_owned()),
            over => lost.or_else(|| over.map(str::to_owned)),
        };
        why.map(|why| (at, why))
    })
}

fn state_of<'a>(
    checks: &[CheckDefinition],
    states: &'a [ScheduledCheckState],
    name: &str,
) -> Option<&'a ScheduledCheckState> {
    checks.iter().position(|check| check.name == name).map(|at| &states[at])
}

fn is_red(state: &ScheduledCheckState) -> bool {
    matches!(state, ScheduledCheckState::Over(result) if result.critical
        && matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut))
}

/// Returns true if a check is over and has not passed.
fn is_lost(state: &ScheduledCheckState) -> bool {
    matches!(state, ScheduledCheckState::Over(_)) && !has_passed(state)
}

fn has_passed(state: &ScheduledCheckState) -> bool {
    matches!(state, ScheduledCheckState::Over(result) if result.status == CheckStatus::Passed)
}
