//! Issues as tasks, and the reports on them.
//!
//! Anyone may open an issue, and an account with triage permission can label it. An issue is picked
//! only if the label was added by an account that may trigger work, and if the issue has not been
//! edited since. The bot's own labels record the outcome: while one of them is set, the issue is
//! not picked again. People can see and remove them, and they need no state on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::actor::{self, AccountPermission, KnownPermissions, PermissionLookup, may_trigger_work};
use crate::client::types::{GitHubIssue, GitHubUser, TimelineEvent};
use crate::client::{ClientError, GitHubClient, PagedList};
use crate::comment::{self, CommentMarker, NeutraliseRules, neutralise_text, truncate_markdown};
use crate::event::{AccountKind, GitHubAccount};

use super::{PRIORITY_DEFAULT, QueuedTask, SkippedTask, TaskSource, parse_priority, truncate_text};
use crate::limits::{COMMENT_CHARS_MAX, TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX, TASKS_MAX};

/// The rules about which issues are tasks.
#[derive(Clone, Debug)]
pub struct IssueRules {
    /// The label that makes an issue a task.
    pub task_label: String,
    /// The labels of completed, failed and waiting tasks.
    pub ended: OutcomeLabels,
    /// The label of issues that are being worked on, if the mode has one.
    pub working_label: Option<String>,
    /// The time for which that label keeps others away. A run that was killed does not remove it.
    pub lease: Duration,
    /// The rules about who may trigger work, and the bot's accounts.
    pub who: actor::ActorRules,
    /// The ids of tasks that a person wants retried, whatever their labels are.
    pub again: BTreeSet<String>,
}

/// The labels that record the outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeLabels {
    /// Done, and waiting for a review.
    pub done: String,
    pub failed: String,
    /// Waiting for a person to answer a question.
    pub waiting: String,
}

impl OutcomeLabels {
    /// Returns the label of an outcome; `None` for a run that was stopped.
    fn label_of(&self, outcome: IssueOutcome) -> Option<&str> {
        match outcome {
            IssueOutcome::Done => Some(&self.done),
            IssueOutcome::Failed => Some(&self.failed),
            IssueOutcome::Waiting => Some(&self.waiting),
            IssueOutcome::Stopped => None,
        }
    }

    /// Returns all labels, each with the advice for people.
    fn with_advice(&self) -> [(&str, &'static str); 3] {
        [
            (&self.failed, "take it off to have it tried again"),
            (&self.done, "its work waits for you; take the label off to have it done again"),
            (&self.waiting, "it has a question; answer it, and take the label off"),
        ]
    }
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueOutcome {
    Done,
    /// Failed; not picked again until a person removes the label.
    Failed,
    /// Waiting for a person to answer a question.
    Waiting,
    /// The run was stopped, or had a transient problem: the next run picks the task again.
    Stopped,
}

/// The report on an issue about the outcome of its task.
#[derive(Clone, Copy, Debug)]
pub struct IssueReport<'a> {
    pub outcome: IssueOutcome,
    /// A unique id of this run.
    pub run: &'a str,
    /// Text of the engine.
    pub ours: &'a str,
    /// Text of the agent; it is neutralised.
    pub theirs: &'a str,
    /// The maximum length of the comment.
    pub chars_max: usize,
}

/// Returns the issues that may be picked, and those that may not.
pub async fn find_issue_tasks(
    client: &GitHubClient,
    rules: &IssueRules,
) -> Result<(Vec<QueuedTask>, Vec<SkippedTask>), ClientError> {
    let found = client.list_labelled_issues(&rules.task_label).await?;
    let (mut tasks, mut passed) = (Vec::new(), Vec::new());
    let mut entitled = EntitledAccounts { client, rules, answers: BTreeMap::new() };
    for issue in found.items.into_iter().filter(|issue| !issue.is_pull()) {
        let id = issue_task_id(issue.number);
        let refusal = match issue_refusal(&issue, rules) {
            Some(why) => Some(why),
            None if tasks.len() >= TASKS_MAX => Some("comes after too many others".to_owned()),
            None => entitled.label_refusal(&issue).await?,
        };
        match refusal {
            Some(why) => passed.push(SkippedTask::new(id, why)),
            None => tasks.push(issue_task(id, issue)),
        }
    }
    Ok((tasks, passed))
}

/// Returns the reason an issue cannot be picked, from its own data.
fn issue_refusal(issue: &GitHubIssue, rules: &IssueRules) -> Option<String> {
    if issue.state != "open" {
        return Some("is closed".to_owned());
    }
    // Requested by label, but GitHub ignores a filter it does not know.
    if !issue.has_label(&rules.task_label) {
        return Some(format!("has no label `{}`", rules.task_label));
    }
    let ended = rules.ended.with_advice().into_iter().find(|(label, _)| issue.has_label(label));
    if let Some((label, advice)) =
        ended.filter(|_| !rules.again.contains(&issue_task_id(issue.number)))
    {
        return Some(format!("has the label `{label}`; {advice}"));
    }
    let ours = |user: &GitHubUser| user.is_bot() || user.has_login(&rules.who.bot_login);
    let person = issue.assignees.iter().find(|user| !ours(user));
    person.map(|user| format!("is assigned to {}", user.login))
}

/// Returns the id of an issue's task.
fn issue_task_id(number: u64) -> String {
    format!("issue-{number}")
}

/// Checks who may make an issue a task; each account is looked up once.
struct EntitledAccounts<'a> {
    client: &'a GitHubClient,
    rules: &'a IssueRules,
    answers: BTreeMap<String, bool>,
}

impl EntitledAccounts<'_> {
    async fn label_refusal(&mut self, issue: &GitHubIssue) -> Result<Option<String>, ClientError> {
        let label = &self.rules.task_label;
        let events = self.client.timeline(issue.number).await?;
        let Some(TimelineEvent { actor: Some(user), created_at, .. }) = events.labelled(label)
        else {
            return Ok(Some(format!("does not say who added the label `{label}`")));
        };
        if !self.may_trigger(user).await? {
            return Ok(Some(format!("got its label from {}, who may not write here", user.login)));
        }
        if let Some(why) = claim_refusal(issue, &events, self.rules, self.client.now_ms()) {
            return Ok(Some(why));
        }
        self.edit_refusal(issue, &events, created_at.as_deref().and_then(parse_time_ms)).await
    }

    /// Refuses an issue that its author edited after it was labelled: the account that labelled it
    /// has not read the new text.
    async fn edit_refusal(
        &mut self,
        issue: &GitHubIssue,
        events: &PagedList<TimelineEvent>,
        labelled_ms: Option<i64>,
    ) -> Result<Option<String>, ClientError> {
        if let Some(author) = &issue.user
            && self.may_trigger(author).await?
        {
            return Ok(None);
        }
        let edited = match self.client.get_last_edited(issue.number).await {
            Ok(edited) => edited,
            Err(error) => {
                return Ok(Some(format!("does not say whether it was edited since: {error}")));
            }
        };
        let renamed = events.items.iter().filter(|event| event.event == "renamed");
        let renamed = renamed.map(|event| event.created_at.as_deref());
        let mut changes = renamed.chain(edited.as_deref().map(Some));
        // An unreadable time counts as later, and so does one within the same second, since the
        // order is not known.
        let is_later = |at: Option<&str>| match (at.and_then(parse_time_ms), labelled_ms) {
            (Some(at), Some(labelled)) => at >= labelled,
            _ => true,
        };
        Ok(changes
            .any(is_later)
            .then(|| "was edited after it was labelled; label it again".to_owned()))
    }

    async fn may_trigger(&mut self, user: &GitHubUser) -> Result<bool, ClientError> {
        let login = user.login.to_lowercase();
        if let Some(known) = self.answers.get(&login) {
            return Ok(*known);
        }
        let answer = match self.client.get_permission(&user.login).await {
            Ok(found) => AccountPermission::parse(&found.permission).map(PermissionLookup::Is),
            // The account was deleted, or its name is not valid.
            Err(ClientError::NotFound { .. } | ClientError::BadName { .. }) => None,
            Err(error) => return Err(error),
        };
        let answer = answer.unwrap_or(PermissionLookup::Is(AccountPermission::None));
        let answers = KnownPermissions::default().with(&user.login, answer);
        let may = may_trigger_work(&account_of(user), &answers, &self.rules.who);
        self.answers.insert(login, may);
        Ok(may)
    }
}

fn account_of(user: &GitHubUser) -> GitHubAccount {
    let kind = if user.is_bot() { AccountKind::Bot } else { AccountKind::User };
    GitHubAccount { login: user.login.clone(), kind }
}

/// Parses a time of GitHub to milliseconds since 1970.
fn parse_time_ms(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}

/// Returns the reason an issue is claimed by another run, if it is.
fn claim_refusal(
    issue: &GitHubIssue,
    events: &PagedList<TimelineEvent>,
    rules: &IssueRules,
    now_ms: u64,
) -> Option<String> {
    let label = rules.working_label.as_ref().filter(|label| issue.has_label(label))?;
    let since = events.labelled(label).and_then(|event| event.created_at.as_deref());
    let Some((since, at_ms)) = since.and_then(|since| Some((since, parse_time_ms(since)?))) else {
        return Some(format!(
            "has the label `{label}`, and nobody says since when; take it off if no run works on it"
        ));
    };
    let age_ms = i128::from(now_ms) - i128::from(at_ms);
    let is_held = age_ms < rules.lease.as_millis() as i128;
    is_held.then(|| format!("is worked on by another run since {since} (label `{label}`)"))
}

/// Checks an issue again right before work starts, since another run may have claimed it in the
/// meantime, and removes stale labels before our own claim. Returns the reason if it cannot be
/// claimed.
pub async fn claim_issue(
    client: &GitHubClient,
    number: u64,
    rules: &IssueRules,
) -> Result<Option<String>, ClientError> {
    let issue = client.get_issue(number).await?;
    if let Some(why) = issue_refusal(&issue, rules) {
        return Ok(Some(why));
    }
    if let Some(label) = rules.working_label.as_ref().filter(|label| issue.has_label(label)) {
        let events = client.timeline(number).await?;
        if let Some(why) = claim_refusal(&issue, &events, rules, client.now_ms()) {
            return Ok(Some(why));
        }
        // Adding a label that is already set does not update its time, so others would take our
        // claim for the old one.
        client.remove_label(number, label).await?;
    }
    // Remove the labels of earlier outcomes.
    for (label, _) in
        rules.ended.with_advice().into_iter().filter(|(label, _)| issue.has_label(label))
    {
        client.remove_label(number, label).await?;
    }
    Ok(None)
}

fn issue_task(id: String, issue: GitHubIssue) -> QueuedTask {
    let numbers = issue.labels.iter().filter_map(|label| {
        let (name, digits) = label.split_at_checked("priority-".len())?;
        parse_priority(digits).filter(|_| name.eq_ignore_ascii_case("priority-"))
    });
    QueuedTask {
        id,
        source: TaskSource::Issue,
        // Of several priority labels, the most urgent one counts.
        priority: numbers.min().unwrap_or(PRIORITY_DEFAULT),
        title: truncate_text(issue.title.trim(), TASK_TITLE_CHARS_MAX),
        body: truncate_text(issue.body.unwrap_or_default().trim(), TASK_BODY_CHARS_MAX),
        labels: issue.labels,
        created: Some(issue.created_at),
        position: issue.number,
    }
}

/// Reports the outcome of a task on its issue: one comment per run, however often this is called.
/// The label is set first, so that the issue is not picked again even if the comment cannot be
/// written.
pub async fn report_outcome(
    client: &GitHubClient,
    number: u64,
    rules: &IssueRules,
    report: &IssueReport<'_>,
    harmless_rules: &NeutraliseRules<'_>,
) -> Result<(), ClientError> {
    if let Some(label) = rules.ended.label_of(report.outcome) {
        client.add_label(number, label).await?;
    }
    let marker = CommentMarker::new(&format!("task:{}", report.run));
    let theirs = neutralise_text(report.theirs.trim(), harmless_rules);
    let said = [report.ours.trim(), &theirs].join("\n\n");
    let answer = truncate_markdown(said.trim(), report.chars_max);
    let body = comment::new_body(&marker, &answer, COMMENT_CHARS_MAX);
    let there = client.list_comments(number).await?;
    match comment::find_own_comment(&there.items, &rules.who.bot_login, &marker) {
        Some(ours) if ours.body.as_deref() == Some(body.as_str()) => Ok(()),
        Some(ours) => client.update_comment(ours.id, &body).await.map(drop),
        None => {
            let login = &rules.who.bot_login;
            client.create_comment(number, &body, login, &marker.to_html()).await.map(drop)
        }
    }
}
