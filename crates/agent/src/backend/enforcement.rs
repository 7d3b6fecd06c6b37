//! Limits that an external agent CLI can enforce. A limit that it cannot enforce stops the run or
//! is reported, never dropped.

use repertoire_model::{ModelName, ModelService};

use crate::backend::{AgentFreedom, Backend};
use crate::effect::{EffectLimit, EffectSet, RunEffect};
use crate::event::{EventEmitter, EventKind};
use crate::permission::{PermissionMode, RunPermissions};

/// The limits that a backend can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendEnforcement {
    pub rules: RuleEnforcement,
    pub effects: EffectEnforcement,
    /// True if the backend runs its commands in a sandbox of its own.
    pub sandbox: bool,
    /// The service whose models it runs, if it supports only one.
    pub service: Option<ModelService>,
}

/// The permission rules that a backend can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEnforcement {
    /// Every rule: the backend has no side effects, or supports rules like ours.
    All,
    /// Only the overall level of freedom.
    Freedom,
    Nothing,
}

/// The extent to which a backend can enforce limits on effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectEnforcement {
    /// Each effect can be removed separately.
    EveryEffect,
    /// Tools can be removed, including from sub-agents. Commands run without a sandbox.
    ToolsAndSubAgents,
    /// Tools can be removed, but not from sub-agents. Commands run without a sandbox.
    ToolsOnly,
    /// Commands run in a sandbox that can be read-only and without network. The agent needs
    /// commands to read files.
    CommandSandbox,
    Nothing,
}

/// The limits that are passed to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRestrictions {
    /// The denied calls, each in Claude Code's syntax.
    pub denied: Vec<String>,
    /// The remaining built-in tools, by our names; all if absent.
    pub tools: Option<Vec<String>>,
    /// The remaining effects.
    pub effects: EffectSet,
}

impl Default for BackendRestrictions {
    fn default() -> Self {
        BackendRestrictions { denied: Vec::new(), tools: None, effects: EffectSet::ALL }
    }
}

impl BackendRestrictions {
    /// Returns true if an effect or a tool has been removed.
    pub fn is_limited(&self) -> bool {
        self.effects != EffectSet::ALL || self.tools.is_some()
    }

    /// Returns true if a tool remains available.
    pub(crate) fn has_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// Returns the freedom that a permission mode grants. External agents cannot ask in the middle of a
/// run, so calls that need confirmation are denied.
pub(crate) fn freedom_of_mode(permissions: &RunPermissions) -> AgentFreedom {
    match permissions.mode {
        PermissionMode::Default | PermissionMode::ReadOnly => AgentFreedom::ReadOnly,
        PermissionMode::AcceptEdits => AgentFreedom::Workspace,
        PermissionMode::Full => AgentFreedom::Full,
    }
}

/// An effect that a backend cannot be prevented from having.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnenforceableEffect {
    pub(crate) effect: RunEffect,
    why: &'static str,
}

/// Returns the effects that remain under a limit: at most `allowed`, and fewer where one effect
/// implies another.
pub(crate) fn enforceable_effects(
    keeps: EffectEnforcement,
    allowed: EffectSet,
) -> Result<EffectSet, UnenforceableEffect> {
    let everything = EffectSet::UNKNOWN_TOOL.without(allowed).is_empty();
    match keeps {
        EffectEnforcement::EveryEffect => Ok(allowed),
        EffectEnforcement::ToolsAndSubAgents if everything => Ok(allowed),
        EffectEnforcement::ToolsOnly if everything => Ok(allowed),
        // A command without a sandbox can have every other effect too.
        EffectEnforcement::ToolsAndSubAgents => {
            Ok(allowed.without(EffectSet::from_effects(&[RunEffect::RunCommands])))
        }
        EffectEnforcement::ToolsOnly => Ok(allowed
            .without(EffectSet::from_effects(&[RunEffect::RunCommands, RunEffect::Delegate]))),
        EffectEnforcement::CommandSandbox
            if !allowed.has(RunEffect::RunCommands) && allowed.has(RunEffect::ChangeFiles) =>
        {
            Err(UnenforceableEffect {
                effect: RunEffect::RunCommands,
                why: "it reads and changes files with commands",
            })
        }
        EffectEnforcement::CommandSandbox => Ok(allowed),
        EffectEnforcement::Nothing => match EffectSet::ALL.without(allowed).iter().next() {
            None => Ok(allowed),
            Some(effect) => {
                Err(UnenforceableEffect { effect, why: "it decides by itself which tools it has" })
            }
        },
    }
}

/// Applies the permissions of a run and the limit on its effects to a backend.
///
/// # Errors
///
/// Returns the limit that the backend cannot enforce, and how to resolve that.
pub(crate) fn restrict_backend(
    backend: &dyn Backend,
    permissions: &RunPermissions,
    limit: &EffectLimit,
    model: Option<&ModelName>,
    events: &EventEmitter,
) -> Result<BackendRestrictions, String> {
    let holds = backend.enforcement();
    if let (Some(service), Some(model)) = (holds.service, model)
        && model.service != service
        && model.service != ModelService::Compat
    {
        return Err(format!("it runs models of {service}, and `{model}` is none of them"));
    }
    let has_rules = !permissions.deny.is_empty() || !permissions.ask.is_empty();
    if has_rules && holds.rules != RuleEnforcement::All {
        return Err(
            "it cannot be held to rules that deny or ask for single tools; run it with our own loop (`--backend api`), or \
             without them"
                .to_owned(),
        );
    }
    let asked = requested_effects(holds.effects, permissions.mode, limit);
    let left = enforceable_effects(holds.effects, asked)
        .map_err(|unkept| unenforceable_message(backend.name(), &unkept, permissions, limit))?;
    report_degradations(backend.name(), holds, permissions, asked, left, events);
    let denied = permissions.deny.iter().chain(&permissions.ask).map(ToString::to_string);
    Ok(BackendRestrictions {
        denied: denied.collect(),
        tools: remaining_tools(limit, left),
        effects: left,
    })
}

/// Returns the effects that a run requests: those of its limit, and none in a read-only mode.
fn requested_effects(
    keeps: EffectEnforcement,
    mode: PermissionMode,
    limit: &EffectLimit,
) -> EffectSet {
    let effects = limit.effects();
    match mode {
        PermissionMode::ReadOnly => EffectSet::NONE,
        // Calls that need confirmation are denied. A backend that enforces no limits asks us for
        // permission, and we deny it.
        PermissionMode::Default if keeps != EffectEnforcement::Nothing => EffectSet::NONE,
        // No CLI can distinguish GitHub from the rest of the network.
        _ if effects.has(RunEffect::RunCommands) && !limit.commands_may_use_network() => {
            effects.without(EffectSet::from_effects(&[RunEffect::UseNetwork]))
        }
        _ => effects,
    }
}

/// The error message for a limit that stops the run.
fn unenforceable_message(
    backend: &str,
    unkept: &UnenforceableEffect,
    permissions: &RunPermissions,
    limit: &EffectLimit,
) -> String {
    let UnenforceableEffect { effect, why } = unkept;
    let reason = match limit.agent_without(*effect) {
        _ if permissions.mode == PermissionMode::ReadOnly => "this run is read-only".to_owned(),
        Some(agent) => format!("the tool lists of agent `{agent}` do not let it {effect}"),
        None => format!("this run may not {effect}"),
    };
    format!(
        "{backend} cannot be kept from {}: {why}. But {reason}. Use another backend (`--backend api` keeps every limit), or \
         change the limit",
        effect.gerund()
    )
}

/// Reports effects that were removed in addition to the requested ones, and missing permissions or
/// sandboxes.
fn report_degradations(
    name: &str,
    holds: BackendEnforcement,
    permissions: &RunPermissions,
    asked: EffectSet,
    left: EffectSet,
    events: &EventEmitter,
) {
    for effect in asked.without(left).iter() {
        let missing: Vec<&str> =
            EffectSet::ALL.without(asked).iter().map(RunEffect::infinitive).collect();
        let message = format!(
            "{name} may not {effect} in this run: it could not be kept from the rest then (the agent may not {}).",
            missing.join(", nor ")
        );
        emit_degraded(events, "limits", message);
    }
    if holds.rules == RuleEnforcement::Nothing {
        emit_degraded(
            events,
            "permissions",
            format!("{name} runs a program as you do: no permissions hold for it."),
        );
    }
    if !holds.sandbox
        && freedom_of_mode(permissions) != AgentFreedom::ReadOnly
        && left.has(RunEffect::RunCommands)
    {
        emit_degraded(events, "sandbox", format!("{name} runs its commands without our sandbox."));
    }
}

fn emit_degraded(events: &EventEmitter, what: &str, message: String) {
    events.emit_once(EventKind::Degraded { what: what.to_owned(), message });
}

/// Returns the remaining built-in tools; `None` if nothing is limited.
fn remaining_tools(limit: &EffectLimit, effects: EffectSet) -> Option<Vec<String>> {
    if effects == EffectSet::ALL && !limit.is_limited() {
        return None;
    }
    let offered = limit.offered_tools().into_iter();
    let left = offered.filter(|tool| crate::effect::needs_of(tool).without(effects).is_empty());
    Some(left.map(str::to_owned).collect())
}

#[cfg(test)]
#[path = "holds_tests.rs"]
mod tests;
