//! `rep review skills`: prints the review data in skills.

use repertoire_review::extract::{extract_review_skill, to_yaml};
use repertoire_text::terminal;
use serde_json::json;

use crate::cli::CliContext;
use crate::commands::resolve_skills;
use crate::failure::{CliExit, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep review skills`
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewSkillsArgs {
    /// Names of the skills, as NAME or PLUGIN:NAME
    #[arg(value_name = "NAME", required = true, value_delimiter = ',')]
    names: Vec<String>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &ReviewSkillsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let catalog = ctx.load_catalog()?;
    let entries = resolve_skills(catalog, &args.names)?;
    let mut skills = Vec::new();
    for (entry, name) in entries.iter().zip(&args.names) {
        let extracted = extract_review_skill(&entry.skill, name);
        for found in &extracted.diagnostics {
            let text = terminal::render_diagnostic(found, None, ui.diagnostics_colour());
            ui.print_note(text.trim_end())?;
        }
        skills.push(extracted.skill);
    }
    if ui.json {
        ui.print_json(&json!({ "resolved_skills": skills }))?;
    } else {
        write!(ui.out, "{}", to_yaml(&skills))?;
    }
    Ok(CliExit::Done)
}
