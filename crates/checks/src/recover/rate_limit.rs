//! Wait times: from the message of a rate limit, or with exponential backoff.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::limits::RECOVER_WAIT_USUAL;

static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)rate[ -]?limit|too many requests|\b429\b|retry-after|quota";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?xi)
        retry[-_\ ]after["']?\s*[:=]?\s*["']?(?P<seconds>\d{1,7})\s*(?P<unit>ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)?\b
        | (?:try|retry)(?:ing)?\ (?:again\ )?in\ (?P<hours>\d+\ ?h(?:ours?)?)?\s*(?P<minutes>\d+\ ?m(?:in(?:ute)?s?)?)?\s*(?P<rest>\d+(?:\.\d+)?\ ?s(?:ec(?:ond)?s?)?)?
        | rate-?limit-reset["']?\s*[:=]\s*["']?(?P<epoch>\d{10})\b
        | resets?\ (?:at|on)\s+(?P<stamp>\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))"#;
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// Returns true if a text is about a rate limit.
pub fn is_limit(text: &str) -> bool {
    LIMIT.is_match(text)
}

/// The wait time that a service asks for in its message; a minute if it names none.
pub fn wait_for_limit(text: &str, now_ms: u64) -> Duration {
    NAMED
        .captures_iter(text)
        .find_map(|found| parse_wait(&found, now_ms))
        .unwrap_or(RECOVER_WAIT_USUAL)
}

fn parse_wait(found: &regex::Captures<'_>, now_ms: u64) -> Option<Duration> {
    let part = |name| found.name(name).map(|part| part.as_str());
    if let Some(seconds) = part("seconds") {
        let number: u64 = seconds.parse().ok()?;
        let unit = part("unit").unwrap_or("s").to_ascii_lowercase();
        return Some(match unit.as_bytes() {
            [b'm', b's', ..] => Duration::from_millis(number),
            _ if unit.starts_with("milli") => Duration::from_millis(number),
            [b'm', ..] => Duration::from_secs(number * 60),
            [b'h', ..] => Duration::from_secs(number * 3_600),
            _ => Duration::from_secs(number),
        });
    }
    if let Some(epoch) = part("epoch") {
        return Some(duration_until(epoch.parse::<u64>().ok()? * 1_000, now_ms));
    }
    if let Some(stamp) = part("stamp") {
        let at: jiff::Timestamp = stamp.replacen(' ', "T", 1).parse().ok()?;
        return Some(duration_until(u64::try_from(at.as_millisecond()).ok()?, now_ms));
    }
    let number = |name| -> f64 {
        let text = part(name).unwrap_or("0");
        text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0.0)
    };
    let seconds = number("hours") * 3_600.0 + number("minutes") * 60.0 + number("rest");
    (seconds > 0.0 && seconds < 1e7).then(|| Duration::from_secs_f64(seconds))
}

fn duration_until(at_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBackoff {
    /// Maximum number of attempts.
    pub attempts: u32,
    /// The first wait.
    pub first: Duration,
    /// The maximum wait.
    pub longest: Duration,
}

impl RetryBackoff {
    /// For checks that may pass by themselves. Calls of models and services have their own backoff.
    pub const CHECKS: RetryBackoff = RetryBackoff {
        attempts: 3,
        first: Duration::from_secs(2),
        longest: Duration::from_secs(30),
    };

    /// The wait after `attempts` attempts, counted from 1; `None` after the last one. Doubles each
    /// time. `jitter` (0 to 1) shortens it by up to half, so that many workers do not retry at the
    /// same moment.
    pub fn wait_after(&self, attempts: u32, jitter: f64) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        let full = doubled.min(self.longest);
        Some(full.mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_says_how_long_it_wants_to_be_left_alone() {
        let now_ms = 1_700_000_000_000;
        for (text, seconds) in [
            ("HTTP 429\nRetry-After: 17\n", 17.0),
            ("\"retry_after\": 5", 5.0),
            ("retry after 2 minutes", 120.0),
            ("Please try again in 1m30s.", 90.0),
            ("try again in 2.5s", 2.5),
            ("retry-after 1500 ms", 1.5),
            ("X-RateLimit-Reset: 1700000042", 42.0),
            ("the limit resets at 2023-11-14T22:14:20Z", 60.0),
            ("x-ratelimit-reset: 1600000000", 0.0),
            ("too many requests", 60.0),
        ] {
            assert_eq!(wait_for_limit(text, now_ms).as_secs_f64(), seconds, "{text}");
        }
        assert!(is_limit("API rate limit exceeded") && !is_limit("connection reset"));
    }

    #[test]
    fn waits_double_up_to_a_longest_and_end() {
        let checks = RetryBackoff::CHECKS;
        assert_eq!(checks.wait_after(1, 0.0), Some(Duration::from_secs(2)));
        assert_eq!(checks.wait_after(2, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(checks.wait_after(2, 1.0), Some(Duration::from_secs(2)));
        assert_eq!(checks.wait_after(3, 0.0), None);
        let long = RetryBackoff { attempts: 20, ..checks };
        assert_eq!(long.wait_after(12, 0.0), Some(Duration::from_secs(30)));
    }
}
