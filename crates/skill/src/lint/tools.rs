//! The tools that `required_tools` and `disallowed_tools` may name.

/// Tools of the flat dialect, then those of common agents in their own spelling.
pub const KNOWN_TOOLS: &[&str] = &[
    "bash",
    "edit",
    "git",
    "github",
    "plan",
    "read",
    "research",
    "run_tests",
    "search",
    "write",
    "Agent",
    "AskUserQuestion",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Skill",
    "Task",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
    "delegate",
    "glob",
    "grep",
    "list",
    "shell",
    "skill",
    "skill_search",
    "todo",
    "todowrite",
    "web_fetch",
    "web_search",
];

/// Returns true if a tool is known. Arguments in parentheses are ignored, and tools of MCP servers are
/// accepted unchecked.
pub(super) fn is_known(tool: &str) -> bool {
    let name = tool.split('(').next().unwrap_or(tool);
    name == "*" || name.starts_with("mcp__") || KNOWN_TOOLS.contains(&name)
}
