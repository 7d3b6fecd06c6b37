//! `rep demo`: shows the main features in a small workspace, with no model and no network.

use crate::demo;
use crate::env::Env;
use crate::failure::Outcome;
use crate::ui::Ui;

/// Arguments of `rep demo`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the workspace, to look around in it
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(env: &Env, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let keep = if args.keep { demo::Afterwards::Keep } else { demo::Afterwards::Remove };
    demo::run(env, keep, ui)
}
