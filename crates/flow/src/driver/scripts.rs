//! Runs of script workflows: the script prints its steps, and the state of the run is kept here.
//!
//! A script runs in the sandbox, once per step. Its output is stored, so that a step that is
//! requested twice is shown twice and run once. Command lines in its output are replaced by ours.

use crate::external::{
    self, OutputError, Progress, ProgressError, Script, Standing, is_placeholder,
};
use crate::state::RunId;
use crate::step::{ChoiceView, Command, Next, StepView, Way};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::Ended;
use repertoire_sandbox::workplace::Workplace;
use repertoire_text::fs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

use super::programs::{ProgramError, run_program};
use super::store::{Head, RunError, Runs, Version, lock, write};
use crate::limits::{RUN_FILE_BYTES_MAX, SCRIPT_TIMEOUT};

/// The file of a script run.
pub(super) const SCRIPT: &str = "script.json";
const VERSION: u32 = 1;

/// A run of a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptRun {
    version: u32,
    pub head: Head,
    pub run: RunId,
    /// The name of the skill.
    pub workflow: String,
    /// The folder of the skill.
    skill_dir: Utf8PathBuf,
    script: Script,
    pub progress: Progress,
    /// The parsed output of the script for the current step.
    shown: StepView,
    /// The last report, so that repeating it changes nothing.
    last: Option<Reported>,
    /// True if a person has ended the run.
    aborted: bool,
}

/// A report about a step of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptReport {
    pub outcome: Option<String>,
    /// Arguments to pass to the script, by the names of their options.
    pub set: BTreeMap<String, String>,
}

/// A report with its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reported {
    turn: u32,
    report: ScriptReport,
}

/// The reason a script did not return its step. The run is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The stored run cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The script was not run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The script failed.
    #[error("`{command}` has failed: {how}")]
    Failed {
        command: String,
        /// The exit status, and the tail of the output.
        how: String,
    },
    /// The output of the script is not a step.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The step cannot be left this way.
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// The report is about another turn.
    #[error("{}; the run is at turn {now}", if at > now { format!("there was no turn {at} yet") } else { format!("turn {at} is over, and was ended by another report") })]
    OtherTurn {
        /// The turn of the report.
        at: u32,
        /// The current turn of the run.
        now: u32,
    },
    /// Required arguments of the script are missing.
    #[error("the script needs {}", .0.join(", "))]
    Missing(
        /// The names of the missing arguments.
        Vec<String>,
    ),
    /// The script's next command has no such argument.
    #[error("the script's next command has no `--{name}`{}", if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) })]
    NoSuchArgument { name: String, known: Vec<String> },
    /// The run does not wait for a decision.
    #[error("the run waits for no decision")]
    NotWaiting,
}

/// The parameters of a script run to start.
pub struct BeginScript<'a> {
    /// A unique id.
    pub id: String,
    pub head: Head,
    /// The name of the skill.
    pub workflow: String,
    pub skill_dir: &'a Utf8Path,
    pub script: Script,
    /// Arguments, by the names of their options.
    pub arguments: BTreeMap<String, String>,
}

/// The execution environment of a script.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub workplace: &'a Workplace,
    pub cancel: &'a CancellationToken,
    /// The current time, in milliseconds since 1970.
    pub now_ms: u64,
}

impl Runs {
    /// Returns true if a run is of a script.
    pub fn is_script(&self, wanted: &str) -> Result<bool, RunError> {
        Ok(self.place(&self.resolve(wanted)?).join(SCRIPT).is_file())
    }

    /// Starts a script, and stores its first step.
    pub async fn start_script(
        &self,
        begin: BeginScript<'_>,
        stage: Stage<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let workflow = begin.workflow;
        if !begin.head.trusted {
            return Err(ProgramError::NotTrusted { workflow }.into());
        }
        let script = with_arguments(begin.script, &begin.arguments)?;
        let progress = Progress::start(&script);
        let skill_dir = begin.skill_dir.to_owned();
        let shown = show(&script, &progress, &skill_dir, stage).await?;
        let progress = external::shown(progress, &shown);
        let run = ScriptRun {
            version: VERSION,
            head: begin.head,
            run: RunId::new(&begin.id),
            workflow,
            skill_dir,
            script,
            progress,
            shown,
            last: None,
            aborted: false,
        };
        self.place_new(&begin.id, |made| keep(made, &run))?;
        Ok(run)
    }

    /// Reads a script run.
    pub fn open_script(&self, wanted: &str) -> Result<ScriptRun, RunError> {
        read(&self.place(&self.resolve(wanted)?))
    }

    /// Leaves a step of a script, and shows the next one. The current script is run: the caller
    /// must have checked that it is still trusted.
    pub async fn step_script(
        &self,
        wanted: &str,
        at: Option<u32>,
        report: ScriptReport,
        stage: Stage<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let id = self.resolve(wanted)?;
        let place = self.place(&id);
        let _held = lock(&place, &id)?;
        let run = read(&place)?;
        let now = run.progress.turn;
        let reported = Reported { turn: at.unwrap_or(now), report };
        if run.last.as_ref() == Some(&reported) {
            return Ok(run);
        }
        if reported.turn != now {
            return Err(ScriptError::OtherTurn { at: reported.turn, now });
        }
        let outcome = reported.report.outcome.as_deref();
        let mut progress = external::next(&run.progress, &run.shown, outcome)?;
        take_along(&mut progress.call.arguments, &reported.report.set)?;
        go(&place, run, progress, reported, stage).await
    }

    /// Applies a person's decision about a run that waits: continue once more, or abort.
    pub async fn decide_script(
        &self,
        wanted: &str,
        go_on: bool,
        stage: Stage<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let id = self.resolve(wanted)?;
        let place = self.place(&id);
        let _held = lock(&place, &id)?;
        let run = read(&place)?;
        if !go_on {
            let head = Head { updated_ms: stage.now_ms, ..run.head.clone() };
            let run = ScriptRun { aborted: true, head, ..run };
            keep(&place, &run)?;
            return Ok(run);
        }
        let progress = external::go_on(&run.progress).ok_or(ScriptError::NotWaiting)?;
        let report = Reported { turn: run.progress.turn, report: ScriptReport::default() };
        go(&place, run, progress, report, stage).await
    }
}

/// Runs the script for the next step, and stores the run.
async fn go(
    place: &Utf8Path,
    run: ScriptRun,
    progress: Progress,
    report: Reported,
    stage: Stage<'_>,
) -> Result<ScriptRun, ScriptError> {
    let (progress, shown) = match progress.standing {
        Standing::Active => {
            let shown = show(&run.script, &progress, &run.skill_dir, stage).await?;
            (external::shown(progress, &shown), shown)
        }
        Standing::Done | Standing::Stopped { .. } | Standing::Unrouted { .. } => {
            (progress, run.shown.clone())
        }
    };
    let head = Head { updated_ms: stage.now_ms, ..run.head.clone() };
    let run = ScriptRun { head, progress, shown, last: Some(report), ..run };
    keep(place, &run)?;
    Ok(run)
}

impl ScriptRun {
    /// The folder of the skill that contains the script.
    pub fn skill_dir(&self) -> &Utf8Path {
        &self.skill_dir
    }

    /// Returns `active`, `waiting`, `done` or `aborted`.
    pub fn status(&self) -> &'static str {
        match (&self.progress.standing, self.aborted) {
            (_, true) => "aborted",
            (Standing::Active, _) => "active",
            (Standing::Done, _) => "done",
            (Standing::Stopped { .. } | Standing::Unrouted { .. }, _) => "waiting",
        }
    }

    /// Returns the current step, with commands that name the run.
    pub fn view(&self) -> StepView {
        let mut view = self.shown.clone();
        view.workflow.clone_from(&self.workflow);
        view.run = Some(self.run.clone());
        view.turn = self.progress.turn;
        view.iteration = self.progress.iteration();
        view.status = self.status().to_owned();
        view.next = match (&self.progress.standing, view.next, self.aborted) {
            (_, _, true) => Next::Complete { message: "A person has ended the run.".to_owned() },
            (Standing::Done, _, _) => {
                Next::Complete { message: "The workflow is complete.".to_owned() }
            }
            (Standing::Stopped { step, iterations, .. }, _, _) => self.stopped(*step, *iterations),
            (Standing::Unrouted { about, wanted }, _, _) => {
                let meaning = match wanted {
                    Some(call) => {
                        format!("Go on with step {}, whatever the script says.", call.step)
                    }
                    None => "Take the workflow as complete.".to_owned(),
                };
                self.asked_of_person(about.clone(), &meaning)
            }
            (Standing::Active, Next::Ways { mut ways, .. }, _) => {
                for way in &mut ways {
                    let mut more: Vec<String> = Vec::new();
                    if let Some(outcome) = &way.outcome {
                        more.extend(["--outcome".to_owned(), outcome.clone()]);
                    }
                    for name in to_fill_in(&way.command.argv) {
                        more.extend(["--set".to_owned(), format!("{name}=VALUE")]);
                    }
                    way.command =
                        self.step_command(&more.iter().map(String::as_str).collect::<Vec<_>>());
                }
                Next::Ways { ways, on_error: None }
            }
            // The last step is left like every other one.
            (Standing::Active, Next::Complete { .. }, _) => {
                let (title, command) = ("the end".to_owned(), self.step_command(&[]));
                let way = Way { outcome: None, when: String::new(), to: None, title, command };
                Next::Ways { ways: vec![way], on_error: None }
            }
            (Standing::Active, other, _) => other,
        };
        if view.status != "active" {
            view.actions.clear();
        }
        view
    }

    fn stopped(&self, step: usize, iterations: u32) -> Next {
        let about = format!("step {step} has led back {iterations} times, as often as it may");
        self.asked_of_person(about, "Allow one more iteration.")
    }

    /// Returns the choice for a person: continue with this step, or abort the run.
    fn asked_of_person(&self, about: String, continue_means: &str) -> Next {
        Next::Person {
            about,
            choices: vec![
                self.choice_view("continue", continue_means),
                self.choice_view("abort", "End the run."),
            ],
            questions: Vec::new(),
            command: None,
        }
    }

    fn choice_view(&self, word: &str, meaning: &str) -> ChoiceView {
        let argv = ["rep", "workflow", "resume", self.run.as_str(), "--choice", word];
        ChoiceView {
            choice: word.to_owned(),
            meaning: meaning.to_owned(),
            command: Command::new(argv),
        }
    }

    /// Returns the command that reports the current step, with further arguments.
    fn step_command(&self, more: &[&str]) -> Command {
        let turn = self.progress.turn.to_string();
        let words = ["rep", "workflow", "step", self.run.as_str(), "--at", &turn];
        Command::new(words.into_iter().chain(more.iter().copied()))
    }
}

/// Returns the options of a command whose values are instructions for the agent: sentences and
/// placeholders.
fn to_fill_in(argv: &[String]) -> Vec<&str> {
    let is_open = |value: &String| is_placeholder(value) || value.contains(' ');
    let pairs = argv.windows(2).filter(|pair| pair[0].starts_with("--") && is_open(&pair[1]));
    pairs.map(|pair| pair[0].trim_start_matches('-')).collect()
}

/// Replaces the values of arguments in the script's command by the reported ones.
fn take_along(
    arguments: &mut [String],
    given: &BTreeMap<String, String>,
) -> Result<(), ScriptError> {
    for (name, value) in given {
        let option = format!("--{name}");
        let at = arguments.iter().position(|word| *word == option);
        let Some(old) = at.and_then(|at| arguments.get_mut(at + 1)) else {
            let known = arguments.iter().filter(|word| word.starts_with("--")).cloned().collect();
            return Err(ScriptError::NoSuchArgument { name: name.clone(), known });
        };
        old.clone_from(value);
    }
    Ok(())
}

/// Fills in the caller's arguments. An option that the skill's text does not name is appended.
fn with_arguments(
    mut script: Script,
    given: &BTreeMap<String, String>,
) -> Result<Script, ScriptError> {
    for (name, value) in given {
        let option = format!("--{name}");
        match script.arguments.iter().position(|word| *word == option) {
            Some(at) => match script.arguments.get_mut(at + 1) {
                Some(old) if !old.starts_with("--") => old.clone_from(value),
                _ => script.arguments.insert(at + 1, value.clone()),
            },
            None => script.arguments.extend([option, value.clone()]),
        }
    }
    let pairs = script.arguments.windows(2);
    let missing: Vec<String> = pairs
        .filter(|pair| is_placeholder(&pair[1]))
        .map(|pair| format!("`--param {}=…`", pair[0].trim_start_matches('-')))
        .collect();
    if !missing.is_empty() {
        return Err(ScriptError::Missing(missing));
    }
    Ok(script)
}

/// Runs the script for the current step, and parses its output.
async fn show(
    script: &Script,
    progress: &Progress,
    skill_dir: &Utf8Path,
    stage: Stage<'_>,
) -> Result<StepView, ScriptError> {
    let mut argv = external::command(script, &progress.call);
    let mut workplace = stage.workplace.clone();
    if argv.get(1).is_some_and(|word| word == "-m") {
        // Python finds modules relative to the working folder that the skill's text names. That
        // folder may be relative to the skill or to any folder above it.
        let named = script.working_dir.as_deref().unwrap_or("scripts");
        let bases = skill_dir.ancestors().chain([workplace.dir.as_path()]);
        let found = bases.map(|base| base.join(named)).find(|dir| dir.is_dir());
        workplace.dir = found.unwrap_or_else(|| skill_dir.to_owned());
    } else if let Some(file) = argv.get_mut(1) {
        *file = skill_dir.join(&*file).into_string();
    }
    // A script may use a library that several skills share, up to two folders above its own.
    for dir in skill_dir.ancestors().take(3) {
        workplace.add_readable(dir);
    }
    workplace.environment.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
    let line = Command::new(argv.iter().map(String::as_str)).line;
    let program = argv.remove(0);
    let ended = run_program(&program, argv, &workplace, SCRIPT_TIMEOUT, stage.cancel).await?;
    if ended.code != Some(0) || ended.stopped.is_some() {
        return Err(ScriptError::Failed { command: line, how: super::programs::note(&ended) });
    }
    let view = external::parse(&text(&ended), script.numbering)?;
    Ok(view)
}

fn text(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stdout.bytes).into_owned()
}

fn keep(place: &Utf8Path, run: &ScriptRun) -> Result<(), RunError> {
    let path = place.join(SCRIPT);
    let bytes = serde_json::to_vec(run)
        .map_err(|error| RunError::Io { path: path.clone(), source: error.into() })?;
    write(&path, &bytes)
}

pub(super) fn read(place: &Utf8Path) -> Result<ScriptRun, RunError> {
    let path = place.join(SCRIPT);
    let damaged = |message: String| RunError::Damaged { path: path.clone(), message };
    let text =
        fs::read_text(&path, RUN_FILE_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
    let Version { version } =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if version > u64::from(VERSION) {
        return Err(RunError::Newer { path, version });
    }
    serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))
}
