//! How far a run of a script has come. Counters live here: what the script's command lines say about them, or forget, does
//! not count.

use serde::{Deserialize, Serialize};

use super::{Call, Said, Script};
use crate::limits::{SCRIPT_ITERATIONS_MAX, SCRIPT_STEPS_MAX};
use crate::step::{Next, StepView, Way};

/// How far a run has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The call that shows the step that the run is at.
    pub call: Call,
    /// How many steps were shown, which starts at 1.
    pub turn: u32,
    /// Whether it goes on.
    pub standing: Standing,
    /// Which time round the loop; the first is 1.
    iteration: u32,
    /// How many times a loop may be gone round; a person may allow more.
    limit: u32,
    /// The step that the loop was closed from: it is left behind that.
    loop_end: Option<usize>,
    /// The script's name.
    name: String,
    /// Whether the script has shown that it takes the options of a review loop.
    knows_review: bool,
}

/// Whether a run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It does.
    Active,
    /// It is complete.
    Done,
    /// A person has to decide: the loop was gone round as often as it may.
    Stopped {
        /// The step that leads back.
        step: usize,
        /// How often it was gone round.
        iterations: u32,
        /// The call that would come next.
        wanted: Box<Call>,
    },
}

/// A step of a script cannot be left like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// The run is not active.
    #[error("the run is over, or waits for a person")]
    NotActive,
    /// The script has shown another step than was asked for.
    #[error("the script was asked for step {asked}, and shows step {shown}")]
    OtherStep {
        /// What was asked for.
        asked: usize,
        /// What it shows.
        shown: usize,
    },
    /// There are several ways.
    #[error("say which: {}", possible.join(", "))]
    OutcomeNeeded {
        /// The outcomes.
        possible: Vec<String>,
    },
    /// There is no such way.
    #[error("`{given}` is not possible here: {}", possible.join(", "))]
    NoSuchOutcome {
        /// What was given.
        given: String,
        /// The outcomes.
        possible: Vec<String>,
    },
    /// The command does not say where it leads.
    #[error("the script's next command names no step: {line}")]
    NoTarget {
        /// The command.
        line: String,
    },
    /// It leads out of the script.
    #[error("the script leads to step {step}, and has {total}")]
    OutOfRange {
        /// Where it leads.
        step: usize,
        /// How many there are.
        total: usize,
    },
}

impl Progress {
    /// A run at its first step.
    pub fn start(script: &Script) -> Self {
        Progress {
            call: Call::first(script),
            turn: 1,
            standing: Standing::Active,
            iteration: 1,
            limit: SCRIPT_ITERATIONS_MAX,
            loop_end: None,
            name: name_of(&script.argv).to_owned(),
            knows_review: false,
        }
    }

    /// Which time round the loop; the first is 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }
}

/// The run after a step that ended like that. The view is what the script has shown for [`Progress::call`].
pub fn next(
    progress: &Progress,
    view: &StepView,
    outcome: Option<&str>,
) -> Result<Progress, ProgressError> {
    if progress.standing != Standing::Active {
        return Err(ProgressError::NotActive);
    }
    if view.step != progress.call.step {
        let (asked, shown) = (progress.call.step, view.step);
        return Err(ProgressError::OtherStep { asked, shown });
    }
    let Next::Ways { ways, .. } = &view.next else {
        return Ok(Progress { standing: Standing::Done, ..progress.clone() });
    };
    let way = chosen(ways, outcome)?;
    // Where another script takes over, this one has come to its end.
    if !way.command.argv.is_empty() && name_of(&way.command.argv) != progress.name {
        return Ok(Progress { standing: Standing::Done, ..progress.clone() });
    }
    let to = way.to.ok_or_else(|| ProgressError::NoTarget { line: way.command.line.clone() })?;
    let total = progress.call.total.or((view.total > 0).then_some(view.total));
    let most = total.unwrap_or(SCRIPT_STEPS_MAX);
    if to == 0 || to > most {
        return Err(ProgressError::OutOfRange { step: to, total: most });
    }
    Ok(moved(progress, view, way, to, total))
}

/// Allows one more time round a loop that has stopped. None if it has not.
pub fn go_on(progress: &Progress) -> Option<Progress> {
    let Standing::Stopped { step, wanted, .. } = &progress.standing else { return None };
    Some(Progress {
        call: wanted.as_ref().clone(),
        turn: progress.turn.saturating_add(1),
        standing: Standing::Active,
        iteration: progress.iteration.saturating_add(1),
        limit: progress.limit.saturating_add(1),
        loop_end: progress.loop_end.max(Some(*step)),
        ..progress.clone()
    })
}

fn chosen<'a>(ways: &'a [Way], outcome: Option<&str>) -> Result<&'a Way, ProgressError> {
    let possible = || ways.iter().filter_map(|way| way.outcome.clone()).collect();
    match (outcome, ways) {
        (None, [only]) => Ok(only),
        (None, _) => Err(ProgressError::OutcomeNeeded { possible: possible() }),
        (Some(given), _) => {
            ways.iter().find(|way| way.outcome.as_deref() == Some(given)).ok_or_else(|| {
                ProgressError::NoSuchOutcome { given: given.to_owned(), possible: possible() }
            })
        }
    }
}

fn moved(
    progress: &Progress,
    view: &StepView,
    way: &Way,
    to: usize,
    total: Option<usize>,
) -> Progress {
    let from = progress.call.step;
    let said = Said::read(&way.command.argv);
    let leads_back = to <= from;
    let is_left = progress.loop_end.is_some_and(|end| to > end);
    let iteration = match (leads_back, is_left) {
        (true, _) => progress.iteration.saturating_add(1),
        (false, true) => 1,
        (false, false) => progress.iteration,
    };
    let knows_review = progress.knows_review || said.knows_review;
    let has_failed = view.gate.as_ref().is_some_and(|gate| gate.status == "fail");
    let mut call = Call {
        step: to,
        total,
        flags: super::QrFlags {
            // A script that has no such option would refuse it.
            iteration: if knows_review { iteration } else { 1 },
            fail: said.fail || has_failed && leads_back && knows_review,
            status: said.status,
        },
        arguments: said.arguments,
    };
    call.arguments.drain(..program_words(&way.command.argv).min(call.arguments.len()));
    own_counter(&mut call.arguments, iteration);
    let mut after = Progress { knows_review, ..progress.clone() };
    if leads_back && iteration > progress.limit {
        let iterations = progress.iteration;
        after.standing = Standing::Stopped { step: from, iterations, wanted: Box::new(call) };
        return after;
    }
    after.loop_end = match (leads_back, is_left) {
        (true, _) => progress.loop_end.max(Some(from)),
        (false, true) => None,
        (false, false) => progress.loop_end,
    };
    if is_left {
        after.limit = SCRIPT_ITERATIONS_MAX;
    }
    Progress { call, turn: progress.turn.saturating_add(1), iteration, ..after }
}

/// How many words of a command line are the program and its script.
fn program_words(argv: &[String]) -> usize {
    let is_module = argv.get(1).is_some_and(|word| word == "-m");
    argv.len().min(if is_module { 3 } else { 2 })
}

/// The name of the script of a command line: the last part of its path or module.
fn name_of(argv: &[String]) -> &str {
    let word = argv[..program_words(argv)].last().map(String::as_str).unwrap_or_default();
    let word = word.rsplit('/').next().unwrap_or_default();
    let word = word.strip_suffix(".py").unwrap_or(word);
    word.rsplit('.').next().unwrap_or_default()
}

/// A counter that the script passes to itself is ours too.
fn own_counter(arguments: &mut [String], iteration: u32) {
    let at = arguments.iter().position(|word| word == "--iteration");
    if let Some(value) = at.and_then(|at| arguments.get_mut(at + 1)) {
        *value = iteration.to_string();
    }
}
