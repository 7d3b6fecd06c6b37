//! `glob`: finds files by name.

use futures_util::future::BoxFuture;
use globset::GlobBuilder;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::{self, WalkContext, WalkEntryKind, WalkFilter, WalkFlow};
use super::{describe_search, object_schema, path_subject};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;

/// The maximum number of files shown.
const SHOWN_MAX: usize = 1_000;
/// The maximum length of a pattern.
const PATTERN_BYTES_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug)]
pub struct Glob;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GlobArguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    ignored: bool,
}

impl Tool for Glob {
    fn name(&self) -> &str {
        "glob"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "glob".to_owned(),
            description: format!(
                "Find files by name: `**/*.rs`, `src/**/test_*.py`, `*.{{yml,yaml}}`. `*` stays within a folder, `**` \
                 does not; a pattern without `/` is looked for in all folders. What git ignores is left out unless \
                 `ignored` is true. At most {SHOWN_MAX} files, sorted by path."
            ),
            parameters: object_schema(
                &["pattern"],
                json!({
                    "pattern": {"type": "string", "maxLength": PATTERN_BYTES_MAX, "description": "The pattern."},
                    "path": {"type": "string", "description": "The folder to look in; the work folder if absent."},
                    "ignored": {"type": "boolean", "description": "Find what git ignores as well."},
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

    fn label(&self, arguments: &Value) -> String {
        describe_search(arguments, "pattern")
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(walk::run_search(call, find_files))
    }
}

/// Compiles a pattern for paths. A pattern without a slash matches names in all folders.
pub(super) fn compile_matcher(pattern: &str) -> Result<globset::GlobMatcher, String> {
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("the pattern must have 1 to {PATTERN_BYTES_MAX} bytes"));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let whole = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&whole).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("the pattern `{pattern}` is wrong: {}", error.kind()))
}

fn find_files(ground: &WalkContext, wanted: &GlobArguments) -> Result<String, String> {
    let matcher = compile_matcher(&wanted.pattern)?;
    let path = wanted.path.as_deref().unwrap_or(".");
    let start =
        beneath::open_readable(&ground.workplace, path).map_err(|error| error.to_string())?;
    let show = if wanted.ignored { WalkFilter::Everything } else { WalkFilter::Usual };
    let (mut lines, mut total) = (Vec::new(), 0_usize);
    let walked = walk::walk_entries(ground, &start, (show, None), |met| {
        if matches!(met.kind, WalkEntryKind::File | WalkEntryKind::Link)
            && matcher.is_match(&met.relative)
        {
            total += 1;
            if lines.len() < SHOWN_MAX {
                lines.push(beneath::display_path(&ground.workplace, &met.path));
            }
        }
        WalkFlow::Continue
    });
    if total == 0 {
        let pattern = &wanted.pattern;
        return Ok(format!(
            "no file matches `{pattern}` in `{path}`{}",
            walk::describe_skipped(walked)
        ));
    }
    let mut text = lines.join("\n");
    if total > lines.len() {
        text.push_str(&format!("\n[{} of {total} files; use a narrower pattern]", lines.len()));
    }
    Ok(text + &walk::describe_skipped(walked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[tokio::test]
    async fn names_are_found_sorted() {
        let bench = Bench::new();
        for path in ["src/b.rs", "src/a.rs", "src/deep/c.rs", "d.py", "build/e.rs"] {
            bench.file(path, "");
        }
        bench.file(".gitignore", "build\n");
        let find = async |pattern: &str| bench.ok(&Glob, json!({"pattern": pattern})).await;
        assert_eq!(find("*.rs").await, "src/a.rs\nsrc/b.rs\nsrc/deep/c.rs");
        assert_eq!(find("src/*.rs").await, "src/a.rs\nsrc/b.rs");
        assert_eq!(find("**/*.{py,toml}").await, "d.py");
        assert_eq!(find("*.zig").await, "no file matches `*.zig` in `.`");
        let within = json!({"pattern": "*.rs", "path": "src/deep"});
        assert_eq!(bench.ok(&Glob, within).await, "src/deep/c.rs");
    }

    #[tokio::test]
    async fn rules_of_git_hold_as_git_reads_them() {
        let bench = Bench::new();
        bench.file(".gitignore", "*.log\nbuild/\n/top.txt\n");
        bench.file("sub/.gitignore", "!keep.log\n");
        bench.file(".ignore", "private.txt\n");
        bench.file(".git/info/exclude", "excluded.txt\n");
        for path in ["a.log", "sub/keep.log", "sub/b.log", "build/c.txt", "top.txt", "sub/top.txt"]
        {
            bench.file(path, "");
        }
        bench.file("sub/private.txt", "");
        bench.file("sub/excluded.txt", "");
        // A nested repository does not obey the rules of the outer one.
        bench.file("nested/.git/HEAD", "");
        bench.file("nested/d.log", "");
        let find = async |arguments| bench.ok(&Glob, arguments).await;
        assert_eq!(find(json!({"pattern": "*.log"})).await, "nested/d.log\nsub/keep.log");
        assert_eq!(find(json!({"pattern": "*.txt"})).await, "sub/top.txt");
        let within = json!({"pattern": "*.{log,txt}", "path": "sub"});
        assert_eq!(find(within).await, "sub/keep.log\nsub/top.txt");
        let all = json!({"pattern": "build/*.txt", "ignored": true});
        assert_eq!(find(all).await, "build/c.txt");
    }

    #[tokio::test]
    async fn wrong_patterns_and_places_are_told() {
        let bench = Bench::new();
        for arguments in [
            json!({"pattern": "[a"}),
            json!({"pattern": ""}),
            json!({"pattern": "x".repeat(2000)}),
            json!({"pattern": "*", "path": ".."}),
        ] {
            bench.fails(&Glob, arguments).await;
        }
        let said = bench.ok(&Glob, json!({"pattern": "../*"})).await;
        assert!(said.starts_with("no file matches"), "{said}");
    }

    #[tokio::test]
    async fn what_rules_hide_is_not_found() {
        let bench = Bench::new();
        bench.file("open.txt", "");
        bench.file("private/closed.txt", "");
        let mut run = bench.run();
        run.state.hidden = crate::permission::PathRules::new(&["Read(private/**)"]).unwrap();
        let output = crate::tools::testing::call(&Glob, &run, json!({"pattern": "*.txt"})).await;
        assert!(output.text.starts_with("open.txt\n[2 entries"), "{}", output.text);
    }
}
