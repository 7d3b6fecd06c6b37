//! `list`: lists a folder.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::{self, Ground, Kind, Next, Show};
use super::{arguments, blocking, object, path_subject};
use crate::run::Run;
use crate::spill;
use crate::tool::{Access, Call, Concurrency, Output, Tool};
use repertoire_sandbox::beneath;

/// The maximum number of entries shown.
const SHOWN_MAX: usize = 1_000;
/// The maximum depth that a call may ask for.
const DEPTH_MAX: usize = 10;

#[derive(Clone, Copy, Debug)]
pub struct List;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    depth: Option<usize>,
    #[serde(default)]
    ignored: bool,
}

impl Tool for List {
    fn name(&self) -> &str {
        "list"
    }

    fn spec(&self, _run: &Run) -> ToolSpec {
        ToolSpec {
            name: "list".to_owned(),
            description: format!(
                "List a folder: folders end with `/`, links with `@`, files come with their size in bytes. What git \
                 ignores is left out unless `ignored` is true. At most {SHOWN_MAX} entries."
            ),
            parameters: object(
                &[],
                json!({
                    "path": {"type": "string", "description": "The folder, relative to the work folder; the work folder itself if absent."},
                    "depth": {"type": "integer", "minimum": 1, "maximum": DEPTH_MAX, "description": "How many levels to show; 1 if absent."},
                    "ignored": {"type": "boolean", "description": "Show what git ignores as well."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> Access {
        Access::Read
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        path_subject(arguments)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let wanted: Arguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            let (ground, id) = (Ground::of(call.run), call.id.to_owned());
            blocking(move || list(&ground, &wanted, &id)).await
        })
    }
}

fn list(ground: &Ground, wanted: &Arguments, id: &str) -> Output {
    let path = wanted.path.as_deref().unwrap_or(".");
    let start = match beneath::readable(&ground.workplace, path) {
        Ok(start) => start,
        Err(error) => return Output::error(error.to_string()),
    };
    if !start.is_folder() {
        return Output::error(format!("`{path}` is a file; use `read` to see it"));
    }
    let show = if wanted.ignored { Show::Everything } else { Show::Usual };
    let depth = wanted.depth.unwrap_or(1).clamp(1, DEPTH_MAX);
    let (mut lines, mut total) = (Vec::new(), 0_usize);
    let walked = walk::walk(ground, &start, (show, Some(depth)), |met| {
        total += 1;
        if lines.len() < SHOWN_MAX {
            lines.push(match met.kind {
                Kind::Folder => format!("{}/", met.relative),
                Kind::Link => format!("{}@", met.relative),
                Kind::File => format!("{}  {}", met.relative, met.bytes()),
                Kind::Other => format!("{}  (a pipe, socket or device)", met.relative),
            });
        }
        Next::Continue
    });
    if total == 0 {
        return Output::ok(format!(
            "`{path}` is empty, or git ignores all of it{}",
            walk::remarks(walked)
        ));
    }
    let mut text = lines.join("\n");
    if total > lines.len() {
        text.push_str(&format!(
            "\n[{} of {total} entries; name a folder to see more]",
            lines.len()
        ));
    }
    spill::bounded_text(&(text + &walk::remarks(walked)), &ground.workplace, id)
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
        let text = bench.ok(&List, json!({})).await;
        assert_eq!(text, ".gitignore  8\na/\nb.txt  2");
        let text = bench.ok(&List, json!({"depth": 2, "ignored": true})).await;
        assert_eq!(text, ".gitignore  8\na/\na/deep.txt  1\nb.txt  2\ntarget/\ntarget/out  1");
        assert_eq!(bench.ok(&List, json!({"path": "a"})).await, "deep.txt  1");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_are_shown_and_not_followed() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/etc", bench.dir().join("etc")).unwrap();
        assert_eq!(bench.ok(&List, json!({"depth": 5})).await, "etc@");
        let text = bench.fails(&List, json!({"path": "etc"})).await;
        assert!(text.contains("outside of the work folder"), "{text}");
    }

    #[tokio::test]
    async fn many_entries_are_counted() {
        let bench = Bench::new();
        for number in 0..1_005 {
            std::fs::File::create(bench.dir().join(format!("{number:04}"))).unwrap();
        }
        let text = bench.ok(&List, json!({})).await;
        assert!(text.ends_with("[1000 of 1005 entries; name a folder to see more]"), "{text}");
    }

    #[tokio::test]
    async fn a_file_and_nothing_are_told() {
        let bench = Bench::new();
        bench.file("a.txt", "x");
        bench.fails(&List, json!({"path": "a.txt"})).await;
        bench.fails(&List, json!({"path": "none"})).await;
    }
}
