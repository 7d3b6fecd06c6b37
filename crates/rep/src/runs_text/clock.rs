//! Formats points in time and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats timestamps, in milliseconds since 1970, in the user's time zone.
pub(crate) struct LocalClock {
    zone: TimeZone,
    now_ms: u64,
}

impl LocalClock {
    /// Uses the system's time zone, or UTC if it is unknown.
    pub(crate) fn local(now_ms: u64) -> Self {
        LocalClock { zone: TimeZone::try_system().unwrap_or(TimeZone::UTC), now_ms }
    }

    /// Formats as `2026-11-16 09:41:00`.
    pub(crate) fn format_full(&self, at_ms: u64) -> String {
        self.format_with(at_ms, "%Y-%m-%d %H:%M:%S")
    }

    /// Formats as `11-16 09:41:00`.
    pub(crate) fn format_brief(&self, at_ms: u64) -> String {
        self.format_with(at_ms, "%m-%d %H:%M:%S")
    }

    /// The age of a timestamp, for a table column.
    pub(crate) fn format_age(&self, at_ms: u64) -> String {
        format_age_ms(self.now_ms.saturating_sub(at_ms))
    }

    fn format_with(&self, at_ms: u64, how: &str) -> String {
        let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        match at {
            Some(at) => at.to_zoned(self.zone.clone()).strftime(how).to_string(),
            None => format!("{at_ms} ms"),
        }
    }
}

/// Formats as `now`, `5m`, `3h`, `12d`.
fn format_age_ms(ms: u64) -> String {
    match ms / 1000 {
        0..=59 => "now".to_owned(),
        60..=3_599 => format!("{}m", ms / 60_000),
        3_600..=172_799 => format!("{}h", ms / 3_600_000),
        _ => format!("{}d", ms / 86_400_000),
    }
}

/// Formats as `312ms`, `1.5s`, `12s`, `2m 05s`, `3h 07m`.
pub(crate) fn short_time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 if ms == 0 => "0s".to_owned(),
        0 => format!("{ms}ms"),
        1..=9 => format!("{:.1}s", ms as f64 / 1000.0),
        10..=59 => format!("{seconds}s"),
        60..=3_599 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..=3_599 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let written = [0, 312, 1_500, 12_000, 60_000, 125_000, 11_220_000].map(short_time);
        assert_eq!(written, ["0s", "312ms", "1.5s", "12s", "1m", "2m 05s", "3h 07m"]);
        let ages = [0, 61_000, 7_200_000, 260_000_000].map(format_age_ms);
        assert_eq!(ages, ["now", "1m", "2h", "3d"]);
    }

    #[test]
    fn times_are_told_in_the_zone_of_the_reader() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let clock = LocalClock { zone, now_ms: 1_000_000_000_000 + 120_000 };
        assert_eq!(clock.format_full(1_000_000_000_000), "2001-09-09 03:46:40");
        assert_eq!(clock.format_brief(1_000_000_000_000), "09-09 03:46:40");
        assert_eq!(clock.format_age(1_000_000_000_000), "2m");
        assert_eq!(clock.format_full(u64::MAX), "18446744073709551615 ms");
    }
}
