//! Parses the output of a script into a step. Three forms are supported: the tags scripts print (`step_header`,
//! `current_action`, `invoke_after`), the tags their manual shows (`DO`, `NEXT`, `INVOKE_AFTER`), and plain text
//! (`STEP 1/4: …`, `DO:`).
//!
//! Routing fails closed: a step whose routing cannot be parsed, or contradicts its gate, stops for a person.

use super::scan::{self, ClosingTag, ScriptTag};
use super::{ScriptArguments, StepNumbering};
use crate::limits::{SCRIPT_ITERATIONS_MAX, SCRIPT_OUTPUT_BYTES_MAX};
use crate::step::{
    GateView, NextStep, NextStepOption, PROTOCOL, QrStatus, ReportView, ShellCommand, StepView,
    ViewBlock,
};

mod block;

/// The reason why a script's output is not a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptOutputError {
    #[error("the script has printed {bytes} bytes, and {SCRIPT_OUTPUT_BYTES_MAX} is the limit")]
    TooLong { bytes: usize },
    #[error("the script has printed nothing")]
    Empty,
    #[error(
        "the script has printed no step: neither <step_header> nor a line `STEP 1/4: …`; it begins: {start}"
    )]
    NoStep {
        /// The beginning of the first line.
        start: String,
    },
}

/// Parses a script's output. The step numbers in the result start at 1.
pub fn parse_output(output: &str, numbering: StepNumbering) -> Result<StepView, ScriptOutputError> {
    if output.len() > SCRIPT_OUTPUT_BYTES_MAX {
        return Err(ScriptOutputError::TooLong { bytes: output.len() });
    }
    if output.trim().is_empty() {
        return Err(ScriptOutputError::Empty);
    }
    // A script may also print our own XML form, which carries more.
    if let Ok(view) = crate::render::parse_xml(output.trim()) {
        return Ok(stop_if_gate_closed(view));
    }
    let header = parse_header(output).ok_or_else(|| ScriptOutputError::NoStep {
        start: output.trim().lines().next().unwrap_or_default().chars().take(80).collect(),
    })?;
    // Step 0 exists only in scripts that count from 0.
    let numbering = if header.step == 0 { StepNumbering::FromZero } else { numbering };
    let body = split_body(output);
    let actions = block::split_blocks(body.actions);
    let step = numbering.to_one_based(header.step);
    let gates = scan::find_tags(skip_mandate(output), &["gate_result"]);
    let gate = strictest_gate(&gates).map(|tag| parse_gate(tag, &header.title));
    Ok(stop_if_gate_closed(StepView {
        protocol: PROTOCOL,
        workflow: header.script,
        run: None,
        status: "active".to_owned(),
        turn: u32::try_from(step).unwrap_or(u32::MAX),
        step,
        total: header.total,
        id: format!("step-{step}"),
        title: header.title,
        phase: header.phase,
        role: None,
        iteration: find_iteration(&actions, gate.as_ref()),
        gate,
        review: None,
        findings: None,
        answers: Vec::new(),
        next: parse_next(&body, step, header.total, numbering),
        actions,
        report: ReportView::default(),
    }))
}

/// Stops the step for a person if its routing leads on although its gate does not allow it.
fn stop_if_gate_closed(view: StepView) -> StepView {
    let Some(gate) = &view.gate else { return view };
    let leads_on = match &view.next {
        NextStep::Ways { ways, .. } => {
            ways.iter().any(|way| way.to.is_none_or(|to| to > view.step))
        }
        NextStep::Complete { .. } => true,
        NextStep::Person { .. } | NextStep::Record { .. } => false,
    };
    let about = match gate.status.as_str() {
        "pass" => return view,
        "fail" if !leads_on => return view,
        "fail" => format!("the gate of step {} has failed, and the script leads on", view.step),
        "" => format!("the gate of step {} has no status", view.step),
        other if leads_on => {
            let shown: String = other.chars().take(ROUTING_SHOWN_CHARS).collect();
            format!("the gate of step {} has the unknown status `{shown}`", view.step)
        }
        _ => return view,
    };
    StepView { next: wait_for_person(about), ..view }
}

fn wait_for_person(about: String) -> NextStep {
    NextStep::Person { about, choices: Vec::new(), questions: Vec::new(), command: None }
}

/// Returns the first gate that has not passed, else the first one.
fn strictest_gate<'a, 'b>(gates: &'b [ScriptTag<'a>]) -> Option<&'b ScriptTag<'a>> {
    let has_passed = |tag: &&ScriptTag<'_>| gate_status(tag) == "pass";
    gates.iter().find(|tag| !has_passed(tag)).or(gates.first())
}

fn gate_status(tag: &ScriptTag<'_>) -> String {
    tag.attribute("status").unwrap_or_default().trim().to_ascii_lowercase()
}

/// Skips the explanation of the tags, which mentions all of them.
fn skip_mandate(output: &str) -> &str {
    let mandate = scan::find_tag(output, &["xml_format_mandate"], ClosingTag::Own);
    &output[mandate.map_or(0, |tag| tag.end)..]
}

struct StepHeader {
    script: String,
    phase: Option<String>,
    step: usize,
    total: usize,
    title: String,
}

fn parse_header(output: &str) -> Option<StepHeader> {
    let tag = scan::find_tag(output, &["step_header"], ClosingTag::Own);
    if let Some(tag) = tag {
        let number = |name| tag.attribute(name).and_then(|value| value.trim().parse().ok());
        return Some(StepHeader {
            script: tag.attribute("script").unwrap_or_default(),
            phase: tag.attribute("phase").filter(|phase| !phase.is_empty()),
            step: number("step")?,
            total: number("total").unwrap_or_default(),
            title: tag.inner.trim().to_owned(),
        });
    }
    output.lines().find_map(parse_text_header)
}

/// Parses `STEP 3/7: Title` or `Step 3 of 7 - Title`, after any prefix.
fn parse_text_header(line: &str) -> Option<StepHeader> {
    let upper = line.to_ascii_uppercase();
    let at = upper.find("STEP ")? + "STEP ".len();
    let before = line[..at - "STEP ".len()].trim_matches(['=', '#', '-', '*', ' ']);
    let (step, rest) = split_leading_number(&line[at..])?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('/').or_else(|| {
        rest.get(..2).filter(|word| word.eq_ignore_ascii_case("of")).map(|_| &rest[2..])
    })?;
    let (total, title) = split_leading_number(rest.trim_start())?;
    let script = before.trim_end_matches([':', ' ']).to_owned();
    let is_word = !script.contains(char::is_whitespace);
    Some(StepHeader {
        script: if is_word { script } else { String::new() },
        phase: None,
        step,
        total,
        title: title.trim_matches([':', '-', ' ', '=', '·', '*', '—', ')', ']']).to_owned(),
    })
}

fn split_leading_number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The two parts of an output: what to do, and the routing.
struct StepBody<'a> {
    actions: &'a str,
    routing: &'a str,
    form: OutputForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    Tags,
    Text,
}

fn split_body(output: &str) -> StepBody<'_> {
    let output = skip_mandate(output);
    let action = scan::find_tag(output, &["current_action", "DO"], ClosingTag::Last);
    let from = action.as_ref().map_or(0, |action| action.end);
    let after = scan::find_tag(&output[from..], &["invoke_after", "INVOKE_AFTER"], ClosingTag::Own)
        .or_else(|| scan::find_tag(&output[from..], &["next", "NEXT"], ClosingTag::Own));
    if action.is_some() || after.is_some() {
        let actions = action.map(|action| action.inner).unwrap_or_default();
        let routing = after.map(|tag| tag.inner).unwrap_or_default();
        return StepBody { actions, routing, form: OutputForm::Tags };
    }
    let lines = || {
        output.split_inclusive('\n').scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line))
        })
    };
    let starts = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let actions = lines().find(|(_, line)| starts(line, &["DO:", "DO "]));
    let from = actions.map_or(0, |(at, line)| at + line.len());
    let routing = lines().find(|(at, line)| {
        *at >= from
            && starts(
                line,
                &["INVOKE AFTER", "INVOKE_AFTER", "NEXT", "COMPLETE", "WORKFLOW COMPLETE"],
            )
    });
    let end = routing.map_or(output.len(), |(at, _)| at);
    StepBody {
        actions: &output[from.min(end)..end],
        routing: &output[end..],
        form: OutputForm::Text,
    }
}

fn parse_next(
    body: &StepBody<'_>,
    step: usize,
    total: usize,
    numbering: StepNumbering,
) -> NextStep {
    let ways = parse_options(body.routing, step, numbering);
    if !ways.is_empty() {
        return NextStep::Ways { ways, on_error: None };
    }
    let said = strip_label(body.routing);
    let says_complete = says_complete(said);
    // The shared text template prints COMPLETE one step early when it is used with numbers from 1.
    let is_early = body.form == OutputForm::Text && says_complete && step + 1 == total;
    if is_early {
        return NextStep::Ways {
            ways: vec![option_without_command(step + 1, said)],
            on_error: None,
        };
    }
    if let Some(to) = parse_named_step(said).filter(|_| body.form == OutputForm::Text) {
        let ways = vec![option_without_command(numbering.to_one_based(to), body.routing)];
        return NextStep::Ways { ways, on_error: None };
    }
    // A last step without routing ends the workflow. Routing that cannot be parsed may lead anywhere, so it does not.
    let is_last = said.is_empty() && total > 0 && step >= total;
    if says_complete || is_last {
        let message = if said.is_empty() { "The workflow is complete." } else { said };
        return NextStep::Complete { message: message.to_owned() };
    }
    let shown: String = said.chars().take(ROUTING_SHOWN_CHARS).collect();
    wait_for_person(if shown.is_empty() {
        format!("the script does not say what comes after step {step}")
    } else {
        format!("what comes after step {step} was not understood: {shown}")
    })
}

/// Strips the label that introduces the routing in the text form.
fn strip_label(routing: &str) -> &str {
    let said = routing.trim();
    let labels = ["INVOKE AFTER:", "INVOKE_AFTER:", "NEXT STEP:", "NEXT:"];
    let after = |label: &&str| said.get(..label.len()).filter(|start| start == label);
    match labels.iter().find(|label| after(label).is_some()) {
        Some(label) => said[label.len()..].trim_start(),
        None => said,
    }
}

/// Returns true if the routing says that the workflow is complete: `COMPLETE` or `WORKFLOW COMPLETE`, alone or
/// followed by a punctuation mark and a remark. `INCOMPLETE`, `COMPLETE the list` and a remark that names a step don't
/// count.
fn says_complete(said: &str) -> bool {
    let said = said.strip_prefix("WORKFLOW").map_or(said, str::trim_start);
    let Some(remark) = said.strip_prefix("COMPLETE") else { return false };
    let first = remark.trim_start_matches([' ', '\t']).chars().next();
    let is_apart = first.is_none_or(|c| {
        matches!(c, '\n' | '\r' | ':' | '.' | ',' | ';' | '!' | '-' | '–' | '—' | '(')
    });
    is_apart && find_step_number(remark).is_none()
}

/// The maximum number of characters quoted from routing that cannot be parsed.
const ROUTING_SHOWN_CHARS: usize = 200;

/// Parses the step number in routing such as `Step 2 - Go on` or `Continue with step 2.`. Returns `None` for
/// conditional routing.
fn parse_named_step(said: &str) -> Option<usize> {
    const VERBS: &[&str] = &["GO", "ON", "CONTINUE", "PROCEED", "MOVE", "TO", "WITH"];
    let line = said.lines().next()?;
    let (number, at, rest) = find_step_number(line)?;
    let is_plain = line[..at].split_whitespace().all(|word| {
        let word = word.to_ascii_uppercase();
        VERBS.contains(&word.as_str())
    });
    let next = rest.trim_start().chars().next();
    let is_apart = next.is_none_or(|c| !c.is_alphanumeric());
    (is_plain && is_apart && find_step_number(rest).is_none()).then_some(number)
}

/// Returns the first step number in a text, the position of the word before it, and the text after the number.
fn find_step_number(text: &str) -> Option<(usize, usize, &str)> {
    let upper = text.to_ascii_uppercase();
    upper.match_indices("STEP").find_map(|(at, word)| {
        let (number, rest) = split_leading_number(text[at + word.len()..].trim_start())?;
        Some((number, at, rest))
    })
}

/// The next step, where the script gives no command for it.
fn option_without_command(to: usize, routing: &str) -> NextStepOption {
    let said = routing.trim().lines().next().unwrap_or_default();
    let title = said.strip_prefix("NEXT:").unwrap_or_default().trim();
    NextStepOption {
        outcome: Some("ok".to_owned()),
        when: String::new(),
        to: Some(to),
        title: title.to_owned(),
        command: ShellCommand::default(),
    }
}

fn parse_options(routing: &str, step: usize, numbering: StepNumbering) -> Vec<NextStepOption> {
    let branches = scan::find_tags(routing, &["if_pass", "if_fail", "if"]);
    if branches.is_empty() {
        return parse_plain_options(routing, step, numbering);
    }
    let branch = |tag: &ScriptTag<'_>| {
        let outcome = match tag.name {
            "if_pass" => "ok".to_owned(),
            "if_fail" => "fail".to_owned(),
            _ => tag.attribute("outcome")?,
        };
        let Some((command, _)) = scan::find_invocations(tag.inner).into_iter().next() else {
            return Some(person_option(outcome, tag.inner.trim()));
        };
        Some(parse_option(outcome, String::new(), &command, numbering))
    };
    let mut ways: Vec<NextStepOption> = branches.iter().filter_map(branch).collect();
    // A review that can only pass is not a review: add the missing outcome and let a person decide it.
    for missing in ["ok", "fail"] {
        let has = |outcome: &str| ways.iter().any(|way| way.outcome.as_deref() == Some(outcome));
        if ways.len() == 1 && (has("ok") || has("fail")) && !has(missing) {
            ways.push(person_option(missing.to_owned(), ""));
        }
    }
    ways
}

/// An outcome that leads to a person, because the script gives no command for it.
fn person_option(outcome: String, said: &str) -> NextStepOption {
    let when: String = said.chars().take(ROUTING_SHOWN_CHARS).collect();
    NextStepOption {
        outcome: Some(outcome),
        when,
        to: None,
        title: "a person decides".to_owned(),
        command: ShellCommand::default(),
    }
}

/// Parses a single command, or several, each preceded by its condition.
fn parse_plain_options(
    routing: &str,
    step: usize,
    numbering: StepNumbering,
) -> Vec<NextStepOption> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut said = String::new();
    for line in routing.lines() {
        let calls = scan::find_invocations(line);
        let Some((command, _)) = calls.into_iter().next() else {
            line.trim().clone_into(&mut said);
            continue;
        };
        let before = line.split("python").next().unwrap_or_default();
        let before = before.split('<').next().unwrap_or_default().trim();
        let when = if before.is_empty() { std::mem::take(&mut said) } else { before.to_owned() };
        if found.iter().all(|(_, known)| *known != command) {
            found.push((when, command));
        }
    }
    if let [(_, command)] = found.as_slice() {
        return vec![parse_option("ok".to_owned(), String::new(), command, numbering)];
    }
    let mut ways = Vec::new();
    for (when, command) in found {
        let mut one = parse_option(String::new(), when, &command, numbering);
        let to = one.to.map_or_else(|| "on".to_owned(), |to| to.to_string());
        let status = ScriptArguments::parse_words(&one.command.argv).status;
        one.outcome = Some(match (status, one.to) {
            // Two commands for one step that report different verdicts are two outcomes.
            (Some(QrStatus::Pass), _) => "ok".to_owned(),
            (Some(QrStatus::Fail), _) => "fail".to_owned(),
            (None, Some(to)) if to == step => "iterate".to_owned(),
            (None, _) => format!("to-{to}"),
        });
        // Two commands for one step with the same outcome differ only in other arguments; keep the first.
        if ways.iter().all(|known: &NextStepOption| known.outcome != one.outcome) {
            ways.push(one);
        }
    }
    ways
}

fn parse_option(
    outcome: String,
    when: String,
    line: &str,
    numbering: StepNumbering,
) -> NextStepOption {
    let line = line.trim();
    let argv = ShellCommand::split_line(line)
        .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    let to = ScriptArguments::parse_words(&argv)
        .step_number()
        .map(|number| numbering.to_one_based(number));
    let command = ShellCommand { argv, line: line.to_owned() };
    NextStepOption { outcome: Some(outcome), when, to, title: String::new(), command }
}

fn parse_gate(tag: &ScriptTag<'_>, title: &str) -> GateView {
    let message = tag.inner.trim();
    let status = gate_status(tag);
    let iteration = message
        .split_once("iteration ")
        .and_then(|(_, rest)| split_leading_number(rest))
        .and_then(|(number, _)| u32::try_from(number).ok())
        .unwrap_or(1);
    GateView {
        name: title.strip_suffix(" Gate").unwrap_or(title).to_owned(),
        status,
        iteration,
        limit: SCRIPT_ITERATIONS_MAX,
        blocking_severity: match iteration {
            0..=3 => "COULD",
            4 => "SHOULD",
            _ => "MUST",
        }
        .to_owned(),
        message: message.to_owned(),
        blocking: Vec::new(),
        passed_over: Vec::new(),
        stop: String::new(),
    }
}

fn find_iteration(actions: &[ViewBlock], gate: Option<&GateView>) -> u32 {
    let banner = actions.iter().find_map(|block| match block {
        ViewBlock::StateBanner(banner) => banner.iteration,
        _ => None,
    });
    banner.or(gate.map(|gate| gate.iteration)).unwrap_or(1)
}
