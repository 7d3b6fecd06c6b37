//! `list`: lists a folder.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::{self, WalkContext, WalkEntryKind, WalkFilter, WalkFlow};
use super::{arguments, object_schema, path_subject, run_blocking};
use crate::run::AgentRun;
use crate::spill;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;

/// The maximum number of entries shown.
const SHOWN_MAX: usize = 1_000;
/// The maximum depth that a call may ask for.
const DEPTH_MAX: usize = 10;

#[derive(Clone, Copy, Debug)]
pub struct ListTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    depth: Option<usize>,
    #[serde(default)]
    ignored: bool,
}

impl Tool for ListTool {
    fn name(&self) -> &str {
        "list"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "list".to_owned(),
            description: format!(
                "List a folder: folders end with `/`, links with `@`, files come with their size in bytes. What git \
                 ignores is left out unless `ignored` is true. At most {SHOWN_MAX} entries."
            ),
            parameters: object_schema(
                &[],
                json!({
                    "path": {"type": "string", "description": "The folder, relative to the work folder; the work folder itself if absent."},
                    "depth": {"type": "integer", "minimum": 1, "maximum": DEPTH_MAX, "description": "How many levels to show; 1 if absent."},
                    "ignored": {"type": "boolean", "description": "Show what git ignores as well."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Read
    }

    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        path_subject(arguments)
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let wanted: ListArguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            let (ground, id) = (WalkContext::for_run(call.run), call.id.to_owned());
            run_blocking(move || list_folder(&ground, &wanted, &id)).await
        })
    }
}

fn list_folder(ground: &WalkContext, wanted: &ListArguments, id: &str) -> ToolOutput {
    let path = wanted.path.as_deref().unwrap_or(".");
    let start = match beneath::open_readable(&ground.workplace, path) {
        Ok(start) => start,
        Err(error) => return ToolOutput::error(error.to_string()),
    };
    if !start.is_folder() {
        return ToolOutput::error(format!("`{path}` is a file; use `read` to see it"));
    }
    let show = if wanted.ignored { WalkFilter::Everything } else { WalkFilter::Usual };
    let depth = wanted.depth.unwrap_or(1).clamp(1, DEPTH_MAX);
    let (mut lines, mut total) = (Vec::new(), 0_usize);
    let walked = walk::walk_entries(ground, &start, (show, Some(depth)), |met| {
        total += 1;
        if lines.len() < SHOWN_MAX {
            lines.push(match met.kind {
                WalkEntryKind::Folder => format!("{}/", met.relative),
                WalkEntryKind::Link => format!("{}@", met.relative),
                WalkEntryKind::File => format!("{}  {}", met.relative, met.bytes()),
                WalkEntryKind::Other => format!("{}  (a pipe, socket or device)", met.relative),
            });
        }
        WalkFlow::Continue
    });
    if total == 0 {
        return ToolOutput::ok(format!(
            "`{path}` is empty, or git ignores all of it{}",
            walk::describe_skipped(walked)
        ));
    }
    let mut text = lines.join("\n");
    if total > lines.len() {
        text.push_str(&format!(
            "\n[{} of {total} entries; name a folder to see more]",
            lines.len()
        ));
    }
    spill::bound_text(&(text + &walk::describe_skipped(walked)), &ground.workplace, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[tokio::test]
    async fn a_folder_is_sorted_and_git_is_listened_to() {
        let bench = Bench::new();
        bench.file("b.txt", "xx");
        bench.file("a/deep.txt", "x");
        bench.file("target/out", "x");
        bench.file(".gitignore", "target/\n");
        bench.file(".git/HEAD", "x");
        let text = bench.ok(&ListTool, json!({})).await;
        assert_eq!(text, ".gitignore  8\na/\nb.txt  2");
        let text = bench.ok(&ListTool, json!({"depth": 2, "ignored": true})).await;
        assert_eq!(text, ".gitignore  8\na/\na/deep.txt  1\nb.txt  2\ntarget/\ntarget/out  1");
        assert_eq!(bench.ok(&ListTool, json!({"path": "a"})).await, "deep.txt  1");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_are_shown_and_not_followed() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/etc", bench.dir().join("etc")).unwrap();
        assert_eq!(bench.ok(&ListTool, json!({"depth": 5})).await, "etc@");
        let text = bench.fails(&ListTool, json!({"path": "etc"})).await;
        assert!(text.contains("outside of the work folder"), "{text}");
    }

    #[tokio::test]
    async fn many_entries_are_counted() {
        let bench = Bench::new();
        for number in 0..1_005 {
            std::fs::File::create(bench.dir().join(format!("{number:04}"))).unwrap();
        }
        let text = bench.ok(&ListTool, json!({})).await;
        assert!(text.ends_with("[1000 of 1005 entries; name a folder to see more]"), "{text}");
    }

    #[tokio::test]
    async fn a_file_and_nothing_are_told() {
        let bench = Bench::new();
        bench.file("a.txt", "x");
        bench.fails(&ListTool, json!({"path": "a.txt"})).await;
        bench.fails(&ListTool, json!({"path": "none"})).await;
    }
}
