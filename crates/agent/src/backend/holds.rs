//! The limits that an external agent CLI keeps. A limit that it cannot keep stops the run or is reported, never dropped.

use repertoire_model::{ModelName, Service};

use crate::backend::{Backend, Freedom};
use crate::effect::{Effect, EffectLimit, EffectSet};
use crate::event::{EventKind, Events};
use crate::permission::{Mode, Permissions};

/// The limits that an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// The permission rules that it keeps.
    pub rules: Rules,
    /// How it keeps limits on effects.
    pub effects: Keeps,
    /// Whether its commands run in a sandbox of its own.
    pub sandbox: bool,
    /// The service whose models it runs, if it runs only one service's.
    pub service: Option<Service>,
}

/// The permission rules that an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Every rule: it does nothing, or has rules like ours.
    All,
    /// Only how free it is as a whole.
    Freedom,
    /// None.
    Nothing,
}

/// How an agent keeps limits on effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Every effect can be removed by itself.
    EveryEffect,
    /// Tools can be removed, and its sub-agents lack them too. Commands have no sandbox.
    ToolsAndSubAgents,
    /// Tools can be removed, but not from its sub-agents. Commands have no sandbox.
    ToolsOnly,
    /// Commands run in a sandbox that can be read-only and without network. It needs commands to read files.
    CommandSandbox,
    /// No effect can be removed.
    Nothing,
}

/// The limits that an agent is told to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The denied calls, each in Claude Code's way of writing.
    pub denied: Vec<String>,
    /// The built-in tools that are left, by our names; all if absent.
    pub tools: Option<Vec<String>>,
    /// The effects that are left.
    pub effects: EffectSet,
}

impl Default for Told {
    fn default() -> Self {
        Told { denied: Vec::new(), tools: None, effects: EffectSet::ALL }
    }
}

impl Told {
    /// Whether any effect is removed or any tool is taken away.
    pub fn is_limited(&self) -> bool {
        self.effects != EffectSet::ALL || self.tools.is_some()
    }

    /// Whether a tool is left.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// How free an agent is under a mode. External agents cannot ask in the middle of a run, so calls that would be asked
/// for are not allowed.
pub(crate) fn freedom(permissions: &Permissions) -> Freedom {
    match permissions.mode {
        Mode::Default | Mode::ReadOnly => Freedom::ReadOnly,
        Mode::AcceptEdits => Freedom::Workspace,
        Mode::Full => Freedom::Full,
    }
}

/// An effect that a backend cannot be kept from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unkept {
    pub(crate) effect: Effect,
    why: &'static str,
}

/// The effects that an agent has left under a limit: at most `allowed`, and fewer where one effect would bring another
/// along.
pub(crate) fn kept(keeps: Keeps, allowed: EffectSet) -> Result<EffectSet, Unkept> {
    let has = |effect| allowed.has(effect);
    let everything = EffectSet::UNKNOWN_TOOL.without(allowed).is_empty();
    match keeps {
        Keeps::EveryEffect => Ok(allowed),
        Keeps::ToolsAndSubAgents if everything => Ok(allowed),
        Keeps::ToolsOnly if everything => Ok(allowed),
        // A command without a sandbox can do all the rest.
        Keeps::ToolsAndSubAgents => Ok(allowed.without(EffectSet::of(&[Effect::RunCommands]))),
        Keeps::ToolsOnly => {
            Ok(allowed.without(EffectSet::of(&[Effect::RunCommands, Effect::Delegate])))
        }
        Keeps::CommandSandbox if !has(Effect::RunCommands) && has(Effect::ChangeFiles) => {
            Err(Unkept {
                effect: Effect::RunCommands,
                why: "it reads and changes files with commands",
            })
        }
        Keeps::CommandSandbox => Ok(allowed),
        Keeps::Nothing => match EffectSet::ALL.without(allowed).iter().next() {
            None => Ok(allowed),
            Some(effect) => Err(Unkept { effect, why: "it decides by itself which tools it has" }),
        },
    }
}

/// Holds an agent to the permissions of a run and to the limit on its effects.
///
/// # Errors
///
/// The limit that it cannot keep, and what to do about it.
pub(crate) fn hold(
    backend: &dyn Backend,
    permissions: &Permissions,
    limit: &EffectLimit,
    model: Option<&ModelName>,
    events: &Events,
) -> Result<Told, String> {
    let holds = backend.holds();
    if let (Some(service), Some(model)) = (holds.service, model)
        && model.service != service
        && model.service != Service::Compat
    {
        return Err(format!("it runs models of {service}, and `{model}` is none of them"));
    }
    let has_rules = !permissions.deny.is_empty() || !permissions.ask.is_empty();
    if has_rules && holds.rules != Rules::All {
        return Err(
            "it cannot be held to rules that deny or ask for single tools; run it with our own loop (`--backend api`), or \
             without them"
                .to_owned(),
        );
    }
    let asked = effects_asked(holds.effects, permissions.mode, limit);
    let left = kept(holds.effects, asked)
        .map_err(|unkept| unkept_message(backend.name(), &unkept, permissions, limit))?;
    report(backend.name(), holds, permissions, asked, left, events);
    let denied = permissions.deny.iter().chain(&permissions.ask).map(ToString::to_string);
    Ok(Told { denied: denied.collect(), tools: tools_left(limit, left), effects: left })
}

/// The effects that a run asks for: those of its limit, and none in a mode that only reads.
fn effects_asked(keeps: Keeps, mode: Mode, limit: &EffectLimit) -> EffectSet {
    let effects = limit.effects();
    match mode {
        Mode::ReadOnly => EffectSet::NONE,
        // Calls that would be asked for are not made. An agent that decides by itself asks us, and is answered with no.
        Mode::Default if keeps != Keeps::Nothing => EffectSet::NONE,
        // No CLI can tell GitHub from the rest of the network.
        _ if effects.has(Effect::RunCommands) && !limit.commands_may_use_network() => {
            effects.without(EffectSet::of(&[Effect::UseNetwork]))
        }
        _ => effects,
    }
}

/// The message for a limit that stops the run.
fn unkept_message(
    backend: &str,
    unkept: &Unkept,
    permissions: &Permissions,
    limit: &EffectLimit,
) -> String {
    let Unkept { effect, why } = unkept;
    let reason = match limit.agent_without(*effect) {
        _ if permissions.mode == Mode::ReadOnly => "this run is read-only".to_owned(),
        Some(agent) => format!("the tool lists of agent `{agent}` do not let it {effect}"),
        None => format!("this run may not {effect}"),
    };
    format!(
        "{backend} cannot be kept from {}: {why}. But {reason}. Use another backend (`--backend api` keeps every limit), or \
         change the limit",
        effect.gerund()
    )
}

/// Reports the limits that cost the agent more than they say, and the walls that it lacks.
fn report(
    name: &str,
    holds: Holds,
    permissions: &Permissions,
    asked: EffectSet,
    left: EffectSet,
    events: &Events,
) {
    for effect in asked.without(left).iter() {
        let missing: Vec<&str> =
            EffectSet::ALL.without(asked).iter().map(Effect::infinitive).collect();
        let message = format!(
            "{name} may not {effect} in this run: it could not be kept from the rest then (the agent may not {}).",
            missing.join(", nor ")
        );
        tell(events, "limits", message);
    }
    if holds.rules == Rules::Nothing {
        tell(
            events,
            "permissions",
            format!("{name} runs a program as you do: no permissions hold for it."),
        );
    }
    if !holds.sandbox && freedom(permissions) != Freedom::ReadOnly && left.has(Effect::RunCommands)
    {
        tell(events, "sandbox", format!("{name} runs its commands without our sandbox."));
    }
}

fn tell(events: &Events, what: &str, message: String) {
    events.emit_once(EventKind::Degraded { what: what.to_owned(), message });
}

/// The built-in tools that are left; `None` if nothing is limited.
fn tools_left(limit: &EffectLimit, effects: EffectSet) -> Option<Vec<String>> {
    if effects == EffectSet::ALL && !limit.is_limited() {
        return None;
    }
    let offered = limit.offered().into_iter();
    let left = offered.filter(|tool| crate::effect::needs_of(tool).without(effects).is_empty());
    Some(left.map(str::to_owned).collect())
}

#[cfg(test)]
#[path = "holds_tests.rs"]
mod tests;
