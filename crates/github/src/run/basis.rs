//! Checks that the base branch is green before work starts: work on a red one proves nothing.

use repertoire_journal::RunId;
use tokio_util::sync::CancellationToken;

use super::Desk;
use super::work::WorkError;
use repertoire_checks::declared::{self, Check, run_checks};
use repertoire_git::worktree::{Checkout, Owner, Removal, Wanted, Worktree, Worktrees};
use repertoire_plan::worktree_setup::{WorktreeSetup, set_up_worktree};

/// The result of the checks on the base branch.
pub(super) enum Basis {
    /// Work can start.
    Green,
    /// Work cannot start, with the reason.
    Red(String),
    /// Stopped by a user before the result was known.
    Stopped,
}

impl Desk<'_> {
    /// Checks the base branch in the same way as work is checked: in a separate worktree with the
    /// same setup.
    pub(super) async fn basis(&self, shutdown: &CancellationToken) -> Basis {
        let all = self.request.checks.iter().chain(&self.request.final_checks);
        let all: Vec<Check> = all.cloned().collect();
        if all.is_empty() {
            return Basis::Green;
        }
        let red = self.red(&all, shutdown).await;
        match red {
            // The result of interrupted checks is meaningless.
            _ if shutdown.is_cancelled() => Basis::Stopped,
            Ok(None) => Basis::Green,
            Ok(Some(why)) => Basis::Red(why),
            Err(error) => Basis::Red(format!(
                "the base branch `{}` could not be checked: {error}",
                self.ground.base_ref
            )),
        }
    }

    /// Returns the failed checks, if any. The worktree is removed afterwards.
    async fn red(
        &self,
        all: &[Check],
        shutdown: &CancellationToken,
    ) -> Result<Option<String>, WorkError> {
        let id = RunId::new();
        let start = format!("repertoire-start/{}", id.short());
        self.house.set_branch(&start, &self.ground.base, None, "whether it is green").await?;
        let worktrees = Worktrees::new(self.house.clone(), self.runner.places.worktrees.clone());
        let wanted = Wanted {
            run: id.as_str(),
            name: "base",
            base: Some(start.clone()),
            branch_prefix: "repertoire-base/",
            owner: Owner { worker: self.worker.name.clone(), token: 0 },
            checkout: Checkout::Any,
        };
        let said = match worktrees.prepare(&wanted).await {
            Ok(mut worktree) => self.red_in(&worktrees, &mut worktree, all, shutdown).await,
            Err(error) => Err(error.into()),
        };
        // A leftover worktree or branch does no harm.
        let _ = worktrees.remove(id.as_str(), Removal::Always).await;
        let _ = self.house.delete_branch(&start).await;
        said
    }

    async fn red_in(
        &self,
        worktrees: &Worktrees,
        worktree: &mut Worktree,
        all: &[Check],
        shutdown: &CancellationToken,
    ) -> Result<Option<String>, WorkError> {
        let station = match self.runner.crew.station(self.house.dir(), self.request) {
            Ok(station) => station,
            Err(why) => return Ok(Some(why)),
        };
        let readable = vec![worktree.common_dir.clone()];
        let mut place = station.system.in_dir(&worktree.dir, readable).workplace_of("base");
        place.environment = station.environment;
        let check = self.request.setup.as_ref().map(|command| Check::new("setup", command));
        let setup = WorktreeSetup { copy: self.request.copy.clone(), check };
        let made = set_up_worktree(&worktrees, worktree, &setup, &place, shutdown, &|_| {}).await?;
        let branch = &self.ground.base_ref;
        if let Some(verdict) = made.verdict.filter(|verdict| !verdict.green) {
            let notes = declared::notes(&verdict);
            return Ok(Some(format!(
                "the base branch `{branch}` could not be made ready: {notes}"
            )));
        }
        let at_once = self.request.bounds.checks_at_once.max(1) as usize;
        let verdict = run_checks(all, &place, shutdown, &|_| {}, at_once).await?;
        Ok((!verdict.green).then(|| {
            let notes = declared::notes(&verdict);
            format!(
                "the base branch `{branch}` is red, and work on it would prove nothing: {notes}"
            )
        }))
    }
}
