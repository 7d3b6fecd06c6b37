//! The order in which checks run.

use futures_util::stream::{FuturesUnordered, StreamExt};
use repertoire_sandbox::workplace::Workplace;
use tokio_util::sync::CancellationToken;

use super::run::{STOPPED, run as run_one, skipped};
use super::{Check, CheckEvent, CheckOptions, CheckResult, CheckStatus};

/// Runs valid checks, each as soon as those it depends on have passed.
pub(super) async fn run(
    checks: &[Check],
    workplace: &Workplace,
    cancel: &CancellationToken,
    on_event: &(dyn Fn(CheckEvent) + Sync),
    options: CheckOptions,
) -> Vec<CheckResult> {
    let mut states: Vec<State> = checks.iter().map(|_| State::Waiting).collect();
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
            let result = skipped(&checks[at], &why);
            on_event(CheckEvent::Ended(result.clone()));
            states[at] = State::Over(result);
        }
        while running.len() < options.parallel.max(1)
            && let Some(at) = next_ready(checks, &states)
        {
            states[at] = State::Running;
            let one = run_one(&checks[at], workplace, cancel, on_event);
            running.push(async move { (at, one.await) });
        }
        let Some((at, result)) = running.next().await else { break };
        on_event(CheckEvent::Ended(result.clone()));
        states[at] = State::Over(result);
    }
    states.into_iter().filter_map(State::over).collect()
}

enum State {
    Waiting,
    Running,
    Over(CheckResult),
}

impl State {
    fn over(self) -> Option<CheckResult> {
        match self {
            State::Over(result) => Some(result),
            State::Waiting | State::Running => None,
        }
    }
}

/// A waiting check whose dependencies have all passed.
fn next_ready(checks: &[Check], states: &[State]) -> Option<usize> {
    let passed = |name: &String| state(checks, states, name).is_some_and(has_passed);
    (0..checks.len()).find(|at| {
        matches!(states[*at], State::Waiting) && checks[*at].depends_on.iter().all(passed)
    })
}

/// The reason to start no more checks, if a critical one has failed.
fn first_red(states: &[State]) -> Option<String> {
    states.iter().find(|state| is_red(state)).and_then(|state| match state {
        State::Over(result) => Some(format!("`{}` is red, and the first red ends it", result.name)),
        State::Waiting | State::Running => None,
    })
}

/// A waiting check that cannot run, and the reason: no more checks are started, or a dependency did
/// not pass.
fn next_skipped(checks: &[Check], states: &[State], over: Option<&str>) -> Option<(usize, String)> {
    let waiting = (0..checks.len()).filter(|at| matches!(states[*at], State::Waiting));
    let lost = |name: &&String| state(checks, states, name).is_some_and(is_lost);
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

fn state<'a>(checks: &[Check], states: &'a [State], name: &str) -> Option<&'a State> {
    checks.iter().position(|check| check.name == name).map(|at| &states[at])
}

fn is_red(state: &State) -> bool {
    matches!(state, State::Over(result) if result.critical
        && matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut))
}

/// Returns true if a check is over and has not passed.
fn is_lost(state: &State) -> bool {
    matches!(state, State::Over(_)) && !has_passed(state)
}

fn has_passed(state: &State) -> bool {
    matches!(state, State::Over(result) if result.status == CheckStatus::Passed)
}
