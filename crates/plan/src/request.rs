//! What a plan loop is asked for. It is kept with the run, so any worker can take it up.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use repertoire_checks::declared::Check;
use crate::limits::TASK_LABEL_CHARS_MAX as TITLE_CHARS_MAX;

/// The word for runs of this driver.
pub const KIND: &str = "plan";

/// What a plan loop is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRequest {
    /// The plan, below the workspace. Empty for a task that is in no file.
    pub plan: Utf8PathBuf,
    /// The task, if it is in no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What the plan is for: files that prompts refer to, below the workspace.
    pub specs: Vec<Utf8PathBuf>,
    /// Other files that prompts refer to.
    pub context: Vec<Utf8PathBuf>,
    /// Words that replace the usual instructions; `SPEC_PATH` and `PLAN_PATH` in them are filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Who does the work.
    pub implementer: Hand,
    /// Who reviews it.
    pub reviewer: Hand,
    /// Whether work is reviewed before it counts.
    pub review: bool,
    /// What has to hold after every change.
    pub checks: Vec<Check>,
    /// What has to hold besides before the run is complete.
    pub final_checks: Vec<Check>,
    /// The branch to begin on; the current one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// What the branch of a run begins with.
    pub branch_prefix: String,
    /// Whether to begin although the checkout has changes, which stay behind.
    pub allow_dirty: bool,
    /// Files that git does not know and the worktree needs, as globs.
    pub copy: Vec<String>,
    /// A command that makes a new worktree ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Where the work goes in the end.
    pub ending: EndingWord,
    /// Whether to stop after one task.
    pub once: bool,
    /// How often and how long.
    pub bounds: Bounds,
    /// How skills are chosen.
    pub skills: SkillRules,
    /// How red checks are mended before an agent is asked, if at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improve: Option<Improve>,
}

impl Default for PlanRequest {
    fn default() -> Self {
        PlanRequest {
            plan: Utf8PathBuf::new(),
            asked: None,
            specs: Vec::new(),
            context: Vec::new(),
            instructions: None,
            implementer: Hand::default(),
            reviewer: Hand::default(),
            review: true,
            checks: Vec::new(),
            final_checks: Vec::new(),
            base_branch: None,
            branch_prefix: "rep/".to_owned(),
            allow_dirty: false,
            copy: Vec::new(),
            setup: None,
            ending: EndingWord::Keep,
            once: false,
            bounds: Bounds::default(),
            skills: SkillRules::default(),
            improve: None,
        }
    }
}

/// A task that is in no file: somebody asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The task in a line.
    pub title: String,
    /// All that agents are told of it.
    pub words: String,
    /// What it is about, for choosing skills; its words, if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// Whether an answer will do, without a change.
    pub answer: bool,
}

impl Asked {
    /// What says what it is about.
    pub fn about(&self) -> &String {
        if self.topic.is_empty() { &self.words } else { &self.topic }
    }

    /// The plan that has this task and no other. Whatever the title says, it stays one line and one task.
    pub fn plan(&self) -> String {
        let (title, _) = repertoire_text::invisible::removed(&self.title);
        let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let line: String = line.chars().take(TITLE_CHARS_MAX).collect();
        format!("- [ ] {}\n", if line.is_empty() { "What was asked for" } else { &line })
    }
}

/// Who executes a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hand {
    /// The agent; `default` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The backend, as `--backend` takes it; our own loop if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may do: `read-only`, `accept-edits` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What it is told before everything else, in place of the agent's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools that it has; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether instruction files of the folder that it works in are nothing to it, where it can be told.
    pub ignore_project_rules: bool,
    /// What is allowed besides.
    pub allow: Vec<String>,
    /// What is forbidden besides.
    pub deny: Vec<String>,
}

/// How red checks are mended before an agent is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Improve {
    /// The repository that failures and fixes are remembered for.
    pub scope: String,
    /// Attempts to mend one failure.
    pub attempts_max: u32,
    /// Whether what mends may reach the network, to install what a lock file names.
    pub network: bool,
    /// Whether a run that is given up becomes a dead letter. Who hands in what the run was for needs none of the run itself.
    pub letters: bool,
}

impl Default for Improve {
    fn default() -> Self {
        Improve { scope: String::new(), attempts_max: 3, network: false, letters: false }
    }
}

/// Where the work goes in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndingWord {
    /// It stays in its worktree, on its branch.
    #[default]
    Keep,
    /// It is merged into the branch that it began on.
    Merge,
    /// It is merged as one commit.
    Squash,
    /// Its branch stays and the worktree goes: ready for a pull request.
    Branch,
}

impl EndingWord {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            EndingWord::Keep => "keep",
            EndingWord::Merge => "merge",
            EndingWord::Squash => "squash",
            EndingWord::Branch => "branch",
        }
    }

    /// The ending of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [EndingWord::Keep, EndingWord::Merge, EndingWord::Squash, EndingWord::Branch]
            .into_iter()
            .find(|ending| ending.as_str() == word)
    }
}

/// How often and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Attempts at a task before it is marked failed.
    pub attempts_max: u32,
    /// Failed steps in a row before the run fails.
    pub failures_max: u32,
    /// Implementations and reviews of a run.
    pub iterations_max: u32,
    /// Times that the watchdog may put other words before a prompt.
    pub rewrites_max: u32,
    /// Longest time of one step of an agent.
    pub step_ms_max: u64,
    /// Checks that run at once.
    pub checks_at_once: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            attempts_max: 5,
            failures_max: 6,
            iterations_max: 200,
            rewrites_max: 2,
            step_ms_max: 60 * 60 * 1000,
            checks_at_once: 2,
        }
    }
}

/// How skills are chosen for a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillRules {
    /// Whether there are any.
    pub enabled: bool,
    /// Whether skills are chosen that nobody named.
    pub chosen: bool,
    /// Most of them for an implementation.
    pub impl_max: usize,
    /// Most of them for a review.
    pub review_max: usize,
    /// Most characters of each.
    pub body_chars_max: usize,
    /// Whether `references/` are loaded with them.
    pub references: bool,
    /// Most skills that a prompt lists by name; those that fit best come first.
    pub listed_max: usize,
}

impl Default for SkillRules {
    fn default() -> Self {
        SkillRules {
            enabled: true,
            chosen: true,
            impl_max: 2,
            review_max: 1,
            body_chars_max: 20_000,
            references: false,
            listed_max: 50,
        }
    }
}
