//! Lets a formatter or a linter mend what it complains about, in the files of the present change.

use repertoire_journal::Fix;

use super::facts::Facts;
use super::{Found, builtin};
use crate::improve::error::{Category, Tool};

const SCRIPT: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];
const WEB: &[&str] =
    &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "json", "css", "graphql"];

/// The tool's own correction, if it has one.
pub(super) fn choose(found: &Found, facts: &Facts) -> Option<Fix> {
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
        Tool::Go => (&["gofmt", "-w"], &["go"]),
        _ if says("ruff") && is_format => (&["ruff", "format", "--"], &["py", "pyi"]),
        _ if says("ruff") => (&["ruff", "check", "--fix", "--"], &["py", "pyi"]),
        _ if says("gofmt") => (&["gofmt", "-w"], &["go"]),
        _ if says("cargo fmt") || says("rustfmt") => (&["cargo", "fmt"], &[]),
        _ if says("prettier") => (&["npx", "--no-install", "prettier", "--write", "--"], WEB),
        _ if says("eslint") => (&["npx", "--no-install", "eslint", "--fix", "--"], SCRIPT),
        _ if says("biome") => (&["npx", "--no-install", "biome", "check", "--write"], WEB),
        _ => return None,
    };
    let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    if endings.is_empty() {
        // It takes no files; what it does to others is taken back.
        return (!facts.changed_with(&["rs"]).is_empty()).then(|| builtin(words));
    }
    let files = facts.changed_with(endings);
    // A file that looks like an option is none of ours.
    words.extend(files.into_iter().filter(|file| !file.starts_with('-')));
    (words.len() > command.len()).then(|| builtin(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::improve::error::ParsedError;

    #[track_caller]
    fn check(tool: Tool, category: Category, command: &str, expected: Option<&str>) {
        let changed =
            ["src/a.rs", "src/b.ts", "c.py", "-evil.py", "d.go"].map(str::to_owned).into();
        let facts = Facts { changed, ..Facts::default() };
        let error = ParsedError::new(tool, category, "would reformat");
        let fix = choose(&Found::new("fmt", command, error, ""), &facts);
        assert_eq!(fix.map(|fix| fix.remedy.text()).as_deref(), expected);
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
        check(Tool::Generic, Category::Format, "make fmt", None);
        check(Tool::Cargo, Category::Type, "cargo check", None);
    }
}
