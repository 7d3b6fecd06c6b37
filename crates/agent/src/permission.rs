//! Permissions: allow, ask or deny a call, by its tool and subject.
//!
//! Rules use the syntax of Claude Code: `Bash(git status:*)`, `Read(src/**)`, `WebFetch(domain:example.com)`. Deny wins
//! over ask, ask over allow, and any rule over the mode, except [`PermissionMode::ReadOnly`], which no rule overrides. A decision
//! is a pure function of the call, except that symlinks are resolved, so that a path has only one name.

use camino::Utf8PathBuf;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::tool::ToolAccess;

mod paths;
mod rule;
mod shell;

pub use paths::PathRules;
pub(crate) use rule::mcp_name;
pub use rule::{PermissionRule, RuleError, tool_name};

/// The actions that a run may take without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Reading is allowed; everything else asks.
    #[default]
    Default,
    /// Only reading is allowed, whatever the rules say.
    ReadOnly,
    /// Reading, changing files, and running programs in a sandbox are allowed.
    AcceptEdits,
    /// Everything is allowed, unless a rule forbids it.
    Full,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionDecision {
    Allow,
    /// Ask the user.
    Ask,
    Deny,
}

/// The decision about a call, with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionVerdict {
    pub decision: PermissionDecision,
    /// The reason, for the user and the model.
    pub reason: String,
}

impl PermissionVerdict {
    fn new(decision: PermissionDecision, reason: impl Into<String>) -> Self {
        PermissionVerdict { decision, reason: reason.into() }
    }

    /// The verdict for a run that cannot ask: `Ask` becomes `Deny`, and the reason names the rule to add.
    pub fn without_asking(self, tool: &str, subject: &str) -> PermissionVerdict {
        match self.decision {
            PermissionDecision::Ask => {
                let rule = PermissionRule::exactly(tool, subject);
                let reason = format!(
                    "{}, and this run cannot ask for it; to allow it, add the rule `{rule}` with `--allow` or \
                     under `permissions.allow`",
                    self.reason
                );
                PermissionVerdict::new(PermissionDecision::Deny, reason)
            }
            _ => self,
        }
    }
}

/// The permission rules of a run.
#[derive(Clone, Debug, Default)]
pub struct RunPermissions {
    /// The default for calls that no rule matches.
    pub mode: PermissionMode,
    pub allow: Vec<PermissionRule>,
    pub ask: Vec<PermissionRule>,
    pub deny: Vec<PermissionRule>,
    /// The work folder, to which rules for paths are relative.
    pub dir: Option<Utf8PathBuf>,
    /// Allow lists that a call must match, every one of them. Skills add them.
    within: Vec<Vec<PermissionRule>>,
}

impl RunPermissions {
    /// A mode without rules.
    pub fn new(mode: PermissionMode) -> Self {
        RunPermissions { mode, ..RunPermissions::default() }
    }

    /// Sets the work folder.
    #[must_use]
    pub fn in_dir(self, dir: impl Into<Utf8PathBuf>) -> Self {
        RunPermissions { dir: Some(dir.into()), ..self }
    }

    /// Decides about a call. `sandboxed` is true if programs run in a sandbox.
    pub fn decide(
        &self,
        tool: &str,
        access: ToolAccess,
        subject: &str,
        sandboxed: bool,
    ) -> PermissionVerdict {
        let call = rule::CallView::new(tool, subject, self.dir.as_deref()).with_access(access);
        if self.mode == PermissionMode::ReadOnly
            && !matches!(access, ToolAccess::None | ToolAccess::Read)
        {
            let does = describe_access(access);
            let reason = format!("`{tool}` {does}, and this run is read-only");
            return PermissionVerdict::new(PermissionDecision::Deny, reason);
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.forbids(&call)) {
            return PermissionVerdict::new(
                PermissionDecision::Deny,
                format!("the rule `{rule}` denies it"),
            );
        }
        let fits = |list: &Vec<PermissionRule>| list.iter().any(|rule| rule.permits(&call));
        // Calls without any access are exempt from the lists of skills.
        if access != ToolAccess::None && !self.within.iter().all(fits) {
            let reason = format!("`{tool}` is not among the tools that the active skill names");
            return PermissionVerdict::new(PermissionDecision::Deny, reason);
        }
        if let Some(rule) = self.ask.iter().find(|rule| rule.forbids(&call)) {
            return PermissionVerdict::new(
                PermissionDecision::Ask,
                format!("the rule `{rule}` asks for it"),
            );
        }
        if let Some(rule) = self.allow.iter().find(|rule| rule.permits(&call)) {
            return PermissionVerdict::new(
                PermissionDecision::Allow,
                format!("the rule `{rule}` allows it"),
            );
        }
        self.decide_by_mode(tool, access, sandboxed)
    }

    fn decide_by_mode(&self, tool: &str, access: ToolAccess, sandboxed: bool) -> PermissionVerdict {
        let does = describe_access(access);
        let allow = match (access, self.mode) {
            (ToolAccess::None | ToolAccess::Read, _) | (_, PermissionMode::Full) => true,
            (ToolAccess::Write, mode) => mode == PermissionMode::AcceptEdits,
            (ToolAccess::Execute, mode) => mode == PermissionMode::AcceptEdits && sandboxed,
            (ToolAccess::Network, _) => false,
        };
        let without = match (access, sandboxed) {
            (ToolAccess::Execute, false) => " without a sandbox",
            _ => "",
        };
        if allow {
            PermissionVerdict::new(
                PermissionDecision::Allow,
                format!("`{tool}` {does}, which this run may"),
            )
        } else {
            let reason = format!("`{tool}` {does}{without}, which needs permission");
            PermissionVerdict::new(PermissionDecision::Ask, reason)
        }
    }

    /// The rules while a skill is active that names its tools. An untrusted skill can only restrict calls to its list;
    /// the list of a trusted skill is allowed. A skill that names no tools changes nothing, and malformed rules match
    /// nothing.
    #[must_use]
    pub fn narrowed_by(&self, allowed: &[String], trusted: bool) -> RunPermissions {
        let mut narrowed = self.clone();
        if allowed.is_empty() {
            return narrowed;
        }
        let rules: Vec<PermissionRule> =
            allowed.iter().filter_map(|text| text.parse().ok()).collect();
        if trusted {
            narrowed.allow.extend(rules);
        } else {
            narrowed.within.push(rules);
        }
        narrowed
    }

    /// Applies [`Answer::Always`]: allows exactly this call from now on, with the same access. Allowing a command does
    /// not allow it to use the network.
    pub fn allow_always(&mut self, question: &Question) {
        let rule = PermissionRule::exactly(&question.tool, &question.subject);
        self.allow.push(rule.only_for(question.access));
    }

    /// The paths that rules keep from being read, for search tools, which cannot ask about each file.
    pub fn hidden_paths(&self) -> PathRules {
        PathRules::hidden_by(self.deny.iter().chain(&self.ask))
    }
}

fn describe_access(access: ToolAccess) -> &'static str {
    match access {
        ToolAccess::None => "touches nothing",
        ToolAccess::Read => "reads files",
        ToolAccess::Write => "changes files",
        ToolAccess::Execute => "runs a program",
        ToolAccess::Network => "uses the network",
    }
}

/// A question to the user about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub tool: String,
    pub access: ToolAccess,
    /// The subject of the call: a command, path or address.
    pub subject: String,
    /// The reason for asking.
    pub reason: String,
}

/// The user's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow it this time.
    Yes,
    /// Deny it, for this reason.
    No(String),
    /// Allow it now and from now on, for exactly this call.
    Always,
}

/// An interface through which the user can be asked.
pub trait PermissionAsker: Send + Sync {
    /// Asks, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// The asker of a non-interactive run: denies every question, and names the rule to add.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonInteractiveAsker;

impl PermissionAsker for NonInteractiveAsker {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let asked = PermissionVerdict::new(PermissionDecision::Ask, &question.reason);
        let verdict = asked.without_asking(&question.tool, &question.subject);
        Box::pin(async move { Answer::No(verdict.reason) })
    }
}

#[cfg(test)]
#[path = "permission/permission_tests.rs"]
mod tests;
