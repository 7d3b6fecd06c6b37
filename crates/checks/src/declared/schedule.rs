//! Which check runs when.

use futures_util::stream::{FuturesUnordered, StreamExt};
use repertoire_sandbox::workplace::Workplace;
use tokio_util::sync::CancellationToken;

use super::run::{STOPPED, run as run_one, skipped};
use super::{Check, CheckEvent, CheckOptions, CheckResult, CheckStatus};

/// Runs checks that make sense; each as soon as what it depends on has passed.
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
        let over = match cancel.is_cancelled() {
            true => Some(STOPPED.to_owned()),
            false if options.fail_fast => first_red(&states),
            false => None,
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

/// A check that waits for nothing more.
fn next_ready(checks: &[Check], states: &[State]) -> Option<usize> {
    let passed = |name: &String| state(checks, states, name).is_some_and(has_passed);
    let ready = |at: &usize| {
        matches!(states[*at], State::Waiting) && checks[*at].depends_on.iter().all(passed)
    };
    (0..checks.len()).find(ready)
}

/// Why nothing more is begun, if a critical check is red.
fn first_red(states: &[State]) -> Option<String> {
    let is_red = |state: &&State| {
        matches!(state, State::Over(result) if result.critical
            && matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut))
    };
    states.iter().find(is_red).and_then(|state| match state {
        State::Over(result) => Some(format!("`{}` is red, and the first red ends it", result.name)),
        State::Waiting | State::Running => None,
    })
}

/// A check that will not run, and why: nothing more is begun, or what it depends on is lost.
fn next_skipped(checks: &[Check], states: &[State], over: Option<&str>) -> Option<(usize, String)> {
    let waiting = (0..checks.len()).filter(|at| matches!(states[*at], State::Waiting));
    let lost = |name: &&String| {
        let over = |state: &State| matches!(state, State::Over(_)) && !has_passed(state);
        state(checks, states, name).is_some_and(over)
    };
    waiting.into_iter().find_map(|at| {
        let lost = checks[at].depends_on.iter().find(lost);
        let lost = lost.map(|name| format!("`{name}` did not pass"));
        // What it depends on says more than that nothing is begun, unless somebody stopped everything.
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

fn has_passed(state: &State) -> bool {
    matches!(state, State::Over(result) if result.status == CheckStatus::Passed)
}
