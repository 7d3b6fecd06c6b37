//! Who may do what: allow, ask or deny, by tool and pattern.
use crate::tool::Access;
use futures_util::future::BoxFuture;
/// x
pub fn tool_name(name: &str) -> String {
    name.to_lowercase()
}
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}
/// x
#[allow(missing_docs)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
}
/// x
#[allow(missing_docs)]
pub struct Question {
    pub tool: String,
    pub subject: String,
    pub reason: String,
}
/// x
#[allow(missing_docs)]
pub enum Answer {
    Yes,
    Always,
    No(String),
}
/// x
pub trait Asker: Send + Sync {
    /// x
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}
/// x
#[derive(Clone, Debug, Default)]
pub struct Permissions;
#[allow(missing_docs)]
impl Permissions {
    pub fn decide(
        &self,
        _tool: &str,
        _access: Access,
        _subject: &str,
        _sandboxed: bool,
    ) -> Verdict {
        Verdict { decision: Decision::Allow, reason: String::new() }
    }
    pub fn always(&mut self, _tool: &str, _subject: &str) {}
    pub fn widened_by(&self, _allowed: &[String]) -> Permissions {
        self.clone()
    }
    pub fn narrowed_by(&self, _allowed: &[String], _t: bool) -> Permissions {
        self.clone()
    }
}
