//! The TypeScript compiler: `path(1,2): error TS2322: text`, or with `--pretty`
//! `path:1:2 - error TS2322: text`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{Category, ParsedError, Tool};
use super::found::{Found, taken};
use super::place::{self, pattern};

/// Parses an error and its continuation lines.
pub(super) fn block(lines: &[&str], at: usize, found: &mut Found) -> Option<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^(?:(.+?)\((\d+),(\d+)\): |(.+?):(\d+):(\d+) - )?(error|warning) (TS\d+): (.*)$")
    });
    let head = HEAD.captures(lines[at])?;
    let part = |at| head.get(at).map(|part| part.as_str());
    let more = taken(lines, at + 1, |line| line.starts_with("  ") && !line.trim().is_empty());
    // With `--pretty`, an excerpt with line numbers and related locations follow.
    let next = if part(4).is_some() || excerpt(lines, more) {
        taken(lines, more, |line| {
            line.trim().is_empty() || line.starts_with(|c: char| c == ' ' || c.is_ascii_digit())
        })
    } else {
        more
    };
    if part(7) == Some("warning") {
        found.warnings += 1;
        return Some(next);
    }
    let code = &head[8];
    let message = [&head[9]].into_iter().chain(lines[at + 1..more].iter().copied());
    let message = message.collect::<Vec<_>>().join("\n");
    let error = ParsedError::new(Tool::Tsc, of_code(code), message);
    let file = part(1).or(part(4));
    let text = file.zip(part(2).or(part(5))).zip(part(3).or(part(6)));
    let place =
        text.and_then(|((file, line), column)| place::place(&format!("{file}:{line}:{column}")));
    found.add(place::put(place, ParsedError { code: Some(code.to_owned()), ..error }));
    Some(next)
}

fn excerpt(lines: &[&str], at: usize) -> bool {
    let blank = lines.get(at).is_some_and(|line| line.is_empty());
    let numbered =
        lines.get(at + 1).is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let waves = lines.get(at + 2).is_some_and(|line| line.trim_start().starts_with('~'));
    blank && numbered && waves
}

fn of_code(code: &str) -> Category {
    match code {
        "TS2307" | "TS2792" | "TS7016" | "TS2688" => Category::Dependency,
        "TS2304" | "TS2305" | "TS2339" | "TS2503" | "TS2551" | "TS2552" | "TS2614" | "TS2724"
        | "TS18004" => Category::TypeMissing,
        "TS2322" | "TS2345" | "TS2352" | "TS2367" | "TS2365" | "TS2416" | "TS2741" | "TS2740"
        | "TS2739" => Category::TypeMismatch,
        // Syntax errors and configuration errors.
        code if code.len() == 6 && code.starts_with("TS1") => Category::Build,
        code if code.starts_with("TS5") || code.starts_with("TS18003") || code == "TS6046" => {
            Category::Build
        }
        _ => Category::Type,
    }
}
