//! `grep`: finds lines with a regular expression that runs in linear time.

use futures_util::future::BoxFuture;
use regex::{Regex, RegexBuilder};
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::{self, WalkContext, WalkFilter, WalkFlow};
use super::{describe_search, glob, object_schema, path_subject};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;

/// The maximum length of a pattern.
const PATTERN_BYTES_MAX: usize = 1_024;
/// The maximum size of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 256 * 1024;
/// The maximum number of matching lines shown per file.
const PER_FILE_MAX: usize = 10;
/// The maximum number of matching lines shown in total.
const TOTAL_MAX: usize = 100;
/// The maximum number of context lines around a match.
const CONTEXT_MAX: usize = 10;
/// The maximum number of characters shown of a line.
const LINE_CHARS_MAX: usize = 300;
/// Files larger than this are not searched.
const FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct GrepTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
}

impl Tool for GrepTool {
    fn name(&self) -> &str {
        "grep"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "grep".to_owned(),
            description: format!(
                "Find lines in files with a regular expression (Rust syntax: no look-around, no back-references). At \
                 most {PER_FILE_MAX} lines a file and {TOTAL_MAX} in all. Binary files, files over 10 MB, files with \
                 keys and what git ignores are left out."
            ),
            parameters: object_schema(
                &["pattern"],
                json!({
                    "pattern": {"type": "string", "maxLength": PATTERN_BYTES_MAX, "description": "The regular expression."},
                    "path": {"type": "string", "description": "The file or folder to search; the work folder if absent."},
                    "glob": {"type": "string", "description": "Only files whose path matches, such as `*.rs`."},
                    "context": {"type": "integer", "minimum": 0, "maximum": CONTEXT_MAX, "description": "Lines to show before and after each match; 0 if absent."},
                    "ignore_case": {"type": "boolean", "description": "Whether upper and lower case are the same."},
                    "literal": {"type": "boolean", "description": "Take the pattern as plain text."},
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
        Box::pin(walk::run_search(call, find_lines))
    }
}

fn regex_of(wanted: &GrepArguments) -> Result<Regex, String> {
    if wanted.pattern.is_empty() || wanted.pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("the pattern must have 1 to {PATTERN_BYTES_MAX} bytes"));
    }
    let pattern =
        if wanted.literal { regex::escape(&wanted.pattern) } else { wanted.pattern.clone() };
    let regex = RegexBuilder::new(&pattern)
        .case_insensitive(wanted.ignore_case)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX * 4)
        .build();
    regex.map_err(|error| {
        format!("the pattern cannot be used: {error}\nset `literal` to search for plain text")
    })
}

#[derive(Default)]
struct GrepMatches {
    text: String,
    lines: usize,
    left_out: usize,
}

fn find_lines(ground: &WalkContext, wanted: &GrepArguments) -> Result<String, String> {
    let regex = regex_of(wanted)?;
    let only = wanted.glob.as_deref().map(glob::compile_matcher).transpose()?;
    let path = wanted.path.as_deref().unwrap_or(".");
    let start =
        beneath::open_readable(&ground.workplace, path).map_err(|error| error.to_string())?;
    let context = wanted.context.min(CONTEXT_MAX);
    let mut found = GrepMatches::default();
    let walked = walk::walk_entries(ground, &start, (WalkFilter::Usual, None), |met| {
        let shown = beneath::display_path(&ground.workplace, &met.path);
        if only.as_ref().is_some_and(|only| !only.is_match(&met.relative) && !only.is_match(&shown))
        {
            return WalkFlow::Continue;
        }
        if let Some(text) = met.read_text(FILE_BYTES_MAX) {
            search_file(&shown, &text, (&regex, context), &mut found);
        }
        if found.lines >= TOTAL_MAX { WalkFlow::Stop } else { WalkFlow::Continue }
    });
    if found.lines == 0 {
        let pattern = &wanted.pattern;
        return Ok(format!(
            "nothing matches `{pattern}` in `{path}`{}",
            walk::describe_skipped(walked)
        ));
    }
    let mut text = found.text;
    if found.lines >= TOTAL_MAX {
        text.push_str(&format!(
            "[the first {TOTAL_MAX} lines; there may be more: narrow the search]\n"
        ));
    }
    if found.left_out > 0 {
        text.push_str(&format!("[{} more lines match in these files]\n", found.left_out));
    }
    Ok(text.trim_end().to_owned() + &walk::describe_skipped(walked))
}

fn search_file(path: &str, text: &str, (regex, context): (&Regex, usize), found: &mut GrepMatches) {
    let lines: Vec<&str> = text.lines().collect();
    let matching = lines.iter().enumerate().filter(|(_, line)| regex.is_match(line));
    let all: Vec<usize> = matching.map(|(at, _)| at).collect();
    if all.is_empty() {
        return;
    }
    let room = PER_FILE_MAX.min(TOTAL_MAX - found.lines);
    let shown = &all[..all.len().min(room)];
    found.lines += shown.len();
    found.left_out += all.len() - shown.len();
    let mut next = 0;
    for at in shown {
        let first = at.saturating_sub(context).max(next);
        if context > 0 && next > 0 && first > next {
            found.text.push_str("--\n");
        }
        let last = (at + context).min(lines.len() - 1);
        for (number, line) in lines.iter().enumerate().take(last + 1).skip(first) {
            let mark = if all.binary_search(&number).is_ok() { ':' } else { '-' };
            found.text.push_str(&format!(
                "{path}{mark}{}{mark}{}\n",
                number + 1,
                shorten_line(line)
            ));
        }
        next = next.max(last + 1);
    }
    if context > 0 {
        found.text.push_str("--\n");
    }
}

/// Shortens a line for display.
pub(super) fn shorten_line(line: &str) -> String {
    let cut: String = line.chars().take(LINE_CHARS_MAX).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[tokio::test]
    async fn lines_are_found_with_their_places() {
        let bench = Bench::new();
        bench.file("b.rs", "fn one() {}\nfn two() {}\n");
        bench.file("a.py", "def one(): pass\n");
        let text = bench.ok(&GrepTool, json!({"pattern": r"\bone\b"})).await;
        assert_eq!(text, "a.py:1:def one(): pass\nb.rs:1:fn one() {}");
        let text = bench
            .ok(&GrepTool, json!({"pattern": "ONE", "ignore_case": true, "glob": "*.rs"}))
            .await;
        assert_eq!(text, "b.rs:1:fn one() {}");
        let text =
            bench.ok(&GrepTool, json!({"pattern": "one()", "literal": true, "path": "b.rs"})).await;
        assert_eq!(text, "b.rs:1:fn one() {}");
        let text = bench.ok(&GrepTool, json!({"pattern": "three"})).await;
        assert_eq!(text, "nothing matches `three` in `.`");
    }

    #[tokio::test]
    async fn context_is_shown_once_where_it_overlaps() {
        let bench = Bench::new();
        bench.file("a", "1\nx\n3\nx\n5\n6\n7\n8\nx\n");
        let text = bench.ok(&GrepTool, json!({"pattern": "x", "context": 1})).await;
        insta::assert_snapshot!(text, @r"
        a-1-1
        a:2:x
        a-3-3
        a:4:x
        a-5-5
        --
        a-8-8
        a:9:x
        --
        ");
    }

    #[tokio::test]
    async fn there_are_bounds_and_they_are_told() {
        let bench = Bench::new();
        for number in 0..20 {
            bench.file(&format!("{number:02}"), "match\n".repeat(15));
        }
        let text = bench.ok(&GrepTool, json!({"pattern": "match"})).await;
        assert_eq!(text.lines().filter(|line| line.ends_with(":match")).count(), 100);
        assert!(text.contains("[the first 100 lines"), "{text}");
        assert!(text.contains("[50 more lines match in these files]"), "{text}");
    }

    #[tokio::test]
    async fn binaries_secrets_and_ignored_files_are_passed_over() {
        let bench = Bench::new();
        bench.file("binary", b"needle\0");
        bench.file(".env", "needle");
        bench.file("out/x", "needle");
        bench.file(".gitignore", "out\n");
        bench.file("wrong", b"needle \xff\n");
        let text = bench.ok(&GrepTool, json!({"pattern": "needle"})).await;
        assert_eq!(text, "wrong:1:needle \u{fffd}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_are_not_followed_and_pipes_do_not_hang() {
        let bench = Bench::new();
        repertoire_text::fs::write_atomic(&bench.outside().join("x"), b"needle").unwrap();
        std::os::unix::fs::symlink(bench.outside().join("x"), bench.dir().join("link")).unwrap();
        std::os::unix::fs::symlink("..", bench.dir().join("up")).unwrap();
        let pipe = bench.dir().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe.as_std_path(), rustix::fs::Mode::RWXU).unwrap();
        let text = bench.ok(&GrepTool, json!({"pattern": "needle"})).await;
        assert_eq!(text, "nothing matches `needle` in `.`");
    }

    #[tokio::test]
    async fn patterns_that_explode_are_refused_or_quick() {
        let bench = Bench::new();
        bench.file("a", "a".repeat(100_000));
        bench.ok(&GrepTool, json!({"pattern": "(a+)+$x"})).await;
        for pattern in ["(", "", "((a{500}){500}){500}", r"(?=x)"] {
            bench.fails(&GrepTool, json!({"pattern": pattern})).await;
        }
        bench.fails(&GrepTool, json!({"pattern": "x".repeat(2_000)})).await;
    }
}
