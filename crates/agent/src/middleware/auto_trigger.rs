//! Selects the skills that the task needs and queues them for the conversation, before the first
//! model call. Never fails a run: skills that cannot be loaded are reported and skipped.

use futures_util::future::BoxFuture;
use repertoire_select::Task;
use repertoire_select::selection::{PickStrategy, Selection, SelectionPick};
use repertoire_skill::activate::{ActivationRequest, ResourceListingMode};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::render::message::render_auto_loaded;
use repertoire_skill::skill::InvocationContext;

use super::{AgentTurn, MiddlewareNext, SkillInjection, TurnError, TurnMiddleware};
use crate::event::{EventKind, LoadedBy, SkillPick};
use crate::run::lock_unpoisoned;

/// The maximum number of reasons shown for a pick.
const REASONS_SHOWN: usize = 3;

/// Selects skills on the first turn.
#[derive(Clone, Copy, Debug)]
pub struct AutoTrigger;

impl TurnMiddleware for AutoTrigger {
    fn name(&self) -> &'static str {
        "auto-trigger"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.iteration == 1 {
                inject_skills(turn);
            }
            next.run(turn).await
        })
    }
}

fn inject_skills(turn: &mut AgentTurn) {
    let system = turn.run.system.clone();
    let catalog = system.catalog();
    load_pinned_skills(turn, &catalog);
    if !system.has_skills() {
        return;
    }
    let task = Task {
        agent: Some(turn.agent_name.clone()),
        conversation: turn.conversation.message_texts(),
        ..turn.task.clone()
    };
    let selector = system.selector(&catalog);
    let selection = match turn.options.selection {
        Some(settings) => selector.with_settings(settings).select(&task),
        None => selector.select(&task),
    };
    report_selection(turn, &selection);
    for pick in &selection.picks {
        if is_left_to_model(turn, &catalog, pick) {
            continue;
        }
        load_skill(turn, &catalog, &pick.name, LoadedBy::AutoTrigger, &pick_reason(pick));
    }
    if turn.conversation.messages.is_empty() {
        let near = selection.near_misses.iter().map(|miss| miss.name.clone());
        let picks = selection.picks.iter().map(|pick| pick.name.clone());
        turn.conversation.winners = picks.chain(near).collect();
    }
    lock_unpoisoned(&turn.run.winners).clone_from(&turn.conversation.winners);
}

/// Returns true for a skill that runs in a forked conversation and that the model should call
/// itself. If the user named the skill, or the model has no `skill` tool, it is loaded directly.
fn is_left_to_model(turn: &AgentTurn, catalog: &Catalog, pick: &SelectionPick) -> bool {
    pick.strategy != PickStrategy::Hint
        && turn.tools.iter().any(|tool| tool.name() == "skill")
        && catalog
            .get(&pick.name)
            .is_some_and(|entry| entry.skill.claude.context == InvocationContext::Fork)
}

/// Loads the skills that the agent's definition pins, regardless of the task.
fn load_pinned_skills(turn: &mut AgentTurn, catalog: &Catalog) {
    let agent = turn.agent.clone();
    for name in &agent.skills {
        match catalog.resolve(name) {
            Ok(entry) => {
                let id = entry.id.clone();
                load_skill(
                    turn,
                    catalog,
                    &id,
                    LoadedBy::Pin,
                    &format!("pinned by agent {}", agent.name),
                );
            }
            Err(missing) => {
                let near = missing.nearest.as_ref();
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                turn.run.events.emit(EventKind::SkillFailed {
                    skill: name.clone(),
                    message: format!("agent {} pins it, and it is not there{hint}", agent.name),
                });
            }
        }
    }
}

fn report_selection(turn: &AgentTurn, selection: &Selection) {
    for lost in &selection.unresolved {
        let near = lost.nearest.as_ref();
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("it was asked for by name, and is not there{hint}");
        turn.run.events.emit(EventKind::SkillFailed { skill: lost.named.clone(), message });
    }
    let picks = selection.picks.iter().map(|pick| SkillPick {
        skill: pick.name.clone(),
        score: f64::from(pick.score),
        strategy: pick.strategy.to_string(),
        reason: pick_reason(pick),
    });
    let abstention = selection.abstention.as_ref().map(|none| match &none.nearest {
        Some(nearest) => {
            format!("the nearest, {nearest}, has {:.2} of {:.2}", none.best, none.threshold)
        }
        None => "there is nothing to choose from".to_owned(),
    });
    turn.run.events.emit(EventKind::SkillsSelected { picks: picks.collect(), abstention });
}

fn load_skill(turn: &mut AgentTurn, catalog: &Catalog, id: &str, by: LoadedBy, reason: &str) {
    let Some(entry) = catalog.get(id) else { return };
    let config = turn.run.system.config();
    let arguments = turn.options.arguments.get(id).map(String::as_str).unwrap_or_default();
    let request = ActivationRequest {
        arguments,
        budget: config.skill_budget,
        listing: ResourceListingMode::Listed,
        references: config.references,
        project_dir: Some(&turn.run.workplace.dir),
        session_id: Some(&turn.run.conversation),
        ..ActivationRequest::default()
    };
    let loaded = turn.run.load_skill(entry, &request, by, reason);
    if loaded.already {
        return;
    }
    let message = render_auto_loaded(&loaded.activation, reason);
    let (role, text) = (message.role, message.text);
    turn.injections.push(SkillInjection { skill: entry.id.clone(), role, text });
}

/// A short reason for a pick.
fn pick_reason(pick: &SelectionPick) -> String {
    let shown: Vec<String> =
        pick.reasons.iter().take(REASONS_SHOWN).map(ToString::to_string).collect();
    if shown.is_empty() { pick.strategy.to_string() } else { shown.join("; ") }
}
