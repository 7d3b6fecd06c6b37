//! Decides the tools and permissions of an agent in a GitHub run: those its mode needs, and never
//! more than the person who asked has.

use crate::actor::RunAdmission;
use repertoire_agent::permission::{PermissionMode, PermissionRule, RunPermissions, tool_name};

use super::mode::GitHubMode;
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
pub struct AgentGrant {
    /// The tools of the agent, in a fixed order. No others are offered to it.
    pub tools: Vec<String>,
    pub permissions: RunPermissions,
}

/// Decides the tools and permissions of a run. `network` lists the tools that the configuration
/// allows to use the network.
pub fn decide_grant(mode: &GitHubMode, admission: &RunAdmission, network: &[String]) -> AgentGrant {
    let tools = allowed_tools(mode, admission, network);
    let mut permissions = RunPermissions::new(match admission {
        RunAdmission::Write => PermissionMode::AcceptEdits,
        RunAdmission::Read | RunAdmission::Refused { .. } => PermissionMode::ReadOnly,
    });
    permissions.deny = deny_rules(&tools);
    let leaving = NETWORK.iter().filter(|tool| tools.iter().any(|has| has == *tool));
    permissions.allow = leaving.filter_map(|tool| parse_rule(tool)).collect();
    AgentGrant { tools, permissions }
}

/// Returns the tools of a mode for an admission.
fn allowed_tools(mode: &GitHubMode, admission: &RunAdmission, network: &[String]) -> Vec<String> {
    let listed = |list: &[String], tool: &str| list.iter().any(|name| tool_name(name) == tool);
    let may = |tool: &str| match admission {
        RunAdmission::Write => {
            LOOKING.contains(&tool)
                || listed(&mode.tools, tool) && (!NETWORK.contains(&tool) || listed(network, tool))
        }
        // A read-only run may still read the history with git.
        RunAdmission::Read => LOOKING.contains(&tool) || tool == "git" && listed(&mode.tools, tool),
        RunAdmission::Refused { .. } => false,
    };
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let tools = all.filter(|tool| may(tool) && !listed(&mode.disallowed_tools, tool));
    tools.map(|tool| (*tool).to_owned()).collect()
}

/// Returns the deny rules. Tools that the run does not have are also denied: the tool list keeps
/// them from being offered, the rule from being called.
fn deny_rules(tools: &[String]) -> Vec<PermissionRule> {
    let all = LOOKING.iter().chain(&CHANGING).chain(&NETWORK);
    let missing = all.filter(|tool| !tools.iter().any(|has| has == *tool));
    let mut rules: Vec<PermissionRule> = missing.filter_map(|tool| parse_rule(tool)).collect();
    rules.extend(NEVER.iter().filter_map(|text| parse_rule(text)));
    rules.extend(
        PROTECTED.iter().flat_map(|glob| case_variants(glob)).filter_map(|text| parse_rule(&text)),
    );
    rules
}

/// Returns rules for a path in the common spellings, so that a refusal is readable, and then in any
/// case.
fn case_variants(glob: &str) -> [String; 3] {
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

fn parse_rule(text: &str) -> Option<PermissionRule> {
    text.parse().ok()
}
