//! Locations in files, as tools print them.

use std::sync::LazyLock;

use regex::Regex;

use super::super::error::ParsedError;

/// Compiles one of our fixed patterns.
pub(super) fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed, and used by tests")
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorLocation {
    /// The file as printed, without a leading `./` or `file://`.
    pub(super) file: String,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
}

impl ErrorLocation {
    /// Sets the location of an error.
    pub(super) fn set_on(self, error: ParsedError) -> ParsedError {
        ParsedError { file: Some(self.file), line: self.line, column: self.column, ..error }
    }
}

/// Sets the location of an error, if it is known.
pub(super) fn set_location(place: Option<ErrorLocation>, error: ParsedError) -> ParsedError {
    match place {
        Some(place) => place.set_on(error),
        None => error,
    }
}

/// Parses `path:line:column` or `path:line`. The path may contain spaces and a drive letter.
pub(super) fn parse_location(text: &str) -> Option<ErrorLocation> {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^(.+?):(\d+)(?::(\d+))?$"));
    let found = PLACE.captures(text.trim())?;
    let number = |at| found.get(at).and_then(|digits| digits.as_str().parse().ok());
    let file = clean_path(&found[1]);
    (!file.is_empty()).then(|| ErrorLocation { file, line: number(2), column: number(3) })
}

/// Removes a leading `./` or `file://`.
pub(super) fn clean_path(path: &str) -> String {
    let path = path.trim().trim_start_matches("file://");
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// Returns true if a file does not belong to the project: packages, standard libraries, test
/// runners.
pub(super) fn is_foreign(path: &str) -> bool {
    const FOREIGN: &[&str] = &[
        "node_modules",
        "site-packages",
        "dist-packages",
        "/lib/python",
        "\\Lib\\",
        "/rustc/",
        "/.cargo/registry/",
        "/.rustup/",
        "/pkg/mod/",
        "_testmain.go",
        "node:",
        "<frozen",
        "<string>",
        "<anonymous>",
        "[eval]",
    ];
    // Go's standard library where Go is installed. A project may have folders with these names too.
    static GO: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"(?i)/(?:go|golang|go-?\d[\w.-]*)/(?:\d[\w.-]*/)?(?:x64/|arm64/|libexec/)?src/(?:bufio|bytes|cmd|compress|context|crypto|database|encoding|errors|flag|fmt|html|image|internal|io|log|maps|math|net|os|path|reflect|regexp|runtime|slices|sort|strconv|strings|sync|syscall|testing|text|time|unicode|vendor)/",
        )
    });
    FOREIGN.iter().any(|part| path.contains(part)) || GO.is_match(path)
}

/// Parses a JavaScript stack frame: `at name (path:1:2)`, `at path:1:2`, or `❯ name path:1:2`.
pub(super) fn parse_js_frame(line: &str) -> Option<ErrorLocation> {
    let line = line.trim();
    let rest = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "))?;
    let inner = rest.rsplit_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    let text = inner.or_else(|| rest.rsplit_once(' ').map(|(_, last)| last)).unwrap_or(rest);
    // Without parentheses, a name cannot be distinguished from a path with spaces, so take the last
    // word.
    let found = parse_location(text)?;
    found.line.map(|_| found)
}

/// The first stack frame in the project's own files.
pub(super) fn own_frame(lines: &[&str]) -> Option<ErrorLocation> {
    lines.iter().filter_map(|line| parse_js_frame(line)).find(|place| !is_foreign(&place.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_drives_and_spaces() {
        for (text, file, line, column) in [
            ("src/a.rs:3:4", "src/a.rs", 3, Some(4)),
            ("C:\\my code\\a.ts:12", "C:\\my code\\a.ts", 12, None),
            ("./my views/b c.go:1:2", "my views/b c.go", 1, Some(2)),
        ] {
            let place = parse_location(text).unwrap();
            assert_eq!((place.file.as_str(), place.line, place.column), (file, Some(line), column));
        }
        assert_eq!(parse_location("no place"), None);
        assert_eq!(parse_location("a:99999999999999999999").unwrap().line, None);
    }

    #[test]
    fn only_what_is_installed_is_somebody_elses() {
        for foreign in [
            "/usr/local/go/src/testing/testing.go",
            "/usr/lib/go-1.22/src/runtime/panic.go",
            "/opt/hostedtoolcache/go/1.22.1/x64/src/net/http/server.go",
            "C:/Program Files/Go/src/internal/poll/fd.go",
            "/home/me/go/pkg/mod/example.com/x@v1.0.0/x.go",
            "node:internal/modules/cjs/loader",
        ] {
            assert!(is_foreign(foreign), "{foreign}");
        }
        for own in [
            "internal/store/store.go",
            "/home/dev/shop/internal/store/store.go",
            "src/internal/a.ts",
            "/home/dev/shop/src/testing/harness.ts",
            "/home/dev/shop/src/runtime/loop.rs",
            "/home/me/go/src/example.com/shop/main.go",
            "/home/me/go/shop/src/net/a.go",
        ] {
            assert!(!is_foreign(own), "{own}");
        }
    }

    #[test]
    fn a_frame_is_read_with_and_without_a_name() {
        for line in [
            "    at Object.toBe (src/my dir/a.js:5:7)",
            "at src/a.js:5:7",
            " ❯ src/a.js:5:7",
            " ❯ Module.f src/a.js:5:7",
        ] {
            assert_eq!(
                parse_js_frame(line).map(|place| (place.line, place.column)),
                Some((Some(5), Some(7)))
            );
        }
        assert_eq!(parse_js_frame("at Array.map (<anonymous>)"), None);
    }
}
