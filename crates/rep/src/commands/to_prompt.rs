//! `rep to-prompt`: the catalog for a system prompt, as skills-ref prints it.

use camino::Utf8PathBuf;
use repertoire_skill::skills_ref::{self, PromptSkill};

use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::ui::Ui;

/// What to print.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skill folders; every skill that is discovered, if none are given
    paths: Vec<Utf8PathBuf>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if !args.paths.is_empty() {
        let paths: Vec<Utf8PathBuf> =
            args.paths.iter().map(|path| ctx.env.here.join(path)).collect();
        return match skills_ref::prompt_of_paths(&paths) {
            Ok(text) => {
                writeln!(ui.out, "{text}")?;
                Ok(Exit::Done)
            }
            Err(finding) => {
                writeln!(ui.err, "Error: {}", finding.message)?;
                Ok(Exit::No)
            }
        };
    }
    let catalog = ctx.catalog()?;
    let offered = catalog
        .entries()
        .iter()
        .filter(|entry| !entry.skill.is_agent() && !entry.skill.claude.disable_model_invocation);
    let skills = offered.map(|entry| PromptSkill {
        name: &entry.id,
        description: &entry.skill.description,
        location: entry.skill.origin.file.as_str(),
    });
    writeln!(ui.out, "{}", skills_ref::to_prompt(skills))?;
    Ok(Exit::Done)
}
