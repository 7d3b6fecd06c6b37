//! The strategy that lets a formatter or linter fix its own findings, in the files of the present
//! change.

use repertoire_journal::FailureFix;

use super::facts::ProjectFacts;
use super::{CheckFailure, builtin_fix};
use crate::error::{ErrorCategory, ReportingTool};
use crate::limits::LINTER_FILES_BYTES_MAX;

const SCRIPT: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];
const WEB: &[&str] =
    &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "json", "css", "graphql"];

/// The tool's own fix, if it has one, and the files to run it on. The files are not part of the
/// fix, so that its record is the same for any files.
pub(super) fn choose_linter_fix(
    found: &CheckFailure,
    facts: &ProjectFacts,
) -> Option<(FailureFix, Vec<String>)> {
    let is_format = match found.error.category {
        ErrorCategory::Format => true,
        ErrorCategory::Lint => false,
        _ => return None,
    };
    let says = |word: &str| found.command.contains(word);
    let (command, endings): (&[&str], &[&str]) = match found.error.source {
        ReportingTool::Rustc | ReportingTool::Cargo if is_format => (&["cargo", "fmt"], &[]),
        ReportingTool::Rustc | ReportingTool::Cargo => (
            &[
                "cargo",
                "clippy",
                "--fix",
                "--allow-dirty",
                "--allow-staged",
                "--all-targets",
                "--offline",
            ],
            &[],
        ),
        ReportingTool::Eslint => (&["npx", "--no-install", "eslint", "--fix", "--"], SCRIPT),
        ReportingTool::Biome => (&["npx", "--no-install", "biome", "check", "--write"], WEB),
        // Findings of `go vet` are not about formatting.
        ReportingTool::Go if is_format => (&["gofmt", "-w"], &["go"]),
        _ if says("ruff") && is_format => (&["ruff", "format", "--"], &["py", "pyi"]),
        _ if says("ruff") => (&["ruff", "check", "--fix", "--"], &["py", "pyi"]),
        _ if says("gofmt") => (&["gofmt", "-w"], &["go"]),
        _ if says("cargo fmt") || says("rustfmt") => (&["cargo", "fmt"], &[]),
        _ if says("prettier") => (&["npx", "--no-install", "prettier", "--write", "--"], WEB),
        _ if says("eslint") => (&["npx", "--no-install", "eslint", "--fix", "--"], SCRIPT),
        _ if says("biome") => (&["npx", "--no-install", "biome", "check", "--write"], WEB),
        _ => return None,
    };
    let fix = builtin_fix(command.iter().map(|word| (*word).to_owned()).collect());
    if endings.is_empty() {
        // The command takes no files. Changes to files outside the present change are rolled back
        // later.
        return (!facts.changed_with(&["rs"]).is_empty()).then(|| (fix, Vec::new()));
    }
    // Skip files whose names look like options.
    let files = facts.changed_with(endings).into_iter().filter(|file| !file.starts_with('-'));
    let files: Vec<String> = files.collect();
    let bytes: usize = files.iter().map(|file| file.len() + 1).sum();
    (!files.is_empty() && bytes <= LINTER_FILES_BYTES_MAX).then_some((fix, files))
}

#[cfg(test)]
mod tests {
    use repertoire_journal::FixRemedy;

    use super::*;
    use crate::error::ParsedError;

    #[track_caller]
    fn check(tool: ReportingTool, category: ErrorCategory, command: &str, expected: Option<&str>) {
        let changed =
            ["src/a.rs", "src/b.ts", "c.py", "-evil.py", "d.go"].map(str::to_owned).into();
        let facts = ProjectFacts { changed, ..ProjectFacts::default() };
        let error = ParsedError::new(tool, category, "would reformat");
        let chosen = choose_linter_fix(&CheckFailure::new("fmt", command, error, ""), &facts);
        let said = chosen.map(|(fix, files)| {
            let FixRemedy::Command(words) = fix.remedy else { panic!("{fix:?}") };
            assert!(!words.iter().any(|word| facts.changed.contains(word)), "{words:?}");
            [words, files].concat().join(" ")
        });
        assert_eq!(said.as_deref(), expected);
    }

    #[test]
    fn each_tool_mends_what_it_complains_about_in_the_files_of_the_change() {
        check(ReportingTool::Cargo, ErrorCategory::Format, "cargo fmt --check", Some("cargo fmt"));
        check(
            ReportingTool::Eslint,
            ErrorCategory::Lint,
            "npm run lint",
            Some("npx --no-install eslint --fix -- src/b.ts"),
        );
        check(
            ReportingTool::Biome,
            ErrorCategory::Format,
            "x",
            Some("npx --no-install biome check --write src/b.ts"),
        );
        check(
            ReportingTool::Generic,
            ErrorCategory::Format,
            "ruff format --check .",
            Some("ruff format -- c.py"),
        );
        check(
            ReportingTool::Generic,
            ErrorCategory::Lint,
            "ruff check .",
            Some("ruff check --fix -- c.py"),
        );
        check(ReportingTool::Generic, ErrorCategory::Format, "gofmt -l .", Some("gofmt -w d.go"));
        check(ReportingTool::Go, ErrorCategory::Format, "gofmt -l .", Some("gofmt -w d.go"));
        check(ReportingTool::Go, ErrorCategory::Lint, "go vet ./...", None);
        check(ReportingTool::Generic, ErrorCategory::Format, "make fmt", None);
        check(ReportingTool::Cargo, ErrorCategory::Type, "cargo check", None);
    }
}
