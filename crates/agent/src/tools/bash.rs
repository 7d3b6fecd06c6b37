//! `bash`: runs a command in the shell.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::command::{self, ToolCommand};
use super::{arguments, object_schema, text_argument};
use crate::effect::{EffectLimit, RunEffect};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};

#[derive(Clone, Copy, Debug)]
pub struct Bash;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BashArguments {
    command: String,
    #[serde(default)]
    timeout_ms: Option<u64>,
    // Not used here: the description is for people who watch the run and see the arguments.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    network: bool,
}

impl Tool for Bash {
    fn name(&self) -> &str {
        "bash"
    }

    fn spec(&self, run: &AgentRun) -> ToolSpec {
        let limits = &run.workplace.limits;
        let (usual, most) = (limits.timeout.as_millis(), limits.timeout_max.as_millis());
        ToolSpec {
            name: "bash".to_owned(),
            description: format!(
                "Run a command with bash in the work folder. Every call is a new shell: `cd` and variables do not stay. \
                 Input is closed, so nothing can be asked. After {usual} ms, or `timeout_ms` (at most {most}), it is \
                 stopped with all that it started; background programs end with the call. {} Prefer `read`, `edit`, \
                 `grep`, `glob` and `git` to their commands.",
                describe_surroundings(&run.limit())
            ),
            parameters: object_schema(
                &["command"],
                json!({
                    "command": {"type": "string", "description": "The command."},
                    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Milliseconds it may take."},
                    "description": {"type": "string", "description": "What it is for, in a few words."},
                    "network": {"type": "boolean", "description": "Whether it needs the network."},
                }),
            ),
        }
    }

    fn access(&self, arguments: &Value) -> ToolAccess {
        match arguments.get("network").and_then(Value::as_bool) {
            Some(true) => ToolAccess::Network,
            _ => ToolAccess::Execute,
        }
    }

    fn subject(&self, arguments: &Value) -> String {
        text_argument(arguments, "command").to_owned()
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let ran = async {
                let wanted: BashArguments = arguments(&call)?;
                let usual = call.run.workplace.limits.timeout;
                let timeout = command::call_timeout(&call, wanted.timeout_ms, usual);
                let shell = ToolCommand::shell(&wanted.command, timeout, wanted.network)?;
                let ran = command::run(&call, shell).await?;
                Ok(command::build_output(&call, &ran, timeout))
            };
            ran.await.unwrap_or_else(|output: ToolOutput| output)
        })
    }
}

/// Describes to the model which files and networks a command can reach.
fn describe_surroundings(limit: &EffectLimit) -> String {
    let files = if limit.effects().has(RunEffect::ChangeFiles) {
        ""
    } else {
        "The work folder is read-only. "
    };
    let network = if limit.commands_may_use_network() {
        "There is no network unless `network` is true, which may need permission."
    } else {
        "There is no network."
    };
    format!("{files}{network}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Bench, call};

    #[tokio::test]
    async fn output_comes_back_with_labels_where_there_are_two() {
        let bench = Bench::new();
        let run = async |command: &str| bench.ok(&Bash, json!({"command": command})).await;
        assert_eq!(run("echo hello").await, "hello");
        assert_eq!(run("echo out; echo err >&2").await, "stdout:\nout\nstderr:\nerr");
        assert_eq!(run("echo err >&2").await, "stderr:\nerr");
        assert_eq!(run("true").await, "[exit code 0; no output]");
        assert_eq!(run("pwd -P").await, bench.dir().canonicalize_utf8().unwrap().as_str());
    }

    #[tokio::test]
    async fn an_exit_code_is_a_failure_with_the_output() {
        let bench = Bench::new();
        let said = bench.fails(&Bash, json!({"command": "echo half; exit 3"})).await;
        assert_eq!(said, "[exit code 3]\nhalf");
        let said = bench.fails(&Bash, json!({"command": "exit 4"})).await;
        assert_eq!(said, "[exit code 4; no output]");
    }

    #[tokio::test]
    async fn a_timeout_ends_the_whole_group_and_says_so() {
        let bench = Bench::new();
        let command = "echo begun; (sleep 5; echo late > late) & sleep 5";
        let said = bench.fails(&Bash, json!({"command": command, "timeout_ms": 300})).await;
        assert!(said.starts_with("[stopped after 0.3 s") && said.ends_with("begun"), "{said}");
        assert!(!bench.dir().join("late").exists());
    }

    #[tokio::test]
    async fn a_stopped_run_stops_its_command() {
        let bench = Bench::new();
        let run = bench.run();
        let stop = run.cancel.clone();
        let (output, ()) =
            tokio::join!(call(&Bash, &run, json!({"command": "echo begun; sleep 30"})), async {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                stop.cancel();
            });
        assert!(output.is_error && output.text.contains("because the run was"), "{}", output.text);
    }

    #[tokio::test]
    async fn much_output_is_bounded_and_kept() {
        let bench = Bench::new();
        let output = bench.call(&Bash, json!({"command": "seq 1 100000"})).await;
        assert!(output.text.chars().count() < 31_000);
        assert!(output.text.starts_with("1\n2\n") && output.text.ends_with("\n100000"));
        let whole = output.spilled.unwrap();
        assert!(std::fs::metadata(whole).unwrap().len() > 500_000);
    }

    #[tokio::test]
    async fn what_cannot_be_run_is_told() {
        let bench = Bench::new();
        for command in ["", "  ", "echo \0", &"x".repeat(200_000)] {
            bench.fails(&Bash, json!({"command": command})).await;
        }
        let said = bench.fails(&Bash, json!({"command": "no-such-program-here"})).await;
        assert!(said.contains("[exit code 127]"), "{said}");
        // The program cannot prompt, because its input is closed.
        bench.fails(&Bash, json!({"command": "read answer"})).await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_runs_where_its_folder_is_a_link_or_with_the_heart_of_git_moved() {
        let bench = Bench::new();
        bench.file(".git/HEAD", "ref: refs/heads/main\n");
        let said = bench.fails(&Bash, json!({"command": "echo ../../x > .git/commondir"})).await;
        assert!(said.contains("the protected path `.git/commondir` was made"), "{said}");
        assert!(!bench.dir().join(".git/commondir").exists());

        let mut run = bench.run();
        for link in ["output", "elsewhere/private"] {
            std::fs::create_dir_all(bench.dir().join("elsewhere")).unwrap();
            std::os::unix::fs::symlink("/", bench.dir().join(link)).unwrap();
            run.workplace.spill_dir = bench.dir().join(link.trim_end_matches("/private"));
            let output = call(&Bash, &run, json!({"command": "echo begun"})).await;
            assert!(output.is_error && output.text.contains("through a link"), "{}", output.text);
        }
    }

    #[test]
    fn the_network_is_another_permission() {
        assert_eq!(Bash.access(&json!({"command": "x"})), ToolAccess::Execute);
        assert_eq!(Bash.access(&json!({"command": "x", "network": true})), ToolAccess::Network);
        assert_eq!(Bash.subject(&json!({"command": "git push"})), "git push");
    }
}
