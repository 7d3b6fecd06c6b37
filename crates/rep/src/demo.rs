//! The demo: creates a small workspace in a temporary folder and runs real commands in it. It
//! prints the real output of those commands.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::env::AppEnvironment;
use repertoire_text::fs;

use crate::async_runtime::build_runtime;
use crate::cli::run_in;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::foreground_run::StdinLines;
use crate::ui::{self, TerminalUi};

mod steps;

use steps::{CHAPTERS, DemoChapter, DemoSetting, DemoStep, TOUR};

/// The fate of the workspace after the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoCleanup {
    Remove,
    /// The workspace is kept, and its path is printed.
    Keep,
}

/// Whether the demo waits for the user between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoPace {
    Pause,
    RunThrough,
}

/// How to run the demo.
#[derive(Clone, Debug)]
pub(crate) struct DemoRequest {
    /// The chapter. `None` for the tour.
    pub(crate) chapter: Option<String>,
    pub(crate) cleanup: DemoCleanup,
    pub(crate) pace: DemoPace,
}

/// The files of the workspace, relative to its folder.
const FILES: &[(&str, &str)] = &[
    ("shop/.claude/skills/release-notes/SKILL.md", include_str!("demo/release-notes.md")),
    ("shop/.claude/skills/release-notes/assets/template.md", include_str!("demo/template.md")),
    ("shop/.claude/skills/sql-review/SKILL.md", include_str!("demo/sql-review.md")),
    ("shop/.claude/skills/sql-review/workflow.yaml", include_str!("demo/workflow.yaml")),
    ("shop/.claude/skills/recovery/SKILL.md", include_str!("demo/recovery.md")),
    ("shop/.claude/skills/draft/SKILL.md", include_str!("demo/draft.md")),
    ("shop/.claude/agents/schema-keeper.md", include_str!("demo/schema-keeper.md")),
    ("shop/PLAN.md", include_str!("demo/plan.md")),
    ("shop/transcript.yaml", include_str!("demo/transcript.yaml")),
    ("shop/plan-agent.yaml", include_str!("demo/plan-agent.yaml")),
    ("shop/refunds.py", include_str!("demo/refunds.py")),
    ("shop/reviewers.yaml", include_str!("demo/reviewers.yaml")),
    ("shop/test-output.txt", include_str!("demo/test-output.txt")),
    ("shop/github-event.json", include_str!("demo/github-event.json")),
];

/// The change to review: a file of the project, and its new text.
const CHANGE: (&str, &str) = ("refunds.py", include_str!("demo/refunds-changed.py"));

/// The start of the resume hint in the last line of a run.
const RESUME: &str = " · rep run --resume ";

/// The names of the chapters, as `rep demo NAME` takes them.
pub(crate) fn chapter_names() -> impl Iterator<Item = &'static str> {
    CHAPTERS.iter().map(|chapter| chapter.name)
}

/// Lists the tour and the chapters, with the commands to type.
pub(crate) fn list_chapters(ui: &mut TerminalUi<'_>) -> CliResult {
    let row = |command: &str, about: &str, ui: &TerminalUi<'_>| {
        format!("  {}  {about}", ui.paint(ui::ACCENT, ui::pad_columns(command, 18)))
    };
    writeln!(ui.out, "{}", row("rep demo", TOUR.about, ui))?;
    for chapter in &CHAPTERS {
        writeln!(ui.out, "{}", row(&format!("rep demo {}", chapter.name), chapter.about, ui))?;
    }
    Ok(CliExit::Done)
}

/// Runs the tour or a chapter in a workspace of its own.
pub(crate) fn run(
    env: &CliEnvironment,
    request: &DemoRequest,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let chapter = match &request.chapter {
        None => &TOUR,
        Some(name) => CHAPTERS
            .iter()
            .find(|chapter| chapter.name == name)
            .ok_or_else(|| CliFailure::wrong_usage(format!("there is no chapter `{name}`")))?,
    };
    let folder = tempfile::Builder::new().prefix("rep-demo-").tempdir().map_err(|error| {
        CliFailure::cannot_run(format!("cannot create a temporary folder: {error}"))
            .hint("Set TMPDIR to a writable folder.")
    })?;
    let dir = Utf8PathBuf::from_path_buf(folder.path().to_owned())
        .map_err(|_| CliFailure::cannot_run("the path of the temporary folder is not UTF-8"))?;
    let dir = dir.canonicalize_utf8()?;
    lay_out(&dir)?;
    let mut stage = DemoStage::new(env, dir);
    print_introduction(chapter, ui)?;
    let mut lines = StdinLines::new();
    for (number, step) in chapter.steps.iter().enumerate() {
        if request.pace == DemoPace::Pause && number > 0 {
            match wait_for_user(&mut lines, ui)? {
                DemoAnswer::NextStep => {}
                DemoAnswer::Stop => return Ok(CliExit::Done),
                DemoAnswer::Interrupt => return Ok(CliExit::Interrupted),
            }
        }
        print_step_heading((number + 1, chapter.steps.len()), step, ui)?;
        if step.needs_git && !stage.prepare_repository() {
            writeln!(ui.out, "  This step needs git 2.41 or later, which was not found.\n")?;
            continue;
        }
        stage.run_step(step, ui)?;
    }
    if request.cleanup == DemoCleanup::Keep {
        let kept = folder.keep();
        writeln!(ui.out, "The workspace is in {}", kept.display())?;
    } else if request.chapter.is_none() {
        let next = "Next: `rep init` in a project of your own, `rep demo --list` for more of the demo, or \
                    `rep demo --keep` to look around in this workspace.";
        writeln!(ui.out, "{}", ui::wrap_words(next, ui.columns.min(100), ""))?;
    }
    Ok(CliExit::Done)
}

/// The user's answer between two steps.
enum DemoAnswer {
    NextStep,
    /// `q`, or the end of the input.
    Stop,
    /// Ctrl-C.
    Interrupt,
}

/// Waits for the user between two steps.
fn wait_for_user(
    lines: &mut StdinLines,
    ui: &mut TerminalUi<'_>,
) -> Result<DemoAnswer, CliFailure> {
    ui.out.flush()?;
    write!(ui.err, "{}", ui.paint_err(ui::FAINT, "Enter: next step · q: stop "))?;
    ui.err.flush()?;
    let runtime = build_runtime()?;
    let answer = runtime.block_on(async {
        tokio::select! {
            line = lines.next() => match line {
                Some(line) if !line.trim().eq_ignore_ascii_case("q") => DemoAnswer::NextStep,
                _ => DemoAnswer::Stop,
            },
            // Earlier steps installed a signal handler, so Ctrl-C does not end the process by itself.
            _ = tokio::signal::ctrl_c() => DemoAnswer::Interrupt,
        }
    });
    Ok(answer)
}

/// The workspace, as the commands of the demo see it.
struct DemoStage {
    env: CliEnvironment,
    /// The temporary folder.
    dir: Utf8PathBuf,
    /// Whether the project is a git repository. `None` before the first step that needs one.
    has_git: Option<bool>,
}

impl DemoStage {
    fn new(env: &CliEnvironment, dir: Utf8PathBuf) -> Self {
        let project = dir.join("shop");
        let process = AppEnvironment {
            vars: [
                ("HOME".to_owned(), dir.join("home").to_string()),
                ("REPERTOIRE_DATA_DIR".to_owned(), dir.join("data").to_string()),
                // The demo runs only its own commands, so it needs no sandbox.
                ("REPERTOIRE_SANDBOX".to_owned(), "off".to_owned()),
                ("PATH".to_owned(), env.var("PATH").unwrap_or_default().to_owned()),
            ]
            .into(),
            ..env.process.in_folder(&project)
        };
        let env = CliEnvironment {
            process,
            // The output goes to memory, and no questions are asked.
            is_terminal: false,
            stderr_is_terminal: false,
            stdin_is_terminal: true,
            ..env.clone()
        };
        DemoStage { env, dir, has_git: None }
    }

    /// Commits the project as earlier steps left it, once. Returns false without a usable git.
    fn prepare_repository(&mut self) -> bool {
        *self.has_git.get_or_insert_with(|| commit_project(&self.env))
    }

    /// Runs a command in the project, and prints its output with shortened paths.
    fn run_step(&self, step: &DemoStep, ui: &mut TerminalUi<'_>) -> Result<(), CliFailure> {
        let mut env = self.env.clone();
        match step.setting {
            DemoSetting::Usual => {}
            DemoSetting::Variable(name, value) => {
                env.process.vars.insert(name.to_owned(), value.to_owned());
            }
            DemoSetting::ChangedFiles => {
                let (file, text) = CHANGE;
                fs::write_atomic(&env.here.join(file), text.as_bytes())?;
            }
        }
        let written = DemoOutput::default();
        let mut inner = TerminalUi {
            out: &mut written.clone(),
            err: &mut written.clone(),
            colour: ui.colour,
            err_colour: ui.colour,
            columns: ui.columns.min(100).saturating_sub(2),
            json: false,
        };
        run_in(&env, step.args, &mut inner)?;
        let text = written.0.borrow();
        let text = String::from_utf8_lossy(&text);
        let text = text.replace(&format!("{}/", env.here), "").replace(env.here.as_str(), ".");
        let text = text.replace(&format!("{}/", self.dir), "");
        for line in text.lines() {
            let line = without_cut_path(&without_resume(line), self.dir.as_str());
            writeln!(ui.out, "{}", format!("  {line}").trim_end())?;
        }
        writeln!(ui.out)?;
        Ok(())
    }
}

fn lay_out(dir: &Utf8Path) -> Result<(), CliFailure> {
    for (path, text) in FILES {
        fs::write_atomic(&dir.join(path), text.as_bytes())?;
    }
    std::fs::create_dir_all(dir.join("home"))?;
    Ok(())
}

/// Makes the project a git repository, since runs of plans need worktrees. Returns false if that
/// fails.
fn commit_project(stage: &CliEnvironment) -> bool {
    let steps: [&[&str]; 3] = [
        &["init", "--quiet", "--initial-branch=main"],
        &["add", "--all"],
        &[
            "-c",
            "user.name=Demo",
            "-c",
            "user.email=demo@localhost",
            "commit",
            "--quiet",
            "-m",
            "The shop",
        ],
    ];
    steps.iter().all(|args| {
        let mut git = std::process::Command::new("git");
        git.args(*args).current_dir(&stage.here).env_clear().envs(&stage.vars);
        git.output().is_ok_and(|output| output.status.success())
    })
}

fn print_introduction(chapter: &DemoChapter, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let about = format!(
        "{}. A small shop project with a plan, an agent and four skills was created in a temporary folder; \
         every output is real.",
        chapter.about
    );
    writeln!(ui.out, "{}\n", ui::wrap_words(&about, ui.columns.min(100), ""))
}

fn print_step_heading(
    (number, count): (usize, usize),
    step: &DemoStep,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let title = format!("{number}/{count} {}", step.title);
    let rule = "─".repeat(ui.columns.min(100).saturating_sub(ui::text_width(&title) + 1));
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, format!("{title} {rule}")))?;
    writeln!(ui.out, "{}", ui::wrap_words(step.about, ui.columns.min(100), ""))?;
    let args: Vec<String> = step.args.iter().map(|arg| ui::quote_argument(arg)).collect();
    let command = format!("$ rep {}", args.join(" "));
    writeln!(ui.out, "{}\n", ui.paint(ui::ACCENT, command))
}

/// One buffer for stdout and stderr, so that their lines keep the order of a terminal.
#[derive(Clone, Default)]
struct DemoOutput(Rc<RefCell<Vec<u8>>>);

impl Write for DemoOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Removes the resume hint from a line, since the demo's conversations are deleted with its folder.
fn without_resume(line: &str) -> String {
    let Some((before, after)) = line.split_once(RESUME) else { return line.to_owned() };
    // Keep the escape sequence that resets the colour.
    let end = after.find('\u{1b}').map_or("", |at| &after[at..]);
    format!("{before}{end}")
}

/// Removes a truncated path of the temporary folder from a line.
fn without_cut_path(line: &str, dir: &str) -> String {
    let starts = dir.char_indices().rev().filter(|(at, _)| *at > 1).map(|(at, _)| &dir[..at]);
    let starts = std::iter::once(dir).chain(starts);
    let cut = starts.map(|start| format!("{start}…")).find(|cut| line.contains(cut));
    cut.map_or_else(|| line.to_owned(), |cut| line.replace(&cut, "…"))
}

#[cfg(test)]
mod tests {
    use repertoire_flow::step::ShellCommand;

    use super::*;

    #[test]
    fn a_shell_takes_the_shown_arguments_as_they_are() {
        let all = std::iter::once(&TOUR).chain(&CHAPTERS);
        let all = all.flat_map(|chapter| chapter.steps).flat_map(|step| step.args).copied();
        for arg in all.chain([r#"it's "quoted""#, "it's"]) {
            assert_eq!(
                ShellCommand::split_line(&ui::quote_argument(arg)),
                Some(vec![arg.to_owned()]),
                "{arg}"
            );
        }
    }

    #[test]
    fn no_part_of_the_folder_is_shown() {
        let dir = "/tmp/rep-demo-abc";
        assert_eq!(without_cut_path("replaces /tmp/rep-de…", dir), "replaces …");
        for line in ["1/2 … and more", "replaces shop/a…", "/…"] {
            assert_eq!(without_cut_path(line, dir), line);
        }
    }
}
