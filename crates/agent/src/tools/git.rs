//! `git`: runs selected subcommands with the options in the list of `git/options.rs`, which run no other program and do not leave the work
//! folder. Where the walls do not hold, or the agent may not run commands, programs that the repository names are replaced as
//! in the engine's own calls.

use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use self::options::{GitArgument, GitSubcommand, GitSubcommandKind, SUBCOMMANDS};
use super::command::{self, ToolCommand};
use super::{arguments, object_schema};
use crate::effect::{EffectLimit, RunEffect};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_git::repo::{
    GitClient, GitError, HARMLESS_ENVIRONMENT, NetworkUse, harmless_settings,
};
use repertoire_sandbox::beneath::normalise_path;
use repertoire_sandbox::workplace::RunWorkplace;

mod options;

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

/// Variables of the tool's own.
const ENVIRONMENT: &[(&str, &str)] = &[("GIT_CONFIG_NOSYSTEM", "1")];

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
                let workplace = &call.run.workplace;
                let parsed = parse_git_args(workplace, &wanted.args).map_err(ToolOutput::error)?;
                command::check_args(&wanted.args)?;
                let timeout =
                    command::call_timeout(&call, wanted.timeout_ms, workplace.limits.timeout);
                let mut git = git_command(&wanted.args, parsed, timeout);
                if !may_run_programs(call.run, &git) {
                    refuse_unfinished_rebase(&wanted.args).map_err(ToolOutput::error)?;
                    git.environment.extend(harmless_variables(workplace, &wanted.args[0]).await?);
                }
                let ran = command::run(&call, git).await?;
                Ok(command::build_output(&call, &ran, timeout))
            };
            ran.await.unwrap_or_else(|output: ToolOutput| output)
        })
    }
}

/// Lists the subcommands that a run may use, for the model.
fn offered_subcommands(limit: &EffectLimit) -> String {
    let names = |kind: GitSubcommandKind| {
        let of_kind = SUBCOMMANDS.iter().filter(|subcommand| subcommand.kind == kind);
        of_kind.map(|subcommand| subcommand.name).collect::<Vec<_>>().join(", ")
    };
    let mut offered = names(GitSubcommandKind::Reads);
    if !limit.effects().has(RunEffect::ChangeFiles) {
        return format!("{offered}; nothing can be changed");
    }
    offered.push_str(&format!(", {}", names(GitSubcommandKind::Changes)));
    if limit.commands_may_use_network() {
        offered.push_str(&format!("; over the network: {}", names(GitSubcommandKind::UsesNetwork)));
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

fn git_command(args: &[String], parsed: Vec<GitArgument>, timeout: Duration) -> ToolCommand {
    let access = access_of(args);
    let network = match access {
        ToolAccess::Network => NetworkUse::WithUserPrograms,
        _ => NetworkUse::None,
    };
    let ours = HARMLESS_ENVIRONMENT.iter().chain(ENVIRONMENT);
    // Commands that only read must not refresh the index, and others have to be able to.
    let ours = ours.filter(|(name, _)| match *name {
        "GIT_OPTIONAL_LOCKS" => access == ToolAccess::Read,
        // A partial clone has to fetch what it checks out.
        "GIT_NO_LAZY_FETCH" => access != ToolAccess::Network,
        _ => true,
    });
    // A push to a path would run the hooks of the repository there.
    let push = [("GIT_ALLOW_PROTOCOL", "http:https:ssh:git")];
    let ours = ours.chain(push.iter().filter(|_| args[0] == "push"));
    let settings = harmless_settings(network).flat_map(|setting| ["-c", setting]);
    let mut all: Vec<String> = settings.map(str::to_owned).collect();
    all.push("--no-pager".to_owned());
    all.push(args[0].clone());
    let mut parsed: Vec<String> = parsed.into_iter().map(GitArgument::into_text).collect();
    let action = parsed.first().cloned().filter(|action| is_action(&args[0], action));
    if action.is_some() {
        all.push(parsed.remove(0));
    }
    if shows_differences(&args[0], action.as_deref()) {
        all.extend(["--no-ext-diff", "--no-textconv"].map(str::to_owned));
    }
    if args[0] == "blame" {
        all.push("--no-textconv".to_owned());
    }
    if matches!(args[0].as_str(), "init" | "clone") {
        // A template could contain hooks.
        all.push("--template=".to_owned());
    }
    all.extend(parsed);
    ToolCommand {
        program: "git".to_owned(),
        args: all,
        environment: ours.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        timeout,
        network: access == ToolAccess::Network,
        may_change: may_change(&args[0]),
    }
}

/// Returns true for a word that chooses what `stash` or `reflog` does. Options of that come behind it.
fn is_action(subcommand: &str, word: &str) -> bool {
    match subcommand {
        "stash" => matches!(word, "list" | "show"),
        "reflog" => matches!(word, "show" | "list" | "expire" | "delete" | "exists" | "drop"),
        _ => false,
    }
}

fn shows_differences(subcommand: &str, action: Option<&str>) -> bool {
    match subcommand {
        "diff" | "log" | "show" => true,
        "stash" => action.is_some(),
        "reflog" => matches!(action, None | Some("show")),
        _ => false,
    }
}

/// Returns true if programs that the repository names may run: they are inside the walls without network, and the agent may
/// run commands anyway.
fn may_run_programs(run: &AgentRun, git: &ToolCommand) -> bool {
    run.workplace.sandbox.is_enforced()
        && !git.network
        && run.limit().effects().has(RunEffect::RunCommands)
}

/// A rebase that was left unfinished can contain commands.
fn refuse_unfinished_rebase(args: &[String]) -> Result<(), String> {
    let goes_on = |arg: &String| matches!(arg.as_str(), "--continue" | "--skip");
    if args[0] == "rebase" && args.iter().any(goes_on) {
        return Err("a rebase that is under way can contain commands, which may not run here; the user has to finish it, or \
                    `git rebase --abort` ends it"
            .to_owned());
    }
    Ok(())
}

async fn harmless_variables(
    workplace: &RunWorkplace,
    subcommand: &str,
) -> Result<Vec<(String, String)>, ToolOutput> {
    if matches!(subcommand, "init" | "clone") {
        return Ok(Vec::new());
    }
    let environment = workplace.environment.clone();
    let git = GitClient::new(workplace.dir.clone(), environment, workplace.sandbox.clone());
    match git.harmless_variables().await {
        Ok(variables) => Ok(variables),
        // git says the same, in words that models know.
        Err(GitError::NotARepository { .. }) => Ok(Vec::new()),
        Err(error) => Err(ToolOutput::error(error.to_string())),
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
    let kind = GitSubcommand::find(subcommand).map(|found| found.kind);
    let only_lists = match subcommand {
        "branch" => only_lists(&rest, &["--list", "-l"], BRANCH_LISTING),
        "tag" => only_lists(&rest, &["--list", "-l"], TAG_LISTING),
        "stash" => matches!(rest.first(), Some(&("list" | "show"))),
        "worktree" => rest.first() == Some(&"list"),
        "remote" => rest.is_empty() || rest == ["-v"],
        "reflog" => rest.is_empty() || rest[0] == "show",
        _ => kind == Some(GitSubcommandKind::Reads),
    };
    match kind {
        _ if only_lists => ToolAccess::Read,
        Some(GitSubcommandKind::Reads | GitSubcommandKind::Changes) => ToolAccess::Write,
        // Unknown subcommands are refused later; until then, assume the most privileged access.
        Some(GitSubcommandKind::UsesNetwork) | None => ToolAccess::Network,
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

fn parse_git_args(workplace: &RunWorkplace, args: &[String]) -> Result<Vec<GitArgument>, String> {
    let Some(name) = args.first().map(String::as_str) else {
        return Err("`args` is empty; begin with a subcommand, such as `status`".to_owned());
    };
    if args.len() > ARGS_MAX {
        return Err(format!("{} arguments; at most {ARGS_MAX}", args.len()));
    }
    let Some(subcommand) = GitSubcommand::find(name) else {
        let known: Vec<&str> = SUBCOMMANDS.iter().map(|subcommand| subcommand.name).collect();
        let near = repertoire_skill::name::nearest_name(name, known.iter().copied());
        let hint = near.map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"));
        return Err(format!(
            "`git {name}` is not a command of this tool{hint} It runs: {}",
            known.join(", ")
        ));
    };
    let parsed = subcommand.parse_arguments(&args[1..])?;
    for path in parsed.iter().filter_map(GitArgument::path) {
        refuse_outside_path(workplace, path, path)?;
    }
    Ok(parsed)
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
        refuse_outside_path(workplace, arg, value)?;
    }
    Ok(())
}

/// Values such as `HEAD:path` and URLs are not absolute paths and pass; git itself keeps them within the repository.
fn refuse_outside_path(workplace: &RunWorkplace, arg: &str, value: &str) -> Result<(), String> {
    let real = workplace.dir.canonicalize_utf8().unwrap_or_else(|_| workplace.dir.clone());
    let value = value.strip_prefix("file://").unwrap_or(value);
    let plain = normalise_path(value);
    let climbs = plain == ".." || plain.starts_with("../");
    let elsewhere = value.starts_with('/')
        && !camino::Utf8Path::new(&plain).starts_with(&workplace.dir)
        && !camino::Utf8Path::new(&plain).starts_with(&real);
    if climbs || elsewhere || value.starts_with('~') {
        return Err(format!("`{arg}` leads out of the work folder {}", workplace.dir));
    }
    Ok(())
}

#[cfg(test)]
#[path = "git/git_tests.rs"]
mod tests;
