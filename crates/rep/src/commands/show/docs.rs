//! `rep show --docs`: generates Markdown documentation for a catalog.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::resources;
use repertoire_text::fs;
use repertoire_text::layout::one_line;
use repertoire_text::terminal::printable_line;

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::write_output;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep show --docs`
#[derive(Debug, clap::Args)]
pub(crate) struct ShowDocsArgs {
    /// With `--docs`: write to this file instead of printing
    #[arg(short, long, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
    /// With `--output`: overwrite a file that `rep show --docs` did not write
    #[arg(long, requires = "output")]
    force: bool,
}

/// The first line of a generated page. A file without it is overwritten only with `--force`.
const MARK: &str =
    "<!-- Written by `rep show --docs`; changes are lost when it runs again. -->\n\n";
/// The first line of pages written when the command was called `rep docs`.
const OLD_MARK: &str = "<!-- Written by `rep docs`; changes are lost when it runs again. -->\n\n";

pub(crate) fn run(ctx: &CliContext<'_>, args: &ShowDocsArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let request = ctx.config.discovery_request()?;
    let catalog = repertoire_skill::discover::discover_catalog(&request);
    let text = render_docs(&catalog, &request.limits.resources);
    match &args.output {
        None => write!(ui.out, "{text}")?,
        Some(path) => {
            let target = ctx.env.here.join(path);
            let ours = fs::read_text(&target, 64 * 1024 * 1024)
                .is_ok_and(|old| old.starts_with(MARK) || old.starts_with(OLD_MARK));
            if !ours && !args.force && target.symlink_metadata().is_ok() {
                return Err(CliFailure::negative_answer(format!(
                    "{path} exists, and was not written by `rep show --docs`"
                ))
                .hint("Choose another name, or overwrite it with `--force`."));
            }
            write_output(ctx, path, text.as_bytes())?;
            let skills =
                ui::format_count(catalog.entries().len(), "entry").replace("entrys", "entries");
            writeln!(ui.out, "{} {path} ({skills})", ui.paint(ui::GOOD, "wrote"))?;
        }
    }
    Ok(CliExit::Done)
}

fn render_docs(catalog: &Catalog, limits: &repertoire_skill::limits::ResourceLimits) -> String {
    let mut groups: BTreeMap<&str, Vec<&CatalogEntry>> = BTreeMap::new();
    for entry in catalog.entries() {
        let group = if entry.skill.is_agent() {
            "Agents"
        } else {
            group_heading(entry.skill.kind.as_str())
        };
        groups.entry(group).or_default().push(entry);
    }
    let mut out = format!("{MARK}# Skills\n\n| name | type | description |\n|---|---|---|\n");
    for entry in catalog.entries() {
        let (kind, text) =
            (escape_cell(entry.skill.kind.as_str()), escape_cell(&entry.skill.description));
        out.push_str(&format!(
            "| [{0}](#{1}) | {kind} | {text} |\n",
            entry.id,
            heading_anchor(&entry.id)
        ));
    }
    for (group, entries) in groups {
        out.push_str(&format!("\n## {group}\n"));
        for entry in entries {
            describe_entry(entry, catalog, limits, &mut out);
        }
    }
    out
}

fn group_heading(kind: &str) -> &'static str {
    match kind {
        "self-improvement" => "Self-improvement",
        "mode" => "Modes",
        "custom" => "Skills",
        _ => "Other",
    }
}

fn describe_entry(
    entry: &CatalogEntry,
    catalog: &Catalog,
    limits: &repertoire_skill::limits::ResourceLimits,
    out: &mut String,
) {
    let skill = &entry.skill;
    let description: Vec<String> =
        skill.description.split_whitespace().map(printable_line).collect();
    out.push_str(&format!("\n### {}\n\n{}\n\n", entry.id, description.join(" ")));
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            out.push_str(&format!("- **{name}**: {value}\n"));
        }
    };
    fact("File", format!("`{}`", catalog.places().shorten_path(&skill.origin.file)));
    fact("Version", skill.version.as_ref().map_or(String::new(), ToString::to_string));
    fact("Author", skill.author.clone().unwrap_or_default());
    fact("Events", join_as_code(&skill.triggers.events));
    fact("Keywords", join_as_code(&skill.triggers.keywords));
    fact("Patterns", join_as_code(&skill.triggers.patterns));
    fact("Paths", join_as_code(&skill.triggers.paths));
    fact("Tools it may use", join_as_code(&skill.spec.allowed_tools));
    fact("Tools it needs", join_as_code(&skill.execution.required_tools));
    fact("Tools it must not use", join_as_code(&skill.execution.disallowed_tools));
    fact("Capabilities", join_as_code(&skill.capabilities));
    let needs: Vec<String> = skill.execution.dependencies.iter().map(ToString::to_string).collect();
    fact("Depends on", join_as_code(&needs));
    fact("Tags", skill.tags.join(", "));
    let files: Vec<String> = resources::list_resources(skill, limits)
        .files
        .iter()
        .map(|file| file.path.to_string())
        .collect();
    fact("Files", join_as_code(&files));
}

fn join_as_code(words: &[String]) -> String {
    words.iter().map(|word| format!("`{}`", printable_line(word))).collect::<Vec<_>>().join(", ")
}

fn escape_cell(text: &str) -> String {
    printable_line(&one_line(text)).replace('|', "\\|")
}

/// Returns GitHub's anchor for a heading, which keeps letters, digits, hyphens and underscores.
fn heading_anchor(id: &str) -> String {
    id.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
