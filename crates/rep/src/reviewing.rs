//! From the configuration and the command line to a review: what is looked at, who looks, with which skills.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::System;
use repertoire_agent::clock::{Clock, SystemClock};
use repertoire_drive::git::Git;
use repertoire_drive::review::asking::{Agents, Allowance};
use repertoire_drive::review::baseline::Baseline;
use repertoire_drive::review::change::{Change, Skipped};
use repertoire_drive::review::content;
use repertoire_drive::review::instructions::Resolved;
use repertoire_drive::review::lineup::{self, Lineup, ModelTier, Source};
use repertoire_drive::review::patterns::{PatternSet, PatternSource};
use repertoire_drive::review::pipeline::Plan;
use repertoire_drive::review::prints;
use repertoire_drive::review::record::{Depth, FileRecord, Review, Subject, Unresolved};
use repertoire_drive::review::rules::IGNORE_FILE;
use repertoire_drive::review::scope::{self, GatherLimits, Gathered, Scope, ScopeError};
use repertoire_drive::review::store::Reviews;
use repertoire_drive::review::suppress::{self, IgnoreFile};
use repertoire_model::ModelName;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::review::{ReviewKind, ReviewSkill, Severity, extract};
use repertoire_skill::skill::Scope as SkillScope;
use repertoire_skill::trust::Trust;
use repertoire_text::fs;

use crate::cli::Ctx;
use crate::config::duration;
use crate::failure::Failure;
use crate::running::RunFlags;

const WHAT: &str = "What to look at";
const HOW: &str = "How to look";
const WHO: &str = "Who looks";
const LIMITS: &str = "Limits";
const LINEUP_BYTES_MAX: u64 = 1024 * 1024;
/// Where a project and a user keep agents of their own.
const LINEUP_DIR: &str = "review";

/// What is looked at, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ReviewFlags {
    /// Files and folders; all of a file that has not changed. With another scope: only what is below them
    #[arg(value_name = "PATH", help_heading = WHAT)]
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// What is staged
    #[arg(long, conflicts_with_all = ["base", "commit", "range"], help_heading = WHAT)]
    pub(crate) staged: bool,
    /// What this branch adds to another one
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["commit", "range"], help_heading = WHAT)]
    pub(crate) base: Option<String>,
    /// What one commit changes
    #[arg(long, value_name = "COMMIT", conflicts_with = "range", help_heading = WHAT)]
    pub(crate) commit: Option<String>,
    /// What lies between two commits, as FROM..TO or FROM...TO
    #[arg(long, value_name = "RANGE", help_heading = WHAT)]
    pub(crate) range: Option<String>,
    /// How deep to look: a few agents, or all of them and those that look for gaps
    #[arg(long, value_parser = ["quick", "deep"], value_name = "DEPTH", help_heading = HOW)]
    pub(crate) depth: Option<String>,
    /// Look at documentation, with the agents for it
    #[arg(long, help_heading = HOW)]
    pub(crate) docs: bool,
    /// Run the patterns of skills alone: no model, no key, milliseconds
    #[arg(long, conflicts_with_all = ["depth", "docs"], help_heading = HOW)]
    pub(crate) patterns_only: bool,
    /// Skills that say what to look for, as a,plugin:b (may be repeated)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HOW)]
    pub(crate) skills: Vec<String>,
    /// Use no skills
    #[arg(long, conflicts_with = "skills", help_heading = HOW)]
    pub(crate) no_skills: bool,
    /// Agents to leave out (may be repeated, or a list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = HOW)]
    pub(crate) skip_agents: Vec<String>,
    /// A file with agents of your own, beside those of the configuration folder (may be repeated)
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub(crate) lineup: Vec<Utf8PathBuf>,
    /// What every reviewer is told besides
    #[arg(short, long, value_name = "TEXT", help_heading = HOW)]
    pub(crate) prompt: Option<String>,
    /// Report nothing below this severity
    #[arg(long, value_name = "SEVERITY", value_parser = severity, help_heading = HOW)]
    pub(crate) min_severity: Option<Severity>,
    /// An earlier report (JSON): what is in it is not reported again
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub(crate) baseline: Option<Utf8PathBuf>,
    /// Look only at files that have changed since the last review of the same scope, and report nothing twice
    #[arg(long, help_heading = HOW)]
    pub(crate) incremental: bool,
    /// Who executes reviews: api, claude, codex, opencode, gemini, acp:PROGRAM, command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// The model of all reviewers, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<ModelName>,
    /// The model of those that need the better one
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) strong_model: Option<ModelName>,
    /// The model of those that do with a cheaper one
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) fast_model: Option<ModelName>,
    /// Reviewers at work at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), help_heading = LIMITS)]
    pub(crate) at_once: Option<u16>,
    /// Most US dollars of the whole review
    #[arg(long, value_name = "USD", value_parser = crate::running::dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Most tokens of the whole review
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Longest time of the whole review, as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = LIMITS)]
    pub(crate) max_time: Option<Duration>,
}

/// A severity that was typed.
pub(crate) fn severity(word: &str) -> Result<Severity, String> {
    Severity::from_word(word).ok_or_else(|| "one of critical, major, minor, suggestion".to_owned())
}

/// The settings of a review. What a project says does not count where the change under review is what says it.
struct Settings<'a> {
    ctx: &'a Ctx<'a>,
    is_touched: bool,
}

impl Settings<'_> {
    fn counts(&self, name: &str) -> bool {
        !(self.is_touched && self.ctx.config.is_from_project(name))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.ctx.config.text(name).filter(|_| self.counts(name))
    }

    fn texts(&self, name: &str) -> Vec<String> {
        if self.counts(name) { self.ctx.config.texts(name) } else { Vec::new() }
    }

    fn model(&self, name: &str) -> Option<ModelName> {
        self.text(name).and_then(|text| text.parse().ok())
    }
}

impl Ctx<'_> {
    /// The reviews of a workspace.
    pub(crate) fn reviews(&self, workspace: &Utf8Path) -> Reviews {
        Reviews::new(&self.env.data_dir().join("reviews"), workspace)
    }

    /// Everything that a review begins with.
    pub(crate) async fn review_plan(
        &self,
        flags: &ReviewFlags,
        catalog: &Catalog,
        workspace: &Utf8Path,
    ) -> Result<Plan, Failure> {
        let subject = if flags.docs { Subject::Docs } else { Subject::Code };
        let mut gathered = self.gathered(flags, workspace).await?;
        let settings = Settings { ctx: self, is_touched: touches_config(&gathered) };
        let mut warnings = Vec::new();
        if settings.is_touched {
            warnings.push(
                "this change touches repertoire.toml, so what the project says there about reviews does not count"
                    .to_owned(),
            );
        }
        let lineup = self.lineup(subject, flags, &gathered, &mut warnings)?;
        let depth =
            match (flags.patterns_only, flags.depth.as_deref().or(settings.text("review.depth"))) {
                (true, _) => Depth::Patterns,
                (false, Some("deep")) => Depth::Deep,
                (false, _) => Depth::Quick,
            };
        let (skills, unresolved) = self.review_skills(flags, catalog, &settings, &mut warnings);
        let globs: Vec<String> = skills
            .iter()
            .filter_map(|resolved| resolved.skill.priority_files.as_ref())
            .flat_map(|files| files.patterns.clone())
            .collect();
        let (first, wrong) = content::globs(&globs);
        warnings.extend(wrong);
        content::assign_tiers(&mut gathered.change, &first, GatherLimits::default().full_chars_max);
        let categories: Vec<String> =
            skills.iter().map(|resolved| category_of(&lineup, &resolved.skill)).collect();
        let sources: Vec<PatternSource<'_>> = skills
            .iter()
            .zip(&categories)
            .map(|(Resolved { skill, trusted, .. }, category)| PatternSource {
                skill,
                category,
                trusted: *trusted,
            })
            .collect();
        let patterns = PatternSet::new(&sources);
        let as_deep =
            |review: &Review| review.subject == subject && rank(review.depth) >= rank(depth);
        let baseline = self.baseline(flags, workspace, &mut gathered, as_deep)?;
        let ignore = self.ignored(&gathered)?;
        warnings.extend(ignore.warnings().iter().cloned());
        warnings.extend(suppress::added_by_change(&gathered.change));
        let configured = settings.text("review.instructions").unwrap_or_default();
        let instructions = [configured, flags.prompt.as_deref().unwrap_or_default()];
        let instructions = instructions.map(str::trim).into_iter().filter(|text| !text.is_empty());
        let mut skip_agents = settings.texts("review.skip_agents");
        skip_agents.extend(flags.skip_agents.iter().cloned());
        for name in &skip_agents {
            if !lineup.agents.iter().any(|agent| agent.name == *name) {
                warnings.push(format!("there is no agent `{name}` to leave out"));
            }
        }
        let configured = settings.text("review.min_severity").and_then(Severity::from_word);
        Ok(Plan {
            depth,
            gathered,
            skills,
            unresolved,
            skip_agents,
            instructions: instructions.collect::<Vec<_>>().join("\n\n"),
            min_severity: flags.min_severity.or(configured).unwrap_or(Severity::Suggestion),
            at_once: flags.at_once.map_or_else(
                || self.config.amount("review.at_once").map_or(4, |number| number as usize),
                usize::from,
            ),
            baseline,
            ignore,
            patterns,
            lineup,
            warnings,
        })
    }

    async fn gathered(
        &self,
        flags: &ReviewFlags,
        workspace: &Utf8Path,
    ) -> Result<Gathered, Failure> {
        let scope = match flags {
            ReviewFlags { staged: true, .. } => Scope::Staged,
            ReviewFlags { base: Some(branch), .. } => Scope::Base(branch.clone()),
            ReviewFlags { commit: Some(commit), .. } => Scope::Commit(commit.clone()),
            ReviewFlags { range: Some(range), .. } => Scope::range(range).ok_or_else(|| {
                Failure::usage(format!("`{range}` is no range"))
                    .hint("Write it as FROM..TO or FROM...TO.")
            })?,
            ReviewFlags { paths, .. } if !paths.is_empty() => Scope::Files,
            _ => Scope::Uncommitted,
        };
        let git = Git::new(workspace, self.env.tool_environment(false));
        let paths = self.review_paths(workspace, &flags.paths)?;
        let limits = GatherLimits::default();
        let gathered = scope::gather(&git, &scope, &paths, &limits).await;
        gathered.map_err(|error| match error {
            ScopeError::NoPaths
            | ScopeError::Outside { .. }
            | ScopeError::NoMatch { .. }
            | ScopeError::Glob { .. } => Failure::usage(error.to_string()),
            error => Failure::cannot_run(error.to_string()),
        })
    }

    /// Paths that were typed, as paths below the workspace; they may be globs, and need not be there any more.
    fn review_paths(
        &self,
        workspace: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Vec<Utf8PathBuf>, Failure> {
        let here = self.env.here.canonicalize_utf8().unwrap_or_else(|_| self.env.here.clone());
        let one = |path: &Utf8PathBuf| {
            let full = here.join(path);
            let full = full.canonicalize_utf8().unwrap_or(full);
            full.strip_prefix(workspace).map(Utf8Path::to_owned).map_err(|_| {
                Failure::usage(format!("`{path}` is not in {workspace}"))
                    .hint("Reviews look at one repository; `-C DIR` works in another one.")
            })
        };
        paths.iter().map(one).collect()
    }

    /// Who reviews: the built-in line-up, and what the user and the project add to it.
    fn lineup(
        &self,
        subject: Subject,
        flags: &ReviewFlags,
        gathered: &Gathered,
        warnings: &mut Vec<String>,
    ) -> Result<Lineup, Failure> {
        let mut out = lineup::builtin(subject);
        let mut add =
            |text: &str, file: &Utf8Path, source: Source| -> Result<(), lineup::LineupError> {
                let more = lineup::load(text, file)?;
                if more.subject == subject {
                    let merged = lineup::merge(std::mem::take(&mut out), more, source);
                    warnings.extend(merged.warnings);
                    out = merged.lineup;
                }
                Ok(())
            };
        for file in self.lineup_files(flags) {
            let text = fs::read_text(&file, LINEUP_BYTES_MAX)
                .map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?;
            add(&text, &file, Source::User).map_err(|error| Failure::usage(error.to_string()))?;
        }
        for (path, text) in &gathered.base_files {
            if path.as_str().starts_with(".repertoire/review/") {
                add(text, path, Source::Project)
                    .map_err(|error| Failure::usage(error.to_string()))?;
            }
        }
        match lineup::check(&out).first() {
            Some(problem) => Err(Failure::usage(format!("the line-up of reviewers: {problem}"))),
            None => Ok(out),
        }
    }

    fn lineup_files(&self, flags: &ReviewFlags) -> Vec<Utf8PathBuf> {
        let dir = self.env.config_dir().join(LINEUP_DIR);
        let entries = fs::entries(&dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.name.into_string().ok());
        let is_yaml = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
        let mut own: Vec<Utf8PathBuf> = names.filter(is_yaml).map(|name| dir.join(name)).collect();
        own.sort();
        own.extend(flags.lineup.iter().map(|path| self.typed_path(path)));
        own
    }

    /// The skills that were asked for, or those of the built-in pack.
    fn review_skills(
        &self,
        flags: &ReviewFlags,
        catalog: &Catalog,
        settings: &Settings<'_>,
        warnings: &mut Vec<String>,
    ) -> (Vec<Resolved>, Vec<Unresolved>) {
        let mut asked: Vec<String> =
            flags.skills.iter().map(|name| name.trim().to_owned()).collect();
        asked.retain(|name| !name.is_empty());
        let configured = settings.texts("review.skills");
        if asked.is_empty() {
            asked = configured;
        }
        if flags.no_skills {
            return (Vec::new(), Vec::new());
        }
        if asked.is_empty() {
            return (self.usual_skills(flags, catalog), Vec::new());
        }
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in &asked {
            match catalog.resolve(name) {
                Ok(entry) => found.push(resolved(entry, name, true, warnings)),
                Err(error) => missing.push(Unresolved {
                    source: name.clone(),
                    reason: error.to_string(),
                    searched: error.searched.clone(),
                }),
            }
        }
        found.dedup_by(|a, b| a.skill.name == b.skill.name && a.skill.source == b.skill.source);
        (found, missing)
    }

    /// The review skills of the built-in pack; a project's of the same name only if it is trusted.
    fn usual_skills(&self, flags: &ReviewFlags, catalog: &Catalog) -> Vec<Resolved> {
        let is_usual = |entry: &&Entry| {
            entry.skill.origin.scope == SkillScope::Builtin
                && entry.skill.name.starts_with("reviewing-")
        };
        let mut quiet = Vec::new();
        let all = catalog.entries().iter().filter(is_usual);
        let all = all.map(|entry| resolved(entry, &entry.id, false, &mut quiet));
        all.filter(|resolved| flags.docs == (resolved.skill.kind == ReviewKind::Command)).collect()
    }

    /// What was reported before, and files that have not changed since.
    fn baseline(
        &self,
        flags: &ReviewFlags,
        workspace: &Utf8Path,
        gathered: &mut Gathered,
        is_as_deep: impl Fn(&Review) -> bool,
    ) -> Result<Baseline, Failure> {
        let read = |path: &Utf8PathBuf| {
            Baseline::read(&self.typed_path(path)).map_err(|error| {
                Failure::usage(error.to_string())
                    .hint("`--baseline` takes what `rep review --format json` prints.")
            })
        };
        let mut baseline = flags.baseline.as_ref().map(read).transpose()?.unwrap_or_default();
        if flags.incremental {
            let before = self.reviews_before(workspace, gathered);
            for review in &before {
                baseline.learn(review);
            }
            // Who got no answer has seen nothing, and a shallower look is none.
            let whole = |review: &&Review| review.failed_calls().next().is_none();
            let before: Vec<&Review> =
                before.iter().filter(whole).filter(|review| is_as_deep(review)).collect();
            leave_unchanged(&mut gathered.change, &before);
        }
        Ok(baseline)
    }

    /// Earlier reviews of the same scope, the latest first.
    fn reviews_before(&self, workspace: &Utf8Path, gathered: &Gathered) -> Vec<Review> {
        let reviews = self.reviews(workspace);
        let all = reviews.names().into_iter().filter_map(|name| reviews.load(&name).ok());
        all.filter(|review| {
            review.scope.words == gathered.scope.words
                && review.scope.branch == gathered.scope.branch
        })
        .collect()
    }

    /// What the repository does not want to be told, as it was before the change.
    fn ignored(&self, gathered: &Gathered) -> Result<IgnoreFile, Failure> {
        let path = Utf8Path::new(IGNORE_FILE);
        let Some(text) = gathered.base_files.get(path) else { return Ok(IgnoreFile::default()) };
        IgnoreFile::parse(path, text, SystemClock.now_ms())
            .map_err(|error| Failure::usage(error.to_string()))
    }

    /// The severity from which on a review fails; `None` if it never does.
    pub(crate) fn review_fail_on(&self, gathered: &Gathered) -> Option<Severity> {
        let settings = Settings { ctx: self, is_touched: touches_config(gathered) };
        match settings.text("review.fail_on") {
            Some("never") => None,
            Some(word) => Severity::from_word(word),
            None => Some(Severity::Major),
        }
    }

    /// Agents that answer, with a model or a program that is within reach.
    pub(crate) fn reviewers(
        &self,
        flags: &ReviewFlags,
        gathered: &Gathered,
    ) -> Result<Agents, Failure> {
        let settings = Settings { ctx: self, is_touched: touches_config(gathered) };
        let backend =
            flags.backend.clone().or_else(|| self.config.text("review.backend").map(str::to_owned));
        let run_flags = RunFlags {
            model: flags.model.clone(),
            backend,
            read_only: true,
            no_auto: true,
            ..RunFlags::default()
        };
        let models = self.tier_models(flags, &settings);
        let system = self.builder(&run_flags)?.build().map_err(crate::running::not_built)?;
        self.check_models(&system, &run_flags, &models)?;
        let mut options = self.run_options(&run_flags)?;
        options.mcp_servers = None;
        let dir = gathered.tree.dir();
        options.permissions = options.permissions.map(|rules| rules.in_dir(dir));
        let time = |name: &str| self.config.text(name).and_then(|text| duration(text).ok());
        let mut agents = Agents::new(system.in_dir(dir, Vec::new()), options);
        agents.models = models;
        agents.allowance = Allowance {
            cost_usd: flags.max_cost.or_else(|| self.config.amount("review.max_cost")),
            tokens: flags
                .max_tokens
                .or_else(|| self.config.amount("review.max_tokens").map(|n| n as u64)),
            time: flags.max_time.or_else(|| time("review.max_time")),
            call_time: time("review.call_time"),
        };
        Ok(agents)
    }

    /// The model of each tier: what was typed for it, what was typed for all, what is configured.
    fn tier_models(
        &self,
        flags: &ReviewFlags,
        settings: &Settings<'_>,
    ) -> BTreeMap<ModelTier, ModelName> {
        let tiers = [
            (ModelTier::Strong, &flags.strong_model, "review.strong_model"),
            (ModelTier::Fast, &flags.fast_model, "review.fast_model"),
        ];
        let one = |(tier, typed, key): (ModelTier, &Option<ModelName>, &str)| {
            let configured = || settings.model(key);
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
    ) -> Result<(), Failure> {
        const INSTEAD: &str = "`--patterns-only` needs no model, and `--dry-run` shows what would be sent, without a key.";
        for tier in [ModelTier::Strong, ModelTier::Fast] {
            let model = models.get(&tier).or(flags.model.as_ref()).cloned();
            let flags = RunFlags { model, ..flags.clone() };
            self.check_reach(system, "default", &flags, Some(INSTEAD))?;
        }
        Ok(())
    }
}

fn resolved(entry: &Entry, source: &str, asked: bool, warnings: &mut Vec<String>) -> Resolved {
    let extracted = extract(&entry.skill, source);
    warnings
        .extend(extracted.diagnostics.iter().map(|found| format!("{source}: {}", found.message)));
    Resolved { skill: extracted.skill, trusted: entry.trust == Trust::Trusted, asked }
}

/// The category that a skill's patterns belong to.
fn category_of(lineup: &Lineup, skill: &ReviewSkill) -> String {
    let agent = skill.primary_agent.as_deref();
    let known = lineup.agents.iter().find(|known| Some(known.name.as_str()) == agent);
    match known {
        Some(agent) => agent.category.clone(),
        None => skill.name.strip_prefix("reviewing-").unwrap_or(&skill.name).to_owned(),
    }
}

/// Whether the change under review is what says how it is reviewed.
fn touches_config(gathered: &Gathered) -> bool {
    let files = gathered.change.files.iter().map(|file| &file.path);
    files
        .chain(gathered.change.skipped.iter().map(|skipped| &skipped.path))
        .any(|path| path.file_name() == Some(crate::config::FILE_NAME))
}

/// How deep a depth is.
fn rank(depth: Depth) -> u8 {
    match depth {
        Depth::Patterns => 0,
        Depth::Quick => 1,
        Depth::Deep => 2,
    }
}

/// Files whose change one of these reviews has seen are not looked at again. The last one alone would not do: it did not
/// look at what those before it had seen.
fn leave_unchanged(change: &mut Change, before: &[&Review]) {
    let (mut new, mut skipped) = (Vec::new(), Vec::new());
    for file in std::mem::take(&mut change.files) {
        let digest = prints::change_digest(&file);
        let is_it = |known: &FileRecord| known.path == file.path && known.digest == digest;
        match before.iter().find(|review| review.files.iter().any(is_it)) {
            Some(review) => {
                let reason = format!("unchanged since the review {}", review.id);
                skipped.push(Skipped { path: file.path, reason });
            }
            None => new.push(file),
        }
    }
    change.files = new;
    change.skipped.extend(skipped);
}
