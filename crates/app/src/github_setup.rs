//! Assembles a GitHub run from the configuration of the base branch: its settings and its modes.

use camino::Utf8PathBuf;
use repertoire_github::automerge::AutoMerge;
use repertoire_github::base::trust_skills_of;
use repertoire_github::mode::{ModeSet, load_modes};
use repertoire_github::run::{ContinuousSettings, GitHubRunSettings, SandboxRequirement};
use repertoire_github::tasks::TaskSource;
use repertoire_skill::discover::discover_catalog;

use crate::config::KEY;
use crate::context::AppContext;
use crate::error::AppError;

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
        if !self.config.values().skills_enabled {
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
    let (config, values) = (&ctx.config, ctx.config.values());
    let auto_merge = auto_merge(ctx)?;
    Ok(GitHubRunSettings {
        triggers: config.trigger_settings(prompt, mode),
        rules: config.github_rules(),
        mode: mode.map(str::to_owned),
        failed_label: values.github_failed_label.clone(),
        walls: if ctx.needs_sandbox() {
            SandboxRequirement::Needed
        } else {
            SandboxRequirement::GivenUp
        },
        network: values.github_network_tools.clone(),
        branch_prefix: values.github_branch_prefix.clone(),
        push: values.github_push,
        pull_request: values.github_pull_request,
        // Only a person can mark a draft as ready, so drafts would block auto-merge. Auto-merge
        // turns them off unless `github.draft` is set explicitly.
        draft: values.github_draft && (!auto_merge.enabled || config.is_set(&KEY.github_draft)),
        continuous: ContinuousSettings {
            sources: task_sources(ctx)?,
            tasks_file: Utf8PathBuf::from(&values.github_continuous_tasks_file),
            plan: values.github_continuous_plan.as_ref().map(Utf8PathBuf::from),
            max_tasks: values.github_continuous_max_tasks,
            max_time: values.github_continuous_max_time,
            max_cost: values.github_continuous_max_cost,
            delay: values.github_continuous_delay,
            stop_on_first_failure: values.github_continuous_stop_on_first_failure,
            done_label: values.github_done_label.clone(),
            waiting_label: values.github_waiting_label.clone(),
            claim: values.github_continuous_claim,
        },
        auto_merge,
    })
}

fn auto_merge(ctx: &AppContext<'_>) -> Result<AutoMerge, AppError> {
    let key = &KEY.github_auto_merge;
    let Some(table) = &ctx.config.values().github_auto_merge else {
        return Ok(AutoMerge::default());
    };
    toml::Value::Table(table.clone()).try_into().map_err(|error: toml::de::Error| {
        AppError::wrong_usage(format!(
            "{}: `{}`: {}",
            ctx.config.describe_origin(key),
            key.name,
            error.message()
        ))
        .hint(
            "docs/reference/auto-merge.md lists its keys. Nothing is merged until they are right.",
        )
    })
}

fn task_sources(ctx: &AppContext<'_>) -> Result<Vec<TaskSource>, AppError> {
    let key = &KEY.github_continuous_sources;
    let known = |word: &String| TaskSource::ALL.into_iter().find(|source| source.as_str() == word);
    let one = |word: &String| {
        known(word).ok_or_else(|| {
            let origin = ctx.config.describe_origin(key);
            AppError::wrong_usage(format!(
                "{origin}: `{}`: `{word}` is no source of tasks",
                key.name
            ))
            .hint("There are `issue`, `file`, `plan` and `prompt`.")
        })
    };
    ctx.config.values().github_continuous_sources.iter().map(one).collect()
}
