//! The retry policy for failed calls: a pure decision.

use super::limits::SECONDARY_WAIT_MS;

/// The number of attempts, and the delays between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallRetryPolicy {
    /// The maximum number of calls, including the first.
    pub attempts_max: u32,
    /// The delay after the first failure. It doubles each time.
    pub initial_ms: u64,
    /// The maximum delay between two attempts.
    pub max_ms: u64,
    /// The jitter of a delay, as a fraction of it.
    pub jitter: f64,
    /// The maximum wait for a rate limit; a longer one is an error.
    pub limit_wait_ms: u64,
    /// The extra wait for a rate limit, because clocks differ.
    pub margin_ms: u64,
}

impl Default for CallRetryPolicy {
    fn default() -> Self {
        CallRetryPolicy {
            attempts_max: 5,
            initial_ms: 1_000,
            max_ms: 60_000,
            jitter: 0.2,
            limit_wait_ms: 120_000,
            margin_ms: 1_000,
        }
    }
}

/// Says whether a call may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRepeatability {
    /// Idempotent.
    Yes,
    /// May be repeated only after checking that the first call had no effect.
    AfterLooking,
}

/// The failure of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// GitHub responded with an error status.
    Status { status: u16, allowance: RateLimitHeaders, message: String },
    /// The request was not sent.
    NotSent,
    /// The request was sent, and its effect is unknown.
    NoAnswer,
    /// The response could not be decoded; repeating the call would not help.
    Unclear,
}

/// The rate-limit headers of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitHeaders {
    /// The number of calls left (`x-ratelimit-remaining`).
    pub remaining: Option<u64>,
    /// The time of the reset, in seconds since 1970 (`x-ratelimit-reset`).
    pub reset_s: Option<u64>,
    /// The number of seconds to wait (`retry-after`).
    pub retry_after_s: Option<u64>,
}

/// The decision after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRetryAdvice {
    /// Repeat the call after a delay.
    Retry { after_ms: u64 },
    /// After a delay, check whether the call had an effect, and repeat it if not.
    Look { after_ms: u64 },
    /// The rate limit is exhausted for longer than the policy waits.
    Limited {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
    /// Repeating the call would not help.
    GiveUp,
}

impl CallRetryPolicy {
    /// Decides what to do after `attempt` failed calls, the last one with `failure`. `random` is
    /// between 0 and 1.
    pub fn advise_retry(
        &self,
        failure: &CallFailure,
        repeatable: CallRepeatability,
        attempt: u32,
        random: f64,
        now_ms: u64,
    ) -> CallRetryAdvice {
        let last = attempt >= self.attempts_max;
        if let CallFailure::Status { status, allowance, message } = failure
            && let Some(until_ms) = limited_until(*status, allowance, message, now_ms)
        {
            // A rate-limited call had no effect, so even one that is not idempotent may be
            // repeated.
            let until_ms = until_ms.saturating_add(self.margin_ms);
            let after_ms = until_ms.saturating_sub(now_ms);
            return if last || after_ms > self.limit_wait_ms {
                CallRetryAdvice::Limited { until_ms }
            } else {
                CallRetryAdvice::Retry { after_ms }
            };
        }
        let after_ms = self.wait_ms(attempt, random);
        match failure {
            _ if last => CallRetryAdvice::GiveUp,
            CallFailure::Unclear => CallRetryAdvice::GiveUp,
            CallFailure::NotSent => CallRetryAdvice::Retry { after_ms },
            CallFailure::Status { status, .. } if !matches!(status, 408 | 500..=599) => {
                CallRetryAdvice::GiveUp
            }
            CallFailure::NoAnswer | CallFailure::Status { .. } => match repeatable {
                CallRepeatability::Yes => CallRetryAdvice::Retry { after_ms },
                CallRepeatability::AfterLooking => CallRetryAdvice::Look { after_ms },
            },
        }
    }

    fn wait_ms(&self, attempt: u32, random: f64) -> u64 {
        let doublings = attempt.saturating_sub(1).min(32);
        let wait_ms = self.initial_ms.saturating_mul(1 << doublings).min(self.max_ms);
        let swing = (random.clamp(0.0, 1.0) * 2.0 - 1.0) * self.jitter;
        (wait_ms as f64 * (1.0 + swing)).round() as u64
    }
}

/// Returns the end of the rate limit in milliseconds since 1970, if the response reports one.
fn limited_until(
    status: u16,
    allowance: &RateLimitHeaders,
    message: &str,
    now_ms: u64,
) -> Option<u64> {
    if !matches!(status, 403 | 429) {
        return None;
    }
    if let Some(seconds) = allowance.retry_after_s {
        return Some(now_ms.saturating_add(seconds.saturating_mul(1000)));
    }
    if allowance.remaining == Some(0) {
        let reset_ms = allowance.reset_s.map(|seconds| seconds.saturating_mul(1000));
        return Some(reset_ms.unwrap_or(now_ms.saturating_add(SECONDARY_WAIT_MS)).max(now_ms));
    }
    let says_so = message.to_ascii_lowercase().contains("rate limit");
    (status == 429 || says_so).then(|| now_ms.saturating_add(SECONDARY_WAIT_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn status(status: u16, allowance: RateLimitHeaders) -> CallFailure {
        CallFailure::Status { status, allowance, message: "x".to_owned() }
    }

    fn plain(code: u16) -> CallFailure {
        status(code, RateLimitHeaders::default())
    }

    #[track_caller]
    fn check(
        failure: &CallFailure,
        repeatable: CallRepeatability,
        attempt: u32,
        expect: CallRetryAdvice,
    ) {
        let advice =
            CallRetryPolicy::default().advise_retry(failure, repeatable, attempt, 0.5, NOW);
        assert_eq!(advice, expect, "{failure:?} {repeatable:?} after {attempt}");
    }

    #[test]
    fn what_may_pass_is_repeated_with_doubling_waits() {
        for failure in
            [plain(500), plain(502), plain(503), plain(504), plain(408), CallFailure::NoAnswer]
        {
            check(&failure, CallRepeatability::Yes, 1, CallRetryAdvice::Retry { after_ms: 1000 });
            check(&failure, CallRepeatability::Yes, 3, CallRetryAdvice::Retry { after_ms: 4000 });
            check(&failure, CallRepeatability::Yes, 5, CallRetryAdvice::GiveUp);
        }
    }

    #[test]
    fn what_may_have_been_done_is_looked_for_first() {
        for failure in [plain(500), plain(504), CallFailure::NoAnswer] {
            check(
                &failure,
                CallRepeatability::AfterLooking,
                1,
                CallRetryAdvice::Look { after_ms: 1000 },
            );
        }
        let unsent = CallFailure::NotSent;
        check(
            &unsent,
            CallRepeatability::AfterLooking,
            1,
            CallRetryAdvice::Retry { after_ms: 1000 },
        );
    }

    #[test]
    fn a_no_is_a_no() {
        for code in [400, 401, 403, 404, 405, 409, 410, 422, 451] {
            check(&plain(code), CallRepeatability::Yes, 1, CallRetryAdvice::GiveUp);
        }
        check(&CallFailure::Unclear, CallRepeatability::Yes, 1, CallRetryAdvice::GiveUp);
    }

    #[test]
    fn limits_are_waited_for_as_long_as_they_say() {
        let primary = |reset_s| RateLimitHeaders {
            remaining: Some(0),
            reset_s: Some(reset_s),
            ..RateLimitHeaders::default()
        };
        let secondary = |retry_after_s| RateLimitHeaders {
            retry_after_s: Some(retry_after_s),
            ..RateLimitHeaders::default()
        };
        for (failure, after_ms) in [
            (status(403, primary(1_030)), 31_000),
            (status(429, primary(1_030)), 31_000),
            (status(403, primary(900)), 1_000),
            (status(429, secondary(20)), 21_000),
            (status(403, secondary(20)), 21_000),
            (plain(429), 61_000),
        ] {
            for repeatable in [CallRepeatability::Yes, CallRepeatability::AfterLooking] {
                check(&failure, repeatable, 1, CallRetryAdvice::Retry { after_ms });
            }
        }
        let until_ms = 2_000_000 + 1_000;
        check(
            &status(403, primary(2_000)),
            CallRepeatability::Yes,
            1,
            CallRetryAdvice::Limited { until_ms },
        );
        let until_ms = NOW + 21_000;
        check(
            &status(429, secondary(20)),
            CallRepeatability::Yes,
            5,
            CallRetryAdvice::Limited { until_ms },
        );
        let unlimited =
            RateLimitHeaders { remaining: Some(7), reset_s: Some(2_000), retry_after_s: None };
        check(&status(403, unlimited), CallRepeatability::Yes, 1, CallRetryAdvice::GiveUp);
    }

    #[test]
    fn a_secondary_limit_may_say_so_in_words_alone() {
        let message = "You have exceeded a secondary rate limit.".to_owned();
        let failure =
            CallFailure::Status { status: 403, allowance: RateLimitHeaders::default(), message };
        check(&failure, CallRepeatability::Yes, 1, CallRetryAdvice::Retry { after_ms: 61_000 });
    }

    #[test]
    fn waits_vary_and_have_an_end() {
        let policy = CallRetryPolicy { attempts_max: 100, ..CallRetryPolicy::default() };
        let wait = |attempt, random| {
            policy.advise_retry(&plain(500), CallRepeatability::Yes, attempt, random, NOW)
        };
        assert_eq!(wait(1, 0.0), CallRetryAdvice::Retry { after_ms: 800 });
        assert_eq!(wait(1, 1.0), CallRetryAdvice::Retry { after_ms: 1200 });
        assert_eq!(wait(90, 0.5), CallRetryAdvice::Retry { after_ms: 60_000 });
    }
}
