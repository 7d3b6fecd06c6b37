//! `read`: reads a text file, with line numbers, up to a limit.

use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_text::fs::ReadError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ResolvedPathRules, arguments, object_schema, path_subject, run_blocking};
use crate::run::AgentRun;
use crate::spill;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;
use repertoire_sandbox::workplace::RunWorkplace;

/// The default number of lines shown.
const LINES: usize = 2_000;
/// The maximum number of characters shown of a line.
const LINE_CHARS_MAX: usize = 2_000;
/// A NUL byte within this many leading bytes marks a file as binary.
const SNIFF_BYTES: usize = 8_192;

#[derive(Clone, Copy, Debug)]
pub struct ReadTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Tool for ReadTool {
    fn name(&self) -> &str {
        "read"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "read".to_owned(),
            description: format!(
                "Read a text file. Lines come with their numbers, which are not part of the file. At most {LINES} lines \
                 of {LINE_CHARS_MAX} characters unless `limit` says otherwise; use `offset` to go on. Folders: use \
                 `list`. Files with keys or passwords are refused."
            ),
            parameters: object_schema(
                &["path"],
                json!({
                    "path": {"type": "string", "description": "The file, relative to the work folder."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line to show, from 1."},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show."},
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
            let wanted: ReadArguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            let (workplace, id) = (call.run.workplace.clone(), call.id.to_owned());
            let rules = ResolvedPathRules::for_run(call.run, "read", ToolAccess::Read);
            run_blocking(move || match text_of(&workplace, &rules, &wanted.path) {
                Ok(text) => {
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    number_lines(text, &wanted, &workplace, &id)
                }
                Err(message) => ToolOutput::error(message),
            })
            .await
        })
    }
}

/// Reads a text file that tools may read.
pub(super) fn text_of(
    workplace: &RunWorkplace,
    rules: &ResolvedPathRules,
    path: &str,
) -> Result<String, String> {
    let place = beneath::open_readable(workplace, path).map_err(|error| error.to_string())?;
    rules.check_location(path, &beneath::display_path(workplace, &place.path()))?;
    if place.is_folder() {
        return Err(format!("`{path}` is a folder; use `list` to see what is in it"));
    }
    let bytes = place.read_bytes(workplace.limits.file_bytes_max).map_err(|error| match error {
        ReadError::TooLarge { bytes, limit } => format!(
            "`{path}` has {bytes} bytes, more than the {limit} that are read; look for a part of it with `grep`, or \
             with `head`, `tail` or `sed -n` in `bash`"
        ),
        other => format!("`{path}`: {other}"),
    })?;
    if is_binary(&bytes) {
        let size = bytes.len();
        return Err(format!(
            "`{path}` is a binary file of {size} bytes, which cannot be shown as text"
        ));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Returns true if the bytes look like a binary file.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(SNIFF_BYTES)].contains(&0)
}

fn number_lines(
    text: &str,
    wanted: &ReadArguments,
    workplace: &RunWorkplace,
    id: &str,
) -> ToolOutput {
    let total = text.lines().count();
    if total == 0 {
        return ToolOutput::ok(format!("`{}` is empty", wanted.path));
    }
    let first = wanted.offset.unwrap_or(1).max(1);
    if first > total {
        return ToolOutput::error(format!(
            "`{}` has {total} lines; there is no line {first}",
            wanted.path
        ));
    }
    let count = wanted.limit.unwrap_or(LINES).min(total - first + 1);
    let (mut out, mut cut, mut shown) = (String::new(), 0_usize, 0_usize);
    // Stop at a whole line: cutting the middle out of the output would break the line numbers.
    let room = workplace.limits.output_chars_max.saturating_sub(200);
    for (number, line) in (first..).zip(text.lines().skip(first - 1).take(count)) {
        let length = line.chars().count();
        let line: String = line.chars().take(LINE_CHARS_MAX).collect();
        if shown > 0 && out.len() + line.len() > room {
            break;
        }
        let _ = write!(out, "{number:>6}\t{line}");
        if length > LINE_CHARS_MAX {
            cut += 1;
            let _ = write!(out, " [… {} characters more]", length - LINE_CHARS_MAX);
        }
        out.push('\n');
        shown += 1;
    }
    if shown < total {
        let last = first + shown - 1;
        let _ = writeln!(out, "[lines {first} to {last} of {total}]");
    }
    if cut > 0 {
        let _ = writeln!(out, "[{cut} lines were cut at {LINE_CHARS_MAX} characters]");
    }
    spill::bound_text(&out, workplace, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[tokio::test]
    async fn lines_come_with_numbers() {
        let bench = Bench::new();
        bench.file("a.txt", "one\ntwo\n");
        assert_eq!(
            bench.ok(&ReadTool, json!({"path": "a.txt"})).await,
            "     1\tone\n     2\ttwo\n"
        );
    }

    #[tokio::test]
    async fn a_part_says_what_was_left_out() {
        let bench = Bench::new();
        bench.file("a.txt", "1\n2\n3\n4\n5\n");
        let text = bench.ok(&ReadTool, json!({"path": "a.txt", "offset": 2, "limit": 2})).await;
        assert_eq!(text, "     2\t2\n     3\t3\n[lines 2 to 3 of 5]\n");
        let text = bench.fails(&ReadTool, json!({"path": "a.txt", "offset": 9})).await;
        assert_eq!(text, "`a.txt` has 5 lines; there is no line 9");
    }

    #[tokio::test]
    async fn many_and_long_lines_are_bounded() {
        let bench = Bench::new();
        bench.file("many", "x\n".repeat(5000));
        let text = bench.ok(&ReadTool, json!({"path": "many"})).await;
        assert!(text.ends_with("[lines 1 to 2000 of 5000]\n"), "{text}");
        bench.file("long", "y".repeat(10_000));
        let text = bench.ok(&ReadTool, json!({"path": "long"})).await;
        assert!(text.contains("[… 8000 characters more]"), "{text}");
        bench.file("both", format!("{}\n", "z".repeat(1_900)).repeat(100));
        let text = bench.ok(&ReadTool, json!({"path": "both"})).await;
        assert!(text.len() < 31_000 && text.contains(" of 100]"), "{}", text.len());
    }

    #[tokio::test]
    async fn what_is_no_text_gets_a_clear_message() {
        let bench = Bench::new();
        bench.file("image", b"\x89PNG\0\0\0");
        bench.file("latin", b"caf\xe9\n");
        bench.file("empty", "");
        bench.file("dir/x", "");
        let text = bench.fails(&ReadTool, json!({"path": "image"})).await;
        assert!(text.contains("is a binary file of 7 bytes"), "{text}");
        assert_eq!(bench.ok(&ReadTool, json!({"path": "latin"})).await, "     1\tcaf\u{fffd}\n");
        assert_eq!(bench.ok(&ReadTool, json!({"path": "empty"})).await, "`empty` is empty");
        let text = bench.fails(&ReadTool, json!({"path": "dir"})).await;
        assert_eq!(text, "`dir` is a folder; use `list` to see what is in it");
        let text = bench.fails(&ReadTool, json!({"path": "nothing"})).await;
        assert!(text.starts_with("there is no `nothing`"), "{text}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_pipe_does_not_hang_and_a_huge_file_is_not_read() {
        let bench = Bench::new();
        let pipe = bench.dir().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe.as_std_path(), rustix::fs::Mode::RWXU).unwrap();
        assert!(bench.fails(&ReadTool, json!({"path": "pipe"})).await.contains("pipe"));
        let huge = std::fs::File::create(bench.dir().join("huge")).unwrap();
        huge.set_len(1 << 40).unwrap();
        let text = bench.fails(&ReadTool, json!({"path": "huge"})).await;
        assert!(text.contains("more than the 52428800 that are read"), "{text}");
    }

    #[tokio::test]
    async fn nothing_is_read_elsewhere() {
        let bench = Bench::new();
        std::fs::File::create(bench.outside().join("secret")).unwrap();
        for path in ["../secret", "/etc/passwd", "a/../../secret", "x\0y"] {
            let text = bench.fails(&ReadTool, json!({"path": path})).await;
            assert!(text.contains("outside of the work folder") || text.contains("NUL"), "{text}");
        }
        bench.file(".env", "TOKEN=1");
        let text = bench.fails(&ReadTool, json!({"path": ".env"})).await;
        assert!(text.contains("holds keys or passwords") && !text.contains("TOKEN"), "{text}");
    }

    #[tokio::test]
    async fn folders_of_skills_and_spilled_output_may_be_read() {
        let bench = Bench::new();
        let workplace = bench.workplace();
        let skill = bench.outside().join("skill");
        repertoire_text::fs::write_atomic(&skill.join("guide.md"), b"guide").unwrap();
        workplace.readable.add(skill.clone());
        let run = bench.run_in(workplace);
        let path = skill.join("guide.md").to_string();
        let output = crate::tools::testing::call(&ReadTool, &run, json!({"path": path})).await;
        assert_eq!(output.text, "     1\tguide\n");
    }
}
