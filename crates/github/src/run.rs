//! From an event to work on a branch and back to a comment: checks the permissions of the actor,
//! builds the prompt, runs the plan loop, and reports the outcome where the work was requested.

use crate::actor::{ActorRules, KnownPermissions, RunAdmission, decide_admission};
use crate::client::{ClientError, GitHubClient};
use crate::comment::NeutraliseRules;
use crate::event::GitHubEventContext;
use crate::trigger::{TriggerMatch, TriggerSettings, match_triggers};
use camino::Utf8PathBuf;
use repertoire_agent::backend::BackendKind;
use repertoire_journal::run::Limits;
use repertoire_journal::{Journal, QueueWorker, RunId};
use repertoire_model::ApiSecret;
use tokio_util::sync::CancellationToken;

use self::commits::RunCommits;
use super::automerge::AutoMerge;
use super::base;
use super::grant::{AgentGrant, decide_grant};
use super::mode::{GitHubMode, ModeSet, RequiresBranch, TrackingComment, detect_mode};
use super::publish;
use super::template::{ModePrompt, PromptFacts, render_prompt};
use super::tracking::{CommentKind, RunTracking, TrackingSettings};
use crate::limits::PROMPT_DIFF_BYTES_MAX;
use repertoire_git::repo::{DiffTarget, GitClient, GitRemote};
use repertoire_plan::{PlanRequest, PlanRunner};

mod base_check;
mod budget;
pub mod commits;
mod dead_letters;
mod deliver;
mod later_merge;
mod lookups;
mod merge;
mod outcome;
mod queue;
pub mod render;
mod work;

pub use dead_letters::EventRunParameters;
pub use lookups::complete_event;
pub use outcome::{GitHubOutcome, RunConclusion, TaskOutcome};
pub use queue::ContinuousSettings;

/// The settings of a run: the configuration of the base branch, and the inputs of the workflow.
#[derive(Clone, Debug)]
pub struct GitHubRunSettings {
    pub triggers: TriggerSettings,
    /// The rules about who may ask.
    pub rules: ActorRules,
    /// The mode that was requested by name.
    pub mode: Option<String>,
    /// The label of failed tasks.
    pub failed_label: String,
    /// The sandbox requirement for agents.
    pub walls: SandboxRequirement,
    /// The tools that may use the network.
    pub network: Vec<String>,
    /// The prefix of the bot's branches.
    pub branch_prefix: String,
    /// True if branches are pushed.
    pub push: bool,
    /// True if pull requests are opened.
    pub pull_request: bool,
    /// True if pull requests are opened as drafts.
    pub draft: bool,
    /// The settings of continuous operation.
    pub continuous: ContinuousSettings,
    pub auto_merge: AutoMerge,
}

/// The sandbox requirement for agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxRequirement {
    /// A sandbox is required.
    Needed,
    /// The owner of the machine has waived the sandbox.
    GivenUp,
}

impl GitHubRunSettings {
    /// Uses the account of the token as the bot's. The configured account still counts as the bot's
    /// own.
    pub fn set_bot_login(&mut self, login: &str) {
        let configured = std::mem::replace(&mut self.rules.bot_login, login.to_owned());
        self.rules.also_own.push(configured.clone());
        self.triggers.bot_login = login.to_owned();
        self.triggers.also_own.push(configured);
    }
}

/// The dependencies of a GitHub run.
pub struct GitHubRunContext<'a> {
    pub client: &'a GitHubClient,
    /// The repository on GitHub, for git.
    pub remote: &'a GitRemote,
    pub journal: &'a Journal,
    pub runner: &'a PlanRunner,
    /// The identity of this process in the journal.
    pub worker: &'a QueueWorker,
    /// A checkout of the base branch, from which configuration, skills and modes are read.
    pub checkout: &'a GitClient,
    /// The commits that the run is based on.
    pub ground: &'a RunCommits,
    pub settings: &'a GitHubRunSettings,
    /// The template of all plan requests: checks, reviewers, limits.
    pub request: &'a PlanRequest,
    /// The limits of one piece of work.
    pub limits: Limits,
    /// An unpredictable word.
    pub nonce: &'a str,
    /// The repository in the memory of failures and in dead letters.
    pub scope: &'a str,
    /// Values to redact, besides the token.
    pub secrets: Vec<ApiSecret>,
    /// The raw event, to be stored in dead letters.
    pub event: &'a str,
    /// Called for every run in the journal before it starts.
    pub on_run: &'a (dyn Fn(&RunId) + Sync),
    /// The dead letter that this run retries, if it does.
    pub letter: Option<&'a str>,
}

impl GitHubRunContext<'_> {
    /// Does everything an event triggers, as far as its actor may.
    async fn handle_trigger(
        &self,
        context: &GitHubEventContext,
        modes: &ModeSet,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let call = match self.admit_event(context, modes).await {
            Ok(call) => call,
            Err(mut outcome) => {
                outcome.notes.extend(modes.warnings.iter().cloned());
                return *outcome;
            }
        };
        let mut outcome = if call.mode.execution.supports_continuous {
            self.work_through(&call, shutdown).await
        } else {
            self.answer_event(&call, shutdown).await
        };
        outcome.mode = Some(call.mode.name.clone());
        outcome
    }

    /// Describes what [`Desk::called`] would do (dry run).
    async fn describe_trigger(
        &self,
        context: &GitHubEventContext,
        modes: &ModeSet,
    ) -> GitHubOutcome {
        let mut outcome = match self.admit_event(context, modes).await {
            Err(outcome) => *outcome,
            Ok(call) => {
                let may = match call.admission {
                    RunAdmission::Write => "work",
                    RunAdmission::Read | RunAdmission::Refused { .. } => "look and answer",
                };
                let (mode, actor) = (&call.mode.name, &context.actor.login);
                let reason = format!("a dry run: the mode `{mode}` would {may} for {actor}");
                let mut outcome = GitHubOutcome::new(RunConclusion::Skipped, reason);
                outcome.mode = Some(mode.clone());
                outcome.notes.extend(call.warnings);
                return outcome;
            }
        };
        outcome.notes.extend(modes.warnings.iter().cloned());
        outcome
    }

    /// Determines the mode of an event and the rights it has; or returns the outcome if nothing is
    /// to be done.
    async fn admit_event<'a>(
        &self,
        context: &'a GitHubEventContext,
        modes: &'a ModeSet,
    ) -> Result<AdmittedEvent<'a>, Box<GitHubOutcome>> {
        let matches = match_triggers(context, &self.settings.triggers);
        let detection = detect_mode(&modes.modes, &matches, self.settings.mode.as_deref());
        let Some(mode) = detection.mode.as_deref().and_then(|name| modes.get(name)) else {
            return Err(Box::new(GitHubOutcome::new(RunConclusion::Skipped, detection.reason)));
        };
        let left = |conclusion, reason: String| {
            let mode = Some(mode.name.clone());
            Box::new(GitHubOutcome { mode, ..GitHubOutcome::new(conclusion, reason) })
        };
        if let Some(reason) = base::fork_skip_reason(context) {
            return Err(left(RunConclusion::Skipped, reason));
        }
        let answers =
            lookups::look_up_permissions(self.client, context, &self.settings.rules).await;
        let admitted = decide_admission(context, &answers, &self.settings.rules);
        let is_pull = context.entity.as_ref().is_some_and(|entity| entity.is_pull);
        let admission = match admitted.admission {
            RunAdmission::Refused { reason } => return Err(left(RunConclusion::Refused, reason)),
            // Code from a fork is read, but never run. A mode without a branch changes nothing.
            _ if is_pull && context.is_fork() != Some(false) => RunAdmission::Read,
            _ if mode.execution.requires_branch == RequiresBranch::Never => RunAdmission::Read,
            admission => admission,
        };
        if let Some(why) = self.missing_sandbox_reason(&admission) {
            return Err(left(RunConclusion::Failed, why));
        }
        // Tasks are worked on unattended. With read-only rights they would all fail.
        if mode.execution.supports_continuous && admission != RunAdmission::Write {
            let (mode, actor) = (&mode.name, &context.actor.login);
            let reason = format!(
                "the mode `{mode}` works through tasks, and {actor} may not have work done here"
            );
            return Err(left(RunConclusion::Refused, reason));
        }
        let trigger = matches.iter().find(|found| mode.triggers.contains(&found.trigger)).cloned();
        let mut warnings = admitted.warnings;
        warnings.extend(modes.warnings.iter().cloned());
        Ok(AdmittedEvent { context, mode, admission, answers, trigger, warnings })
    }
}

impl GitHubRunContext<'_> {
    /// Returns the reason the agents of this run cannot be restricted to the rights of the actor;
    /// `None` if they can. An external agent without a sandbox can read every file of the machine,
    /// even if it is not asked to change anything.
    fn missing_sandbox_reason(&self, admission: &RunAdmission) -> Option<String> {
        let step_agents = [&self.request.implementer, &self.request.reviewer];
        let words = step_agents.iter().filter_map(|step_agent| step_agent.backend.as_deref());
        let kinds =
            words.filter_map(|word| BackendKind::from_name(word.split(':').next().unwrap_or(word)));
        let loose = kinds.into_iter().find(|kind| !kind.is_confined())?;
        let (name, own) = (loose.name(), "our own loop (`--backend api`) can");
        match (admission, self.settings.walls) {
            (RunAdmission::Write, SandboxRequirement::GivenUp) => None,
            (RunAdmission::Write, SandboxRequirement::Needed) => Some(format!(
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
struct AdmittedEvent<'a> {
    context: &'a GitHubEventContext,
    mode: &'a GitHubMode,
    admission: RunAdmission,
    answers: KnownPermissions,
    trigger: Option<TriggerMatch>,
    /// Warnings for people, whatever the outcome is.
    warnings: Vec<String>,
}

/// A piece of work on GitHub.
struct WorkOrder {
    /// The name shown to people.
    name: String,
    /// The task in one line.
    title: String,
    prompt: ModePrompt,
    grant: AgentGrant,
    /// True if an answer without changes is a valid result.
    answer: bool,
    /// The plan to work through instead of the prompt.
    plan: Option<Utf8PathBuf>,
    /// The task list and the id of the box that is ticked when the work is done.
    tick: Option<(Utf8PathBuf, String)>,
    /// The text that skills are selected by.
    topic: String,
    /// The issue or pull request it is for.
    about: Option<u64>,
    limits: Limits,
}

impl WorkOrder {
    /// Returns the label in the plan and in commits. The title of an issue is not used, since
    /// anyone may have written it: in a plan or a commit message it could load skills, skip
    /// workflows or close issues.
    fn plan_label(&self) -> String {
        match self.about {
            None => self.title.clone(),
            Some(_) => format!("Work on {}", self.name.replace('-', " ")),
        }
    }
}

impl GitHubRunContext<'_> {
    /// Does the work that an event asks for, and answers it.
    async fn answer_event(
        &self,
        call: &AdmittedEvent<'_>,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let (tracking, notes) = self.begin_tracking(call).await;
        let run_url = call.context.run.url.clone();
        let work = self.do_event_work(call, shutdown);
        let mut outcome = match tracking {
            None => work.await,
            Some(tracking) => {
                let (phrases, secrets) = (self.trigger_phrases(), self.all_secrets());
                let rules =
                    NeutraliseRules { triggers: &phrases, secrets: &secrets, image_host: None };
                let saying = |outcome: &GitHubOutcome| {
                    let ours = render::render_comment(outcome, run_url.as_deref(), &rules);
                    (ours, outcome.answer.clone().unwrap_or_default())
                };
                let (mut outcome, ended) = tracking.track_work(work, saying).await;
                outcome.notes.extend(ended.errors.iter().map(ToString::to_string));
                outcome
            }
        };
        outcome.notes.extend(notes);
        // No worker resumes waiting work here, so waiting also ends in a dead letter. After a
        // cancellation the user knows already.
        if !outcome.conclusion.is_fine() && !shutdown.is_cancelled() {
            self.add_event_letter(call, &mut outcome).await;
        }
        outcome
    }

    async fn do_event_work(
        &self,
        call: &AdmittedEvent<'_>,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let wanted = match self.event_work_order(call).await {
            Ok(wanted) => wanted,
            Err(error) => return GitHubOutcome::new(RunConclusion::Failed, error.to_string()),
        };
        let notes = describe_removed(&wanted.prompt);
        let mut outcome = self.deliver_work(call, wanted, shutdown).await;
        outcome.notes.extend(notes.into_iter().chain(call.warnings.iter().cloned()));
        outcome
    }

    /// Builds the prompt and the parameters of the work.
    async fn event_work_order(&self, call: &AdmittedEvent<'_>) -> Result<WorkOrder, ClientError> {
        let context = call.context;
        let own = |login: &str| self.settings.rules.is_own(login);
        let (thread, answers) =
            lookups::fetch_thread(self.client, context, call.answers.clone(), &own).await?;
        let diff = match &context.entity {
            Some(entity) if entity.is_pull => Some(self.pull_diff(entity.number).await?),
            _ => None,
        };
        let grant = decide_grant(call.mode, &call.admission, &self.settings.network);
        let facts = PromptFacts { thread, answers, diff, ..self.prompt_facts(call, &grant) };
        let prompt = render_prompt(call.mode, context, &self.settings.triggers, &facts);
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
        let (plan, tick, topic) = (None, None, self.event_topic(context));
        Ok(WorkOrder { name, title, prompt, grant, answer: true, plan, tick, topic, about, limits })
    }

    /// Returns the subject of an event, without the text that the mode adds.
    fn event_topic(&self, context: &GitHubEventContext) -> String {
        let prompt = crate::trigger::find_prompt(context, &self.settings.triggers);
        let said = context.said.as_ref().map(|said| said.text.as_str());
        let entity = context.entity.as_ref();
        let entity = entity.into_iter().flat_map(|entity| [&*entity.title, &*entity.body]);
        let all: Vec<&str> = prompt.into_iter().chain(said).chain(entity).collect();
        all.join("\n")
    }

    /// Returns the diff of a pull request at the commit that the agent gets. Falls back to GitHub
    /// if the local history does not contain the merge base.
    async fn pull_diff(&self, number: u64) -> Result<String, ClientError> {
        let from_git = async {
            let (base, head) = (&self.ground.base, self.ground.head.as_ref()?);
            let from = self.checkout.merge_base(base, head).await.ok()??;
            let of = DiffTarget::Commits { from, to: head.clone() };
            self.checkout.diff(&of, PROMPT_DIFF_BYTES_MAX + 1).await.ok()
        };
        match from_git.await {
            Some(diff) => Ok(diff.text),
            None => self.client.get_pull_diff(number).await,
        }
    }

    fn prompt_facts(&self, call: &AdmittedEvent<'_>, grant: &AgentGrant) -> PromptFacts {
        let request = self.request_for(&call.admission);
        let checks = request.checks.iter().chain(&request.final_checks);
        PromptFacts {
            nonce: self.nonce.to_owned(),
            trigger: call.trigger.clone(),
            admission: Some(call.admission.clone()),
            answers: call.answers.clone(),
            base_branch: Some(self.ground.base_ref.clone()),
            branch: Some(format!("{}…", self.settings.branch_prefix)),
            limits: budget::describe_limits(&self.limits),
            checks: checks.map(|check| check.name.clone()).collect(),
            tools: grant.tools.clone(),
            ..PromptFacts::default()
        }
    }

    fn trigger_phrases(&self) -> Vec<&str> {
        vec![self.settings.triggers.phrase.as_str()]
    }

    fn all_secrets(&self) -> Vec<ApiSecret> {
        let token = self.client.token();
        let all = token.into_iter().chain(&self.secrets).cloned();
        // The encoded form in which git sends the token is as sensitive as the token.
        all.chain(token.map(publish::encode_token)).collect()
    }

    /// Starts the tracking comment on the issue or pull request.
    async fn begin_tracking(&self, call: &AdmittedEvent<'_>) -> (Option<RunTracking>, Vec<String>) {
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
            triggers: self.trigger_phrases().into_iter().map(str::to_owned).collect(),
            secrets: self.all_secrets(),
        };
        let ours = "Working on it.";
        let saying = super::tracking::CommentText { ours, theirs: "" };
        let (tracking, errors) =
            RunTracking::begin_tracking(self.client.clone(), settings, saying).await;
        (Some(tracking), errors.iter().map(ToString::to_string).collect())
    }
}

/// Describes what was removed from the texts in a prompt, for people.
fn describe_removed(prompt: &ModePrompt) -> Option<String> {
    let all: Vec<String> = prompt
        .removed
        .iter()
        .map(|(place, removed)| {
            format!("{} × {} in `{place}`", removed.count, removed.what.describe())
        })
        .collect();
    (!all.is_empty()).then(|| format!("taken out of what was written: {}", all.join(", ")))
}
