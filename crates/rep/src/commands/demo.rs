//! `rep demo`: shows the main features in a small workspace, with no model and no network.

use clap::builder::PossibleValuesParser;

use crate::demo::{self, DemoCleanup, DemoPace, DemoRequest};
use crate::env::CliEnvironment;
use crate::failure::CliResult;
use crate::ui::TerminalUi;

/// Arguments of `rep demo`
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Show this chapter instead of the six steps of the tour
    #[arg(value_name = "CHAPTER", value_parser = PossibleValuesParser::new(demo::chapter_names()))]
    chapter: Option<String>,
    /// List the chapters
    #[arg(long, conflicts_with = "chapter")]
    list: bool,
    /// Run through without waiting for Enter between the steps
    #[arg(long)]
    no_pause: bool,
    /// Keep the workspace, to look around in it
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(env: &CliEnvironment, args: &DemoArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if args.list {
        return demo::list_chapters(ui);
    }
    let is_attended = env.stdin_is_terminal && env.is_terminal && env.stderr_is_terminal;
    let request = DemoRequest {
        chapter: args.chapter.clone(),
        cleanup: if args.keep { DemoCleanup::Keep } else { DemoCleanup::Remove },
        pace: if is_attended && !args.no_pause { DemoPace::Pause } else { DemoPace::RunThrough },
    };
    demo::run(env, &request, ui)
}
