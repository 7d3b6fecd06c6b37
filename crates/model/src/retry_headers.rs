//! Parses the headers by which servers announce when to retry.

use reqwest::header::HeaderMap;

/// The delay before a retry.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now_ms: u64) -> Option<u64> {
    let exact =
        header_text(headers, "retry-after-ms").and_then(|value| whole_ms(value.parse().ok()?));
    let usual = || {
        let value = header_text(headers, "retry-after")?;
        let seconds = value.parse::<f64>().ok().and_then(|seconds| whole_ms(seconds * 1000.0));
        seconds
            .or_else(|| Some(http_date_ms(value)?.saturating_sub(server_now_ms(headers, now_ms))))
    };
    exact.or_else(usual).or_else(|| exhausted_delay_ms(headers, now_ms))
}

/// The reset time of a usage limit, in milliseconds since 1970.
pub(crate) fn usage_reset_ms(headers: &HeaderMap, now_ms: u64) -> Option<u64> {
    let names = ["anthropic-ratelimit-unified-reset", "x-ratelimit-reset"];
    names.iter().find_map(|name| {
        let value = headers.get(*name)?.to_str().ok()?;
        parse_time_ms(value.trim(), now_ms)
    })
}

/// The longest delay among the exhausted limits.
fn exhausted_delay_ms(headers: &HeaderMap, now_ms: u64) -> Option<u64> {
    const LIMITS: [(&str, &str); 6] = [
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ];
    let used_up =
        LIMITS.iter().filter(|(remaining, _)| header_text(headers, remaining) == Some("0"));
    let moments =
        used_up.filter_map(|(_, reset)| parse_time_ms(header_text(headers, reset)?, now_ms));
    moments.map(|at| at.saturating_sub(now_ms)).max()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Parses a time in any of the formats that servers use: RFC 3339, seconds or milliseconds since
/// 1970, seconds from now, or a duration like `6m0s`.
fn parse_time_ms(text: &str, now_ms: u64) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            1e12.. => whole_ms(number),
            1e9.. => whole_ms(number * 1000.0),
            _ => now_ms.checked_add(whole_ms(number * 1000.0)?),
        };
    }
    let stamp = text.parse::<jiff::Timestamp>().ok();
    let moment = stamp.and_then(|stamp| u64::try_from(stamp.as_millisecond()).ok());
    moment.or_else(|| now_ms.checked_add(parse_duration_ms(text)?))
}

/// Parses a duration like `1h2m3.5s` or `120ms`.
fn parse_duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        total += number
            * match &after[..unit_end] {
                "ms" => 1.0,
                "s" => 1000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                "d" => 86_400_000.0,
                _ => return None,
            };
        rest = &after[unit_end..];
    }
    (!text.is_empty()).then_some(total).and_then(whole_ms)
}

/// Rounds up. Rejects NaN, negative and implausibly large values.
fn whole_ms(ms: f64) -> Option<u64> {
    (0.0..1e15).contains(&ms).then(|| ms.ceil() as u64)
}

/// The server's clock, if it sends a `Date`: its other dates are relative to that.
fn server_now_ms(headers: &HeaderMap, now_ms: u64) -> u64 {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    date.and_then(http_date_ms).unwrap_or(now_ms)
}

fn http_date_ms(text: &str) -> Option<u64> {
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    u64::try_from(parsed.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[track_caller]
    fn check(pairs: &[(&'static str, &str)], expect: Option<u64>) {
        assert_eq!(retry_after_ms(&headers(pairs), NOW), expect);
    }

    #[test]
    fn a_wait_is_read_in_every_way_it_is_written() {
        check(&[("retry-after", "7")], Some(7000));
        check(&[("retry-after", "0.5")], Some(500));
        check(&[("retry-after-ms", "250"), ("retry-after", "7")], Some(250));
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        check(
            &[
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"),
            ],
            Some(60_000),
        );
        check(
            &[
                ("anthropic-ratelimit-requests-remaining", "3"),
                ("anthropic-ratelimit-requests-reset", "2027-01-15T09:00:00Z"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "2027-01-15T08:00:30Z"),
            ],
            Some(30_000),
        );
        check(
            &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0.5s")],
            Some(360_500),
        );
    }

    #[test]
    fn the_moment_of_a_reset_is_read_in_seconds_and_in_milliseconds() {
        for (name, value) in [
            ("anthropic-ratelimit-unified-reset", "1800003600"),
            ("x-ratelimit-reset", "1800003600000"),
            ("x-ratelimit-reset", "1h"),
            ("x-ratelimit-reset", "3600"),
        ] {
            assert_eq!(usage_reset_ms(&headers(&[(name, value)]), NOW), Some(NOW + 3_600_000));
        }
    }
}
