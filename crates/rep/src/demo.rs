//! The demo: creates a small workspace in a temporary folder and runs real commands in it. It
//! prints the real output of those commands.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::env::AppEnvironment;
use repertoire_text::fs;

use crate::cli::run_in;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::{self, TerminalUi};

/// The fate of the workspace after the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoCleanup {
    Remove,
    /// The workspace is kept, and its path is printed.
    Keep,
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

/// Commands of the demo that need a git repository, from the first run of a plan on.
const GIT_WORDS: &[&str] = &["plan", "runs", "replay", "review", "memory"];

struct DemoStep {
    title: &'static str,
    about: &'static str,
    args: &'static [&'static str],
}

const STEPS: &[DemoStep] = &[
    DemoStep {
        title: "Discover",
        about: "Every root is searched: the project's, yours, and the built-in pack. Nothing is dropped \
                silently: a draft without a description is broken, and a stranger's `recovery` does not \
                replace the trusted one.",
        args: &["list"],
    },
    DemoStep {
        title: "Check",
        about: "One description has an unquoted colon. Most tools would lose that skill without a word; \
                here it loads, and the correction is shown.",
        args: &["lint", ".claude/skills"],
    },
    DemoStep {
        title: "Mend",
        about: "What is certain is written back; what needs a person is left.",
        args: &["lint", "--fix", "--format", "short", ".claude/skills"],
    },
    DemoStep {
        title: "Look closer",
        about: "Everything known about one skill, with the line of every field.",
        args: &["show", "sql-review"],
    },
    DemoStep {
        title: "Match",
        about: "A task comes in. The skills that it needs are picked, with the reasons; the rest stay away, and \
                so do all of them when none fits.",
        args: &["match", "this migration locks the orders table, is the index safe?"],
    },
    DemoStep {
        title: "Ask why",
        about: "Why was one not picked? Every stage has its say.",
        args: &["match", "write the changelog for version 2", "--why", "sql-review"],
    },
    DemoStep {
        title: "Follow the needs",
        about: "Skills may need others, in versions.",
        args: &["deps", "auto-merge"],
    },
    DemoStep {
        title: "Hand over",
        about: "What an agent reads when it asks for a skill.",
        args: &["read", "release-notes"],
    },
    DemoStep {
        title: "Tell every agent",
        about: "The list of skills goes into AGENTS.md, once or a hundred times with the same result.",
        args: &["sync"],
    },
    DemoStep {
        title: "Look before it is sent",
        about: "What a model would be sent for a task, to the byte: instructions, skills, tools. It needs no key, \
                and nothing leaves the machine.",
        args: &["run", "--dry-run", "-a", "schema-keeper", "is the index of this migration safe?"],
    },
    DemoStep {
        title: "Run",
        about: "The same task, done. There may be no model here, so the turns are replayed from transcript.yaml; \
                with a key, leave out `--backend`.",
        args: &[
            "run",
            "--backend",
            "scripted:transcript.yaml",
            "is the index of this migration safe?",
        ],
    },
    DemoStep {
        title: "Go on later",
        about: "Every conversation is kept, with the skills that are in it.",
        args: &["conversations"],
    },
    DemoStep {
        title: "Follow a workflow",
        about: "A skill may be a workflow: steps as data, checked before they can run. Twelve come with the program.",
        args: &["workflow", "list"],
    },
    DemoStep {
        title: "Start one",
        about: "An agent is told one step at a time, and what to run next. The state is the engine's, not the agent's.",
        args: &[
            "workflow",
            "start",
            "sql-review",
            "--id",
            "orders-index",
            "--param",
            "migration=orders.sql",
            "--format",
            "text",
        ],
    },
    DemoStep {
        title: "Record",
        about: "A reviewer records what it looked at, and what it found.",
        args: &[
            "workflow",
            "record",
            "orders-index",
            r#"{"id":"lock","check":"no lock on orders","severity":"MUST","status":"FAIL","finding":"line 3 locks it"}"#,
        ],
    },
    DemoStep {
        title: "Try to go on",
        about: "The gate is computed from what was recorded. Saying that all is well does not help.",
        args: &["workflow", "step", "orders-index", "--outcome", "ok", "--format", "text"],
    },
    DemoStep {
        title: "Be sent back",
        about: "So the work goes back to whoever repairs it, with the findings; the next review looks afresh.",
        args: &["workflow", "step", "orders-index", "--at", "2", "--format", "text"],
    },
    DemoStep {
        title: "See a plan",
        about: "A plan is a check list in Markdown. What is done, what waits for what, and what comes next:",
        args: &["plan", "status"],
    },
    DemoStep {
        title: "Work through it",
        about: "One task after the other, in a worktree: done, checked, reviewed, checked. The agent is replayed, and at \
                one task it only says that everything is done. That is a reason to look, and nothing more.",
        args: &[
            "plan",
            "run",
            "--backend",
            "scripted:plan-agent.yaml",
            "--check",
            "test -s PLAN.md",
            "--ending",
            "merge",
        ],
    },
    DemoStep {
        title: "Read the record",
        about: "Everything that happened is in the journal: what each step did and took, and why.",
        args: &["runs", "show", "last"],
    },
    DemoStep {
        title: "Hold it to account",
        about: "A run is nothing but its events: folded anew, they give what is stored.",
        args: &["replay", "last"],
    },
    DemoStep {
        title: "Review a change",
        about: "Somebody has changed refunds.py. Patterns of skills look at the change; that needs no model, no key and \
                a few milliseconds.",
        args: &["review", "--patterns-only"],
    },
    DemoStep {
        title: "Have it read",
        about: "Reviewers look at it as well, replayed here. What they say has to have a place in the change, and another one has to \
                agree; what was turned away is said.",
        args: &["review", "--backend", "scripted:reviewers.yaml"],
    },
    DemoStep {
        title: "Understand a failure",
        about: "A compiler has said two things about one mistake. Read, grouped, and with what to mend first; the same is done to the \
                checks of a plan before an agent is asked again.",
        args: &["verify", "--read", "test-output.txt"],
    },
    DemoStep {
        title: "Remember what helps",
        about: "The failure has a name that is the same in every file. What helped is kept with it, and offered or tried the next time; what \
                stops helping loses its confidence.",
        args: &[
            "memory",
            "teach",
            "d1943017ed10dfab",
            "--advice",
            "the field is called attempts since version 2",
        ],
    },
    DemoStep {
        title: "Ask the memory",
        about: "What is known of it, in the words of whoever taught it. `rep plan run --self-improve` and runs on GitHub teach it by themselves.",
        args: &["memory", "show", "d19430"],
    },
    DemoStep {
        title: "Be called on GitHub",
        about: "Somebody calls the bot in an issue of a stranger. What would happen: the mode, why, the tools; the stranger's words are \
                data, and what was hidden in them is gone.",
        args: &[
            "github",
            "detect",
            "--event",
            "github-event.json",
            "--event-name",
            "issue_comment",
            "--permission",
            "write",
        ],
    },
    DemoStep {
        title: "Open a door",
        about: "The agent that you have already can use all this. One entry in its configuration, and nothing else in it changes; \
                `--remove` takes it back.",
        args: &["setup", "claude", "--print"],
    },
    DemoStep {
        title: "Be the agent",
        about: "What an agent reads when it asks over MCP which skills a task needs. `rep serve` has the same for people: a page, and an API.",
        args: &[
            "mcp",
            "--call",
            "skill_search",
            r#"{"task": "is the index of this migration safe?"}"#,
        ],
    },
    DemoStep {
        title: "Ask the doctor",
        about: "What an agent would see of all this, and what it would not.",
        args: &["doctor"],
    },
];

pub fn run(env: &CliEnvironment, afterwards: DemoCleanup, ui: &mut TerminalUi<'_>) -> CliResult {
    let folder = tempfile::Builder::new().prefix("rep-demo-").tempdir().map_err(|error| {
        CliFailure::cannot_run(format!("no temporary folder can be made: {error}"))
            .hint("Set TMPDIR to a folder that can be written to.")
    })?;
    let dir = Utf8PathBuf::from_path_buf(folder.path().to_owned())
        .map_err(|_| CliFailure::cannot_run("the temporary folder is not UTF-8"))?;
    let dir = dir.canonicalize_utf8()?;
    lay_out(&dir)?;
    let project = dir.join("shop");
    let process = AppEnvironment {
        vars: [
            ("HOME".to_owned(), dir.join("home").to_string()),
            ("REPERTOIRE_DATA_DIR".to_owned(), dir.join("data").to_string()),
            // The demo runs only the commands above, so it needs no sandbox.
            ("REPERTOIRE_SANDBOX".to_owned(), "off".to_owned()),
            ("PATH".to_owned(), env.var("PATH").unwrap_or_default().to_owned()),
        ]
        .into(),
        ..env.process.in_folder(&project)
    };
    let stage = CliEnvironment {
        process,
        // The output goes to memory, and no questions are asked.
        is_terminal: false,
        stderr_is_terminal: false,
        stdin_is_terminal: true,
        ..env.clone()
    };
    print_introduction(ui)?;
    let mut has_git = true;
    for (number, step) in STEPS.iter().enumerate() {
        print_step_heading(number + 1, step, ui)?;
        if step.args.starts_with(&["plan", "run"]) {
            has_git = commit_project(&stage);
        }
        if step.args[0] == "review" {
            let (file, text) = CHANGE;
            fs::write_atomic(&project.join(file), text.as_bytes())?;
        }
        if !has_git && GIT_WORDS.contains(&step.args[0]) {
            writeln!(ui.out, "  git 2.41 or later is needed for this, and is not here\n")?;
            continue;
        }
        run_step(&stage, step, &dir, ui)?;
    }
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, "That is what stands today."))?;
    if afterwards == DemoCleanup::Keep {
        let kept = folder.keep();
        writeln!(ui.out, "The workspace is in {}", kept.display())?;
    } else {
        writeln!(
            ui.out,
            "Try `rep list` in a project of your own, or `rep demo --keep` to look around in this one."
        )?;
    }
    Ok(CliExit::Done)
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

fn print_introduction(ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    writeln!(
        ui.out,
        "{}",
        ui.paint(ui::STRONG, "Repertoire finds, checks, picks and serves skills for AI agents.")
    )?;
    let about = "A small shop project was laid out in a temporary folder, with a plan, an agent and \
                 four skills:";
    writeln!(ui.out, "{}\n", ui::wrap_words(about, ui.columns.min(100), ""))?;
    for (path, _) in FILES {
        writeln!(ui.out, "  {}", ui.paint(ui::FAINT, path))?;
    }
    writeln!(ui.out)
}

fn print_step_heading(
    number: usize,
    step: &DemoStep,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let rule = "─".repeat(ui.columns.min(100).saturating_sub(ui::text_width(step.title) + 6));
    let line = format!("{number} {} {rule}", step.title);
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, line))?;
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

/// Runs a command in the project, and prints its output with shortened paths.
fn run_step(
    stage: &CliEnvironment,
    step: &DemoStep,
    dir: &Utf8Path,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let written = DemoOutput::default();
    let mut inner = TerminalUi {
        out: &mut written.clone(),
        err: &mut written.clone(),
        colour: ui.colour,
        err_colour: ui.colour,
        columns: ui.columns.min(100).saturating_sub(2),
        json: false,
    };
    run_in(stage, step.args, &mut inner)?;
    let text = written.0.borrow();
    let text = String::from_utf8_lossy(&text);
    let text = text.replace(&format!("{}/", stage.here), "").replace(stage.here.as_str(), ".");
    let text = text.replace(&format!("{dir}/"), "");
    for line in text.lines() {
        let line = without_cut_path(&without_resume(line), dir.as_str());
        writeln!(ui.out, "{}", format!("  {line}").trim_end())?;
    }
    writeln!(ui.out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use repertoire_flow::step::ShellCommand;

    use super::*;

    #[test]
    fn a_shell_takes_the_shown_arguments_as_they_are() {
        let all = STEPS.iter().flat_map(|step| step.args).copied();
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
