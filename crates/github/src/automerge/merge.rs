//! Performs a merge: waits, calls the API, confirms the result, and cleans up.

use std::time::Duration;

use crate::client::{Client, ClientError, MergeMethod};
use futures_util::future::BoxFuture;
use repertoire_text::clock::{Clock, SystemClock};

use super::decide::is_worth_waiting;
use super::{
    AutoMerge, Condition, Decision, Outcome, Refusal, Report, Request, Step, decide, gather, short,
};
use crate::limits::{MERGE_POLL, MERGE_RESTARTS_MAX};

/// A clock that can wait, passed in so that tests need not wait.
pub trait Pace: Send + Sync {
    /// Returns milliseconds since 1970.
    fn now_ms(&self) -> u64;

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl Pace for WallClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Merges a pull request if every condition holds; otherwise reports the first one that does not.
pub async fn run(
    client: &Client,
    request: &Request,
    settings: &AutoMerge,
    pace: &dyn Pace,
) -> Report {
    let mut report = Report {
        pull_request: request.number,
        head: None,
        decision: Outcome::Refused,
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
        let facts = super::Facts::unasked(request);
        let (decision, conditions) = decide(&facts, settings);
        report.note(decision, conditions);
        return report;
    }
    report.remarks = settings.remarks();
    let Some(head) = agreed(client, request, settings, pace, &mut report).await else {
        return report;
    };
    approve(client, request, settings, &head, &mut report).await;
    merge(client, request, settings, &head, &mut report).await;
    if report.decision == Outcome::Merged {
        afterwards(client, request, settings, &mut report).await;
        watch(client, request, settings, pace, &mut report).await;
    }
    report
}

impl Report {
    fn note(&mut self, decision: Decision, conditions: Vec<Condition>) -> Option<String> {
        self.conditions = conditions;
        match decision {
            Decision::Merge { head } => Some(head),
            Decision::Refuse(Refusal { condition, reason, next, prospect }) => {
                self.decision = prospect.outcome();
                (self.condition, self.reason, self.next) =
                    (Some(condition), Some(reason), Some(next));
                None
            }
        }
    }

    fn step(&mut self, step: &str, done: Result<String, String>) {
        let ok = done.is_ok();
        let detail = done.unwrap_or_else(|why| why);
        self.steps.push(Step { step: step.to_owned(), ok, detail });
    }
}

/// Returns the commit for which all conditions held twice in a row. Waits for pending facts.
async fn agreed(
    client: &Client,
    request: &Request,
    settings: &AutoMerge,
    pace: &dyn Pace,
    report: &mut Report,
) -> Option<String> {
    let deadline = pace.now_ms().saturating_add(settings.wait_seconds.saturating_mul(1000));
    let mut pinned: Option<String> = None;
    let mut restarts = 0;
    loop {
        let facts = gather(client, request, pinned.as_deref()).await;
        if let super::Fact::Known(pull) = &facts.pull {
            report.head = Some(pull.head_sha.clone());
        }
        let (decision, conditions) = decide(&facts, settings);
        match decision {
            // The first time decides; the second one, right before the call, confirms.
            Decision::Merge { head } if pinned.as_ref() == Some(&head) => {
                (report.condition, report.reason, report.next) = (None, None, None);
                report.decision = Outcome::Refused;
                report.conditions = conditions;
                return Some(head);
            }
            Decision::Merge { head } => pinned = Some(head),
            Decision::Refuse(refusal)
                if refusal.condition == 4 && restarts < MERGE_RESTARTS_MAX =>
            {
                // The head moved: check everything again for the new one.
                restarts += 1;
                pinned = None;
            }
            Decision::Refuse(refusal) => {
                let is_waited_for =
                    refusal.prospect.is_waited_for() && is_worth_waiting(&facts, settings);
                report.note(Decision::Refuse(refusal), conditions);
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

async fn approve(
    client: &Client,
    request: &Request,
    settings: &AutoMerge,
    head: &str,
    report: &mut Report,
) {
    if !settings.approve {
        return;
    }
    let said = "The declared checks passed on this commit. This approval is not counted.";
    let done = client.approve(request.number, head, &request.own_login, said).await;
    let done = done.map(|_| format!("approved {}", short(head)));
    report.step("approve", done.map_err(|error| error.to_string()));
}

async fn merge(
    client: &Client,
    request: &Request,
    settings: &AutoMerge,
    head: &str,
    report: &mut Report,
) {
    let method = match settings.method {
        Some(method) => Some(method),
        None => allowed(client).await,
    };
    report.method = method;
    if let Err(error) = client.merge_pull(request.number, head, method).await {
        // The merge may have been done despite the error: only reading it back is reliable.
        return match merged_as(client, request.number, head).await {
            Ok(Some(sha)) => confirm(report, sha),
            Ok(None) => note_refusal(report, error.to_string()),
            Err(_) if is_answer(&error) => note_refusal(report, error.to_string()),
            Err(_) => {
                report.decision = Outcome::Unconfirmed;
                note_refusal(report, error.to_string());
            }
        };
    }
    match merged_as(client, request.number, head).await {
        Ok(Some(sha)) => confirm(report, sha),
        Ok(None) => {
            report.decision = Outcome::Unconfirmed;
            note_refusal(report, "the service took the merge, and does not show it".to_owned());
        }
        Err(error) => {
            report.decision = Outcome::Unconfirmed;
            note_refusal(report, format!("the merge could not be read back: {error}"));
        }
    }
}

fn note_refusal(report: &mut Report, reason: String) {
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

fn confirm(report: &mut Report, sha: String) {
    report.decision = Outcome::Merged;
    report.merged_as = Some(sha);
}

/// Returns the merge commit of a pull request, if it was merged with this head.
async fn merged_as(
    client: &Client,
    number: u64,
    head: &str,
) -> Result<Option<String>, ClientError> {
    let pull = client.pull(number).await?;
    let merged = pull.merged && pull.head.sha == head;
    Ok(pull.merge_commit_sha.filter(|_| merged))
}

/// Returns the first merge method that the repository allows, if the token may read that.
async fn allowed(client: &Client) -> Option<MergeMethod> {
    let info = client.repository_info().await.ok()?;
    let all = [
        (info.allow_merge_commit, MergeMethod::Merge),
        (info.allow_squash_merge, MergeMethod::Squash),
        (info.allow_rebase_merge, MergeMethod::Rebase),
    ];
    all.into_iter().find(|(allowed, _)| *allowed == Some(true)).map(|(_, method)| method)
}

async fn afterwards(client: &Client, request: &Request, settings: &AutoMerge, report: &mut Report) {
    if settings.delete_branch {
        let done = delete_branch(client, request).await;
        report.step("delete branch", done);
    }
    if let Some(issue) = request.issue.filter(|_| settings.close_issue) {
        let sha = report.merged_as.clone().unwrap_or_default();
        let done = close_issue(client, request, issue, &sha).await;
        report.step("close issue", done);
    }
}

async fn watch(
    client: &Client,
    request: &Request,
    settings: &AutoMerge,
    pace: &dyn Pace,
    report: &mut Report,
) {
    let Some(sha) = report.merged_as.clone().filter(|_| settings.watch_seconds > 0) else { return };
    let done = super::watch::watch(client, request, settings, &sha, pace).await;
    report.step("watch", done);
}

/// Deletes the head branch, if it is the bot's, not protected, and no other pull request needs it.
async fn delete_branch(client: &Client, request: &Request) -> Result<String, String> {
    let words = |error: ClientError| error.to_string();
    let pull = client.pull(request.number).await.map_err(words)?;
    let branch = pull.head.name;
    if request.branch_prefix.is_empty() || !branch.starts_with(&request.branch_prefix) {
        return Err(format!("`{branch}` is not one of our branches"));
    }
    match client.branch(&branch).await {
        Ok(found) if found.protected => return Err(format!("`{branch}` is protected")),
        Ok(found) if found.commit.sha != pull.head.sha => {
            return Err(format!("`{branch}` has moved since the merge"));
        }
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(format!("`{branch}` is gone already")),
        Err(error) => return Err(error.to_string()),
    }
    let others = client.pulls_of(&branch).await.map_err(words)?;
    if !others.whole || others.items.iter().any(|other| other.number != request.number) {
        return Err(format!("`{branch}` has another open pull request"));
    }
    client.delete_branch(&branch).await.map_err(words)?;
    Ok(format!("deleted `{branch}`"))
}

async fn close_issue(
    client: &Client,
    request: &Request,
    issue: u64,
    sha: &str,
) -> Result<String, String> {
    let marker = crate::comment::Marker::new(&format!("merged:{}", request.number));
    let text =
        format!("{}\nDone by pull request {}, merged as {sha}.", marker.text(), request.number);
    let words = |error: ClientError| error.to_string();
    // Issues and pull requests share their numbers. A pull request must not be closed.
    if client.issue(issue).await.map_err(words)?.is_pull() {
        return Err(format!("{issue} is a pull request, and is not closed"));
    }
    let there = client.comments(issue).await.map_err(words)?;
    let login = &request.own_login;
    if crate::comment::find(&there.items, login, &marker).is_none() {
        let written = client.create_comment(issue, &text, login, &marker.text()).await;
        written.map_err(words)?;
    }
    client.close_issue(issue).await.map_err(words)?;
    Ok(format!("closed issue {issue}"))
}
