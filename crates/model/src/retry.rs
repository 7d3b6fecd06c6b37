//! Decides what to do about a failed call. Pure: the time and the random number are passed in.

use crate::error::ModelError;
use crate::limits::RETRY_WAIT_MS_MAX;

/// The retry policy of model calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first.
    pub attempts_max: u32,
    /// The delay after the first failure.
    pub initial_ms: u64,
    /// The maximum delay.
    pub max_ms: u64,
    /// The relative variation of delays.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy { attempts_max: 3, initial_ms: 1000, max_ms: 30_000, jitter: 0.1 }
    }
}

/// The reaction to a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    Retry {
        after_ms: u64,
    },
    /// Wait until the usage limit resets; does not count as an attempt.
    Pause {
        /// The reset time, in milliseconds since 1970.
        until_ms: u64,
    },
    /// Retrying would not help.
    GiveUp,
}

impl RetryPolicy {
    /// Decides what to do after `attempt` failed calls, the last with `error`. `random` is between
    /// 0 and 1.
    ///
    /// Delays double with each attempt. A delay requested by the server is the minimum; if it is
    /// longer than five minutes, the run pauses.
    pub fn advise(
        &self,
        error: &ModelError,
        attempt: u32,
        random: f64,
        now_ms: u64,
    ) -> RetryAdvice {
        let asked_ms = match error {
            ModelError::UsageLimit { resets_at_ms, .. } => {
                return resets_at_ms
                    .map_or(RetryAdvice::GiveUp, |until_ms| RetryAdvice::Pause { until_ms });
            }
            ModelError::RateLimited { retry_after_ms, .. }
            | ModelError::Server { retry_after_ms, .. } => retry_after_ms.unwrap_or(0),
            ModelError::CircuitOpen { retry_in_ms, .. } => *retry_in_ms,
            ModelError::Connection { .. }
            | ModelError::Stalled { .. }
            | ModelError::BrokenOff { .. }
            | ModelError::Protocol { .. } => 0,
            ModelError::TimedOut { .. }
            | ModelError::ContextTooLong { .. }
            | ModelError::Unauthorised { .. }
            | ModelError::NotConfigured { .. }
            | ModelError::Rejected { .. } => return RetryAdvice::GiveUp,
        };
        if asked_ms > RETRY_WAIT_MS_MAX {
            return RetryAdvice::Pause { until_ms: now_ms.saturating_add(asked_ms) };
        }
        if attempt >= self.attempts_max {
            return RetryAdvice::GiveUp;
        }
        RetryAdvice::Retry { after_ms: asked_ms.max(self.wait_ms(attempt, random)) }
    }

    fn wait_ms(&self, attempt: u32, random: f64) -> u64 {
        let doublings = attempt.saturating_sub(1).min(32);
        let wait_ms = self.initial_ms.saturating_mul(1 << doublings).min(self.max_ms);
        let swing = (random.clamp(0.0, 1.0) * 2.0 - 1.0) * self.jitter;
        (wait_ms as f64 * (1.0 + swing)).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Phase;
    use crate::protocol::ModelService::Anthropic as A;

    const NOW: u64 = 1_000_000;

    #[track_caller]
    fn check(error: ModelError, attempt: u32, expect: RetryAdvice) {
        let advice = RetryPolicy::default().advise(&error, attempt, 0.5, NOW);
        assert_eq!(advice, expect, "{error:?} after {attempt}");
    }

    fn server(retry_after_ms: Option<u64>) -> ModelError {
        ModelError::Server { service: A, status: 500, message: "x".into(), retry_after_ms }
    }

    fn limited(retry_after_ms: Option<u64>) -> ModelError {
        ModelError::RateLimited { service: A, status: 429, message: "x".into(), retry_after_ms }
    }

    #[test]
    fn what_may_pass_is_tried_again_with_doubling_waits() {
        let retry = |after_ms| RetryAdvice::Retry { after_ms };
        check(server(None), 1, retry(1000));
        check(server(None), 2, retry(2000));
        check(server(None), 3, RetryAdvice::GiveUp);
        check(limited(None), 1, retry(1000));
        check(limited(Some(20)), 1, retry(1000));
        check(limited(Some(120_000)), 1, retry(120_000));
        check(limited(Some(300_001)), 1, RetryAdvice::Pause { until_ms: NOW + 300_001 });
        check(limited(Some(300_001)), 9, RetryAdvice::Pause { until_ms: NOW + 300_001 });
        check(ModelError::BrokenOff { service: A }, 1, retry(1000));
        check(ModelError::Protocol { service: A, message: "x".into() }, 1, retry(1000));
        check(
            ModelError::Stalled { service: A, phase: Phase::Stream, waited_ms: 5 },
            1,
            retry(1000),
        );
        let gone = ModelError::Connection { service: A, url: "u".into(), message: "x".into() };
        check(gone, 2, retry(2000));
        check(ModelError::CircuitOpen { service: A, retry_in_ms: 40_000 }, 1, retry(40_000));
    }

    #[test]
    fn what_stays_as_it_is_is_not_tried_again() {
        let message = || "x".to_owned();
        for error in [
            ModelError::TimedOut { service: A, limit_ms: 1 },
            ModelError::ContextTooLong { message: message() },
            ModelError::Unauthorised { service: A, status: 401, message: message() },
            ModelError::NotConfigured { service: A, message: message() },
            ModelError::Rejected { service: A, status: 400, message: message() },
            ModelError::UsageLimit { service: A, message: message(), resets_at_ms: None },
        ] {
            check(error, 1, RetryAdvice::GiveUp);
        }
        let paused =
            ModelError::UsageLimit { service: A, message: message(), resets_at_ms: Some(7) };
        check(paused, 3, RetryAdvice::Pause { until_ms: 7 });
    }

    #[test]
    fn waits_vary_and_have_an_end() {
        let policy = RetryPolicy { attempts_max: 100, ..RetryPolicy::default() };
        let wait = |attempt, random| policy.advise(&server(None), attempt, random, NOW);
        assert_eq!(wait(1, 0.0), RetryAdvice::Retry { after_ms: 900 });
        assert_eq!(wait(1, 1.0), RetryAdvice::Retry { after_ms: 1100 });
        assert_eq!(wait(90, 0.5), RetryAdvice::Retry { after_ms: 30_000 });
    }
}
