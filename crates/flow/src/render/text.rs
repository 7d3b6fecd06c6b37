//! Renders a step as text, for people and simple agents: what the step is, what to do, what to report, what comes
//! next.

use super::hints;
use super::page::Page;
use crate::state::Answer;
use crate::step::{
    ChoiceView, FindingsView, GateView, ItemView, Next, ReportView, ReviewView, StepView, Way,
};

mod block;

/// Renders the step as text at most `columns` wide, where it can be wrapped.
pub(super) fn text(view: &StepView, columns: usize) -> String {
    let mut page = Page::new(columns);
    header(&mut page, view);
    if let Some(shown) = &view.gate {
        gate(&mut page, shown);
    }
    if let Some(shown) = &view.findings {
        findings(&mut page, shown);
    }
    if let Some(shown) = &view.review {
        review(&mut page, view, shown);
    }
    if !view.answers.is_empty() {
        answers(&mut page, &view.answers);
    }
    if !view.actions.is_empty() {
        page.heading("DO:");
        for shown in &view.actions {
            page.gap();
            block::show(&mut page, shown);
        }
    }
    if let Some(form) = hints::ask_form(view) {
        page.gap();
        page.paragraph(0, &hints::ask_rule());
        page.command(2, &form.command);
    }
    if matches!(view.next, Next::Ways { .. }) {
        report(&mut page, view);
    }
    next(&mut page, view);
    page.finish()
}

fn header(page: &mut Page, view: &StepView) {
    let mut first = format!("STEP {}/{} · {}", view.step, view.total, view.title);
    if let Some(phase) = &view.phase {
        first.push_str(&format!(" · {phase}"));
    }
    page.paragraph(0, &first);
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
    page.paragraph(0, &parts.join(" · "));
}

fn gate(page: &mut Page, gate: &GateView) {
    let status = match gate.status.as_str() {
        "pass" => "PASSED",
        "fail" => "FAILED",
        "open" => "OPEN",
        "limit" => "FAILED, AND AT ITS LIMIT",
        other => other,
    };
    let (iteration, limit) = (gate.iteration, gate.limit);
    page.heading(&format!("GATE {status}: {} (iteration {iteration} of {limit})", gate.name));
    page.paragraph(2, &gate.message);
    if gate.status != "pass" {
        page.paragraph(2, hints::blocking(&gate.blocking_severity));
    }
    if !gate.blocking.is_empty() && gate.status != "open" {
        page.item(2, "Blocks: ", &gate.blocking.join(", "));
    }
    if !gate.passed_over.is_empty() {
        page.item(2, "Failed, but does not block: ", &gate.passed_over.join(", "));
    }
    if !gate.stop.is_empty() && gate.status != "pass" {
        page.item(2, "Until it is passed: ", &gate.stop);
    }
}

fn findings(page: &mut Page, findings: &FindingsView) {
    let FindingsView { name, iteration, .. } = findings;
    page.heading(&format!("REPAIR: {name} (iteration {iteration})"));
    if let Some(rule) = hints::passthrough(findings) {
        page.paragraph(2, &rule);
        page.gap();
    }
    if findings.items.is_empty() {
        page.paragraph(2, hints::FINDINGS_ELSEWHERE);
    }
    items(page, &findings.items);
}

fn review(page: &mut Page, view: &StepView, review: &ReviewView) {
    let ReviewView { name, iteration, mode, .. } = review;
    page.heading(&format!("REVIEW: {name} (iteration {iteration}, {mode})"));
    page.paragraph(2, &review.banner);
    if !review.items.is_empty() {
        page.gap();
        page.line(2, "Items:");
        items(page, &review.items);
    }
    if !review.checks.is_empty() {
        page.gap();
        page.line(2, "Checks, which always block:");
        items(page, &review.checks);
    }
    page.gap();
    match (&review.record, &view.run) {
        (Some(_), Some(run)) => {
            page.line(2, "To record:");
            for form in hints::record_forms(run, review) {
                page.item(4, "# ", form.what);
                page.command(4, &form.command);
            }
        }
        (Some(record), None) => page.command(2, record),
        (None, _) => page.paragraph(2, hints::NOTHING_RECORDED),
    }
}

fn items(page: &mut Page, items: &[ItemView]) {
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
        page.item(4, &format!("[{}] {}{severity}{sign}", item.status, item.id), &what);
        if !item.finding.is_empty() {
            page.item(8, "→ ", &item.finding);
        }
    }
}

fn answers(page: &mut Page, answers: &[Answer]) {
    page.heading("THE USER HAS ANSWERED:");
    for given in answers {
        page.item(2, &format!("{}: ", given.id), &given.ask);
        page.item(4, "→ ", &given.answer);
    }
}

fn report(page: &mut Page, view: &StepView) {
    let (report, is_run) = (&view.report, view.run.is_some());
    if *report == ReportView::default() {
        return;
    }
    page.heading("REPORT:");
    for set in &report.set {
        let flag = if is_run { "--set" } else { "--param" };
        let said = match set.description.as_str() {
            "" => set.takes.clone(),
            description => format!("{}. {description}", set.takes),
        };
        page.item(2, &format!("{flag} {}=VALUE  ", set.name), &said);
    }
    if let Some(what) = &report.output {
        page.item(2, if is_run { "--output TEXT  " } else { "Keep for later steps: " }, what);
    }
    if let Some(until) = &report.confidence {
        let levels = "exploring | low | medium | high | certain";
        let marker = if is_run { "--confidence LEVEL  " } else { "How sure you are: " };
        page.item(2, marker, &format!("{levels}. It goes on at {until}."));
    }
    for fact in &report.facts {
        let marker =
            if is_run { format!("--fact {}=ANSWER  ", fact.id) } else { format!("{}: ", fact.id) };
        page.item(2, &marker, &format!("{}. {}", fact.answers.join(" | "), fact.ask));
    }
    if let Some(rule) = hints::long_values(view) {
        page.paragraph(2, rule);
    }
}

fn next(page: &mut Page, view: &StepView) {
    match &view.next {
        Next::Complete { message } => {
            let is_aborted = view.status == hints::ABORTED;
            page.heading(if is_aborted { "ENDED BY A PERSON, NOT COMPLETE:" } else { "COMPLETE:" });
            page.paragraph(2, message);
        }
        Next::Record { message } => {
            page.heading("NEXT:");
            page.paragraph(2, message);
        }
        Next::Ways { ways, on_error } => {
            page.heading(if ways.len() > 1 { "NEXT, one of:" } else { "NEXT:" });
            for way in ways {
                way_on(page, way, ways.len() > 1);
            }
            if let Some(failed) = on_error {
                page.line(2, "if the step cannot be carried out:");
                page.command(4, failed);
            }
        }
        Next::Person { about, choices, questions, command } => {
            page.heading("A PERSON HAS TO DECIDE:");
            page.paragraph(2, hints::person_rule(questions));
            page.gap();
            page.paragraph(2, about);
            for asked in questions {
                page.gap();
                page.item(2, &format!("{}: ", asked.id), &asked.ask);
                page.list(4, &asked.options);
            }
            if let Some(command) = command {
                page.gap();
                page.command(2, command);
            }
            if !choices.is_empty() {
                page.gap();
            }
            for one in choices {
                choice(page, one);
            }
        }
    }
}

fn way_on(page: &mut Page, way: &Way, is_one_of_several: bool) {
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
        page.paragraph(2, &said);
    }
    if way.command.line.is_empty() {
        page.line(4, "(nothing to run)")
    } else {
        page.command(4, &way.command)
    }
}

fn choice(page: &mut Page, choice: &ChoiceView) {
    page.item(2, &format!("{}: ", choice.choice), &choice.meaning);
    if !choice.command.line.is_empty() {
        page.command(4, &choice.command);
    }
}
