//! The strategy that installs dependencies which the manifest declared and the lock file pinned
//! before this run. It never adds a dependency: a mistyped name may belong to a malicious package,
//! and so may one that an agent has just declared. Install scripts are not run.

use std::sync::LazyLock;

use regex::Regex;

use super::facts::ProjectFacts;
use super::{CheckFailure, builtin_fix};
use crate::error::ErrorCategory;
use repertoire_journal::FailureFix;

static MISSING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?xi)
        (?:cannot\ find\ (?:module|package)|could\ not\ resolve|module\ not\ found:?[^'"`]*|no\ module\ named
          |cannot\ find\ package|no\ required\ module\ provides\ package|failed\ to\ (?:get|download|load)
          |no\ matching\ package\ (?:named|found)[^'"`]*|failed\ to\ resolve\ import)
        \W{1,3}?(?P<name>@?[A-Za-z0-9][\w./@-]*)"#;
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// The command that installs from the lock file, if the manifest declares the missing package.
pub(super) fn choose_install(found: &CheckFailure, facts: &ProjectFacts) -> Option<FailureFix> {
    if !matches!(found.error.category, ErrorCategory::Dependency | ErrorCategory::TypeMissing) {
        return None;
    }
    let name = MISSING.captures(&found.error.message)?.name("name")?.as_str();
    let has = |lock: &str| facts.locks.contains_key(lock);
    // A requirements file without hashes pins nothing.
    let is_pinned = |lock: &str| facts.locks.get(lock).is_some_and(|text| has_digests(text));
    let names = |manifest: &str, name: &str| {
        facts.manifests.get(manifest).is_some_and(|text| is_named(manifest, text, name))
    };
    let package = npm_package(name);
    let (command, lock): (&[&str], &str) = match () {
        () if names("package.json", &package) && has("package-lock.json") => {
            (&["npm", "ci", "--ignore-scripts"], "package-lock.json")
        }
        () if names("package.json", &package) && has("npm-shrinkwrap.json") => {
            (&["npm", "ci", "--ignore-scripts"], "npm-shrinkwrap.json")
        }
        () if names("package.json", &package) && has("pnpm-lock.yaml") => {
            (&["pnpm", "install", "--frozen-lockfile", "--ignore-scripts"], "pnpm-lock.yaml")
        }
        () if names("package.json", &package) && has("yarn.lock") => {
            (&["yarn", "install", "--frozen-lockfile", "--ignore-scripts"], "yarn.lock")
        }
        () if names("Cargo.toml", name) && has("Cargo.lock") => {
            (&["cargo", "fetch", "--locked"], "Cargo.lock")
        }
        () if names("pyproject.toml", python_package(name)) && has("uv.lock") => {
            (&["uv", "sync", "--locked"], "uv.lock")
        }
        () if names("requirements.txt", python_package(name)) && is_pinned("requirements.txt") => (
            &[
                "pip",
                "install",
                "--require-hashes",
                "--only-binary",
                ":all:",
                "-r",
                "requirements.txt",
            ],
            "requirements.txt",
        ),
        () if names("go.mod", name) && has("go.sum") => (&["go", "mod", "download"], "go.sum"),
        () => return None,
    };
    let mut fix = builtin_fix(command.iter().map(|word| (*word).to_owned()).collect());
    fix.preconditions = vec![format!("exists {lock}")];
    Some(fix)
}

/// Returns true if every requirement is exact and has a hash. Options that include other files or
/// indexes are not accepted.
fn has_digests(text: &str) -> bool {
    let joined = text.replace("\\\n", " ");
    let mut lines =
        joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.clone().next().is_some()
        && lines
            .all(|line| !line.starts_with('-') && line.contains("==") && line.contains("--hash="))
}

/// The npm package of a module: `@scope/name` of `@scope/name/part`, `name` of `name/part`.
fn npm_package(name: &str) -> String {
    let parts = if name.starts_with('@') { 2 } else { 1 };
    name.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// The top-level package of a Python module.
fn python_package(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Returns true if the manifest names the package as a whole word. Dashes and underscores are
/// equivalent.
fn is_named(manifest: &str, text: &str, name: &str) -> bool {
    if name.starts_with('.') || name.is_empty() {
        return false;
    }
    if manifest == "package.json" {
        let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let lists = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];
        return lists
            .iter()
            .any(|list| json.get(list).is_some_and(|list| list.get(name).is_some()));
    }
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let (text, name) = (plain(text), plain(name));
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '/' | '.');
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| match manifest {
        // A go.mod names modules, which are prefixes of package paths.
        "go.mod" => line.split_whitespace().any(|word| {
            word.contains('.') && (name == word || name.starts_with(&format!("{word}/")))
        }),
        _ => line.split(|c| !is_word(c)).any(|word| word == name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ParsedError, ReportingTool};

    fn facts(manifest: &str, text: &str, lock: &str) -> ProjectFacts {
        ProjectFacts {
            manifests: [(manifest.to_owned(), text.to_owned())].into(),
            locks: [(lock.to_owned(), text.to_owned())].into(),
            ..ProjectFacts::default()
        }
    }

    #[track_caller]
    fn check(message: &str, facts: &ProjectFacts, expected: Option<&str>) {
        let error = ParsedError::new(ReportingTool::Generic, ErrorCategory::Dependency, message);
        let fix = choose_install(&CheckFailure::new("test", "npm test", error, ""), facts);
        assert_eq!(fix.map(|fix| fix.remedy.to_text()).as_deref(), expected, "{message}");
    }

    #[test]
    fn what_is_declared_and_locked_is_installed() {
        let npm = facts(
            "package.json",
            r#"{"dependencies":{"left-pad":"1","@a/b":"2"}}"#,
            "package-lock.json",
        );
        check("Cannot find module 'left-pad'", &npm, Some("npm ci --ignore-scripts"));
        check(
            "Cannot find package '@a/b/c' imported from /x",
            &npm,
            Some("npm ci --ignore-scripts"),
        );
        check("Cannot find module 'right-pad'", &npm, None);
        check("Cannot find module './left-pad'", &npm, None);
        let cargo = facts("Cargo.toml", "[dependencies]\nserde_json = \"1\"\n", "Cargo.lock");
        check("failed to get `serde-json` as a dependency", &cargo, Some("cargo fetch --locked"));
        check("failed to get `serde` as a dependency", &cargo, None);
        let uv = facts("pyproject.toml", "dependencies = [\"requests>=2\"]\n", "uv.lock");
        check("No module named 'requests.adapters'", &uv, Some("uv sync --locked"));
        let pinned = "# flask\nrequests==2 \\\n    --hash=sha256:00\n";
        let pip = facts("requirements.txt", pinned, "requirements.txt");
        let command = "pip install --require-hashes --only-binary :all: -r requirements.txt";
        check("No module named 'requests'", &pip, Some(command));
        check("No module named 'flask'", &pip, None);
        for loose in
            ["requests==2\n", &format!("{pinned}-r more.txt\n"), &format!("{pinned}flask\n")]
        {
            let pip = facts("requirements.txt", loose, "requirements.txt");
            check("No module named 'requests'", &pip, None);
        }
        let go = facts("go.mod", "module x\nrequire example.com/a/b v1.0.0\n", "go.sum");
        check(
            "no required module provides package example.com/a/b/c; to add it:",
            &go,
            Some("go mod download"),
        );
    }

    #[test]
    fn without_a_lock_file_nothing_is_installed() {
        let npm = facts("package.json", r#"{"dependencies":{"left-pad":"1"}}"#, "none");
        check("Cannot find module 'left-pad'", &npm, None);
    }
}
