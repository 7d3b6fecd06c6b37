//! `rep man`: prints the manual page, or writes one page per command to a folder.

use camino::Utf8PathBuf;
use repertoire_text::fs;

use crate::cli::command;
use crate::env::Env;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep man`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<Utf8PathBuf>,
}

pub(crate) fn run(env: &Env, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut main = command();
    main.build();
    let Some(dir) = &args.dir else {
        clap_mangen::Man::new(main).render(&mut ui.out)?;
        return Ok(Exit::Done);
    };
    let mut pages = vec![("rep.1".to_owned(), main.clone())];
    for sub in main.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages.push((format!("rep-{}.1", sub.get_name()), sub.clone()));
    }
    for (file, page) in pages {
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        let path = dir.join(file);
        fs::write_atomic(&env.here.join(&path), &text)
            .map_err(|error| Failure::cannot_run(format!("{path} cannot be written: {error}")))?;
        writeln!(ui.out, "{path}")?;
    }
    Ok(Exit::Done)
}
