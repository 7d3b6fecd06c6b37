//! The shapes of `rep github … --json`.

use repertoire_github::mode::{Detection, Execution, ModeOrigin, Tracking};
use repertoire_github::actor::Admitted;
use repertoire_github::stranger::Hidden;
use repertoire_github::trigger::Match;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

/// `rep github detect --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DetectJson {
    /// The event with what happened, such as `issues.opened`.
    pub event: String,
    /// `owner/name`.
    pub repository: String,
    /// The issue or pull request that it is about.
    pub entity: Option<EntityJson>,
    /// Who caused it.
    pub actor: ActorJson,
    /// Who had it run again, if that is somebody else.
    pub rerun_by: Option<ActorJson>,
    /// The accounts whose permission would be asked for.
    pub asks: Vec<String>,
    /// What the actor would be admitted to, if `--permission` says what they may do.
    pub admitted: Option<Admitted>,
    /// Triggers that hold.
    pub triggers: Vec<Match>,
    /// Which mode answers, and why.
    pub detection: Detection,
    /// The mode that answers.
    pub mode: Option<ModeJson>,
    /// Whether the change comes from another repository; nothing if the event does not say it.
    pub fork: Option<bool>,
    /// What would be taken out of texts.
    pub removed: Vec<RemovedJson>,
    /// What the agent would be told, with `--prompt`.
    pub prompt: Option<PromptJson>,
    /// What somebody should know before trusting this.
    pub warnings: Vec<String>,
    /// What is wrong with the files of modes.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// An issue or a pull request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntityJson {
    /// `issue` or `pull_request`.
    pub kind: &'static str,
    /// Its number.
    pub number: u64,
}

/// An account.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActorJson {
    /// Its name.
    pub login: String,
    /// Whether it is a program.
    pub bot: bool,
}

/// The mode that answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModeJson {
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub origin: ModeOrigin,
    /// The tools of the run: for the permission that was given, or the most that there could be.
    pub tools: Vec<String>,
    /// Where it tells how far it is.
    pub tracking: Tracking,
    /// How its work is done.
    pub execution: Execution,
}

/// Something that would be taken out of a text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedJson {
    /// The placeholder that the text goes into.
    pub from: String,
    /// What it is.
    pub what: Hidden,
    /// How often.
    pub count: usize,
}

/// What the agent would be told.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptJson {
    /// About itself.
    pub system: String,
    /// What it is asked.
    pub user: String,
}
