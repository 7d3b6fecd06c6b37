//! Detects exhausted usage limits, and when they reset, from error messages.
//!
//! Only errors are examined, never answers: a model may write about rate limits without hitting
//! one.

use std::sync::LazyLock;

use regex::Regex;

/// An exhausted usage limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExhaustedLimit {
    /// The reset time in milliseconds since 1970, if the message contains it.
    pub(crate) resets_at_ms: Option<u64>,
}

/// Parses an error message. `now_ms` is the base for relative times such as "in 5 minutes".
pub(crate) fn detect_exhausted_limit(error: &str, now_ms: u64) -> Option<ExhaustedLimit> {
    if !SIGNS.is_match(error) {
        return None;
    }
    let resets_at_ms = find_epoch_ms(error)
        .or_else(|| find_span_ms(error).map(|span| now_ms.saturating_add(span)));
    Some(ExhaustedLimit { resets_at_ms })
}

/// Converts a provider's timestamp, in seconds or milliseconds, to milliseconds; `None` if it is
/// implausible.
pub(crate) fn timestamp_ms(number: u64) -> Option<u64> {
    match number {
        1_000_000_000..=99_999_999_999 => Some(number * 1000),
        1_000_000_000_000..=99_999_999_999_999 => Some(number),
        _ => None,
    }
}

static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)usage limit|hit your (\w+ )?limit|limit reached|rate.?limit|quota|\b429\b|too many requests|RESOURCE_EXHAUSTED|exhausted your (capacity|daily)|out of (extra )?(usage|credits)",
    )
});

static EPOCH: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"\b(1\d{9}|1\d{12})\b"));

static SPAN: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)\b(?:in|after)\s+((?:\d+(?:\.\d+)?\s*(?:days?|hours?|minutes?|mins?|seconds?|secs?|d|h|m|s)\b?[\s,]*(?:and\s+)?)+)",
    )
});

static PART: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"(?i)(\d+)(?:\.\d+)?\s*([dhms])"));

fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant that the tests run")
}

fn find_epoch_ms(error: &str) -> Option<u64> {
    let digits = EPOCH.captures(error)?;
    timestamp_ms(digits[1].parse().ok()?)
}

fn find_span_ms(error: &str) -> Option<u64> {
    let span = SPAN.captures(error)?;
    let mut seconds: u64 = 0;
    for part in PART.captures_iter(&span[1]) {
        let count: u64 = part[1].parse().ok()?;
        let each = match &part[2] {
            "d" | "D" => 86_400,
            "h" | "H" => 3_600,
            "m" | "M" => 60,
            _ => 1,
        };
        seconds = seconds.saturating_add(count.saturating_mul(each));
    }
    (seconds > 0).then(|| seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    #[track_caller]
    fn check(error: &str, expected: Option<Option<u64>>) {
        assert_eq!(
            detect_exhausted_limit(error, NOW).map(|used| used.resets_at_ms),
            expected,
            "{error}"
        );
    }

    #[test]
    fn words_of_providers_are_understood() {
        check("Claude AI usage limit reached|1794768000", Some(Some(1_794_768_000_000)));
        check("You've hit your limit · resets 3pm (Europe/London)", Some(None));
        check(
            "You've hit your usage limit. Try again in 3 days 2 hours 5 minutes.",
            Some(Some(NOW + ((3 * 24 + 2) * 60 + 5) * 60_000)),
        );
        check("Your quota will reset after 1h2m3s.", Some(Some(NOW + 3_723_000)));
        check("rate limit reached, please try again in 1.898s", Some(Some(NOW + 1_000)));
        check("exceeded retry limit, last status: 429 Too Many Requests", Some(None));
        check("API Error: Request rejected (429) · scripted failure", Some(None));
    }

    #[test]
    fn other_errors_are_none() {
        check("API Error: 500 scripted failure", None);
        check("the file has 4291 lines", None);
        check("", None);
    }

    #[test]
    fn numbers_that_are_no_times_are_not_taken_for_times() {
        check("usage limit: 12345 tokens", Some(None));
        assert_eq!(timestamp_ms(5), None);
        assert_eq!(timestamp_ms(1_794_768_000), timestamp_ms(1_794_768_000_000));
    }
}
