//! Renders a step as XML: one document with one root, the tags of the original scripts, everything escaped.
//! `docs/reference/workflow-protocol.md` describes the format; [`super::parse`] parses it.

use super::hints;
use super::tree::{self, XmlElement, new_element};
use crate::state::{UserAnswer, UserQuestion};
use crate::step::{
    ChoiceView, FindingsView, GateView, ItemView, NextStep, NextStepOption, ReviewView,
    ShellCommand, StepView,
};

pub(super) fn write_step(view: &StepView) -> String {
    tree::write_document(&step_document(view))
}

fn step_document(view: &StepView) -> XmlElement<'_> {
    let root = new_element("workflow")
        .with_number("protocol", view.protocol)
        .with_some("run", view.run.as_ref().map(crate::state::WorkflowRunId::as_str))
        .with("status", view.status.as_str())
        .with_number("turn", view.turn);
    let root = root.child(header_element(view)).child_some(
        (view.turn == 1).then(|| new_element("xml_format_mandate").text(hints::MANDATE)),
    );
    let root = match &view.gate {
        Some(gate) => root.child(gate_result_element(gate)).child_some(gate_actions_element(gate)),
        None => root,
    };
    let actions = view.actions.iter().map(super::block::block_element);
    let root = root
        .child_some(view.findings.as_ref().map(findings_element))
        .child_some(view.review.as_ref().map(|review| review_element(view, review)))
        .child_some((!view.answers.is_empty()).then(|| answers_element(&view.answers)))
        .child(new_element("current_action").all(actions))
        .child_some(hints::ask_form(view).map(|form| {
            new_element("user_input_relay")
                .child(new_element("rule").text(hints::ask_rule()))
                .child(new_element("ask").text(form.command.line))
        }))
        .child_some(report_element(view));
    add_next(root, view)
}

fn header_element(view: &StepView) -> XmlElement<'_> {
    new_element("step_header")
        .with("script", view.workflow.as_str())
        .with_some("phase", view.phase.as_deref())
        .with_number("step", view.step)
        .with_number("total", view.total)
        .with("id", view.id.as_str())
        .with_number("iteration", view.iteration)
        .with_some("role", view.role.as_deref())
        .text(view.title.as_str())
}

fn gate_result_element(gate: &GateView) -> XmlElement<'_> {
    new_element("gate_result")
        .with("status", gate.status.as_str())
        .with("name", gate.name.as_str())
        .with_number("iteration", gate.iteration)
        .with_number("limit", gate.limit)
        .with("blocking_severity", gate.blocking_severity.as_str())
        .text(gate.message.as_str())
}

fn gate_actions_element(gate: &GateView) -> Option<XmlElement<'_>> {
    let listed = |name, ids: &'_ [String]| {
        let items = ids.iter().map(|id| new_element("item").with("id", id.clone()));
        (!ids.is_empty()).then(|| new_element(name).all(items.collect::<Vec<_>>()))
    };
    let is_over = gate.status == "pass";
    let filter = (!is_over).then(|| {
        new_element("severity_filter").text(hints::blocking_rule(&gate.blocking_severity))
    });
    let actions = new_element("gate_actions")
        .child_some(filter)
        .child_some(listed("blocking", &gate.blocking))
        .child_some(listed("passed_over", &gate.passed_over))
        .child_any("stop", &gate.stop);
    (!actions.children.is_empty()).then_some(actions)
}

fn review_element<'a>(view: &'a StepView, review: &'a ReviewView) -> XmlElement<'a> {
    let record = match (&review.record, &view.run) {
        (Some(record), Some(run)) => {
            let forms = hints::record_forms(run, review);
            let forms = forms
                .into_iter()
                .map(|form| new_element("form").with("for", form.what).text(form.command.line));
            vec![command_element("record", record), new_element("record_forms").all(forms)]
        }
        (Some(record), None) => vec![command_element("record", record)],
        (None, _) => vec![new_element("result_form").text(hints::NOTHING_RECORDED)],
    };
    new_element("review")
        .with("gate", review.gate.as_str())
        .with("name", review.name.as_str())
        .with_number("iteration", review.iteration)
        .with("mode", review.mode.as_str())
        .child_any("banner", &review.banner)
        .child_some(items_element("items", &review.items))
        .child_some(items_element("checks", &review.checks))
        .all(record)
}

fn findings_element(findings: &FindingsView) -> XmlElement<'_> {
    let note =
        findings.items.is_empty().then(|| new_element("note").text(hints::FINDINGS_ELSEWHERE));
    new_element("findings")
        .with("gate", findings.gate.as_str())
        .with("name", findings.name.as_str())
        .with_number("iteration", findings.iteration)
        .with("fix", findings.fix.as_str())
        .child_some(items_element("items", &findings.items))
        .child_some(note)
        .child_some(
            hints::passthrough_rule(findings)
                .map(|text| new_element("qr_report_passthrough").text(text)),
        )
}

fn items_element<'a>(name: &'static str, items: &'a [ItemView]) -> Option<XmlElement<'a>> {
    let item = |item: &'a ItemView| {
        new_element("item")
            .with("id", item.id.as_str())
            .with_any("severity", &item.severity)
            .with("status", item.status.as_str())
            .child_any("scope", &item.scope)
            .child(new_element("check").text(item.check.as_str()))
            .child_any("finding", &item.finding)
    };
    (!items.is_empty()).then(|| new_element(name).all(items.iter().map(item)))
}

fn answers_element(answers: &[UserAnswer]) -> XmlElement<'_> {
    new_element("user_answers").all(answers.iter().map(|given| {
        new_element("answer")
            .with("id", given.id.as_str())
            .with("ask", given.ask.as_str())
            .text(given.answer.as_str())
    }))
}

fn report_element(view: &StepView) -> Option<XmlElement<'_>> {
    let report = &view.report;
    let set = report.set.iter().map(|set| {
        new_element("set")
            .with("name", set.name.as_str())
            .with("takes", set.takes.as_str())
            .text(set.description.as_str())
    });
    let facts = report.facts.iter().map(|fact| {
        new_element("fact")
            .with("id", fact.id.as_str())
            .child(new_element("ask").text(fact.ask.as_str()))
            .all(fact.answers.iter().map(|answer| new_element("option").text(answer.as_str())))
    });
    let said = new_element("report")
        .all(set)
        .child_some(report.output.as_deref().map(|text| new_element("output").text(text)))
        .child_some(
            report
                .confidence
                .as_deref()
                .map(|until| new_element("confidence").with("until", until)),
        )
        .all(facts)
        .child_some(hints::long_values(view).map(|text| new_element("long_values").text(text)));
    (!said.children.is_empty()).then_some(said)
}

fn add_next<'a>(root: XmlElement<'a>, view: &'a StepView) -> XmlElement<'a> {
    match &view.next {
        NextStep::Complete { message } if view.status == hints::ABORTED => {
            root.child(new_element("workflow_ended").with("by", "person").text(message.as_str()))
        }
        NextStep::Complete { message } => {
            root.child(new_element("workflow_complete").text(message.as_str()))
        }
        NextStep::Record { message } => {
            root.child(new_element("record_first").text(message.as_str()))
        }
        NextStep::Ways { ways, on_error } => root
            .child_some((!ways.is_empty()).then(|| invoke_after_element(ways)))
            .child_some(on_error.as_ref().map(|failed| command_element("on_error", failed)))
            .child(new_element("next").with("required", "true").text(repeat_commands(ways))),
        NextStep::Person { about, choices, questions, command: answer } => root.child(
            new_element("needs_user_input")
                .child(new_element("rule").text(hints::person_rule(questions)))
                .child(new_element("about").text(about.as_str()))
                .all(questions.iter().map(question_element))
                .all(choices.iter().map(choice_element))
                .child_some(answer.as_ref().map(|answer| command_element("answer", answer))),
        ),
    }
}

fn invoke_after_element(ways: &[NextStepOption]) -> XmlElement<'_> {
    if let [way] = ways {
        return option_element("invoke_after", way).with_some("outcome", way.outcome.as_deref());
    }
    let is_pair = is_pass_and_fail(ways);
    new_element("invoke_after").all(ways.iter().map(|way| match way.outcome.as_deref() {
        Some("ok") if is_pair => option_element("if_pass", way),
        Some("fail") if is_pair => option_element("if_fail", way),
        outcome => option_element("if", way).with_some("outcome", outcome),
    }))
}

/// Returns true if there is one way for success and one for failure.
fn is_pass_and_fail(ways: &[NextStepOption]) -> bool {
    let has = |word| ways.iter().any(|way| way.outcome.as_deref() == Some(word));
    ways.len() == 2 && has("ok") && has("fail")
}

fn option_element<'a>(name: &'static str, way: &'a NextStepOption) -> XmlElement<'a> {
    let to = command_element(name, &way.command).with_any("when", &way.when);
    let to = match way.to {
        Some(step) => to.with_number("step", step),
        None => to,
    };
    to.with_any("title", &way.title)
}

/// Repeats the commands: agents that read them twice follow them more reliably.
fn repeat_commands(ways: &[NextStepOption]) -> String {
    let mut text = "When current_action is done, run what invoke_after says".to_owned();
    if let [way] = ways {
        return format!("{text}: {}", command_line(way));
    }
    text.push_str(", one of:");
    for way in ways {
        text.push_str(&format!(
            "\n{}: {}",
            way.outcome.as_deref().unwrap_or("done"),
            command_line(way)
        ));
    }
    text
}

fn command_line(way: &NextStepOption) -> String {
    match way.command.line.as_str() {
        "" => "(nothing to run: the workflow is complete)".to_owned(),
        line => line.to_owned(),
    }
}

fn question_element(asked: &UserQuestion) -> XmlElement<'_> {
    new_element("question")
        .with("id", asked.id.as_str())
        .child(new_element("ask").text(asked.ask.as_str()))
        .all(asked.options.iter().map(|option| new_element("option").text(option.as_str())))
}

fn choice_element(choice: &ChoiceView) -> XmlElement<'_> {
    command_element("choice", &choice.command)
        .with("name", choice.choice.as_str())
        .with("meaning", choice.meaning.as_str())
}

/// An element with the command line as its text. The arguments are added only if splitting the line does not give
/// them.
pub(super) fn command_element<'a>(name: &'static str, command: &'a ShellCommand) -> XmlElement<'a> {
    let element = new_element(name).text(command.line.as_str());
    if ShellCommand::split_line(&command.line).as_ref() == Some(&command.argv) {
        element
    } else {
        element.with("argv", serde_json::json!(command.argv).to_string())
    }
}
