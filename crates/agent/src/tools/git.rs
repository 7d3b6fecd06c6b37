//! `git`: runs selected subcommands, without options that run other programs or leave the work folder.

use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::command::{self, ToolCommand};
use super::{arguments, object_schema};
use crate::effect::{EffectLimit, RunEffect};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath::normalise_path;
use repertoire_sandbox::workplace::RunWorkplace;

/// The maximum number of arguments.
const ARGS_MAX: usize = 200;

#[derive(Clone, Copy, Debug)]
pub struct GitTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GitArguments {
    args: Vec<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

const READING: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "describe",
    "merge-base",
    "reflog",
];
const CHANGING: &[&str] = &[
    "add",
    "commit",
    "switch",
    "checkout",
    "restore",
    "stash",
    "branch",
    "tag",
    "mv",
    "rm",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "reset",
    "worktree",
    "init",
];
const NETWORKING: &[&str] = &["push", "fetch", "pull", "clone", "remote", "ls-remote"];

/// Options that run a program, access other files, or select another repository. Abbreviations are refused as well,
/// since git accepts them.
const REFUSED: &[&str] = &[
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--exec-path",
    "--ext-diff",
    "--textconv",
    "--output",
    "--config",
    "--config-env",
    "--template",
    "--separate-git-dir",
    "--reference",
    "--reference-if-able",
    "--git-dir",
    "--work-tree",
    "--no-index",
    "--open-files-in-pager",
    "--recurse-submodules",
    "--recursive",
    "--gpg-sign",
    "--edit-description",
    "--strategy",
];

/// Settings that keep a repository's own configuration from running programs.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.askPass=true",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "safe.bareRepository=explicit",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
];

impl Tool for GitTool {
    fn name(&self) -> &str {
        "git"
    }

    fn spec(&self, run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "git".to_owned(),
            description: format!(
                "Run git in the work folder. The first argument is the subcommand: {}. Hooks, \
                 editors, pagers, signing and external helpers are off; options that run programs or leave the folder \
                 are refused.",
                offered_subcommands(&run.limit()),
            ),
            parameters: object_schema(
                &["args"],
                json!({
                    "args": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": ARGS_MAX,
                        "items": {"type": "string"},
                        "description": "The arguments, as in [\"log\", \"--oneline\", \"-5\"].",
                    },
                    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Milliseconds it may take."},
                }),
            ),
        }
    }

    fn access(&self, arguments: &Value) -> ToolAccess {
        access_of(&args_of(arguments))
    }

    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Exclusive
    }

    fn subject(&self, arguments: &Value) -> String {
        command_line("git", &args_of(arguments))
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let ran = async {
                let wanted: GitArguments = arguments(&call)?;
                check_git_args(&call.run.workplace, &wanted.args).map_err(ToolOutput::error)?;
                command::check_args(&wanted.args)?;
                let usual = call.run.workplace.limits.timeout;
                let timeout = command::call_timeout(&call, wanted.timeout_ms, usual);
                let ran = command::run(&call, git_command(&wanted.args, timeout)).await?;
                Ok(command::build_output(&call, &ran, timeout))
            };
            ran.await.unwrap_or_else(|output: ToolOutput| output)
        })
    }
}

/// Lists the subcommands that a run may use, for the model.
fn offered_subcommands(limit: &EffectLimit) -> String {
    let mut offered = READING.join(", ");
    if !limit.effects().has(RunEffect::ChangeFiles) {
        return format!("{offered}; nothing can be changed");
    }
    offered.push_str(&format!(", {}", CHANGING.join(", ")));
    if limit.commands_may_use_network() {
        offered.push_str(&format!("; over the network: {}", NETWORKING.join(", ")));
    }
    offered
}

/// The arguments of a call that are strings.
pub(super) fn args_of(arguments: &Value) -> Vec<String> {
    let args = arguments.get("args").and_then(Value::as_array);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    args.map(|args| args.iter().filter_map(text).collect()).unwrap_or_default()
}

/// Formats a command as it would be typed in a shell.
pub(super) fn command_line(program: &str, args: &[String]) -> String {
    let args = args.iter().map(|arg| shell_quoted(arg));
    std::iter::once(program.to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

fn shell_quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,^".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

fn git_command(args: &[String], timeout: Duration) -> ToolCommand {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]);
    let access = access_of(args);
    let mut environment: Vec<(String, String)> =
        ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    if access == ToolAccess::Read {
        // Read-only commands must not refresh the index.
        environment.push(("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()));
    }
    let mut all: Vec<String> = settings.collect();
    all.push("--no-pager".to_owned());
    all.push(args[0].clone());
    if matches!(args[0].as_str(), "diff" | "log" | "show") {
        all.extend(["--no-ext-diff".to_owned(), "--no-textconv".to_owned()]);
    }
    if args[0] == "blame" {
        all.push("--no-textconv".to_owned());
    }
    if matches!(args[0].as_str(), "init" | "clone") {
        // A template could contain hooks.
        all.push("--template=".to_owned());
    }
    all.extend(args[1..].iter().cloned());
    ToolCommand {
        program: "git".to_owned(),
        args: all,
        environment,
        timeout,
        network: access == ToolAccess::Network,
        may_change: may_change(&args[0]),
    }
}

/// Protected paths that a subcommand may change. Git stores branches and remotes in its configuration, and the
/// arguments from which it writes them have been checked.
fn may_change(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "init" => &[
            ".git/config",
            ".git/config.worktree",
            ".git/commondir",
            ".git/hooks",
            ".git/info",
            ".git/modules",
        ],
        _ => &[".git/config"],
    }
}

fn access_of(args: &[String]) -> ToolAccess {
    let Some(subcommand) = args.first().map(String::as_str) else { return ToolAccess::Execute };
    let rest: Vec<&str> = args[1..].iter().map(String::as_str).collect();
    let only_lists = match subcommand {
        "branch" => only_lists(&rest, &["--list", "-l"], BRANCH_LISTING),
        "tag" => only_lists(&rest, &["--list", "-l"], TAG_LISTING),
        "stash" => matches!(rest.first(), Some(&("list" | "show"))),
        "worktree" => rest.first() == Some(&"list"),
        "remote" => rest.is_empty() || rest == ["-v"],
        "reflog" => rest.is_empty() || rest[0] == "show",
        other => READING.contains(&other),
    };
    match subcommand {
        _ if only_lists => ToolAccess::Read,
        other if CHANGING.contains(&other) || READING.contains(&other) => ToolAccess::Write,
        other if NETWORKING.contains(&other) => ToolAccess::Network,
        // Unknown subcommands are refused later; until then, assume the most privileged access.
        _ => ToolAccess::Network,
    }
}

const BRANCH_LISTING: &[&str] =
    &["-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "--show-current", "--no-color"];
const TAG_LISTING: &[&str] = &["-n", "--no-color"];

/// Returns true if a subcommand that can also make changes only lists: it has only listing options, and names only
/// after `--list`.
fn only_lists(args: &[&str], list: &[&str], options: &[&str]) -> bool {
    let asked = args.iter().any(|arg| list.contains(arg));
    args.iter().all(|arg| {
        if arg.starts_with('-') {
            list.contains(arg) || options.contains(arg) || arg.starts_with("--sort=")
        } else {
            asked
        }
    })
}

fn check_git_args(workplace: &RunWorkplace, args: &[String]) -> Result<(), String> {
    let Some(subcommand) = args.first().map(String::as_str) else {
        return Err("`args` is empty; begin with a subcommand, such as `status`".to_owned());
    };
    if args.len() > ARGS_MAX {
        return Err(format!("{} arguments; at most {ARGS_MAX}", args.len()));
    }
    let known = || READING.iter().chain(CHANGING).chain(NETWORKING).copied();
    if !known().any(|known| known == subcommand) {
        let near = repertoire_skill::name::nearest_name(subcommand, known());
        let hint = near.map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"));
        let all: Vec<&str> = known().collect();
        return Err(format!(
            "`git {subcommand}` is not a command of this tool{hint} It runs: {}",
            all.join(", ")
        ));
    }
    let short = refused_short(subcommand);
    for arg in &args[1..] {
        if arg == "--" {
            break;
        }
        let name = arg.split('=').next().unwrap_or(arg);
        let long = name.len() > 2 && name.starts_with("--");
        let refused = long && REFUSED.iter().any(|refused| refused.starts_with(name))
            || short.iter().any(|short| is_short(arg, *short));
        if refused {
            return Err(format!(
                "the option `{arg}` is refused: it runs programs or leaves the folder"
            ));
        }
    }
    refuse_outside_paths(workplace, &args[1..])
}

/// The short options that are refused for a subcommand.
fn refused_short(subcommand: &str) -> &'static [char] {
    match subcommand {
        "clone" => &['c', 'u', 'o'],
        "rebase" => &['x', 's'],
        "merge" | "cherry-pick" | "revert" | "pull" => &['s', 'S'],
        "commit" => &['S'],
        "tag" => &['s', 'u'],
        _ => &[],
    }
}

/// Returns true if an argument is a short option, or a group of them, that contains this letter.
fn is_short(arg: &str, letter: char) -> bool {
    let Some(letters) = arg.strip_prefix('-') else { return false };
    // A value may follow a letter, as in `-mtext`. Ignore everything after the first option that takes a value.
    let group = letters
        .chars()
        .take_while(|c| c.is_ascii_alphabetic() && !"mFCnUGS".contains(*c) || *c == letter);
    !letters.starts_with('-') && group.into_iter().any(|c| c == letter)
}

/// Options with a text value that is not a path.
const WORDS: &[&str] = &[
    "-m",
    "--message",
    "--author",
    "--grep",
    "-G",
    "-S",
    "--format",
    "--date",
    "--since",
    "--until",
];

/// Rejects arguments that are paths outside the work folder.
pub(super) fn refuse_outside_paths(
    workplace: &RunWorkplace,
    args: &[String],
) -> Result<(), String> {
    let real = workplace.dir.canonicalize_utf8().unwrap_or_else(|_| workplace.dir.clone());
    let mut words_follow = false;
    for arg in args {
        let skip = std::mem::replace(&mut words_follow, WORDS.contains(&arg.as_str()));
        let name = arg.split('=').next().unwrap_or("");
        if skip || WORDS.contains(&name) && arg.starts_with('-') || arg.starts_with("-m") {
            continue;
        }
        let value = match arg.split_once('=') {
            Some((_, value)) if arg.starts_with('-') => value,
            // A short option may be followed by its value without a space.
            _ if arg.starts_with('-') && !arg.starts_with("--") => arg.get(2..).unwrap_or(""),
            _ => arg,
        };
        // Values such as `HEAD:path` and URLs are not absolute paths and pass; git itself keeps them within the
        // repository.
        let plain = normalise_path(value);
        let climbs = plain == ".." || plain.starts_with("../");
        let elsewhere = value.starts_with('/')
            && !camino::Utf8Path::new(&plain).starts_with(&workplace.dir)
            && !camino::Utf8Path::new(&plain).starts_with(&real);
        if climbs || elsewhere || value.starts_with('~') {
            return Err(format!("`{arg}` leads out of the work folder {}", workplace.dir));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "git/git_tests.rs"]
mod tests;
