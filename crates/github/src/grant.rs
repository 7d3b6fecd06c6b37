//! Decides the tools and permissions of an agent in a GitHub run: those its mode needs, and never
//! more than the person who asked has.

use crate::actor::Admission;
use repertoire_agent::permission::{Mode as PermissionMode, Permissions, Rule, tool_name};

use super::mode::Mode;
use repertoire_checks::protected_files::PROTECTED;

/// Tools that use the network. They must be listed by the mode and by the configuration.
const NETWORK: [&str; 2] = ["github", "research"];

/// Tools that change something locally. They must be listed by the mode.
const CHANGING: [&str; 7] = ["bash", "git", "write", "edit", "run_tests", "plan", "delegate"];

/// Read-only tools. Every mode has them unless it disallows them.
const LOOKING: [&str; 8] =
    ["read", "search", "grep", "glob", "list", "todo", "skill", "skill_search"];

/// Commands that reach other places, or change the behaviour of the engine's own git.
const NEVER: [&str; 7] = [
    "Bash(git push:*)",
    "Bash(git remote:*)",
    "Bash(git config:*)",
    "Bash(git submodule:*)",
    "Bash(git worktree:*)",
    "Bash(git credential:*)",
    "Bash(gh:*)",
];

/// The tools and permissions of a run.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The tools of the agent, in a fixed order. No others are offered to it.
    pub tools: Vec<String>,
    pub permissions: Permissions,
}

/// Decides the tools and permissions of a run. `network` lists the tools that the configuration
/// allows to use the network.
pub fn grant(mode: &Mode, admission: &Admission, network: &[String]) -> Grant {
    let tools = tools(mode, admission, network);
    let mut permissions = Permissions::new(match admission {
        Admission::Write => PermissionMode::AcceptEdits,
        Admission::Read | Admission::Refused { .. } => PermissionMode::ReadOnly,
    });
    permissions.deny = denied(&tools);
    let leaving = NETWORK.iter().filter(|tool| tools.iter().any(|has| has == *tool));
    permissions.allow = leaving.filter_map(|tool| rule(tool)).collect();
    Grant { tools, permissions }
}

/// Returns the tools of a mode for an admission.
fn tools(mode: &Mode, admission: &Admission, network: &[String]) -> Vec<String> {
    let listed = |list: &[String], tool: &str| list.iter().any(|name| tool_name(name) == tool);
    let may = |tool: &str| match admission {
        Admission::Write => {
            LOOKING.contains(&tool)
                || listed(&mode.tools, tool) && (!NETWORK.contains(&tool) || listed(network, tool))
        }
        // A read-only run may still read the history with git.
        Admission::Read => LOOKING.contains(&tool) || tool == "git" && listed(&mode.tools, tool),
        Admission::Refused { .. } => false,
    };
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let tools = all.filter(|tool| may(tool) && !listed(&mode.disallowed_tools, tool));
    tools.map(|tool| (*tool).to_owned()).collect()
}

/// Returns the deny rules. Tools that the run does not have are also denied: the tool list keeps
/// them from being offered, the rule from being called.
fn denied(tools: &[String]) -> Vec<Rule> {
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let missing = all.filter(|tool| !tools.iter().any(|has| has == *tool));
    let mut rules: Vec<Rule> = missing.filter_map(|tool| rule(tool)).collect();
    rules.extend(NEVER.iter().filter_map(|text| rule(text)));
    rules.extend(PROTECTED.iter().flat_map(|glob| spellings(glob)).filter_map(|text| rule(&text)));
    rules
}

/// Returns rules for a path in the common spellings, so that a refusal is readable, and then in any
/// case.
fn spellings(glob: &str) -> [String; 3] {
    let (stem, ending) = match glob.rsplit_once('.') {
        Some((stem, ending)) if !ending.contains('/') => (stem, format!(".{ending}")),
        _ => (glob, String::new()),
    };
    let any: String = glob
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                format!("[{c}{}]", c.to_ascii_uppercase())
            } else {
                c.to_string()
            }
        })
        .collect();
    [
        format!("Edit({glob})"),
        format!("Edit({}{ending})", stem.to_uppercase()),
        format!("Edit({any})"),
    ]
}

fn rule(text: &str) -> Option<Rule> {
    text.parse().ok()
}
