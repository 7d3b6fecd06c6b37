//! Skills that are scripts: which script, how it is called, what it prints as the same step model, and how far a run of it
//! has come. Nothing here starts a process.
//!
//! Such a script takes `--step N --total-steps M` and prints what to do and the command for the next step. What it prints is
//! read leniently, because it is not escaped and comes in several forms. Its command lines are taken as hints: counters are
//! kept by [`Progress`], so that a script that forgets them still ends.

use serde::{Deserialize, Serialize};

use crate::limits::SCRIPT_STEPS_MAX;
use crate::step::{Command, QrStatus};

mod output;
mod progress;
mod scan;

pub use output::{OutputError, parse};
pub use progress::{Progress, ProgressError, Standing, go_on, next, shown};

/// A script that tells steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The program and the script, to which everything else is added.
    pub argv: Vec<String>,
    /// The folder that it says it is called in, where it says so.
    pub working_dir: Option<String>,
    /// How many steps it has, if that is known.
    pub total: Option<usize>,
    /// Whether it counts from 0 or from 1.
    pub numbering: Numbering,
    /// The option for the number of the step.
    pub step_option: String,
    /// Other arguments that every call has. Those in `<…>`, `[…]` or with `$` are the caller's to fill in.
    pub arguments: Vec<String>,
}

/// Where a script starts to count. Everything here counts from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbering {
    /// Its first step is 0.
    FromZero,
    /// Its first step is 1.
    #[default]
    FromOne,
}

/// One call of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The step, from 1.
    pub step: usize,
    /// How many there are.
    pub total: Option<usize>,
    /// Where its review loop is.
    pub flags: QrFlags,
    /// Other arguments for this call.
    pub arguments: Vec<String>,
}

/// What the options `--qr-iteration`, `--qr-fail` and `--qr-status` say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QrFlags {
    /// Which time round the loop; the first is 1 and is not said.
    pub iteration: u32,
    /// Whether the step repairs.
    pub fail: bool,
    /// What the review has found.
    pub status: Option<QrStatus>,
}

impl Default for QrFlags {
    fn default() -> Self {
        QrFlags { iteration: 1, fail: false, status: None }
    }
}

impl Call {
    /// The first call.
    pub fn first(script: &Script) -> Self {
        Call { step: 1, total: script.total, flags: QrFlags::default(), arguments: Vec::new() }
    }
}

impl Numbering {
    /// A number of the script, from 1.
    pub fn to_ours(self, number: usize) -> usize {
        match self {
            Numbering::FromZero => number.saturating_add(1),
            Numbering::FromOne => number,
        }
    }

    fn to_theirs(self, number: usize) -> usize {
        match self {
            Numbering::FromZero => number.saturating_sub(1),
            Numbering::FromOne => number,
        }
    }
}

/// Whether an argument is left for the caller to fill in.
pub fn is_placeholder(argument: &str) -> bool {
    let inside = |open, close| argument.starts_with(open) && argument.ends_with(close);
    argument.contains('$') || inside('<', '>') || inside('[', ']') || inside('{', '}')
}

/// The script that a skill runs: the first one that its text calls, else `scripts/NAME.py`. Only scripts that are among
/// `files`, which are paths in the skill's folder, and modules (`-m`).
pub fn detect(name: &str, body: &str, files: &[String]) -> Option<Script> {
    detect_all(name, body, files).into_iter().next()
}

/// All scripts that a skill's text calls, each once, in the order of the text.
pub fn detect_all(name: &str, body: &str, files: &[String]) -> Vec<Script> {
    let mut found: Vec<Script> = Vec::new();
    for (line, working_dir) in scan::invocations(body) {
        let Some(script) = called(&line, working_dir, files) else { continue };
        match found.iter_mut().find(|known| known.argv == script.argv) {
            // A later call may say what an example with letters did not.
            Some(known) if known.total.is_none() => *known = script,
            Some(_) => {}
            None => found.push(script),
        }
    }
    if found.is_empty() {
        found.extend(by_name(name, files));
    }
    found
}

fn called(line: &str, working_dir: Option<String>, files: &[String]) -> Option<Script> {
    let words = Command::split(line)
        .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    let (program, mut rest) = words.split_first()?;
    let mut argv = vec![program.clone()];
    if rest.first().is_some_and(|word| word == "-m") {
        argv.extend(rest.get(..2)?.iter().cloned());
        rest = &rest[2..];
    } else {
        argv.push(in_folder(rest.first()?, files)?);
        rest = &rest[1..];
    }
    let said = Said::read(rest);
    let step = said.step?;
    Some(Script {
        argv,
        working_dir,
        total: said.total.filter(|total| (1..=SCRIPT_STEPS_MAX).contains(total)),
        numbering: match step {
            StepWord::Number(0) => Numbering::FromZero,
            StepWord::Number(_) | StepWord::Placeholder => Numbering::FromOne,
        },
        step_option: said.step_option,
        arguments: options(said.arguments),
    })
}

/// The options with their values; in a text, other words may follow a command.
fn options(words: Vec<String>) -> Vec<String> {
    let mut may_be_value = false;
    let belongs = |word: &String| {
        let is_option = word.starts_with("--");
        std::mem::replace(&mut may_be_value, is_option) || is_option
    };
    words.into_iter().filter(belongs).collect()
}

/// The file in the skill's folder that a path means, whatever stands before it.
fn in_folder(path: &str, files: &[String]) -> Option<String> {
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

fn by_name(name: &str, files: &[String]) -> Option<Script> {
    let wanted = [name.to_owned(), name.replace('-', "_")].map(|stem| format!("scripts/{stem}.py"));
    let file = files.iter().find(|file| wanted.contains(file))?;
    Some(Script {
        argv: vec!["python3".to_owned(), file.clone()],
        working_dir: None,
        total: None,
        numbering: Numbering::FromOne,
        step_option: "--step".to_owned(),
        arguments: Vec::new(),
    })
}

/// The arguments of a call.
pub fn command(script: &Script, call: &Call) -> Vec<String> {
    let mut argv = script.argv.clone();
    let step = script.numbering.to_theirs(call.step);
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
        // What this call says itself is not said before.
        if repeated(word) {
            fixed.next_if(|value| !value.starts_with("--"));
            continue;
        }
        argv.push(word.clone());
    }
    argv.extend(call.arguments.iter().cloned());
    argv
}

/// What a command line of such a script says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    step: Option<StepWord>,
    step_option: String,
    total: Option<usize>,
    /// Whether it has any option of a review loop.
    knows_review: bool,
    fail: bool,
    status: Option<QrStatus>,
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepWord {
    Number(usize),
    Placeholder,
}

impl Said {
    fn read(words: &[String]) -> Self {
        let mut said = Said { step_option: "--step".to_owned(), ..Said::default() };
        let mut words = words.iter().flat_map(|word| match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => vec![option, value],
            _ => vec![word.as_str()],
        });
        while let Some(word) = words.next() {
            match word {
                "--step" | "--step-number" => {
                    word.clone_into(&mut said.step_option);
                    said.step = words.next().map(|value| match value.parse() {
                        Ok(number) => StepWord::Number(number),
                        Err(_) => StepWord::Placeholder,
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

    fn number(&self) -> Option<usize> {
        match self.step {
            Some(StepWord::Number(number)) => Some(number),
            Some(StepWord::Placeholder) | None => None,
        }
    }
}

#[cfg(test)]
mod tests;
