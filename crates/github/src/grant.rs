//! What an agent may do in a run for GitHub: what its mode needs, and never more than whoever asked may do themselves.

use repertoire_agent::permission::{Mode as PermissionMode, Permissions, Rule, tool_name};
use crate::actor::Admission;

use super::mode::Mode;
use repertoire_checks::protected_files::PROTECTED;

/// Tools that leave the machine. They need the mode's word and the configuration's.
const NETWORK: [&str; 2] = ["github", "research"];

/// Tools that change something here. They need the mode's word.
const CHANGING: [&str; 7] = ["bash", "git", "write", "edit", "run_tests", "plan", "delegate"];

/// Tools that look and change nothing. Every mode has them unless it says that it does not want them.
const LOOKING: [&str; 8] =
    ["read", "search", "grep", "glob", "list", "todo", "skill", "skill_search"];

/// Commands that reach other places, or change how the engine's own git behaves.
const NEVER: [&str; 7] = [
    "Bash(git push:*)",
    "Bash(git remote:*)",
    "Bash(git config:*)",
    "Bash(git submodule:*)",
    "Bash(git worktree:*)",
    "Bash(git credential:*)",
    "Bash(gh:*)",
];

/// What a run may do.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The tools that the agent has, in a fixed order. Nothing else is offered to it.
    pub tools: Vec<String>,
    /// Who may do what.
    pub permissions: Permissions,
}

/// Works out what a run may do. `network` are the tools that the configuration lets leave the machine.
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

/// Which tools a mode has for somebody who was admitted.
fn tools(mode: &Mode, admission: &Admission, network: &[String]) -> Vec<String> {
    let listed = |list: &[String], tool: &str| list.iter().any(|name| tool_name(name) == tool);
    let may = |tool: &str| match admission {
        Admission::Write => {
            LOOKING.contains(&tool)
                || listed(&mode.tools, tool) && (!NETWORK.contains(&tool) || listed(network, tool))
        }
        // A read-only run may still ask git what happened.
        Admission::Read => LOOKING.contains(&tool) || tool == "git" && listed(&mode.tools, tool),
        Admission::Refused { .. } => false,
    };
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let tools = all.filter(|tool| may(tool) && !listed(&mode.disallowed_tools, tool));
    tools.map(|tool| (*tool).to_owned()).collect()
}

/// A tool that the run does not have is denied as well: the list keeps it from being offered, the rule from being called.
fn denied(tools: &[String]) -> Vec<Rule> {
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let missing = all.filter(|tool| !tools.iter().any(|has| has == *tool));
    let mut rules: Vec<Rule> = missing.filter_map(|tool| rule(tool)).collect();
    rules.extend(NEVER.iter().filter_map(|text| rule(text)));
    rules.extend(PROTECTED.iter().flat_map(|glob| spellings(glob)).filter_map(|text| rule(&text)));
    rules
}

/// Rules for a path in the spellings that people use, so that a refusal can be read, and then in any.
fn spellings(glob: &str) -> [String; 3] {
    let (stem, ending) = match glob.rsplit_once('.') {
        Some((stem, ending)) if !ending.contains('/') => (stem, format!(".{ending}")),
        _ => (glob, String::new()),
    };
    let any: String = glob
        .chars()
        .map(|c| match c.is_ascii_lowercase() {
            true => format!("[{c}{}]", c.to_ascii_uppercase()),
            false => c.to_string(),
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
