//! Selects skills for a task, with reasons.

use std::time::Instant;

use camino::Utf8PathBuf;
use http::Method;
use repertoire_select::json::{ExplanationJson, MatchJson};
use repertoire_select::{Selection, SelectionSettings, SkillSelector, Task};
use repertoire_skill::trust::TrustLevel;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ApiBuilder, ApiCall, ApiResult, Nothing, run_blocking, whole};
use crate::http::problem::HttpProblem;

/// The maximum number of hints or paths of a task.
const NAMES_MAX: usize = 100;
/// The maximum number of picks a caller can ask for.
const PICKS_MAX: u64 = 50;

/// A task to select skills for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SelectRequest {
    /// The text of the task.
    pub(super) task: String,
    /// Skills requested by name.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) skills: Vec<String>,
    /// Paths that the task touches, relative to the project.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) paths: Vec<String>,
    /// The event that started it.
    #[serde(default)]
    pub(super) event: Option<String>,
    /// The agent that will do the work.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// The maximum number of skills to pick.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 0, max = 50))]
    pub(super) max: Option<u64>,
    /// The minimum confidence of a pick, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) threshold: Option<f32>,
    /// Include the verdict of every stage on the closest skills; ignored for prompts.
    #[serde(default)]
    explain: bool,
}

impl SelectRequest {
    /// Refuses values above the limits.
    pub(super) fn check_limits(self) -> ApiResult<Self> {
        if self.skills.len() > NAMES_MAX || self.paths.len() > NAMES_MAX {
            let detail = format!("`skills` and `paths` have at most {NAMES_MAX}");
            return Err(HttpProblem::bad_request(detail));
        }
        if self.max.is_some_and(|max| max > PICKS_MAX) {
            return Err(HttpProblem::bad_request(format!("`max` is 0 to {PICKS_MAX}")));
        }
        if self.threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold)) {
            return Err(HttpProblem::bad_request("`threshold` is 0 to 1"));
        }
        Ok(self)
    }
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let summary = "Pick skills for a task, with scores and reasons";
    api.add(Method::POST, "/api/v1/select", "selection", summary, select_skills)
}

async fn select_skills(call: ApiCall<Nothing, Nothing, SelectRequest>) -> ApiResult<MatchJson> {
    let (ask, serve_state) = (call.body.check_limits()?, call.serve_state);
    run_blocking(move || {
        let (catalog, selector) = serve_state.selector();
        let configured = *selector.settings();
        let selector = selector.with_settings(SelectionSettings {
            threshold: ask.threshold.unwrap_or(configured.threshold),
            max_skills: ask.max.map_or(configured.max_skills, |max| max as usize),
            ..configured
        });
        let explain = ask.explain;
        let task = to_task(ask);
        let start = Instant::now();
        let selection = selector.select(&task);
        let took_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let explained =
            if explain { explain_selection(&selector, &task, &selection) } else { Vec::new() };
        let is_untrusted = |name: &&String| {
            catalog.get(name.as_str()).is_some_and(|entry| entry.trust == TrustLevel::Untrusted)
        };
        let untrusted = selection.picks.iter().map(|pick| &pick.name).filter(is_untrusted).cloned();
        Ok(MatchJson {
            untrusted: untrusted.collect(),
            skills: catalog.entries().iter().filter(|entry| !entry.skill.is_agent()).count(),
            took_us,
            explained,
            ..MatchJson::from_selection(&task, selection, selector.settings().threshold)
        })
    })
    .await
}

/// Builds the task. Paths are only matched against globs and never opened, so any path is accepted.
fn to_task(ask: SelectRequest) -> Task {
    Task {
        text: ask.task,
        hints: ask.skills,
        paths: ask.paths.into_iter().map(Utf8PathBuf::from).collect(),
        event: ask.event,
        agent: ask.agent,
        ..Task::default()
    }
}

/// Explains the verdict of every stage on the picks and the near misses.
fn explain_selection(
    selector: &SkillSelector,
    task: &Task,
    selection: &Selection,
) -> Vec<ExplanationJson> {
    let picked = selection.picks.iter().map(|pick| &pick.name);
    let missed = selection.near_misses.iter().map(|miss| &miss.name);
    picked
        .chain(missed)
        .filter_map(|name| selector.explain(task, name))
        .map(ExplanationJson::from)
        .collect()
}
