//! The flags of commands that run plans.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire::plan_setup::PlanRunOptions;
use repertoire::text::duration::parse_duration;
use repertoire_plan::PlanDeliveryMode;

use crate::agent_flags::{RuleFlags, parse_dollars};

const WHAT: &str = "What to do";
const WHO: &str = "Who does it";
const LIMITS: &str = "Limits";
const FREEDOM: &str = "Permissions";

/// Options of a plan's run
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PlanFlags {
    /// A specification of the plan's goal that prompts refer to (may be repeated)
    #[arg(long = "spec", value_name = "FILE", help_heading = WHAT)]
    pub(crate) specs: Vec<Utf8PathBuf>,
    /// Another file that prompts refer to (may be repeated)
    #[arg(long = "context", value_name = "FILE", help_heading = WHAT)]
    pub(crate) context: Vec<Utf8PathBuf>,
    /// A command that must succeed after every change, in addition to `plan.checks` (may be
    /// repeated)
    #[arg(long = "check", value_name = "COMMAND", help_heading = WHAT)]
    pub(crate) checks: Vec<String>,
    /// Try to fix failed checks with known fixes and the tools' own fixers before asking an agent
    /// again
    #[arg(long, help_heading = WHAT)]
    pub(crate) self_improve: bool,
    /// Accept work without a review
    #[arg(long, help_heading = WHAT)]
    pub(crate) no_review: bool,
    /// Branch to start from (default: the current branch)
    #[arg(long, value_name = "BRANCH", help_heading = WHAT)]
    pub(crate) base: Option<String>,
    /// Start even if the checkout has uncommitted changes, and leave them out
    #[arg(long, help_heading = WHAT)]
    pub(crate) allow_dirty: bool,
    /// Deliver the finished work this way
    #[arg(long, value_name = "HOW", value_parser = ["keep", "merge", "squash", "branch"], help_heading = WHAT)]
    pub(crate) ending: Option<String>,
    /// The backend that executes the turns: api, claude, codex, opencode, gemini, acp:PROGRAM,
    /// command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// The backend of reviews (default: the same)
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) review_backend: Option<String>,
    /// The model, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<String>,
    /// The model of reviews (default: the same, unless the backend differs)
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) review_model: Option<String>,
    /// The agent (default: `default`)
    #[arg(short, long, value_name = "AGENT", help_heading = WHO)]
    pub(crate) agent: Option<String>,
    /// The agent of reviews
    #[arg(long, value_name = "AGENT", help_heading = WHO)]
    pub(crate) review_agent: Option<String>,
    /// Stop when the whole run has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when the whole run has used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop when the whole run has worked for this long, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) max_time: Option<Duration>,
    /// Mark a task as failed after this many attempts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = LIMITS)]
    pub(crate) attempts: Option<u32>,
    /// Let agents do anything without asking; by default they can change files in the worktree and
    /// run commands in the sandbox
    #[arg(long, help_heading = FREEDOM)]
    pub(crate) full_access: bool,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
}

impl PlanFlags {
    /// Converts the flags to the options of a run.
    pub(crate) fn to_options(&self) -> PlanRunOptions {
        PlanRunOptions {
            specs: self.specs.clone(),
            context: self.context.clone(),
            checks: self.checks.clone(),
            self_improve: self.self_improve,
            no_review: self.no_review,
            base: self.base.clone(),
            allow_dirty: self.allow_dirty,
            ending: self.ending.as_deref().and_then(PlanDeliveryMode::from_word),
            backend: self.backend.clone(),
            review_backend: self.review_backend.clone(),
            model: self.model.clone(),
            review_model: self.review_model.clone(),
            agent: self.agent.clone(),
            review_agent: self.review_agent.clone(),
            cost_usd_max: self.max_cost,
            tokens_max: self.max_tokens,
            duration_max: self.max_time,
            attempts_max: self.attempts,
            full_access: self.full_access,
            allow: self.rules.allow.clone(),
            deny: self.rules.deny.clone(),
        }
    }
}
