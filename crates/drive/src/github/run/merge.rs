//! Whether the pull request of a run is merged, and what is said of it.

use super::Desk;
use crate::git::Oid;
use crate::github::automerge::{self, Fact, Request, Verdict, Verification};

impl Desk<'_> {
    /// Merges a pull request that this run has made, if everything speaks for it; says what became of it.
    pub(super) async fn merge(&self, number: u64, commit: &Oid, issue: Option<u64>) -> String {
        let checks = &self.request.checks;
        // The loop says `done` only after all checks were green on the last change; where none is declared, that says nothing.
        let verdict = match checks.is_empty() && self.request.final_checks.is_empty() {
            true => Verdict::Inconclusive,
            false => Verdict::Passed,
        };
        let request = Request {
            number,
            asked: Fact::Known(true),
            made_by_us: Fact::Known(true),
            own_login: self.settings.rules.bot_login.clone(),
            branch_prefix: self.settings.branch_prefix.clone(),
            verification: Fact::Known(Verification {
                verdict,
                full: true,
                commit: commit.to_string(),
                after_last_writer: true,
            }),
            open_question: Fact::Known(false),
            issue,
        };
        let settings = &self.settings.auto_merge;
        automerge::run(self.client, &request, settings, &automerge::WallClock).await.line()
    }
}
