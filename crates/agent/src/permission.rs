//! Who may do what: allow, ask or deny, by tool and by what a call is about.
//!
//! Rules are written as Claude Code writes them: `Bash(git status:*)`, `Read(src/**)`, `WebFetch(domain:example.com)`.
//! Deny wins over ask, ask over allow, and any rule over the mode, but for [`Mode::ReadOnly`], which nothing overrules.
//! Deciding is a pure function of the call, but for links, which are followed so that a path has one name.

use camino::Utf8PathBuf;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::tool::Access;

mod paths;
mod rule;
mod shell;

pub use paths::PathRules;
pub(crate) use rule::mcp_name;
pub use rule::{Rule, RuleError, tool_name};

/// What a run may do without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Reading; the rest is asked for.
    #[default]
    Default,
    /// Reading, and nothing else whatever rules say.
    ReadOnly,
    /// Reading and changing files, and programs in a sandbox.
    AcceptEdits,
    /// Everything that no rule forbids.
    Full,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It is made.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not made.
    Deny,
}

/// What becomes of a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What.
    pub decision: Decision,
    /// Why, in words for the user and the model.
    pub reason: String,
}

impl Verdict {
    fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Verdict { decision, reason: reason.into() }
    }

    /// The verdict where nobody can be asked: asking becomes denying, and the reason says what to add.
    pub fn without_asking(self, tool: &str, subject: &str) -> Verdict {
        match self.decision {
            Decision::Ask => {
                let rule = Rule::exactly(tool, subject);
                let reason = format!(
                    "{}, and this run cannot ask for it; to allow it, add the rule `{rule}` with `--allow` or \
                     under `permissions.allow`",
                    self.reason
                );
                Verdict::new(Decision::Deny, reason)
            }
            _ => self,
        }
    }
}

/// The rules of a run.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// What goes without rules.
    pub mode: Mode,
    /// What is allowed.
    pub allow: Vec<Rule>,
    /// What is asked for.
    pub ask: Vec<Rule>,
    /// What is denied.
    pub deny: Vec<Rule>,
    /// The work folder: rules for paths are relative to it.
    pub dir: Option<Utf8PathBuf>,
    /// Lists that a call must fit, each of them; skills add them.
    within: Vec<Vec<Rule>>,
}

impl Permissions {
    /// A mode without rules.
    pub fn new(mode: Mode) -> Self {
        Permissions { mode, ..Permissions::default() }
    }

    /// The rules of a run in a folder.
    #[must_use]
    pub fn in_dir(self, dir: impl Into<Utf8PathBuf>) -> Self {
        Permissions { dir: Some(dir.into()), ..self }
    }

    /// What becomes of a call. `sandboxed` says whether programs are kept in their place.
    pub fn decide(&self, tool: &str, access: Access, subject: &str, sandboxed: bool) -> Verdict {
        let call = rule::CallView::new(tool, subject, self.dir.as_deref()).with(access);
        if self.mode == Mode::ReadOnly && !matches!(access, Access::None | Access::Read) {
            let does = does(access);
            let reason = format!("`{tool}` {does}, and this run is read-only");
            return Verdict::new(Decision::Deny, reason);
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.forbids(&call)) {
            return Verdict::new(Decision::Deny, format!("the rule `{rule}` denies it"));
        }
        let fits = |list: &Vec<Rule>| list.iter().any(|rule| rule.permits(&call));
        // What touches nothing is nothing that a list could keep from a skill.
        if access != Access::None && !self.within.iter().all(fits) {
            let reason = format!("`{tool}` is not among the tools that the active skill names");
            return Verdict::new(Decision::Deny, reason);
        }
        if let Some(rule) = self.ask.iter().find(|rule| rule.forbids(&call)) {
            return Verdict::new(Decision::Ask, format!("the rule `{rule}` asks for it"));
        }
        if let Some(rule) = self.allow.iter().find(|rule| rule.permits(&call)) {
            return Verdict::new(Decision::Allow, format!("the rule `{rule}` allows it"));
        }
        self.by_mode(tool, access, sandboxed)
    }

    fn by_mode(&self, tool: &str, access: Access, sandboxed: bool) -> Verdict {
        let does = does(access);
        let allow = match (access, self.mode) {
            (Access::None | Access::Read, _) | (_, Mode::Full) => true,
            (Access::Write, mode) => mode == Mode::AcceptEdits,
            (Access::Execute, mode) => mode == Mode::AcceptEdits && sandboxed,
            (Access::Network, _) => false,
        };
        let without = match (access, sandboxed) {
            (Access::Execute, false) => " without a sandbox",
            _ => "",
        };
        match allow {
            true => Verdict::new(Decision::Allow, format!("`{tool}` {does}, which this run may")),
            false => Verdict::new(
                Decision::Ask,
                format!("`{tool}` {does}{without}, which needs permission"),
            ),
        }
    }

    /// The rules while a skill is active that names its tools. A skill that is not trusted can only take away; the list
    /// of a trusted one is allowed. A skill that names none changes nothing, and a name that is no rule matches nothing.
    #[must_use]
    pub fn narrowed_by(&self, allowed: &[String], trusted: bool) -> Permissions {
        let mut narrowed = self.clone();
        if allowed.is_empty() {
            return narrowed;
        }
        let rules: Vec<Rule> = allowed.iter().filter_map(|text| text.parse().ok()).collect();
        match trusted {
            true => narrowed.allow.extend(rules),
            false => narrowed.within.push(rules),
        }
        narrowed
    }

    /// What a person answered with [`Answer::Always`]: this call is allowed from now on, for what it touches now. Who
    /// allowed a command has not allowed it the network.
    pub fn always(&mut self, question: &Question) {
        let rule = Rule::exactly(&question.tool, &question.subject);
        self.allow.push(rule.only_for(question.access));
    }

    /// The files that rules keep from being read, for tools that search: they cannot ask for each.
    pub fn hidden(&self) -> PathRules {
        PathRules::hidden_by(self.deny.iter().chain(&self.ask))
    }
}

fn does(access: Access) -> &'static str {
    match access {
        Access::None => "touches nothing",
        Access::Read => "reads files",
        Access::Write => "changes files",
        Access::Execute => "runs a program",
        Access::Network => "uses the network",
    }
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The tool.
    pub tool: String,
    /// What it touches.
    pub access: Access,
    /// What the call is about.
    pub subject: String,
    /// Why we ask.
    pub reason: String,
}

/// What a person answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This time.
    Yes,
    /// No, and why.
    No(String),
    /// This time and from now on, for exactly this call.
    Always,
}

/// Somebody who can be asked.
pub trait Asker: Send + Sync {
    /// Asks, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// Nobody is there: every question is answered with no, and with what to add.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let asked = Verdict::new(Decision::Ask, &question.reason);
        let verdict = asked.without_asking(&question.tool, &question.subject);
        Box::pin(async move { Answer::No(verdict.reason) })
    }
}

#[cfg(test)]
#[path = "permission/permission_tests.rs"]
mod tests;
