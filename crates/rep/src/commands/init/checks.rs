//! The checks that `rep init` suggests, and the configuration file that declares them.

use camino::Utf8Path;
use repertoire_text::fs;
use toml_edit::Value;

/// Maximum size of a project file that is read for suggestions.
const PROJECT_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum length of the name of a check.
const NAME_CHARS_MAX: usize = 32;

/// A check to declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProposedCheck {
    /// The name, from the words of the command.
    pub(super) name: String,
    pub(super) command: String,
}

impl ProposedCheck {
    pub(super) fn new(command: &str) -> Self {
        let words = command.split_whitespace().filter(|word| word.chars().all(is_name_char));
        let name =
            words.filter(|word| !word.starts_with('-')).take(3).collect::<Vec<_>>().join("-");
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        let name = if name.is_empty() { "check".to_owned() } else { name };
        ProposedCheck { name, command: command.to_owned() }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Suggests the usual test command for each build file in the project's root.
pub(super) fn detect_checks(project: &Utf8Path) -> Vec<ProposedCheck> {
    let read = |name: &str| fs::read_text(&project.join(name), PROJECT_FILE_BYTES_MAX).ok();
    let mut commands = Vec::new();
    if read("Cargo.toml").is_some() {
        commands.push("cargo test");
    }
    if read("package.json").is_some_and(|text| has_test_script(&text)) {
        commands.push("npm test");
    }
    if read("go.mod").is_some() {
        commands.push("go test ./...");
    }
    let is_python = read("pyproject.toml").is_some() || read("pytest.ini").is_some();
    if is_python && project.join("tests").is_dir() {
        commands.push("python3 -m pytest");
    }
    let has_target = |text: String| text.lines().any(|line| line.starts_with("test:"));
    if commands.is_empty() && read("Makefile").is_some_and(has_target) {
        commands.push("make test");
    }
    commands.into_iter().map(ProposedCheck::new).collect()
}

/// Returns true if a package.json has a test script other than the one of `npm init`, which fails.
fn has_test_script(text: &str) -> bool {
    let package: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let script = package.as_ref().and_then(|package| package["scripts"]["test"].as_str());
    script.is_some_and(|script| !script.contains("no test specified"))
}

/// Renders the configuration file.
pub(super) fn render_configuration(checks: &[ProposedCheck]) -> String {
    let mut out = String::from(
        "# Settings of this project for Repertoire. `rep config --explain` describes every key.\n",
    );
    if checks.is_empty() {
        out.push_str(
            "\n# A command that must succeed after every change of a plan; `rep verify` runs it too.\n\
             # [plan.checks.test]\n# command = \"cargo test\"\n",
        );
        return out;
    }
    out.push_str("\n# Commands that must succeed after every change of a plan; `rep verify` runs them too.\n");
    let mut names: Vec<String> = Vec::new();
    for check in checks {
        let numbered = (2..).map(|number| format!("{}-{number}", check.name));
        let mut candidates = std::iter::once(check.name.clone()).chain(numbered);
        let Some(name) = candidates.find(|name| !names.contains(name)) else { continue };
        let blank = if names.is_empty() { "" } else { "\n" };
        let command = Value::from(check.command.as_str());
        out.push_str(&format!("{blank}[plan.checks.{name}]\ncommand = {command}\n"));
        names.push(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(commands: &[&str], expected: &[(&str, &str)]) {
        let checks: Vec<_> = commands.iter().map(|command| ProposedCheck::new(command)).collect();
        let text = render_configuration(&checks);
        let parsed: toml::Table = text.parse().unwrap();
        let declared = parsed.get("plan").map(|plan| plan["checks"].as_table().unwrap());
        let declared = declared.into_iter().flatten();
        let declared: Vec<(&str, &str)> = declared
            .map(|(name, table)| (name.as_str(), table["command"].as_str().unwrap()))
            .collect();
        assert_eq!(declared, expected, "{text}");
    }

    #[test]
    fn checks_are_named_after_their_commands() {
        check(&[], &[]);
        check(&["cargo test --workspace"], &[("cargo-test", "cargo test --workspace")]);
        check(&["test -f \"a b\""], &[("test", "test -f \"a b\"")]);
        check(&["./x.sh"], &[("check", "./x.sh")]);
        check(
            &["npm test -- a", "npm test -- a b"],
            &[("npm-test-a", "npm test -- a"), ("npm-test-a-2", "npm test -- a b")],
        );
        check(
            &["make test", "make test"],
            &[("make-test", "make test"), ("make-test-2", "make test")],
        );
        check(&["echo 'x\ny'"], &[("echo", "echo 'x\ny'")]);
    }
}
