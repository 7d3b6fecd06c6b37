//! Dispatching work to sub-agents.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentRole;

/// Work dispatched to sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentDispatch {
    /// One sub-agent.
    Single(SubagentBrief),
    /// Several at once, each with its own task.
    Parallel(ParallelDispatch),
    /// One for each entry of a list, all with the same task.
    Template(TemplateDispatch),
    /// One of two dispatches, by a condition.
    Conditional(ConditionalDispatch),
}

/// The brief of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentBrief {
    /// The id among several sub-agents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The role.
    #[serde(default)]
    pub agent: AgentRole,
    /// The complete task: a sub-agent sees nothing else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// The workflow of the sub-agent: a file under `workflows/` of the same skill, or another workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Values to hand over: the parameters of `workflow`, or facts for the task.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub with: IndexMap<String, String>,
    /// The model, if a particular one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The files it may change. Sub-agents that run at the same time never share a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// A description of what it returns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub returns: String,
    /// The maximum length of its answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_tokens_max: Option<u32>,
}

/// Several sub-agents at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelDispatch {
    /// Instructions for starting them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruction: String,
    /// Context that all of them get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shared: String,
    /// The sub-agents.
    pub agents: Vec<SubagentBrief>,
}

/// One sub-agent for each entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateDispatch {
    /// The list: a parameter of type `list` or `work`, or `items` for the open items of the current review.
    pub over: String,
    /// Context that all of them get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shared: String,
    /// The brief, in which `item` is the entry.
    pub each: SubagentBrief,
}

/// One of two dispatches, by a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionalDispatch {
    /// The condition in words, for the agent to judge.
    pub condition: String,
    /// The condition as an expression over parameters and state; if set, the engine evaluates it.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The dispatch if it holds.
    pub then: Box<SubagentDispatch>,
    /// The dispatch if it does not.
    #[serde(default, rename = "else", skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Box<SubagentDispatch>>,
}

impl SubagentDispatch {
    /// All briefs of the dispatch.
    pub fn briefs(&self) -> Vec<&SubagentBrief> {
        match self {
            SubagentDispatch::Single(brief) => vec![brief],
            SubagentDispatch::Parallel(parallel) => parallel.agents.iter().collect(),
            SubagentDispatch::Template(template) => vec![&template.each],
            SubagentDispatch::Conditional(conditional) => {
                let mut all = conditional.then.briefs();
                all.extend(conditional.otherwise.iter().flat_map(|other| other.briefs()));
                all
            }
        }
    }
}

impl SubagentDispatch {
    /// All briefs of the dispatch, mutable.
    pub(crate) fn briefs_mut(&mut self) -> Vec<&mut SubagentBrief> {
        match self {
            SubagentDispatch::Single(brief) => vec![brief],
            SubagentDispatch::Parallel(parallel) => parallel.agents.iter_mut().collect(),
            SubagentDispatch::Template(template) => vec![&mut template.each],
            SubagentDispatch::Conditional(conditional) => {
                let mut all = conditional.then.briefs_mut();
                all.extend(conditional.otherwise.iter_mut().flat_map(|other| other.briefs_mut()));
                all
            }
        }
    }
}
