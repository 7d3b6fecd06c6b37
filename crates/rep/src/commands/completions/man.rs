//! `rep completions man`: prints the manual page, or writes one page per command to a folder.

use camino::Utf8PathBuf;
use repertoire_text::fs;

use crate::cli::build_clap_command;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep completions man`
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// With `man`: write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<Utf8PathBuf>,
}

pub(crate) fn run(env: &CliEnvironment, args: &ManArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let mut main = build_clap_command();
    main.build();
    let Some(dir) = &args.dir else {
        clap_mangen::Man::new(main).render(&mut ui.out)?;
        return Ok(CliExit::Done);
    };
    let mut open = vec![("rep".to_owned(), main)];
    while let Some((name, page)) = open.pop() {
        let subs = page.get_subcommands();
        let subs = subs.filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
        let subs = subs.map(|sub| (format!("{name}-{}", sub.get_name()), sub.clone()));
        let subs: Vec<_> = subs.collect();
        open.extend(subs.into_iter().rev());
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        let path = dir.join(format!("{name}.1"));
        fs::write_atomic(&env.here.join(&path), &text).map_err(|error| {
            CliFailure::cannot_run(format!("{path} cannot be written: {error}"))
        })?;
        writeln!(ui.out, "{path}")?;
    }
    Ok(CliExit::Done)
}
