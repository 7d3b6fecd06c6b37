//! Assembles a review from the configuration and the command line: the change, the agents and the
//! skills.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::config::{CommittedFiles, FILE_NAME, RepConfig, parse_duration};
use repertoire_agent::System;
use repertoire_model::ModelName;
use repertoire_review::baseline::ReviewBaseline;
use repertoire_review::content;
use repertoire_review::extract::ReviewSeverity;
use repertoire_review::instructions::ResolvedSkill;
use repertoire_review::lineup::{self, LineupSource, ModelTier, ReviewLineup};
use repertoire_review::patterns::{PatternSet, PatternSource};
use repertoire_review::pipeline::ReviewPlan;
use repertoire_review::questions::{ReviewAgents, ReviewAllowance};
use repertoire_review::record::{ReviewDepth, ReviewSubject};
use repertoire_review::rules::IGNORE_FILE;
use repertoire_review::scope::{self, GatherLimits, ReviewInputs, ReviewScope, ScopeError};
use repertoire_review::store::ReviewStore;
use repertoire_review::suppress::{self, IgnoreFile};
use repertoire_skill::catalog::Catalog;
use repertoire_text::clock::{Clock, SystemClock};
use repertoire_text::fs;

use crate::agent_setup::RunFlags;
use crate::cli::CliContext;
use crate::failure::CliFailure;
use crate::runs_text::short_oid;

pub(crate) mod incremental;
mod skills;

use skills::{category_of, describe_unusable_patterns};

const WHAT: &str = "What to look at";
const HOW: &str = "How to look";
const WHO: &str = "Who looks";
const LIMITS: &str = "Limits";
const LINEUP_BYTES_MAX: u64 = 1024 * 1024;
/// The folder of the user's own line-ups of reviewers, inside the configuration folder.
const LINEUP_DIR: &str = "review";

/// A review that is ready to start.
pub(crate) struct CliReviewPlan {
    pub(crate) plan: ReviewPlan,
    /// The earlier review that an incremental review continues.
    pub(crate) before: Option<incremental::IncrementalBase>,
}

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
    #[arg(long, value_name = "USD", value_parser = crate::agent_setup::parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when the whole review has used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop when the whole review has taken this long, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) max_time: Option<Duration>,
}

/// Parses a severity given on the command line.
pub(crate) fn parse_severity(word: &str) -> Result<ReviewSeverity, String> {
    ReviewSeverity::from_word(word)
        .ok_or_else(|| "one of critical, major, minor, suggestion".to_owned())
}

impl CliContext<'_> {
    /// Returns the store of a workspace's reviews.
    pub(crate) fn review_store(&self, workspace: &Utf8Path) -> ReviewStore {
        ReviewStore::new(&self.env.data_dir().join("reviews"), workspace)
    }

    /// Returns the configuration from before the change, if the change touches it: a change must
    /// not decide how it is reviewed.
    pub(crate) fn config_before(
        &self,
        gathered: &ReviewInputs,
        workspace: &Utf8Path,
    ) -> Result<Option<RepConfig>, CliFailure> {
        let texts: BTreeMap<Utf8PathBuf, Option<String>> = gathered
            .touched
            .iter()
            .filter(|path| path.file_name() == Some(FILE_NAME))
            .map(|path| (workspace.join(path), gathered.base_files.get(path).cloned()))
            .collect();
        if texts.is_empty() {
            return Ok(None);
        }
        let revision = match (&gathered.scope.head, &gathered.scope.base) {
            (Some(_), Some(base)) => short_oid(base).to_owned(),
            _ => "HEAD".to_owned(),
        };
        Ok(Some(self.config.as_of(self.env, &CommittedFiles { revision, texts })?))
    }

    /// Assembles everything that a review needs.
    pub(crate) fn review_plan(
        &self,
        flags: &ReviewFlags,
        catalog: &Catalog,
        workspace: &Utf8Path,
        mut gathered: ReviewInputs,
    ) -> Result<CliReviewPlan, CliFailure> {
        let subject = if flags.docs { ReviewSubject::Docs } else { ReviewSubject::Code };
        let config = &self.config;
        let mut warnings = Vec::new();
        if gathered.touched.iter().any(|path| path.file_name() == Some(FILE_NAME)) {
            warnings.push(format!(
                "the change touches `{FILE_NAME}`; this review goes by what was there before"
            ));
        }
        let lineup = self.load_lineup(subject, flags, &gathered, &mut warnings)?;
        let depth =
            match (flags.patterns_only, flags.depth.as_deref().or(config.get_text("review.depth")))
            {
                (true, _) => ReviewDepth::Patterns,
                (false, Some("deep")) => ReviewDepth::Deep,
                (false, _) => ReviewDepth::Quick,
            };
        let (skills, unresolved) =
            self.review_skills(flags, catalog, (workspace, &gathered), &mut warnings)?;
        let globs: Vec<String> = skills
            .iter()
            .filter_map(|resolved| resolved.skill.priority_files.as_ref())
            .flat_map(|files| files.patterns.clone())
            .collect();
        let (first, wrong) = content::compile_globs(&globs);
        warnings.extend(wrong);
        content::assign_tiers(&mut gathered.change, &first, GatherLimits::default().full_chars_max);
        let categories: Vec<String> =
            skills.iter().map(|resolved| category_of(&lineup, &resolved.skill)).collect();
        let sources: Vec<PatternSource<'_>> = skills
            .iter()
            .zip(&categories)
            .map(|(ResolvedSkill { skill, trusted, .. }, category)| PatternSource {
                skill,
                category,
                trusted: *trusted,
            })
            .collect();
        let patterns = PatternSet::new(&sources);
        let baseline = self.read_baseline(flags)?;
        warnings.extend(describe_unusable_patterns(&skills, &patterns));
        let ignore = self.read_ignore_file(&gathered)?;
        warnings.extend(ignore.warnings().iter().cloned());
        warnings.extend(suppress::added_suppressions_warning(&gathered.change));
        let configured = config.get_text("review.instructions").unwrap_or_default();
        let instructions = [configured, flags.prompt.as_deref().unwrap_or_default()];
        let instructions = instructions.map(str::trim).into_iter().filter(|text| !text.is_empty());
        let mut skip_agents = config.get_texts("review.skip_agents");
        skip_agents.extend(flags.skip_agents.iter().cloned());
        for name in &skip_agents {
            if !lineup.agents.iter().any(|agent| agent.name == *name) {
                warnings.push(format!("there is no agent `{name}` to leave out"));
            }
        }
        let configured = config.get_text("review.min_severity").and_then(ReviewSeverity::from_word);
        let mut plan = ReviewPlan {
            depth,
            gathered,
            skills,
            unresolved,
            skip_agents,
            instructions: instructions.collect::<Vec<_>>().join("\n\n"),
            min_severity: flags.min_severity.or(configured).unwrap_or(ReviewSeverity::Suggestion),
            at_once: self.at_once(flags),
            baseline,
            ignore,
            patterns,
            lineup,
            warnings,
        };
        let before = if flags.incremental {
            incremental::find_earlier(&self.review_store(workspace), &plan)
        } else {
            None
        };
        if let Some(before) = &before {
            incremental::skip_seen_files(&mut plan, before);
        }
        Ok(CliReviewPlan { plan, before })
    }

    fn at_once(&self, flags: &ReviewFlags) -> usize {
        let configured =
            || self.config.get_number("review.at_once").map_or(4, |number| number as usize);
        flags.at_once.map_or_else(configured, usize::from)
    }

    /// Collects the change to review.
    pub(crate) async fn gather_change(
        &self,
        flags: &ReviewFlags,
        workspace: &Utf8Path,
    ) -> Result<ReviewInputs, CliFailure> {
        let scope = match flags {
            ReviewFlags { staged: true, .. } => ReviewScope::Staged,
            ReviewFlags { base: Some(branch), .. } => ReviewScope::Base(branch.clone()),
            ReviewFlags { commit: Some(commit), .. } => ReviewScope::Commit(commit.clone()),
            ReviewFlags { range: Some(range), .. } => {
                ReviewScope::parse_range(range).ok_or_else(|| {
                    CliFailure::wrong_usage(format!("`{range}` is no range"))
                        .hint("Write it as FROM..TO or FROM...TO.")
                })?
            }
            ReviewFlags { paths, .. } if !paths.is_empty() => ReviewScope::Files,
            _ => ReviewScope::Uncommitted,
        };
        let git = self.git_in(workspace)?;
        let paths = self.review_paths(workspace, &flags.paths)?;
        let limits = GatherLimits::default();
        let gathered = scope::gather_inputs(&git, &scope, &paths, &limits).await;
        gathered.map_err(|error| match error {
            ScopeError::NoMatch { .. }
            | ScopeError::NoSuchRevision { .. }
            | ScopeError::Outside { .. }
            | ScopeError::Glob { .. }
            | ScopeError::NoPaths => CliFailure::wrong_usage(error.to_string()),
            _ => CliFailure::cannot_run(error.to_string()),
        })
    }

    /// Makes paths relative to the workspace. They may be globs, and the files may be deleted.
    fn review_paths(
        &self,
        workspace: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Vec<Utf8PathBuf>, CliFailure> {
        let here = self.env.here.canonicalize_utf8().unwrap_or_else(|_| self.env.here.clone());
        let one = |path: &Utf8PathBuf| {
            let full = here.join(path);
            let full = full.canonicalize_utf8().unwrap_or(full);
            full.strip_prefix(workspace).map(Utf8Path::to_owned).map_err(|_| {
                CliFailure::wrong_usage(format!("`{path}` is not in {workspace}"))
                    .hint("Reviews look at one repository; `-C DIR` works in another one.")
            })
        };
        paths.iter().map(one).collect()
    }

    /// Loads the line-up of reviewers: the built-in one with additions of the user and the project.
    fn load_lineup(
        &self,
        subject: ReviewSubject,
        flags: &ReviewFlags,
        gathered: &ReviewInputs,
        warnings: &mut Vec<String>,
    ) -> Result<ReviewLineup, CliFailure> {
        let mut out = lineup::builtin_lineup(subject);
        let mut add = |text: &str,
                       file: &Utf8Path,
                       source: LineupSource|
         -> Result<(), lineup::LineupError> {
            let more = lineup::load_lineup(text, file)?;
            if more.subject == subject {
                let merged = lineup::merge_lineups(std::mem::take(&mut out), more, source);
                warnings.extend(merged.warnings);
                out = merged.lineup;
            }
            Ok(())
        };
        for file in self.lineup_files(flags) {
            let text = fs::read_text(&file, LINEUP_BYTES_MAX).map_err(|error| {
                CliFailure::wrong_usage(format!("{file} cannot be read: {error}"))
            })?;
            add(&text, &file, LineupSource::User)
                .map_err(|error| CliFailure::wrong_usage(error.to_string()))?;
        }
        for (path, text) in &gathered.base_files {
            if path.as_str().starts_with(".repertoire/review/") {
                add(text, path, LineupSource::Project)
                    .map_err(|error| CliFailure::wrong_usage(error.to_string()))?;
            }
        }
        match lineup::check_lineup(&out).first() {
            Some(problem) => {
                Err(CliFailure::wrong_usage(format!("the line-up of reviewers: {problem}")))
            }
            None => Ok(out),
        }
    }

    fn lineup_files(&self, flags: &ReviewFlags) -> Vec<Utf8PathBuf> {
        let dir = self.env.config_dir().join(LINEUP_DIR);
        let entries = fs::list_entries(&dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.name.into_string().ok());
        let is_yaml = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
        let mut own: Vec<Utf8PathBuf> = names.filter(is_yaml).map(|name| dir.join(name)).collect();
        own.sort();
        own.extend(flags.lineup.iter().map(|path| self.typed_path(path)));
        own
    }

    /// Reads the findings that were reported earlier.
    fn read_baseline(&self, flags: &ReviewFlags) -> Result<ReviewBaseline, CliFailure> {
        let Some(path) = &flags.baseline else { return Ok(ReviewBaseline::default()) };
        ReviewBaseline::read(&self.typed_path(path)).map_err(|error| {
            CliFailure::wrong_usage(error.to_string())
                .hint("`--baseline` takes what `rep review --format json` prints.")
        })
    }

    /// Reads the findings that the repository suppresses, from before the change.
    fn read_ignore_file(&self, gathered: &ReviewInputs) -> Result<IgnoreFile, CliFailure> {
        let path = Utf8Path::new(IGNORE_FILE);
        let Some(text) = gathered.base_files.get(path) else { return Ok(IgnoreFile::default()) };
        IgnoreFile::parse(path, text, SystemClock.now_ms())
            .map_err(|error| CliFailure::wrong_usage(error.to_string()))
    }

    /// The severity from which a review fails. `None` if it never does.
    pub(crate) fn review_fail_on(&self) -> Option<ReviewSeverity> {
        match self.config.get_text("review.fail_on") {
            Some("never") => None,
            word => Some(word.and_then(ReviewSeverity::from_word).unwrap_or(ReviewSeverity::Major)),
        }
    }

    /// Builds the agents of a review, after checking that their models or programs are available.
    pub(crate) fn build_reviewers(
        &self,
        flags: &ReviewFlags,
        gathered: &ReviewInputs,
    ) -> Result<ReviewAgents, CliFailure> {
        let backend = flags
            .backend
            .clone()
            .or_else(|| self.config.get_text("review.backend").map(str::to_owned));
        let run_flags = RunFlags {
            model: flags.model.clone(),
            backend,
            read_only: true,
            no_auto: true,
            ..RunFlags::default()
        };
        let models = self.tier_models(flags);
        let system =
            self.system_builder(&run_flags)?.build().map_err(crate::agent_setup::build_failure)?;
        self.check_models(&system, &run_flags, &models)?;
        let mut options = self.run_options(&run_flags)?;
        options.mcp_servers = None;
        options.ignore_project_rules = true;
        let dir = gathered.tree.dir();
        options.permissions = options.permissions.map(|rules| rules.in_dir(dir));
        let time =
            |name: &str| self.config.get_text(name).and_then(|text| parse_duration(text).ok());
        let mut agents = ReviewAgents::new(system.in_dir(dir, Vec::new()), options);
        agents.models = models;
        agents.at_once = self.at_once(flags);
        agents.allowance = ReviewAllowance {
            cost_usd: flags.max_cost.or_else(|| self.config.get_number("review.max_cost")),
            tokens: flags
                .max_tokens
                .or_else(|| self.config.get_number("review.max_tokens").map(|n| n as u64)),
            time: flags.max_time.or_else(|| time("review.max_time")),
            call_time: time("review.call_time"),
        };
        Ok(agents)
    }

    /// Returns the model of each tier: the tier's own flag, `--model`, or the configured one.
    fn tier_models(&self, flags: &ReviewFlags) -> BTreeMap<ModelTier, ModelName> {
        let tiers = [
            (ModelTier::Strong, &flags.strong_model, "review.strong_model"),
            (ModelTier::Fast, &flags.fast_model, "review.fast_model"),
        ];
        let one = |(tier, typed, key): (ModelTier, &Option<ModelName>, &str)| {
            let configured = || self.config.get_text(key).and_then(|text| text.parse().ok());
            typed
                .clone()
                .or_else(|| flags.model.clone())
                .or_else(configured)
                .map(|model| (tier, model))
        };
        tiers.into_iter().filter_map(one).collect()
    }

    fn check_models(
        &self,
        system: &System,
        flags: &RunFlags,
        models: &BTreeMap<ModelTier, ModelName>,
    ) -> Result<(), CliFailure> {
        const INSTEAD: &str = "`--patterns-only` needs no model, and `--dry-run` shows what would be sent, without a key.";
        for tier in [ModelTier::Strong, ModelTier::Fast] {
            let model = models.get(&tier).or(flags.model.as_ref()).cloned();
            let flags = RunFlags { model, ..flags.clone() };
            self.check_reach(system, "default", &flags, Some(INSTEAD))?;
        }
        Ok(())
    }
}
