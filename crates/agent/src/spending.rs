//! The limits of a run and its usage so far, shared with its sub-agents so that delegating cannot
//! circumvent them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_model::TokenUsage;
use tokio::time::Instant;

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunLimits {
    /// The maximum depth of delegation.
    pub depth_max: u32,
    /// The maximum number of turns of one agent.
    pub iterations_max: u32,
    /// The maximum number of tokens of all calls together.
    pub tokens_max: Option<u64>,
    /// The maximum cost of all calls together.
    pub cost_usd_max: Option<f64>,
    /// The maximum duration of the run, including sub-agents.
    pub duration_max: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            depth_max: 5,
            iterations_max: 50,
            tokens_max: None,
            cost_usd_max: None,
            duration_max: Duration::from_secs(60 * 60),
        }
    }
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LimitReached {
    #[error("work was delegated {depth} deep, and {max} is allowed (`limits.depth`)")]
    Depth { depth: u32, max: u32 },
    #[error("the agent took {max} turns without coming to an end (`limits.iterations`)")]
    Iterations { max: u32 },
    #[error("{used} tokens were used, and {max} are allowed (`limits.tokens`)")]
    Tokens { used: u64, max: u64 },
    #[error("${used:.6} was spent, and ${max} is allowed (`--max-cost`)")]
    Cost { used: f64, max: f64 },
    /// A cost limit is set, but the price of the model is unknown.
    #[error(
        "the price of {model} is not known, so a limit on cost cannot be kept: add it to `models` in the configuration"
    )]
    PriceUnknown { model: String },
    #[error("the run took longer than {max_s} s (`limits.duration`)")]
    Duration { max_s: u64 },
}

impl LimitReached {
    /// The name of the limit, as used in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            LimitReached::Depth { .. } => "depth",
            LimitReached::Iterations { .. } => "iterations",
            LimitReached::Tokens { .. } => "tokens",
            LimitReached::Cost { .. } | LimitReached::PriceUnknown { .. } => "cost",
            LimitReached::Duration { .. } => "duration",
        }
    }
}

/// The usage so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunSpent {
    /// The tokens of all calls.
    pub usage: TokenUsage,
    /// The cost of all calls with a known price.
    pub cost_usd: f64,
    /// True if the price of a call is unknown.
    pub unpriced: bool,
}

impl RunSpent {
    /// The cost, if the prices of all calls are known.
    pub fn known_cost_usd(&self) -> Option<f64> {
        (!self.unpriced).then_some(self.cost_usd)
    }
}

/// The budget of a run and its sub-agents.
#[derive(Debug)]
pub struct RunBudget {
    limits: RunLimits,
    started: Instant,
    spent: Mutex<RunSpent>,
    /// The budget of the delegating run.
    above: Option<Arc<RunBudget>>,
}

impl RunBudget {
    /// Creates a budget; its time starts now.
    pub fn new(limits: RunLimits) -> Self {
        RunBudget { limits, started: Instant::now(), spent: Mutex::default(), above: None }
    }

    /// Creates the budget of a sub-agent: its usage counts here as well, and the limits apply to
    /// both together.
    pub fn for_subagent(self: &Arc<Self>) -> Self {
        let (limits, started) = (self.limits, self.started);
        RunBudget { limits, started, spent: Mutex::default(), above: Some(self.clone()) }
    }

    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// The time at which the run must end.
    pub fn deadline(&self) -> Instant {
        self.started + self.limits.duration_max
    }

    /// The time since the start of the run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The usage of this run and its sub-agents.
    pub fn spent(&self) -> RunSpent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The usage of the top-level run with all its sub-agents.
    fn total_spent(&self) -> RunSpent {
        self.above.as_ref().map_or_else(|| self.spent(), |above| above.total_spent())
    }

    /// Records the usage of a call.
    pub fn record_call(&self, usage: TokenUsage, cost_usd: Option<f64>) {
        if let Some(above) = &self.above {
            above.record_call(usage, cost_usd);
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.usage += usage;
        spent.cost_usd += cost_usd.unwrap_or(0.0);
        spent.unpriced |= cost_usd.is_none() && usage.total() > 0;
    }

    /// Checks whether another call may be made. `next_usd` is the minimum cost of reading the
    /// conversation once more.
    ///
    /// # Errors
    ///
    /// Returns the limit that was reached.
    pub fn check_limits(&self, next_usd: Option<f64>, model: &str) -> Result<(), LimitReached> {
        if Instant::now() >= self.deadline() {
            return Err(LimitReached::Duration { max_s: self.limits.duration_max.as_secs() });
        }
        let spent = self.total_spent();
        if let Some(max) = self.limits.tokens_max
            && spent.usage.total() >= max
        {
            return Err(LimitReached::Tokens { used: spent.usage.total(), max });
        }
        let Some(max) = self.limits.cost_usd_max else { return Ok(()) };
        let Some(next) = next_usd else {
            return Err(LimitReached::PriceUnknown { model: model.to_owned() });
        };
        if spent.cost_usd + next > max {
            return Err(LimitReached::Cost { used: spent.cost_usd, max });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64) -> TokenUsage {
        TokenUsage { input_tokens: tokens, ..TokenUsage::default() }
    }

    #[tokio::test]
    async fn tokens_money_and_time_each_end_a_run() {
        let limits = RunLimits {
            tokens_max: Some(100),
            cost_usd_max: Some(1.0),
            duration_max: Duration::from_millis(200),
            ..RunLimits::default()
        };
        let purse = RunBudget::new(limits);
        assert_eq!(purse.check_limits(Some(0.5), "m"), Ok(()));
        purse.record_call(used(60), Some(0.6));
        assert!(matches!(purse.check_limits(Some(0.5), "m"), Err(LimitReached::Cost { .. })));
        assert_eq!(purse.check_limits(Some(0.3), "m"), Ok(()));
        purse.record_call(used(60), Some(0.1));
        assert!(matches!(
            purse.check_limits(Some(0.0), "m"),
            Err(LimitReached::Tokens { used: 120, .. })
        ));
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert!(matches!(purse.check_limits(Some(0.0), "m"), Err(LimitReached::Duration { .. })));
    }

    #[tokio::test]
    async fn sub_agents_share_the_limits_and_count_for_themselves() {
        let limits = RunLimits { tokens_max: Some(100), ..RunLimits::default() };
        let purse = Arc::new(RunBudget::new(limits));
        let (one, other) = (Arc::new(purse.for_subagent()), purse.for_subagent());
        one.for_subagent().record_call(used(60), Some(0.1));
        other.record_call(used(50), None);
        assert_eq!((one.spent().usage.total(), other.spent().usage.total()), (60, 50));
        assert_eq!(
            (one.spent().known_cost_usd(), other.spent().known_cost_usd()),
            (Some(0.1), None)
        );
        assert_eq!(purse.spent().usage.total(), 110);
        assert!(matches!(one.check_limits(None, "m"), Err(LimitReached::Tokens { used: 110, .. })));
    }

    #[tokio::test]
    async fn a_limit_on_cost_needs_a_price() {
        let limits = RunLimits { cost_usd_max: Some(1.0), ..RunLimits::default() };
        let purse = RunBudget::new(limits);
        assert!(matches!(purse.check_limits(None, "m"), Err(LimitReached::PriceUnknown { .. })));
    }

    #[tokio::test]
    async fn one_call_without_a_price_makes_the_sum_unknown() {
        let purse = RunBudget::new(RunLimits::default());
        purse.record_call(used(1), Some(0.2));
        assert_eq!(purse.spent().known_cost_usd(), Some(0.2));
        purse.record_call(used(1), None);
        assert_eq!(purse.spent().known_cost_usd(), None);
    }
}
