//! Protected paths: files of a work folder that tools and programs must not change, because they instruct the next
//! agent, or because git, an editor or a shell runs them as the user.
//!
//! The same list applies to the file tools, the mounts of the sandbox and its guard. Names count at every depth and
//! regardless of case: an agent that works in a subfolder reads its `AGENTS.md`, and the user's git reads a nested
//! `.git`.

use camino::{Utf8Path, Utf8PathBuf};

/// The name of a repository's git folder, or of the file that points to it.
pub(crate) const GIT: &str = ".git";

/// Parts of a git folder that programs may not change. The rest must stay writable, so that `git commit` works in the
/// sandbox.
pub(crate) const GIT_PARTS: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    // A file that points to the folder with hooks and configuration.
    "commondir",
    "modules",
    "info",
];

/// Names of files and folders that are protected at every depth, in lower case.
const AT_EVERY_DEPTH: &[&str] = &[
    ".agent",
    ".agents",
    ".claude",
    ".claude-plugin",
    ".clinerules",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".envrc",
    ".gemini",
    ".git-hooks",
    ".githooks",
    ".gitmodules",
    ".husky",
    ".junie",
    ".kiro",
    ".lefthook",
    ".mcp.json",
    ".opencode",
    ".repertoire",
    ".roo",
    ".roorules",
    ".windsurf",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "gemini.md",
    "opencode.json",
    "opencode.jsonc",
    "repertoire.toml",
];

/// Protected paths in the work folder itself, whether they exist yet or not.
const IN_THE_WORK_FOLDER: &[&str] = &[
    ".gitmodules",
    ".claude",
    ".codex",
    ".agents",
    ".agent",
    ".gemini",
    ".opencode",
    ".cursor",
    ".envrc",
    ".githooks",
    ".husky",
    ".github/skills",
    ".mcp.json",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "repertoire.toml",
    "skills",
    ".repertoire/agents",
    ".repertoire/skills",
    "opencode.json",
    "opencode.jsonc",
];

/// Returns true if tools may not change a path, given relative to the work folder: one of its components has a
/// protected name, or it lies in a git folder. Looks only at the path, not at the disk.
///
/// ```
/// use repertoire_sandbox::protected::is_protected;
///
/// assert!(is_protected("packages/web/AGENTS.md".into()));
/// assert!(is_protected("vendor/lib/.git/config".into()));
/// assert!(!is_protected("src/skills/fire.rs".into()));
/// ```
pub fn is_protected(relative: &Utf8Path) -> bool {
    let parts: Vec<String> =
        relative.components().map(|part| part.as_str().to_lowercase()).collect();
    let named = |part: &String| part == GIT || AT_EVERY_DEPTH.contains(&part.as_str());
    let github_skills = |pair: &[String]| pair[0] == ".github" && pair[1] == "skills";
    parts.first().is_some_and(|first| first == "skills")
        || parts.iter().any(named)
        || parts.windows(2).any(github_skills)
}

/// Returns true if a name is protected at every depth, apart from `.git`.
pub(crate) fn is_protected_name(name: &str) -> bool {
    AT_EVERY_DEPTH.contains(&name.to_lowercase().as_str())
}

/// The protected paths of a folder that need no search, whether they exist yet or not.
pub(crate) fn protected_in(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let git = GIT_PARTS.iter().map(|part| dir.join(GIT).join(part));
    let named = IN_THE_WORK_FOLDER.iter().map(|name| dir.join(name));
    git.chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(protected: bool, paths: &[&str]) {
        for path in paths {
            assert_eq!(is_protected(Utf8Path::new(path)), protected, "{path}");
        }
    }

    #[test]
    fn protected_names_count_at_every_depth_and_in_either_case() {
        check(
            true,
            &[
                ".git",
                ".git/config",
                "nest/.git/hooks/pre-commit",
                "nest/.GIT/config",
                "nest/AGENTS.md",
                "a/b/agents.md",
                "a/Claude.md",
                ".envrc",
                "nest/.envrc",
                ".husky/pre-commit",
                "nest/.husky/_/h",
                "nest/.claude/settings.json",
                "nest/.claude",
                "a/.github/skills/x/SKILL.md",
                "skills/a/SKILL.md",
                "x/repertoire.toml",
            ],
        );
    }

    #[test]
    fn ordinary_paths_are_not_protected() {
        check(
            false,
            &[
                "",
                "src/main.rs",
                "src/skills/fire.rs",
                ".gitignore",
                ".github/workflows/ci.yml",
                "agents.md.txt",
                "claude/x",
                "docs/AGENTS",
                ".gitattributes",
            ],
        );
    }

    #[test]
    fn every_path_that_is_not_searched_for_is_protected() {
        let dir = Utf8Path::new("/work");
        for path in protected_in(dir) {
            assert!(is_protected(path.strip_prefix(dir).unwrap()), "{path}");
        }
    }
}
