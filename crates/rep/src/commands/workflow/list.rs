//! `rep workflow list`: lists workflows.

use repertoire_flow::driver::json_output::rows;

use crate::cli::CliContext;
use crate::failure::{CliExit, CliResult};
use crate::schema::workflow::{WorkflowRow, WorkflowsJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep workflow list`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowListArgs {
    /// Include workflows for sub-agents
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowListArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let catalog = ctx.load_catalog()?;
    let mut rows: Vec<WorkflowRow> =
        catalog.entries().iter().flat_map(|entry| rows(entry, args.all)).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    if ui.json {
        ui.print_json(&WorkflowsJson { workflows: rows })?;
        return Ok(CliExit::Done);
    }
    if rows.is_empty() {
        writeln!(ui.out, "There are no workflows. `rep new NAME --workflow` starts one.")?;
        return Ok(CliExit::Done);
    }
    let names = rows.iter().map(|row| ui::text_width(&row.name)).max().unwrap_or(0).min(40);
    for row in &rows {
        let steps = match (row.can_run, row.steps) {
            (_, 0) if row.kind == "script" => ui.paint(ui::FAINT, "   script"),
            (false, _) if row.kind == "data" => ui.paint(ui::BAD, "   broken"),
            (_, count) => ui.paint(ui::FAINT, format!("{count:>3} {}", step_noun(count))),
        };
        let gates = match row.gates {
            0 => String::new(),
            gates => format!(" · {}", ui::format_count(gates, "gate")),
        };
        let room = ui.columns.saturating_sub(names + 15 + ui::text_width(&gates)).max(20);
        let name = ui.paint(ui::ACCENT, ui::pad_columns(&ui::fit_columns(&row.name, names), names));
        let text = ui::fit_columns(&first_sentence(&row.description), room);
        writeln!(ui.out, "{name}  {steps}  {text}{}", ui.paint(ui::FAINT, gates))?;
    }
    Ok(CliExit::Done)
}

fn step_noun(count: usize) -> &'static str {
    if count == 1 { "step " } else { "steps" }
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end().to_owned()
}
