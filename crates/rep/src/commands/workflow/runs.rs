//! `rep workflow runs`: lists the runs of workflows, and removes some.

use repertoire_flow::driver::{Head, Listed};

use super::{now_ms, run_failed};
use crate::cli::Ctx;
use crate::commands::conversations::ago;
use crate::failure::{Exit, Outcome};
use crate::schema::workflow::{BrokenRun, RunRow, RunsJson};
use crate::ui::{self, Ui};

const SHOWN_MAX: usize = 20;

/// Arguments of `rep workflow runs`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List all runs, not only the latest 20
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Remove runs
    Rm {
        /// Names of the runs, or prefixes of them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if let Some(Action::Rm { runs }) = &args.action {
        for wanted in runs {
            let id = ctx.runs().remove(wanted).map_err(run_failed)?;
            ui.note(&format!("removed {id}"))?;
        }
        return Ok(Exit::Done);
    }
    let all = ctx.runs().list().map_err(run_failed)?;
    if ui.json {
        let mut json = RunsJson { runs: Vec::new(), broken: Vec::new() };
        for listed in &all {
            match listed {
                Listed::Run { head, state } => json.runs.push(RunRow::new(head, state)),
                Listed::Script(run) => json.runs.push(RunRow::of_script(run)),
                Listed::Broken { id, error } => {
                    json.broken.push(BrokenRun { run: id.clone(), reason: error.to_string() });
                }
            }
        }
        ui.print_json(&json)?;
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        writeln!(ui.out, "There are no runs yet. `rep workflow start NAME` begins one.")?;
        return Ok(Exit::Done);
    }
    let now_ms = now_ms();
    let shown = if args.all { all.len() } else { SHOWN_MAX };
    for listed in all.iter().take(shown) {
        match listed {
            Listed::Run { head, state } => print(ctx, head, &RunRow::new(head, state), now_ms, ui)?,
            Listed::Script(run) => print(ctx, &run.head, &RunRow::of_script(run), now_ms, ui)?,
            Listed::Broken { id, error } => {
                let reason = ui.paint(ui::BAD, ui::fit(&error.to_string(), 200));
                writeln!(ui.out, "{id}  {reason}")?;
            }
        }
    }
    if all.len() > shown {
        let line = format!("{} more, see --all", all.len() - shown);
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(Exit::Done)
}

fn print(
    ctx: &Ctx<'_>,
    head: &Head,
    row: &RunRow,
    now_ms: u64,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let style = match row.state {
        "active" => ui::ACCENT,
        "waiting" => ui::WARN,
        "done" => ui::GOOD,
        _ => ui::FAINT,
    };
    let word = ui.paint(style, ui::pad(row.state, 7));
    let folder = if ctx.project_dir(None) == head.folder {
        "here".to_owned()
    } else {
        ctx.config.places().shorten(&head.folder)
    };
    let facts = format!(
        "step {}, turn {} · {} · {}",
        row.step,
        row.turn,
        ago(now_ms.saturating_sub(head.updated_ms)),
        ui::fit(&folder, 30)
    );
    let facts = match &row.parent {
        Some(parent) => format!("{facts} · for {parent}"),
        None => facts,
    };
    let id = ui::pad(&ui::fit(&row.run, 28), 28);
    writeln!(ui.out, "{word}  {id}  {}", ui.paint(ui::FAINT, facts))
}
