//! Durations as users write them: `90s`, `10m`, `1h`, `500ms`; a bare number means seconds.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// Parses a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let bad = || format!("`{text}` is no time; write it as 90s, 10m or 1h");
    let factor = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(bad()),
    };
    let number: u64 = digits.trim().parse().map_err(|_| bad())?;
    match number.checked_mul(factor) {
        Some(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err("a time must be more than nothing, and less than ages".to_owned()),
    }
}

/// Formats a duration such that it parses back to the same value, in milliseconds.
pub fn format_duration(time: Duration) -> String {
    match u64::try_from(time.as_millis()).unwrap_or(u64::MAX) {
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format_duration(*time))
}

/// For `#[serde(with)]`.
pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_any(DurationVisitor)
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time, as `90s`, `10m` or `1h`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse_duration(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
        parse_duration(&seconds.to_string()).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Duration, E> {
        parse_duration(&seconds.to_string()).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, ms, back) in [
            ("90s", 90_000, "90s"),
            ("10m", 600_000, "10m"),
            ("2 h", 7_200_000, "2h"),
            ("500ms", 500, "500ms"),
            ("30", 30_000, "30s"),
            ("60min", 3_600_000, "1h"),
        ] {
            let time = parse_duration(text).unwrap();
            assert_eq!((time.as_millis(), format_duration(time).as_str()), (ms, back), "{text}");
        }
        for text in
            ["", "s", "0s", "-1s", "1.5h", "1 day", "99999999999999999999h", "9999999999999999h"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
