//! The budget of a run over several tasks, in addition to the limits of each task.

use std::time::{Duration, Instant};

use repertoire_journal::run::Limits;

use super::queue::ContinuousSettings;

/// The remaining time and money.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContinuousBudget {
    until: Option<(Instant, Duration)>,
    cost_usd: Option<(f64, f64)>,
}

impl ContinuousBudget {
    /// Creates the full budget, starting now.
    pub(super) fn new(rules: &ContinuousSettings, now: Instant) -> Self {
        ContinuousBudget {
            until: rules.max_time.map(|time| (now + time, time)),
            cost_usd: rules.max_cost.map(|cost| (cost, cost)),
        }
    }

    /// Deducts a cost.
    pub(super) fn spend(&mut self, cost_usd: f64) {
        if let Some((left, _)) = &mut self.cost_usd {
            *left -= cost_usd;
        }
    }

    /// Returns the reason no further task may start, if the budget is used up.
    pub(super) fn used_up(&self, now: Instant) -> Option<String> {
        if let Some((until, all)) = self.until
            && now >= until
        {
            return Some(format!("the time of the run is used up ({} s)", all.as_secs()));
        }
        let (_, all) = self.cost_usd.filter(|(left, _)| *left <= 0.0)?;
        Some(format!("the money of the run is used up (${all})"))
    }

    /// Returns the limits of a task: those of every task, capped by the remaining budget.
    pub(super) fn limits_of_task(&self, each: Limits, now: Instant) -> Limits {
        let time = self.until.map(|(until, _)| until.saturating_duration_since(now));
        let time_ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let cost_usd = self.cost_usd.map(|(left, _)| left.max(0.0));
        Limits {
            time_ms: [each.time_ms, time_ms].into_iter().flatten().min(),
            cost_usd: [each.cost_usd, cost_usd].into_iter().flatten().reduce(f64::min),
            tokens: each.tokens,
        }
    }
}

/// Describes limits for an agent; `None` if there are none.
pub(super) fn describe_limits(limits: &Limits) -> Option<String> {
    let time = limits.time_ms.map(|ms| format!("{} s of work", ms / 1000));
    let cost = limits.cost_usd.map(|cost| format!("${cost:.2}"));
    let tokens = limits.tokens.map(|tokens| format!("{tokens} tokens"));
    let all: Vec<String> = [time, cost, tokens].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(time: Option<u64>, cost: Option<f64>) -> ContinuousSettings {
        ContinuousSettings {
            max_time: time.map(Duration::from_secs),
            max_cost: cost,
            ..ContinuousSettings::default()
        }
    }

    #[test]
    fn a_task_gets_what_is_left_of_the_run() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut left = ContinuousBudget::new(&rules(Some(100), Some(2.0)), now);
        let each = Limits { time_ms: Some(60_000), cost_usd: Some(1.5), tokens: Some(9) };
        assert_eq!(left.limits_of_task(each, now), each);
        left.spend(1.25);
        let expect = Limits { time_ms: Some(30_000), cost_usd: Some(0.75), tokens: Some(9) };
        assert_eq!((left.limits_of_task(each, after(70)), left.used_up(after(70))), (expect, None));
        let why = left.used_up(after(100)).unwrap();
        assert_eq!(why, "the time of the run is used up (100 s)");
    }

    #[test]
    fn money_ends_a_run_too_and_without_limits_nothing_does() {
        let now = Instant::now();
        let mut left = ContinuousBudget::new(&rules(None, Some(0.5)), now);
        left.spend(0.6);
        assert_eq!(left.used_up(now).unwrap(), "the money of the run is used up ($0.5)");
        let mut free = ContinuousBudget::new(&rules(None, None), now);
        free.spend(1e6);
        let none = Limits::default();
        assert_eq!((free.used_up(now), free.limits_of_task(none, now)), (None, none));
        assert_eq!(describe_limits(&none), None);
        let some = Limits { time_ms: Some(90_000), cost_usd: Some(0.5), tokens: None };
        assert_eq!(describe_limits(&some).unwrap(), "90 s of work, $0.50");
    }
}
