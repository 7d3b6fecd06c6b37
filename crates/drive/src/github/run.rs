//! From an event to work on a branch, and back to a comment: who may ask is asked, what they want is put into words, the plan
//! loop does it, and what came of it is told where it was asked for.

use camino::Utf8PathBuf;
use repertoire_agent::backend::Kind;
use repertoire_agent::definition::Definition;
use repertoire_github::actor::{Admission, Answers, Rules, admit};
use repertoire_github::client::{Client, ClientError};
use repertoire_github::comment::Harmless;
use repertoire_github::event::Context;
use repertoire_github::trigger::{Match, TriggerSettings, matched};
use repertoire_journal::run::Limits;
use repertoire_journal::{Journal, RunId, Worker};
use repertoire_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::ground::Ground;
use self::work::{Bench, Piece, WorkError, Worked};
use super::automerge::AutoMerge;
use super::base;
use super::grant::{Grant, grant};
use super::mode::{Mode, Modes, OpensPullRequest, RequiresBranch, TrackingComment, detect};
use super::publish::{self, Publication};
use super::tasks;
use super::template::{Facts, Prompt, prompt};
use super::tracking::{CommentKind, Tracking, TrackingSettings};
use crate::git::{DiffOf, Git, Oid, Remote};
use crate::improve::recover::Class;
use crate::limits::PROMPT_DIFF_BYTES_MAX;
use crate::plan::{self, Asked, Bounds, EndingWord, Hand, PlanRequest, Runner};
use crate::worktree::Worktrees;

mod again;
mod allowance;
mod ask;
mod basis;
pub mod ground;
mod letters;
mod merge;
mod queue;
pub mod words;
mod work;

pub use ask::complete;
pub use letters::Started;
pub use queue::Continuous;

/// How a run on GitHub ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// What was asked for is done: checks, review and plan agree.
    Done,
    /// An answer was given, and nothing changed.
    Answered,
    /// A person has to decide.
    Waiting,
    /// It could not be done.
    Failed,
    /// Nothing called for work.
    Skipped,
    /// Whoever asked may not.
    Refused,
}

impl Conclusion {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Conclusion::Done => "done",
            Conclusion::Answered => "answered",
            Conclusion::Waiting => "waiting",
            Conclusion::Failed => "failed",
            Conclusion::Skipped => "skipped",
            Conclusion::Refused => "refused",
        }
    }

    /// Whether the step of a workflow is green with it. What nobody asked for, or may not ask for, is no failure.
    pub fn is_fine(self) -> bool {
        !matches!(self, Conclusion::Waiting | Conclusion::Failed)
    }
}

/// What a run on GitHub came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why, in a sentence.
    pub reason: String,
    /// What kind of failure it was, by what can be done about it; null if it was none.
    pub class: Option<Class>,
    /// The mode that was chosen.
    pub mode: Option<String>,
    /// The branch with the work.
    pub branch: Option<String>,
    /// Whether it was pushed.
    pub pushed: bool,
    /// The pull request.
    pub pull_request: Option<u64>,
    /// What became of merging it.
    pub merge: Option<String>,
    /// The checks on the last commit, in words.
    pub checks: Option<String>,
    /// What the agent said in the end.
    pub answer: Option<String>,
    /// The run in the journal.
    pub run: Option<RunId>,
    /// Each task, where there are several.
    pub tasks: Vec<TaskOutcome>,
    /// What people should know besides.
    pub notes: Vec<String>,
}

impl Outcome {
    /// An end, and why.
    pub fn new(conclusion: Conclusion, reason: impl Into<String>) -> Self {
        Outcome {
            conclusion,
            reason: reason.into(),
            // What the work itself came to is known only to whoever did it.
            class: (!conclusion.is_fine()).then_some(Class::Permanent),
            mode: None,
            branch: None,
            pushed: false,
            pull_request: None,
            merge: None,
            checks: None,
            answer: None,
            run: None,
            tasks: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// What became of one task of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOutcome {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why.
    pub reason: String,
    /// The branch with the work.
    pub branch: Option<String>,
    /// The pull request.
    pub pull_request: Option<u64>,
}

/// What the configuration of the base branch says, and whoever started the workflow.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What starts a mode.
    pub triggers: TriggerSettings,
    /// Who may ask.
    pub rules: Rules,
    /// The mode that was asked for by name.
    pub mode: Option<String>,
    /// The label of tasks that failed.
    pub failed_label: String,
    /// Whether an agent without a sandbox may work.
    pub walls: Walls,
    /// Tools that may leave the machine.
    pub network: Vec<String>,
    /// What the names of our branches begin with.
    pub branch_prefix: String,
    /// Whether branches are pushed.
    pub push: bool,
    /// Whether pull requests are opened.
    pub pull_request: bool,
    /// Whether they are drafts.
    pub draft: bool,
    /// How tasks are worked through.
    pub continuous: Continuous,
    /// Whether pull requests are merged.
    pub auto_merge: AutoMerge,
}

/// Whether what agents run has to be kept in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    /// It has to.
    Needed,
    /// The user who owns the machine says that there is nothing to lose.
    GivenUp,
}

impl Settings {
    /// Takes the account that the token is of for the one that we write as. The one that was configured stays ours.
    pub fn written_by(&mut self, login: &str) {
        let configured = std::mem::replace(&mut self.rules.bot_login, login.to_owned());
        self.rules.also_own.push(configured.clone());
        self.triggers.bot_login = login.to_owned();
        self.triggers.also_own.push(configured);
    }
}

/// Everything that a run on GitHub is done with.
pub struct Desk<'a> {
    /// The service.
    pub client: &'a Client,
    /// Where git finds the repository there.
    pub remote: &'a Remote,
    /// Where runs are recorded.
    pub journal: &'a Journal,
    /// Who does the work.
    pub runner: &'a Runner,
    /// Who we are for the journal.
    pub worker: &'a Worker,
    /// The base branch, checked out: configuration, skills and modes are read there.
    pub house: &'a Git,
    /// The commits that the run stands on.
    pub ground: &'a Ground,
    /// What the configuration says.
    pub settings: &'a Settings,
    /// What every piece of work is asked for: checks, reviewers, bounds.
    pub request: &'a PlanRequest,
    /// What a piece of work may use.
    pub limits: Limits,
    /// A word that nobody could know before.
    pub nonce: &'a str,
    /// The repository that failures and dead letters are remembered for.
    pub scope: &'a str,
    /// What must never be told, besides the token.
    pub secrets: Vec<Secret>,
    /// What happened, as it was given to us: for whoever takes it up again.
    pub event: &'a str,
    /// Hears of every run in the journal before it begins.
    pub on_run: &'a (dyn Fn(&RunId) + Sync),
    /// The dead letter that this run takes up again, if it does.
    pub letter: Option<&'a str>,
}

impl Desk<'_> {
    /// Everything that an event calls for, as far as whoever caused it may.
    async fn called(
        &self,
        context: &Context,
        modes: &Modes,
        shutdown: &CancellationToken,
    ) -> Outcome {
        let call = match self.call(context, modes).await {
            Ok(call) => call,
            Err(mut outcome) => {
                outcome.notes.extend(modes.warnings.iter().cloned());
                return *outcome;
            }
        };
        let mut outcome = match call.mode.execution.supports_continuous {
            true => self.work_through(&call, shutdown).await,
            false => self.answer(&call, shutdown).await,
        };
        outcome.mode = Some(call.mode.name.clone());
        outcome
    }

    /// Says what [`Desk::called`] would do.
    async fn would_do(&self, context: &Context, modes: &Modes) -> Outcome {
        let mut outcome = match self.call(context, modes).await {
            Err(outcome) => *outcome,
            Ok(call) => {
                let may = match call.admission {
                    Admission::Write => "work",
                    Admission::Read | Admission::Refused { .. } => "look and answer",
                };
                let (mode, actor) = (&call.mode.name, &context.actor.login);
                let reason = format!("a dry run: the mode `{mode}` would {may} for {actor}");
                let mut outcome = Outcome::new(Conclusion::Skipped, reason);
                outcome.mode = Some(mode.clone());
                outcome.notes.extend(call.warnings);
                return outcome;
            }
        };
        outcome.notes.extend(modes.warnings.iter().cloned());
        outcome
    }

    /// What an event calls for, and with which rights; or why it is left at that.
    async fn call<'a>(
        &self,
        context: &'a Context,
        modes: &'a Modes,
    ) -> Result<Call<'a>, Box<Outcome>> {
        let matches = matched(context, &self.settings.triggers);
        let detection = detect(&modes.modes, &matches, self.settings.mode.as_deref());
        let Some(mode) = detection.mode.as_deref().and_then(|name| modes.get(name)) else {
            return Err(Box::new(Outcome::new(Conclusion::Skipped, detection.reason)));
        };
        let left = |conclusion, reason: String| {
            let mode = Some(mode.name.clone());
            Box::new(Outcome { mode, ..Outcome::new(conclusion, reason) })
        };
        if let Some(reason) = base::left_alone(context) {
            return Err(left(Conclusion::Skipped, reason));
        }
        let answers = ask::permissions(self.client, context, &self.settings.rules).await;
        let admitted = admit(context, &answers, &self.settings.rules);
        let is_pull = context.entity.as_ref().is_some_and(|entity| entity.is_pull);
        let admission = match admitted.admission {
            Admission::Refused { reason } => return Err(left(Conclusion::Refused, reason)),
            // Code of strangers is looked at, and never run; and a mode without a branch changes nothing.
            _ if is_pull && context.is_fork() != Some(false) => Admission::Read,
            _ if mode.execution.requires_branch == RequiresBranch::Never => Admission::Read,
            admission => admission,
        };
        if let Some(why) = self.not_held(&admission) {
            return Err(left(Conclusion::Failed, why));
        }
        // Tasks are worked on with nobody watching: who may only ask would have them all fail.
        if mode.execution.supports_continuous && admission != Admission::Write {
            let (mode, actor) = (&mode.name, &context.actor.login);
            let reason = format!(
                "the mode `{mode}` works through tasks, and {actor} may not have work done here"
            );
            return Err(left(Conclusion::Refused, reason));
        }
        let trigger = matches.iter().find(|found| mode.triggers.contains(&found.trigger)).cloned();
        let mut warnings = admitted.warnings;
        warnings.extend(modes.warnings.iter().cloned());
        Ok(Call { context, mode, admission, answers, trigger, warnings })
    }
}

impl Desk<'_> {
    /// Why the agents of this run cannot be held to what whoever asked may have; `None` if they can. Somebody else's agent that
    /// runs without a sandbox reads every file of the machine, with or without being asked to change anything.
    fn not_held(&self, admission: &Admission) -> Option<String> {
        let hands = [&self.request.implementer, &self.request.reviewer];
        let words = hands.iter().filter_map(|hand| hand.backend.as_deref());
        let kinds =
            words.filter_map(|word| Kind::from_name(word.split(':').next().unwrap_or(word)));
        let loose = kinds.into_iter().find(|kind| !kind.is_walled())?;
        let (name, own) = (loose.name(), "our own loop (`--backend api`) can");
        match (admission, self.settings.walls) {
            (Admission::Write, Walls::GivenUp) => None,
            (Admission::Write, Walls::Needed) => Some(format!(
                "`{name}` runs its commands without a sandbox, and text of strangers can lead to them; {own} be held, or the \
                 user's configuration says `sandbox = \"off\"`"
            )),
            _ => Some(format!(
                "`{name}` cannot be kept from reading what is outside of the worktree, and whoever asked may only read \
                 there; {own}"
            )),
        }
    }
}

/// An event that is to be answered.
struct Call<'a> {
    context: &'a Context,
    mode: &'a Mode,
    admission: Admission,
    answers: Answers,
    trigger: Option<Match>,
    /// What people should know, whatever comes of it.
    warnings: Vec<String>,
}

/// A piece of work in the words of GitHub.
struct Wanted {
    /// What people know it by.
    name: String,
    /// The task in a line.
    title: String,
    prompt: Prompt,
    grant: Grant,
    /// Whether an answer will do.
    answer: bool,
    /// The plan that is worked through instead.
    plan: Option<Utf8PathBuf>,
    /// The list and the box in it that is ticked when it is done.
    tick: Option<(Utf8PathBuf, String)>,
    /// What it is about, for choosing skills.
    topic: String,
    /// The issue that it is for.
    about: Option<u64>,
    /// What it may use.
    limits: Limits,
}

impl Wanted {
    /// What the plan and its commits call it. A title that a stranger may have written is neither read as a plan nor put into
    /// a commit, where words in it would load skills, skip workflows or close issues.
    fn label(&self) -> String {
        match self.about {
            None => self.title.clone(),
            Some(_) => format!("Work on {}", self.name.replace('-', " ")),
        }
    }
}

impl Desk<'_> {
    /// Does what one event asks for, and answers it.
    async fn answer(&self, call: &Call<'_>, shutdown: &CancellationToken) -> Outcome {
        let (tracking, notes) = self.track(call).await;
        let run_url = call.context.run.url.clone();
        let work = self.done(call, shutdown);
        let mut outcome = match tracking {
            None => work.await,
            Some(tracking) => {
                let (phrases, secrets) = (self.phrases(), self.secrets());
                let rules = Harmless { triggers: &phrases, secrets: &secrets, image_host: None };
                let saying = |outcome: &Outcome| {
                    let ours = words::comment(outcome, run_url.as_deref(), &rules);
                    (ours, outcome.answer.clone().unwrap_or_default())
                };
                let (mut outcome, ended) = tracking.around(work, saying).await;
                outcome.notes.extend(ended.errors.iter().map(ToString::to_string));
                outcome
            }
        };
        outcome.notes.extend(notes);
        // Nobody takes up here what waits, so that it waits for a person as well; whoever stopped it knows.
        if !outcome.conclusion.is_fine() && !shutdown.is_cancelled() {
            self.bury(call, &mut outcome).await;
        }
        outcome
    }

    async fn done(&self, call: &Call<'_>, shutdown: &CancellationToken) -> Outcome {
        let wanted = match self.wanted(call).await {
            Ok(wanted) => wanted,
            Err(error) => return Outcome::new(Conclusion::Failed, error.to_string()),
        };
        let notes = hidden(&wanted.prompt);
        let mut outcome = self.deliver(call, wanted, shutdown).await;
        outcome.notes.extend(notes.into_iter().chain(call.warnings.iter().cloned()));
        outcome
    }

    /// What is asked for, in words for the agent.
    async fn wanted(&self, call: &Call<'_>) -> Result<Wanted, ClientError> {
        let context = call.context;
        let own = |login: &str| self.settings.rules.is_own(login);
        let (thread, answers) =
            ask::thread(self.client, context, call.answers.clone(), &own).await?;
        let diff = match &context.entity {
            Some(entity) if entity.is_pull => Some(self.diff(entity.number).await?),
            _ => None,
        };
        let grant = grant(call.mode, &call.admission, &self.settings.network);
        let facts = Facts { thread, answers, diff, ..self.facts(call, &grant) };
        let prompt = prompt(call.mode, context, &self.settings.triggers, &facts);
        let entity = context.entity.as_ref();
        let name = entity.map_or_else(
            || "prompt".to_owned(),
            |entity| {
                let kind = if entity.is_pull { "pr" } else { "issue" };
                format!("{kind}-{}", entity.number)
            },
        );
        let title =
            entity.map_or_else(|| "What was asked for".to_owned(), |entity| entity.title.clone());
        let about = entity.map(|entity| entity.number);
        let limits = self.limits;
        let (plan, tick, topic) = (None, None, self.topic(context));
        Ok(Wanted { name, title, prompt, grant, answer: true, plan, tick, topic, about, limits })
    }

    /// What an event is about, without what the mode says around it.
    fn topic(&self, context: &Context) -> String {
        let prompt = repertoire_github::trigger::prompt(context, &self.settings.triggers);
        let said = context.said.as_ref().map(|said| said.text.as_str());
        let entity = context.entity.as_ref();
        let entity = entity.into_iter().flat_map(|entity| [&*entity.title, &*entity.body]);
        let all: Vec<&str> = prompt.into_iter().chain(said).chain(entity).collect();
        all.join("\n")
    }

    /// What a pull request changes, at the commit that the agent gets. The service is asked where the history here ends before
    /// the two branches meet.
    async fn diff(&self, number: u64) -> Result<String, ClientError> {
        let from_git = async {
            let (base, head) = (&self.ground.base, self.ground.head.as_ref()?);
            let from = self.house.merge_base(base, head).await.ok()??;
            let of = DiffOf::Commits { from, to: head.clone() };
            self.house.diff(&of, PROMPT_DIFF_BYTES_MAX + 1).await.ok()
        };
        match from_git.await {
            Some(diff) => Ok(diff.text),
            None => self.client.pull_diff(number).await,
        }
    }

    fn facts(&self, call: &Call<'_>, grant: &Grant) -> Facts {
        let request = self.request_for(&call.admission);
        let checks = request.checks.iter().chain(&request.final_checks);
        Facts {
            nonce: self.nonce.to_owned(),
            trigger: call.trigger.clone(),
            admission: Some(call.admission.clone()),
            answers: call.answers.clone(),
            base_branch: Some(self.ground.base_ref.clone()),
            branch: Some(format!("{}…", self.settings.branch_prefix)),
            limits: allowance::words(&self.limits),
            checks: checks.map(|check| check.name.clone()).collect(),
            tools: grant.tools.clone(),
            ..Facts::default()
        }
    }

    /// Lets the plan loop do a piece of work, and brings it where it should go.
    async fn deliver(
        &self,
        call: &Call<'_>,
        wanted: Wanted,
        shutdown: &CancellationToken,
    ) -> Outcome {
        match self.work_on(&wanted, call, shutdown).await {
            Ok(mut worked) => {
                if let Err(error) = self.tick(&wanted, &mut worked).await {
                    return Outcome::new(Conclusion::Failed, error.to_string());
                }
                self.publish(call, &wanted, worked).await
            }
            Err(error) => Outcome::new(Conclusion::Failed, error.to_string()),
        }
    }

    async fn work_on(
        &self,
        wanted: &Wanted,
        call: &Call<'_>,
        shutdown: &CancellationToken,
    ) -> Result<Worked, WorkError> {
        let house = self.house;
        let start = match &self.ground.head {
            None => self.ground.base.clone(),
            Some(head) => base::overlay(house, head, &self.ground.base).await?.commit,
        };
        let rules = |rules: &[repertoire_agent::permission::Rule]| {
            rules.iter().map(ToString::to_string).collect()
        };
        let permissions = &wanted.grant.permissions;
        let is_read = call.admission == Admission::Read;
        let hand = |usual: &Hand| Hand {
            system: Some(wanted.prompt.system.clone()),
            tools: Some(wanted.grant.tools.clone()),
            mode: is_read.then(|| "read-only".to_owned()),
            allow: rules(&permissions.allow),
            deny: rules(&permissions.deny),
            ignore_project_rules: true,
            ..usual.clone()
        };
        let asked = Asked {
            title: wanted.label(),
            words: wanted.prompt.user.clone(),
            topic: wanted.topic.clone(),
            answer: wanted.answer,
        };
        // Who reviews reads the same texts of strangers, and has to know as well what is only data.
        let told = format!("{}\n{}", Definition::default().prompt, wanted.prompt.rules);
        let reviewer = Hand { system: Some(told), ..hand(&self.request.reviewer) };
        let request = PlanRequest {
            plan: wanted.plan.clone().unwrap_or_default(),
            asked: wanted.plan.is_none().then_some(asked),
            implementer: hand(&self.request.implementer),
            reviewer,
            branch_prefix: self.settings.branch_prefix.clone(),
            ending: EndingWord::Keep,
            bounds: self.bounds(call.mode),
            ..self.request_for(&call.admission)
        };
        let bench = Bench {
            journal: self.journal,
            runner: self.runner,
            worker: self.worker,
            house,
            on_run: self.on_run,
        };
        let piece = Piece { name: wanted.name.clone(), request, start, limits: wanted.limits };
        bench.work(piece, shutdown).await
    }

    /// What work is asked for, as far as whoever asked may have it. For who may only look nothing is run: what makes a worktree
    /// ready and what checks it both start what lies there, and that may be a stranger's.
    fn request_for(&self, admission: &Admission) -> PlanRequest {
        match admission {
            Admission::Write => self.request.clone(),
            Admission::Read | Admission::Refused { .. } => PlanRequest {
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

    /// A mode that does not try again has one attempt.
    fn bounds(&self, mode: &Mode) -> Bounds {
        let mut bounds = self.request.bounds.clone();
        let retries = if mode.execution.supports_retry { mode.execution.max_retries } else { 0 };
        bounds.attempts_max = bounds.attempts_max.min(retries.saturating_add(1));
        bounds
    }

    /// Ticks the box of a task that is done, on its branch.
    async fn tick(&self, wanted: &Wanted, worked: &mut Worked) -> Result<(), WorkError> {
        let Some((file, id)) =
            wanted.tick.as_ref().filter(|_| worked.conclusion == Conclusion::Done)
        else {
            return Ok(());
        };
        let worktrees = Worktrees::new(self.house.clone(), self.runner.places.worktrees.clone());
        let Some(worktree) = worktrees.of_run(worked.run.id.as_str()).await? else { return Ok(()) };
        let text = plan::file::read(&worktree.dir, file);
        if let Some(ticked) = text.and_then(|text| tasks::file::tick(&text, id)) {
            plan::file::write(&worktree.dir, file, &ticked)?;
            worktree
                .git
                .commit_paths(&[file.to_string()], &format!("tasks: {} is done", wanted.title))
                .await?;
            worked.head = Some(worktree.git.head().await?);
        }
        Ok(())
    }

    /// Pushes what was done, opens a pull request and merges it, as far as that is configured.
    async fn publish(&self, call: &Call<'_>, wanted: &Wanted, worked: Worked) -> Outcome {
        let branch = worked.run.worktree.as_ref().map(|worktree| worktree.branch.clone());
        let mut outcome = Outcome {
            branch: branch.filter(|_| worked.head.is_some()),
            checks: worked.checks.clone(),
            answer: worked.answer.clone(),
            run: Some(worked.run.id.clone()),
            class: worked.class,
            ..Outcome::new(worked.conclusion, worked.reason.clone())
        };
        let is_wanted = self.settings.push && outcome.conclusion == Conclusion::Done;
        let (Some(branch), Some(head), true) = (outcome.branch.clone(), worked.head, is_wanted)
        else {
            return outcome;
        };
        if let Err(why) = self.send(call, wanted, &branch, &head, &mut outcome).await {
            outcome.conclusion = Conclusion::Waiting;
            outcome.class = Some(Class::Permanent);
            outcome.reason = why;
        }
        outcome
    }

    async fn send(
        &self,
        call: &Call<'_>,
        wanted: &Wanted,
        branch: &str,
        head: &Oid,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        // A pull request keeps its own configuration, whatever the agent was given to read.
        let (commit, base, base_commit) = match (&self.ground.head, self.pull_branch(call)) {
            (Some(own), Some(name)) => {
                let plain = base::without_overlay(self.house, head, own, &wanted.label())
                    .await
                    .map_err(|error| text(&error))?;
                (plain, name, own)
            }
            _ => (head.clone(), self.ground.base_ref.clone(), &self.ground.base),
        };
        let what = Publication {
            git: self.house,
            client: self.client,
            remote: self.remote,
            prefix: &self.settings.branch_prefix,
            branch,
            commit: &commit,
            base: &base,
            base_commit,
        };
        publish::push(&what).await.map_err(|error| text(&error))?;
        outcome.pushed = true;
        let opens = call.mode.execution.opens_pull_request;
        if !self.settings.pull_request || opens == OpensPullRequest::Never {
            return Ok(());
        }
        let origin = self.origin(call, wanted, outcome.run.as_ref()).await;
        let hidden = origin.as_ref().map(|origin| format!("{}\n\n", origin.line()));
        let ours = hidden.unwrap_or_default() + &pull_words(wanted, outcome);
        let pull = publish::Words {
            title: &wanted.title,
            ours: &ours,
            theirs: outcome.answer.as_deref().unwrap_or_default(),
            draft: self.settings.draft,
        };
        let phrases = self.phrases();
        let secrets = self.secrets();
        let rules = Harmless { triggers: &phrases, secrets: &secrets, image_host: None };
        let opened = publish::open(&what, &pull, &rules).await.map_err(|error| text(&error))?;
        outcome.pull_request = Some(opened.number);
        if let Some(origin) = &origin {
            let report = self.merge(call, &opened, (branch, &commit), origin).await;
            outcome.merge = Some(report.line());
            outcome.notes.extend(report.remarks);
        }
        Ok(())
    }

    /// The branch that the work on a pull request goes into.
    fn pull_branch(&self, call: &Call<'_>) -> Option<String> {
        let pull = call.context.entity.as_ref()?.pull.as_ref()?;
        Some(pull.head_ref.clone())
    }

    fn phrases(&self) -> Vec<&str> {
        vec![self.settings.triggers.phrase.as_str()]
    }

    fn secrets(&self) -> Vec<Secret> {
        let token = self.client.token();
        let all = token.into_iter().chain(&self.secrets).cloned();
        // Git's way of sending the token is as good as the token.
        all.chain(token.map(publish::as_sent)).collect()
    }

    /// Writes the first word below what the event is about.
    async fn track(&self, call: &Call<'_>) -> (Option<Tracking>, Vec<String>) {
        let Some(entity) = &call.context.entity else { return (None, Vec::new()) };
        let tracked = &call.mode.tracking;
        let settings = TrackingSettings {
            number: entity.number,
            own_login: self.settings.rules.bot_login.clone(),
            comment: match tracked.comment {
                TrackingComment::New => CommentKind::New,
                TrackingComment::Sticky => CommentKind::Sticky,
                TrackingComment::None => CommentKind::None,
            },
            mode: call.mode.name.clone(),
            run: call.context.run.id.clone().unwrap_or_else(|| self.nonce.to_owned()),
            label: tracked.status_label.clone(),
            answer_chars_max: tracked.comment_limit,
            triggers: self.phrases().into_iter().map(str::to_owned).collect(),
            secrets: self.secrets(),
        };
        let ours = "Working on it.";
        let saying = super::tracking::Saying { ours, theirs: "" };
        let (tracking, errors) = Tracking::begin(self.client.clone(), settings, saying).await;
        (Some(tracking), errors.iter().map(ToString::to_string).collect())
    }
}

/// What we say in a pull request.
fn pull_words(wanted: &Wanted, outcome: &Outcome) -> String {
    let about = wanted.about.map(|number| format!("For #{number}."));
    let checks =
        outcome.checks.as_ref().map(|checks| format!("Checks on the last commit: {checks}."));
    let parts: Vec<String> = about.into_iter().chain(checks).collect();
    parts.join("\n\n")
}

/// What was hidden in the texts that went into a prompt, for people.
fn hidden(prompt: &Prompt) -> Option<String> {
    let all: Vec<String> = prompt
        .removed
        .iter()
        .map(|(place, removed)| {
            format!("{} × {} in `{place}`", removed.count, removed.what.words())
        })
        .collect();
    (!all.is_empty()).then(|| format!("taken out of what was written: {}", all.join(", ")))
}
