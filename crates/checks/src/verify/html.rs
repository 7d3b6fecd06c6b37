//! A verification as a self-contained HTML page. It loads nothing and runs no scripts, and its template escapes all
//! output of tools.

use minijinja::{Value, context};
use repertoire_text::html::{page_environment, source_hash};

use super::super::analyse::ErrorGroup;
use super::super::error::ParsedError;
use super::text::{
    check_details, format_counts, format_plural, format_seconds, group_heading, verdict_label,
};
use super::{CheckOutcome, CheckReport, VerificationMode, VerificationReport, VerificationVerdict};
use crate::limits::REPORT_ERRORS_SHOWN;

const STYLE: &str = include_str!("html/style.css");
const PAGE: &str = include_str!("html/page.html");

/// Renders the page.
pub fn render_html(verification: &VerificationReport) -> String {
    let suspicions = verification.suspicions.iter().map(|suspicion| {
        context! { check => suspicion.check.as_deref(), message => suspicion.message.as_str() }
    });
    let values = context! {
        style => STYLE,
        style_hash => source_hash(STYLE),
        verdict => verdict_label(verification.verdict),
        kind => match verification.verdict {
            VerificationVerdict::Passed => "good",
            VerificationVerdict::Failed => "bad",
            VerificationVerdict::Inconclusive | VerificationVerdict::NotVerifiable => "unsure",
        },
        facts => page_facts(verification),
        suspicions => suspicions.collect::<Vec<Value>>(),
        checks => verification.checks.iter().map(check_values).collect::<Vec<Value>>(),
    };
    let env = page_environment(&[("page", PAGE)]);
    let page = env.get_template("page").and_then(|template| template.render(values));
    page.expect("every name of the template has a value")
}

fn page_facts(verification: &VerificationReport) -> Vec<String> {
    let passed = verification.checks.iter().filter(|check| check.result == CheckOutcome::Passed);
    let mut facts = vec![format!(
        "{} of {} passed",
        passed.count(),
        format_plural(verification.checks.len(), "check")
    )];
    let errors = verification.errors().count();
    if errors > 0 {
        facts.push(format_plural(errors, "error"));
    }
    facts.push(format_seconds(verification.duration_ms));
    facts.extend(verification.state.commit.as_deref().map(|commit| {
        let commit: String = commit.chars().take(10).collect();
        let clean = match verification.state.clean {
            Some(true) => "clean",
            Some(false) => "with changes",
            None => "unknown state",
        };
        format!("commit {commit}, {clean}")
    }));
    facts.push(match verification.mode {
        VerificationMode::Fast => "the first red ends it".to_owned(),
        VerificationMode::Full => "all was run that could be".to_owned(),
    });
    facts.extend(verification.compared.as_ref().map(|compared| {
        let (new, remaining, gone) =
            (compared.new.len(), compared.remaining.len(), compared.gone.len());
        format!("compared with before: {new} new, {remaining} still there, {gone} gone")
    }));
    facts
}

fn check_values(check: &CheckReport) -> Value {
    let (kind, word) = match check.result {
        CheckOutcome::Passed => ("good", "passed"),
        CheckOutcome::Failed => ("bad", "failed"),
        CheckOutcome::TimedOut => ("bad", "took too long"),
        CheckOutcome::Skipped => ("quiet", "skipped"),
        CheckOutcome::CouldNotRun => ("unsure", "could not run"),
    };
    let analysis = &check.analysis;
    let mut groups = Vec::new();
    let mut room = REPORT_ERRORS_SHOWN;
    for (at, group) in analysis.groups.iter().enumerate() {
        if room == 0 {
            break;
        }
        let is_first = analysis.fix_first == Some(at) && analysis.groups.len() > 1;
        let errors = group.errors.iter().filter_map(|at| analysis.errors.get(*at));
        groups.push(group_values(group, is_first, errors.take(room)));
        room = room.saturating_sub(group.errors.len());
    }
    context! {
        kind,
        word,
        name => check.name.as_str(),
        about => check_details(check).join(" · "),
        command => check.command.as_str(),
        counts => (!analysis.errors.is_empty()).then(|| format_counts(analysis)),
        groups,
        has_more_errors => analysis.errors.len() > REPORT_ERRORS_SHOWN,
        output => check.output.as_str(),
        output_size => format_plural(check.output_bytes as usize, "byte"),
    }
}

fn group_values<'a>(
    group: &ErrorGroup,
    is_first: bool,
    errors: impl Iterator<Item = &'a ParsedError>,
) -> Value {
    let errors: Vec<Value> = errors.map(error_values).collect();
    context! { is_first, heading => group_heading(group), errors }
}

fn error_values(error: &ParsedError) -> Value {
    let labels =
        [("place", error.location()), ("code", error.code.clone()), ("test", error.test.clone())];
    let labels = labels.into_iter().filter_map(|(class, text)| Some((class, text?)));
    let context = error.context.iter().map(|line| {
        context! { is_cited => line.starts_with('>'), text => line.as_str() }
    });
    context! {
        labels => labels.map(Value::from).collect::<Vec<Value>>(),
        message => error.message.as_str(),
        context => context.collect::<Vec<Value>>(),
    }
}
