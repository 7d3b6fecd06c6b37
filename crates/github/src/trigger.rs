//! Decides whether an event triggers work: the list of triggers, and which of them match.
//!
//! A match says only that the bot was called. Whether the caller has the right to is decided in
//! [`crate::actor`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comment;
use crate::event::{Context, EventName};
use crate::stranger::quoted;

mod mention;

pub use mention::{Mention, mention};

/// The kinds of triggers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The workflow was started by hand or through the API, with a prompt.
    WorkflowDispatch,
    /// An issue was opened.
    IssueOpened,
    /// The task label was added to an issue.
    IssueLabeled,
    /// A comment was written on an issue or pull request.
    IssueCommented,
    /// A pull request was opened, or marked as ready for review.
    PrOpened,
    /// The task label was added to a pull request.
    PrLabeled,
    /// A pull request was reviewed.
    PrReviewed,
    /// A prompt was given, whatever the event is.
    ExplicitPrompt,
    /// The bot was called by its phrase.
    Mention,
    /// The bot's label was added.
    Label,
    /// The bot's account was assigned.
    Assignee,
    /// Continuous operation is on, and the run was started by a schedule or by hand.
    Continuous,
    /// A mode was requested by name on the command line.
    Manual,
}

/// The settings of triggers: those of the project, read from the base branch, and how the run was
/// started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerSettings {
    /// The phrase that calls the bot.
    pub phrase: String,
    /// The label that calls the bot.
    pub label: Option<String>,
    /// The account whose assignment calls the bot.
    pub assignee: Option<String>,
    /// The label of tasks.
    pub task_label: String,
    /// The account the bot writes as.
    pub bot_login: String,
    /// Other accounts that belong to the bot.
    pub also_own: Vec<String>,
    /// True if continuous operation is on.
    pub continuous: bool,
    /// The prompt the run was given.
    pub prompt: Option<String>,
    /// True if a mode was requested by name.
    pub manual: bool,
}

impl Default for TriggerSettings {
    fn default() -> Self {
        TriggerSettings {
            phrase: "@repertoire".to_owned(),
            label: None,
            assignee: None,
            task_label: "agent-task".to_owned(),
            bot_login: "github-actions[bot]".to_owned(),
            also_own: Vec::new(),
            continuous: false,
            prompt: None,
            manual: false,
        }
    }
}

/// A trigger that matches an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// The trigger.
    pub trigger: Trigger,
    /// The reason it matches, for people. Names chosen by users are quoted.
    pub reason: String,
    /// The confidence that the bot was meant, in percent.
    pub confidence: u8,
}

impl Trigger {
    /// All triggers, in the order in which they are checked.
    pub const ALL: [Trigger; 13] = [
        Trigger::Manual,
        Trigger::Continuous,
        Trigger::WorkflowDispatch,
        Trigger::ExplicitPrompt,
        Trigger::Mention,
        Trigger::Label,
        Trigger::Assignee,
        Trigger::IssueLabeled,
        Trigger::PrLabeled,
        Trigger::IssueOpened,
        Trigger::PrOpened,
        Trigger::PrReviewed,
        Trigger::IssueCommented,
    ];

    /// Parses the name of a trigger. `continuous_mode` and `manual_trigger` are older names of two
    /// of them.
    pub fn parse(name: &str) -> Option<Trigger> {
        match name {
            "continuous_mode" => Some(Trigger::Continuous),
            "manual_trigger" => Some(Trigger::Manual),
            _ => Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == name),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::WorkflowDispatch => "workflow_dispatch",
            Trigger::IssueOpened => "issue_opened",
            Trigger::IssueLabeled => "issue_labeled",
            Trigger::IssueCommented => "issue_commented",
            Trigger::PrOpened => "pr_opened",
            Trigger::PrLabeled => "pr_labeled",
            Trigger::PrReviewed => "pr_reviewed",
            Trigger::ExplicitPrompt => "explicit_prompt",
            Trigger::Mention => "mention",
            Trigger::Label => "label",
            Trigger::Assignee => "assignee",
            Trigger::Continuous => "continuous",
            Trigger::Manual => "manual",
        }
    }
}

/// Returns the matching triggers, in the order of [`Trigger::ALL`]. A text that begins like the
/// bot's own comments matches nothing, regardless of its author: the bot must not trigger itself,
/// even if its login is not configured.
pub fn matched(context: &Context, settings: &TriggerSettings) -> Vec<Match> {
    if context.said.as_ref().is_some_and(|said| comment::is_ours(&said.text)) {
        return Vec::new();
    }
    let matches = Trigger::ALL.into_iter().filter_map(|trigger| {
        let (reason, confidence) = holds(trigger, context, settings)?;
        Some(Match { trigger, reason, confidence })
    });
    matches.collect()
}

/// Returns the prompt of the run: given by its caller, or as the workflow input `prompt`.
pub fn prompt<'a>(context: &'a Context, settings: &'a TriggerSettings) -> Option<&'a str> {
    let input = context.inputs.get("prompt").map(String::as_str);
    let given = settings.prompt.as_deref();
    [given, input].into_iter().flatten().map(str::trim).find(|prompt| !prompt.is_empty())
}

/// Returns the mention in the text of the event. The bot's own text never counts, nor does a
/// mention that was there before an edit, since that one was answered already.
pub fn call(context: &Context, settings: &TriggerSettings) -> Option<Mention> {
    let said = context.said.as_ref()?;
    let own = |login: &str| is_one_of(login, &settings.bot_login, &settings.also_own);
    if own(&said.author.login) || own(&context.actor.login) || comment::is_ours(&said.text) {
        return None;
    }
    let before = said.before.as_deref().unwrap_or_default();
    match mention(before, &settings.phrase) {
        Some(_) => None,
        None => mention(&said.text, &settings.phrase),
    }
}

/// Returns true if a login is the bot's, with or without the `[bot]` suffix of GitHub apps.
pub fn is_bot(login: &str, bot_login: &str) -> bool {
    let bot = plain_login(bot_login);
    !bot.is_empty() && plain_login(login) == bot
}

/// Returns a login in lower case and without the `[bot]` suffix.
fn plain_login(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_suffix("[bot]").map(str::to_owned).unwrap_or(name)
}

/// Returns true if a login is one of the bot's.
pub(crate) fn is_one_of(login: &str, bot_login: &str, also_own: &[String]) -> bool {
    is_bot(login, bot_login) || also_own.iter().any(|own| is_bot(login, own))
}

/// Returns the reason and the confidence if a trigger matches.
fn holds(trigger: Trigger, context: &Context, settings: &TriggerSettings) -> Option<(String, u8)> {
    match trigger {
        Trigger::Manual => {
            settings.manual.then(|| ("a mode was asked for by name".to_owned(), 100))
        }
        Trigger::Continuous => continuous(context, settings),
        Trigger::WorkflowDispatch => {
            let started = context.event == EventName::WorkflowDispatch;
            (started && prompt(context, settings).is_some())
                .then(|| ("the workflow was started with a prompt".to_owned(), 100))
        }
        Trigger::ExplicitPrompt => {
            prompt(context, settings).map(|_| ("a prompt was given".to_owned(), 100))
        }
        Trigger::Mention => mentioned(context, settings),
        Trigger::Label => bot_label(context, settings),
        Trigger::Assignee => assigned(context, settings),
        Trigger::IssueLabeled => task_label(context, settings, "issue", is_issue(context)),
        Trigger::PrLabeled => task_label(context, settings, "pull request", is_pull(context)),
        Trigger::IssueOpened => (is_issue(context) && context.is_action("opened"))
            .then(|| (format!("{} was opened", entity(context)), 70)),
        Trigger::PrOpened => pull_opened(context),
        Trigger::PrReviewed => (context.event == EventName::PullRequestReview
            && context.is_action("submitted"))
        .then(|| (format!("{} was reviewed", entity(context)), 70)),
        Trigger::IssueCommented => (context.event == EventName::IssueComment
            && context.is_action("created"))
        .then(|| (format!("somebody wrote below {}", entity(context)), 50)),
    }
}

fn continuous(context: &Context, settings: &TriggerSettings) -> Option<(String, u8)> {
    let started = match context.event {
        EventName::Schedule => "by the clock",
        EventName::WorkflowDispatch => "by hand",
        EventName::RepositoryDispatch => "by a dispatch",
        _ => return None,
    };
    let reason = format!("continuous operation is on, and the run was started {started}");
    settings.continuous.then_some((reason, 100))
}

fn mentioned(context: &Context, settings: &TriggerSettings) -> Option<(String, u8)> {
    let call = call(context, settings)?;
    let phrase = quoted(&settings.phrase);
    let reason = format!("the text that this event brought has the phrase {phrase}");
    Some((reason, if call.leads { 100 } else { 90 }))
}

fn bot_label(context: &Context, settings: &TriggerSettings) -> Option<(String, u8)> {
    let wanted = settings.label.as_deref().filter(|label| !label.is_empty())?;
    let same = |label: &str| same_label(label, wanted);
    if context.is_action("labeled") && context.label.as_deref().is_some_and(same) {
        return Some((format!("the label {} was added", quoted(wanted)), 95));
    }
    let opened = (is_issue(context) || is_pull(context)) && context.is_action("opened");
    let has = context.entity.as_ref().is_some_and(|entity| entity.labels.iter().any(|l| same(l)));
    (opened && has)
        .then(|| (format!("{} was opened with the label {}", entity(context), quoted(wanted)), 95))
}

fn assigned(context: &Context, settings: &TriggerSettings) -> Option<(String, u8)> {
    let wanted = settings.assignee.as_deref().filter(|login| !login.is_empty())?;
    let wanted = wanted.trim_start_matches('@');
    let assignee = context.assignee.as_ref().filter(|account| account.is(wanted))?;
    context
        .is_action("assigned")
        .then(|| (format!("{} was assigned to {}", entity(context), assignee.login), 95))
}

fn task_label(
    context: &Context,
    settings: &TriggerSettings,
    what: &str,
    is_such: bool,
) -> Option<(String, u8)> {
    let label = context.label.as_deref()?;
    let fits = is_such && context.is_action("labeled") && same_label(label, &settings.task_label);
    fits.then(|| (format!("the {what} got the label {} of tasks", quoted(label)), 95))
}

fn pull_opened(context: &Context) -> Option<(String, u8)> {
    let what = match context.action.as_deref() {
        Some("opened") => "was opened",
        Some("ready_for_review") => "is ready for review",
        _ => return None,
    };
    is_pull(context).then(|| (format!("{} {what}", entity(context)), 70))
}

/// Compares labels without regard to case, as GitHub does.
fn same_label(label: &str, wanted: &str) -> bool {
    !wanted.is_empty() && label.trim().to_lowercase() == wanted.trim().to_lowercase()
}

fn is_issue(context: &Context) -> bool {
    context.event == EventName::Issues
}

fn is_pull(context: &Context) -> bool {
    matches!(context.event, EventName::PullRequest | EventName::PullRequestTarget)
}

fn entity(context: &Context) -> String {
    match &context.entity {
        Some(entity) if entity.is_pull => format!("pull request {}", entity.number),
        Some(entity) => format!("issue {}", entity.number),
        None => "nothing in particular".to_owned(),
    }
}
