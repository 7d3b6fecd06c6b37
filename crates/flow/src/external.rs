//! Script skills: detects the script, builds its calls, parses its output into the step model, and tracks the progress
//! of a run. Nothing here starts a process.
//!
//! Such a script takes `--step N --total-steps M` and prints what to do and the command for the next step. Its output
//! is parsed leniently, because it is not escaped and comes in several forms. Its command lines are only hints:
//! [`ScriptProgress`] keeps the counters, so that a script that forgets them still ends.

use serde::{Deserialize, Serialize};

use crate::limits::SCRIPT_STEPS_MAX;
use crate::step::{QrStatus, ShellCommand};

mod output;
mod progress;
mod scan;

pub use output::{ScriptOutputError, parse_output};
pub use progress::{
    ProgressError, ScriptProgress, ScriptStatus, advance_script, apply_shown_step, resume_script,
};

/// A script that prints the steps of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepScript {
    /// The program and the script; the arguments of a call are appended.
    pub argv: Vec<String>,
    /// The directory the skill says to call it in, if it says so.
    pub working_dir: Option<String>,
    /// The number of steps, if known.
    pub total: Option<usize>,
    pub numbering: StepNumbering,
    /// The option for the number of the step.
    pub step_option: String,
    /// Arguments of every call. The caller has to fill in those in `<…>`, `[…]` or with `$`.
    pub arguments: Vec<String>,
}

/// The number of a script's first step. Everything here counts from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepNumbering {
    FromZero,
    #[default]
    FromOne,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCall {
    /// Counted from 1.
    pub step: usize,
    /// The number of steps, if known.
    pub total: Option<usize>,
    /// The state of the review loop.
    pub flags: QrFlags,
    /// Further arguments of this call.
    pub arguments: Vec<String>,
}

/// The options `--qr-iteration`, `--qr-fail` and `--qr-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QrFlags {
    /// The iteration of the loop, starting at 1. The first is not passed on.
    pub iteration: u32,
    /// True if the step repairs.
    pub fail: bool,
    /// The result of the review.
    pub status: Option<QrStatus>,
}

impl Default for QrFlags {
    fn default() -> Self {
        QrFlags { iteration: 1, fail: false, status: None }
    }
}

impl ScriptCall {
    pub fn first_call(script: &StepScript) -> Self {
        ScriptCall {
            step: 1,
            total: script.total,
            flags: QrFlags::default(),
            arguments: Vec::new(),
        }
    }
}

impl StepNumbering {
    /// Converts a step number of the script to one that counts from 1.
    pub fn to_one_based(self, number: usize) -> usize {
        match self {
            StepNumbering::FromZero => number.saturating_add(1),
            StepNumbering::FromOne => number,
        }
    }

    fn to_script_number(self, number: usize) -> usize {
        match self {
            StepNumbering::FromZero => number.saturating_sub(1),
            StepNumbering::FromOne => number,
        }
    }
}

/// Returns true if the caller has to fill in this argument.
pub fn is_placeholder(argument: &str) -> bool {
    let inside = |open, close| argument.starts_with(open) && argument.ends_with(close);
    argument.contains('$') || inside('<', '>') || inside('[', ']') || inside('{', '}')
}

/// Detects the script a skill runs: the first one its text calls, else `scripts/NAME.py`. Only modules (`-m`) and
/// scripts in `files` (paths in the skill's folder) are considered.
pub fn detect_script(name: &str, body: &str, files: &[String]) -> Option<StepScript> {
    detect_scripts(name, body, files).into_iter().next()
}

/// Detects all scripts that a skill's text calls, each once, in the order of the text.
pub fn detect_scripts(name: &str, body: &str, files: &[String]) -> Vec<StepScript> {
    let mut found: Vec<StepScript> = Vec::new();
    for (line, working_dir) in scan::find_invocations(body) {
        let Some(script) = parse_invocation(&line, working_dir, files) else { continue };
        match found.iter_mut().find(|known| known.argv == script.argv) {
            // A later call may have the numbers that an example with placeholders lacks.
            Some(known) if known.total.is_none() => *known = script,
            Some(_) => {}
            None => found.push(script),
        }
    }
    if found.is_empty() {
        found.extend(find_by_name(name, files));
    }
    found
}

fn parse_invocation(
    line: &str,
    working_dir: Option<String>,
    files: &[String],
) -> Option<StepScript> {
    let words = ShellCommand::split_line(line)
        .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    let (program, mut rest) = words.split_first()?;
    let mut argv = vec![program.clone()];
    if rest.first().is_some_and(|word| word == "-m") {
        argv.extend(rest.get(..2)?.iter().cloned());
        rest = &rest[2..];
    } else {
        argv.push(find_in_folder(rest.first()?, files)?);
        rest = &rest[1..];
    }
    let said = ScriptArguments::parse_words(rest);
    let step = said.step?;
    Some(StepScript {
        argv,
        working_dir,
        total: said.total.filter(|total| (1..=SCRIPT_STEPS_MAX).contains(total)),
        numbering: match step {
            StepArgument::Number(0) => StepNumbering::FromZero,
            StepArgument::Number(_) | StepArgument::Placeholder => StepNumbering::FromOne,
        },
        step_option: said.step_option,
        arguments: keep_options(said.arguments),
    })
}

/// Keeps options and their values only: in prose, other words may follow a command.
fn keep_options(words: Vec<String>) -> Vec<String> {
    let mut may_be_value = false;
    let belongs = |word: &String| {
        let is_option = word.starts_with("--");
        std::mem::replace(&mut may_be_value, is_option) || is_option
    };
    words.into_iter().filter(belongs).collect()
}

/// Finds the file in the skill's folder that a path refers to, ignoring any leading directories.
fn find_in_folder(path: &str, files: &[String]) -> Option<String> {
    let means = |file: &&String| {
        path == file.as_str()
            || path.strip_suffix(file.as_str()).is_some_and(|rest| rest.ends_with('/'))
    };
    let same_name = |file: &&String| {
        !path.contains('/') && file.rsplit('/').next().is_some_and(|name| name == path)
    };
    let longest = files.iter().filter(means).max_by_key(|file| file.len());
    longest.or_else(|| files.iter().find(same_name)).cloned()
}

fn find_by_name(name: &str, files: &[String]) -> Option<StepScript> {
    let wanted = [name.to_owned(), name.replace('-', "_")].map(|stem| format!("scripts/{stem}.py"));
    let file = files.iter().find(|file| wanted.contains(file))?;
    Some(StepScript {
        argv: vec!["python3".to_owned(), file.clone()],
        working_dir: None,
        total: None,
        numbering: StepNumbering::FromOne,
        step_option: "--step".to_owned(),
        arguments: Vec::new(),
    })
}

/// Builds the command line of a call.
pub fn build_command(script: &StepScript, call: &ScriptCall) -> Vec<String> {
    let mut argv = script.argv.clone();
    let step = script.numbering.to_script_number(call.step);
    argv.extend([script.step_option.clone(), step.to_string()]);
    if let Some(total) = call.total.or(script.total) {
        argv.extend(["--total-steps".to_owned(), total.to_string()]);
    }
    if call.flags.iteration > 1 {
        argv.extend(["--qr-iteration".to_owned(), call.flags.iteration.to_string()]);
    }
    if call.flags.fail {
        argv.push("--qr-fail".to_owned());
    }
    if let Some(status) = call.flags.status {
        argv.extend(["--qr-status", status.as_str()].map(str::to_owned));
    }
    let repeated = |option: &String| option.starts_with("--") && call.arguments.contains(option);
    let mut fixed = script.arguments.iter().peekable();
    while let Some(word) = fixed.next() {
        // An argument of this call overrides the same option of the script.
        if repeated(word) {
            fixed.next_if(|value| !value.starts_with("--"));
            continue;
        }
        argv.push(word.clone());
    }
    argv.extend(call.arguments.iter().cloned());
    argv
}

/// The parsed arguments of a script's command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ScriptArguments {
    step: Option<StepArgument>,
    step_option: String,
    total: Option<usize>,
    /// True if there is any option of a review loop.
    knows_review: bool,
    fail: bool,
    status: Option<QrStatus>,
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepArgument {
    Number(usize),
    Placeholder,
}

impl ScriptArguments {
    fn parse_words(words: &[String]) -> Self {
        let mut said =
            ScriptArguments { step_option: "--step".to_owned(), ..ScriptArguments::default() };
        let mut words = words.iter().flat_map(|word| match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => vec![option, value],
            _ => vec![word.as_str()],
        });
        while let Some(word) = words.next() {
            match word {
                "--step" | "--step-number" => {
                    word.clone_into(&mut said.step_option);
                    said.step = words.next().map(|value| match value.parse() {
                        Ok(number) => StepArgument::Number(number),
                        Err(_) => StepArgument::Placeholder,
                    });
                }
                "--total-steps" => said.total = words.next().and_then(|value| value.parse().ok()),
                "--qr-iteration" => {
                    words.next();
                    said.knows_review = true;
                }
                "--qr-fail" => (said.fail, said.knows_review) = (true, true),
                "--qr-status" => {
                    said.status = words.next().and_then(QrStatus::parse);
                    said.knows_review = true;
                }
                other => said.arguments.push(other.to_owned()),
            }
        }
        said
    }

    fn step_number(&self) -> Option<usize> {
        match self.step {
            Some(StepArgument::Number(number)) => Some(number),
            Some(StepArgument::Placeholder) | None => None,
        }
    }
}

#[cfg(test)]
mod tests;
