//! Performs a merge: waits, calls the API, confirms the result, and cleans up.

use std::time::Duration;

use crate::client::{ClientError, GitHubClient, MergeMethod};
use futures_util::future::BoxFuture;
use repertoire_text::clock::{Clock, SystemClock};

use super::decide::is_worth_waiting;
use super::{
    AutoMerge, AutoMergeRequest, ConditionResult, MergeDecision, MergeOutcome, MergeRefusal,
    MergeReport, MergeStep, decide_merge, gather_facts, short_sha,
};
use crate::limits::{MERGE_POLL, MERGE_RESTARTS_MAX};

/// A clock that can wait, passed in so that tests need not wait.
pub trait MergeClock: Send + Sync {
    /// Returns milliseconds since 1970.
    fn now_ms(&self) -> u64;

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl MergeClock for WallClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Merges a pull request if every condition holds; otherwise reports the first one that does not.
pub async fn merge_if_allowed(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    pace: &dyn MergeClock,
) -> MergeReport {
    let mut report = MergeReport {
        pull_request: request.number,
        head: None,
        decision: MergeOutcome::Refused,
        condition: None,
        reason: None,
        next: None,
        conditions: Vec::new(),
        merged_as: None,
        method: None,
        steps: Vec::new(),
        remarks: Vec::new(),
    };
    // Make no calls if auto-merge is off.
    if !settings.enabled {
        let facts = super::MergeFacts::all_unknown(request);
        let (decision, conditions) = decide_merge(&facts, settings);
        report.apply_decision(decision, conditions);
        return report;
    }
    report.remarks = settings.settings_remarks();
    let Some(head) = wait_for_agreement(client, request, settings, pace, &mut report).await else {
        return report;
    };
    approve_head(client, request, settings, &head, &mut report).await;
    merge_head(client, request, settings, &head, &mut report).await;
    if report.decision == MergeOutcome::Merged {
        clean_up(client, request, settings, &mut report).await;
        watch_merge(client, request, settings, pace, &mut report).await;
    }
    report
}

impl MergeReport {
    fn apply_decision(
        &mut self,
        decision: MergeDecision,
        conditions: Vec<ConditionResult>,
    ) -> Option<String> {
        self.conditions = conditions;
        match decision {
            MergeDecision::Merge { head } => Some(head),
            MergeDecision::Refuse(MergeRefusal { condition, reason, next, prospect }) => {
                self.decision = prospect.outcome();
                (self.condition, self.reason, self.next) =
                    (Some(condition), Some(reason), Some(next));
                None
            }
        }
    }

    fn add_step(&mut self, step: &str, done: Result<String, String>) {
        let ok = done.is_ok();
        let detail = done.unwrap_or_else(|why| why);
        self.steps.push(MergeStep { step: step.to_owned(), ok, detail });
    }
}

/// Returns the commit for which all conditions held twice in a row. Waits for pending facts.
async fn wait_for_agreement(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    pace: &dyn MergeClock,
    report: &mut MergeReport,
) -> Option<String> {
    let deadline = pace.now_ms().saturating_add(settings.wait_seconds.saturating_mul(1000));
    let mut pinned: Option<String> = None;
    let mut restarts = 0;
    loop {
        let facts = gather_facts(client, request, pinned.as_deref()).await;
        if let super::MergeFact::Known(pull) = &facts.pull {
            report.head = Some(pull.head_sha.clone());
        }
        let (decision, conditions) = decide_merge(&facts, settings);
        match decision {
            // The first time decides; the second one, right before the call, confirms.
            MergeDecision::Merge { head } if pinned.as_ref() == Some(&head) => {
                (report.condition, report.reason, report.next) = (None, None, None);
                report.decision = MergeOutcome::Refused;
                report.conditions = conditions;
                return Some(head);
            }
            MergeDecision::Merge { head } => pinned = Some(head),
            MergeDecision::Refuse(refusal)
                if refusal.condition == 4 && restarts < MERGE_RESTARTS_MAX =>
            {
                // The head moved: check everything again for the new one.
                restarts += 1;
                pinned = None;
            }
            MergeDecision::Refuse(refusal) => {
                let is_waited_for =
                    refusal.prospect.is_waited_for() && is_worth_waiting(&facts, settings);
                report.apply_decision(MergeDecision::Refuse(refusal), conditions);
                let now = pace.now_ms();
                if !is_waited_for || now >= deadline {
                    return None;
                }
                let left = Duration::from_millis(deadline - now);
                pace.sleep(MERGE_POLL.min(left)).await;
            }
        }
    }
}

async fn approve_head(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    head: &str,
    report: &mut MergeReport,
) {
    if !settings.approve {
        return;
    }
    let said = "The declared checks passed on this commit. This approval is not counted.";
    let done = client.approve_pull(request.number, head, &request.own_login, said).await;
    let done = done.map(|_| format!("approved {}", short_sha(head)));
    report.add_step("approve", done.map_err(|error| error.to_string()));
}

async fn merge_head(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    head: &str,
    report: &mut MergeReport,
) {
    let method = match settings.method {
        Some(method) => Some(method),
        None => allowed_method(client).await,
    };
    report.method = method;
    if let Err(error) = client.merge_pull(request.number, head, method).await {
        // The merge may have been done despite the error: only reading it back is reliable.
        return match find_merge_commit(client, request.number, head).await {
            Ok(Some(sha)) => confirm_merge(report, sha),
            Ok(None) => note_refusal(report, error.to_string()),
            Err(_) if is_answer(&error) => note_refusal(report, error.to_string()),
            Err(_) => {
                report.decision = MergeOutcome::Unconfirmed;
                note_refusal(report, error.to_string());
            }
        };
    }
    match find_merge_commit(client, request.number, head).await {
        Ok(Some(sha)) => confirm_merge(report, sha),
        Ok(None) => {
            report.decision = MergeOutcome::Unconfirmed;
            note_refusal(report, "the service took the merge, and does not show it".to_owned());
        }
        Err(error) => {
            report.decision = MergeOutcome::Unconfirmed;
            note_refusal(report, format!("the merge could not be read back: {error}"));
        }
    }
}

fn note_refusal(report: &mut MergeReport, reason: String) {
    report.reason = Some(reason);
    report.next = Some("a person looks at what the service says".to_owned());
}

/// Returns true if GitHub itself rejected the call.
fn is_answer(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Refused { .. }
            | ClientError::Forbidden { .. }
            | ClientError::Unauthorised { .. }
            | ClientError::NotFound { .. }
            | ClientError::BadName { .. }
    )
}

fn confirm_merge(report: &mut MergeReport, sha: String) {
    report.decision = MergeOutcome::Merged;
    report.merged_as = Some(sha);
}

/// Returns the merge commit of a pull request, if it was merged with this head.
async fn find_merge_commit(
    client: &GitHubClient,
    number: u64,
    head: &str,
) -> Result<Option<String>, ClientError> {
    let pull = client.get_pull(number).await?;
    let merged = pull.merged && pull.head.sha == head;
    Ok(pull.merge_commit_sha.filter(|_| merged))
}

/// Returns the first merge method that the repository allows, if the token may read that.
async fn allowed_method(client: &GitHubClient) -> Option<MergeMethod> {
    let info = client.get_repository().await.ok()?;
    let all = [
        (info.allow_merge_commit, MergeMethod::Merge),
        (info.allow_squash_merge, MergeMethod::Squash),
        (info.allow_rebase_merge, MergeMethod::Rebase),
    ];
    all.into_iter().find(|(allowed, _)| *allowed == Some(true)).map(|(_, method)| method)
}

async fn clean_up(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    report: &mut MergeReport,
) {
    if settings.delete_branch {
        let done = delete_branch(client, request).await;
        report.add_step("delete branch", done);
    }
    if let Some(issue) = request.issue.filter(|_| settings.close_issue) {
        let sha = report.merged_as.clone().unwrap_or_default();
        let done = close_issue(client, request, issue, &sha).await;
        report.add_step("close issue", done);
    }
}

async fn watch_merge(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    pace: &dyn MergeClock,
    report: &mut MergeReport,
) {
    let Some(sha) = report.merged_as.clone().filter(|_| settings.watch_seconds > 0) else { return };
    let done = super::watch::watch_checks(client, request, settings, &sha, pace).await;
    report.add_step("watch", done);
}

/// Deletes the head branch, if it is the bot's, not protected, and no other pull request needs it.
async fn delete_branch(
    client: &GitHubClient,
    request: &AutoMergeRequest,
) -> Result<String, String> {
    let words = |error: ClientError| error.to_string();
    let pull = client.get_pull(request.number).await.map_err(words)?;
    let branch = pull.head.name;
    if request.branch_prefix.is_empty() || !branch.starts_with(&request.branch_prefix) {
        return Err(format!("`{branch}` is not one of our branches"));
    }
    match client.get_branch(&branch).await {
        Ok(found) if found.protected => return Err(format!("`{branch}` is protected")),
        Ok(found) if found.commit.sha != pull.head.sha => {
            return Err(format!("`{branch}` has moved since the merge"));
        }
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(format!("`{branch}` is gone already")),
        Err(error) => return Err(error.to_string()),
    }
    let others = client.list_pulls_of(&branch).await.map_err(words)?;
    if !others.whole || others.items.iter().any(|other| other.number != request.number) {
        return Err(format!("`{branch}` has another open pull request"));
    }
    client.delete_branch(&branch).await.map_err(words)?;
    Ok(format!("deleted `{branch}`"))
}

async fn close_issue(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    issue: u64,
    sha: &str,
) -> Result<String, String> {
    let marker = crate::comment::CommentMarker::new(&format!("merged:{}", request.number));
    let text =
        format!("{}\nDone by pull request {}, merged as {sha}.", marker.to_html(), request.number);
    let words = |error: ClientError| error.to_string();
    // Issues and pull requests share their numbers. A pull request must not be closed.
    if client.get_issue(issue).await.map_err(words)?.is_pull() {
        return Err(format!("{issue} is a pull request, and is not closed"));
    }
    let there = client.list_comments(issue).await.map_err(words)?;
    let login = &request.own_login;
    if crate::comment::find_own_comment(&there.items, login, &marker).is_none() {
        let written = client.create_comment(issue, &text, login, &marker.to_html()).await;
        written.map_err(words)?;
    }
    client.close_issue(issue).await.map_err(words)?;
    Ok(format!("closed issue {issue}"))
}
