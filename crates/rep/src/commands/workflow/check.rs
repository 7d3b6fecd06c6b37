//! `rep workflow check`: checks every path, every gate and every name in workflows.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_flow::file::{self, Loaded};
use repertoire_skill::load::load;
use repertoire_skill::skill::Origin;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{Diagnostic, Limits, Severity, Source, terminal};

use super::find;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::workflow::{CheckJson, CheckedJson};
use crate::ui::{self, Ui};

/// Arguments of `rep workflow check`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names, skill folders or workflow.yaml files (default: all discovered workflows)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut all = Vec::new();
    if args.paths.is_empty() {
        for entry in ctx.catalog()?.entries() {
            all.extend(file::load(&entry.skill));
        }
    }
    for path in &args.paths {
        all.extend(of(ctx, path)?);
    }
    let count = |severity: Severity| {
        let found = all.iter().flat_map(|loaded| &loaded.diagnostics);
        found.filter(|found| found.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let exit = if errors > 0 { Exit::No } else { Exit::Done };
    if ui.json {
        ui.print_json(&CheckJson {
            workflows: all.iter().map(CheckedJson::of).collect(),
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
                    ctx.config.places().shorten(path).into()
                } else {
                    path.clone()
                }
            });
            let found = Diagnostic { path, ..found.clone() };
            writeln!(ui.out, "{}", terminal::render(&found, Some(text), ui.diagnostics_colour()))?;
        }
    }
    let workflows = ui::count(all.len(), "workflow");
    let line = match (all.len(), errors + warnings) {
        (0, _) => "No workflows to check.".to_owned(),
        (_, 0) => format!("{} {workflows}, every way leads to an end", ui.paint(ui::GOOD, "ok:")),
        _ => format!(
            "{workflows}: {}, {}",
            ui::count(errors, "error"),
            ui::count(warnings, "warning")
        ),
    };
    writeln!(ui.out, "{line}")?;
    Ok(exit)
}

/// Loads the workflows of an argument: a path if it exists, otherwise a name.
fn of(ctx: &Ctx<'_>, typed: &str) -> Result<Vec<Loaded>, Failure> {
    let path = ctx.typed_path(Utf8Path::new(typed));
    let is_file_name = typed.ends_with(".yaml") || typed.ends_with(".yml");
    if !path.exists() && is_file_name {
        return Err(Failure::usage(format!("there is no `{typed}`"))
            .hint("Give a workflow's name, a skill's folder, or its workflow.yaml."));
    }
    if !path.exists() {
        let (entry, loaded) = find(ctx.catalog()?, typed)?;
        let whole = loaded.name == entry.skill.name;
        return Ok(if whole { file::load(&entry.skill) } else { vec![loaded] });
    }
    let dir = if path.is_dir() { path.clone() } else { owner(&path) };
    let all = in_folder(&dir)?;
    let is_one = |loaded: &Loaded| loaded.source.path() == path;
    if path.is_dir() { Ok(all) } else { Ok(all.into_iter().filter(is_one).collect()) }
}

/// Returns the skill folder of a workflow file: the folder above `workflows/`, or its own folder.
fn owner(file: &Utf8Path) -> Utf8PathBuf {
    let dir = file.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    if dir.file_name() == Some(file::FOLDER) && !dir.join("SKILL.md").exists() {
        dir.parent().unwrap_or(dir).to_owned()
    } else {
        dir.to_owned()
    }
}

fn in_folder(dir: &Utf8Path) -> Result<Vec<Loaded>, Failure> {
    let file = dir.join("SKILL.md");
    let limits = Limits::default();
    let text = repertoire_text::fs::read_text(&file, limits.file_bytes_max).map_err(|error| {
        Failure::no(format!("{file} cannot be read: {error}"))
            .hint("A workflow is a skill: its workflow.yaml stands beside a SKILL.md.")
    })?;
    let loaded = load(Source::new(file.clone(), text), Origin::file(file.clone()), &limits);
    let skill = loaded.skill.ok_or_else(|| {
        Failure::no(format!("{file} cannot be loaded")).hint(format!("`rep lint {file}` says why."))
    })?;
    let all = file::load(&skill);
    if all.is_empty() {
        Err(Failure::no(format!("there is no {} in {dir}", file::FILE)))
    } else {
        Ok(all)
    }
}

impl CheckedJson {
    fn of(loaded: &Loaded) -> Self {
        CheckedJson {
            name: loaded.name.clone(),
            path: loaded.source.path().to_string(),
            can_run: loaded.checked.is_some(),
            diagnostics: loaded.diagnostics.iter().map(DiagnosticJson::from).collect(),
        }
    }
}
