//! Loads the agent and its permitted tools. Runs on the first turn only: edits apply to the next
//! run.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use repertoire_skill::name::nearest_name;
use repertoire_skill::trust::TrustLevel;

use super::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware};
use crate::definition::{AgentDefinition, DEFAULT_AGENT};
use crate::effect::EffectLimit;
use crate::event::EventKind;
use crate::permission::tool_name;
use crate::run::lock_unpoisoned;
use crate::tool::Tool;

/// Loads the agent and filters its tools.
#[derive(Clone, Copy, Debug)]
pub struct AgentLoad;

impl TurnMiddleware for AgentLoad {
    fn name(&self) -> &'static str {
        "agent load and tool filter"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.iteration == 1 {
                turn.agent = Arc::new(load_definition(turn)?);
                let own = EffectLimit::for_agent(&turn.agent.name, &turn.agent.tools);
                let limit = turn.run.limit().and(&own);
                *lock_unpoisoned(&turn.run.limit) = limit;
                turn.tools = select_tools(turn)?;
                let names = turn.tools.iter().map(|tool| tool.name().to_owned());
                *lock_unpoisoned(&turn.run.offered) = names.collect();
            }
            next.run(turn).await
        })
    }
}

fn load_definition(turn: &AgentTurn) -> Result<AgentDefinition, TurnError> {
    if let Some(definition) = &turn.options.definition {
        return Ok(definition.clone());
    }
    let catalog = turn.run.system.catalog();
    match catalog.get_agent(&turn.agent_name) {
        // The default agent is never replaced by an untrusted one of the same name.
        Some(entry) if turn.agent_name == DEFAULT_AGENT && entry.trust != TrustLevel::Trusted => {
            let file = &entry.skill.origin.file;
            let message = format!("the agent in {file} is not used: nobody has agreed to it");
            turn.run.events.emit(EventKind::Warning { message });
        }
        Some(entry) => return Ok(AgentDefinition::from_entry(entry)?),
        None => {}
    }
    if turn.agent_name == DEFAULT_AGENT {
        return Ok(AgentDefinition::default());
    }
    let known = turn.run.system.agent_names();
    Err(TurnError::UnknownAgent {
        name: turn.agent_name.clone(),
        nearest: nearest_name(&turn.agent_name, known.iter().map(String::as_str))
            .map(str::to_owned),
        known,
    })
}

/// A tool's name without the rule in parentheses after it.
fn bare_name(name: &str) -> String {
    name.split('(').next().unwrap_or_default().trim().to_owned()
}

fn select_tools(turn: &AgentTurn) -> Result<Vec<Arc<dyn Tool>>, TurnError> {
    let all = turn.run.system.tools();
    let agent = &turn.agent;
    let limit = turn.run.limit();
    let known = || all.iter().map(|tool| tool.name().to_owned());
    let named = agent.tools.allowed.iter().flatten().filter(|name| !name.contains('*'));
    let missing: Vec<String> = named
        .map(|name| bare_name(name))
        .filter(|name| !known().any(|tool| tool == tool_name(name)))
        .collect();
    // Agents written for other programs name tools that don't exist here; fail only if none of the
    // tools exists.
    let names_any = agent.tools.allowed.as_ref().is_some_and(|names| !names.is_empty());
    let kept: Vec<Arc<dyn Tool>> = all
        .iter()
        .filter(|tool| agent.tools.has(tool.name()) && is_usable(tool.name(), turn))
        .filter(|tool| limit.refuses_tool(&***tool).is_none())
        .cloned()
        .collect();
    if !missing.is_empty() {
        if kept.is_empty() && names_any {
            let agent = turn.agent_name.clone();
            return Err(TurnError::UnknownTools { agent, missing, known: known().collect() });
        }
        let message = format!(
            "agent `{}` asks for tools that are not there: {}",
            agent.name,
            missing.join(", ")
        );
        turn.run.events.emit(EventKind::Warning { message });
    }
    Ok(kept)
}

/// Returns false for tools that could not do anything in this run; they are not offered.
fn is_usable(tool: &str, turn: &AgentTurn) -> bool {
    match tool {
        "skill" | "skill_search" => turn.run.system.has_skills(),
        "delegate" => turn.run.depth < turn.run.spending.limits().depth_max,
        _ => true,
    }
}
