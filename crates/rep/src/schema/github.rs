//! The types of `rep github … --json`.

use repertoire_github::actor::AdmissionDecision;
use repertoire_github::mode::{ModeDetection, ModeExecution, ModeOrigin, ModeTracking};
use repertoire_github::trigger::TriggerMatch;
use repertoire_github::untrusted::HiddenKind;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep github detect --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GithubDetectJson {
    /// The event with its action, such as `issues.opened`.
    pub event: String,
    /// The repository, as `owner/name`.
    pub repository: String,
    /// The issue or pull request that the event is about.
    pub entity: Option<GithubEntityJson>,
    /// The account that caused the event.
    pub actor: GithubActorJson,
    /// The account that started the workflow again, if it is a different one.
    pub rerun_by: Option<GithubActorJson>,
    /// The accounts whose permission would be looked up.
    pub asks: Vec<String>,
    /// The actor's admission; null if it depends on a permission that `--permission` does not give.
    pub admitted: Option<AdmissionDecision>,
    /// The triggers that match.
    pub triggers: Vec<TriggerMatch>,
    /// The detected mode, and why.
    pub detection: ModeDetection,
    /// The mode that would respond.
    pub mode: Option<GithubModeJson>,
    /// True if the change comes from another repository; null if the event does not say.
    pub fork: Option<bool>,
    /// Text that would be removed from the event's texts.
    pub removed: Vec<RemovedTextJson>,
    /// The prompt that the agent would get, with `--show-prompt`.
    pub prompt: Option<DetectPromptJson>,
    /// Warnings about the modes and the rules of admission.
    pub warnings: Vec<String>,
    /// Findings about the files of modes.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// An issue or a pull request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GithubEntityJson {
    /// `issue` or `pull_request`.
    pub kind: &'static str,
    /// The number of the issue or pull request.
    pub number: u64,
}

/// An account.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GithubActorJson {
    /// The login name.
    pub login: String,
    /// True if the account is a bot.
    pub bot: bool,
}

/// The mode that would respond.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GithubModeJson {
    /// The name of the mode.
    pub name: String,
    /// The origin of the mode.
    pub origin: ModeOrigin,
    /// The tools of the run, for the given permission or for the highest possible one.
    pub tools: Vec<String>,
    /// The tracking comment and the status label of the mode.
    pub tracking: ModeTracking,
    /// The rules of the mode on branches and pull requests.
    pub execution: ModeExecution,
}

/// Text that would be removed from a text of the event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedTextJson {
    /// The placeholder that the text is inserted for.
    pub from: String,
    /// The kind of hidden text.
    pub what: HiddenKind,
    /// Number of occurrences.
    pub count: usize,
}

/// The prompt that the agent would get.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DetectPromptJson {
    /// The system prompt.
    pub system: String,
    /// The user prompt.
    pub user: String,
}
