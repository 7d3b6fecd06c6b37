//! `rep props`: prints a skill's properties in the format of skills-ref's `read-properties`.

use camino::Utf8PathBuf;
use repertoire_skill::skills_ref;

use crate::cli::CliContext;
use crate::commands::resolve_skill;
use crate::failure::{CliExit, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep props`
#[derive(Debug, clap::Args)]
pub(crate) struct PropertiesArgs {
    /// A skill's folder, its SKILL.md, or the name of a discovered skill
    skill: Utf8PathBuf,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &PropertiesArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut path = ctx.typed_path(&args.skill);
    let is_name = !args.skill.as_str().contains('/') && path.symlink_metadata().is_err();
    if is_name {
        let catalog = ctx.load_catalog()?;
        path = resolve_skill(catalog, args.skill.as_str())?.skill.origin.file.clone();
    }
    match skills_ref::read_properties(&path) {
        Ok(properties) => {
            writeln!(ui.out, "{}", properties.to_json())?;
            Ok(CliExit::Done)
        }
        Err(finding) => {
            writeln!(ui.err, "Error: {}", finding.message)?;
            Ok(CliExit::No)
        }
    }
}
