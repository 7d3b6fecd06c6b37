//! The flags of `rep review`.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire::review_setup::ReviewRunOptions;
use repertoire::text::duration::parse_duration;
use repertoire_model::ModelName;
use repertoire_review::extract::ReviewSeverity;
use repertoire_review::record::ReviewDepth;

use crate::agent_flags::parse_dollars;

const WHAT: &str = "What to look at";
const HOW: &str = "How to look";
const WHO: &str = "Who looks";
const LIMITS: &str = "Limits";

/// Options of a review
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ReviewFlags {
    /// Files and folders to review, unchanged files in full; with another scope, review only what
    /// is below them
    #[arg(value_name = "PATH", help_heading = WHAT)]
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// Review the staged changes
    #[arg(long, conflicts_with_all = ["base", "commit", "range"], help_heading = WHAT)]
    pub(crate) staged: bool,
    /// Review what this branch adds to another one
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["commit", "range"], help_heading = WHAT)]
    pub(crate) base: Option<String>,
    /// Review the changes of one commit
    #[arg(long, value_name = "COMMIT", conflicts_with = "range", help_heading = WHAT)]
    pub(crate) commit: Option<String>,
    /// Review the changes between two commits, as FROM..TO or FROM...TO
    #[arg(long, value_name = "RANGE", help_heading = WHAT)]
    pub(crate) range: Option<String>,
    /// Depth of the review: quick (a few agents), or deep (all agents, and those that look for
    /// gaps)
    #[arg(long, value_parser = ["quick", "deep"], value_name = "DEPTH", help_heading = HOW)]
    pub(crate) depth: Option<String>,
    /// Review documentation, with the agents for it
    #[arg(long, help_heading = HOW)]
    pub(crate) docs: bool,
    /// Run only the patterns of skills: no model, no key, milliseconds
    #[arg(long, conflicts_with_all = ["depth", "docs"], help_heading = HOW)]
    pub(crate) patterns_only: bool,
    /// Skills that say what to look for, as a,plugin:b (may be repeated); `usual` stands for the
    /// default ones
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HOW)]
    pub(crate) skills: Vec<String>,
    /// Use no skills
    #[arg(long, conflicts_with = "skills", help_heading = HOW)]
    pub(crate) no_skills: bool,
    /// Agents to leave out (may be repeated, or a comma-separated list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HOW)]
    pub(crate) skip_agents: Vec<String>,
    /// A file with your own agents, besides those in the configuration folder (may be repeated)
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub(crate) lineup: Vec<Utf8PathBuf>,
    /// Additional instructions for every reviewer
    #[arg(short, long, value_name = "TEXT", help_heading = HOW)]
    pub(crate) prompt: Option<String>,
    /// Report nothing below this severity
    #[arg(long, value_name = "SEVERITY", value_parser = parse_severity, help_heading = HOW)]
    pub(crate) min_severity: Option<ReviewSeverity>,
    /// An earlier report (JSON); its findings are not reported again
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub(crate) baseline: Option<Utf8PathBuf>,
    /// Review only files that have changed since the last review of the same scope, and report
    /// nothing twice
    #[arg(long, help_heading = HOW)]
    pub(crate) incremental: bool,
    /// The backend that executes reviews: api, claude, codex, opencode, gemini, acp:PROGRAM,
    /// command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// The model of all reviewers, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<ModelName>,
    /// The model of reviewers that need a strong one
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) strong_model: Option<ModelName>,
    /// The model of reviewers that can do with a cheaper one
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) fast_model: Option<ModelName>,
    /// Run at most this many reviewers at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), help_heading = LIMITS)]
    pub(crate) at_once: Option<u16>,
    /// Stop when the whole review has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when the whole review has used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop when the whole review has taken this long, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) max_time: Option<Duration>,
}

impl ReviewFlags {
    /// Converts the flags to the options of a review.
    pub(crate) fn to_options(&self) -> ReviewRunOptions {
        let depth = match (self.patterns_only, self.depth.as_deref()) {
            (true, _) => Some(ReviewDepth::Patterns),
            (false, Some("deep")) => Some(ReviewDepth::Deep),
            (false, Some(_)) => Some(ReviewDepth::Quick),
            (false, None) => None,
        };
        ReviewRunOptions {
            paths: self.paths.clone(),
            staged: self.staged,
            base: self.base.clone(),
            commit: self.commit.clone(),
            range: self.range.clone(),
            depth,
            docs: self.docs,
            skills: self.skills.clone(),
            no_skills: self.no_skills,
            skip_agents: self.skip_agents.clone(),
            lineup: self.lineup.clone(),
            prompt: self.prompt.clone(),
            min_severity: self.min_severity,
            baseline: self.baseline.clone(),
            incremental: self.incremental,
            backend: self.backend.clone(),
            model: self.model.clone(),
            strong_model: self.strong_model.clone(),
            fast_model: self.fast_model.clone(),
            at_once: self.at_once,
            cost_usd_max: self.max_cost,
            tokens_max: self.max_tokens,
            duration_max: self.max_time,
        }
    }
}

/// Parses a severity given on the command line.
pub(crate) fn parse_severity(word: &str) -> Result<ReviewSeverity, String> {
    ReviewSeverity::from_word(word)
        .ok_or_else(|| "one of critical, major, minor, suggestion".to_owned())
}
