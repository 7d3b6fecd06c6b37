//! Delivers a piece of work on GitHub: runs the plan loop, pushes the branch, opens a pull request
//! and merges it, as configured.

use crate::actor::RunAdmission;
use crate::comment::NeutraliseRules;
use camino::Utf8Path;
use repertoire_agent::definition::AgentDefinition;
use tokio_util::sync::CancellationToken;

use super::work::{WorkContext, WorkError, WorkPiece, WorkResult};
use super::{AdmittedEvent, GitHubOutcome, GitHubRunContext, RunConclusion, WorkOrder};
use crate::base;
use crate::mode::{GitHubMode, OpensPullRequest};
use crate::publish::{self, BranchPublication};
use crate::tasks;
use repertoire_checks::recover::FailureClass;
use repertoire_git::repo::GitObjectId;
use repertoire_git::worktree::RunWorktrees;
use repertoire_plan::{AdHocTask, PlanDeliveryMode, PlanLimits, PlanRequest, PlanStepAgent};

/// The file with the settings of a project.
const SETTINGS_FILE: &str = "repertoire.toml";

impl GitHubRunContext<'_> {
    /// Runs the plan loop for a piece of work, and publishes the result.
    pub(super) async fn deliver_work(
        &self,
        call: &AdmittedEvent<'_>,
        wanted: WorkOrder,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let (start, note) = match self.start_commit().await {
            Ok(start) => start,
            Err(error) => return GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
        };
        let mut outcome = match self.work_on(&wanted, call, start, shutdown).await {
            Ok(mut worked) => match self.tick_task(&wanted, &mut worked).await {
                Ok(()) => self.publish_work(call, &wanted, worked).await,
                Err(error) => GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
            },
            Err(error) => GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
        };
        outcome.notes.extend(note);
        outcome
    }

    /// Returns the commit on which work starts, and a note if settings of a pull request are
    /// ignored.
    async fn start_commit(&self) -> Result<(GitObjectId, Option<String>), base::BaseError> {
        let Some(head) = &self.ground.head else { return Ok((self.ground.base.clone(), None)) };
        let made = base::overlay_base_config(self.checkout, head, &self.ground.base).await?;
        let is_settings = |path: &&String| Utf8Path::new(path).file_name() == Some(SETTINGS_FILE);
        let note = made.replaced.iter().find(is_settings).map(|path| {
            format!("The pull request changes `{path}`; the settings of the base branch were used.")
        });
        Ok((made.commit, note))
    }

    async fn work_on(
        &self,
        wanted: &WorkOrder,
        call: &AdmittedEvent<'_>,
        start: GitObjectId,
        shutdown: &CancellationToken,
    ) -> Result<WorkResult, WorkError> {
        let permissions = &wanted.grant.permissions;
        let is_read = call.admission == RunAdmission::Read;
        let step_agent = |usual: &PlanStepAgent| PlanStepAgent {
            system: Some(wanted.prompt.system.clone()),
            tools: Some(wanted.grant.tools.clone()),
            mode: is_read.then(|| "read-only".to_owned()),
            allow: rule_texts(&permissions.allow),
            deny: rule_texts(&permissions.deny),
            ignore_project_rules: true,
            ..usual.clone()
        };
        let asked = AdHocTask {
            title: wanted.plan_label(),
            words: wanted.prompt.user.clone(),
            topic: wanted.topic.clone(),
            answer: wanted.answer,
        };
        // The reviewer reads the same untrusted text, so it needs the rules about data fences as
        // well.
        let told = format!("{}\n{}", AgentDefinition::default().prompt, wanted.prompt.rules);
        let reviewer = PlanStepAgent { system: Some(told), ..step_agent(&self.request.reviewer) };
        let request = PlanRequest {
            plan: wanted.plan.clone().unwrap_or_default(),
            asked: wanted.plan.is_none().then_some(asked),
            implementer: step_agent(&self.request.implementer),
            reviewer,
            branch_prefix: self.settings.branch_prefix.clone(),
            ending: PlanDeliveryMode::Keep,
            bounds: self.mode_bounds(call.mode),
            ..self.request_for(&call.admission)
        };
        let bench = WorkContext {
            journal: self.journal,
            runner: self.runner,
            worker: self.worker,
            checkout: self.checkout,
            on_run: self.on_run,
        };
        let piece = WorkPiece { name: wanted.name.clone(), request, start, limits: wanted.limits };
        bench.do_work(piece, shutdown).await
    }

    /// Returns the plan request with the rights of the actor. For read-only work nothing is
    /// executed: setup and checks run code in the worktree, which may be from a fork.
    pub(super) fn request_for(&self, admission: &RunAdmission) -> PlanRequest {
        match admission {
            RunAdmission::Write => self.request.clone(),
            RunAdmission::Read | RunAdmission::Refused { .. } => PlanRequest {
                setup: None,
                copy: Vec::new(),
                checks: Vec::new(),
                final_checks: Vec::new(),
                improve: None,
                review: false,
                ..self.request.clone()
            },
        }
    }

    /// Returns the bounds of a mode. A mode without retries has a single attempt.
    fn mode_bounds(&self, mode: &GitHubMode) -> PlanLimits {
        let mut bounds = self.request.bounds.clone();
        let retries = if mode.execution.supports_retry { mode.execution.max_retries } else { 0 };
        bounds.attempts_max = bounds.attempts_max.min(retries.saturating_add(1));
        bounds
    }

    /// Ticks the box of a completed task, on its branch.
    async fn tick_task(
        &self,
        wanted: &WorkOrder,
        worked: &mut WorkResult,
    ) -> Result<(), WorkError> {
        let Some((file, id)) =
            wanted.tick.as_ref().filter(|_| worked.conclusion == RunConclusion::Done)
        else {
            return Ok(());
        };
        let worktrees =
            RunWorktrees::new(self.checkout.clone(), self.runner.places.worktrees.clone());
        let Some(worktree) = worktrees.of_run(worked.run.id.as_str()).await? else { return Ok(()) };
        let text = repertoire_plan::file::read_plan(&worktree.dir, file);
        if let Some(ticked) = text.and_then(|text| tasks::file::tick_task(&text, id)) {
            repertoire_plan::file::write(&worktree.dir, file, &ticked)?;
            worktree
                .git
                .commit_paths(&[file.to_string()], &format!("tasks: {} is done", wanted.title))
                .await?;
            worked.head = Some(worktree.git.head_commit().await?);
        }
        Ok(())
    }

    /// Pushes the work, opens a pull request and merges it, as configured.
    async fn publish_work(
        &self,
        call: &AdmittedEvent<'_>,
        wanted: &WorkOrder,
        worked: WorkResult,
    ) -> GitHubOutcome {
        let branch = worked.run.worktree.as_ref().map(|worktree| worktree.branch.clone());
        let mut outcome = GitHubOutcome {
            branch: branch.filter(|_| worked.head.is_some()),
            checks: worked.checks.clone(),
            answer: worked.answer.clone(),
            run: Some(worked.run.id.clone()),
            class: worked.class,
            ..GitHubOutcome::new(worked.conclusion, worked.reason.clone())
        };
        let is_wanted = self.settings.push && outcome.conclusion == RunConclusion::Done;
        let (Some(branch), Some(head), true) = (outcome.branch.clone(), worked.head, is_wanted)
        else {
            return outcome;
        };
        if let Err(why) = self.push_and_open(call, wanted, &branch, &head, &mut outcome).await {
            outcome.conclusion = RunConclusion::Waiting;
            outcome.class = Some(FailureClass::Permanent);
            outcome.reason = why;
        }
        outcome
    }

    async fn push_and_open(
        &self,
        call: &AdmittedEvent<'_>,
        wanted: &WorkOrder,
        branch: &str,
        head: &GitObjectId,
        outcome: &mut GitHubOutcome,
    ) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        // The pull request keeps its own configuration, whatever configuration the agent worked
        // with.
        let (commit, base, base_commit) = match (&self.ground.head, self.pull_branch(call)) {
            (Some(own), Some(name)) => {
                let plain = base::remove_overlay(self.checkout, head, own, &wanted.plan_label())
                    .await
                    .map_err(|error| text(&error))?;
                (plain, name, own)
            }
            _ => (head.clone(), self.ground.base_ref.clone(), &self.ground.base),
        };
        let what = BranchPublication {
            git: self.checkout,
            client: self.client,
            remote: self.remote,
            prefix: &self.settings.branch_prefix,
            branch,
            commit: &commit,
            base: &base,
            base_commit,
        };
        publish::push_branch(&what).await.map_err(|error| text(&error))?;
        outcome.pushed = true;
        let opens = call.mode.execution.opens_pull_request;
        if !self.settings.pull_request || opens == OpensPullRequest::Never {
            return Ok(());
        }
        let origin = self.pull_origin(call, wanted, outcome.run.as_ref()).await;
        let hidden = origin.as_ref().map(|origin| format!("{}\n\n", origin.to_line()));
        let ours = hidden.unwrap_or_default() + &pull_text(wanted, outcome);
        let pull = publish::PullText {
            title: &wanted.title,
            ours: &ours,
            theirs: outcome.answer.as_deref().unwrap_or_default(),
            draft: self.settings.draft,
        };
        let phrases = self.trigger_phrases();
        let secrets = self.all_secrets();
        let rules = NeutraliseRules { triggers: &phrases, secrets: &secrets, image_host: None };
        let opened =
            publish::open_pull(&what, &pull, &rules).await.map_err(|error| text(&error))?;
        outcome.pull_request = Some(opened.number);
        if let Some(origin) = &origin {
            let report = self.merge_opened(call, &opened, (branch, &commit), origin).await;
            outcome.merge = Some(report.to_line());
            outcome.notes.extend(report.remarks);
        }
        Ok(())
    }

    /// Returns the head branch of the pull request that is worked on, which the work is merged
    /// into.
    fn pull_branch(&self, call: &AdmittedEvent<'_>) -> Option<String> {
        let pull = call.context.entity.as_ref()?.pull.as_ref()?;
        Some(pull.head_ref.clone())
    }
}

fn rule_texts(rules: &[repertoire_agent::permission::PermissionRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

/// Returns the engine's own text for a pull request.
fn pull_text(wanted: &WorkOrder, outcome: &GitHubOutcome) -> String {
    let about = wanted.about.map(|number| format!("For #{number}."));
    let checks =
        outcome.checks.as_ref().map(|checks| format!("Checks on the last commit: {checks}."));
    let parts: Vec<String> = about.into_iter().chain(checks).collect();
    parts.join("\n\n")
}
