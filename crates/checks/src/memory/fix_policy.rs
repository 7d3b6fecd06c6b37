//! Rules for which fixes may be remembered, and which may be applied automatically. Pure functions.

use std::sync::LazyLock;

use camino::Utf8Path;
use globset::GlobSet;
use regex::Regex;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFix, FixRemedy, KnownFix};
use repertoire_text::secrets::has_secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patch::{PatchedFile, parse_patch};
use crate::limits::LOCK_LINES_MAX;
use crate::protected_files::{build_glob_set, is_protected, matches_path};

/// The trust in a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixState {
    /// May be applied without asking, with a backup and checks afterwards.
    Automatic,
    /// Is shown to the agent or person that works on the failure.
    Suggested,
    /// Is not offered, but kept, so that it is not learnt again.
    Retired,
}

impl FixState {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            FixState::Automatic => "automatic",
            FixState::Suggested => "suggested",
            FixState::Retired => "retired",
        }
    }
}

/// The thresholds for trusting a fix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixTrustPolicy {
    /// Minimum confidence for applying a fix automatically.
    pub automatic_from: f64,
    /// Fixes with a lower confidence are not offered.
    pub retired_below: f64,
    /// Milliseconds without success after which a fix is only suggested.
    pub stale_ms: u64,
}

impl Default for FixTrustPolicy {
    fn default() -> Self {
        FixTrustPolicy {
            automatic_from: 0.6,
            retired_below: 0.2,
            stale_ms: 90 * 24 * 60 * 60 * 1_000,
        }
    }
}

/// The current trust in a fix, and the reason.
pub fn state_of(known: &KnownFix, now_ms: u64, policy: &FixTrustPolicy) -> (FixState, String) {
    let KnownFix { tried, worked, failed, confidence, .. } = known;
    if *confidence < policy.retired_below {
        return (FixState::Retired, format!("it failed {failed} of {tried} times"));
    }
    // A person taught it, so try it once; from then on its record counts.
    if *tried == 0 && known.fix.origin == FixOrigin::Taught {
        return match refuse_automatic(&known.fix) {
            Some(why) => (FixState::Suggested, why),
            None => (FixState::Automatic, "a person taught it, and it is tried once".to_owned()),
        };
    }
    if *confidence < policy.automatic_from {
        let why = match tried {
            0 => "nobody has verified it here".to_owned(),
            _ => format!("it worked {worked} of {tried} times"),
        };
        return (FixState::Suggested, why);
    }
    if let Some(why) = refuse_automatic(&known.fix) {
        return (FixState::Suggested, why);
    }
    match known.last_worked_ms {
        Some(last) if now_ms.saturating_sub(last) <= policy.stale_ms => {
            (FixState::Automatic, format!("it worked {worked} of {tried} times"))
        }
        _ => (FixState::Suggested, "it has not worked for a long time".to_owned()),
    }
}

/// The reason why a fix is never applied automatically, however often it worked.
pub fn refuse_automatic(fix: &FailureFix) -> Option<String> {
    if let Some(why) = refuse_to_remember(fix) {
        return Some(why);
    }
    match &fix.remedy {
        FixRemedy::Advice(_) => Some("advice is for those who read it".to_owned()),
        FixRemedy::Command(words) => {
            if let Some(word) = words.iter().find(|word| is_outside(word)) {
                return Some(format!("`{word}` is outside the folder"));
            }
            let program = words.first().map_or("", String::as_str);
            if program.contains('/') {
                return Some(format!("`{program}` is a file that may have changed"));
            }
            refuse_unsafe_command(words)
        }
        FixRemedy::Patch(text) => {
            let files = parse_patch(text);
            let refuse = |file| {
                refuse_path(file).or_else(|| refuse_test(file)).or_else(|| refuse_inline_test(file))
            };
            files.iter().find_map(refuse)
        }
    }
}

/// Returns true if an argument, or the value of an option, is a path outside the folder.
fn is_outside(word: &str) -> bool {
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    value.starts_with(['/', '~'])
        || Utf8Path::new(value).components().any(|part| part.as_str() == "..")
}

/// A command that may be run without asking.
struct SafeCommand {
    /// The program and its first arguments.
    words: &'static [&'static str],
    /// Options that may follow.
    options: &'static [&'static str],
    rest: SafeArguments,
}

/// The arguments that may follow a command and its options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SafeArguments {
    Nothing,
    /// Files, or packages that are already in the lock file.
    Names,
}

const LOCKED: &[&str] = &["--offline", "--prefer-offline", "--ignore-scripts", "--no-audit"];
const CARGO: &[&str] = &["--all", "--workspace", "--locked", "--offline", "--frozen"];
const CLIPPY: &[&str] =
    &["--allow-dirty", "--allow-staged", "--all-targets", "--workspace", "--locked", "--offline"];
const FILES: &[&str] = &["--", "-q", "--quiet"];

/// Safe commands: formatters, linters that fix, and installation from a lock file. Any other
/// command could run unknown code, and is at most suggested. That includes options that select
/// another configuration.
const FINE: &[SafeCommand] = &[
    safe_command(&["cargo", "fmt"], CARGO, SafeArguments::Nothing),
    safe_command(&["cargo", "clippy", "--fix"], CLIPPY, SafeArguments::Nothing),
    safe_command(&["cargo", "fetch"], CARGO, SafeArguments::Nothing),
    safe_command(&["cargo", "update", "-p"], CARGO, SafeArguments::Names),
    safe_command(&["cargo", "update", "--package"], CARGO, SafeArguments::Names),
    safe_command(&["npm", "ci"], LOCKED, SafeArguments::Nothing),
    safe_command(&["pnpm", "install", "--frozen-lockfile"], LOCKED, SafeArguments::Nothing),
    safe_command(&["yarn", "install", "--frozen-lockfile"], LOCKED, SafeArguments::Nothing),
    safe_command(&["yarn", "install", "--immutable"], LOCKED, SafeArguments::Nothing),
    safe_command(&["uv", "sync", "--locked"], LOCKED, SafeArguments::Nothing),
    safe_command(&["uv", "sync", "--frozen"], LOCKED, SafeArguments::Nothing),
    safe_command(&["go", "mod", "download"], &[], SafeArguments::Nothing),
    safe_command(&["go", "fmt"], &[], SafeArguments::Names),
    safe_command(&["gofmt", "-w"], &["-s"], SafeArguments::Names),
    safe_command(&["goimports", "-w"], &[], SafeArguments::Names),
    safe_command(&["ruff", "format"], FILES, SafeArguments::Names),
    safe_command(&["ruff", "check", "--fix"], FILES, SafeArguments::Names),
    safe_command(&["black"], FILES, SafeArguments::Names),
    safe_command(&["isort"], FILES, SafeArguments::Names),
    safe_command(&["eslint", "--fix"], FILES, SafeArguments::Names),
    safe_command(&["prettier", "--write"], FILES, SafeArguments::Names),
    safe_command(&["biome", "check", "--write"], FILES, SafeArguments::Names),
    safe_command(&["biome", "format", "--write"], FILES, SafeArguments::Names),
    safe_command(&["biome", "lint", "--write"], FILES, SafeArguments::Names),
];

const fn safe_command(
    words: &'static [&'static str],
    options: &'static [&'static str],
    rest: SafeArguments,
) -> SafeCommand {
    SafeCommand { words, options, rest }
}

/// The reason if a command is not one of [`FINE`].
fn refuse_unsafe_command(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // `npx --no-install` runs the program that is installed in the project.
    let words = match words.as_slice() {
        ["npx", "--no-install" | "--no", inner @ ..] => inner,
        words => words,
    };
    (!FINE.iter().any(|fine| fine.allows(words)))
        .then(|| "it is none of the commands that may be run without asking".to_owned())
}

impl SafeCommand {
    fn allows(&self, words: &[&str]) -> bool {
        let rest = words.strip_prefix(self.words);
        rest.is_some_and(|rest| rest.iter().all(|word| self.may_follow(word)))
    }

    fn may_follow(&self, word: &str) -> bool {
        if word.starts_with('-') {
            self.options.contains(&word)
        } else {
            self.rest == SafeArguments::Names
        }
    }
}

/// The reason why a fix must not be remembered at all.
pub fn refuse_to_remember(fix: &FailureFix) -> Option<String> {
    let text = fix.remedy.to_text();
    if text.trim().is_empty() {
        return Some("there is nothing in it".to_owned());
    }
    if has_secret(&text) {
        return Some("it holds what looks like a secret".to_owned());
    }
    match &fix.remedy {
        FixRemedy::Advice(_) => None,
        FixRemedy::Command(words) => refuse_command(words),
        FixRemedy::Patch(text) => {
            let files = parse_patch(text);
            if files.is_empty() {
                return Some("it is no patch: nothing in it names a file".to_owned());
            }
            files.iter().find_map(|file| refuse_path(file).or_else(|| find_weakening(file)))
        }
    }
}

/// Programs that run arbitrary code, delete files, or use the network.
const REFUSED_PROGRAMS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "pwsh",
    "powershell",
    "cmd",
    "env",
    "xargs",
    "eval",
    "exec",
    "nohup",
    "sudo",
    "su",
    "doas",
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "dd",
    "mv",
    "chmod",
    "chown",
    "setfacl",
    "curl",
    "wget",
    "nc",
    "ncat",
    "socat",
    "ssh",
    "scp",
    "rsync",
    "docker",
    "podman",
    "kill",
    "pkill",
    "killall",
    "crontab",
    "gh",
    "timeout",
    "nice",
    "setsid",
    "stdbuf",
    "parallel",
    "busybox",
    "truncate",
    "uvx",
    "pipx",
    "bunx",
];
/// Programs that run arbitrary code with one of these arguments.
const RUNS_TEXT: &[(&str, &[&str])] = &[
    ("python", &["-c", "-m"]),
    ("find", &["-delete", "-exec", "-execdir", "-ok"]),
    ("go", &["run", "install"]),
    ("node", &["-e", "--eval", "-p"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("deno", &["eval", "run"]),
    ("bun", &["-e", "x"]),
];
/// Allowed git subcommands. All others move, delete or publish something.
const GIT_FINE: &[&str] = &["add", "apply", "lfs", "status", "diff"];

fn refuse_command(words: &[String]) -> Option<String> {
    let [program, args @ ..] = words else { return Some("there is no program in it".to_owned()) };
    let name = program.rsplit('/').next().unwrap_or(program);
    // `python3.12` is Python.
    let name = if name.starts_with("python") { "python" } else { name };
    let has = |wanted: &[&str]| args.iter().any(|arg| wanted.contains(&arg.as_str()));
    if REFUSED_PROGRAMS.contains(&name) {
        return Some(format!("`{name}` may do anything, or undo too much"));
    }
    if RUNS_TEXT.iter().any(|(program, flags)| *program == name && has(flags)) {
        return Some(format!("`{name}` would run what it is told"));
    }
    if name == "git" && !args.first().is_some_and(|verb| GIT_FINE.contains(&verb.as_str())) {
        return Some("of git, only what adds or applies is remembered".to_owned());
    }
    if name == "npx" && !has(&["--no-install", "--no"])
        || matches!(
            (name, args.first().map(String::as_str)),
            ("npm" | "pnpm" | "yarn", Some("exec" | "dlx" | "x" | "config"))
        )
        || matches!(name, "npm" | "pnpm" | "yarn") && has(&["exec", "dlx"])
    {
        return Some(format!("`{name}` would fetch code and run it"));
    }
    let told = args.iter().find(|arg| arg.contains("://") || arg.starts_with("git+"));
    if let Some(address) = told {
        return Some(format!("`{address}` would be fetched"));
    }
    let off = [
        "--no-verify",
        "--force",
        "-f",
        "-rf",
        "--unsafe-perm",
        "--ignore-scripts=false",
        "--dangerously-skip-permissions",
    ];
    has(&off).then(|| "it forces something, or switches a check off".to_owned())
}

static TESTS: LazyLock<GlobSet> = LazyLock::new(|| {
    build_glob_set(&[
        "**/tests/**",
        "**/test/**",
        "**/__tests__/**",
        "**/spec/**",
        "**/testdata/**",
        "**/fixtures/**",
        "**/snapshots/**",
        "**/*_test.*",
        "**/*_tests.*",
        "**/test_*.*",
        "**/*.test.*",
        "**/*.spec.*",
        "**/tests.rs",
        "**/conftest.py",
    ])
});
static CHECKS: LazyLock<GlobSet> = LazyLock::new(|| {
    build_glob_set(&[
        "**/makefile",
        "**/justfile",
        "**/taskfile.y*ml",
        "**/tox.ini",
        "**/noxfile.py",
        "**/pytest.ini",
        "**/setup.cfg",
        "**/pyproject.toml",
        "**/package.json",
        "**/.eslintrc*",
        "**/.eslintignore",
        "**/eslint.config.*",
        "**/biome.json*",
        "**/.prettierrc*",
        "**/.prettierignore",
        "**/tsconfig*.json",
        "**/jest.config.*",
        "**/vitest.config.*",
        "**/clippy.toml",
        "**/.clippy.toml",
        "**/rustfmt.toml",
        "**/.rustfmt.toml",
        "**/deny.toml",
        "**/.config/nextest.toml",
        "**/.cargo/**",
        "**/rust-toolchain*",
        "**/ruff.toml",
        "**/.ruff.toml",
        "**/mypy.ini",
        "**/.flake8",
        "**/.coveragerc",
        "**/.golangci.*",
        "**/codecov.yml",
        "**/.gitlab-ci.yml",
        "**/.circleci/**",
        "**/jenkinsfile",
    ])
});
static LOCKS: LazyLock<GlobSet> = LazyLock::new(|| {
    build_glob_set(&[
        "**/cargo.lock",
        "**/package-lock.json",
        "**/npm-shrinkwrap.json",
        "**/pnpm-lock.yaml",
        "**/yarn.lock",
        "**/bun.lock*",
        "**/uv.lock",
        "**/poetry.lock",
        "**/pipfile.lock",
        "**/go.sum",
        "**/gemfile.lock",
        "**/composer.lock",
    ])
});
static CREDENTIALS: LazyLock<GlobSet> = LazyLock::new(|| {
    build_glob_set(&[
        "**/.env",
        "**/.env.*",
        "**/*.pem",
        "**/*.key",
        "**/*.p12",
        "**/id_rsa*",
        "**/id_ed25519*",
        "**/.npmrc",
        "**/.pypirc",
        "**/.netrc",
        "**/credentials*",
        "**/secrets.*",
    ])
});

/// Returns true if the path is that of a test.
pub(crate) fn is_test(path: &str) -> bool {
    matches_path(&TESTS, path)
}

/// The reason why no fix may touch a file automatically.
pub(crate) fn refuse_path(file: &PatchedFile) -> Option<String> {
    let path = file.path.as_str();
    let paths = [Some(path), file.from.as_deref()];
    if path.is_empty() {
        return Some("a file has no name".to_owned());
    }
    for path in paths.into_iter().flatten() {
        // Git would interpret escapes in the name, and use a different path.
        if path.contains(['"', '\\']) {
            return Some(format!("`{path}` is an odd name"));
        }
        if !repertoire_text::fs::is_beneath(Utf8Path::new(path)) {
            return Some(format!("`{path}` is outside the folder"));
        }
        if is_protected(path) {
            return Some(format!("`{path}` configures agents, git or the service"));
        }
        if matches_path(&CREDENTIALS, path) {
            return Some(format!("`{path}` holds credentials"));
        }
        if matches_path(&CHECKS, path) {
            return Some(format!("`{path}` says what is checked"));
        }
    }
    if file.deleted && is_test(path) {
        return Some(format!("the test `{path}` is gone"));
    }
    let is_wholesale = file.deleted || file.changed_lines() as u64 > LOCK_LINES_MAX;
    (is_wholesale && matches_path(&LOCKS, path))
        .then(|| format!("the lock file `{path}` is replaced"))
}

fn refuse_test(file: &PatchedFile) -> Option<String> {
    let path = file.path.as_str();
    is_test(path).then(|| format!("`{path}` is a test"))
}

/// Code that occurs only in tests, including tests beside the code or in its documentation.
static IN_TEST: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)
        \#\[\s*(?:\w+::)*test\b | \bcfg\(test\) | \bmod\ tests?\b | \bshould_panic\b
        | \b(?:debug_)?assert(?:_\w+)?!?\s*\( | \bassert\s | >>>\s
        | \bdef\ test_ | \bfunc\ (?:Test|Benchmark|Fuzz|Example)[A-Z_(]
        | (?:^|[^.\w])(?:it|test|describe)\(";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// Refuses a change to a test in a file that is not named like a test.
fn refuse_inline_test(file: &PatchedFile) -> Option<String> {
    let mut lines = file.added.iter().chain(&file.removed).chain(&file.around);
    lines
        .any(|line| IN_TEST.is_match(line))
        .then(|| format!("it changes a test in `{}`", file.path))
}

/// Changes that disable a check or weaken a test.
static WEAKENING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)
        \#\[\s*ignore | \#!?\[\s*(?:allow|expect|cfg_attr)\s*\( | \bshould_panic\b
        | \b(?:it|test|describe)\.(?:skip|only|todo)\b | \bx(?:it|describe|test)\s*\(
        | @?pytest\.mark\.(?:skip|xfail) | \bpytest\.skip\b | \bunittest\.skip | \bt\.Skip
        | eslint-disable | biome-ignore | @ts-ignore | @ts-nocheck | @ts-expect-error | prettier-ignore
        | \#\s*noqa | \#\s*type:\s*ignore | \#\s*pylint:\s*disable | //\s*nolint | \bnosec\b
        | \|\|\s*true\b | --no-verify | \bcontinue-on-error\b | \bset\s\+e\b
        | \bexcept(?:\s+\w+)?:\s*pass\b | \bcatch\s*(?:\([^)]*\))?\s*\{\s*\}
        | \bassert!\(\s*true\s*[,)] | \bassert\s+True\b | \bexpect\(true\)\.to
        | \bcfg\((?:any\(\)|FALSE|false)\) | \bif\s+False\s*: | \bif\s*\(?\s*false\s*[){]
        | ^\s*\[(?:workspace\.)?lints | \b(?:test|doctest|harness)\s*=\s*false";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

static ASSERTS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"assert|\bexpect\([^)]*\)\.(?:not\.)?to|^\s*(?:///?!?\s*)?>>>\s";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// The reason if the added or removed lines make a check weaker instead of the work better.
pub(crate) fn find_weakening(file: &PatchedFile) -> Option<String> {
    let weaker = file.added.iter().find_map(|line| WEAKENING.find(line));
    if let Some(found) = weaker {
        return Some(format!(
            "`{}` in `{}` switches a check off",
            found.as_str().trim(),
            file.path
        ));
    }
    // In many languages tests are beside the code. `expect` is an assertion only in tests.
    let is_test = is_test(&file.path);
    let asks = |line: &&String| ASSERTS.is_match(line) || is_test && line.contains("expect(");
    let asserts = |lines: &[String]| lines.iter().filter(asks).count();
    let what = if is_test { "the test " } else { "" };
    (asserts(&file.removed) > asserts(&file.added))
        .then(|| format!("{what}`{}` asks for less", file.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(remedy: FixRemedy) -> FailureFix {
        FailureFix { remedy, preconditions: Vec::new(), origin: FixOrigin::Learnt }
    }

    fn command(text: &str) -> FailureFix {
        fix(FixRemedy::Command(text.split(' ').map(str::to_owned).collect()))
    }

    fn patch(path: &str, added: &str) -> FailureFix {
        let text = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+{added}\n"
        );
        fix(FixRemedy::Patch(text))
    }

    fn known(fix: FailureFix, confidence: f64, last_worked_ms: Option<u64>) -> KnownFix {
        KnownFix { confidence, last_worked_ms, tried: 1, worked: 1, ..KnownFix::new(fix, 0) }
    }

    #[test]
    fn a_fix_is_trusted_as_far_as_its_record_goes() {
        let policy = FixTrustPolicy::default();
        let state = |confidence, last, now| {
            state_of(&known(command("cargo fetch"), confidence, last), now, &policy).0
        };
        assert_eq!(state(0.65, Some(10), 20), FixState::Automatic);
        assert_eq!(state(0.6, Some(10), 20), FixState::Automatic);
        assert_eq!(state(0.59, Some(10), 20), FixState::Suggested);
        assert_eq!(state(0.2, Some(10), 20), FixState::Suggested);
        assert_eq!(state(0.16, Some(10), 20), FixState::Retired);
        assert_eq!(state(0.9, Some(10), 11 + policy.stale_ms), FixState::Suggested);
        assert_eq!(state(0.9, None, 20), FixState::Suggested);
    }

    #[test]
    fn what_a_person_taught_is_tried_once_and_then_its_record_counts() {
        let policy = FixTrustPolicy::default();
        let taught = |text| FailureFix { origin: FixOrigin::Taught, ..command(text) };
        let fresh = KnownFix::new(taught("cargo fetch"), 0);
        assert_eq!(state_of(&fresh, 20, &policy).0, FixState::Automatic);
        let failed = KnownFix { tried: 1, failed: 1, confidence: 0.35, ..fresh };
        assert_eq!(state_of(&failed, 20, &policy).0, FixState::Suggested);
        let outside = KnownFix::new(taught("cp a ../b"), 0);
        assert_eq!(state_of(&outside, 20, &policy).0, FixState::Suggested);
        let learnt = KnownFix::new(command("cargo fetch"), 0);
        assert_eq!(state_of(&learnt, 20, &policy).0, FixState::Suggested);
    }

    #[test]
    fn some_fixes_are_never_automatic() {
        for never in [
            fix(FixRemedy::Advice("look at the imports".into())),
            command("cargo fmt --manifest-path /etc/Cargo.toml"),
            command("cp a ../b"),
            command("./scripts/mend.sh"),
            patch("tests/it/a.rs", "let a = 1;"),
            patch("src/a_test.go", "x"),
            patch("package.json", "x"),
            patch(".github/workflows/ci.yml", "x"),
            patch("AGENTS.md", "x"),
            patch("../elsewhere.rs", "x"),
            patch(".env", "x"),
            patch("\\056github/x", "x"),
        ] {
            assert!(refuse_automatic(&never).is_some(), "{never:?}");
        }
        for fine in [
            command("cargo update -p serde_json"),
            patch("src/a.rs", "x"),
            patch("src/a.rs", "let found = pattern.test(text);"),
            command("cargo fmt"),
            command("npm ci --ignore-scripts"),
            command("uv sync --locked"),
            command("go mod download"),
            command("ruff format -- src/a.py"),
            command("npx --no-install eslint --fix src/a.ts"),
        ] {
            assert_eq!(refuse_automatic(&fine), None, "{fine:?}");
        }
    }

    #[test]
    fn a_command_that_is_not_known_to_be_harmless_is_never_automatic() {
        for never in [
            "npm install left-pad",
            "npm --prefix . exec x",
            "npm ci left-pad",
            "npm ci --registry=x",
            "pip install x",
            "cargo install x",
            "cargo fetch --config x",
            "cargo --config x fmt",
            "cargo update",
            "uvx x",
            "pipx run x",
            "bunx x",
            "go run x@latest",
            "go mod download x@latest",
            "find . -delete",
            "truncate -s0 f",
            "timeout 9 bash -c true",
            "busybox rm f",
            "nice sh x",
            "awk BEGIN{system(1)}",
            "sed -i s/a/b/ f",
            "python3.12 -c 1",
            "git submodule foreach x",
            "make x",
            "mender now",
            "npx --no-install eslint --fix --config evil.js a.ts",
            "npx --no-install left-pad",
        ] {
            assert!(refuse_automatic(&command(never)).is_some(), "{never}");
        }
    }

    #[test]
    fn a_patch_within_a_test_beside_the_code_is_never_automatic() {
        let hunk = |place: &str, before: &str, after: &str| {
            let text = format!(
                "diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n\
                 @@ -9,2 +9,2 @@ {place}\n-{before}\n+{after}\n     let x = 1;\n"
            );
            fix(FixRemedy::Patch(text))
        };
        for test in [
            hunk("mod tests {", "let a = 2;", "let a = 3;"),
            hunk("fn total()", "assert_eq!(total(), 3);", "assert_eq!(total(), 4);"),
            hunk("fn total()", "#[test]", "#[tokio::test]"),
            hunk("def total():", ">>> total()", ">>> total(1)"),
        ] {
            assert!(refuse_automatic(&test).is_some(), "{test:?}");
            assert_eq!(refuse_to_remember(&test), None, "{test:?}");
        }
        assert_eq!(refuse_automatic(&hunk("fn total()", "let a = 2;", "let a = 3;")), None);
    }

    #[test]
    fn some_fixes_are_not_remembered_at_all() {
        for never in [
            command("rm -r target"),
            command("bash -c true"),
            command("/bin/sh x"),
            command("git push --force"),
            command("git reset --hard"),
            command("curl https://x.example"),
            command("pip install git+https://x.example/y"),
            command("npx left-pad"),
            command("python -c print(1)"),
            command("python3.12 -c print(1)"),
            command("timeout 9 bash -c true"),
            command("find . -delete"),
            command("go run x@latest"),
            command("npm --prefix . exec x"),
            command("git submodule foreach x"),
            command("git commit --no-verify"),
            patch("src/lib.rs", "assert!(true);"),
            patch("src/lib.rs", "#[cfg(any())]"),
            patch("src/a.py", "    if False:"),
            command("login ghp_abcdefghijklmnop1234"),
            patch("src/a.rs", "#[ignore]"),
            patch("src/a.ts", "// eslint-disable-next-line"),
            patch("src/a.py", "x = 1  # type: ignore"),
            patch("src/lib.rs", "#![allow(warnings)]"),
            fix(FixRemedy::Patch("just words".into())),
            fix(FixRemedy::Advice(" ".into())),
        ] {
            assert!(refuse_to_remember(&never).is_some(), "{never:?}");
        }
        assert_eq!(refuse_to_remember(&patch("tests/a.rs", "let b = 2;")), None);
    }

    #[test]
    fn a_test_that_asks_for_less_is_weaker() {
        let text = "diff --git a/tests/a.rs b/tests/a.rs\n--- a/tests/a.rs\n+++ b/tests/a.rs\n@@ -1 +1 @@\n-assert_eq!(a, 1);\n+let _ = a;\n";
        assert!(find_weakening(&parse_patch(text)[0]).is_some());
        // Beside the code too.
        let inline = text.replace("tests/a.rs", "src/lib.rs");
        assert!(refuse_to_remember(&fix(FixRemedy::Patch(inline))).is_some());
        let doctest = text.replace("tests/a.rs", "src/a.py").replace("assert_eq!(a, 1);", ">>> a");
        assert!(refuse_to_remember(&fix(FixRemedy::Patch(doctest))).is_some());
        let unwrapped = text
            .replace("tests/a.rs", "src/lib.rs")
            .replace("assert_eq!(a, 1);", "let b = a.expect(\"it is there\");");
        assert_eq!(refuse_to_remember(&fix(FixRemedy::Patch(unwrapped))), None);
    }

    #[test]
    fn a_lock_file_is_not_replaced() {
        let lines: String = (0..200).map(|n| format!("+{n}\n")).collect();
        let text = format!(
            "diff --git a/Cargo.lock b/Cargo.lock\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -0,0 +1,200 @@\n{lines}"
        );
        assert!(refuse_path(&parse_patch(&text)[0]).is_some());
        let FixRemedy::Patch(small) = patch("Cargo.lock", "x").remedy else { panic!() };
        assert_eq!(refuse_path(&parse_patch(&small)[0]), None);
    }
}
