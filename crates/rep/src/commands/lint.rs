//! `rep lint`: checks files and folders, prints the findings, and applies safe fixes.

use std::collections::BTreeSet;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_flow::file::{self, LoadedWorkflow};
use repertoire_github::mode;
use repertoire_select::SelectionModel;
use repertoire_select::limits::COMPARED_SKILLS_MAX;
use repertoire_select::lint as select_lint;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::codes;
use repertoire_skill::discover::{RootState, discover_catalog};
use repertoire_skill::limits::SkillLimits;
use repertoire_skill::lint::{
    FileReport, LintReport, LintRequest, LintRuleSet, SkillComparison, apply_fixes, lint_paths,
};
use repertoire_skill::profile::Root;
use repertoire_skill::skill::{Scope, Skill, SkillKind};
use repertoire_skill::skills_ref;
use repertoire_text::{Severity, sarif, terminal};

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{LintFileJson, LintJson};
use crate::ui::{self, TerminalUi};

/// Maximum number of rounds of fixing and checking. Findings left after that need a person.
const FIX_ROUNDS_MAX: usize = 4;

/// Arguments of `rep lint`
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LintArgs {
    /// Files and folders to check (default: all discovered skills)
    paths: Vec<Utf8PathBuf>,
    /// Apply safe fixes
    #[arg(long)]
    fix: bool,
    /// Print SARIF 2.1.0
    #[arg(long, conflicts_with = "format")]
    sarif: bool,
    /// Output format
    #[arg(long, value_enum)]
    format: Option<LintFormat>,
    /// Show informational findings too, not only errors and warnings
    #[arg(long, short)]
    verbose: bool,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Compare skills with each other, however many there are
    #[arg(long, conflicts_with = "no_compare")]
    compare: bool,
    /// Don't compare skills with each other
    #[arg(long)]
    no_compare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LintFormat {
    /// Like rustc, with the source line
    Full,
    /// One line per finding
    Short,
    /// JSON
    Json,
    /// SARIF 2.1.0
    Sarif,
    /// Exactly the output of skills-ref's `agentskills validate`
    SkillsRef,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &LintArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json && args.format.is_some_and(|format| format != LintFormat::Json) {
        return Err(CliFailure::wrong_usage("`--json` and `--format` ask for different outputs")
            .hint("Leave out one of the two."));
    }
    let format = match args.format {
        _ if args.sarif => LintFormat::Sarif,
        Some(format) => format,
        None if ui.json => LintFormat::Json,
        None => LintFormat::Full,
    };
    if format == LintFormat::SkillsRef && args.fix {
        return Err(CliFailure::wrong_usage("skills-ref mends nothing")
            .hint("Run `rep lint --fix` without `--format skills-ref`."));
    }
    let profile = ctx.config.values().profile;
    if args.compare
        && (format == LintFormat::SkillsRef || !select_lint::applies_to_profile(profile))
    {
        let message = "`--compare` belongs to the rules of the profile `repertoire`";
        return Err(CliFailure::wrong_usage(message)
            .hint("Other profiles, and `--format skills-ref`, say what another tool would say."));
    }
    if format == LintFormat::SkillsRef {
        return skills_ref_verdicts(ctx, args, ui);
    }
    let mut report = check_files(ctx, args)?;
    let mut fixed = Vec::new();
    // Fixing a line can reveal further problems in it, so check again.
    for _ in 0..if args.fix { FIX_ROUNDS_MAX } else { 0 } {
        let changed = apply_fixes(&report).map_err(|(path, error)| {
            CliFailure::cannot_run(format!("{path} cannot be written: {error}"))
        })?;
        if changed.is_empty() {
            break;
        }
        fixed.extend(changed);
        report = check_files(ctx, args)?;
    }
    fixed.sort();
    fixed.dedup();
    match format {
        LintFormat::Json => ui.print_json(&LintJson {
            files: report.files.iter().map(LintFileJson::from_report).collect(),
            summary: report.count_findings(),
        })?,
        LintFormat::Sarif => {
            let all = report.files.iter().flat_map(|file| &file.diagnostics);
            ui.print_json(&sarif::render_report(
                env!("CARGO_PKG_VERSION"),
                &crate::codes::all_diagnostic_codes(),
                all,
            ))?;
        }
        LintFormat::Full | LintFormat::Short => {
            // Shorten the paths if the user didn't type them.
            if args.paths.is_empty() {
                shorten_paths(&mut report, ctx);
                let places = ctx.config.places();
                fixed = fixed.iter().map(|path| places.shorten_path(path).into()).collect();
            }
            print_findings(&report, args, format, &fixed, ui)?;
        }
        LintFormat::SkillsRef => {}
    }
    if let Some(skills) = report.not_compared {
        ui.print_note(&format!(
            "note: {skills} skills are more than {COMPARED_SKILLS_MAX}, so they were not compared with each other; `--compare` does it"
        ))?;
    }
    if args.fix && report.files.iter().any(has_hidden_text) {
        ui.print_note("note: `--fix` does not remove invisible characters; look at them and delete them yourself")?;
    }
    let summary = report.count_findings();
    let failed = summary.errors > 0 || (args.strict && summary.warnings > 0);
    Ok(if failed { CliExit::No } else { CliExit::Done })
}

fn has_hidden_text(file: &FileReport) -> bool {
    file.diagnostics.iter().any(|found| found.code == &codes::HIDDEN_TEXT)
}

/// Returns the files of discovered skills that have errors.
pub(crate) fn files_with_errors(ctx: &CliContext<'_>) -> Result<BTreeSet<Utf8PathBuf>, CliFailure> {
    let args = LintArgs { no_compare: true, ..LintArgs::default() };
    let files = check_files(ctx, &args)?.files;
    let wrong = files.into_iter().filter(has_errors);
    Ok(wrong.map(|file| file.path).collect())
}

fn has_errors(file: &FileReport) -> bool {
    file.diagnostics.iter().any(|found| found.severity == Severity::Error)
}

fn check_files(ctx: &CliContext<'_>, args: &LintArgs) -> Result<LintReport, CliFailure> {
    let request = ctx.config.discovery_request_without_trust();
    let mut shadowed = BTreeSet::new();
    let paths = if args.paths.is_empty() {
        // `--fix` leaves plugins and built-in skills alone: they belong to their publishers.
        let own = |scope: Scope| !args.fix || !matches!(scope, Scope::Plugin | Scope::Builtin);
        let catalog = discover_catalog(&request);
        shadowed.extend(catalog.shadowed().iter().map(|lost| lost.entry.skill.origin.file.clone()));
        discovered_files(&catalog, own)
    } else {
        args.paths.iter().map(|path| existing_path(ctx, path)).collect::<Result<_, _>>()?
    };
    let wanted = !args.no_compare && select_lint::applies_to_profile(ctx.config.values().profile);
    let model = if wanted { ctx.selection_model()? } else { SelectionModel::embedded() };
    // Shadowed skills are not in use, so they need not be distinguishable from the others.
    let compare = |skills: &[Arc<Skill>]| {
        let in_use = |skill: &&Arc<Skill>| !shadowed.contains(&skill.origin.file);
        let skills: Vec<Arc<Skill>> = skills.iter().filter(in_use).cloned().collect();
        select_lint::check_offered_skills(&skills, &model)
    };
    let is_ours = LintRuleSet::from(ctx.config.values().profile) == LintRuleSet::Repertoire;
    let skills_max = if args.compare { usize::MAX } else { COMPARED_SKILLS_MAX };
    Ok(lint_paths(&LintRequest {
        paths: &paths,
        rules: LintRuleSet::from(ctx.config.values().profile),
        limits: request.limits,
        links_beneath: &|dir| links_beneath(ctx, dir),
        environment: &|| discover_catalog(&request),
        comparison: wanted.then_some(SkillComparison { skills_max, check: &compare }),
        companions: is_ours.then_some(&companion_reports),
    }))
}

/// Returns the folder that links in a searched folder must not lead out of: the project, or outside
/// of it the folder itself. `None` for the user's own skill folders, whose links may lead anywhere.
fn links_beneath(ctx: &CliContext<'_>, dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let (places, dir) = (ctx.config.places(), canonical_or_same(dir));
    let project = canonical_or_same(places.project_dir());
    if project != canonical_or_same(&places.home) && dir.starts_with(&project) {
        return Some(project);
    }
    let request = ctx.config.discovery_request_without_trust();
    let roots = request.profile.roots_at(places).into_iter().chain(request.extra_roots);
    let mut own = roots.filter(is_users_own).map(|root| canonical_or_same(&root.dir));
    if own.any(|root| dir.starts_with(root)) { None } else { Some(dir) }
}

fn is_users_own(root: &Root) -> bool {
    matches!(root.scope, Scope::User | Scope::Extra | Scope::Builtin)
}

fn canonical_or_same(dir: &Utf8Path) -> Utf8PathBuf {
    dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned())
}

/// Checks the parts of a skill that the `skill` crate knows nothing of: workflows and modes.
fn companion_reports(skill: &Skill, names: &[String]) -> Vec<FileReport> {
    let mut reports = workflow_reports(skill, names);
    if skill.kind == SkillKind::Mode {
        reports.push(FileReport {
            path: skill.origin.file.clone(),
            name: Some(skill.name.clone()),
            text: None,
            diagnostics: mode::mode_diagnostics(skill),
            linked: false,
        });
    }
    reports
}

/// Checks the workflows of a skill. `names` lists its folder, so that most skills need no disk
/// access.
fn workflow_reports(skill: &Skill, names: &[String]) -> Vec<FileReport> {
    if !names.iter().any(|name| name == file::FILE) {
        return Vec::new();
    }
    file::load_workflows(skill).into_iter().map(report_of_workflow).collect()
}

fn report_of_workflow(loaded: LoadedWorkflow) -> FileReport {
    FileReport {
        path: loaded.source.path().to_owned(),
        name: Some(loaded.name),
        text: Some(loaded.source.shared_text()),
        diagnostics: loaded.diagnostics,
        linked: false,
    }
}

fn shorten_paths(report: &mut LintReport, ctx: &CliContext<'_>) {
    for file in &mut report.files {
        file.text = file.shown_text(&SkillLimits::default());
        file.path = ctx.config.places().shorten_path(&file.path).into();
        for found in &mut file.diagnostics {
            found.path = Some(file.path.clone());
        }
    }
}

fn existing_path(ctx: &CliContext<'_>, path: &Utf8PathBuf) -> Result<Utf8PathBuf, CliFailure> {
    let typed = ctx.typed_path(path);
    if typed.symlink_metadata().is_err() {
        return Err(CliFailure::wrong_usage(format!("there is no `{path}`"))
            .hint("Give a skill's folder, its SKILL.md, or a folder of skills."));
    }
    Ok(typed)
}

fn discovered_files(catalog: &Catalog, wanted: impl Fn(Scope) -> bool) -> Vec<Utf8PathBuf> {
    // Built-in skills served from memory have no files to check.
    let in_memory = catalog.roots().iter().filter(|root| root.state == RootState::InPlace);
    let in_memory: Vec<&Utf8PathBuf> = in_memory.map(|root| &root.root.dir).collect();
    let on_disk = |entry: &&CatalogEntry| {
        let origin = &entry.skill.origin;
        wanted(origin.scope) && !in_memory.contains(&&origin.root)
    };
    let winners =
        catalog.entries().iter().filter(on_disk).map(|entry| entry.skill.origin.file.clone());
    let losers = catalog
        .shadowed()
        .iter()
        .map(|lost| &lost.entry)
        .filter(on_disk)
        .map(|entry| entry.skill.origin.file.clone());
    let broken = catalog
        .broken()
        .iter()
        .filter(|broken| wanted(broken.scope))
        .map(|broken| broken.path.clone());
    winners.chain(losers).chain(broken).collect()
}

fn print_findings(
    report: &LintReport,
    args: &LintArgs,
    format: LintFormat,
    fixed: &[Utf8PathBuf],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let least = if args.verbose { Severity::Info } else { Severity::Warning };
    let mut hidden = 0;
    for file in report.files.iter().filter(|file| !file.diagnostics.is_empty()) {
        let text = file.shown_text(&SkillLimits::default());
        for found in &file.diagnostics {
            if found.severity > least {
                hidden += 1;
                continue;
            }
            if format == LintFormat::Full {
                let shown =
                    terminal::render_diagnostic(found, text.as_deref(), ui.diagnostics_colour());
                writeln!(ui.out, "{shown}")?;
                continue;
            }
            let at =
                found.position.map_or(String::new(), |at| format!(":{}:{}", at.line, at.column));
            let (code, severity) = (found.code.id, found.severity.as_str());
            let message = terminal::printable_line(&found.message);
            writeln!(ui.out, "{}{at}: {severity}[{code}] {message}", file.path)?;
        }
    }
    for path in fixed {
        writeln!(ui.out, "{} {path}", ui.paint(ui::GOOD, "fixed"))?;
    }
    writeln!(ui.out, "{}", summary_line(report, hidden, ui))
}

fn summary_line(report: &LintReport, hidden: usize, ui: &TerminalUi<'_>) -> String {
    let summary = report.count_findings();
    if summary.files == 0 {
        return "No skills to check.".to_owned();
    }
    let files = describe_files(report);
    let mut parts = Vec::new();
    if summary.errors > 0 {
        parts.push(ui.paint(ui::BAD, ui::format_count(summary.errors, "error")));
    }
    if summary.warnings > 0 {
        parts.push(ui.paint(ui::WARN, ui::format_count(summary.warnings, "warning")));
    }
    let mut line = match parts.as_slice() {
        [] => format!("{} {files}, nothing to complain about", ui.paint(ui::GOOD, "ok:")),
        parts => format!("{files}: {}", parts.join(", ")),
    };
    if summary.fixable > 0 {
        line.push_str(&format!(" ({} can be mended with --fix)", summary.fixable));
    }
    if hidden > 0 {
        let notes = ui::format_count(hidden, "note");
        line.push_str(&ui.paint(ui::FAINT, format!("; {notes} not shown, see --verbose")));
    }
    line
}

/// Returns the number of checked files, which is larger than the number of skills if some have
/// workflows.
fn describe_files(report: &LintReport) -> String {
    let files = ui::format_count(report.files.len(), "file");
    let is_workflow = |file: &&FileReport| matches!(file.path.extension(), Some("yaml" | "yml"));
    match report.files.iter().filter(is_workflow).count() {
        0 => files,
        workflows => {
            let skills = report.files.len() - workflows;
            format!("{files} ({skills} of skills and agents, {workflows} of workflows)")
        }
    }
}

/// Reproduces the output of skills-ref: valid skills to stdout, problems to stderr.
fn skills_ref_verdicts(
    ctx: &CliContext<'_>,
    args: &LintArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut exit = CliExit::Done;
    let paths = if args.paths.is_empty() {
        discovered_files(ctx.load_catalog()?, |_| true)
    } else {
        args.paths.clone()
    };
    for path in &paths {
        let findings = skills_ref::validate_path(&ctx.typed_path(path));
        let shown = if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("skill.md")) {
            path.parent().unwrap_or(path)
        } else {
            path
        };
        if findings.is_empty() {
            writeln!(ui.out, "Valid skill: {shown}")?;
            continue;
        }
        exit = CliExit::No;
        writeln!(ui.err, "Validation failed for {shown}:")?;
        for finding in findings {
            writeln!(ui.err, "  - {}", terminal::printable_line(&finding.message))?;
        }
    }
    Ok(exit)
}
