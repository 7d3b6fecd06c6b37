//! Decides what to do about a failed call. Pure: the time and the random number are passed in.

use crate::error::Error;
use crate::limits::RETRY_WAIT_MS_MAX;

/// The retry policy of model calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The maximum number of attempts, including the first.
    pub attempts_max: u32,
    /// The delay after the first failure.
    pub initial_ms: u64,
    /// The maximum delay.
    pub max_ms: u64,
    /// The relative variation of delays.
    pub jitter: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { attempts_max: 3, initial_ms: 1000, max_ms: 30_000, jitter: 0.1 }
    }
}

/// The reaction to a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
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

impl Policy {
    /// Decides what to do after `attempt` failed calls, the last with `error`. `random` is between
    /// 0 and 1.
    ///
    /// Delays double with each attempt. A delay requested by the server is the minimum; if it is
    /// longer than five minutes, the run pauses.
    pub fn advise(&self, error: &Error, attempt: u32, random: f64, now_ms: u64) -> Advice {
        let asked_ms = match error {
            Error::UsageLimit { resets_at_ms, .. } => {
                return resets_at_ms.map_or(Advice::GiveUp, |until_ms| Advice::Pause { until_ms });
            }
            Error::RateLimited { retry_after_ms, .. } | Error::Server { retry_after_ms, .. } => {
                retry_after_ms.unwrap_or(0)
            }
            Error::CircuitOpen { retry_in_ms, .. } => *retry_in_ms,
            Error::Connection { .. }
            | Error::Stalled { .. }
            | Error::BrokenOff { .. }
            | Error::Protocol { .. } => 0,
            Error::TimedOut { .. }
            | Error::ContextTooLong { .. }
            | Error::Unauthorised { .. }
            | Error::NotConfigured { .. }
            | Error::Rejected { .. } => return Advice::GiveUp,
        };
        if asked_ms > RETRY_WAIT_MS_MAX {
            return Advice::Pause { until_ms: now_ms.saturating_add(asked_ms) };
        }
        if attempt >= self.attempts_max {
            return Advice::GiveUp;
        }
        Advice::Retry { after_ms: asked_ms.max(self.wait_ms(attempt, random)) }
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
    use crate::name::Service::Anthropic as A;

    const NOW: u64 = 1_000_000;

    #[track_caller]
    fn check(error: Error, attempt: u32, expect: Advice) {
        let advice = Policy::default().advise(&error, attempt, 0.5, NOW);
        assert_eq!(advice, expect, "{error:?} after {attempt}");
    }

    fn server(retry_after_ms: Option<u64>) -> Error {
        Error::Server { service: A, status: 500, message: "x".into(), retry_after_ms }
    }

    fn limited(retry_after_ms: Option<u64>) -> Error {
        Error::RateLimited { service: A, status: 429, message: "x".into(), retry_after_ms }
    }

    #[test]
    fn what_may_pass_is_tried_again_with_doubling_waits() {
        let retry = |after_ms| Advice::Retry { after_ms };
        check(server(None), 1, retry(1000));
        check(server(None), 2, retry(2000));
        check(server(None), 3, Advice::GiveUp);
        check(limited(None), 1, retry(1000));
        check(limited(Some(20)), 1, retry(1000));
        check(limited(Some(120_000)), 1, retry(120_000));
        check(limited(Some(300_001)), 1, Advice::Pause { until_ms: NOW + 300_001 });
        check(limited(Some(300_001)), 9, Advice::Pause { until_ms: NOW + 300_001 });
        check(Error::BrokenOff { service: A }, 1, retry(1000));
        check(Error::Protocol { service: A, message: "x".into() }, 1, retry(1000));
        check(Error::Stalled { service: A, phase: Phase::Stream, waited_ms: 5 }, 1, retry(1000));
        let gone = Error::Connection { service: A, url: "u".into(), message: "x".into() };
        check(gone, 2, retry(2000));
        check(Error::CircuitOpen { service: A, retry_in_ms: 40_000 }, 1, retry(40_000));
    }

    #[test]
    fn what_stays_as_it_is_is_not_tried_again() {
        let message = || "x".to_owned();
        for error in [
            Error::TimedOut { service: A, limit_ms: 1 },
            Error::ContextTooLong { message: message() },
            Error::Unauthorised { service: A, status: 401, message: message() },
            Error::NotConfigured { service: A, message: message() },
            Error::Rejected { service: A, status: 400, message: message() },
            Error::UsageLimit { service: A, message: message(), resets_at_ms: None },
        ] {
            check(error, 1, Advice::GiveUp);
        }
        let paused = Error::UsageLimit { service: A, message: message(), resets_at_ms: Some(7) };
        check(paused, 3, Advice::Pause { until_ms: 7 });
    }

    #[test]
    fn waits_vary_and_have_an_end() {
        let policy = Policy { attempts_max: 100, ..Policy::default() };
        let wait = |attempt, random| policy.advise(&server(None), attempt, random, NOW);
        assert_eq!(wait(1, 0.0), Advice::Retry { after_ms: 900 });
        assert_eq!(wait(1, 1.0), Advice::Retry { after_ms: 1100 });
        assert_eq!(wait(90, 0.5), Advice::Retry { after_ms: 30_000 });
    }
}
