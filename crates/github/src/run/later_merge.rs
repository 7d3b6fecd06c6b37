//! Later events: checks whether open pull requests of the bot can be merged now. No agent is
//! involved.
//!
//! An approval, completed checks or a removed label may have fulfilled a missing condition. The
//! event only says where to look; all facts are fetched again.

use crate::actor::{RunAdmission, decide_admission};
use crate::client::ClientError;
use crate::client::types::PullRequest;
use crate::event::{EventName, GitHubEventContext};
use crate::trigger::{find_mention, find_prompt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::merge::with_remaining_wait;
use super::{GitHubOutcome, GitHubRunContext, RunConclusion, lookups};
use crate::automerge::{self, MergeClock, MergeFact, MergeReport, PullOrigin, WallClock};
use crate::limits::MERGE_PULLS_MAX;
use crate::mode::ModeSet;

/// The pull requests that an event may have made ready to merge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MergeSubject {
    Pull(u64),
    /// The pull requests of these branches.
    Branches(Vec<String>),
    /// All open ones. Other work that the event triggers is done as well.
    All,
}

/// A pull request of the bot.
struct OwnPull {
    pull: PullRequest,
    origin: PullOrigin,
}

impl GitHubRunContext<'_> {
    /// Handles an event: merges pull requests it has made ready, or does the work it triggers, as
    /// far as its actor may.
    pub async fn handle_event(
        &self,
        context: &GitHubEventContext,
        modes: &ModeSet,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let Some((subject, ours)) = self.find_ready(context).await else {
            return Box::pin(self.handle_trigger(context, modes, shutdown)).await;
        };
        let merging = match ours {
            Err(error) => GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
            Ok(ours) => merge_outcome(&self.merge_all(context, &ours).await),
        };
        match subject {
            MergeSubject::All => combine_outcomes(
                Box::pin(self.handle_trigger(context, modes, shutdown)).await,
                merging,
            ),
            MergeSubject::Pull(_) | MergeSubject::Branches(_) => merging,
        }
    }

    /// Describes what [`GitHubRunContext::handle_event`] would do. Only permissions are looked up; nothing is
    /// changed.
    pub async fn describe_event(
        &self,
        context: &GitHubEventContext,
        modes: &ModeSet,
    ) -> GitHubOutcome {
        let Some((subject, ours)) = self.find_ready(context).await else {
            return self.describe_trigger(context, modes).await;
        };
        let merging = match ours {
            Err(error) => GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
            Ok(ours) => {
                let all: Vec<String> = ours.iter().map(|one| one.pull.number.to_string()).collect();
                let all = all.join(", ");
                let reason =
                    format!("a dry run: whether pull request {all} can be merged would be decided");
                GitHubOutcome::new(RunConclusion::Skipped, reason)
            }
        };
        match subject {
            MergeSubject::All => {
                combine_outcomes(self.describe_trigger(context, modes).await, merging)
            }
            MergeSubject::Pull(_) | MergeSubject::Branches(_) => merging,
        }
    }

    /// Returns the bot's pull requests that an event may have made ready; `None` if there are none,
    /// or auto-merge is off.
    async fn find_ready(
        &self,
        context: &GitHubEventContext,
    ) -> Option<(MergeSubject, Result<Vec<OwnPull>, ClientError>)> {
        let subject = self.merge_subject(context)?;
        let found = self.find_pulls(&subject).await;
        match found {
            Ok(ours) if ours.is_empty() => None,
            found => Some((subject, found)),
        }
    }

    fn merge_subject(&self, context: &GitHubEventContext) -> Option<MergeSubject> {
        let settings = self.settings;
        // A call of the agent takes precedence over a merge.
        let is_call = settings.mode.is_some()
            || find_prompt(context, &settings.triggers).is_some()
            || find_mention(context, &settings.triggers).is_some();
        if !settings.auto_merge.enabled || is_call {
            return None;
        }
        let payload: Value = serde_json::from_str(self.event).unwrap_or_default();
        match event_subject(context, &payload)? {
            MergeSubject::Branches(mut names) => {
                let prefix = &settings.branch_prefix;
                names.retain(|name| !prefix.is_empty() && name.starts_with(prefix));
                (!names.is_empty()).then_some(MergeSubject::Branches(names))
            }
            subject => Some(subject),
        }
    }

    async fn find_pulls(&self, subject: &MergeSubject) -> Result<Vec<OwnPull>, ClientError> {
        let pulls = match subject {
            MergeSubject::Pull(number) => vec![self.client.get_pull(*number).await?],
            MergeSubject::All => self.client.list_open_pulls().await?.items,
            MergeSubject::Branches(names) => {
                let mut pulls = Vec::new();
                for name in names {
                    pulls.extend(self.client.list_pulls_of(name).await?.items);
                }
                pulls
            }
        };
        let ours = pulls.into_iter().filter_map(|pull| self.as_own_pull(pull));
        Ok(ours.take(MERGE_PULLS_MAX).collect())
    }

    /// Returns the pull request if it claims to be the bot's. The conditions of auto-merge verify
    /// that.
    fn as_own_pull(&self, pull: PullRequest) -> Option<OwnPull> {
        let is_author =
            pull.user.as_ref().is_some_and(|it| it.has_login(&self.settings.rules.bot_login));
        let is_branch = pull.head.name.starts_with(&self.settings.branch_prefix);
        let is_ours = is_author && is_branch && pull.state == "open";
        let origin = pull.body.as_deref().filter(|_| is_ours).and_then(PullOrigin::read_body)?;
        Some(OwnPull { pull, origin })
    }

    /// Tries to merge each pull request. They share the waiting time.
    async fn merge_all(&self, context: &GitHubEventContext, all: &[OwnPull]) -> Vec<MergeReport> {
        let asked = self.may_request_merge(context).await;
        let began = WallClock.now_ms();
        let mut reports = Vec::new();
        for OwnPull { pull, origin } in all {
            let past = self.origin_run_facts(origin, &pull.head.name, &pull.head.sha).await;
            let request = self.merge_request(pull.number, origin, asked.clone(), past);
            let waited = WallClock.now_ms().saturating_sub(began) / 1000;
            let settings = with_remaining_wait(&self.settings.auto_merge, waited);
            reports.push(
                automerge::merge_if_allowed(self.client, &request, &settings, &WallClock).await,
            );
        }
        reports
    }

    /// Returns true if the actor of the event may request a merge. Check events have no actor, like
    /// a schedule: they count as requested by the configuration of the base branch.
    async fn may_request_merge(&self, context: &GitHubEventContext) -> MergeFact<bool> {
        let event = match &context.event {
            EventName::Other(_) => EventName::Schedule,
            event => event.clone(),
        };
        let context = GitHubEventContext { event, ..context.clone() };
        let rules = &self.settings.rules;
        let answers = lookups::look_up_permissions(self.client, &context, rules).await;
        MergeFact::Known(
            decide_admission(&context, &answers, rules).admission == RunAdmission::Write,
        )
    }
}

/// Returns the pull requests to look at, if the event may have changed the answer.
fn event_subject(context: &GitHubEventContext, payload: &Value) -> Option<MergeSubject> {
    let pull = || context.entity.as_ref().map(|entity| MergeSubject::Pull(entity.number));
    let text = |path: &str| payload.pointer(path).and_then(Value::as_str);
    let branch = |path: &str| text(path).map(|name| MergeSubject::Branches(vec![name.to_owned()]));
    match (&context.event, context.action.as_deref()) {
        // Other reviews than an approval cannot make it ready.
        (EventName::PullRequestReview, Some("submitted")) => {
            text("/review/state").filter(|state| state.eq_ignore_ascii_case("approved"))?;
            pull()
        }
        (
            EventName::PullRequest | EventName::PullRequestTarget,
            Some("ready_for_review" | "reopened" | "unlabeled"),
        ) => pull(),
        (EventName::WorkflowDispatch | EventName::RepositoryDispatch | EventName::Schedule, _) => {
            Some(MergeSubject::All)
        }
        (EventName::Other(name), action) => match (name.as_str(), action) {
            ("check_suite", Some("completed")) => branch("/check_suite/head_branch"),
            ("check_run", Some("completed")) => branch("/check_run/check_suite/head_branch"),
            ("workflow_run", Some("completed")) => branch("/workflow_run/head_branch"),
            ("status", _) => {
                let all = payload.get("branches").and_then(Value::as_array)?.iter();
                let name = |branch: &Value| Some(branch.get("name")?.as_str()?.to_owned());
                Some(MergeSubject::Branches(all.filter_map(name).collect()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Converts the reports of merges to the outcome of a run.
fn merge_outcome(reports: &[MergeReport]) -> GitHubOutcome {
    use automerge::MergeOutcome as Merge;
    let is_any = |decision| reports.iter().any(|report| report.decision == decision);
    let conclusion = match (is_any(Merge::Unconfirmed), is_any(Merge::Merged)) {
        (true, _) => RunConclusion::Waiting,
        (false, true) => RunConclusion::Done,
        // A merge that is not possible yet is not a failure.
        (false, false) => RunConclusion::Skipped,
    };
    let line = |report: &MergeReport| {
        format!("pull request {}: {}", report.pull_request, report.to_line())
    };
    let lines: Vec<String> = reports.iter().map(line).collect();
    let mut notes: Vec<String> = reports.iter().flat_map(|report| report.remarks.clone()).collect();
    notes.sort();
    notes.dedup();
    let steps = reports.iter().flat_map(|report| &report.steps);
    notes.extend(steps.map(|step| {
        let went = if step.ok { "" } else { " did not work" };
        format!("{}{went}: {}", step.step, step.detail)
    }));
    let one = (reports.len() == 1).then(|| &reports[0]);
    GitHubOutcome {
        pull_request: one.map(|report| report.pull_request),
        merge: one.map(MergeReport::to_line),
        notes,
        ..GitHubOutcome::new(conclusion, lines.join(" "))
    }
}

/// Combines the outcome of the triggered work with that of the merges.
fn combine_outcomes(mut called: GitHubOutcome, mut merging: GitHubOutcome) -> GitHubOutcome {
    if called.conclusion == RunConclusion::Skipped {
        merging.notes.extend(called.notes);
        return merging;
    }
    called.notes.push(merging.reason);
    called.notes.extend(merging.notes);
    called
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ActionsEnvironment, read_event};
    use serde_json::json;

    #[track_caller]
    fn check(event: &str, payload: Value, expect: Option<MergeSubject>) {
        let mut whole = json!({
            "repository": { "full_name": "octo/repo" }, "sender": { "login": "ada", "type": "User" },
            "pull_request": { "number": 40 },
        });
        whole.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        let around = ActionsEnvironment::from_pairs([("GITHUB_EVENT_NAME", event)]);
        let context = read_event(&whole.to_string(), &around).unwrap();
        assert_eq!(event_subject(&context, &whole), expect, "{event} {whole}");
    }

    #[test]
    fn an_approval_is_a_reason_to_look_again_and_other_reviews_are_not() {
        let review = |state: &str| json!({ "action": "submitted", "review": { "state": state } });
        check("pull_request_review", review("approved"), Some(MergeSubject::Pull(40)));
        for state in ["commented", "changes_requested", ""] {
            check("pull_request_review", review(state), None);
        }
        let dismissed = json!({ "action": "dismissed", "review": { "state": "approved" } });
        check("pull_request_review", dismissed, None);
    }

    #[test]
    fn checks_that_ended_are_found_by_their_branch() {
        let branch = || Some(MergeSubject::Branches(vec!["rep/31".to_owned()]));
        let suite = json!({ "head_branch": "rep/31" });
        let with = |action: &str, name: &str, value: &Value| {
            let mut payload = json!({ "action": action });
            payload[name] = value.clone();
            payload
        };
        check("check_suite", with("completed", "check_suite", &suite), branch());
        check("check_suite", with("requested", "check_suite", &suite), None);
        check("check_suite", with("completed", "check_suite", &json!({})), None);
        let run = json!({ "check_suite": suite });
        check("check_run", with("completed", "check_run", &run), branch());
        check("check_run", with("created", "check_run", &run), None);
        check("workflow_run", with("completed", "workflow_run", &suite), branch());
        check("status", json!({ "branches": [{ "name": "rep/31" }, {}] }), branch());
        check("push", json!({ "ref": "refs/heads/rep/31" }), None);
    }

    #[test]
    fn a_draft_that_is_ready_is_looked_at_and_one_that_was_opened_is_not() {
        for (action, expect) in [
            ("ready_for_review", Some(MergeSubject::Pull(40))),
            ("unlabeled", Some(MergeSubject::Pull(40))),
            ("reopened", Some(MergeSubject::Pull(40))),
            ("opened", None),
            ("synchronize", None),
        ] {
            check("pull_request", json!({ "action": action }), expect);
        }
        check("workflow_dispatch", json!({}), Some(MergeSubject::All));
        check("schedule", json!({}), Some(MergeSubject::All));
    }

    fn outcome(conclusion: RunConclusion, reason: &str) -> GitHubOutcome {
        GitHubOutcome {
            notes: vec![format!("{reason} note")],
            ..GitHubOutcome::new(conclusion, reason)
        }
    }

    #[test]
    fn what_was_merged_is_said_beside_what_was_done() {
        let merged = || outcome(RunConclusion::Done, "merged");
        let both = combine_outcomes(outcome(RunConclusion::Failed, "tasks"), merged());
        assert_eq!((both.conclusion, both.reason.as_str()), (RunConclusion::Failed, "tasks"));
        assert_eq!(both.notes, ["tasks note", "merged", "merged note"]);
        let alone = combine_outcomes(outcome(RunConclusion::Skipped, "no mode"), merged());
        assert_eq!((alone.conclusion, alone.reason.as_str()), (RunConclusion::Done, "merged"));
        assert_eq!(alone.notes, ["merged note", "no mode note"]);
    }
}
