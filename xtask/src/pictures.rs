//! Draws the pictures of the README: real output of `rep match` and `rep plan run` in a terminal window.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use camino::Utf8PathBuf;
use regex::Regex;
use repertoire_text::fs::write_atomic;

use crate::codegen::repository_root;

mod terminal;
mod window;

use terminal::{TerminalLine, parse_output, wrap_lines};
use window::{DARK, LIGHT, draw_window};

/// Width of the terminal, in columns.
const COLUMNS: usize = 92;

/// The files of the example project.
const FILES: [(&str, &str); 4] = [
    (".claude/skills/sql-review/SKILL.md", include_str!("../../crates/rep/src/demo/sql-review.md")),
    (
        ".claude/skills/release-notes/SKILL.md",
        include_str!("../../crates/rep/src/demo/release-notes.md"),
    ),
    ("PLAN.md", include_str!("../../crates/rep/src/demo/plan.md")),
    ("plan-agent.yaml", include_str!("../../crates/rep/src/demo/plan-agent.yaml")),
];

/// The commands, as they are shown.
const COMMANDS: [&[&str]; 2] = [
    &["match", "this migration locks the orders table, is the index safe?"],
    &["plan", "run", "--check", "test -s PLAN.md"],
];

pub(crate) fn draw_pictures() -> Result<String> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--package", "repertoire-cli"])
        .current_dir(repository_root())
        .status()?;
    ensure!(built.success(), "`cargo build` failed");
    let stage = PictureStage::new()?;
    let mut lines = Vec::new();
    for args in COMMANDS {
        lines.push(TerminalLine::prompt(args));
        let output = stage.run_command(args)?;
        lines.extend(parse_output(output.trim_end_matches('\n')));
        lines.push(TerminalLine::default());
    }
    lines.pop();
    let lines = wrap_lines(lines, COLUMNS);
    let mut written = Vec::new();
    for theme in [LIGHT, DARK] {
        let path = format!("docs/images/terminal-{}.svg", theme.name);
        let picture = draw_window(&lines, COLUMNS, &theme);
        write_atomic(&repository_root().join(&path), picture.as_bytes())?;
        written.push(format!("wrote {path}"));
    }
    Ok(written.join("\n"))
}

/// The example project in a temporary folder.
struct PictureStage {
    _keep: tempfile::TempDir,
    home: Utf8PathBuf,
    project: Utf8PathBuf,
}

impl PictureStage {
    fn new() -> Result<Self> {
        let keep = tempfile::tempdir()?;
        let dir = Utf8PathBuf::try_from(keep.path().to_owned())?.canonicalize_utf8()?;
        let (home, project) = (dir.join("home"), dir.join("home/shop"));
        for (path, text) in FILES {
            write_atomic(&project.join(path), text.as_bytes())?;
        }
        let stage = PictureStage { _keep: keep, home, project };
        let user = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        stage.run_git(&["init", "--quiet", "--initial-branch=main"])?;
        stage.run_git(&["add", "--all"])?;
        stage.run_git(&[&user[..], &["commit", "--quiet", "--message", "The shop"]].concat())?;
        stage.run_command(&["lint", "--fix", ".claude/skills"])?;
        stage
            .run_git(&[&user[..], &["commit", "--quiet", "--all", "--message", "Fix"]].concat())?;
        stage.run_command(&["trust", "sql-review"])?;
        Ok(stage)
    }

    fn run_git(&self, args: &[&str]) -> Result<()> {
        let done = self.in_project("git").args(args).status()?;
        ensure!(done.success(), "git {args:?} failed");
        Ok(())
    }

    /// Runs `rep` and returns standard output and standard error together, as a terminal shows them.
    fn run_command(&self, args: &[&str]) -> Result<String> {
        let rep = repository_root().join("target/debug/rep");
        let mut shown = tempfile::tempfile()?;
        let done = self
            .in_project(rep.as_str())
            .args(args)
            .stdin(Stdio::null())
            .stdout(shown.try_clone()?)
            .stderr(shown.try_clone()?)
            .status()
            .with_context(|| format!("starting {rep}"))?;
        let text = read_all(&mut shown)?;
        ensure!(done.success(), "rep {args:?} ended with {done}:\n{text}");
        let text = text.replace(&format!("{}/", self.project), "");
        steady_text(&text.replace(self.home.as_str(), "~"))
    }

    fn in_project(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("REPERTOIRE_SANDBOX", "off")
            .env("REPERTOIRE_PLAN_BACKEND", "scripted:plan-agent.yaml")
            .env("CLICOLOR_FORCE", "1")
            .env("COLUMNS", COLUMNS.to_string());
        command
    }
}

fn read_all(file: &mut File) -> Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.take(1024 * 1024).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces what differs in every run: times and ids.
fn steady_text(text: &str) -> Result<String> {
    let id = Regex::new(r"\b[0-9a-f]{8}\b")?;
    let time = Regex::new(r"\b[0-9.]+ ms\b")?;
    let text = id.replace_all(text, "7d4942c3");
    Ok(time.replace_all(&text, "0.5 ms").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ids_are_the_same_in_every_run() {
        let steady = |text: &str| steady_text(text).unwrap();
        assert_eq!(steady("1 of 34 in 0.52 ms."), "1 of 34 in 0.5 ms.");
        assert_eq!(
            steady("rep/plan-discount-42b8a022 from main"),
            "rep/plan-discount-7d4942c3 from main"
        );
    }
}
