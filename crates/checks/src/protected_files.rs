//! Protected paths, which agents must not change: configuration of agents, files that are executed
//! automatically, and files that decide about ownership.
//!
//! The list has three uses: a run works with the base branch's version of these paths, a branch
//! that touches them is not published, and a pull request that does is not merged without a person.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The paths, as globs in lower case. A folder stands for everything below it, and for a file or
/// link of the same name.
pub const PROTECTED: &[&str] = &[
    // Workflows and owners on GitHub.
    "**/.github/**",
    "**/codeowners",
    "action.yml",
    "action.yaml",
    // Files that build tools read from their folder, before any code of the project is checked.
    "**/.cargo/**",
    "**/rust-toolchain",
    "**/rust-toolchain.toml",
    // Instructions and tools of agents.
    "**/agents.md",
    "**/agents.override.md",
    "**/claude.md",
    "**/claude.local.md",
    "**/gemini.md",
    "**/agent.md",
    "**/qwen.md",
    "**/learnings.md",
    "**/.rules",
    "**/.goosehints",
    "**/.aider*",
    "**/.kiro/**",
    "**/.roo/**",
    "**/.roorules",
    "**/.junie/**",
    "**/.claude/**",
    "**/.claude-plugin/**",
    "**/.codex/**",
    "**/.gemini/**",
    "**/.cursor/**",
    "**/.cursorrules",
    "**/.opencode/**",
    "**/opencode.json",
    "**/opencode.jsonc",
    "**/.windsurf/**",
    "**/.windsurfrules",
    "**/.clinerules/**",
    "**/.mcp.json",
    "**/.agents/**",
    "**/.agent/**",
    "**/.repertoire/**",
    "**/repertoire.toml",
    "**/repertoire.lock",
    // The folders in which projects keep skills.
    "skills/**",
    "**/skill.md",
    // Files that git and hook managers execute or follow.
    "**/.husky/**",
    "**/.githooks/**",
    "**/.git-hooks/**",
    "**/.git/**",
    "**/.gitmodules",
    "**/.gitattributes",
    "**/.pre-commit-config.yaml",
    "**/.pre-commit-config.yml",
    "**/lefthook.yml",
    "**/lefthook.yaml",
    "**/lefthook.toml",
    "**/lefthook-local.yml",
    "**/.lefthook/**",
    // Files that editors and shells execute when a folder is opened.
    "**/.devcontainer/**",
    "**/.vscode/**",
    "**/.envrc",
];

/// Returns true if a path of a repository is protected.
///
/// Case is ignored, and so are characters that some file systems ignore, because a checkout there
/// would write to the protected file.
///
/// ```
/// use repertoire_checks::protected_files::is_protected;
///
/// assert!(is_protected(".github/workflows/ci.yml"));
/// assert!(is_protected("packages/web/Agents.MD"));
/// assert!(!is_protected("src/agents.rs"));
/// ```
pub fn is_protected(path: &str) -> bool {
    matches_path(&MATCHER, path)
}

static MATCHER: LazyLock<GlobSet> = LazyLock::new(|| build_glob_set(PROTECTED));

/// Builds a matcher for globs in lower case, for [`matches`].
pub fn build_glob_set(globs: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let itself = glob.strip_suffix("/**");
        for glob in itself.into_iter().chain([*glob]) {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            set.add(built.expect("the globs of this program are written right"));
        }
    }
    set.build().expect("a set of globs that are right")
}

/// Returns true if a path of a repository matches a set.
pub fn matches_path(set: &GlobSet, path: &str) -> bool {
    set.is_match(normalise_path(path))
}

/// Normalises a path like the most forgiving file system.
fn normalise_path(path: &str) -> String {
    let path = path.replace('\\', "/");
    let parts = path.split('/').map(fold_component).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("/")
}

fn fold_component(part: &str) -> String {
    let seen = part.chars().filter(|c| !is_ignorable(*c));
    // Go through upper case, because that is the only way to map a long s to a plain one.
    let lower = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let part: String = lower.collect();
    // Windows drops everything after a colon, and trailing dots and spaces.
    part.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

/// Returns true for characters that HFS+ ignores in comparisons.
fn is_ignorable(c: char) -> bool {
    repertoire_text::invisible::is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(protected: bool, paths: &[&str]) {
        for path in paths {
            assert_eq!(is_protected(path), protected, "{path}");
        }
    }

    #[test]
    fn configuration_hooks_and_ownership_are_protected_at_any_depth() {
        check(
            true,
            &[
                ".github/workflows/ci.yml",
                ".github/CODEOWNERS",
                "docs/CODEOWNERS",
                "AGENTS.md",
                "crates/x/CLAUDE.md",
                "GEMINI.md",
                ".claude/settings.json",
                "web/.claude/agents/a.md",
                ".mcp.json",
                ".codex/config.toml",
                ".gemini/settings.json",
                ".cursor/rules/a.mdc",
                ".agents/skills/x/SKILL.md",
                "skills/agent-mode/scripts/run.sh",
                "plugins/x/skills/y/SKILL.md",
                ".husky/pre-commit",
                ".githooks/pre-push",
                ".gitmodules",
                "vendor/.gitattributes",
                "repertoire.toml",
                "action.yml",
                ".cargo/config.toml",
                "crates/x/.cargo/config",
                "rust-toolchain.toml",
                "LEARNINGS.md",
                ".aider.conf.yml",
                ".roo/rules/a.md",
            ],
        );
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_protected_too() {
        check(true, &[".claude", ".github", "skills", "web/.cursor"]);
    }

    #[test]
    fn no_spelling_gets_around_it() {
        check(
            true,
            &[
                ".GitHub/Workflows/ci.yml",
                "agents.md",
                "./AGENTS.md",
                ".github//workflows/ci.yml",
                ".github\\workflows\\ci.yml",
                ".git\u{200c}hub/workflows/ci.yml",
                ".hu\u{17f}ky/pre-commit",
                ".claude./settings.json",
                ".mcp.json::$DATA",
                "AGENTS.md ",
            ],
        );
    }

    #[test]
    fn ordinary_files_are_not() {
        check(
            false,
            &[
                "",
                "src/main.rs",
                "src/skills/fire.ts",
                "docs/agents.md.txt",
                "claude.rs",
                "github/client.rs",
                ".gitignore",
                "my.claude/x",
                "docs/action.yml.md",
                "src/learnings.rs",
            ],
        );
    }

    #[test]
    fn every_glob_is_in_lower_case_and_matches() {
        for glob in PROTECTED {
            assert_eq!(*glob, glob.to_lowercase());
        }
        assert!(MATCHER.len() >= PROTECTED.len());
    }
}
