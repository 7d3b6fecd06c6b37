//! `rep to-prompt`: prints the catalog for a system prompt in the format of skills-ref.

use camino::Utf8PathBuf;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::render::catalog::{catalog as render_catalog, is_offered};
use repertoire_skill::render::described;
use repertoire_skill::skills_ref::{self, PromptSkill};

use crate::cli::Ctx;
use crate::commands::{removed_at_load, resolve_all};
use crate::failure::{Exit, Outcome};
use crate::schema::PromptJson;
use crate::ui::Ui;

/// Arguments of `rep to-prompt`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skill folders (default: all discovered skills)
    paths: Vec<Utf8PathBuf>,
    /// Fit the discovered skills into this many characters: shorten descriptions, then keep only
    /// names, then only count
    #[arg(long, value_name = "CHARS", conflicts_with = "paths")]
    budget: Option<usize>,
    /// With `--budget`: give this skill its full description first (may be repeated)
    #[arg(long, value_name = "NAME", requires = "budget")]
    first: Vec<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if !args.paths.is_empty() {
        let paths: Vec<Utf8PathBuf> = args.paths.iter().map(|path| ctx.typed_path(path)).collect();
        return match skills_ref::prompt_of_paths(&paths) {
            Ok(text) => {
                ui.note_printed("the text", &text)?;
                print(whole(text, paths.len()), ui)
            }
            Err(finding) => {
                writeln!(ui.err, "Error: {}", finding.message)?;
                Ok(Exit::No)
            }
        };
    }
    let catalog = ctx.catalog()?;
    if let Some(budget) = args.budget {
        return budgeted(catalog, budget, &args.first, ui);
    }
    let offered: Vec<&Entry> = catalog.entries().iter().filter(|entry| is_offered(entry)).collect();
    let descriptions: Vec<String> = offered.iter().map(|entry| described(entry)).collect();
    let skills = offered.iter().zip(&descriptions).map(|(entry, description)| PromptSkill {
        name: &entry.id,
        description,
        location: entry.skill.origin.file.as_str(),
    });
    let text = skills_ref::to_prompt(skills);
    ui.note_removed("descriptions", &removed_at_load(&offered))?;
    print(whole(text, offered.len()), ui)
}

/// A prompt in which every skill has its full description.
fn whole(text: String, full: usize) -> PromptJson {
    PromptJson { text: text + "\n", full, shortened: 0, names_only: 0, counted: 0 }
}

fn print(prompt: PromptJson, ui: &mut Ui<'_>) -> Outcome {
    if ui.json {
        ui.print_json(&prompt)?;
    } else {
        write!(ui.out, "{}", prompt.text)?;
    }
    Ok(Exit::Done)
}

fn budgeted(catalog: &Catalog, budget: usize, first: &[String], ui: &mut Ui<'_>) -> Outcome {
    let winners: Vec<&str> =
        resolve_all(catalog, first)?.iter().map(|entry| entry.id.as_str()).collect();
    let offered: Vec<&Entry> = catalog.entries().iter().filter(|entry| is_offered(entry)).collect();
    ui.note_removed("descriptions", &removed_at_load(&offered))?;
    let fitted = render_catalog(catalog.entries(), &winners, budget);
    let note = format!(
        "{} whole, {} shortened, {} by name only, {} counted",
        fitted.full, fitted.shortened, fitted.names_only, fitted.counted
    );
    let prompt = PromptJson {
        text: fitted.text,
        full: fitted.full,
        shortened: fitted.shortened,
        names_only: fitted.names_only,
        counted: fitted.counted,
    };
    let outcome = print(prompt, ui);
    if !ui.json {
        ui.note(&note)?;
    }
    outcome
}
