//! Renders a step as text, for people and simple agents: what the step is, what to do, what to report, what comes
//! next.

use super::hints;
use super::page::TextPage;
use crate::state::UserAnswer;
use crate::step::{
    ChoiceView, FindingsView, GateView, ItemView, NextStep, NextStepOption, ReportView, ReviewView,
    StepView,
};

mod block;

/// Renders the step as text at most `columns` wide, where it can be wrapped.
pub(super) fn write_step(view: &StepView, columns: usize) -> String {
    let mut page = TextPage::new(columns);
    write_header(&mut page, view);
    if let Some(shown) = &view.gate {
        write_gate(&mut page, shown);
    }
    if let Some(shown) = &view.findings {
        write_findings(&mut page, shown);
    }
    if let Some(shown) = &view.review {
        write_review(&mut page, view, shown);
    }
    if !view.answers.is_empty() {
        write_answers(&mut page, &view.answers);
    }
    if !view.actions.is_empty() {
        page.push_heading("DO:");
        for shown in &view.actions {
            page.push_gap();
            block::write_block(&mut page, shown);
        }
    }
    if let Some(form) = hints::ask_form(view) {
        page.push_gap();
        page.push_paragraph(0, &hints::ask_rule());
        page.push_command(2, &form.command);
    }
    if matches!(view.next, NextStep::Ways { .. }) {
        write_report(&mut page, view);
    }
    write_next(&mut page, view);
    page.into_text()
}

fn write_header(page: &mut TextPage, view: &StepView) {
    let mut first = format!("STEP {}/{} · {}", view.step, view.total, view.title);
    if let Some(phase) = &view.phase {
        first.push_str(&format!(" · {phase}"));
    }
    page.push_paragraph(0, &first);
    let mut parts = vec![view.workflow.clone()];
    if let Some(run) = &view.run {
        parts.push(format!("run {run}"));
        parts.push(format!("turn {}", view.turn));
    }
    if view.iteration > 1 {
        parts.push(format!("visit {}", view.iteration));
    }
    if let Some(role) = &view.role {
        parts.push(format!("by {role}"));
    }
    if view.status != "active" {
        parts.push(view.status.clone());
    }
    page.push_paragraph(0, &parts.join(" · "));
}

fn write_gate(page: &mut TextPage, gate: &GateView) {
    let status = match gate.status.as_str() {
        "pass" => "PASSED",
        "fail" => "FAILED",
        "open" => "OPEN",
        "limit" => "FAILED, AND AT ITS LIMIT",
        other => other,
    };
    let (iteration, limit) = (gate.iteration, gate.limit);
    page.push_heading(&format!("GATE {status}: {} (iteration {iteration} of {limit})", gate.name));
    page.push_paragraph(2, &gate.message);
    if gate.status != "pass" {
        page.push_paragraph(2, hints::blocking_rule(&gate.blocking_severity));
    }
    if !gate.blocking.is_empty() && gate.status != "open" {
        page.push_item(2, "Blocks: ", &gate.blocking.join(", "));
    }
    if !gate.passed_over.is_empty() {
        page.push_item(2, "Failed, but does not block: ", &gate.passed_over.join(", "));
    }
    if !gate.stop.is_empty() && gate.status != "pass" {
        page.push_item(2, "Until it is passed: ", &gate.stop);
    }
}

fn write_findings(page: &mut TextPage, findings: &FindingsView) {
    let FindingsView { name, iteration, .. } = findings;
    page.push_heading(&format!("REPAIR: {name} (iteration {iteration})"));
    if let Some(rule) = hints::passthrough_rule(findings) {
        page.push_paragraph(2, &rule);
        page.push_gap();
    }
    if findings.items.is_empty() {
        page.push_paragraph(2, hints::FINDINGS_ELSEWHERE);
    }
    write_items(page, &findings.items);
}

fn write_review(page: &mut TextPage, view: &StepView, review: &ReviewView) {
    let ReviewView { name, iteration, mode, .. } = review;
    page.push_heading(&format!("REVIEW: {name} (iteration {iteration}, {mode})"));
    page.push_paragraph(2, &review.banner);
    if !review.items.is_empty() {
        page.push_gap();
        page.push_line(2, "Items:");
        write_items(page, &review.items);
    }
    if !review.checks.is_empty() {
        page.push_gap();
        page.push_line(2, "Checks, which always block:");
        write_items(page, &review.checks);
    }
    page.push_gap();
    match (&review.record, &view.run) {
        (Some(_), Some(run)) => {
            page.push_line(2, "To record:");
            for form in hints::record_forms(run, review) {
                page.push_item(4, "# ", form.what);
                page.push_command(4, &form.command);
            }
        }
        (Some(record), None) => page.push_command(2, record),
        (None, _) => page.push_paragraph(2, hints::NOTHING_RECORDED),
    }
}

fn write_items(page: &mut TextPage, items: &[ItemView]) {
    for item in items {
        let severity = match item.severity.as_str() {
            "" => String::new(),
            severity => format!(" {severity}"),
        };
        // Checks have no severity, and their scope is a command.
        let scope = match (item.scope.as_str(), item.severity.as_str()) {
            ("", _) => String::new(),
            (command, "") => format!("`{command}`"),
            (scope, _) => scope.to_owned(),
        };
        let (sign, what) = match (scope.as_str(), item.check.as_str()) {
            ("", check) => (": ", check.to_owned()),
            (scope, "") => (": ", scope.to_owned()),
            (scope, check) => (" · ", format!("{scope}: {check}")),
        };
        page.push_item(4, &format!("[{}] {}{severity}{sign}", item.status, item.id), &what);
        if !item.finding.is_empty() {
            page.push_item(8, "→ ", &item.finding);
        }
    }
}

fn write_answers(page: &mut TextPage, answers: &[UserAnswer]) {
    page.push_heading("THE USER HAS ANSWERED:");
    for given in answers {
        page.push_item(2, &format!("{}: ", given.id), &given.ask);
        page.push_item(4, "→ ", &given.answer);
    }
}

fn write_report(page: &mut TextPage, view: &StepView) {
    let (report, is_run) = (&view.report, view.run.is_some());
    if *report == ReportView::default() {
        return;
    }
    page.push_heading("REPORT:");
    for set in &report.set {
        let flag = if is_run { "--set" } else { "--param" };
        let said = match set.description.as_str() {
            "" => set.takes.clone(),
            description => format!("{}. {description}", set.takes),
        };
        page.push_item(2, &format!("{flag} {}=VALUE  ", set.name), &said);
    }
    if let Some(what) = &report.output {
        page.push_item(2, if is_run { "--output TEXT  " } else { "Keep for later steps: " }, what);
    }
    if let Some(until) = &report.confidence {
        let levels = "exploring | low | medium | high | certain";
        let marker = if is_run { "--confidence LEVEL  " } else { "How sure you are: " };
        page.push_item(2, marker, &format!("{levels}. It goes on at {until}."));
    }
    for fact in &report.facts {
        let marker =
            if is_run { format!("--fact {}=ANSWER  ", fact.id) } else { format!("{}: ", fact.id) };
        page.push_item(2, &marker, &format!("{}. {}", fact.answers.join(" | "), fact.ask));
    }
    if let Some(rule) = hints::long_values(view) {
        page.push_paragraph(2, rule);
    }
}

fn write_next(page: &mut TextPage, view: &StepView) {
    match &view.next {
        NextStep::Complete { message } => {
            let is_aborted = view.status == hints::ABORTED;
            page.push_heading(if is_aborted {
                "ENDED BY A PERSON, NOT COMPLETE:"
            } else {
                "COMPLETE:"
            });
            page.push_paragraph(2, message);
        }
        NextStep::Record { message } => {
            page.push_heading("NEXT:");
            page.push_paragraph(2, message);
        }
        NextStep::Ways { ways, on_error } => {
            page.push_heading(if ways.len() > 1 { "NEXT, one of:" } else { "NEXT:" });
            for way in ways {
                write_option(page, way, ways.len() > 1);
            }
            if let Some(failed) = on_error {
                page.push_line(2, "if the step cannot be carried out:");
                page.push_command(4, failed);
            }
        }
        NextStep::Person { about, choices, questions, command } => {
            page.push_heading("A PERSON HAS TO DECIDE:");
            page.push_paragraph(2, hints::person_rule(questions));
            page.push_gap();
            page.push_paragraph(2, about);
            for asked in questions {
                page.push_gap();
                page.push_item(2, &format!("{}: ", asked.id), &asked.ask);
                page.push_list(4, &asked.options);
            }
            if let Some(command) = command {
                page.push_gap();
                page.push_command(2, command);
            }
            if !choices.is_empty() {
                page.push_gap();
            }
            for one in choices {
                write_choice(page, one);
            }
        }
    }
}

fn write_option(page: &mut TextPage, way: &NextStepOption, is_one_of_several: bool) {
    let to = match (way.to, way.title.as_str()) {
        (Some(step), "") => format!("to step {step}"),
        (Some(step), title) => format!("to step {step}, {title}"),
        (None, "") => String::new(),
        (None, title) => format!("to {title}"),
    };
    let outcome = way.outcome.as_deref().filter(|_| is_one_of_several).unwrap_or_default();
    let parts = [outcome, &way.when, &to].into_iter().filter(|part| !part.is_empty());
    let said = parts.collect::<Vec<_>>().join(" · ");
    if !said.is_empty() {
        page.push_paragraph(2, &said);
    }
    if way.command.line.is_empty() {
        page.push_line(4, "(nothing to run)")
    } else {
        page.push_command(4, &way.command)
    }
}

fn write_choice(page: &mut TextPage, choice: &ChoiceView) {
    page.push_item(2, &format!("{}: ", choice.choice), &choice.meaning);
    if !choice.command.line.is_empty() {
        page.push_command(4, &choice.command);
    }
}
