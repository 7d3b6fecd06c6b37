//! `rep review skills`: prints the review data in skills.

use repertoire_review::extract::{extract, to_yaml};
use repertoire_text::terminal;
use serde_json::json;

use crate::cli::Ctx;
use crate::commands::resolve_all;
use crate::failure::{Exit, Outcome};
use crate::ui::Ui;

/// Arguments of `rep review skills`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names of the skills, as NAME or PLUGIN:NAME
    #[arg(value_name = "NAME", required = true, value_delimiter = ',')]
    names: Vec<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let catalog = ctx.catalog()?;
    let entries = resolve_all(catalog, &args.names)?;
    let mut skills = Vec::new();
    for (entry, name) in entries.iter().zip(&args.names) {
        let extracted = extract(&entry.skill, name);
        for found in &extracted.diagnostics {
            let text = terminal::render(found, None, ui.diagnostics_colour());
            ui.note(text.trim_end())?;
        }
        skills.push(extracted.skill);
    }
    if ui.json {
        ui.print_json(&json!({ "resolved_skills": skills }))?;
    } else {
        write!(ui.out, "{}", to_yaml(&skills))?;
    }
    Ok(Exit::Done)
}
