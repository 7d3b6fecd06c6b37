//! `rep workflow check`: checks every path, every gate and every name in workflows.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_flow::file::{self, LoadedWorkflow};
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{Diagnostic, Limits, Severity, Source, terminal};

use super::find_workflow;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::workflow::{CheckedWorkflowJson, WorkflowCheckJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep workflow check`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowCheckArgs {
    /// Names, skill folders or workflow.yaml files (default: all discovered workflows)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowCheckArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut all = Vec::new();
    if args.paths.is_empty() {
        for entry in ctx.load_catalog()?.entries() {
            all.extend(file::load_workflows(&entry.skill));
        }
    }
    for path in &args.paths {
        all.extend(load_workflows(ctx, path)?);
    }
    let count = |severity: Severity| {
        let found = all.iter().flat_map(|loaded| &loaded.diagnostics);
        found.filter(|found| found.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let exit = if errors > 0 { CliExit::No } else { CliExit::Done };
    if ui.json {
        ui.print_json(&WorkflowCheckJson {
            workflows: all.iter().map(CheckedWorkflowJson::from_loaded).collect(),
            errors,
            warnings,
        })?;
        return Ok(exit);
    }
    for loaded in &all {
        for found in &loaded.diagnostics {
            let text = loaded.source.text();
            // Shorten the path if the user didn't type it.
            let path = found.path.as_ref().map(|path| {
                if path.is_absolute() {
                    ctx.config.places().shorten_path(path).into()
                } else {
                    path.clone()
                }
            });
            let found = Diagnostic { path, ..found.clone() };
            writeln!(
                ui.out,
                "{}",
                terminal::render_diagnostic(&found, Some(text), ui.diagnostics_colour())
            )?;
        }
    }
    let workflows = ui::format_count(all.len(), "workflow");
    let line = match (all.len(), errors + warnings) {
        (0, _) => "No workflows to check.".to_owned(),
        (_, 0) => format!("{} {workflows}, every way leads to an end", ui.paint(ui::GOOD, "ok:")),
        _ => format!(
            "{workflows}: {}, {}",
            ui::format_count(errors, "error"),
            ui::format_count(warnings, "warning")
        ),
    };
    writeln!(ui.out, "{line}")?;
    Ok(exit)
}

/// Loads the workflows of an argument: a path if it exists, otherwise a name.
fn load_workflows(ctx: &CliContext<'_>, typed: &str) -> Result<Vec<LoadedWorkflow>, CliFailure> {
    let path = ctx.typed_path(Utf8Path::new(typed));
    let is_file_name = typed.ends_with(".yaml") || typed.ends_with(".yml");
    if !path.exists() && is_file_name {
        return Err(CliFailure::wrong_usage(format!("there is no `{typed}`"))
            .hint("Give a workflow's name, a skill's folder, or its workflow.yaml."));
    }
    if !path.exists() {
        let (entry, loaded) = find_workflow(ctx.load_catalog()?, typed)?;
        let whole = loaded.name == entry.skill.name;
        return Ok(if whole { file::load_workflows(&entry.skill) } else { vec![loaded] });
    }
    let dir = if path.is_dir() { path.clone() } else { skill_folder_of(&path) };
    let all = load_from_folder(&dir)?;
    let is_one = |loaded: &LoadedWorkflow| loaded.source.path() == path;
    if path.is_dir() { Ok(all) } else { Ok(all.into_iter().filter(is_one).collect()) }
}

/// Returns the skill folder of a workflow file: the folder above `workflows/`, or its own folder.
fn skill_folder_of(file: &Utf8Path) -> Utf8PathBuf {
    let dir = file.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if dir.file_name() == Some(file::FOLDER) && !dir.join("SKILL.md").exists() {
        dir.parent().unwrap_or(dir).to_owned()
    } else {
        dir.to_owned()
    }
}

fn load_from_folder(dir: &Utf8Path) -> Result<Vec<LoadedWorkflow>, CliFailure> {
    let file = dir.join("SKILL.md");
    let limits = Limits::default();
    let text = repertoire_text::fs::read_text(&file, limits.file_bytes_max).map_err(|error| {
        CliFailure::negative_answer(format!("{file} cannot be read: {error}"))
            .hint("A workflow is a skill: its workflow.yaml stands beside a SKILL.md.")
    })?;
    let loaded =
        load_skill(Source::new(file.clone(), text), SkillOrigin::from_file(file.clone()), &limits);
    let skill = loaded.skill.ok_or_else(|| {
        CliFailure::negative_answer(format!("{file} cannot be loaded"))
            .hint(format!("`rep lint {file}` says why."))
    })?;
    let all = file::load_workflows(&skill);
    if all.is_empty() {
        Err(CliFailure::negative_answer(format!("there is no {} in {dir}", file::FILE)))
    } else {
        Ok(all)
    }
}

impl CheckedWorkflowJson {
    fn from_loaded(loaded: &LoadedWorkflow) -> Self {
        CheckedWorkflowJson {
            name: loaded.name.clone(),
            path: loaded.source.path().to_string(),
            can_run: loaded.checked.is_some(),
            diagnostics: loaded.diagnostics.iter().map(DiagnosticJson::from).collect(),
        }
    }
}
