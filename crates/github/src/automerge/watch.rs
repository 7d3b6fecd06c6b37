//! Watches the first checks after a merge.
//!
//! Nothing is reverted. If a check fails, one issue reports it, and nothing else is merged while it
//! is open: closing it is the decision of a person. Only an issue opened by the bot's own account
//! counts.

use std::time::Duration;

use crate::client::types::GitHubIssue;
use crate::client::{ClientError, GitHubClient};
use crate::comment::{CommentMarker, NeutraliseRules, neutralise_text};

use super::decide::is_red;
use super::gather::fetch_checks;
use super::{AutoMerge, AutoMergeRequest, HeadCheck, MergeClock, short_sha};
use crate::limits::{MERGE_POLL, MERGE_WATCH_APPEAR};

/// The label of the issue that halts merging.
pub const HALT_LABEL: &str = "agent:merge-halted";

/// Returns the open issue that halts merging, if there is one.
pub(super) async fn find_halt_issue(
    client: &GitHubClient,
    own_login: &str,
) -> Result<Option<u64>, ClientError> {
    let found = client.list_labelled_issues(HALT_LABEL).await?;
    let ours =
        |issue: &&GitHubIssue| issue.user.as_ref().is_some_and(|user| user.has_login(own_login));
    Ok(found.items.iter().find(ours).map(|issue| issue.number))
}

/// Waits for the checks of the merge commit, and halts merging if one fails.
pub(super) async fn watch_checks(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    settings: &AutoMerge,
    merged_as: &str,
    pace: &dyn MergeClock,
) -> Result<String, String> {
    let began = pace.now_ms();
    let commit = short_sha(merged_as);
    loop {
        let found = fetch_checks(client, merged_as).await?;
        let red: Vec<&HeadCheck> = found.iter().filter(|check| is_red(check, settings)).collect();
        if !red.is_empty() {
            let issue = open_halt_issue(client, request, merged_as, &red)
                .await
                .map_err(|error| error.to_string())?;
            let names: Vec<String> = red.iter().map(|check| format!("`{}`", check.name)).collect();
            return Err(format!(
                "{} red on {commit}; merging is halted by issue {issue}",
                names.join(", ")
            ));
        }
        let pending = found.iter().filter(|check| check.conclusion.is_none()).count();
        if !found.is_empty() && pending == 0 {
            return Ok(format!("{} checks are green on {commit}", found.len()));
        }
        let waited = Duration::from_millis(pace.now_ms().saturating_sub(began));
        if found.is_empty() && waited >= MERGE_WATCH_APPEAR {
            return Ok(format!("no check began on {commit}"));
        }
        if waited >= Duration::from_secs(settings.watch_seconds) {
            return Ok(format!("{pending} checks are still pending on {commit}"));
        }
        pace.sleep(MERGE_POLL).await;
    }
}

/// Opens the issue that halts merging, or updates the open one.
async fn open_halt_issue(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    merged_as: &str,
    red: &[&HeadCheck],
) -> Result<u64, ClientError> {
    let marker = CommentMarker::new("merge-halted").to_html();
    let names = red.iter().map(|check| {
        let conclusion = check.conclusion.as_deref().unwrap_or("none");
        format!("- {}: {conclusion}", neutralise_text(&check.name, &NeutraliseRules::default()))
    });
    let body = format!(
        "{marker}\nPull request {} was merged automatically as {merged_as}, and these checks failed there:\n\n{}\n\n\
         Nothing was reverted. Nothing else is merged automatically while this issue is open; close it when that may go on.",
        request.number,
        names.collect::<Vec<_>>().join("\n"),
    );
    let title = "Automatic merging is halted: checks failed after a merge";
    match find_halt_issue(client, &request.own_login).await? {
        Some(number) => client.update_issue(number, title, &body).await.map(|issue| issue.number),
        None => {
            let created =
                client.create_issue(title, &body, HALT_LABEL, &request.own_login, &marker).await;
            created.map(|issue| issue.number)
        }
    }
}
