//! Effects: the four things that a run can do to its surroundings, and the limits on them.
//!
//! Lists of tools are translated into effects before anything else is decided, because the same effect can be reached
//! through several tools: an agent without `bash` must not run commands through `run_tests` either, and an agent that
//! may not change files must not delegate the change to another agent. Limits only ever shrink on the way down.

use std::fmt;

use crate::definition::{ToolFilter, pattern_matches_tool};
use crate::tool::{Tool, ToolAccess};

/// An action of a run on its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEffect {
    /// Create, change or delete files.
    ChangeFiles,
    /// Run arbitrary commands.
    RunCommands,
    UseNetwork,
    Delegate,
}

impl RunEffect {
    pub const ALL: [RunEffect; 4] = [
        RunEffect::ChangeFiles,
        RunEffect::RunCommands,
        RunEffect::UseNetwork,
        RunEffect::Delegate,
    ];

    fn mask_bit(self) -> u8 {
        match self {
            RunEffect::ChangeFiles => 1,
            RunEffect::RunCommands => 2,
            RunEffect::UseNetwork => 4,
            RunEffect::Delegate => 8,
        }
    }

    /// The verb phrase after "may not".
    pub fn infinitive(self) -> &'static str {
        match self {
            RunEffect::ChangeFiles => "change files",
            RunEffect::RunCommands => "run commands",
            RunEffect::UseNetwork => "use the network",
            RunEffect::Delegate => "delegate",
        }
    }

    /// The verb phrase after "cannot be kept from".
    pub fn gerund(self) -> &'static str {
        match self {
            RunEffect::ChangeFiles => "changing files",
            RunEffect::RunCommands => "running commands",
            RunEffect::UseNetwork => "using the network",
            RunEffect::Delegate => "delegating",
        }
    }
}

impl fmt::Display for RunEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.infinitive())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EffectSet(u8);

impl EffectSet {
    pub const NONE: EffectSet = EffectSet(0);
    pub const ALL: EffectSet = EffectSet(0b1111);
    /// Everything that a tool of unknown behaviour may do.
    pub const UNKNOWN_TOOL: EffectSet = EffectSet(0b0111);

    /// Builds a set.
    pub fn from_effects(effects: &[RunEffect]) -> Self {
        EffectSet(effects.iter().fold(0, |bits, effect| bits | effect.mask_bit()))
    }

    pub fn has(self, effect: RunEffect) -> bool {
        self.0 & effect.mask_bit() != 0
    }

    /// The intersection of two sets.
    #[must_use]
    pub fn and(self, other: EffectSet) -> Self {
        EffectSet(self.0 & other.0)
    }

    /// The union of two sets.
    #[must_use]
    pub fn or(self, other: EffectSet) -> Self {
        EffectSet(self.0 | other.0)
    }

    /// The effects of this set that are not in the other.
    #[must_use]
    pub fn without(self, other: EffectSet) -> Self {
        EffectSet(self.0 & !other.0)
    }

    /// The effects, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = RunEffect> {
        RunEffect::ALL.into_iter().filter(move |effect| self.has(*effect))
    }

    pub fn is_empty(self) -> bool {
        self == EffectSet::NONE
    }
}

impl Default for EffectSet {
    fn default() -> Self {
        EffectSet::ALL
    }
}

/// A row of the table of tools.
struct ToolEffects {
    tool: &'static str,
    /// The effects without which the tool is not offered.
    needs: &'static [RunEffect],
    /// The effects granted by naming the tool in a list of allowed tools.
    grants: &'static [RunEffect],
    /// The effects removed by naming the tool in a list of disallowed tools.
    removes: &'static [RunEffect],
}

use RunEffect::{ChangeFiles, Delegate, RunCommands, UseNetwork};

/// The effects of the built-in tools. Tools that only read, or only affect the run itself, have none. `git` is always
/// offered for reading; its other subcommands are checked call by call. `run_tests`, `git` and `github` run one program
/// each, so disallowing them removes the tool but no effect.
const TABLE: &[ToolEffects] = &[
    tool_row("write", &[ChangeFiles], &[ChangeFiles], &[ChangeFiles]),
    tool_row("edit", &[ChangeFiles], &[ChangeFiles], &[ChangeFiles]),
    tool_row("bash", &[RunCommands], &[RunCommands, ChangeFiles, UseNetwork], &[RunCommands]),
    tool_row("run_tests", &[RunCommands], &[RunCommands, ChangeFiles], &[]),
    tool_row("git", &[], &[ChangeFiles, UseNetwork], &[]),
    tool_row("github", &[UseNetwork], &[UseNetwork], &[]),
    tool_row("research", &[UseNetwork], &[UseNetwork], &[UseNetwork]),
    tool_row("delegate", &[Delegate], &[Delegate], &[Delegate]),
    tool_row("read", &[], &[], &[]),
    tool_row("list", &[], &[], &[]),
    tool_row("glob", &[], &[], &[]),
    tool_row("grep", &[], &[], &[]),
    tool_row("search", &[], &[], &[]),
    tool_row("skill", &[], &[], &[]),
    tool_row("skill_search", &[], &[], &[]),
    tool_row("plan", &[], &[], &[]),
    tool_row("todo", &[], &[], &[]),
];

const fn tool_row(
    tool: &'static str,
    needs: &'static [RunEffect],
    grants: &'static [RunEffect],
    removes: &'static [RunEffect],
) -> ToolEffects {
    ToolEffects { tool, needs, grants, removes }
}

/// Names of other agents' tools that correspond to only a part of one of ours: disallowing them removes no effect.
const PARTIAL_NAMES: &[&str] = &["notebookedit", "multiedit", "str_replace", "replace"];

fn row_of(tool: &str) -> Option<&'static ToolEffects> {
    TABLE.iter().find(|row| row.tool == tool)
}

/// The effects without which a tool is not offered.
pub(crate) fn needs_of(tool: &str) -> EffectSet {
    row_of(tool).map_or(EffectSet::UNKNOWN_TOOL, |row| EffectSet::from_effects(row.needs))
}

/// The limit of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentLimit {
    agent: String,
    effects: EffectSet,
    tools: ToolFilter,
}

impl AgentLimit {
    fn new(agent: &str, tools: &ToolFilter) -> Self {
        AgentLimit { agent: agent.to_owned(), effects: effects_of(tools), tools: tools.clone() }
    }

    fn is_limited(&self) -> bool {
        let allowed = self.tools.allowed.as_ref();
        allowed.is_some_and(|names| !names.iter().any(|name| name == "*"))
            || !self.tools.disallowed.is_empty()
    }

    fn disallows(&self, tool: &str) -> bool {
        self.tools.disallowed.iter().any(|pattern| pattern_matches_tool(pattern, tool))
    }

    /// Returns true if the list of allowed tools names a tool, other than by `*`.
    fn allows_by_name(&self, tool: &str) -> bool {
        let named = |pattern: &String| pattern.trim() != "*" && pattern_matches_tool(pattern, tool);
        self.tools.allowed.iter().flatten().any(named)
    }

    /// The reason why a tool that needs these effects may not be used, if any.
    fn find_refusal(&self, tool: &str, needs: EffectSet) -> Option<EffectRefusal> {
        let agent = self.agent.clone();
        if self.disallows(tool) {
            return Some(EffectRefusal { agent, tool: tool.to_owned(), effect: None });
        }
        // If the agent's own list names a tool of unknown behaviour, its author wanted it.
        if row_of(tool).is_none() && self.allows_by_name(tool) {
            return None;
        }
        let effect = needs.without(self.effects).iter().next()?;
        Some(EffectRefusal { agent, tool: tool.to_owned(), effect: Some(effect) })
    }
}

/// The effects that remain under a list of tools.
fn effects_of(tools: &ToolFilter) -> EffectSet {
    let granted = match &tools.allowed {
        None => EffectSet::ALL,
        Some(allowed) => {
            let named =
                |row: &&ToolEffects| allowed.iter().any(|one| pattern_matches_tool(one, row.tool));
            let all = allowed.iter().any(|pattern| pattern.trim() == "*");
            let rows = TABLE.iter().filter(named).map(|row| EffectSet::from_effects(row.grants));
            if all { EffectSet::ALL } else { rows.fold(EffectSet::NONE, EffectSet::or) }
        }
    };
    let whole = tools.disallowed.iter().filter(|name| covers_whole_tool(name));
    let removed = whole.flat_map(|pattern| {
        TABLE.iter().filter(|row| pattern_matches_tool(pattern, row.tool)).map(|row| row.removes)
    });
    removed.fold(granted, |left, removes| left.without(EffectSet::from_effects(removes)))
}

fn covers_whole_tool(name: &str) -> bool {
    let bare = name.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
    !PARTIAL_NAMES.contains(&bare.as_str())
}

/// The reason why a tool is not offered, or a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRefusal {
    /// The agent whose limit applies.
    pub agent: String,
    pub tool: String,
    /// The effect that the agent may not have; `None` if its list disallows the tool by name.
    pub effect: Option<RunEffect>,
}

impl fmt::Display for EffectRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EffectRefusal { agent, tool, effect } = self;
        match effect {
            Some(effect) => write!(f, "agent `{agent}` may not {effect}, which `{tool}` would do"),
            None => write!(f, "`disallowed_tools` of agent `{agent}` names `{tool}`"),
        }
    }
}

/// The limit of a run: that of its own agent, combined with those of all agents that delegated to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectLimit {
    agents: Vec<AgentLimit>,
}

impl EffectLimit {
    /// The limit that results from an agent's lists of tools.
    pub fn for_agent(agent: &str, tools: &ToolFilter) -> Self {
        EffectLimit { agents: vec![AgentLimit::new(agent, tools)] }
    }

    /// Combines two limits.
    #[must_use]
    pub fn and(&self, other: &EffectLimit) -> Self {
        let mut agents = self.agents.clone();
        // Keep one limit for an agent that delegates to itself repeatedly.
        agents.extend(other.agents.iter().filter(|agent| !self.agents.contains(agent)).cloned());
        EffectLimit { agents }
    }

    /// The remaining effects.
    pub fn effects(&self) -> EffectSet {
        self.agents.iter().fold(EffectSet::ALL, |left, agent| left.and(agent.effects))
    }

    /// The first agent that may not have an effect.
    pub fn agent_without(&self, effect: RunEffect) -> Option<&str> {
        let lacks = |agent: &&AgentLimit| !agent.effects.has(effect);
        self.agents.iter().find(lacks).map(|agent| agent.agent.as_str())
    }

    /// Returns true if commands may reach the network. If `github` is disallowed, commands must not reach GitHub
    /// either.
    pub fn commands_may_use_network(&self) -> bool {
        self.effects().has(RunEffect::UseNetwork)
            && !self.agents.iter().any(|agent| agent.disallows("github"))
    }

    /// Returns true if commands may only run in a sandbox, because they must be kept from something.
    pub fn commands_need_sandbox(&self) -> bool {
        !self.effects().has(RunEffect::ChangeFiles) || !self.commands_may_use_network()
    }

    /// The reason why a tool is not offered; `None` if it is.
    pub fn refuses_tool(&self, tool: &dyn Tool) -> Option<EffectRefusal> {
        let needs = match row_of(tool.name()) {
            Some(row) => EffectSet::from_effects(row.needs),
            None => tool.effects(),
        };
        self.find_refusal(tool.name(), needs)
    }

    /// The reason why a built-in tool is not offered; `None` if it is.
    pub fn refuses_named(&self, tool: &str) -> Option<EffectRefusal> {
        self.find_refusal(tool, needs_of(tool))
    }

    /// The reason why a call with this access is refused; `None` if it is allowed.
    pub fn refuses_call(&self, tool: &dyn Tool, access: ToolAccess) -> Option<EffectRefusal> {
        let Some(row) = row_of(tool.name()) else { return self.refuses_tool(tool) };
        let touched: &[RunEffect] = match access {
            ToolAccess::None | ToolAccess::Read => &[],
            ToolAccess::Write => &[ChangeFiles],
            ToolAccess::Execute => &[RunCommands],
            // Fetching changes the repository.
            ToolAccess::Network if row.tool == "git" => &[ChangeFiles, UseNetwork],
            ToolAccess::Network => &[UseNetwork],
        };
        let needs = EffectSet::from_effects(row.needs).or(EffectSet::from_effects(touched));
        let refusal = self.find_refusal(row.tool, needs);
        let networks = access == ToolAccess::Network && matches!(row.tool, "bash" | "git");
        refusal.or_else(|| {
            let agent = self.agents.iter().find(|agent| networks && agent.disallows("github"))?;
            let (agent, tool) = (agent.agent.clone(), row.tool.to_owned());
            Some(EffectRefusal { agent, tool, effect: Some(UseNetwork) })
        })
    }

    fn find_refusal(&self, tool: &str, needs: EffectSet) -> Option<EffectRefusal> {
        self.agents.iter().find_map(|agent| agent.find_refusal(tool, needs))
    }

    /// The built-in tools that are offered, for backends with tools of their own. Only tools on the last agent's own
    /// list are included.
    pub fn offered_tools(&self) -> Vec<&'static str> {
        let own = self.agents.last();
        let has = |tool: &str| own.is_none_or(|own| own.tools.has(tool));
        let tools = TABLE.iter().map(|row| row.tool);
        tools.filter(|tool| has(tool) && self.refuses_named(tool).is_none()).collect()
    }

    /// Returns true if any list of tools is a restriction.
    pub fn is_limited(&self) -> bool {
        self.agents.iter().any(AgentLimit::is_limited)
    }
}

#[cfg(test)]
#[path = "effect/effect_tests.rs"]
mod tests;
