//! Renders a step as XML: one document with one root, the tags of the original scripts, everything escaped.
//! `docs/workflow-protocol.md` describes the format; [`super::parse`] parses it.

use super::hints;
use super::tree::{self, Element, element};
use crate::state::{Answer, UserQuestion};
use crate::step::{
    ChoiceView, Command, FindingsView, GateView, ItemView, Next, ReviewView, StepView, Way,
};

pub(super) fn xml(view: &StepView) -> String {
    tree::write(&document(view))
}

fn document(view: &StepView) -> Element<'_> {
    let root = element("workflow")
        .with_number("protocol", view.protocol)
        .with_some("run", view.run.as_ref().map(crate::state::RunId::as_str))
        .with("status", view.status.as_str())
        .with_number("turn", view.turn);
    let root = root
        .child(header(view))
        .child_some((view.turn == 1).then(|| element("xml_format_mandate").text(hints::MANDATE)));
    let root = match &view.gate {
        Some(gate) => root.child(gate_result(gate)).child_some(gate_actions(gate)),
        None => root,
    };
    let actions = view.actions.iter().map(super::block::written);
    let root = root
        .child_some(view.findings.as_ref().map(findings))
        .child_some(view.review.as_ref().map(|review| reviewed(view, review)))
        .child_some((!view.answers.is_empty()).then(|| answers(&view.answers)))
        .child(element("current_action").all(actions))
        .child_some(hints::ask_form(view).map(|form| {
            element("user_input_relay")
                .child(element("rule").text(hints::ask_rule()))
                .child(element("ask").text(form.command.line))
        }))
        .child_some(report(view));
    next(root, view)
}

fn header(view: &StepView) -> Element<'_> {
    element("step_header")
        .with("script", view.workflow.as_str())
        .with_some("phase", view.phase.as_deref())
        .with_number("step", view.step)
        .with_number("total", view.total)
        .with("id", view.id.as_str())
        .with_number("iteration", view.iteration)
        .with_some("role", view.role.as_deref())
        .text(view.title.as_str())
}

fn gate_result(gate: &GateView) -> Element<'_> {
    element("gate_result")
        .with("status", gate.status.as_str())
        .with("name", gate.name.as_str())
        .with_number("iteration", gate.iteration)
        .with_number("limit", gate.limit)
        .with("blocking_severity", gate.blocking_severity.as_str())
        .text(gate.message.as_str())
}

fn gate_actions(gate: &GateView) -> Option<Element<'_>> {
    let listed = |name, ids: &'_ [String]| {
        let items = ids.iter().map(|id| element("item").with("id", id.clone()));
        (!ids.is_empty()).then(|| element(name).all(items.collect::<Vec<_>>()))
    };
    let is_over = gate.status == "pass";
    let filter = (!is_over)
        .then(|| element("severity_filter").text(hints::blocking(&gate.blocking_severity)));
    let actions = element("gate_actions")
        .child_some(filter)
        .child_some(listed("blocking", &gate.blocking))
        .child_some(listed("passed_over", &gate.passed_over))
        .child_any("stop", &gate.stop);
    (!actions.children.is_empty()).then_some(actions)
}

fn reviewed<'a>(view: &'a StepView, review: &'a ReviewView) -> Element<'a> {
    let record = match (&review.record, &view.run) {
        (Some(record), Some(run)) => {
            let forms = hints::record_forms(run, review);
            let forms = forms
                .into_iter()
                .map(|form| element("form").with("for", form.what).text(form.command.line));
            vec![command("record", record), element("record_forms").all(forms)]
        }
        (Some(record), None) => vec![command("record", record)],
        (None, _) => vec![element("result_form").text(hints::NOTHING_RECORDED)],
    };
    element("review")
        .with("gate", review.gate.as_str())
        .with("name", review.name.as_str())
        .with_number("iteration", review.iteration)
        .with("mode", review.mode.as_str())
        .child_any("banner", &review.banner)
        .child_some(items("items", &review.items))
        .child_some(items("checks", &review.checks))
        .all(record)
}

fn findings(findings: &FindingsView) -> Element<'_> {
    let note = findings.items.is_empty().then(|| element("note").text(hints::FINDINGS_ELSEWHERE));
    element("findings")
        .with("gate", findings.gate.as_str())
        .with("name", findings.name.as_str())
        .with_number("iteration", findings.iteration)
        .with("fix", findings.fix.as_str())
        .child_some(items("items", &findings.items))
        .child_some(note)
        .child_some(
            hints::passthrough(findings).map(|text| element("qr_report_passthrough").text(text)),
        )
}

fn items<'a>(name: &'static str, items: &'a [ItemView]) -> Option<Element<'a>> {
    let item = |item: &'a ItemView| {
        element("item")
            .with("id", item.id.as_str())
            .with_any("severity", &item.severity)
            .with("status", item.status.as_str())
            .child_any("scope", &item.scope)
            .child(element("check").text(item.check.as_str()))
            .child_any("finding", &item.finding)
    };
    (!items.is_empty()).then(|| element(name).all(items.iter().map(item)))
}

fn answers(answers: &[Answer]) -> Element<'_> {
    element("user_answers").all(answers.iter().map(|given| {
        element("answer")
            .with("id", given.id.as_str())
            .with("ask", given.ask.as_str())
            .text(given.answer.as_str())
    }))
}

fn report(view: &StepView) -> Option<Element<'_>> {
    let report = &view.report;
    let set = report.set.iter().map(|set| {
        element("set")
            .with("name", set.name.as_str())
            .with("takes", set.takes.as_str())
            .text(set.description.as_str())
    });
    let facts = report.facts.iter().map(|fact| {
        element("fact")
            .with("id", fact.id.as_str())
            .child(element("ask").text(fact.ask.as_str()))
            .all(fact.answers.iter().map(|answer| element("option").text(answer.as_str())))
    });
    let said = element("report")
        .all(set)
        .child_some(report.output.as_deref().map(|text| element("output").text(text)))
        .child_some(
            report.confidence.as_deref().map(|until| element("confidence").with("until", until)),
        )
        .all(facts)
        .child_some(hints::long_values(view).map(|text| element("long_values").text(text)));
    (!said.children.is_empty()).then_some(said)
}

fn next<'a>(root: Element<'a>, view: &'a StepView) -> Element<'a> {
    match &view.next {
        Next::Complete { message } if view.status == hints::ABORTED => {
            root.child(element("workflow_ended").with("by", "person").text(message.as_str()))
        }
        Next::Complete { message } => {
            root.child(element("workflow_complete").text(message.as_str()))
        }
        Next::Record { message } => root.child(element("record_first").text(message.as_str())),
        Next::Ways { ways, on_error } => root
            .child_some((!ways.is_empty()).then(|| invoke_after(ways)))
            .child_some(on_error.as_ref().map(|failed| command("on_error", failed)))
            .child(element("next").with("required", "true").text(repeated(ways))),
        Next::Person { about, choices, questions, command: answer } => root.child(
            element("needs_user_input")
                .child(element("rule").text(hints::person_rule(questions)))
                .child(element("about").text(about.as_str()))
                .all(questions.iter().map(question))
                .all(choices.iter().map(choice))
                .child_some(answer.as_ref().map(|answer| command("answer", answer))),
        ),
    }
}

fn invoke_after(ways: &[Way]) -> Element<'_> {
    if let [way] = ways {
        return way_on("invoke_after", way).with_some("outcome", way.outcome.as_deref());
    }
    let is_pair = is_pass_and_fail(ways);
    element("invoke_after").all(ways.iter().map(|way| match way.outcome.as_deref() {
        Some("ok") if is_pair => way_on("if_pass", way),
        Some("fail") if is_pair => way_on("if_fail", way),
        outcome => way_on("if", way).with_some("outcome", outcome),
    }))
}

/// Returns true if there is one way for success and one for failure.
fn is_pass_and_fail(ways: &[Way]) -> bool {
    let has = |word| ways.iter().any(|way| way.outcome.as_deref() == Some(word));
    ways.len() == 2 && has("ok") && has("fail")
}

fn way_on<'a>(name: &'static str, way: &'a Way) -> Element<'a> {
    let to = command(name, &way.command).with_any("when", &way.when);
    let to = match way.to {
        Some(step) => to.with_number("step", step),
        None => to,
    };
    to.with_any("title", &way.title)
}

/// Repeats the commands: agents that read them twice follow them more reliably.
fn repeated(ways: &[Way]) -> String {
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

fn command_line(way: &Way) -> String {
    match way.command.line.as_str() {
        "" => "(nothing to run: the workflow is complete)".to_owned(),
        line => line.to_owned(),
    }
}

fn question(asked: &UserQuestion) -> Element<'_> {
    element("question")
        .with("id", asked.id.as_str())
        .child(element("ask").text(asked.ask.as_str()))
        .all(asked.options.iter().map(|option| element("option").text(option.as_str())))
}

fn choice(choice: &ChoiceView) -> Element<'_> {
    command("choice", &choice.command)
        .with("name", choice.choice.as_str())
        .with("meaning", choice.meaning.as_str())
}

/// An element with the command line as its text. The arguments are added only if splitting the line does not give
/// them.
pub(super) fn command<'a>(name: &'static str, command: &'a Command) -> Element<'a> {
    let element = element(name).text(command.line.as_str());
    if Command::split(&command.line).as_ref() == Some(&command.argv) {
        element
    } else {
        element.with("argv", serde_json::json!(command.argv).to_string())
    }
}
