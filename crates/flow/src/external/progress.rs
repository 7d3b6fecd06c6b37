//! Tracks the progress of a script run. The counters here are authoritative: those in the script's command lines are
//! ignored.

use serde::{Deserialize, Serialize};

use super::{ScriptArguments, ScriptCall, StepScript};
use crate::limits::{SCRIPT_ITERATIONS_MAX, SCRIPT_STEPS_MAX};
use crate::step::{NextStep, NextStepOption, StepView};

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptProgress {
    /// The call that shows the current step.
    pub call: ScriptCall,
    /// The number of steps shown so far, starting at 1.
    pub turn: u32,
    pub standing: ScriptStatus,
    /// The iteration of the loop, starting at 1.
    iteration: u32,
    /// The maximum number of iterations of a loop; a person may raise it.
    limit: u32,
    /// The last step that led back. The loop is left by going to a later step.
    loop_end: Option<usize>,
    /// The script's name.
    name: String,
    /// True if the script has shown that it supports the options of a review loop.
    knows_review: bool,
}

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStatus {
    Active,
    Done,
    /// The loop has reached its limit, and a person has to decide.
    Stopped {
        /// The step that leads back.
        step: usize,
        /// The number of iterations so far.
        iterations: u32,
        /// The call that would come next.
        wanted: Box<ScriptCall>,
    },
    /// The routing of the step cannot be parsed or contradicts its gate, and a person has to decide.
    Unrouted {
        /// The reason why the routing was not followed.
        about: String,
        /// The call for the following step; `None` if this is the last.
        wanted: Option<Box<ScriptCall>>,
    },
}

/// The reason why a step cannot be left this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    #[error("the run is over, or waits for a person")]
    NotActive,
    /// The script shows a different step from the one it was asked for.
    #[error("the script was asked for step {asked}, and shows step {shown}")]
    OtherStep { asked: usize, shown: usize },
    /// The step has several outcomes, and none was given.
    #[error("say which: {}", possible.join(", "))]
    OutcomeNeeded { possible: Vec<String> },
    #[error("`{given}` is not possible here: {}", possible.join(", "))]
    NoSuchOutcome { given: String, possible: Vec<String> },
}

impl ScriptProgress {
    /// Starts a run at its first step.
    pub fn start_run(script: &StepScript) -> Self {
        ScriptProgress {
            call: ScriptCall::first_call(script),
            turn: 1,
            standing: ScriptStatus::Active,
            iteration: 1,
            limit: SCRIPT_ITERATIONS_MAX,
            loop_end: None,
            name: script_name(&script.argv).to_owned(),
            knows_review: false,
        }
    }

    /// The iteration of the loop, starting at 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }
}

/// Advances a run past a step with this outcome. `view` is the script's output for [`ScriptProgress::call`].
pub fn advance_script(
    progress: &ScriptProgress,
    view: &StepView,
    outcome: Option<&str>,
) -> Result<ScriptProgress, ProgressError> {
    if progress.standing != ScriptStatus::Active {
        return Err(ProgressError::NotActive);
    }
    if view.step != progress.call.step {
        let (asked, shown) = (progress.call.step, view.step);
        return Err(ProgressError::OtherStep { asked, shown });
    }
    let ways = match &view.next {
        NextStep::Ways { ways, .. } => ways,
        NextStep::Complete { .. } => {
            return Ok(ScriptProgress { standing: ScriptStatus::Done, ..progress.clone() });
        }
        NextStep::Person { .. } | NextStep::Record { .. } => {
            return Ok(apply_shown_step(progress.clone(), view));
        }
    };
    let way = choose_option(ways, outcome)?;
    // If a different script takes over, this run is complete.
    if !way.command.argv.is_empty() && script_name(&way.command.argv) != progress.name {
        return Ok(ScriptProgress { standing: ScriptStatus::Done, ..progress.clone() });
    }
    let total = progress.call.total.or((view.total > 0).then_some(view.total));
    let most = total.unwrap_or(SCRIPT_STEPS_MAX);
    match way.to {
        Some(to) if (1..=most).contains(&to) => Ok(move_to_step(progress, view, way, to, total)),
        Some(to) => {
            let about = format!("the script leads to step {to}, and has {most}");
            Ok(wait_for_routing(progress.clone(), view, about))
        }
        None => {
            let outcome = way.outcome.as_deref().unwrap_or("ok");
            let about = match way.command.line.as_str() {
                "" => format!("the script has no command for the outcome `{outcome}`"),
                line => format!("the script's next command names no step: {line}"),
            };
            Ok(wait_for_routing(progress.clone(), view, about))
        }
    }
}

/// Updates a run after the script has shown a step: if the routing cannot be parsed, the run waits for a person.
pub fn apply_shown_step(progress: ScriptProgress, view: &StepView) -> ScriptProgress {
    match &view.next {
        NextStep::Person { about, .. } => wait_for_routing(progress, view, about.clone()),
        NextStep::Record { message } => wait_for_routing(progress, view, message.clone()),
        NextStep::Ways { .. } | NextStep::Complete { .. } => progress,
    }
}

fn wait_for_routing(progress: ScriptProgress, view: &StepView, about: String) -> ScriptProgress {
    let total = progress.call.total.or((view.total > 0).then_some(view.total));
    let following = progress.call.step.saturating_add(1);
    let is_last = total.is_some_and(|total| following > total);
    let call =
        ScriptCall { step: following, total, arguments: Vec::new(), ..progress.call.clone() };
    let wanted = (!is_last).then(|| Box::new(call));
    ScriptProgress { standing: ScriptStatus::Unrouted { about, wanted }, ..progress }
}

/// Resumes a run that waits for a person: with one more iteration of the loop, or with the step after the one whose
/// routing cannot be parsed. Returns `None` if the run is not waiting.
pub fn resume_script(progress: &ScriptProgress) -> Option<ScriptProgress> {
    let (step, wanted) = match &progress.standing {
        ScriptStatus::Stopped { step, wanted, .. } => (step, wanted),
        ScriptStatus::Unrouted { wanted: Some(wanted), .. } => {
            let (call, turn) = (wanted.as_ref().clone(), progress.turn.saturating_add(1));
            return Some(ScriptProgress {
                call,
                turn,
                standing: ScriptStatus::Active,
                ..progress.clone()
            });
        }
        ScriptStatus::Unrouted { wanted: None, .. } => {
            return Some(ScriptProgress { standing: ScriptStatus::Done, ..progress.clone() });
        }
        ScriptStatus::Active | ScriptStatus::Done => return None,
    };
    Some(ScriptProgress {
        call: wanted.as_ref().clone(),
        turn: progress.turn.saturating_add(1),
        standing: ScriptStatus::Active,
        iteration: progress.iteration.saturating_add(1),
        limit: progress.limit.saturating_add(1),
        loop_end: progress.loop_end.max(Some(*step)),
        ..progress.clone()
    })
}

fn choose_option<'a>(
    ways: &'a [NextStepOption],
    outcome: Option<&str>,
) -> Result<&'a NextStepOption, ProgressError> {
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

fn move_to_step(
    progress: &ScriptProgress,
    view: &StepView,
    way: &NextStepOption,
    to: usize,
    total: Option<usize>,
) -> ScriptProgress {
    let from = progress.call.step;
    let said = ScriptArguments::parse_words(&way.command.argv);
    let leads_back = to <= from;
    let is_left = progress.loop_end.is_some_and(|end| to > end);
    let iteration = match (leads_back, is_left) {
        (true, _) => progress.iteration.saturating_add(1),
        (false, true) => 1,
        (false, false) => progress.iteration,
    };
    let knows_review = progress.knows_review || said.knows_review;
    let has_failed = view.gate.as_ref().is_some_and(|gate| gate.status == "fail");
    let mut call = ScriptCall {
        step: to,
        total,
        flags: super::QrFlags {
            // A script without this option would reject it.
            iteration: if knows_review { iteration } else { 1 },
            fail: said.fail || has_failed && leads_back && knows_review,
            status: said.status,
        },
        arguments: said.arguments,
    };
    call.arguments.drain(..count_program_words(&way.command.argv).min(call.arguments.len()));
    override_counter(&mut call.arguments, iteration);
    let mut after = ScriptProgress { knows_review, ..progress.clone() };
    if leads_back && iteration > progress.limit {
        let iterations = progress.iteration;
        after.standing = ScriptStatus::Stopped { step: from, iterations, wanted: Box::new(call) };
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
    ScriptProgress { call, turn: progress.turn.saturating_add(1), iteration, ..after }
}

/// The number of leading words of a command line that name the program and the script.
fn count_program_words(argv: &[String]) -> usize {
    let is_module = argv.get(1).is_some_and(|word| word == "-m");
    argv.len().min(if is_module { 3 } else { 2 })
}

/// The name of the script in a command line: the last component of its path or module.
fn script_name(argv: &[String]) -> &str {
    let word = argv[..count_program_words(argv)].last().map(String::as_str).unwrap_or_default();
    let word = word.rsplit('/').next().unwrap_or_default();
    let word = word.strip_suffix(".py").unwrap_or(word);
    word.rsplit('.').next().unwrap_or_default()
}

/// Replaces the counter that a script passes to itself with ours.
fn override_counter(arguments: &mut [String], iteration: u32) {
    let at = arguments.iter().position(|word| word == "--iteration");
    if let Some(value) = at.and_then(|at| arguments.get_mut(at + 1)) {
        *value = iteration.to_string();
    }
}
