//! Checks that the base branch is green before work starts: work on a red one proves nothing.

use repertoire_journal::RunId;
use tokio_util::sync::CancellationToken;

use super::GitHubRunContext;
use super::work::WorkError;
use repertoire_checks::declared::{self, CheckDefinition, run_checks};
use repertoire_git::worktree::{
    CheckoutRequirement, PreparedWorktree, RunWorktrees, WorktreeOwner, WorktreeRemovalMode,
    WorktreeRequest,
};
use repertoire_plan::worktree_setup::{WorktreeSetup, set_up_worktree};

/// The result of the checks on the base branch.
pub(super) enum BaseState {
    /// Work can start.
    Green,
    /// Work cannot start, with the reason.
    Red(String),
    /// Stopped by a user before the result was known.
    Stopped,
}

impl GitHubRunContext<'_> {
    /// Checks the base branch in the same way as work is checked: in a separate worktree with the
    /// same setup.
    pub(super) async fn check_base(&self, shutdown: &CancellationToken) -> BaseState {
        let all = self.request.checks.iter().chain(&self.request.final_checks);
        let all: Vec<CheckDefinition> = all.cloned().collect();
        if all.is_empty() {
            return BaseState::Green;
        }
        let red = self.failed_base_checks(&all, shutdown).await;
        match red {
            // The result of interrupted checks is meaningless.
            _ if shutdown.is_cancelled() => BaseState::Stopped,
            Ok(None) => BaseState::Green,
            Ok(Some(why)) => BaseState::Red(why),
            Err(error) => BaseState::Red(format!(
                "the base branch `{}` could not be checked: {error}",
                self.ground.base_ref
            )),
        }
    }

    /// Returns the failed checks, if any. The worktree is removed afterwards.
    async fn failed_base_checks(
        &self,
        all: &[CheckDefinition],
        shutdown: &CancellationToken,
    ) -> Result<Option<String>, WorkError> {
        let id = RunId::new();
        let start = format!("repertoire-start/{}", id.short());
        self.checkout.set_branch(&start, &self.ground.base, None, "whether it is green").await?;
        let worktrees =
            RunWorktrees::new(self.checkout.clone(), self.runner.places.worktrees.clone());
        let wanted = WorktreeRequest {
            run: id.as_str(),
            name: "base",
            base: Some(start.clone()),
            branch_prefix: "repertoire-base/",
            owner: WorktreeOwner { worker: self.worker.name.clone(), token: 0 },
            checkout: CheckoutRequirement::Any,
        };
        let said = match worktrees.prepare_worktree(&wanted).await {
            Ok(mut worktree) => {
                self.run_base_checks(&worktrees, &mut worktree, all, shutdown).await
            }
            Err(error) => Err(error.into()),
        };
        // A leftover worktree or branch does no harm.
        let _ = worktrees.remove(id.as_str(), WorktreeRemovalMode::Always).await;
        let _ = self.checkout.delete_branch(&start).await;
        said
    }

    async fn run_base_checks(
        &self,
        worktrees: &RunWorktrees,
        worktree: &mut PreparedWorktree,
        all: &[CheckDefinition],
        shutdown: &CancellationToken,
    ) -> Result<Option<String>, WorkError> {
        let agent_setup =
            match self.runner.agent_provider.agent_setup(self.checkout.dir(), self.request) {
                Ok(agent_setup) => agent_setup,
                Err(why) => return Ok(Some(why)),
            };
        let readable = vec![worktree.common_dir.clone()];
        let mut place = agent_setup.system.in_dir(&worktree.dir, readable).workplace_of("base");
        place.environment = agent_setup.environment;
        let check =
            self.request.setup.as_ref().map(|command| CheckDefinition::new("setup", command));
        let setup = WorktreeSetup { copy: self.request.copy.clone(), check };
        let made = set_up_worktree(worktrees, worktree, &setup, &place, shutdown, &|_| {}).await?;
        let branch = &self.ground.base_ref;
        if let Some(verdict) = made.verdict.filter(|verdict| !verdict.green) {
            let notes = declared::failure_notes(&verdict);
            return Ok(Some(format!(
                "the base branch `{branch}` could not be made ready: {notes}"
            )));
        }
        let at_once = self.request.bounds.checks_at_once.max(1) as usize;
        let verdict = run_checks(all, &place, shutdown, &|_| {}, at_once).await?;
        Ok((!verdict.green).then(|| {
            let notes = declared::failure_notes(&verdict);
            format!(
                "the base branch `{branch}` is red, and work on it would prove nothing: {notes}"
            )
        }))
    }
}
