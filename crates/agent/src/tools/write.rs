//! `write`: writes a whole file atomically.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_text::fs::EntryKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ResolvedPathRules, arguments, object_schema, path_subject, run_blocking};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum size of a written file.
pub(super) const WRITE_BYTES_MAX: usize = 10 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct WriteTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

impl Tool for WriteTool {
    fn name(&self) -> &str {
        "write"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "write".to_owned(),
            description: "Write a whole text file, in place of what was there; folders are made. At most 10 MB. To \
                          change a part of a file, use `edit`. Agents' configuration and `.git` are protected."
                .to_owned(),
            parameters: object_schema(
                &["path", "content"],
                json!({
                    "path": {"type": "string", "description": "The file, relative to the work folder."},
                    "content": {"type": "string", "description": "All of its text."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Write
    }

    fn subject(&self, arguments: &Value) -> String {
        path_subject(arguments)
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let wanted: WriteArguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            let workplace = call.run.workplace.clone();
            let rules = ResolvedPathRules::for_run(call.run, "write", ToolAccess::Write);
            run_blocking(move || match write_file(&workplace, &rules, &wanted) {
                Ok(said) => ToolOutput::ok(said),
                Err(message) => ToolOutput::error(message),
            })
            .await
        })
    }
}

fn write_file(
    workplace: &RunWorkplace,
    rules: &ResolvedPathRules,
    wanted: &WriteArguments,
) -> Result<String, String> {
    let path = &wanted.path;
    let bytes = wanted.content.len();
    if bytes > WRITE_BYTES_MAX {
        return Err(format!("the text has {bytes} bytes; at most {WRITE_BYTES_MAX} are written"));
    }
    let target = beneath::resolve_writable(workplace, path).map_err(|error| error.to_string())?;
    rules.check_location(path, target.relative().as_str())?;
    let before = target.existing_entry();
    if let Some((kind, _)) = before
        && kind != EntryKind::File
    {
        let kind = if kind == EntryKind::Folder { "a folder" } else { "not a regular file" };
        return Err(format!("`{path}` is {kind}, and cannot be written"));
    }
    target
        .write_atomic(wanted.content.as_bytes())
        .map_err(|error| format!("`{path}` was not written: {error}"))?;
    let lines = wanted.content.lines().count();
    Ok(match before {
        None => format!("wrote the new file `{path}`: {bytes} bytes, {lines} lines"),
        Some((_, bytes_before)) => format!(
            "wrote `{path}`: {bytes} bytes, {lines} lines, in place of {bytes_before} bytes"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[tokio::test]
    async fn a_new_file_gets_its_folders() {
        let bench = Bench::new();
        let said = bench.ok(&WriteTool, json!({"path": "a/b/c.txt", "content": "x\ny\n"})).await;
        assert_eq!(said, "wrote the new file `a/b/c.txt`: 4 bytes, 2 lines");
        assert_eq!(bench.text("a/b/c.txt"), "x\ny\n");
        let said = bench.ok(&WriteTool, json!({"path": "a/b/c.txt", "content": ""})).await;
        assert_eq!(said, "wrote `a/b/c.txt`: 0 bytes, 0 lines, in place of 4 bytes");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_mode_of_a_file_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let bench = Bench::new();
        bench.file("run.sh", "a");
        let path = bench.dir().join("run.sh");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        bench.ok(&WriteTool, json!({"path": "run.sh", "content": "b"})).await;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_is_written_elsewhere_or_where_it_is_protected() {
        let bench = Bench::new();
        std::os::unix::fs::symlink(bench.outside(), bench.dir().join("out")).unwrap();
        std::os::unix::fs::symlink("/dev/null", bench.dir().join("null")).unwrap();
        let refused =
            ["../x", "/tmp/x", "out/x", "null", ".git/hooks/pre-commit", "a/../AGENTS.md", "n\0l"];
        for path in refused {
            bench.fails(&WriteTool, json!({"path": path, "content": "x"})).await;
        }
        assert!(!bench.outside().join("x").exists());
        assert!(!bench.dir().join(".git").exists());
    }

    #[tokio::test]
    async fn folders_pipes_and_too_much_are_refused() {
        let bench = Bench::new();
        bench.file("dir/x", "");
        let said = bench.fails(&WriteTool, json!({"path": "dir", "content": ""})).await;
        assert_eq!(said, "`dir` is a folder, and cannot be written");
        let much = "x".repeat(WRITE_BYTES_MAX + 1);
        let said = bench.fails(&WriteTool, json!({"path": "much", "content": much})).await;
        assert!(said.contains("at most 10485760"), "{said}");
    }
}
