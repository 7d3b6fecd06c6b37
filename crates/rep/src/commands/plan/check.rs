//! `rep plan check`: reports problems in a plan.

use camino::Utf8Path;
use repertoire_plan::codes;
use repertoire_plan::document::{self, PlanDocument};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::name::nearest_name;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{Diagnostic, Severity, terminal};

use super::PlanArg;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::plan::PlanCheckJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep plan check`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanCheckArgs {
    #[command(flatten)]
    plan: PlanArg,
    /// Show informational findings too, not only errors and warnings
    #[arg(long, short)]
    verbose: bool,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &PlanCheckArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let plan = args.plan.read_plan(ctx)?;
    let found = plan_findings(ctx, &plan)?;
    let count =
        |severity: Severity| found.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let exit = if errors > 0 || args.strict && warnings > 0 { CliExit::No } else { CliExit::Done };
    if ui.json {
        ui.print_json(&PlanCheckJson {
            plan: plan.source().path().to_string(),
            fallback: plan.fallback.clone(),
            tasks: plan.tasks.len(),
            diagnostics: found.iter().map(DiagnosticJson::from).collect(),
            errors,
            warnings,
        })?;
        return Ok(exit);
    }
    let least = if args.verbose { Severity::Info } else { Severity::Warning };
    let text = plan.source().text();
    for found in found.iter().filter(|found| found.severity <= least) {
        writeln!(
            ui.out,
            "{}",
            terminal::render_diagnostic(found, Some(text), ui.diagnostics_colour())
        )?;
    }
    let hidden = found.iter().filter(|found| found.severity > least).count();
    writeln!(ui.out, "{}", format_summary(&plan, (errors, warnings, hidden), ui))?;
    Ok(exit)
}

fn format_summary(
    plan: &PlanDocument,
    (errors, warnings, hidden): (usize, usize, usize),
    ui: &TerminalUi<'_>,
) -> String {
    let tasks = ui::format_count(plan.tasks.len(), "task");
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(ui.paint(ui::BAD, ui::format_count(errors, "error")));
    }
    if warnings > 0 {
        parts.push(ui.paint(ui::WARN, ui::format_count(warnings, "warning")));
    }
    let mut line = match parts.as_slice() {
        [] => format!("{} {tasks}, nothing to complain about", ui.paint(ui::GOOD, "ok:")),
        parts => format!("{tasks}: {}", parts.join(", ")),
    };
    if hidden > 0 {
        let notes = ui::format_count(hidden, "note");
        line.push_str(&ui.paint(ui::FAINT, format!("; {notes} not shown, see --verbose")));
    }
    line
}

/// Returns all findings about a plan, given the available skills and files.
pub(super) fn plan_findings(
    ctx: &CliContext<'_>,
    plan: &PlanDocument,
) -> Result<Vec<Diagnostic>, CliFailure> {
    let names_skills = plan.tasks.iter().any(|task| !task.hints.is_empty());
    // Most plans name no skills, so skip the discovery for them.
    let catalog = if names_skills { Some(ctx.load_catalog()?) } else { None };
    let known = |name: &str| catalog.is_none_or(|catalog| catalog.resolve(name).is_ok());
    let beside = plan.source().path().parent().unwrap_or(Utf8Path::new(""));
    let exists = |path: &str| {
        ctx.env.here.join(beside).join(path).is_file() || ctx.env.here.join(path).is_file()
    };
    let mut found = document::check_plan(plan, &known, &exists);
    if let Some(catalog) = catalog {
        found.iter_mut().for_each(|found| suggest_skill(catalog, plan, found));
    }
    Ok(found)
}

/// Adds the most similar skill name to a finding about an unknown skill.
fn suggest_skill(catalog: &Catalog, plan: &PlanDocument, found: &mut Diagnostic) {
    if found.code != &codes::PLAN_UNKNOWN_SKILL {
        return;
    }
    let wrong = found.span.map(|span| span.slice(plan.source().text()).trim_start_matches('@'));
    let known = catalog.entries().iter().map(|entry| entry.id.as_str());
    if let Some(near) = wrong.and_then(|wrong| nearest_name(wrong, known)) {
        found.help = Some(format!("Did you mean `{near}`?").into());
    }
}
