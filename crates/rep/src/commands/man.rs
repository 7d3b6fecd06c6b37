//! `rep man`: prints the manual page, or writes one page per command to a folder.

use camino::Utf8PathBuf;
use repertoire_text::fs;

use crate::cli::build_clap_command;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep man`
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<Utf8PathBuf>,
}

pub(crate) fn run(env: &CliEnvironment, args: &ManArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let mut main = build_clap_command();
    main.build();
    let Some(dir) = &args.dir else {
        clap_mangen::Man::new(main).render(&mut ui.out)?;
        return Ok(CliExit::Done);
    };
    let mut pages = vec![("rep.1".to_owned(), main.clone())];
    for sub in main.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages.push((format!("rep-{}.1", sub.get_name()), sub.clone()));
    }
    for (file, page) in pages {
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        let path = dir.join(file);
        fs::write_atomic(&env.here.join(&path), &text).map_err(|error| {
            CliFailure::cannot_run(format!("{path} cannot be written: {error}"))
        })?;
        writeln!(ui.out, "{path}")?;
    }
    Ok(CliExit::Done)
}
