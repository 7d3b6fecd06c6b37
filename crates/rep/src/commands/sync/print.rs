//! `rep sync --print`: prints the catalog for a system prompt in the format of skills-ref.

use camino::Utf8PathBuf;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::render::catalog::{is_offered, render_catalog};
use repertoire_skill::render::describe_skill;
use repertoire_skill::skills_ref::{self, PromptSkill};

use crate::cli::CliContext;
use crate::commands::{removed_at_load, resolve_skills};
use crate::failure::{CliExit, CliResult};
use crate::schema::ToPromptJson;
use crate::ui::TerminalUi;

/// Arguments of `rep sync --print`
#[derive(Debug, clap::Args)]
pub(crate) struct SyncPrintArgs {
    /// With `--print`: list the skills in these folders (default: all discovered skills)
    paths: Vec<Utf8PathBuf>,
    /// With `--print`: fit the discovered skills into this many characters: shorten descriptions,
    /// then keep only names, then only count
    #[arg(long, value_name = "CHARS", conflicts_with = "paths")]
    budget: Option<usize>,
    /// With `--budget`: give this skill its full description first (may be repeated)
    #[arg(long, value_name = "NAME", requires = "budget")]
    first: Vec<String>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &SyncPrintArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if !args.paths.is_empty() {
        let paths: Vec<Utf8PathBuf> = args.paths.iter().map(|path| ctx.typed_path(path)).collect();
        return match skills_ref::prompt_of_paths(&paths) {
            Ok(text) => {
                ui.note_printed("the text", &text)?;
                print_prompt(unshortened_prompt(text, paths.len()), ui)
            }
            Err(finding) => {
                writeln!(ui.err, "Error: {}", finding.message)?;
                Ok(CliExit::No)
            }
        };
    }
    let catalog = ctx.load_catalog()?;
    if let Some(budget) = args.budget {
        return print_budgeted(catalog, budget, &args.first, ui);
    }
    let offered: Vec<&CatalogEntry> =
        catalog.entries().iter().filter(|entry| is_offered(entry)).collect();
    let descriptions: Vec<String> = offered.iter().map(|entry| describe_skill(entry)).collect();
    let skills = offered.iter().zip(&descriptions).map(|(entry, description)| PromptSkill {
        name: &entry.id,
        description,
        location: entry.skill.origin.file.as_str(),
    });
    let text = skills_ref::to_prompt(skills);
    ui.note_removed("descriptions", &removed_at_load(&offered))?;
    print_prompt(unshortened_prompt(text, offered.len()), ui)
}

/// A prompt in which every skill has its full description.
fn unshortened_prompt(text: String, full: usize) -> ToPromptJson {
    ToPromptJson { text: text + "\n", full, shortened: 0, names_only: 0, counted: 0 }
}

fn print_prompt(prompt: ToPromptJson, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json {
        ui.print_json(&prompt)?;
    } else {
        write!(ui.out, "{}", prompt.text)?;
    }
    Ok(CliExit::Done)
}

fn print_budgeted(
    catalog: &Catalog,
    budget: usize,
    first: &[String],
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let winners: Vec<&str> =
        resolve_skills(catalog, first)?.iter().map(|entry| entry.id.as_str()).collect();
    let offered: Vec<&CatalogEntry> =
        catalog.entries().iter().filter(|entry| is_offered(entry)).collect();
    ui.note_removed("descriptions", &removed_at_load(&offered))?;
    let fitted = render_catalog(catalog.entries(), &winners, budget);
    let note = format!(
        "{} whole, {} shortened, {} by name only, {} counted",
        fitted.full, fitted.shortened, fitted.names_only, fitted.counted
    );
    let prompt = ToPromptJson {
        text: fitted.text,
        full: fitted.full,
        shortened: fitted.shortened,
        names_only: fitted.names_only,
        counted: fitted.counted,
    };
    let outcome = print_prompt(prompt, ui);
    if !ui.json {
        ui.print_note(&note)?;
    }
    outcome
}
