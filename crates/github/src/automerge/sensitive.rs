//! Sensitive paths, whose changes a person has to decide about, in addition to the protected ones:
//! licences, sources of dependencies, and credentials.

use std::sync::LazyLock;

use globset::GlobSet;

use repertoire_checks::protected_files::{build_glob_set, is_protected, matches_path};

const SENSITIVE: &[&str] = &[
    // Licences.
    "**/license*",
    "**/licence*",
    "**/copying*",
    "**/notice*",
    // Sources of dependencies.
    "**/.npmrc",
    "**/.yarnrc",
    "**/.yarnrc.yml",
    "**/.yarn/**",
    "**/.pnpmfile.cjs",
    "**/pnpm-workspace.yaml",
    "**/bunfig.toml",
    "**/.cargo/**",
    "**/pip.conf",
    "**/.pypirc",
    "**/uv.toml",
    "**/nuget.config",
    "**/.bundle/**",
    "**/.m2/**",
    "**/init.gradle",
    "**/deny.toml",
    // Credentials.
    "**/.env",
    "**/.env.*",
    "**/.netrc",
    "**/.aws/**",
    "**/.ssh/**",
    "**/.kube/**",
    "**/*.pem",
    "**/*.key",
    "**/*.p12",
    "**/*.pfx",
    "**/credentials*",
    "**/secrets/**",
    "**/secrets.*",
];

static MATCHER: LazyLock<GlobSet> = LazyLock::new(|| build_glob_set(SENSITIVE));

/// Returns true if a person has to decide about a change of this path.
pub(super) fn is_sensitive(path: &str) -> bool {
    is_protected(path) || matches_path(&MATCHER, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_sources_and_credentials_are_for_people() {
        for path in [
            "LICENSE-MIT",
            "a/COPYING",
            ".npmrc",
            ".cargo/config.toml",
            "deploy/key.PEM",
            ".env.production",
            "ops/secrets/a.yml",
            "AGENTS.md",
            ".github/workflows/a.yml",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
        for path in
            ["src/license_check.rs.txt/../a", "src/main.rs", "package.json", "environment.ts"]
        {
            assert!(!is_sensitive(path), "{path}");
        }
    }
}
