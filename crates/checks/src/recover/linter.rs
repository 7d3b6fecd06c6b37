//! The strategy that lets a formatter or linter fix its own findings, in the files of the present
//! change.

use repertoire_journal::Fix;

use super::facts::Facts;
use super::{Found, builtin};
use crate::error::{Category, Tool};
use crate::limits::LINTER_FILES_BYTES_MAX;

const SCRIPT: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];
const WEB: &[&str] =
    &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "json", "css", "graphql"];

/// The tool's own fix, if it has one, and the files to run it on. The files are not part of the
/// fix, so that its record is the same for any files.
pub(super) fn choose(found: &Found, facts: &Facts) -> Option<(Fix, Vec<String>)> {
    let is_format = match found.error.category {
        Category::Format => true,
        Category::Lint => false,
        _ => return None,
    };
    let says = |word: &str| found.command.contains(word);
    let (command, endings): (&[&str], &[&str]) = match found.error.source {
        Tool::Rustc | Tool::Cargo if is_format => (&["cargo", "fmt"], &[]),
        Tool::Rustc | Tool::Cargo => (
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
        Tool::Eslint => (&["npx", "--no-install", "eslint", "--fix", "--"], SCRIPT),
        Tool::Biome => (&["npx", "--no-install", "biome", "check", "--write"], WEB),
        // Findings of `go vet` are not about formatting.
        Tool::Go if is_format => (&["gofmt", "-w"], &["go"]),
        _ if says("ruff") && is_format => (&["ruff", "format", "--"], &["py", "pyi"]),
        _ if says("ruff") => (&["ruff", "check", "--fix", "--"], &["py", "pyi"]),
        _ if says("gofmt") => (&["gofmt", "-w"], &["go"]),
        _ if says("cargo fmt") || says("rustfmt") => (&["cargo", "fmt"], &[]),
        _ if says("prettier") => (&["npx", "--no-install", "prettier", "--write", "--"], WEB),
        _ if says("eslint") => (&["npx", "--no-install", "eslint", "--fix", "--"], SCRIPT),
        _ if says("biome") => (&["npx", "--no-install", "biome", "check", "--write"], WEB),
        _ => return None,
    };
    let fix = builtin(command.iter().map(|word| (*word).to_owned()).collect());
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
    use repertoire_journal::Remedy;

    use super::*;
    use crate::error::ParsedError;

    #[track_caller]
    fn check(tool: Tool, category: Category, command: &str, expected: Option<&str>) {
        let changed =
            ["src/a.rs", "src/b.ts", "c.py", "-evil.py", "d.go"].map(str::to_owned).into();
        let facts = Facts { changed, ..Facts::default() };
        let error = ParsedError::new(tool, category, "would reformat");
        let chosen = choose(&Found::new("fmt", command, error, ""), &facts);
        let said = chosen.map(|(fix, files)| {
            let Remedy::Command(words) = fix.remedy else { panic!("{fix:?}") };
            assert!(!words.iter().any(|word| facts.changed.contains(word)), "{words:?}");
            [words, files].concat().join(" ")
        });
        assert_eq!(said.as_deref(), expected);
    }

    #[test]
    fn each_tool_mends_what_it_complains_about_in_the_files_of_the_change() {
        check(Tool::Cargo, Category::Format, "cargo fmt --check", Some("cargo fmt"));
        check(
            Tool::Eslint,
            Category::Lint,
            "npm run lint",
            Some("npx --no-install eslint --fix -- src/b.ts"),
        );
        check(
            Tool::Biome,
            Category::Format,
            "x",
            Some("npx --no-install biome check --write src/b.ts"),
        );
        check(
            Tool::Generic,
            Category::Format,
            "ruff format --check .",
            Some("ruff format -- c.py"),
        );
        check(Tool::Generic, Category::Lint, "ruff check .", Some("ruff check --fix -- c.py"));
        check(Tool::Generic, Category::Format, "gofmt -l .", Some("gofmt -w d.go"));
        check(Tool::Go, Category::Format, "gofmt -l .", Some("gofmt -w d.go"));
        check(Tool::Go, Category::Lint, "go vet ./...", None);
        check(Tool::Generic, Category::Format, "make fmt", None);
        check(Tool::Cargo, Category::Type, "cargo check", None);
    }
}
