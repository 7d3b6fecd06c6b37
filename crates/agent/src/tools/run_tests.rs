//! `run_tests`: runs the project's tests, with the command that the project uses.

use camino::Utf8Path;
use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_text::fs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::command::{self, ToolCommand};
use super::git::command_line;
use super::{arguments, object_schema, text_argument};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum number of output lines returned: the last ones, where test runners print their summary.
const LINES_MAX: usize = 150;
/// The maximum size of a project file that is inspected.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum length of a filter.
const FILTER_BYTES_MAX: usize = 500;

#[derive(Clone, Copy, Debug)]
pub struct RunTestsTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunTestsArguments {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    filter: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

impl Tool for RunTestsTool {
    fn name(&self) -> &str {
        "run_tests"
    }

    fn spec(&self, run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "run_tests".to_owned(),
            description: format!(
                "Run the project's tests: cargo, npm, pnpm, yarn, pytest, go or make, whichever the work folder is made \
                 for, or `command`. Answers whether they passed, with the last {LINES_MAX} lines of output. It may take \
                 {} ms.",
                run.workplace.limits.timeout_max.as_millis()
            ),
            parameters: object_schema(
                &[],
                json!({
                    "command": {"type": "string", "description": "Another command that runs tests, for bash."},
                    "filter": {"type": "string", "description": "Run only tests whose names have this. Not with `command`."},
                    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Milliseconds it may take."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Execute
    }

    fn subject(&self, arguments: &Value) -> String {
        match (text_argument(arguments, "command"), text_argument(arguments, "filter")) {
            ("", "") => "run_tests".to_owned(),
            ("", filter) => command_line("run_tests", &[filter.to_owned()]),
            (command, _) => command.to_owned(),
        }
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let ran = async {
                let wanted: RunTestsArguments = arguments(&call)?;
                let workplace = &call.run.workplace;
                let timeout =
                    command::call_timeout(&call, wanted.timeout_ms, workplace.limits.timeout_max);
                let (shown, mut command) = match &wanted.command {
                    Some(_) if wanted.filter.is_some() => {
                        return Err(ToolOutput::error("give either `command` or `filter`"));
                    }
                    Some(text) => (text.clone(), ToolCommand::shell(text, timeout, false)?),
                    None => detect_command(workplace, wanted.filter.as_deref())
                        .map_err(ToolOutput::error)?,
                };
                command.timeout = timeout;
                let ran = command::run(&call, command).await?;
                Ok(build_output(&call, &shown, &ran, timeout))
            };
            ran.await.unwrap_or_else(|output: ToolOutput| output)
        })
    }
}

fn build_output(
    call: &ToolInvocation<'_>,
    shown: &str,
    ran: &command::ToolCommandResult,
    timeout: std::time::Duration,
) -> ToolOutput {
    let ended = &ran.ended;
    let seconds = ended.duration.as_secs_f64();
    let (verdict, failed) = match command::describe_failure(ended, timeout) {
        None => ("passed".to_owned(), false),
        Some(failure) => (format!("failed ({failure})"), true),
    };
    let head = format!("tests {verdict} in {seconds:.1} s: `{shown}`\n");
    let (stdout, stderr) = (last_lines(&ended.stdout.bytes), last_lines(&ended.stderr.bytes));
    let mut pieces = vec![head.as_bytes(), stdout];
    if !stderr.is_empty() {
        pieces.extend([b"\nstderr:\n".as_slice(), stderr]);
    }
    let changes = ran.format_changes();
    pieces.push(changes.as_bytes());
    let mut output = crate::spill::bound_output(&pieces, &call.run.workplace, call.id);
    output.is_error = failed || !changes.is_empty();
    output
}

/// The last lines of the output.
fn last_lines(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.trim_ascii_end();
    let breaks = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match breaks.map(|(at, _)| at).nth(LINES_MAX - 1) {
        Some(at) => &bytes[at + 1..],
        None => bytes,
    }
}

fn detect_command(
    workplace: &RunWorkplace,
    filter: Option<&str>,
) -> Result<(String, ToolCommand), String> {
    if filter.is_some_and(|filter| {
        filter.is_empty()
            || filter.starts_with('-')
            || filter.len() > FILTER_BYTES_MAX
            || filter.contains('\0')
    }) {
        return Err("the filter must be a plain name, not an option".to_owned());
    }
    let words = test_command_words(workplace, filter)?;
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let command = ToolCommand {
        program: program.clone(),
        args: args.to_vec(),
        environment: Vec::new(),
        timeout: workplace.limits.timeout_max,
        network: false,
        may_change: &[],
    };
    Ok((command_line(program, args), command))
}

fn test_command_words(
    workplace: &RunWorkplace,
    filter: Option<&str>,
) -> Result<Vec<String>, String> {
    let has = |name: &str| workplace.dir.join(name).is_file();
    let with = |base: &[&str], before: &[&str]| {
        let filter = filter.map(|filter| [before, &[filter]].concat()).unwrap_or_default();
        Ok(base.iter().chain(&filter).map(|word| (*word).to_owned()).collect())
    };
    if has("Cargo.toml") {
        return with(&["cargo", "test"], &[]);
    }
    if has_test_script(workplace) {
        return match () {
            () if has("pnpm-lock.yaml") => with(&["pnpm", "test"], &["--"]),
            () if has("yarn.lock") => with(&["yarn", "test"], &[]),
            () => with(&["npm", "test"], &["--"]),
        };
    }
    if has("pytest.ini") || has("pyproject.toml") || has("tox.ini") {
        return with(&["pytest"], &["-k"]);
    }
    if has("go.mod") {
        return with(&["go", "test", "./..."], &["-run"]);
    }
    let makefile = read_project_file(workplace, "Makefile");
    if makefile.is_some_and(|text| text.lines().any(|line| line.starts_with("test:"))) {
        return match filter {
            None => with(&["make", "test"], &[]),
            Some(_) => Err("`make test` takes no filter; give a `command`".to_owned()),
        };
    }
    Err("the work folder has no Cargo.toml, package.json with a test script, pytest.ini, pyproject.toml, go.mod or \
         Makefile with `test:`; give a `command`"
        .to_owned())
}

fn has_test_script(workplace: &RunWorkplace) -> bool {
    let package = read_project_file(workplace, "package.json");
    let package = package.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    package.is_some_and(|package| package["scripts"]["test"].is_string())
}

fn read_project_file(workplace: &RunWorkplace, name: &str) -> Option<String> {
    fs::read_text_beneath(&workplace.dir, Utf8Path::new(name), FILE_BYTES_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[track_caller]
    fn check(files: &[(&str, &str)], filter: Option<&str>, expected: &str) {
        let bench = Bench::new();
        for (path, text) in files {
            bench.file(path, text);
        }
        let found = detect_command(&bench.workplace(), filter);
        assert_eq!(found.map_or_else(|error| error, |(shown, _)| shown), expected);
    }

    #[test]
    fn the_command_follows_the_project() {
        let npm = ("package.json", r#"{"scripts": {"test": "vitest"}}"#);
        check(&[("Cargo.toml", "")], None, "cargo test");
        check(&[("Cargo.toml", "")], Some("a b"), "cargo test 'a b'");
        check(&[npm], Some("x"), "npm test -- x");
        check(&[npm, ("pnpm-lock.yaml", "")], None, "pnpm test");
        check(&[npm, ("yarn.lock", "")], Some("x"), "yarn test x");
        check(&[("package.json", "{}"), ("go.mod", "")], Some("X"), "go test ./... -run X");
        check(&[("pyproject.toml", "")], Some("x"), "pytest -k x");
        check(&[("Makefile", "all:\ntest: all\n")], None, "make test");
        let lacks = "`make test` takes no filter; give a `command`";
        check(&[("Makefile", "test:\n")], Some("x"), lacks);
        let wrong = "the filter must be a plain name, not an option";
        check(&[("Cargo.toml", "")], Some("--config=x"), wrong);
    }

    #[tokio::test]
    async fn a_project_without_tests_is_told() {
        let bench = Bench::new();
        let said = bench.fails(&RunTestsTool, json!({})).await;
        assert!(said.contains("give a `command`"), "{said}");
        bench.fails(&RunTestsTool, json!({"command": "true", "filter": "x"})).await;
    }

    #[tokio::test]
    async fn passing_and_failing_are_told_with_the_end_of_the_output() {
        let bench = Bench::new();
        let said = bench.ok(&RunTestsTool, json!({"command": "seq 1 1000"})).await;
        assert!(said.starts_with("tests passed in ") && said.ends_with("\n1000"), "{said}");
        assert!(said.contains("\n851\n") && !said.contains("\n850\n"), "{said}");
        let said = bench.fails(&RunTestsTool, json!({"command": "echo no >&2; exit 1"})).await;
        assert!(said.starts_with("tests failed (exit code 1)") && said.ends_with("no"), "{said}");
    }
}
