//! The TypeScript compiler: `path(1,2): error TS2322: text`, or with `--pretty`
//! `path:1:2 - error TS2322: text`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::{ErrorCategory, ParsedError, ReportingTool};
use super::collector::{ErrorCollector, end_of_matching};
use super::location::{self, compile_pattern};

/// Parses an error and its continuation lines.
pub(super) fn parse_block(lines: &[&str], at: usize, found: &mut ErrorCollector) -> Option<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^(?:(.+?)\((\d+),(\d+)\): |(.+?):(\d+):(\d+) - )?(error|warning) (TS\d+): (.*)$",
        )
    });
    let head = HEAD.captures(lines[at])?;
    let part = |at| head.get(at).map(|part| part.as_str());
    let more =
        end_of_matching(lines, at + 1, |line| line.starts_with("  ") && !line.trim().is_empty());
    // With `--pretty`, an excerpt with line numbers and related locations follow.
    let next = if part(4).is_some() || is_excerpt(lines, more) {
        end_of_matching(lines, more, |line| {
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
    let error = ParsedError::new(ReportingTool::Tsc, category_of_code(code), message);
    let file = part(1).or(part(4));
    let text = file.zip(part(2).or(part(5))).zip(part(3).or(part(6)));
    let place = text.and_then(|((file, line), column)| {
        location::parse_location(&format!("{file}:{line}:{column}"))
    });
    found.add(location::set_location(place, ParsedError { code: Some(code.to_owned()), ..error }));
    Some(next)
}

fn is_excerpt(lines: &[&str], at: usize) -> bool {
    let blank = lines.get(at).is_some_and(|line| line.is_empty());
    let numbered =
        lines.get(at + 1).is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let waves = lines.get(at + 2).is_some_and(|line| line.trim_start().starts_with('~'));
    blank && numbered && waves
}

fn category_of_code(code: &str) -> ErrorCategory {
    match code {
        "TS2307" | "TS2792" | "TS7016" | "TS2688" => ErrorCategory::Dependency,
        "TS2304" | "TS2305" | "TS2339" | "TS2503" | "TS2551" | "TS2552" | "TS2614" | "TS2724"
        | "TS18004" => ErrorCategory::TypeMissing,
        "TS2322" | "TS2345" | "TS2352" | "TS2367" | "TS2365" | "TS2416" | "TS2741" | "TS2740"
        | "TS2739" => ErrorCategory::TypeMismatch,
        // Syntax errors and configuration errors.
        code if code.len() == 6 && code.starts_with("TS1") => ErrorCategory::Build,
        code if code.starts_with("TS5") || code.starts_with("TS18003") || code == "TS6046" => {
            ErrorCategory::Build
        }
        _ => ErrorCategory::Type,
    }
}
