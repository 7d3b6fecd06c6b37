//! Issues as tasks, and the reports on them.
//!
//! Anyone may open an issue, and an account with triage permission can label it. An issue is picked
//! only if the label was added by an account that may trigger work, and if the issue has not been
//! edited since. The bot's own labels record the outcome: while one of them is set, the issue is
//! not picked again. People can see and remove them, and they need no state on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::actor::{self, Answer, Answers, Permission, may_have_work_done};
use crate::client::types::{Issue, TimelineEvent, User};
use crate::client::{Client, ClientError, Listed};
use crate::comment::{self, Harmless, Marker, cut, harmless};
use crate::event::{Account, AccountKind};

use super::{PRIORITY_DEFAULT, PassedOver, Source, Task, bounded, priority_of};
use crate::limits::{COMMENT_CHARS_MAX, TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX, TASKS_MAX};

/// The rules about which issues are tasks.
#[derive(Clone, Debug)]
pub struct IssueRules {
    /// The label that makes an issue a task.
    pub task_label: String,
    /// The labels of completed, failed and waiting tasks.
    pub ended: EndLabels,
    /// The label of issues that are being worked on, if the mode has one.
    pub working_label: Option<String>,
    /// The time for which that label keeps others away. A run that was killed does not remove it.
    pub lease: Duration,
    /// The rules about who may trigger work, and the bot's accounts.
    pub who: actor::Rules,
    /// The ids of tasks that a person wants retried, whatever their labels are.
    pub again: BTreeSet<String>,
}

/// The labels that record the outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndLabels {
    /// Done, and waiting for a review.
    pub done: String,
    pub failed: String,
    /// Waiting for a person to answer a question.
    pub waiting: String,
}

impl EndLabels {
    /// Returns the label of an outcome; `None` for a run that was stopped.
    fn of(&self, outcome: Outcome) -> Option<&str> {
        match outcome {
            Outcome::Done => Some(&self.done),
            Outcome::Failed => Some(&self.failed),
            Outcome::Waiting => Some(&self.waiting),
            Outcome::Stopped => None,
        }
    }

    /// Returns all labels, each with the advice for people.
    fn all(&self) -> [(&str, &'static str); 3] {
        [
            (&self.failed, "take it off to have it tried again"),
            (&self.done, "its work waits for you; take the label off to have it done again"),
            (&self.waiting, "it has a question; answer it, and take the label off"),
        ]
    }
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
pub struct Report<'a> {
    pub outcome: Outcome,
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
pub async fn tasks(
    client: &Client,
    rules: &IssueRules,
) -> Result<(Vec<Task>, Vec<PassedOver>), ClientError> {
    let found = client.issues_labelled(&rules.task_label).await?;
    let (mut tasks, mut passed) = (Vec::new(), Vec::new());
    let mut entitled = Entitled { client, rules, answers: BTreeMap::new() };
    for issue in found.items.into_iter().filter(|issue| !issue.is_pull()) {
        let id = name(issue.number);
        let refusal = match refusal(&issue, rules) {
            Some(why) => Some(why),
            None if tasks.len() >= TASKS_MAX => Some("comes after too many others".to_owned()),
            None => entitled.refusal(&issue).await?,
        };
        match refusal {
            Some(why) => passed.push(PassedOver::new(id, why)),
            None => tasks.push(task(id, issue)),
        }
    }
    Ok((tasks, passed))
}

/// Returns the reason an issue cannot be picked, from its own data.
fn refusal(issue: &Issue, rules: &IssueRules) -> Option<String> {
    if issue.state != "open" {
        return Some("is closed".to_owned());
    }
    // Requested by label, but GitHub ignores a filter it does not know.
    if !issue.has_label(&rules.task_label) {
        return Some(format!("has no label `{}`", rules.task_label));
    }
    let ended = rules.ended.all().into_iter().find(|(label, _)| issue.has_label(label));
    if let Some((label, advice)) = ended.filter(|_| !rules.again.contains(&name(issue.number))) {
        return Some(format!("has the label `{label}`; {advice}"));
    }
    let ours = |user: &User| user.is_bot() || user.is(&rules.who.bot_login);
    let person = issue.assignees.iter().find(|user| !ours(user));
    person.map(|user| format!("is assigned to {}", user.login))
}

/// Returns the id of an issue's task.
fn name(number: u64) -> String {
    format!("issue-{number}")
}

/// Checks who may make an issue a task; each account is looked up once.
struct Entitled<'a> {
    client: &'a Client,
    rules: &'a IssueRules,
    answers: BTreeMap<String, bool>,
}

impl Entitled<'_> {
    async fn refusal(&mut self, issue: &Issue) -> Result<Option<String>, ClientError> {
        let label = &self.rules.task_label;
        let events = self.client.timeline(issue.number).await?;
        let Some(TimelineEvent { actor: Some(user), created_at, .. }) = events.labelled(label)
        else {
            return Ok(Some(format!("does not say who added the label `{label}`")));
        };
        if !self.may(user).await? {
            return Ok(Some(format!("got its label from {}, who may not write here", user.login)));
        }
        if let Some(why) = claimed(issue, &events, self.rules, self.client.now_ms()) {
            return Ok(Some(why));
        }
        self.changed(issue, &events, created_at.as_deref().and_then(moment)).await
    }

    /// Refuses an issue that its author edited after it was labelled: the account that labelled it
    /// has not read the new text.
    async fn changed(
        &mut self,
        issue: &Issue,
        events: &Listed<TimelineEvent>,
        labelled_ms: Option<i64>,
    ) -> Result<Option<String>, ClientError> {
        if let Some(author) = &issue.user
            && self.may(author).await?
        {
            return Ok(None);
        }
        let edited = match self.client.last_edited(issue.number).await {
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
        let is_later = |at: Option<&str>| match (at.and_then(moment), labelled_ms) {
            (Some(at), Some(labelled)) => at >= labelled,
            _ => true,
        };
        Ok(changes
            .any(is_later)
            .then(|| "was edited after it was labelled; label it again".to_owned()))
    }

    async fn may(&mut self, user: &User) -> Result<bool, ClientError> {
        let login = user.login.to_lowercase();
        if let Some(known) = self.answers.get(&login) {
            return Ok(*known);
        }
        let answer = match self.client.permission(&user.login).await {
            Ok(found) => Permission::parse(&found.permission).map(Answer::Is),
            // The account was deleted, or its name is not valid.
            Err(ClientError::NotFound { .. } | ClientError::BadName { .. }) => None,
            Err(error) => return Err(error),
        };
        let answer = answer.unwrap_or(Answer::Is(Permission::None));
        let answers = Answers::default().with(&user.login, answer);
        let may = may_have_work_done(&account(user), &answers, &self.rules.who);
        self.answers.insert(login, may);
        Ok(may)
    }
}

fn account(user: &User) -> Account {
    let kind = if user.is_bot() { AccountKind::Bot } else { AccountKind::User };
    Account { login: user.login.clone(), kind }
}

/// Parses a time of GitHub to milliseconds since 1970.
fn moment(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}

/// Returns the reason an issue is claimed by another run, if it is.
fn claimed(
    issue: &Issue,
    events: &Listed<TimelineEvent>,
    rules: &IssueRules,
    now_ms: u64,
) -> Option<String> {
    let label = rules.working_label.as_ref().filter(|label| issue.has_label(label))?;
    let since = events.labelled(label).and_then(|event| event.created_at.as_deref());
    let Some((since, at_ms)) = since.and_then(|since| Some((since, moment(since)?))) else {
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
pub async fn claim(
    client: &Client,
    number: u64,
    rules: &IssueRules,
) -> Result<Option<String>, ClientError> {
    let issue = client.issue(number).await?;
    if let Some(why) = refusal(&issue, rules) {
        return Ok(Some(why));
    }
    if let Some(label) = rules.working_label.as_ref().filter(|label| issue.has_label(label)) {
        let events = client.timeline(number).await?;
        if let Some(why) = claimed(&issue, &events, rules, client.now_ms()) {
            return Ok(Some(why));
        }
        // Adding a label that is already set does not update its time, so others would take our
        // claim for the old one.
        client.remove_label(number, label).await?;
    }
    // Remove the labels of earlier outcomes.
    for (label, _) in rules.ended.all().into_iter().filter(|(label, _)| issue.has_label(label)) {
        client.remove_label(number, label).await?;
    }
    Ok(None)
}

fn task(id: String, issue: Issue) -> Task {
    let numbers = issue.labels.iter().filter_map(|label| {
        let (name, digits) = label.split_at_checked("priority-".len())?;
        priority_of(digits).filter(|_| name.eq_ignore_ascii_case("priority-"))
    });
    Task {
        id,
        source: Source::Issue,
        // Of several priority labels, the most urgent one counts.
        priority: numbers.min().unwrap_or(PRIORITY_DEFAULT),
        title: bounded(issue.title.trim(), TASK_TITLE_CHARS_MAX),
        body: bounded(issue.body.unwrap_or_default().trim(), TASK_BODY_CHARS_MAX),
        labels: issue.labels,
        created: Some(issue.created_at),
        position: issue.number,
    }
}

/// Reports the outcome of a task on its issue: one comment per run, however often this is called.
/// The label is set first, so that the issue is not picked again even if the comment cannot be
/// written.
pub async fn report(
    client: &Client,
    number: u64,
    rules: &IssueRules,
    report: &Report<'_>,
    harmless_rules: &Harmless<'_>,
) -> Result<(), ClientError> {
    if let Some(label) = rules.ended.of(report.outcome) {
        client.add_label(number, label).await?;
    }
    let marker = Marker::new(&format!("task:{}", report.run));
    let theirs = harmless(report.theirs.trim(), harmless_rules);
    let said = [report.ours.trim(), &theirs].join("\n\n");
    let answer = cut(said.trim(), report.chars_max);
    let body = comment::new_body(&marker, &answer, COMMENT_CHARS_MAX);
    let there = client.comments(number).await?;
    match comment::find(&there.items, &rules.who.bot_login, &marker) {
        Some(ours) if ours.body.as_deref() == Some(body.as_str()) => Ok(()),
        Some(ours) => client.update_comment(ours.id, &body).await.map(drop),
        None => {
            let login = &rules.who.bot_login;
            client.create_comment(number, &body, login, &marker.text()).await.map(drop)
        }
    }
}
