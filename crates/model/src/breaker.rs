//! A circuit breaker for each service: after too many failures, calls are blocked for a while, and
//! then one call at a time probes whether the service has recovered.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::ModelError;
use crate::protocol::ModelService;

/// The thresholds of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerThresholds {
    /// The number of failures that open a circuit.
    pub failures: usize,
    /// The period in which these failures must occur.
    pub window_ms: u64,
    /// The time for which a circuit stays open.
    pub open_ms: u64,
    /// The number of successful probes, one at a time, that close it again.
    pub successes: u32,
}

impl Default for BreakerThresholds {
    fn default() -> Self {
        BreakerThresholds { failures: 5, window_ms: 60_000, open_ms: 60_000, successes: 3 }
    }
}

/// The circuit breakers of all services.
#[derive(Debug, Default)]
pub struct CircuitBreakers {
    thresholds: BreakerThresholds,
    circuits: Mutex<[CircuitState; ModelService::ALL.len()]>,
}

impl CircuitBreakers {
    /// Creates breakers with the given thresholds.
    pub fn new(thresholds: BreakerThresholds) -> Self {
        CircuitBreakers { thresholds, ..CircuitBreakers::default() }
    }

    /// Checks whether a call may be made now.
    ///
    /// # Errors
    ///
    /// Returns [`ModelError::CircuitOpen`] if not.
    pub fn admit(&self, service: ModelService, now_ms: u64) -> Result<(), ModelError> {
        let admitted = self.lock_circuits()[service as usize].admit(&self.thresholds, now_ms);
        admitted.map_err(|retry_in_ms| ModelError::CircuitOpen { service, retry_in_ms })
    }

    /// Records the outcome of an admitted call.
    pub fn record(&self, service: ModelService, outcome: Result<(), &ModelError>, now_ms: u64) {
        let circuit = &mut self.lock_circuits()[service as usize];
        match outcome {
            Ok(()) => circuit.record_success(&self.thresholds),
            Err(error) if counts_as_failure(error) => {
                circuit.record_failure(&self.thresholds, now_ms)
            }
            Err(_) => circuit.clear_probe(),
        }
    }

    /// Records that an admitted call was dropped before its end.
    pub fn record_abandoned(&self, service: ModelService) {
        self.lock_circuits()[service as usize].clear_probe();
    }

    /// Ignores poison: every update leaves a circuit in a valid state.
    fn lock_circuits(&self) -> MutexGuard<'_, [CircuitState; ModelService::ALL.len()]> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if an error counts as a failure of the service. A service that understood and
/// rejected the request works.
fn counts_as_failure(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Server { .. }
            | ModelError::Connection { .. }
            | ModelError::Stalled { .. }
            | ModelError::BrokenOff { .. }
            | ModelError::TimedOut { .. }
    )
}

#[derive(Debug)]
enum CircuitState {
    /// All calls pass; the times of recent failures are kept.
    Closed { failures_ms: VecDeque<u64> },
    /// All calls are blocked.
    Open { until_ms: u64 },
    /// A single call passes at a time. `probe_ms` is the start of the current one.
    HalfOpen { successes: u32, probe_ms: Option<u64> },
}

impl Default for CircuitState {
    fn default() -> Self {
        CircuitState::Closed { failures_ms: VecDeque::new() }
    }
}

impl CircuitState {
    /// Returns the delay in milliseconds if the call may not be made now.
    fn admit(&mut self, thresholds: &BreakerThresholds, now_ms: u64) -> Result<(), u64> {
        match self {
            CircuitState::Closed { .. } => Ok(()),
            CircuitState::Open { until_ms } if now_ms < *until_ms => Err(*until_ms - now_ms),
            CircuitState::Open { .. } => {
                *self = CircuitState::HalfOpen { successes: 0, probe_ms: Some(now_ms) };
                Ok(())
            }
            CircuitState::HalfOpen { probe_ms, .. } => {
                // A dropped probe never reports its outcome, so it blocks others for a limited time
                // only.
                let given_up_ms = probe_ms.map(|began| began.saturating_add(thresholds.open_ms));
                match given_up_ms.filter(|until| now_ms < *until) {
                    Some(until) => Err((until - now_ms).min(PROBE_WAIT_MS)),
                    None => {
                        *probe_ms = Some(now_ms);
                        Ok(())
                    }
                }
            }
        }
    }

    fn record_success(&mut self, thresholds: &BreakerThresholds) {
        if let CircuitState::HalfOpen { successes, probe_ms } = self {
            *successes += 1;
            *probe_ms = None;
            if *successes >= thresholds.successes {
                *self = CircuitState::default();
            }
        }
    }

    fn record_failure(&mut self, thresholds: &BreakerThresholds, now_ms: u64) {
        let opens = match self {
            CircuitState::Closed { failures_ms } => {
                failures_ms.push_back(now_ms);
                failures_ms.retain(|at| at.saturating_add(thresholds.window_ms) > now_ms);
                failures_ms.len() >= thresholds.failures
            }
            // Calls that started before the circuit opened don't extend the open period.
            CircuitState::Open { .. } => false,
            CircuitState::HalfOpen { .. } => true,
        };
        if opens {
            *self = CircuitState::Open { until_ms: now_ms.saturating_add(thresholds.open_ms) };
        }
    }

    fn clear_probe(&mut self) {
        if let CircuitState::HalfOpen { probe_ms, .. } = self {
            *probe_ms = None;
        }
    }
}

/// The delay before asking again while another call probes the service.
const PROBE_WAIT_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ModelService::{Anthropic, OpenAi};

    fn failure() -> ModelError {
        ModelError::BrokenOff { service: Anthropic }
    }

    fn fail(breakers: &CircuitBreakers, moments: &[u64]) {
        for at in moments {
            breakers.record(Anthropic, Err(&failure()), *at);
        }
    }

    #[track_caller]
    fn check(breakers: &CircuitBreakers, now_ms: u64, wait_ms: Option<u64>) {
        let wait = match breakers.admit(Anthropic, now_ms) {
            Ok(()) => None,
            Err(ModelError::CircuitOpen { retry_in_ms, .. }) => Some(retry_in_ms),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(wait, wait_ms);
    }

    #[test]
    fn five_failures_within_a_minute_open_it_for_that_service_alone() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0, 1, 2, 3]);
        check(&breakers, 4, None);
        fail(&breakers, &[4]);
        check(&breakers, 5, Some(59_999));
        assert_eq!(breakers.admit(OpenAi, 5), Ok(()));
    }

    #[test]
    fn failures_that_are_long_ago_do_not_count() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0, 1, 2, 3, 60_003]);
        check(&breakers, 60_004, None);
    }

    #[test]
    fn three_calls_one_at_a_time_close_it_again() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0; 5]);
        check(&breakers, 59_999, Some(1));
        for at in [60_000, 60_010, 60_020] {
            check(&breakers, at, None);
            check(&breakers, at + 1, Some(1000));
            breakers.record(Anthropic, Ok(()), at + 2);
        }
        check(&breakers, 60_030, None);
        check(&breakers, 60_030, None);
    }

    #[test]
    fn a_failure_while_it_is_tried_opens_it_again() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0; 5]);
        check(&breakers, 60_000, None);
        fail(&breakers, &[60_500]);
        check(&breakers, 60_501, Some(59_999));
    }

    #[test]
    fn a_call_that_was_dropped_does_not_block_it_for_ever() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0; 5]);
        check(&breakers, 60_000, None);
        check(&breakers, 119_999, Some(1));
        check(&breakers, 120_000, None);
    }

    #[test]
    fn a_call_that_was_given_up_lets_the_next_one_try() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, &[0; 5]);
        check(&breakers, 60_000, None);
        breakers.record_abandoned(Anthropic);
        check(&breakers, 60_001, None);
    }

    #[test]
    fn only_what_speaks_against_the_service_counts() {
        let message = || "x".to_owned();
        let (service, status) = (Anthropic, 400);
        for error in [
            ModelError::Rejected { service, status, message: message() },
            ModelError::RateLimited { service, status, message: message(), retry_after_ms: None },
            ModelError::Unauthorised { service, status, message: message() },
            ModelError::ContextTooLong { message: message() },
        ] {
            let breakers = CircuitBreakers::default();
            (0..9).for_each(|at| breakers.record(Anthropic, Err(&error), at));
            check(&breakers, 9, None);
        }
    }
}
