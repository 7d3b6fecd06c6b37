//! Skills that are scripts: they print their steps, and are run as they are.

use std::collections::BTreeMap;

use camino::Utf8Path;
use repertoire_drive::workflow::{
    BeginScript, Head, ProgramError, ScriptError, ScriptReport, ScriptRun, Stage,
};
use repertoire_flow::external::{Script, detect};
use repertoire_skill::catalog::Entry;
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::resources;
use repertoire_skill::trust::Trust;

use super::programs::{attended, workplace};
use super::record::not_run;
use super::{Format, now_ms, print_view, run_failed};
use crate::cli::Ctx;
use crate::commands::resolve;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::{self, Ui};

/// How many of the last lines of a script that has failed are shown.
const SAID_LINES_MAX: usize = 5;

/// The script that a skill runs, if it is such a skill.
pub(super) fn of(entry: &Entry) -> Option<Script> {
    let skill = &entry.skill;
    if skill.is_agent() || !skill.origin.is_folder() || !may_call(skill.body()) {
        return None;
    }
    let listed = resources::list(skill, &ResourceLimits::default());
    let files: Vec<String> = listed.files.iter().map(|file| file.path.to_string()).collect();
    detect(&skill.name, skill.body(), &files)
}

/// Whether a text may call such a script at all: most do not, and their folders need not be listed.
fn may_call(body: &str) -> bool {
    body.contains("--step") || body.contains("scripts/")
}

pub(super) fn start(
    ctx: &Ctx<'_>,
    entry: &Entry,
    script: Script,
    (id, head): (String, Head),
    arguments: BTreeMap<String, String>,
) -> Result<ScriptRun, Failure> {
    let folder = head.folder.clone();
    let begin = BeginScript {
        id,
        head,
        workflow: entry.id.clone(),
        skill_dir: entry.skill.origin.dir(),
        script,
        arguments,
    };
    staged(ctx, &folder, async |stage| ctx.runs().start_script(begin, stage).await)
}

/// Runs a script in the folder of its run, with an end by Ctrl-C.
fn staged<T>(
    ctx: &Ctx<'_>,
    folder: &Utf8Path,
    work: impl AsyncFnOnce(Stage<'_>) -> Result<T, ScriptError>,
) -> Result<T, Failure> {
    let workplace = workplace(ctx, folder)?;
    let done = attended(async |cancel| {
        let stage = Stage { workplace: &workplace, cancel, now_ms: now_ms() };
        work(stage).await.map_err(failed)
    });
    workplace.clean_up();
    done
}

/// Leaves a step, if something is reported, and prints where the run is.
pub(super) fn step(
    ctx: &Ctx<'_>,
    wanted: &str,
    report: Option<(Option<u32>, ScriptReport)>,
    format: Format,
    ui: &mut Ui<'_>,
) -> Outcome {
    let mut run = ctx.runs().open_script(wanted).map_err(run_failed)?;
    if let Some((at, report)) = report {
        expect_trusted(ctx, &run)?;
        let next = staged(ctx, &run.head.folder, async |stage| {
            ctx.runs().step_script(wanted, at, report, stage).await
        });
        run = next?;
    }
    print(&run, format, ui)
}

/// A script is run as it is now, and not as it was when the run was started: one that has changed since, or is not trusted
/// any more, is asked about again.
fn expect_trusted(ctx: &Ctx<'_>, run: &ScriptRun) -> Result<(), Failure> {
    let entry = resolve(ctx.catalog()?, &run.workflow)?;
    let is_same = entry.skill.origin.dir() == run.skill_dir();
    match is_same && entry.trust == Trust::Trusted {
        true => Ok(()),
        false => {
            let workflow = run.workflow.clone();
            Err(Failure::no(ProgramError::NotTrusted { workflow }.to_string()).hint(format!(
                "Its files may have changed since the run was started. Look at them, then `rep trust {}`, and go on.",
                entry.id
            )))
        }
    }
}

/// A person decides about a loop that has stopped.
pub(super) fn decide(
    ctx: &Ctx<'_>,
    wanted: &str,
    choice: &str,
    format: Format,
    ui: &mut Ui<'_>,
) -> Outcome {
    let go_on = match choice {
        "continue" => true,
        "abort" => false,
        other => {
            return Err(Failure::usage(format!(
                "`--choice {other}`: this is no choice for a script"
            ))
            .hint("Use continue or abort."));
        }
    };
    let run = ctx.runs().open_script(wanted).map_err(run_failed)?;
    if go_on {
        expect_trusted(ctx, &run)?;
    }
    let decided = staged(ctx, &run.head.folder, async |stage| {
        ctx.runs().decide_script(wanted, go_on, stage).await
    });
    print(&decided?, format, ui)
}

/// Where a run of a script is.
pub(super) fn status(ctx: &Ctx<'_>, wanted: &str, ui: &mut Ui<'_>) -> Outcome {
    let run = ctx.runs().open_script(wanted).map_err(run_failed)?;
    let view = run.view();
    if ui.json {
        ui.print_json(&view)?;
        return Ok(exit_of(&run));
    }
    writeln!(ui.out, "{}  {}", ui.paint(ui::STRONG, &run.run), ui.paint(ui::FAINT, &run.workflow))?;
    writeln!(
        ui.out,
        "  {} at step {} of {}: {}, turn {}",
        run.status(),
        view.step,
        view.total,
        ui::fit(&view.title, 80),
        view.turn
    )?;
    Ok(exit_of(&run))
}

pub(super) fn print(run: &ScriptRun, format: Format, ui: &mut Ui<'_>) -> Outcome {
    print_view(&run.view(), format, ui)?;
    Ok(exit_of(run))
}

fn exit_of(run: &ScriptRun) -> Exit {
    match run.status() {
        "active" | "done" => Exit::Done,
        _ => Exit::No,
    }
}

fn failed(error: ScriptError) -> Failure {
    let message = error.to_string();
    let hint = "Nothing was changed: mend the script (a project's has to be trusted again), and run the same command.";
    match error {
        ScriptError::Run(error) => run_failed(error),
        ScriptError::Program(error) => not_run(error),
        ScriptError::Failed { command, how } => {
            let mut lines = how.lines();
            let first = lines.next().unwrap_or_default();
            let mut failure = Failure::cannot_run(format!("`{command}` has failed: {first}"));
            // The end of what it said is where the reason is.
            for line in lines.rev().take(SAID_LINES_MAX).collect::<Vec<_>>().into_iter().rev() {
                failure = failure.hint(line);
            }
            failure.hint(hint)
        }
        ScriptError::Output(_) => Failure::cannot_run(message).hint(hint),
        ScriptError::Progress(_)
        | ScriptError::OtherTurn { .. }
        | ScriptError::Missing(_)
        | ScriptError::NoSuchArgument { .. }
        | ScriptError::NotWaiting => Failure::no(message),
    }
}
