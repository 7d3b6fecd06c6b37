//! `skill_search`: finds the skills for a task, with reasons.

use std::fmt::Write as _;
use std::sync::Arc;

use repertoire_select::Task;
use repertoire_select::selection::{Abstention, Lack, Reason, Strategy};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::render::described;
use repertoire_skill::trust::Trust;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::limits::TASK_BYTES_MAX;
use super::super::state::State;
use super::{Complaint, Effect, Reply, ServedTool, within};

/// Finds skills.
pub(super) struct SkillSearch;

/// The task to find skills for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The task, in the user's words or in yours.
    task: String,
    /// Paths that the task touches, relative to the project.
    #[serde(default)]
    paths: Vec<String>,
}

/// The skills for a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// The matching skills, best first.
    picks: Vec<Picked>,
    /// The near misses, best first.
    near_misses: Vec<Missed>,
    /// Set if no skill matches.
    abstention: Option<Abstention>,
}

/// A matching skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Picked {
    /// The name for loading it.
    name: String,
    /// The user's trust in the skill.
    trust: Trust,
    /// The purpose of the skill and when to use it.
    description: String,
    /// The confidence of the match, from 0 to 1.
    score: f32,
    /// The strategy that selected it.
    strategy: Strategy,
    /// The reasons for the match.
    reasons: Vec<Reason>,
}

/// A near miss.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Missed {
    /// The name of the skill.
    name: String,
    /// The purpose of the skill and when to use it.
    description: String,
    /// The confidence of the match, from 0 to 1.
    score: f32,
    /// The criterion that it did not meet.
    lacked: Lack,
}

impl ServedTool for SkillSearch {
    const NAME: &'static str = "skill_search";
    const TITLE: &'static str = "Find skills for a task";
    const ABOUT: &'static str = "Finds the skills that a task calls for, among all that there are, with reasons and scores. Call it before \
        you begin work that may need special knowledge or a certain way of working; load what fits with `skill`. \
        If nothing fits it says so: go on without.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Found;

    async fn call(
        state: Arc<State>,
        asked: Arguments,
        _: CancellationToken,
    ) -> Result<Reply<Found>, Complaint> {
        within("task", &asked.task, TASK_BYTES_MAX)?;
        if asked.task.trim().is_empty() {
            return Err(Complaint(
                "The task is empty. Describe the work in a sentence.".to_owned(),
            ));
        }
        state.reading(move |state| search(state, asked)).await?
    }
}

fn search(state: &State, asked: Arguments) -> Result<Reply<Found>, Complaint> {
    let (catalog, selector) = state.house.selector();
    let paths = asked.paths.into_iter().map(Into::into).collect();
    let selection = selector.select(&Task { paths, ..Task::new(asked.task) });
    let picks = selection
        .picks
        .into_iter()
        .filter_map(|pick| {
            let description = description(&catalog, &pick.name)?;
            let trust = catalog.get(&pick.name)?.trust;
            let (name, score) = (pick.name, pick.score);
            Some(Picked {
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
            let description = description(&catalog, &miss.name)?;
            Some(Missed { name: miss.name, description, score: miss.score, lacked: miss.lacked })
        })
        .collect();
    let output = Found { picks, near_misses, abstention: selection.abstention };
    Ok(Reply { text: shown(&output), output })
}

/// The description of a skill that a model may load, on one line.
fn description(catalog: &Catalog, name: &str) -> Option<String> {
    let entry = catalog.get(name).filter(|entry| is_offered(entry))?;
    Some(described(entry))
}

fn shown(found: &Found) -> String {
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
