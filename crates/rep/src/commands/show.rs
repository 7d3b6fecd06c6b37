//! `rep show`: shows all details of a skill, with the position of each field; with `--deps` or
//! `--docs`, the dependencies or the documentation of skills.

use repertoire_flow::file;
use repertoire_journal::Target;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::dependencies::{self, DependencyMatch};
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::render::json::SkillJson;
use repertoire_skill::resources;
use repertoire_text::{TextPosition, terminal};

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::resolve_skill;
use crate::failure::{CliExit, CliResult};
use crate::ui::{self, TerminalUi};

pub(crate) mod deps;
pub(crate) mod docs;
pub(crate) mod properties;

/// Arguments of `rep show`
#[derive(Debug, clap::Args)]
#[command(mut_arg("output", |arg| arg.requires("docs").conflicts_with_all(["name", "deps"])))]
pub(crate) struct SkillShowArgs {
    /// Name of the skill, also as `plugin:skill`
    #[arg(required_unless_present_any = ["deps", "docs"])]
    name: Option<String>,
    /// Show the dependencies of this skill, or of every skill that has some
    #[arg(long)]
    deps: bool,
    /// With `--deps`: print a Mermaid diagram
    #[arg(long, requires = "deps")]
    mermaid: bool,
    /// Generate Markdown documentation for all skills
    #[arg(long, conflicts_with_all = ["name", "deps"])]
    docs: bool,
    #[command(flatten)]
    docs_args: docs::ShowDocsArgs,
}

impl SkillShowArgs {
    /// Returns the command's name if it has no JSON output.
    pub(crate) fn text_only(&self) -> Option<&'static str> {
        self.docs.then_some("show --docs")
    }
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &SkillShowArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if args.docs {
        return docs::run(ctx, &args.docs_args, ui);
    }
    if args.deps {
        let args = deps::ShowDepsArgs { name: args.name.clone(), mermaid: args.mermaid };
        return deps::run(ctx, &args, ui);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let request = ctx.config.discovery_request()?;
    let catalog = repertoire_skill::discover::discover_catalog(&request);
    let entry =
        resolve_skill(&catalog, name).map_err(|failure| match find_run_called(ctx, name) {
            Some(short) => {
                failure.hint(format!("There is a run of that name: `rep runs show {short}`."))
            }
            None => failure,
        })?;
    if ui.json {
        let found = resources::list_resources(&entry.skill, &request.limits.resources);
        ui.print_json(&SkillJson::new(entry, Some(&found.files)))?;
        return Ok(CliExit::Done);
    }
    print_skill(&catalog, entry, &request.limits.resources, ui)?;
    Ok(CliExit::Done)
}

/// Finds a run of that name, which the user may have meant. Only a local journal is searched: a
/// missing skill is no reason to wait for a database.
fn find_run_called(ctx: &CliContext<'_>, name: &str) -> Option<String> {
    let Target::File(path) = ctx.journal_target(None) else { return None };
    if !path.is_file() {
        return None;
    }
    build_runtime().ok()?.block_on(async {
        let journal = ctx.journal(None).await.ok()?;
        Some(journal.find_run(name).await.ok()?.id.short().to_owned())
    })
}

fn print_skill(
    catalog: &Catalog,
    entry: &CatalogEntry,
    limits: &ResourceLimits,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let skill = &entry.skill;
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, &entry.id))?;
    writeln!(
        ui.out,
        "  {}\n",
        ui::wrap_words(&skill.description, ui.columns.saturating_sub(4), "  ")
    )?;
    let body = skill.body();
    let facts = [
        ("file", catalog.places().shorten_path(&skill.origin.file)),
        ("scope", format!("{:?}", skill.origin.scope).to_lowercase()),
        ("dialect", serde_word(&skill.dialect)),
        ("type", terminal::printable_line(skill.kind.as_str())),
        ("trust", serde_word(&entry.trust)),
        ("digest", skill.digest().to_string()),
        (
            "body",
            format!(
                "{}, {}, about {}",
                ui::format_count(body.lines().count(), "line"),
                ui::format_count(body.chars().count(), "character"),
                ui::format_count(body.len().div_ceil(4), "token")
            ),
        ),
    ];
    for (name, value) in facts {
        writeln!(ui.out, "  {} {value}", ui.paint(ui::FAINT, ui::pad_columns(name, 10)))?;
    }
    if let Some(workflow) =
        file::load_workflows(skill).first().and_then(|loaded| loaded.workflow.as_ref())
    {
        let steps = ui::format_count(workflow.steps.len(), "step");
        let value = format!("{steps}, see `rep workflow show {}`", entry.id);
        writeln!(ui.out, "  {} {value}", ui.paint(ui::FAINT, ui::pad_columns("workflow", 10)))?;
    }
    print_fields(entry, ui)?;
    print_needs(catalog, entry, ui)?;
    print_resources(entry, limits, ui)?;
    print_twins(catalog, entry, ui)?;
    print_findings(catalog, entry, ui)
}

fn serde_word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn print_fields(entry: &CatalogEntry, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Fields"))?;
    let skill = &entry.skill;
    for field in &skill.frontmatter.entries {
        let at = TextPosition::of_offset(skill.text(), field.key_span.start as usize);
        let place = ui.paint(ui::FAINT, ui::pad_columns(&format!("{}:{}", at.line, at.column), 6));
        let known = repertoire_skill::dialect::is_known_field(&field.key);
        let note =
            if known { String::new() } else { ui.paint(ui::FAINT, " (kept, no effect here)") };
        let value = match field.value.as_str() {
            Some(text) => text.to_owned(),
            None => field.value.to_json().to_string(),
        };
        let room = ui.columns.saturating_sub(34).max(20);
        let value = ui::fit_columns(&value, room);
        let key = ui.paint(ui::ACCENT, ui::pad_columns(&ui::fit_columns(&field.key, 24), 24));
        writeln!(ui.out, "  {place} {key} {value}{note}")?;
    }
    Ok(())
}

fn print_needs(
    catalog: &Catalog,
    entry: &CatalogEntry,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let needs = dependencies::match_dependencies(&entry.skill, catalog.entries());
    if needs.is_empty() {
        return Ok(());
    }
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Depends on"))?;
    let columns =
        needs.iter().map(|(need, _)| ui::text_width(&need.to_string())).max().unwrap_or(0);
    for (need, how) in needs {
        let word = match how {
            DependencyMatch::By(_) => ui.paint(ui::GOOD, "there"),
            DependencyMatch::Missing => ui.paint(ui::BAD, "missing"),
            DependencyMatch::OtherVersion(_) => ui.paint(ui::BAD, "wrong version"),
        };
        writeln!(ui.out, "  {}  {word}", ui::pad_columns(&need.to_string(), columns))?;
    }
    Ok(())
}

fn print_resources(
    entry: &CatalogEntry,
    limits: &ResourceLimits,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let found = resources::list_resources(&entry.skill, limits);
    if !found.files.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Files"))?;
    }
    let widths = found.files.iter().map(|file| ui::text_width(&escape_path(&file.path)));
    let columns = widths.max().unwrap_or(0).min(48);
    for file in &found.files {
        let note =
            ui.paint(ui::FAINT, format!("{} bytes, {}", file.bytes, serde_word(&file.group)));
        writeln!(ui.out, "  {}  {note}", ui::pad_columns(&escape_path(&file.path), columns))?;
    }
    for finding in &found.diagnostics {
        let text = terminal::render_diagnostic(finding, None, ui.diagnostics_colour());
        write!(ui.out, "{text}")?;
    }
    Ok(())
}

fn escape_path(path: &camino::Utf8Path) -> String {
    terminal::printable_line(path.as_str())
}

fn print_twins(
    catalog: &Catalog,
    entry: &CatalogEntry,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let file = &entry.skill.origin.file;
    let twins: Vec<_> = catalog.shadowed().iter().filter(|lost| lost.by == *file).collect();
    if twins.is_empty() {
        return Ok(());
    }
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Stands before"))?;
    for twin in twins {
        writeln!(ui.out, "  {}", catalog.places().shorten_path(&twin.entry.skill.origin.file))?;
    }
    Ok(())
}

fn print_findings(
    catalog: &Catalog,
    entry: &CatalogEntry,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let file = &entry.skill.origin.file;
    let own = catalog.diagnostics().iter().filter(|found| found.path.as_ref() == Some(file));
    for (number, finding) in own.enumerate() {
        if number == 0 {
            writeln!(ui.out)?;
        }
        let text =
            terminal::render_diagnostic(finding, Some(entry.skill.text()), ui.diagnostics_colour());
        write!(ui.out, "{text}")?;
    }
    Ok(())
}
