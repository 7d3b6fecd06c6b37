//! Whether an event calls for work: the vocabulary of triggers, and which of them hold.
//!
//! A trigger says that somebody called. Whether they may is decided elsewhere ([`crate::actor`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comment;
use crate::event::{Context, EventName};
use crate::stranger::quoted;

mod mention;

pub use mention::{Mention, mention};

/// What can call for work.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The workflow was started by hand or through the API, with a prompt.
    WorkflowDispatch,
    /// An issue was opened.
    IssueOpened,
    /// An issue got the label of tasks.
    IssueLabeled,
    /// Somebody wrote below an issue or a pull request.
    IssueCommented,
    /// A pull request was opened, or is ready now.
    PrOpened,
    /// A pull request got the label of tasks.
    PrLabeled,
    /// Somebody reviewed a pull request.
    PrReviewed,
    /// There is a prompt, whatever happened.
    ExplicitPrompt,
    /// Somebody called the bot by its phrase.
    Mention,
    /// The bot's label was added.
    Label,
    /// The bot's account was assigned.
    Assignee,
    /// Continuous operation is on, and the run was started by the clock or by hand.
    Continuous,
    /// The command line asked for a mode by name.
    Manual,
}

/// What the triggers depend on: the project's settings, from the base branch, and how the run was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerSettings {
    /// The phrase that calls the bot.
    pub phrase: String,
    /// The label that calls it.
    pub label: Option<String>,
    /// The account whose assignment calls it.
    pub assignee: Option<String>,
    /// The label of tasks.
    pub task_label: String,
    /// The account that the bot writes as.
    pub bot_login: String,
    /// Other accounts that are the bot's as well.
    pub also_own: Vec<String>,
    /// Whether continuous operation is on.
    pub continuous: bool,
    /// The prompt that the run was given.
    pub prompt: Option<String>,
    /// Whether a mode was asked for by name.
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

/// A trigger that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// The trigger.
    pub trigger: Trigger,
    /// Why it holds, for people. Names that strangers chose are quoted.
    pub reason: String,
    /// How sure it is that somebody meant the bot, in percent.
    pub confidence: u8,
}

impl Trigger {
    /// All of them, in the order in which they are looked for.
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

    /// The trigger of that name. `continuous_mode` and `manual_trigger` are older words for two of them.
    pub fn parse(name: &str) -> Option<Trigger> {
        match name {
            "continuous_mode" => Some(Trigger::Continuous),
            "manual_trigger" => Some(Trigger::Manual),
            _ => Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == name),
        }
    }

    /// Its name.
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

/// The triggers that hold, in the order of [`Trigger::ALL`]. A text that begins as ours do calls for nothing, whoever it seems to
/// be from: what we write must not start us again, also where nobody told us the name that we write under.
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

/// The prompt that the run was given: by its caller, or as the input `prompt` of the workflow.
pub fn prompt<'a>(context: &'a Context, settings: &'a TriggerSettings) -> Option<&'a str> {
    let input = context.inputs.get("prompt").map(String::as_str);
    let given = settings.prompt.as_deref();
    [given, input].into_iter().flatten().map(str::trim).find(|prompt| !prompt.is_empty())
}

/// The call in the text that the event brought. The bot's own text never calls it, and a call that was there before an edit
/// has been answered already.
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

/// Whether a login is the bot's, with or without the ending that GitHub gives to apps.
pub fn is_bot(login: &str, bot_login: &str) -> bool {
    let plain = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        name.strip_suffix("[bot]").map(str::to_owned).unwrap_or(name)
    };
    let bot = plain(bot_login);
    !bot.is_empty() && plain(login) == bot
}

/// Whether a login is one of several of the bot's.
pub(crate) fn is_one_of(login: &str, bot_login: &str, also_own: &[String]) -> bool {
    is_bot(login, bot_login) || also_own.iter().any(|own| is_bot(login, own))
}

/// Why a trigger holds, and how sure that is.
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

/// Labels that differ in case are one label to GitHub.
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
