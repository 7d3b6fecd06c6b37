//! `rep workflow list`.

use repertoire_drive::workflow::find::script_of;
use repertoire_flow::external::Script;
use repertoire_flow::file::{self, Loaded};
use repertoire_skill::catalog::Entry;
use repertoire_skill::trust::Trust;

use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::schema::workflow::{WorkflowRow, WorkflowsJson};
use crate::ui::{self, Ui};

/// Which workflows.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List those too that sub-agents go through
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let catalog = ctx.catalog()?;
    let mut rows: Vec<WorkflowRow> =
        catalog.entries().iter().flat_map(|entry| rows(entry, args.all)).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    if ui.json {
        ui.print_json(&WorkflowsJson { workflows: rows })?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        writeln!(ui.out, "There are no workflows. `rep new NAME --workflow` starts one.")?;
        return Ok(Exit::Done);
    }
    let names = rows.iter().map(|row| ui::width(&row.name)).max().unwrap_or(0).min(40);
    for row in &rows {
        let steps = match (row.can_run, row.steps) {
            (_, 0) if row.kind == "script" => ui.paint(ui::FAINT, "   script"),
            (false, _) if row.kind == "data" => ui.paint(ui::BAD, "   broken"),
            (_, count) => ui.paint(ui::FAINT, format!("{count:>3} {}", steps(count))),
        };
        let gates = match row.gates {
            0 => String::new(),
            gates => format!(" · {}", ui::count(gates, "gate")),
        };
        let room = ui.columns.saturating_sub(names + 15 + ui::width(&gates)).max(20);
        let name = ui.paint(ui::ACCENT, ui::pad(&ui::fit(&row.name, names), names));
        let text = ui::fit(&first_sentence(&row.description), room);
        writeln!(ui.out, "{name}  {steps}  {text}{}", ui.paint(ui::FAINT, gates))?;
    }
    Ok(Exit::Done)
}

fn steps(count: usize) -> &'static str {
    if count == 1 { "step " } else { "steps" }
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end().to_owned()
}

fn rows(entry: &Entry, all: bool) -> Vec<WorkflowRow> {
    let loaded = file::load(&entry.skill);
    if loaded.is_empty() {
        return script_of(entry).map(|script| script_row(entry, &script)).into_iter().collect();
    }
    let subs: Vec<String> = loaded.iter().skip(1).map(|loaded| loaded.name.clone()).collect();
    let shown = if all { loaded.len() } else { 1 };
    loaded
        .iter()
        .take(shown)
        .enumerate()
        .map(|(at, loaded)| {
            let is_own = at == 0;
            let name = if is_own { entry.id.clone() } else { loaded.name.clone() };
            row(entry, name, loaded, if is_own { subs.clone() } else { Vec::new() })
        })
        .collect()
}

fn script_row(entry: &Entry, script: &Script) -> WorkflowRow {
    WorkflowRow {
        name: entry.id.clone(),
        steps: script.total.unwrap_or_default(),
        description: entry.skill.description.clone(),
        path: entry.skill.origin.file.to_string(),
        scope: entry.skill.origin.scope,
        kind: "script",
        gates: 0,
        required: Vec::new(),
        sub_workflows: Vec::new(),
        can_run: entry.trust == Trust::Trusted,
    }
}

fn row(entry: &Entry, name: String, loaded: &Loaded, sub_workflows: Vec<String>) -> WorkflowRow {
    let workflow = loaded.workflow.as_ref();
    WorkflowRow {
        name,
        steps: workflow.map_or(0, |workflow| workflow.steps.len()),
        description: workflow.map_or_else(String::new, |workflow| workflow.description.clone()),
        path: loaded.source.path().to_string(),
        scope: entry.skill.origin.scope,
        kind: "data",
        gates: workflow.map_or(0, |workflow| workflow.gates().count()),
        required: workflow.map_or_else(Vec::new, |workflow| {
            let needed = workflow.parameters.iter().filter(|(_, arg)| arg.required);
            needed.map(|(name, _)| name.clone()).collect()
        }),
        sub_workflows,
        can_run: loaded.checked.is_some(),
    }
}
