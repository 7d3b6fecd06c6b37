//! The prompts of agents: files, notes, instructions, task and skills, in this order.

use crate::document::{PlanDocument, PlanTask};
use repertoire_journal::event::TaskRef;
use repertoire_text::invisible;

use super::request::PlanRequest;
use super::skills::StepSkills;
use super::state::{FINAL_TASK, PlanState};
use crate::limits::{DIFF_CHARS_MAX, LEARNINGS_SHOWN, NOTES_CHARS_MAX};

/// A task as it appears in a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskAssignment {
    /// `None` if the agent chooses the task.
    pub id: Option<String>,
    pub label: String,
    /// The lines below the task.
    pub details: String,
    /// The heading above the task.
    pub section: Option<String>,
    /// The parts of the specification that the task refers to.
    pub spec_refs: Vec<String>,
    /// Skills that the task names.
    pub hints: Vec<String>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub attempts_max: u32,
}

impl TaskAssignment {
    /// A task of the plan, or one that is not in the plan, such as the final checks.
    pub fn new(
        plan: &PlanDocument,
        state: &PlanState,
        request: &PlanRequest,
        task: Option<&TaskRef>,
    ) -> Self {
        let Some(task) = task else { return TaskAssignment::default() };
        let attempts = state.tasks.get(&task.id).map_or(0, |task| task.attempts);
        let known = plan.tasks.iter().find(|known| known.id.as_str() == task.id);
        let mut out = match known {
            Some(known) => TaskAssignment::from_task(plan, known),
            None => TaskAssignment { label: task.label.clone(), ..TaskAssignment::default() },
        };
        out.id = Some(task.id.clone());
        out.attempt = attempts.saturating_add(1);
        out.attempts_max = request.bounds.attempts_max;
        out
    }

    /// A task of the plan.
    pub fn from_task(plan: &PlanDocument, task: &PlanTask) -> Self {
        let section = task.section.and_then(|at| plan.sections.get(at));
        TaskAssignment {
            id: Some(task.id.as_str().to_owned()),
            label: task.text.clone(),
            details: task.details.clone(),
            section: section.map(|section| section.title.clone()),
            spec_refs: task.spec_refs.clone(),
            hints: task.hints.clone(),
            attempt: 1,
            attempts_max: 1,
        }
    }

    /// The full text of the task, for selecting skills.
    pub fn full_text(&self) -> String {
        let parts = [self.label.as_str(), self.details.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The parts of a prompt besides the task.
#[derive(Clone, Debug, Default)]
pub struct PlanPromptContext {
    /// The watchdog's text, which comes first.
    pub rewrite: Option<String>,
    /// The notes of the previous step.
    pub notes: Option<String>,
    /// People's notes.
    pub steering: Vec<String>,
    /// Oldest first.
    pub learnings: Vec<String>,
    /// True if the folder has a `LEARNINGS.md`.
    pub has_learnings_file: bool,
    /// True if the last step was interrupted.
    pub interrupted: bool,
    /// Names and commands of the checks that have to pass.
    pub checks: Vec<(String, String)>,
    pub skills: StepSkills,
}

impl PlanPromptContext {
    /// Collects the context from the state of a run.
    pub fn from_state(state: &PlanState, request: &PlanRequest, skills: StepSkills) -> Self {
        let interrupted = state
            .last_step()
            .is_some_and(|past| past.ended == Some(super::state::PlanStepEnd::Interrupted));
        let checks = request.checks.iter().chain(&request.final_checks);
        PlanPromptContext {
            rewrite: state.rewrite.clone(),
            notes: state.notes.clone(),
            steering: state.steering.clone(),
            learnings: state.learnings.clone(),
            has_learnings_file: false,
            interrupted,
            checks: checks.map(|check| (check.name.clone(), check.command.clone())).collect(),
            skills,
        }
    }
}

/// The commits that a reviewer looks at.
#[derive(Clone, Debug, Default)]
pub struct PlanReviewRange {
    /// The commit before the work.
    pub base: String,
    /// The commit with the work.
    pub head: String,
    /// The diff, up to a limit.
    pub diff: String,
    /// True if the diff is incomplete.
    pub is_cut: bool,
}

const IMPLEMENT: &str = "\
You work on one task of a plan, in the current folder, which is a git worktree of its own.

- Do the task below, all of it and nothing else. Read the specification and the plan where they are named.
- Write or change tests where the task calls for it, and run what you need to know that it works.
- Do not commit, do not switch branches, and leave the check marks of the plan alone: the engine commits, runs the \
checks and marks tasks. New tasks that you find may be added to the plan as `- [ ]` lines.
- If the task cannot be done, write `[~]` in place of its mark and the reason below it.
- Saying that something is done does not make it done: the checks are run and another agent reviews the change.";

const DO_WHAT_WAS_ASKED: &str = "\
You work on what somebody asked for, in the current folder, which is a git worktree of its own.

- Do what is asked for below, all of it and nothing else.
- Write or change tests where that is called for, and run what you need to know that it works.
- Do not commit and do not switch branches: the engine commits and runs the checks.
- Saying that something is done does not make it done: the checks are run and another agent reviews the change.";

const OR_ANSWER: &str = "\
- If an answer is wanted and no change, change nothing: your last message is the answer.";

const REVIEW: &str = "\
You review the work on one task of a plan, in the current folder, which is a git worktree. You did not write it.

- Look at the commits named below, and at whatever they touch. Compare them with the task and the specification.
- Look for what is wrong, missing or untested; leave taste alone. Run things where that tells you more.
- Mend small faults yourself: edit the files and do not commit. Send back what needs thought.
- Leave the check marks of the plan alone.

Answer with a verdict: `approve` if it is good as it is, `fixed` if you mended it, `send_back` if it has to be done \
again; with the findings that the next one needs (problem, file, line), and a learning if later work should know it.";

/// The prompt of an implementation.
pub fn implementation_prompt(
    request: &PlanRequest,
    assignment: &TaskAssignment,
    around: &PlanPromptContext,
) -> String {
    let instructions = match &request.instructions {
        Some(own) => fill_instructions(own, request),
        None => match &request.asked {
            None => IMPLEMENT.to_owned(),
            Some(asked) if asked.answer => format!("{DO_WHAT_WAS_ASKED}\n{OR_ANSWER}"),
            Some(_) => DO_WHAT_WAS_ASKED.to_owned(),
        },
    };
    let mut parts = opening_parts(request, around);
    parts.push(format!("# Instructions\n\n{instructions}{}", checks_part(around)));
    parts.push(task_part(request, assignment, around));
    parts.extend(skills_part(around));
    join_parts(parts)
}

/// The prompt of a review.
pub fn review_prompt(
    request: &PlanRequest,
    assignment: &TaskAssignment,
    range: &PlanReviewRange,
    around: &PlanPromptContext,
) -> String {
    let mut parts = opening_parts(request, around);
    parts.push(format!("# Instructions\n\n{REVIEW}{}", checks_part(around)));
    parts.push(task_part(request, assignment, around));
    parts.push(changes_part(range));
    parts.extend(skills_part(around));
    join_parts(parts)
}

/// Joins the parts of a prompt and removes invisible characters.
fn join_parts(parts: Vec<String>) -> String {
    let mut out = parts.join("\n\n");
    out.push('\n');
    match invisible::removed(&out) {
        (_, summary) if summary.is_empty() => out,
        (visible, summary) => {
            format!("{visible}\n(Invisible characters were removed from this prompt: {summary}.)\n")
        }
    }
}

/// The first parts of a prompt: the watchdog's text, files, notes and learnings.
fn opening_parts(request: &PlanRequest, around: &PlanPromptContext) -> Vec<String> {
    let mut parts: Vec<String> = around.rewrite.clone().into_iter().collect();
    let plan = request.asked.is_none().then_some(&request.plan);
    let files = request.specs.iter().chain(plan).chain(&request.context);
    let mut references: Vec<String> = files.map(|path| format!("@{path}")).collect();
    // A requested task may run in an outside contributor's checkout, whose `LEARNINGS.md` is
    // untrusted.
    if around.has_learnings_file && request.asked.is_none() {
        references.push("@LEARNINGS.md".to_owned());
    }
    if !references.is_empty() {
        parts.push(references.join(" "));
    }
    if let Some(notes) = &around.notes {
        parts.push(format!("# Notes from the last step\n\n{}", cut_text(notes, NOTES_CHARS_MAX)));
    }
    if !around.steering.is_empty() {
        let said: Vec<String> = around.steering.iter().map(|note| format!("- {note}")).collect();
        parts.push(format!("# From the person who watches this run\n\n{}", said.join("\n")));
    }
    if !around.learnings.is_empty() {
        let start = around.learnings.len().saturating_sub(LEARNINGS_SHOWN);
        let learnt: Vec<String> =
            around.learnings[start..].iter().map(|note| format!("- {note}")).collect();
        parts.push(format!("# Learnt so far\n\n{}", learnt.join("\n")));
    }
    parts
}

fn fill_instructions(own: &str, request: &PlanRequest) -> String {
    let specs: Vec<&str> = request.specs.iter().map(|path| path.as_str()).collect();
    own.trim_end()
        .replace("SPEC_PATH", &specs.join(" "))
        .replace("PLAN_PATH", request.plan.as_str())
}

fn checks_part(around: &PlanPromptContext) -> String {
    if around.checks.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        around.checks.iter().map(|(name, command)| format!("- {name}: `{command}`")).collect();
    format!("\n\nThese checks have to pass:\n\n{}", lines.join("\n"))
}

fn task_part(
    request: &PlanRequest,
    assignment: &TaskAssignment,
    around: &PlanPromptContext,
) -> String {
    let Some(id) = &assignment.id else {
        return format!(
            "# Selected task\n\nThe tasks of {} cannot be told by the engine. Choose the most important thing that \
             is left to do there, do that one thing, and say which it was.",
            request.plan
        );
    };
    let mut out = match &request.asked {
        Some(asked) if id != FINAL_TASK => {
            format!("# What was asked for\n\n{}", asked.words.trim())
        }
        _ => format!("# Selected task\n\n{}", assignment.label),
    };
    if !assignment.details.is_empty() {
        out.push_str(&format!("\n\n{}", assignment.details));
    }
    let mut facts = Vec::new();
    if id != FINAL_TASK && request.asked.is_none() {
        facts.push(format!("Plan: {} (task {id})", request.plan));
    }
    if let Some(section) = &assignment.section {
        facts.push(format!("Section: {section}"));
    }
    if !assignment.spec_refs.is_empty() {
        facts.push(format!("Specification: {}", assignment.spec_refs.join(", ")));
    }
    if assignment.attempt > 1 {
        facts.push(format!("Attempt {} of {}", assignment.attempt, assignment.attempts_max));
    }
    if around.interrupted {
        facts.push(
            "The last attempt was cut short; what it left is in the folder (`git status`, `git log`)".to_owned(),
        );
    }
    if !facts.is_empty() {
        let lines: Vec<String> = facts.iter().map(|fact| format!("- {fact}")).collect();
        out.push_str(&format!("\n\n{}", lines.join("\n")));
    }
    out
}

fn changes_part(range: &PlanReviewRange) -> String {
    if range.base == range.head {
        return format!(
            "# What to review\n\nNo commit of this run belongs to the task: it was marked as implemented before. \
             Look at the code as it stands at {}.",
            range.head
        );
    }
    let (base, head) = (&range.base, &range.head);
    let (diff, longer) = (
        cut_text(&invisible::shown(&range.diff), DIFF_CHARS_MAX),
        range.diff.chars().count() > DIFF_CHARS_MAX,
    );
    let fence = "`".repeat(longest_run(&diff).max(2) + 1);
    let more = if range.is_cut || longer {
        format!("\n\nThis is not all of it; `git diff {base}..{head}` is.")
    } else {
        String::new()
    };
    format!(
        "# What to review\n\nThe commits {base}..{head}:\n\n{fence}diff\n{}\n{fence}{more}",
        diff.trim_end()
    )
}

fn skills_part(around: &PlanPromptContext) -> Vec<String> {
    [&around.skills.available, &around.skills.loaded]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| text.trim_end().to_owned())
        .collect()
}

/// The longest sequence of backticks, so that a fence can be longer.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn cut_text(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n[… cut]", &text[..at]),
    }
}
