//! A permission rule, and whether a call matches it.

use std::fmt;
use std::str::FromStr;

use camino::Utf8Path;

use super::paths::{self, PathNames, PathPattern};
use super::shell::{self, ShellCommands};
use crate::tool::ToolAccess;

/// The maximum length of a rule.
const RULE_BYTES_MAX: usize = 4_096;

/// A rule: a tool, and a pattern for the subject of its calls.
#[derive(Clone, Debug)]
pub struct PermissionRule {
    /// The original text.
    written: String,
    /// The tool's name; `*` stands for any characters.
    tool: String,
    subject: RuleSubject,
    /// The access that a call must have, if that matters.
    access: Option<ToolAccess>,
}

#[derive(Clone, Debug)]
enum RuleSubject {
    Any,
    /// Exactly this text, never a pattern.
    Exactly(String),
    /// The words that a command begins with.
    CommandPrefix(Vec<String>),
    /// A command in which `*` stands for any characters.
    Command(String),
    Path(PathPattern),
    /// An address on this host.
    Domain(String),
    /// Any address.
    Address,
    /// Any web search.
    WebSearch,
    /// Text in which `*` stands for any characters.
    Text(String),
}

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The text is empty, too long, or has unbalanced brackets.
    #[error("`{0}` is not a rule; write `Tool` or `Tool(pattern)`, such as `Bash(git status:*)`")]
    Malformed(String),
    /// The path pattern is invalid.
    #[error("`{rule}` is not a rule: {why}")]
    Path { rule: String, why: String },
}

/// Maps other agents' tool names to ours. Case does not matter.
pub fn tool_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let ours = match lower.as_str() {
        "multiedit" | "notebookedit" | "str_replace" | "replace" => "edit",
        "ls" | "list_directory" => "list",
        "webfetch" | "websearch" | "web_fetch" | "web_search" => "research",
        "task" | "agent" => "delegate",
        "todowrite" | "todo_write" => "todo",
        "shell" | "run_shell_command" => "bash",
        "read_file" => "read",
        "write_file" => "write",
        "gh" => "github",
        _ => lower.as_str(),
    };
    ours.to_owned()
}

/// Our name for the MCP tool that a rule calls `mcp__server__tool`; `mcp__server` stands for all tools of the server.
pub(crate) fn mcp_name(tool: &str) -> Option<String> {
    let rest = tool.strip_prefix("mcp__")?;
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-*".contains(c) { c } else { '_' };
    Some(format!("{server}_{tool}").chars().map(plain).collect())
}

/// Tools whose calls are commands.
const COMMAND_TOOLS: &[&str] = &["bash", "run_tests", "git", "github"];
/// Tools that read files.
const READING_TOOLS: &[&str] = &["read", "grep", "glob", "list", "search"];
/// Tools that change files.
const CHANGING_TOOLS: &[&str] = &["edit", "write"];

/// A call as rules see it.
pub(super) struct CallView<'a> {
    tool: String,
    subject: &'a str,
    /// The commands in the subject, if the tool runs commands.
    commands: Option<ShellCommands>,
    /// The names of the paths in the subject.
    paths: Vec<PathNames>,
    /// The access of the call, if it is known.
    access: Option<ToolAccess>,
}

impl<'a> CallView<'a> {
    pub(super) fn new(tool: &str, subject: &'a str, dir: Option<&Utf8Path>) -> Self {
        let tool = tool.to_ascii_lowercase();
        let has = |list: &[&str]| list.contains(&tool.as_str());
        let commands = has(COMMAND_TOOLS).then(|| shell::split_commands(subject));
        let paths = if has(READING_TOOLS) || has(CHANGING_TOOLS) {
            vec![paths::path_names(subject, dir)]
        } else if tool == "git" {
            paths_in_git_command(commands.as_ref(), dir)
        } else {
            Vec::new()
        };
        CallView { commands, paths, subject, tool, access: None }
    }

    /// Sets the access of the call.
    pub(super) fn with_access(self, access: ToolAccess) -> Self {
        CallView { access: Some(access), ..self }
    }

    /// Returns true if the call is a command, all of it is understood, and every command in it fits.
    fn all_commands(&self, fits: &dyn Fn(&shell::SimpleCommand) -> bool) -> bool {
        self.commands.as_ref().is_some_and(|commands| commands.all_plain(fits))
    }

    /// Returns true if the call runs any command that fits.
    fn any_command(&self, fits: &dyn Fn(&shell::SimpleCommand) -> bool) -> bool {
        self.commands.as_ref().is_some_and(|commands| commands.any_hidden(fits))
    }
}

/// The arguments of a git command that may be paths, including the path in `HEAD:path`.
fn paths_in_git_command(
    commands: Option<&ShellCommands>,
    dir: Option<&Utf8Path>,
) -> Vec<PathNames> {
    let words = commands.into_iter().flat_map(ShellCommands::words).skip(1);
    let paths = words.filter(|word| !word.starts_with('-')).map(|word| {
        let path = word.rsplit_once(':').map_or(word, |(_, path)| path);
        paths::path_names(path, dir)
    });
    paths.collect()
}

impl PermissionRule {
    /// The rule for exactly one call.
    pub fn exactly(tool: &str, subject: &str) -> PermissionRule {
        PermissionRule {
            written: format!("{tool}({subject})"),
            tool: tool_name(tool),
            subject: RuleSubject::Exactly(subject.to_owned()),
            access: None,
        }
    }

    /// Restricts the rule to calls with this access.
    pub(super) fn only_for(self, access: ToolAccess) -> PermissionRule {
        PermissionRule { access: Some(access), ..self }
    }

    /// Returns true if the whole call matches. For rules that allow.
    pub(super) fn permits(&self, call: &CallView<'_>) -> bool {
        if !self.applies_to(call) || self.access.is_some_and(|access| call.access != Some(access)) {
            return false;
        }
        match &self.subject {
            // A rule for `run_tests` allows the project's tests, not any command passed as `command`.
            RuleSubject::Any if self.tool == "run_tests" => {
                call.all_commands(&|simple| simple.begins_with(&["run_tests".to_owned()]))
            }
            RuleSubject::Any => true,
            RuleSubject::Exactly(text) => text == call.subject,
            RuleSubject::CommandPrefix(words) => {
                call.all_commands(&|simple| simple.begins_with(words))
            }
            RuleSubject::Command(pattern) => {
                call.subject == pattern || call.all_commands(&|simple| simple.is_like(pattern))
            }
            RuleSubject::Path(pattern) => {
                let mut names = call.paths.iter().map(|names| names.for_pattern(pattern));
                let fits = |names: &[String]| {
                    !names.is_empty() && names.iter().all(|path| pattern.matches_strictly(path))
                };
                // Git's arguments are only possibly paths, so a path rule may deny them but never allow them.
                call.tool != "git" && !call.paths.is_empty() && names.all(fits)
            }
            other => fits_text(other, call),
        }
    }

    /// Returns true if any part of the call matches. For rules that deny or ask.
    pub(super) fn forbids(&self, call: &CallView<'_>) -> bool {
        if !self.applies_to(call) {
            return false;
        }
        match &self.subject {
            RuleSubject::Any => true,
            RuleSubject::Exactly(text) => text == call.subject,
            RuleSubject::CommandPrefix(words) => {
                call.any_command(&|simple| simple.begins_with(words))
            }
            RuleSubject::Command(pattern) => {
                shell::is_like(call.subject, pattern)
                    || call.any_command(&|simple| simple.is_like(pattern))
            }
            RuleSubject::Path(pattern) => {
                let mut names = call.paths.iter().flat_map(|names| names.for_pattern(pattern));
                names.any(|path| pattern.matches(path))
            }
            other => fits_text(other, call),
        }
    }

    /// The path pattern of the rule, if it is about reading.
    pub(super) fn read_paths(&self) -> Option<&PathPattern> {
        match &self.subject {
            RuleSubject::Path(pattern) if READING_TOOLS.contains(&self.tool.as_str()) => {
                Some(pattern)
            }
            _ => None,
        }
    }

    /// Returns true if the rule applies to the call's tool. Rules about commands and files apply to every tool that can
    /// do the same: `Bash(git push:*)` also covers the `git` tool, and `Read(secrets/**)` also `grep`.
    fn applies_to(&self, call: &CallView<'_>) -> bool {
        let tool = call.tool.as_str();
        if self.tool == tool || shell::is_like(tool, &self.tool) {
            return true;
        }
        if mcp_name(&self.tool).is_some_and(|ours| shell::is_like(tool, &ours)) {
            return true;
        }
        let kin = |list: &[&str]| list.contains(&tool);
        match (self.tool.as_str(), &self.subject) {
            ("bash", RuleSubject::Any) => tool == "run_tests",
            ("bash", _) => kin(COMMAND_TOOLS),
            ("read", RuleSubject::Path(_)) => kin(READING_TOOLS) || tool == "git",
            ("edit", RuleSubject::Path(_)) => kin(CHANGING_TOOLS),
            _ => false,
        }
    }
}

fn fits_text(subject: &RuleSubject, call: &CallView<'_>) -> bool {
    match subject {
        RuleSubject::Domain(domain) => {
            host_of(call.subject).is_some_and(|host| is_host_in(&host, domain))
        }
        RuleSubject::Address => host_of(call.subject).is_some(),
        RuleSubject::WebSearch => call.subject.starts_with("search: "),
        RuleSubject::Text(pattern) => shell::is_like(call.subject, pattern),
        _ => false,
    }
}

fn host_of(address: &str) -> Option<String> {
    let url = reqwest::Url::parse(address).ok()?;
    url.host_str().map(|host| host.trim_end_matches('.').to_ascii_lowercase())
}

fn is_host_in(host: &str, domain: &str) -> bool {
    match domain.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|sub| sub.ends_with('.')),
        None => host == domain,
    }
}

impl FromStr for PermissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<PermissionRule, RuleError> {
        let written = text.trim();
        let malformed = || RuleError::Malformed(written.chars().take(200).collect());
        let (name, pattern) = match written.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(malformed)?)),
            None => (written, None),
        };
        let name = name.trim();
        let plain = |c: char| c.is_alphanumeric() || "_-*.:/".contains(c);
        if name.is_empty() || written.len() > RULE_BYTES_MAX || !name.chars().all(plain) {
            return Err(malformed());
        }
        let tool = tool_name(name);
        let pattern =
            pattern.map(str::trim).filter(|pattern| !pattern.is_empty() && *pattern != "*");
        let subject = match pattern {
            None => subject_without_pattern(&name.to_ascii_lowercase()),
            Some(pattern) => subject_of(&tool, pattern)
                .map_err(|why| RuleError::Path { rule: written.to_owned(), why })?,
        };
        Ok(PermissionRule { written: written.to_owned(), tool, subject, access: None })
    }
}

/// The subject of a rule without a pattern. Other agents split our `research` tool into fetching and searching.
fn subject_without_pattern(name: &str) -> RuleSubject {
    match name {
        "webfetch" | "web_fetch" => RuleSubject::Address,
        "websearch" | "web_search" => RuleSubject::WebSearch,
        _ => RuleSubject::Any,
    }
}

fn subject_of(tool: &str, pattern: &str) -> Result<RuleSubject, String> {
    if COMMAND_TOOLS.contains(&tool) {
        return Ok(command_of(tool, pattern));
    }
    if READING_TOOLS.contains(&tool) || CHANGING_TOOLS.contains(&tool) {
        return PathPattern::new(pattern).map(RuleSubject::Path);
    }
    Ok(match pattern.strip_prefix("domain:") {
        Some(domain) => {
            RuleSubject::Domain(domain.trim().trim_end_matches('.').to_ascii_lowercase())
        }
        None => RuleSubject::Text(
            pattern.strip_suffix(":*").map_or(pattern.to_owned(), |start| format!("{start}*")),
        ),
    })
}

/// Builds the subject of a command rule. `Git(push:*)` means `Bash(git push:*)`: the subjects of `git` and `github` are
/// whole commands.
fn command_of(tool: &str, pattern: &str) -> RuleSubject {
    let program = match tool {
        "git" => "git ",
        "github" => "gh ",
        _ => "",
    };
    let pattern = if pattern.starts_with(program) {
        pattern.to_owned()
    } else {
        format!("{program}{pattern}")
    };
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) if !prefix.contains('*') => {
            RuleSubject::CommandPrefix(prefix.split_whitespace().map(str::to_owned).collect())
        }
        Some(prefix) => RuleSubject::Command(format!("{prefix} *")),
        None => RuleSubject::Command(pattern),
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl PartialEq for PermissionRule {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for PermissionRule {}
