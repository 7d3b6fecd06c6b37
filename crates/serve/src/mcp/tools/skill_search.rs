//! `skill_search`: finds the skills for a task, with reasons.

use std::fmt::Write as _;
use std::sync::Arc;

use repertoire_select::Task;
use repertoire_select::selection::{
    PickStrategy, RejectionReason, SelectionAbstention, SelectionReason,
};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::render::describe_skill;
use repertoire_skill::trust::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::limits::TASK_BYTES_MAX;
use super::super::state::McpState;
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply, check_length};

/// Finds skills.
pub(super) struct SkillSearchTool;

/// The task to find skills for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillSearchArguments {
    /// The task, in the user's words or in yours.
    task: String,
    /// Paths that the task touches, relative to the project.
    #[serde(default)]
    paths: Vec<String>,
}

/// The skills for a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkillSearchOutput {
    /// The matching skills, best first.
    picks: Vec<PickedSkill>,
    /// The near misses, best first.
    near_misses: Vec<NearMissSkill>,
    /// Set if no skill matches.
    abstention: Option<SelectionAbstention>,
}

/// A matching skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PickedSkill {
    /// The name for loading it.
    name: String,
    /// The user's trust in the skill.
    trust: TrustLevel,
    /// The purpose of the skill and when to use it.
    description: String,
    /// The confidence of the match, from 0 to 1.
    score: f32,
    /// The strategy that selected it.
    strategy: PickStrategy,
    /// The reasons for the match.
    reasons: Vec<SelectionReason>,
}

/// A near miss.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NearMissSkill {
    /// The name of the skill.
    name: String,
    /// The purpose of the skill and when to use it.
    description: String,
    /// The confidence of the match, from 0 to 1.
    score: f32,
    /// The criterion that it did not meet.
    lacked: RejectionReason,
}

impl ServedTool for SkillSearchTool {
    const NAME: &'static str = "skill_search";
    const TITLE: &'static str = "Find skills for a task";
    const ABOUT: &'static str = "Finds the skills that a task calls for, among all that there are, with reasons and scores. Call it before \
        you begin work that may need special knowledge or a certain way of working; load what fits with `skill`. \
        If nothing fits it says so: go on without.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Reads;
    type Arguments = SkillSearchArguments;
    type Output = SkillSearchOutput;

    async fn call(
        state: Arc<McpState>,
        asked: SkillSearchArguments,
        _: CancellationToken,
    ) -> Result<ServedToolReply<SkillSearchOutput>, ServedToolError> {
        check_length("task", &asked.task, TASK_BYTES_MAX)?;
        if asked.task.trim().is_empty() {
            return Err(ServedToolError(
                "The task is empty. Describe the work in a sentence.".to_owned(),
            ));
        }
        state.run_blocking(move |state| search_skills(state, asked)).await?
    }
}

fn search_skills(
    state: &McpState,
    asked: SkillSearchArguments,
) -> Result<ServedToolReply<SkillSearchOutput>, ServedToolError> {
    let (catalog, selector) = state.serve_state.selector();
    let paths = asked.paths.into_iter().map(Into::into).collect();
    let selection = selector.select(&Task { paths, ..Task::new(asked.task) });
    let picks = selection
        .picks
        .into_iter()
        .filter_map(|pick| {
            let description = skill_description(&catalog, &pick.name)?;
            let trust = catalog.get(&pick.name)?.trust;
            let (name, score) = (pick.name, pick.score);
            Some(PickedSkill {
                name,
                trust,
                description,
                score,
                strategy: pick.strategy,
                reasons: pick.reasons,
            })
        })
        .collect();
    let near_misses = selection
        .near_misses
        .into_iter()
        .filter_map(|miss| {
            let description = skill_description(&catalog, &miss.name)?;
            Some(NearMissSkill {
                name: miss.name,
                description,
                score: miss.score,
                lacked: miss.lacked,
            })
        })
        .collect();
    let output = SkillSearchOutput { picks, near_misses, abstention: selection.abstention };
    Ok(ServedToolReply { text: render_results(&output), output })
}

/// The description of a skill that a model may load, on one line.
fn skill_description(catalog: &Catalog, name: &str) -> Option<String> {
    let entry = catalog.get(name).filter(|entry| is_offered(entry))?;
    Some(describe_skill(entry))
}

fn render_results(found: &SkillSearchOutput) -> String {
    let mut out = String::new();
    for pick in &found.picks {
        let _ = writeln!(out, "- {} ({:.2}): {}", pick.name, pick.score, pick.description);
        let reasons: Vec<String> = pick.reasons.iter().take(4).map(ToString::to_string).collect();
        if !reasons.is_empty() {
            let _ = writeln!(out, "  because: {}", reasons.join("; "));
        }
    }
    if found.picks.is_empty() {
        out.push_str("No skill fits. Go on without, or describe the work in other words.\n");
    } else {
        out.push_str("\nLoad one with skill(name).\n");
    }
    for miss in found.near_misses.iter().take(3) {
        let (name, score, lacked) = (&miss.name, miss.score, &miss.lacked);
        let _ = writeln!(out, "Near: {name} ({score:.2}; {lacked}): {}", miss.description);
    }
    out
}
