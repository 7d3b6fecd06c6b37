//! Assembles a review from the configuration and the options: the change, the agents and the
//! skills.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::System;
use repertoire_agent::permission::PermissionMode;
use repertoire_journal::Target;
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

use crate::agent_setup::{AgentRunOptions, build_failure};
use crate::config::{CommittedFiles, FILE_NAME, RepConfig, ReviewFailOn};
use crate::context::AppContext;
use crate::error::AppError;
use crate::runs::short_oid;

pub mod incremental;
mod skills;

use skills::{category_of, describe_unusable_patterns};

const LINEUP_BYTES_MAX: u64 = 1024 * 1024;
/// The folder of the user's own line-ups of reviewers, inside the configuration folder.
const LINEUP_DIR: &str = "review";

/// Options of a review, which take precedence over the configuration.
#[derive(Clone, Debug, Default)]
pub struct ReviewRunOptions {
    /// Files and folders to review. Unchanged files are reviewed in full; with another scope, only what is below
    /// these is reviewed.
    pub paths: Vec<Utf8PathBuf>,
    /// True if the staged changes are reviewed.
    pub staged: bool,
    /// The branch to which this branch is compared.
    pub base: Option<String>,
    /// The commit whose changes are reviewed.
    pub commit: Option<String>,
    /// The range whose changes are reviewed, as `FROM..TO` or `FROM...TO`.
    pub range: Option<String>,
    /// The depth of the review. `None` for the configured one.
    pub depth: Option<ReviewDepth>,
    /// True if documentation is reviewed, with the agents for it.
    pub docs: bool,
    /// Skills that say what to look for; `usual` stands for the default ones.
    pub skills: Vec<String>,
    /// True if no skills are used.
    pub no_skills: bool,
    /// Agents to leave out.
    pub skip_agents: Vec<String>,
    /// Files with additional agents, besides those in the configuration folder.
    pub lineup: Vec<Utf8PathBuf>,
    /// Additional instructions for every reviewer.
    pub prompt: Option<String>,
    /// Findings below this severity are not reported.
    pub min_severity: Option<ReviewSeverity>,
    /// An earlier report (JSON), whose findings are not reported again.
    pub baseline: Option<Utf8PathBuf>,
    /// True if only files are reviewed that have changed since the last review of the same scope, and nothing is
    /// reported twice.
    pub incremental: bool,
    /// The backend that executes reviews, as in [`AgentRunOptions::backend`].
    pub backend: Option<String>,
    /// The model of all reviewers.
    pub model: Option<ModelName>,
    /// The model of reviewers that need a strong one.
    pub strong_model: Option<ModelName>,
    /// The model of reviewers that can do with a cheaper one.
    pub fast_model: Option<ModelName>,
    /// Maximum number of reviewers that run at once.
    pub at_once: Option<u16>,
    /// Maximum cost of the whole review, in US dollars.
    pub cost_usd_max: Option<f64>,
    /// Maximum number of tokens of the whole review.
    pub tokens_max: Option<u64>,
    /// Maximum duration of the whole review.
    pub duration_max: Option<Duration>,
}

impl AppContext<'_> {
    /// Opens the stored reviews of a workspace, and creates the journal if there is none.
    pub async fn review_store(&self, workspace: &Utf8Path) -> Result<ReviewStore, AppError> {
        let journal = self.journal(None).await?;
        Ok(ReviewStore::new(journal, &self.run_places().runs, workspace))
    }

    /// Opens the stored reviews of a workspace; `None` if there is no journal yet.
    pub async fn existing_reviews(
        &self,
        workspace: &Utf8Path,
    ) -> Result<Option<ReviewStore>, AppError> {
        match self.journal_target(None) {
            Target::File(path) if !path.exists() => Ok(None),
            _ => self.review_store(workspace).await.map(Some),
        }
    }

    /// Returns the configuration from before the change, if the change touches it: a change must
    /// not decide how it is reviewed.
    pub fn config_before(
        &self,
        gathered: &ReviewInputs,
        workspace: &Utf8Path,
    ) -> Result<Option<RepConfig>, AppError> {
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

    /// Assembles everything that a review needs. [`incremental::continue_earlier`] then leaves out what an earlier
    /// review has seen.
    pub fn review_plan(
        &self,
        options: &ReviewRunOptions,
        catalog: &Catalog,
        workspace: &Utf8Path,
        mut gathered: ReviewInputs,
    ) -> Result<ReviewPlan, AppError> {
        let subject = if options.docs { ReviewSubject::Docs } else { ReviewSubject::Code };
        let values = self.config.values();
        let mut warnings = Vec::new();
        if gathered.touched.iter().any(|path| path.file_name() == Some(FILE_NAME)) {
            warnings.push(format!(
                "the change touches `{FILE_NAME}`; this review goes by what was there before"
            ));
        }
        let lineup = self.load_lineup(subject, options, &gathered, &mut warnings)?;
        let (skills, unresolved) =
            self.review_skills(options, catalog, (workspace, &gathered), &mut warnings)?;
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
        let baseline = self.read_baseline(options)?;
        warnings.extend(describe_unusable_patterns(&skills, &patterns));
        let ignore = self.read_ignore_file(&gathered)?;
        warnings.extend(ignore.warnings().iter().cloned());
        warnings.extend(suppress::added_suppressions_warning(&gathered.change));
        let configured = values.review_instructions.as_deref().unwrap_or_default();
        let instructions = [configured, options.prompt.as_deref().unwrap_or_default()];
        let instructions = instructions.map(str::trim).into_iter().filter(|text| !text.is_empty());
        let mut skip_agents = values.review_skip_agents.clone();
        skip_agents.extend(options.skip_agents.iter().cloned());
        for name in &skip_agents {
            if !lineup.agents.iter().any(|agent| agent.name == *name) {
                warnings.push(format!("there is no agent `{name}` to leave out"));
            }
        }
        Ok(ReviewPlan {
            depth: options.depth.unwrap_or(values.review_depth),
            gathered,
            skills,
            unresolved,
            skip_agents,
            instructions: instructions.collect::<Vec<_>>().join("\n\n"),
            min_severity: options.min_severity.unwrap_or(values.review_min_severity),
            at_once: self.at_once(options),
            baseline,
            ignore,
            patterns,
            lineup,
            warnings,
        })
    }

    fn at_once(&self, options: &ReviewRunOptions) -> usize {
        options.at_once.map_or(self.config.values().review_at_once, usize::from)
    }

    /// Collects the change to review.
    pub async fn gather_change(
        &self,
        options: &ReviewRunOptions,
        workspace: &Utf8Path,
    ) -> Result<ReviewInputs, AppError> {
        let scope = match options {
            ReviewRunOptions { staged: true, .. } => ReviewScope::Staged,
            ReviewRunOptions { base: Some(branch), .. } => ReviewScope::Base(branch.clone()),
            ReviewRunOptions { commit: Some(commit), .. } => ReviewScope::Commit(commit.clone()),
            ReviewRunOptions { range: Some(range), .. } => ReviewScope::parse_range(range)
                .ok_or_else(|| {
                    AppError::wrong_usage(format!("`{range}` is no range"))
                        .hint("Write it as FROM..TO or FROM...TO.")
                })?,
            ReviewRunOptions { paths, .. } if !paths.is_empty() => ReviewScope::Files,
            _ => ReviewScope::Uncommitted,
        };
        let git = self.git_in(workspace)?;
        let paths = self.review_paths(workspace, &options.paths)?;
        let limits = GatherLimits::default();
        let gathered = scope::gather_inputs(&git, &scope, &paths, &limits).await;
        gathered.map_err(|error| match error {
            ScopeError::NoMatch { .. }
            | ScopeError::NoSuchRevision { .. }
            | ScopeError::Outside { .. }
            | ScopeError::Glob { .. }
            | ScopeError::NoPaths => AppError::wrong_usage(error.to_string()),
            _ => AppError::cannot_run(error.to_string()),
        })
    }

    /// Makes paths relative to the workspace. They may be globs, and the files may be deleted.
    fn review_paths(
        &self,
        workspace: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Vec<Utf8PathBuf>, AppError> {
        let here = self.env.here.canonicalize_utf8().unwrap_or_else(|_| self.env.here.clone());
        let one = |path: &Utf8PathBuf| {
            let full = here.join(path);
            let full = full.canonicalize_utf8().unwrap_or(full);
            full.strip_prefix(workspace).map(Utf8Path::to_owned).map_err(|_| {
                AppError::wrong_usage(format!("`{path}` is not in {workspace}"))
                    .hint("Reviews look at one repository; `-C DIR` works in another one.")
            })
        };
        paths.iter().map(one).collect()
    }

    /// Loads the line-up of reviewers: the built-in one with additions of the user and the project.
    fn load_lineup(
        &self,
        subject: ReviewSubject,
        options: &ReviewRunOptions,
        gathered: &ReviewInputs,
        warnings: &mut Vec<String>,
    ) -> Result<ReviewLineup, AppError> {
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
        for file in self.lineup_files(options) {
            let text = fs::read_text(&file, LINEUP_BYTES_MAX).map_err(|error| {
                AppError::wrong_usage(format!("{file} cannot be read: {error}"))
            })?;
            add(&text, &file, LineupSource::User)
                .map_err(|error| AppError::wrong_usage(error.to_string()))?;
        }
        for (path, text) in &gathered.base_files {
            if path.as_str().starts_with(".repertoire/review/") {
                add(text, path, LineupSource::Project)
                    .map_err(|error| AppError::wrong_usage(error.to_string()))?;
            }
        }
        match lineup::check_lineup(&out).first() {
            Some(problem) => {
                Err(AppError::wrong_usage(format!("the line-up of reviewers: {problem}")))
            }
            None => Ok(out),
        }
    }

    fn lineup_files(&self, options: &ReviewRunOptions) -> Vec<Utf8PathBuf> {
        let dir = self.env.config_dir().join(LINEUP_DIR);
        let entries = fs::list_entries(&dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.name.into_string().ok());
        let is_yaml = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
        let mut own: Vec<Utf8PathBuf> = names.filter(is_yaml).map(|name| dir.join(name)).collect();
        own.sort();
        own.extend(options.lineup.iter().map(|path| self.typed_path(path)));
        own
    }

    /// Reads the findings that were reported earlier.
    fn read_baseline(&self, options: &ReviewRunOptions) -> Result<ReviewBaseline, AppError> {
        let Some(path) = &options.baseline else { return Ok(ReviewBaseline::default()) };
        ReviewBaseline::read(&self.typed_path(path)).map_err(|error| {
            AppError::wrong_usage(error.to_string())
                .hint("`--baseline` takes what `rep review --format json` prints.")
        })
    }

    /// Reads the findings that the repository suppresses, from before the change.
    fn read_ignore_file(&self, gathered: &ReviewInputs) -> Result<IgnoreFile, AppError> {
        let path = Utf8Path::new(IGNORE_FILE);
        let Some(text) = gathered.base_files.get(path) else { return Ok(IgnoreFile::default()) };
        IgnoreFile::parse(path, text, SystemClock.now_ms())
            .map_err(|error| AppError::wrong_usage(error.to_string()))
    }

    /// The severity from which a review fails. `None` if it never does.
    pub fn review_fail_on(&self) -> Option<ReviewSeverity> {
        match self.config.values().review_fail_on {
            ReviewFailOn::Severity(severity) => Some(severity),
            ReviewFailOn::Never => None,
        }
    }

    /// Builds the agents of a review, after checking that their models or programs are available.
    pub fn build_reviewers(
        &self,
        options: &ReviewRunOptions,
        gathered: &ReviewInputs,
    ) -> Result<ReviewAgents, AppError> {
        let values = self.config.values();
        let backend = options.backend.clone().or_else(|| values.review_backend.clone());
        let agent_options = AgentRunOptions {
            model: options.model.clone(),
            backend,
            mode: Some(PermissionMode::ReadOnly),
            no_auto: true,
            ..AgentRunOptions::default()
        };
        let models = self.tier_models(options);
        let system = self.system_builder(&agent_options)?.build().map_err(build_failure)?;
        self.check_models(&system, &agent_options, &models)?;
        let mut run = self.run_options(&agent_options)?;
        run.mcp_servers = None;
        run.ignore_project_rules = true;
        let dir = gathered.tree.dir();
        run.permissions = run.permissions.map(|rules| rules.in_dir(dir));
        let mut agents = ReviewAgents::new(system.in_dir(dir, Vec::new()), run);
        agents.models = models;
        agents.at_once = self.at_once(options);
        agents.allowance = ReviewAllowance {
            cost_usd: options.cost_usd_max.or(values.review_max_cost),
            tokens: options.tokens_max.or(values.review_max_tokens),
            time: Some(options.duration_max.unwrap_or(values.review_max_time)),
            call_time: Some(values.review_call_time),
        };
        Ok(agents)
    }

    /// Returns the model of each tier: the tier's own flag, `--model`, or the configured one.
    fn tier_models(&self, options: &ReviewRunOptions) -> BTreeMap<ModelTier, ModelName> {
        let values = self.config.values();
        let tiers = [
            (ModelTier::Strong, &options.strong_model, &values.review_strong_model),
            (ModelTier::Fast, &options.fast_model, &values.review_fast_model),
        ];
        let models = tiers.into_iter().filter_map(|(tier, typed, configured)| {
            let model = typed.as_ref().or(options.model.as_ref()).or(configured.as_ref())?;
            Some((tier, model.clone()))
        });
        models.collect()
    }

    fn check_models(
        &self,
        system: &System,
        options: &AgentRunOptions,
        models: &BTreeMap<ModelTier, ModelName>,
    ) -> Result<(), AppError> {
        const INSTEAD: &str = "`--patterns-only` needs no model, and `--dry-run` shows what would be sent, without a key.";
        for tier in [ModelTier::Strong, ModelTier::Fast] {
            let model = models.get(&tier).or(options.model.as_ref()).cloned();
            let options = AgentRunOptions { model, ..options.clone() };
            self.check_reach(system, "default", &options, Some(INSTEAD))?;
        }
        Ok(())
    }
}
