//! What somebody else's agent can be held to. What it cannot keep is refused or told, never dropped.

use repertoire_model::{ModelName, Service};

use crate::backend::{Backend, Freedom};
use crate::definition::ToolFilter;
use crate::event::{EventKind, Events};
use crate::permission::{Mode, Permissions, tool_name};

/// What an agent can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Which of our permissions.
    pub rules: Rules,
    /// Whether its commands run in a sandbox of its own.
    pub sandbox: bool,
    /// Whose models it runs, if not anybody's.
    pub service: Option<Service>,
}

/// Which permissions an agent can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Every one, because it does nothing, or knows rules like ours.
    All,
    /// How free it is as a whole.
    Freedom,
    /// None at all.
    Nothing,
}

/// What an agent is told of our rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What is denied, each in Claude Code's way of writing.
    pub denied: Vec<String>,
    /// The tools that the agent's definition names, by our names; all if absent.
    pub tools: Option<Vec<String>>,
}

/// How free an agent is under a mode. Nobody can be asked in the middle of somebody else's run, so what would be asked
/// for is not allowed.
pub(crate) fn freedom(permissions: &Permissions) -> Freedom {
    match permissions.mode {
        Mode::Default | Mode::ReadOnly => Freedom::ReadOnly,
        Mode::AcceptEdits => Freedom::Workspace,
        Mode::Full => Freedom::Full,
    }
}

/// Holds an agent to the permissions of a run.
///
/// # Errors
///
/// What it could not be held to, and what to do about it.
pub(crate) fn hold(
    backend: &dyn Backend,
    permissions: &Permissions,
    tools: &ToolFilter,
    model: Option<&ModelName>,
    events: &Events,
) -> Result<Told, String> {
    let name = backend.name();
    let holds = backend.holds();
    if let (Some(service), Some(model)) = (holds.service, model)
        && model.service != service
        && model.service != Service::Compat
    {
        return Err(format!("it runs models of {service}, and `{model}` is none of them"));
    }
    let has_rules = !permissions.deny.is_empty() || !permissions.ask.is_empty();
    let unkept = match holds.rules {
        Rules::All => None,
        _ if has_rules => Some("rules that deny or ask for single tools"),
        Rules::Nothing if permissions.mode == Mode::ReadOnly => Some("a read-only run"),
        Rules::Freedom | Rules::Nothing => None,
    };
    if let Some(unkept) = unkept {
        return Err(format!(
            "it cannot be held to {unkept}; run it with our own loop (`--backend api`), or without them"
        ));
    }
    let filters = tools.allowed.is_some() || !tools.disallowed.is_empty();
    if filters && holds.rules != Rules::All {
        tell(
            events,
            "permissions",
            format!("{name} uses its own tools: the agent's `tools` do not hold for it."),
        );
    }
    if holds.rules == Rules::Nothing {
        tell(
            events,
            "permissions",
            format!("{name} runs a program as you do: no permissions hold for it."),
        );
    }
    if !holds.sandbox && freedom(permissions) != Freedom::ReadOnly {
        tell(events, "sandbox", format!("{name} runs its commands without our sandbox."));
    }
    let denied = permissions.deny.iter().chain(&permissions.ask).map(ToString::to_string);
    Ok(Told { denied: denied.collect(), tools: named(tools) })
}

fn tell(events: &Events, what: &str, message: String) {
    events.emit_once(EventKind::Degraded { what: what.to_owned(), message });
}

fn named(tools: &ToolFilter) -> Option<Vec<String>> {
    let allowed = tools.allowed.as_ref()?;
    let bare = |tool: &String| tool_name(tool.split('(').next().unwrap_or_default().trim());
    let mut names: Vec<String> = allowed.iter().map(bare).collect();
    if names.iter().any(|name| name == "*") {
        return None;
    }
    names.retain(|name| tools.has(name));
    Some(names)
}
