//! Fixed texts of the renderings: how to read a step, how to record, how to ask. They all follow from the step, so a
//! parser can ignore them.

use crate::limits::{OPTIONS, QUESTIONS_MAX};
use crate::state::{UserQuestion, WorkflowRunId};
use crate::step::{
    AgentView, DispatchView, FindingsView, NextStep, ReviewView, ShellCommand, StepView, ViewBlock,
};

/// The status of a run that a person has aborted.
pub(super) const ABORTED: &str = "aborted";

/// Instructions for reading the XML form, given once at the start of a run.
pub(super) const MANDATE: &str = "\
Every answer of this workflow is one XML document like this one.
1. Do what <current_action> says, all of it, and nothing that <forbidden> names.
2. Then run the command in <invoke_after> as it stands; <next> repeats it. Capital words such as TEXT, VALUE, LEVEL and \
WHY are yours to replace.
3. Where <invoke_after> has several commands, run the one whose condition is true: <if_pass> after success, <if_fail> after \
failure, <if outcome=\"…\"> otherwise. Run exactly one.
4. The engine keeps the count and decides gates from what was recorded. Do not skip, repeat or reorder steps.
5. Where there is <needs_user_input>, stop: it is the user who decides, not you.";

/// Instructions for an agent when a person has to choose.
const CHOOSE: &str = "If you are an agent, stop here: show all of this to the user, with every choice, and wait for what \
they say. Do not choose yourself, whichever choice looks right.";

/// Instructions for an agent when a person is asked questions.
const PUT: &str = "If you are an agent, stop here: put these questions to the user word for word, with their options, and \
wait for the answers. Do not answer them yourself.";

/// Instructions for an agent when a person has to decide.
pub(super) fn person_rule(questions: &[UserQuestion]) -> &'static str {
    if questions.is_empty() { CHOOSE } else { PUT }
}

/// Instructions for handing over long values. `None` if the step does not report to a run, or no value can be long.
pub(super) fn long_values(view: &StepView) -> Option<&'static str> {
    let is_reported = view.run.is_some() && matches!(view.next, NextStep::Ways { .. });
    match (view.report.output.is_some(), !view.report.set.is_empty()) {
        _ if !is_reported => None,
        (true, false) => Some(
            "An output that is long or has several lines goes by `--output @FILE`, or by `--output -`, which reads it \
             from input.",
        ),
        (true, true) => Some(
            "What is long or has several lines goes by `--output @FILE` (or `--output -`, which reads it from input) and \
             by `--set NAME=@FILE`.",
        ),
        (false, true) => {
            Some("A value that is long or has several lines goes by `--set NAME=@FILE`.")
        }
        (false, false) => None,
    }
}

/// A command with its purpose.
pub(super) struct CommandForm {
    pub(super) what: &'static str,
    pub(super) command: ShellCommand,
}

/// The commands for recording items and checks during a review.
pub(super) fn record_forms(run: &WorkflowRunId, review: &ReviewView) -> Vec<CommandForm> {
    let record = |rest: &[&str]| {
        let words = ["rep", "workflow", "record", run.as_str()];
        ShellCommand::new(words.into_iter().chain(rest.iter().copied()))
    };
    let new = free_id(review);
    let item =
        format!(r#"{{"id":"{new}","scope":"WHERE","check":"WHAT MUST HOLD","severity":"MUST"}}"#);
    let open = review.items.iter().find(|item| item.status == "TODO");
    let judged = open.or(review.items.first()).map_or(new.as_str(), |item| item.id.as_str());
    let (holds, fails) = (format!("{judged}=PASS"), format!("{judged}=FAIL: FINDING"));
    let mut forms = vec![
        CommandForm {
            what: "a new item (severity MUST, SHOULD or COULD)",
            command: record(&[&item]),
        },
        CommandForm { what: "it holds", command: record(&[&holds]) },
        CommandForm { what: "it does not hold", command: record(&[&fails]) },
    ];
    if let Some(check) = review.checks.iter().find(|check| !check.scope.is_empty()) {
        let what = "runs a declared check; only such a run counts";
        forms.push(CommandForm { what, command: record(&["--check", &check.id]) });
    }
    if let Some(check) = review.checks.iter().find(|check| check.scope.is_empty()) {
        let verdict = format!("{}=PASS", check.id);
        forms.push(CommandForm {
            what: "the verdict of a check without a command",
            command: record(&["--check", &verdict]),
        });
    }
    forms
}

/// The first unused id of C1, C2, ….
fn free_id(review: &ReviewView) -> String {
    let is_taken = |id: &String| review.items.iter().any(|item| item.id == *id);
    let mut ids = (1..=review.items.len()).map(|number| format!("C{number}"));
    ids.find(|id| !is_taken(id)).unwrap_or_else(|| format!("C{}", review.items.len() + 1))
}

/// The command with which a sub-agent asks the user. `None` if there are no sub-agents or no run.
pub(super) fn ask_form(view: &StepView) -> Option<CommandForm> {
    let run = view.run.as_ref()?;
    let hands_out = view.actions.iter().any(|block| match block {
        ViewBlock::Dispatch(dispatch) => !matches!(dispatch, DispatchView::None { .. }),
        _ => false,
    });
    let is_open = matches!(view.next, NextStep::Ways { .. });
    (hands_out && is_open).then(|| CommandForm {
        what: "asks the user on behalf of a sub-agent",
        command: ShellCommand::new([
            "rep",
            "workflow",
            "ask",
            run.as_str(),
            r#"{"id":"q1","ask":"QUESTION","options":["A","B"]}"#,
        ]),
    })
}

/// The rule that goes with [`ask_form`].
pub(super) fn ask_rule() -> String {
    let (least, most) = (OPTIONS.start(), OPTIONS.end());
    format!(
        "A sub-agent that cannot go on without the user ends with its questions: at most {QUESTIONS_MAX}, each with \
         {least} to {most} options. Relay them with the command below, and start the sub-agent again with the answers."
    )
}

/// Instructions for the orchestrating agent about findings that a sub-agent repairs.
pub(super) fn passthrough_rule(findings: &FindingsView) -> Option<String> {
    (findings.fix != "own").then(|| {
        format!(
            "Hand these findings to the {} word for word. Do not judge, shorten or sum them up, do not open the files \
             that they are about, and repair nothing yourself.",
            findings.fix
        )
    })
}

/// Text for a repair step when no findings were recorded.
pub(super) const FINDINGS_ELSEWHERE: &str =
    "Nothing is recorded in this form: the findings are in what the reviewer has answered.";

/// Text for a reviewer when nothing can be recorded.
pub(super) const NOTHING_RECORDED: &str =
    "Nothing is recorded in this form: end with PASS, or with FAIL and every finding.";

/// Instructions for starting a sub-agent that has a workflow.
pub(super) fn handoff_rule(command: &ShellCommand) -> String {
    format!(
        "Begin the sub-agent's prompt with this line: Start by running: {}\nIt follows the steps that this gives it; add \
         facts, and no steps of your own.",
        command.line
    )
}

/// The mode of a sub-agent: `script` if it has a workflow.
pub(super) fn agent_mode(agent: &AgentView) -> &'static str {
    if agent.command.is_some() { "script" } else { "free-form" }
}

/// The rule for the number of sub-agents to start.
pub(super) fn count_rule(count: usize) -> String {
    match count {
        1 => "Start exactly 1 sub-agent.".to_owned(),
        _ => format!("Start exactly {count} sub-agents, all of them at once, in one message."),
    }
}

pub(super) const WAIT: &str = "Wait until all of them have answered before you go on.";

/// Describes which severities block, given the lowest of them.
pub(super) fn blocking_rule(least: &str) -> &'static str {
    match least {
        "MUST" => "Only MUST blocks in this iteration; SHOULD and COULD are noted.",
        "SHOULD" => "MUST and SHOULD block in this iteration; COULD is noted.",
        _ => "MUST, SHOULD and COULD all block in this iteration.",
    }
}
