//! `rep props`: prints a skill's properties in the format of skills-ref's `read-properties`.

use camino::Utf8PathBuf;
use repertoire_skill::skills_ref;

use crate::cli::Ctx;
use crate::commands::resolve;
use crate::failure::{Exit, Outcome};
use crate::ui::Ui;

/// Arguments of `rep props`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A skill's folder, its SKILL.md, or the name of a discovered skill
    skill: Utf8PathBuf,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut path = ctx.typed_path(&args.skill);
    let is_name = !args.skill.as_str().contains('/') && path.symlink_metadata().is_err();
    if is_name {
        let catalog = ctx.catalog()?;
        path = resolve(catalog, args.skill.as_str())?.skill.origin.file.clone();
    }
    match skills_ref::read_properties(&path) {
        Ok(properties) => {
            writeln!(ui.out, "{}", properties.to_json())?;
            Ok(Exit::Done)
        }
        Err(finding) => {
            writeln!(ui.err, "Error: {}", finding.message)?;
            Ok(Exit::No)
        }
    }
}
