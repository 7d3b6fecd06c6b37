//! The Rust compiler, Clippy, and cargo's own errors, which look alike: `error[E0308]: text`, then
//! ` --> path:1:2`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};
use super::super::signature::normalise_message;
use super::collector::{ErrorCollector, end_of_matching};
use super::keywords;
use super::location::{self, ErrorLocation, compile_pattern};

/// Parses an error or a warning.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    if STATUS.is_match(lines[at]) {
        found.cargo = true;
        return None;
    }
    let head = HEAD.captures(lines[at])?;
    let body = &lines[at + 1..end_of_matching(lines, at + 1, belongs_to_block)];
    let has_shape = body.iter().any(|line| FRAME.is_match(line));
    if !has_shape && head.get(2).is_none() && !found.cargo {
        return None;
    }
    let next = at + 1 + body.len();
    if keywords::is_summary(lines[at]) {
        return Some(next);
    }
    if &head[1] == "warning" {
        // Cargo's warnings about a crate only count others.
        let count = !has_shape && !SPANLESS.is_match(lines[at]);
        found.warnings += u64::from(!count);
        return Some(next);
    }
    let code = head.get(2).map(|code| code.as_str());
    let error = build_error(code, &head[3], body, found);
    // Without a code, a location or a telling word, any program may have printed it.
    let sure = code.is_some() || has_shape || keywords::find_category(&error.message).is_some();
    if sure {
        found.add(error);
    } else {
        found.add_weak(error);
    }
    Some(next)
}

/// Builds the error of a block from its first line and its body.
pub(super) fn build_error(
    code: Option<&str>,
    text: &str,
    body: &[&str],
    found: &mut ErrorCollector,
) -> ParsedError {
    let place = primary_location(body);
    let more = body.iter().take_while(|line| continues_message(line)).map(|line| line.trim());
    let message = [text].into_iter().chain(more).collect::<Vec<_>>().join("\n");
    let own = place.as_ref().is_none_or(|place| place.file.ends_with("Cargo.toml"));
    let is_compiler = code.is_some() || !own || body.iter().any(|line| FRAME.is_match(line));
    let source = if is_compiler && !is_manifest(&place) {
        ReportingTool::Rustc
    } else {
        ReportingTool::Cargo
    };
    let lint = if code.is_none() { lint_name(text, body, found) } else { None };
    let (category, code) = match (code, lint) {
        (Some(code), _) => (category_of_code(code, body), Some(code.to_owned())),
        (None, Some(lint)) => (ErrorCategory::Lint, Some(lint)),
        (None, None) if source == ReportingTool::Cargo => {
            (keywords::find_category(&message).unwrap_or(ErrorCategory::Build), None)
        }
        (None, None) => (ErrorCategory::Build, None),
    };
    let mut error = ParsedError { code, ..ParsedError::new(source, category, message) };
    if category == ErrorCategory::Lint {
        error.severity = ErrorSeverity::Medium;
    }
    location::set_location(place, error)
}

/// Splits `error[E0308]: text` into code and text.
pub(super) fn parse_head(line: &str) -> Option<(Option<&str>, &str)> {
    let head = HEAD.captures(line)?;
    let text = head.get(3).map(|text| text.as_str())?;
    (&head[1] == "error").then(|| (head.get(2).map(|code| code.as_str()), text))
}

/// Returns true if a line belongs to the block before it.
pub(super) fn belongs_to_block(line: &str) -> bool {
    const WORDS: &[&str] =
        &["help:", "note:", "...", "For more", "location searched:", "required by", "Caused by:"];
    let inner = line.starts_with([' ', '\t', '|']) && !line.trim().is_empty();
    let numbered = line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" | ");
    let numbered = numbered || NUMBERED.is_match(line);
    let spaces_only = line.len() > 2 && line.trim().is_empty();
    !STATUS.is_match(line)
        && (inner || numbered || spaces_only || WORDS.iter().any(|word| line.starts_with(word)))
}

static HEAD: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^(error|warning)(?:\[([A-Za-z]+\d+|[\w:-]+)\])?: (.+)$"));
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"^ {2,11}(?:Compiling|Checking|Finished|Running|Updating|Blocking|Downloading|Downloaded|Fresh|Locking|Adding|Doc-tests|Documenting|Building|Dirty|Removed) ",
    )
});
static FRAME: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"^\s*(?:-->|:::) |^\s*\|$|^\s*= (?:note|help): "));
static PLACE: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^\s*--> (.+)$"));
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^\d+ +[-+~|]"));
static SPANLESS: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^warning(?:: unused|\[)"));

/// The location of the error itself, not of a note about it.
fn primary_location(body: &[&str]) -> Option<ErrorLocation> {
    let line =
        body.iter().take_while(|line| !ends_head(line)).find_map(|line| PLACE.captures(line));
    line.and_then(|found| location::parse_location(&found[1]))
}

fn ends_head(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with(['|', '=']) || text.starts_with("note:") || text.starts_with("help:")
}

/// Returns true if a line continues the message: it comes before any location or frame.
fn continues_message(line: &str) -> bool {
    !ends_head(line)
        && !PLACE.is_match(line)
        && !NUMBERED.is_match(line)
        && !line.trim_start().starts_with("...")
        && !line.starts_with(|c: char| c.is_ascii_digit())
}

fn is_manifest(place: &Option<ErrorLocation>) -> bool {
    place.as_ref().is_some_and(|place| place.file.ends_with("Cargo.toml"))
}

fn category_of_code(code: &str, body: &[&str]) -> ErrorCategory {
    match code {
        "E0308" | "E0271" => ErrorCategory::TypeMismatch,
        "E0463" => ErrorCategory::Dependency,
        "E0432" | "E0433" if speaks_of_crate(body) => ErrorCategory::Dependency,
        "E0405" | "E0407" | "E0412" | "E0422" | "E0423" | "E0425" | "E0426" | "E0432" | "E0433"
        | "E0437" | "E0438" | "E0531" | "E0560" | "E0573" | "E0574" | "E0576" | "E0583"
        | "E0599" | "E0609" | "E0610" => ErrorCategory::TypeMissing,
        "E0765" | "E0758" | "E0748" | "E0766" => ErrorCategory::Build,
        _ => ErrorCategory::Type,
    }
}

fn speaks_of_crate(body: &[&str]) -> bool {
    let words = ["unlinked crate", "undeclared crate", "cargo add", "you might be missing crate"];
    body.iter().any(|line| words.iter().any(|word| line.contains(word)))
}

/// The name of the lint that a block is about. Rustc names it in a note at its first occurrence,
/// Clippy with a URL in every block.
fn lint_name(text: &str, body: &[&str], found: &mut ErrorCollector) -> Option<String> {
    static NOTE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"`(?:-D|-F|#!?\[(?:deny|forbid)\()\s*([a-z_:-]+)(?:\)\])?`(?: implied by|.*on by default)?",
        )
    });
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"rust-clippy/[^ #]*#([a-z_]+)"));
    let named = body.iter().find_map(|line| {
        let clippy = ADDRESS.captures(line).map(|name| format!("clippy::{}", &name[1]));
        let noted = NOTE.captures(line).map(|name| name[1].replace('-', "_"));
        clippy.or(noted.filter(|name| name != "warnings"))
    });
    let wording = normalise_message(text);
    match named {
        Some(name) => {
            found.lints.insert(wording, name.clone());
            Some(name)
        }
        None => found.lints.get(&wording).cloned(),
    }
}
