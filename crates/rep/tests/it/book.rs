//! Runs every command of *Get started* and *Guides*, page by page, as a reader would.
//!
//! Conventions of a page:
//!
//! - A `console` block is run. Lines that start with `$ ` are commands, lines that follow are what the command prints, standard
//!   output and standard error together. A line `…` stands for any number of lines, `…` within a line for any text. If nothing is
//!   shown, the output is not compared. The exit code is 0, or for the last command of the block N, as in `console exit=N`.
//! - A block with `file=PATH` in its info string is written to that file, relative to the current folder or to the home (`~/`). The
//!   text above it names the file, because readers do not see the info string.
//! - A `sh` block is not run, and says why: `sh reason="needs an API key"`.
//! - An HTML comment that starts with `setup:` holds commands that lay out what a reader has already.
//!
//! All commands of a page share a new home and current folder. `BOOK_UPDATE=1` writes what commands print now into the pages: it
//! replaces lines that do not match, and leaves the first and last lines around a single `…` as many as they are.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use regex::Regex;

/// A part of a page that the test acts on.
#[derive(Debug)]
enum Part {
    Setup(String),
    File { path: String, text: String },
    Console { exit: i32, calls: Vec<Call> },
    NotRun { line: usize, reason: bool },
}

/// A command and what the page shows of its output.
#[derive(Debug)]
struct Call {
    command: String,
    shown: Vec<String>,
    /// The lines of the page that `shown` stands on, from 0.
    at: std::ops::Range<usize>,
}

fn docs() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize_utf8().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a page of this repository")]
fn page_text(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The parts of a page in their order.
fn parts(text: &str) -> Vec<Part> {
    let lines: Vec<&str> = text.lines().collect();
    let exit = Regex::new(r"\bexit=(\d+)").unwrap();
    let file = Regex::new(r"\bfile=(\S+)").unwrap();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let first = at + 1;
        at += 1;
        if line.starts_with("<!-- setup:") {
            while lines[at] != "-->" {
                at += 1;
            }
            parts.push(Part::Setup(lines[first..at].join("\n")));
        }
        let indent = line.len() - line.trim_start().len();
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        while lines[at].trim() != "```" {
            at += 1;
        }
        let body: Vec<&str> =
            lines[first..at].iter().map(|line| line.get(indent..).unwrap_or("")).collect();
        at += 1;
        if let Some(path) = file.captures(info) {
            let name = path[1].rsplit('/').next().unwrap();
            let above = &lines[first.saturating_sub(5)..first - 1];
            assert!(
                above.iter().any(|line| line.contains(name)),
                "line {first}: readers do not see `file={name}`, so name it above the block"
            );
            parts.push(Part::File { path: path[1].to_owned(), text: body.join("\n") + "\n" });
        } else if info.starts_with("sh") {
            parts.push(Part::NotRun { line: first, reason: info.contains("reason=\"") });
        } else if info.starts_with("console") {
            let exit = exit.captures(info).map_or(0, |found| found[1].parse().unwrap());
            parts.push(Part::Console { exit, calls: calls(&body, first) });
        }
    }
    parts
}

/// The commands of a console block whose first line is line `first` of the page.
fn calls(body: &[&str], first: usize) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut goes_on = false;
    for (index, line) in body.iter().enumerate() {
        let here = first + index;
        if let Some(command) = line.strip_prefix("$ ") {
            let at = here + 1..here + 1;
            calls.push(Call { command: command.to_owned(), shown: Vec::new(), at });
        } else {
            let call = calls.last_mut().expect("a console block starts with a command");
            if goes_on {
                call.command = format!("{}\n{line}", call.command);
                call.at = here + 1..here + 1;
            } else {
                call.shown.push((*line).to_owned());
                call.at.end = here + 1;
                continue;
            }
        }
        goes_on = line.ends_with('\\');
    }
    calls
}

/// A home, a current folder and programs for one page.
struct Reader {
    _keep: tempfile::TempDir,
    home: Utf8PathBuf,
    bin: Utf8PathBuf,
    here: Utf8PathBuf,
}

impl Reader {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let (home, bin) = (dir.join("home"), dir.join("bin"));
        for folder in [&home, &bin] {
            std::fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rep"), bin.join("rep")).unwrap();
        let reader = Reader { _keep: keep, here: home.clone(), home, bin };
        let git = "[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n";
        reader.write("~/.gitconfig", git);
        reader
    }

    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fn write(&self, path: &str, text: &str) {
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.here.join(path),
        };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
    }

    /// Runs a command where the last one ended. Returns its exit code and its output without the path of the home.
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fn run(&mut self, script: &str) -> (i32, Vec<String>) {
        let state = self.bin.join("../here");
        let script = format!("{script}\ncode=$?; pwd -P > {state}; exit $code");
        let (out, err) = (self.bin.join("../out"), std::fs::File::create(self.bin.join("../out")));
        let err = err.unwrap();
        let status = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&self.here)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin))
            .envs([("COLUMNS", "80"), ("NO_COLOR", "1"), ("USER", "ada"), ("LANG", "C.UTF-8")])
            // What a sandbox can do depends on the machine.
            .env("REPERTOIRE_SANDBOX", "off")
            .stdin(Stdio::null())
            .stdout(err.try_clone().unwrap())
            .stderr(err)
            .status()
            .unwrap();
        if let Ok(here) = std::fs::read_to_string(&state) {
            self.here = here.trim_end().into();
        }
        let printed = std::fs::read_to_string(out).unwrap().replace(self.home.as_str(), "~");
        let lines = printed.trim_end_matches('\n').lines().map(|line| line.trim_end().to_owned());
        (status.code().unwrap_or(-1), lines.collect())
    }
}

/// Whether an output is what a page shows.
fn matches(shown: &[String], printed: &[String]) -> bool {
    let mut pattern = String::from("^");
    for line in shown {
        if line.trim() == "…" {
            pattern.push_str(r"(?:.*\n)*?");
        } else {
            let pieces: Vec<String> = line.trim_end().split('…').map(regex::escape).collect();
            let _ = writeln!(pattern, "{}", pieces.join(".*?"));
        }
    }
    pattern.push('$');
    let text: String = printed.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    Regex::new(&pattern).unwrap().is_match(&text)
}

/// What a page should show instead of `shown`, which does not match.
fn updated(shown: &[String], printed: &[String]) -> Option<Vec<String>> {
    let keep = |shown: &[String], printed: &[String]| -> Vec<String> {
        let line = |(shown, printed): (&String, &String)| {
            let same = matches(std::slice::from_ref(shown), std::slice::from_ref(printed));
            if same { shown.clone() } else { printed.clone() }
        };
        shown.iter().zip(printed).map(line).collect()
    };
    let mut gaps = (0..shown.len()).filter(|&at| shown[at].trim() == "…");
    match (gaps.next(), gaps.next()) {
        (None, _) => {
            let mut lines = keep(shown, printed);
            lines.extend(printed.iter().skip(lines.len()).cloned());
            Some(lines)
        }
        (Some(gap), None) if printed.len() >= shown.len() - 1 => {
            let tail = shown.len() - gap - 1;
            let mut lines = keep(&shown[..gap], &printed[..gap]);
            lines.push("…".to_owned());
            lines.extend(keep(&shown[gap + 1..], &printed[printed.len() - tail..]));
            Some(lines)
        }
        _ => None,
    }
}

/// Runs a page, and fails with everything in which it is wrong.
#[expect(clippy::disallowed_methods, reason = "a test that updates pages of this repository")]
fn run_page(name: &str) {
    let path = docs().join(name);
    let text = page_text(&path);
    if text.contains("python3") && Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let mut reader = Reader::new();
    let (mut wrong, mut updates) = (String::new(), Vec::new());
    for part in parts(&text) {
        match part {
            Part::Setup(script) => {
                let (code, out) = reader.run(&format!("set -e\n{script}"));
                assert_eq!(code, 0, "{name}: the setup failed:\n{}", out.join("\n"));
            }
            Part::File { path, text } => reader.write(&path, &text),
            Part::NotRun { line, reason } => {
                assert!(reason, "{name}:{line}: a `sh` block needs a reason why it is not run");
            }
            Part::Console { exit, calls } => {
                let last = calls.len() - 1;
                for (index, call) in calls.into_iter().enumerate() {
                    let (code, printed) = reader.run(&call.command);
                    let expected = if index == last { exit } else { 0 };
                    let same = call.shown.is_empty() || matches(&call.shown, &printed);
                    if code != expected || !same {
                        let _ = writeln!(
                            wrong,
                            "{name}:{}: $ {}\nexit code {code}, expected {expected}; it printed:\n{}\n",
                            call.at.start,
                            call.command,
                            printed.join("\n")
                        );
                    }
                    if let (false, Some(lines)) = (same, updated(&call.shown, &printed)) {
                        updates.push((call.at, lines));
                    }
                }
            }
        }
    }
    if std::env::var_os("BOOK_UPDATE").is_some() && !updates.is_empty() {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, new) in updates.into_iter().rev() {
            lines.splice(at, new);
        }
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(#[test] fn $name() { run_page($path); })*

        /// Every page of *Get started* and *Guides* is run.
        #[test]
        fn no_page_is_left_out() {
            let mut found: Vec<String> = Vec::new();
            for folder in ["get-started", "guides"] {
                for entry in docs().join(folder).read_dir_utf8().unwrap() {
                    found.push(format!("{folder}/{}", entry.unwrap().file_name()));
                }
            }
            found.sort();
            assert_eq!(found, [$($path),*]);
        }
    };
}

pages! {
    first_plan: "get-started/first-plan.md",
    first_review: "get-started/first-review.md",
    first_skill: "get-started/first-skill.md",
    install: "get-started/install.md",
    follow_a_workflow: "guides/follow-a-workflow.md",
    github: "guides/github.md",
    limit_an_agent: "guides/limit-an-agent.md",
    manage_runs: "guides/manage-runs.md",
    measure_selection: "guides/measure-selection.md",
    move_from_openskills: "guides/move-from-openskills.md",
    pick_the_right_skill: "guides/pick-the-right-skill.md",
    plan_with_your_agent: "guides/plan-with-your-agent.md",
    review_in_ci: "guides/review-in-ci.md",
    rust_library: "guides/rust-library.md",
    sandbox: "guides/sandbox.md",
    serve: "guides/serve.md",
    several_machines: "guides/several-machines.md",
    trust_skills: "guides/trust-skills.md",
    use_in_your_agent: "guides/use-in-your-agent.md",
    verify: "guides/verify.md",
    write_a_skill: "guides/write-a-skill.md",
}

/// What the README shows is in a page that is run: each of its blocks has the lines of a page, in their order.
#[test]
fn the_readme_shows_what_pages_show() {
    let pages: Vec<Vec<String>> = ["first-skill", "first-plan", "first-review"]
        .iter()
        .map(|name| page_text(&docs().join(format!("get-started/{name}.md"))))
        .map(|text| text.lines().map(str::to_owned).collect())
        .collect();
    for part in parts(&page_text(&docs().join("../README.md"))) {
        let Part::Console { calls, .. } = part else { continue };
        for call in calls {
            let command = format!("$ {}", call.command);
            let lines = call.shown.iter().filter(|line| line.trim() != "…");
            let lines: Vec<&str> = command.lines().chain(lines.map(String::as_str)).collect();
            let best = |page: &Vec<String>| {
                let mut rest = page.iter();
                lines.iter().take_while(|&&line| rest.any(|other| other == line)).count()
            };
            let found = pages.iter().map(best).max().unwrap();
            assert_eq!(lines.get(found), None, "of `{command}`, this line is in no page");
        }
    }
}

#[test]
fn outputs_are_compared_with_gaps() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(matches(&lines("a\n…\nd"), &lines("a\nb\nc\nd")));
    assert!(matches(&lines("a\n…\nb"), &lines("a\nb")));
    assert!(matches(&lines("took … ms."), &lines("took 0.1 ms.")));
    assert!(!matches(&lines("a\n…\nd"), &lines("a\nb")));
    assert!(!matches(&lines("a"), &lines("a\nb")));
    let new = updated(&lines("took … ms\nold\n…\nend"), &lines("took 1 ms\nnew\nx\ny\nend"));
    assert_eq!(new, Some(lines("took … ms\nnew\n…\nend")));
    assert_eq!(updated(&lines("old"), &lines("new\nmore")), Some(lines("new\nmore")));
}
