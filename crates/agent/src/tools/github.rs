//! `github`: issues, pull requests and workflow runs, through the `gh` program.

use camino::Utf8Path;
use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::command::{self, ToolCommand};
use super::git::{args_of, command_line, refuse_outside_paths};
use super::{arguments, object_schema};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum number of arguments.
const ARGS_MAX: usize = 200;

#[derive(Clone, Copy, Debug)]
pub struct GitHubTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GitHubArguments {
    args: Vec<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// Allowed commands, by the first and second argument.
const ALLOWED: &[(&str, &[&str])] = &[
    ("issue", &["list", "view", "status", "create", "comment", "edit", "close", "reopen"]),
    (
        "pr",
        &[
            "list", "view", "status", "diff", "checks", "create", "comment", "edit", "review",
            "ready", "close", "reopen", "merge",
        ],
    ),
    ("repo", &["view", "list"]),
    ("run", &["list", "view", "rerun", "cancel"]),
    ("release", &["view", "list"]),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_PAGER", "cat"),
    ("GH_BROWSER", "true"),
    ("GH_EDITOR", "true"),
    ("NO_COLOR", "1"),
];

impl Tool for GitHubTool {
    fn name(&self) -> &str {
        "github"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "github".to_owned(),
            description: "Use GitHub with the `gh` program: `issue`, `pr` and `run` (list, view, create, comment and \
                          so on), `repo view`, `release view`, and `api` for GET requests. Give titles and bodies as \
                          arguments; nothing can be asked and no browser opens."
                .to_owned(),
            parameters: object_schema(
                &["args"],
                json!({
                    "args": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": ARGS_MAX,
                        "items": {"type": "string"},
                        "description": "The arguments, as in [\"pr\", \"view\", \"12\", \"--comments\"].",
                    },
                    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Milliseconds it may take."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Network
    }

    fn subject(&self, arguments: &Value) -> String {
        command_line("gh", &args_of(arguments))
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let ran = async {
                let wanted: GitHubArguments = arguments(&call)?;
                let workplace = &call.run.workplace;
                check_gh_args(workplace, &wanted.args).map_err(ToolOutput::error)?;
                command::check_args(&wanted.args)?;
                if !is_on_path(workplace, "gh") {
                    return Err(ToolOutput::error(
                        "the program `gh` is not on PATH; it is GitHub's own command line (https://cli.github.com), and \
                         the user has to install it and log in",
                    ));
                }
                let timeout =
                    command::call_timeout(&call, wanted.timeout_ms, workplace.limits.timeout);
                let environment = ENVIRONMENT
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                let gh = ToolCommand {
                    program: "gh".to_owned(),
                    args: wanted.args,
                    environment: environment.collect(),
                    timeout,
                    network: true,
                    may_change: &[],
                };
                let ran = command::run(&call, gh).await?;
                Ok(command::build_output(&call, &ran, timeout))
            };
            ran.await.unwrap_or_else(|output: ToolOutput| output)
        })
    }
}

/// Returns true if a program is found in the workplace's `PATH`.
fn is_on_path(workplace: &RunWorkplace, program: &str) -> bool {
    let path = workplace.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("/usr/local/bin:/usr/bin:/bin", |(_, value)| value.as_str());
    path.split(':').any(|dir| Utf8Path::new(dir).join(program).is_file())
}

const USAGE: &str =
    "this tool runs `issue`, `pr`, `run`, `repo view`, `release view` and `api` (GET)";

fn check_gh_args(workplace: &RunWorkplace, args: &[String]) -> Result<(), String> {
    let Some(first) = args.first() else { return Err(format!("`args` is empty; {USAGE}")) };
    if args.len() > ARGS_MAX {
        return Err(format!("{} arguments; at most {ARGS_MAX}", args.len()));
    }
    if first == "api" {
        check_api(&args[1..])?;
    } else {
        let second = args.get(1).map_or("", String::as_str);
        let allowed = ALLOWED.iter().find(|(name, _)| name == first);
        match allowed {
            None => return Err(format!("`gh {first}` is not allowed; {USAGE}")),
            Some((_, seconds)) if !seconds.contains(&second) => {
                let all = seconds.join(", ");
                return Err(format!(
                    "`gh {first} {second}` is not allowed; after `{first}`: {all}"
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(arg) = args.iter().find(|arg| is_refused_option(arg)) {
        return Err(format!(
            "the option `{arg}` is refused: it opens a program or talks to another server"
        ));
    }
    match first.as_str() {
        // Arguments that look like paths are paths on the server.
        "api" => Ok(()),
        _ => refuse_outside_paths(workplace, &args[1..]),
    }
}

fn is_refused_option(arg: &str) -> bool {
    matches!(arg, "--web" | "-w" | "--editor" | "-e" | "--hostname")
        || arg.starts_with("--hostname=")
}

/// Accepts only GET requests. Fields are refused because with them `gh` sends a POST.
fn check_api(args: &[String]) -> Result<(), String> {
    let mut args = args.iter().map(String::as_str).peekable();
    while let Some(arg) = args.next() {
        // `-iX POST` means `-i -X POST`.
        let is_group = arg.strip_prefix('-').is_some_and(|rest| {
            !rest.starts_with(['-', 'X']) && rest.chars().nth(1).is_some_and(char::is_alphabetic)
        });
        if is_group {
            return Err(format!("`{arg}` is refused with `gh api`: write each option by itself"));
        }
        let method = match arg {
            "-X" | "--method" => Some(args.next().unwrap_or("")),
            _ => arg.strip_prefix("--method=").or_else(|| arg.strip_prefix("-X")),
        };
        let method = method.map(|method| method.trim_start_matches('='));
        if method.is_some_and(|method| !method.eq_ignore_ascii_case("GET")) {
            return Err("`gh api` is allowed for GET only".to_owned());
        }
        let fields = ["-f", "-F", "--field", "--raw-field", "--input", "-H", "--header"];
        if fields.iter().any(|field| is_option(arg, field)) {
            return Err(format!("`{arg}` is refused with `gh api`: put parameters into the path"));
        }
        if arg == "graphql" || arg.contains("://") {
            return Err(format!(
                "`gh api {arg}` is not allowed; give a path such as `repos/OWNER/NAME`"
            ));
        }
    }
    Ok(())
}

fn is_option(arg: &str, option: &str) -> bool {
    arg == option
        || arg.starts_with(&format!("{option}="))
        || option.len() == 2 && arg.starts_with(option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Bench, call};

    fn args(text: &str) -> Value {
        json!({"args": text.split(' ').collect::<Vec<_>>()})
    }

    #[tokio::test]
    async fn what_changes_more_than_it_should_is_refused() {
        let bench = Bench::new();
        for refused in [
            "",
            "auth token",
            "extension install x",
            "repo delete x",
            "pr",
            "pr checkout 1",
            "pr view --web",
            "issue create --body-file /etc/passwd",
            "issue create -F/etc/passwd",
            "api -X POST repos/a/b",
            "api -XDELETE repos/a/b",
            "api --method=PATCH repos/a/b",
            "api -iX POST repos/a/b",
            "api -iXDELETE repos/a/b",
            "api -if x=y repos/a/b",
            "api repos/a/b -f x=y",
            "api repos/a/b -Fx=@/etc/passwd",
            "api repos/a/b --input x",
            "api graphql",
            "api https://example.com/",
            "api --hostname example.com repos/a/b",
        ] {
            bench.fails(&GitHubTool, args(refused)).await;
        }
        assert!(check_gh_args(&bench.workplace(), &args_of(&args("api -X GET repos/a/b"))).is_ok());
        assert!(
            check_gh_args(&bench.workplace(), &args_of(&args("pr view 12 --comments"))).is_ok()
        );
    }

    #[tokio::test]
    async fn a_missing_program_is_told() {
        let bench = Bench::new();
        let mut run = bench.run();
        run.workplace.environment = vec![("PATH".to_owned(), bench.dir().to_string())];
        let output = call(&GitHubTool, &run, args("pr list")).await;
        assert!(output.is_error && output.text.contains("`gh` is not on PATH"), "{}", output.text);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_program_gets_the_arguments_and_cannot_ask() {
        use std::os::unix::fs::PermissionsExt;
        let bench = Bench::new();
        let program = bench.outside().join("bin/gh");
        let script = b"#!/bin/sh\nprintf '%s|' \"$@\"; echo \"$GH_PROMPT_DISABLED\"\n";
        repertoire_text::fs::write_atomic(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut run = bench.run();
        let path = format!("{}:/usr/bin:/bin", bench.outside().join("bin"));
        run.workplace.environment = vec![("PATH".to_owned(), path)];
        let output = call(&GitHubTool, &run, json!({"args": ["issue", "view", "a b; c"]})).await;
        assert_eq!(output.text, "issue|view|a b; c|1");
    }

    #[test]
    fn it_is_always_the_network() {
        assert_eq!(GitHubTool.access(&args("pr view 1")), ToolAccess::Network);
        assert_eq!(GitHubTool.subject(&args("pr view 1")), "gh pr view 1");
    }
}
