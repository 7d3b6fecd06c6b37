//! Assembles a GitHub run from the configuration of the base branch: its settings and its modes.

use camino::Utf8PathBuf;
use repertoire_github::automerge::AutoMerge;
use repertoire_github::base::trust_skills_of;
use repertoire_github::mode::{ModeSet, load_modes};
use repertoire_github::run::{ContinuousSettings, GitHubRunSettings, SandboxRequirement};
use repertoire_github::tasks::TaskSource;
use repertoire_skill::discover::discover_catalog;

use crate::context::AppContext;
use crate::error::AppError;
use repertoire_text::duration::parse_duration;

/// The trust in the skills of the working folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutTrust {
    /// Only skills that a person has trusted, as everywhere else.
    Any,
    /// All skills, since only people with write access can change the base branch.
    OfBase,
}

impl AppContext<'_> {
    /// Loads the modes from the skills of this folder, the user's skills and the built-in ones.
    pub fn load_modes(&self, checkout: CheckoutTrust) -> Result<ModeSet, AppError> {
        if !self.config.get_bool("skills_enabled") {
            return Ok(load_modes(None));
        }
        let request = self.config.discovery_request()?;
        let request = match checkout {
            CheckoutTrust::Any => request,
            CheckoutTrust::OfBase => trust_skills_of(self.config.places().project_dir(), request)
                .map_err(|error| AppError::cannot_run(error.to_string()))?,
        };
        Ok(load_modes(Some(&discover_catalog(&request))))
    }
}

/// Returns the settings of a run. `prompt` and `mode` are the values it was started with.
pub fn github_run_settings(
    ctx: &AppContext<'_>,
    prompt: Option<&str>,
    mode: Option<&str>,
) -> Result<GitHubRunSettings, AppError> {
    let config = &ctx.config;
    let auto_merge = auto_merge(ctx)?;
    let text = |name: &str| config.get_text(name).map(str::to_owned);
    let time = |name: &str| config.get_text(name).and_then(|text| parse_duration(text).ok());
    let usual = ContinuousSettings::default();
    Ok(GitHubRunSettings {
        triggers: config.trigger_settings(prompt, mode),
        rules: config.github_rules(),
        mode: mode.map(str::to_owned),
        failed_label: text("github.failed_label").unwrap_or_else(|| "agent-failed".to_owned()),
        walls: if ctx.needs_sandbox() {
            SandboxRequirement::Needed
        } else {
            SandboxRequirement::GivenUp
        },
        network: config.get_texts("github.network_tools"),
        branch_prefix: text("github.branch_prefix").unwrap_or_else(|| "repertoire/".to_owned()),
        push: config.get_bool("github.push"),
        pull_request: config.get_bool("github.pull_request"),
        // Only a person can mark a draft as ready, so drafts would block auto-merge. Auto-merge
        // turns them off unless `github.draft` is set explicitly.
        draft: config.get_bool("github.draft")
            && (!auto_merge.enabled || config.is_set("github.draft")),
        continuous: ContinuousSettings {
            sources: task_sources(ctx)?,
            tasks_file: Utf8PathBuf::from(text("github.continuous.tasks_file").unwrap_or_default()),
            plan: text("github.continuous.plan").map(Utf8PathBuf::from),
            max_tasks: config.get_number("github.continuous.max_tasks").map(|number| number as u32),
            max_time: time("github.continuous.max_time"),
            max_cost: config.get_number("github.continuous.max_cost"),
            delay: time("github.continuous.delay"),
            stop_on_first_failure: config.get_bool("github.continuous.stop_on_first_failure"),
            done_label: text("github.done_label").unwrap_or(usual.done_label),
            waiting_label: text("github.waiting_label").unwrap_or(usual.waiting_label),
            claim: time("github.continuous.claim").unwrap_or(usual.claim),
        },
        auto_merge,
    })
}

fn auto_merge(ctx: &AppContext<'_>) -> Result<AutoMerge, AppError> {
    const NAME: &str = "github.auto_merge";
    let Some(table) = ctx.config.get_table(NAME) else { return Ok(AutoMerge::default()) };
    toml::Value::Table(table.clone()).try_into().map_err(|error: toml::de::Error| {
        AppError::wrong_usage(format!(
            "{}: `{NAME}`: {}",
            ctx.config.describe_origin(NAME),
            error.message()
        ))
        .hint("docs/auto-merge.md lists its keys. Nothing is merged until they are right.")
    })
}

fn task_sources(ctx: &AppContext<'_>) -> Result<Vec<TaskSource>, AppError> {
    const NAME: &str = "github.continuous.sources";
    let known = |word: &String| TaskSource::ALL.into_iter().find(|source| source.as_str() == word);
    let one = |word: &String| {
        known(word).ok_or_else(|| {
            AppError::wrong_usage(format!(
                "{}: `{NAME}`: `{word}` is no source of tasks",
                ctx.config.describe_origin(NAME)
            ))
            .hint("There are `issue`, `file`, `plan` and `prompt`.")
        })
    };
    ctx.config.get_texts(NAME).iter().map(one).collect()
}
