//! Answers a shell that completes a command line: names of skills, agents, workflows and runs. The scripts
//! that `rep completions` prints ask for them with the variable [`VARIABLE`].

use std::ffi::OsString;
use std::sync::Arc;

use clap::Command;
use clap::builder::StyledStr;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use repertoire::config::{ConfigFlags, RepConfig};
use repertoire_flow::driver::json_output::rows as workflow_rows;
use repertoire_journal::{Filter, RunKind, Target};
use repertoire_skill::catalog::{Catalog, CatalogEntry};

use crate::async_runtime::build_runtime;
use crate::cli::{CliContext, build_clap_command};
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui;

/// The variable with the name of the shell that asks.
pub(crate) const VARIABLE: &str = "REP_COMPLETE";

/// Maximum number of runs that are offered, the newest first.
const RUNS_MAX: u32 = 100;
/// Maximum width of the text beside a name.
const HELP_COLUMNS_MAX: usize = 60;

/// The names that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedNames {
    Skills,
    Agents,
    Workflows,
    Runs,
    Conversations,
    WorkflowRuns,
}

/// Arguments by command and id, besides those that [`names_by_value_name`] knows.
const ARGUMENTS: [(&str, &str, CompletedNames); 17] = [
    ("show", "name", CompletedNames::Skills),
    ("read", "names", CompletedNames::Skills),
    ("trust", "names", CompletedNames::Skills),
    ("match", "skills", CompletedNames::Skills),
    ("match", "used", CompletedNames::Skills),
    ("match", "why", CompletedNames::Skills),
    ("sync", "first", CompletedNames::Skills),
    ("run", "skills", CompletedNames::Skills),
    ("run", "resume", CompletedNames::Conversations),
    ("chat", "skills", CompletedNames::Skills),
    ("chat", "resume", CompletedNames::Conversations),
    ("agents", "name", CompletedNames::Agents),
    ("match", "agent", CompletedNames::Agents),
    ("review", "skills", CompletedNames::Skills),
    ("workflow start", "name", CompletedNames::Workflows),
    ("workflow show", "name", CompletedNames::Workflows),
    ("workflow graph", "name", CompletedNames::Workflows),
];

/// Returns the names for an argument whose value is called `value_name`.
fn names_by_value_name(path: &str, value_name: &str) -> Option<CompletedNames> {
    match value_name {
        "SKILL" => Some(CompletedNames::Skills),
        "AGENT" => Some(CompletedNames::Agents),
        "RUN" if path.starts_with("workflow ") => Some(CompletedNames::WorkflowRuns),
        "RUN" => Some(CompletedNames::Runs),
        _ => None,
    }
}

/// Prints a completion script for a shell.
pub(crate) fn write_script(shell: &str, out: &mut dyn std::io::Write) -> CliResult {
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| unknown_shell(shell))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "rep", "rep", "rep", &mut script)?;
    out.write_all(&script)?;
    Ok(CliExit::Done)
}

/// Prints the completions of a command line: the words after `--`.
pub(crate) fn answer_shell(
    env: &CliEnvironment,
    shell: &str,
    args: impl IntoIterator<Item = OsString>,
) -> CliResult {
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| unknown_shell(shell))?;
    let words: Vec<OsString> = args.into_iter().skip_while(|arg| arg != "--").skip(1).collect();
    let mut command = add_names(build_clap_command(), "", &Arc::new(env.clone()));
    command.build();
    let mut answer = Vec::new();
    shell.write_complete(&mut command, words, Some(env.here.as_std_path()), &mut answer)?;
    std::io::Write::write_all(&mut std::io::stdout().lock(), &answer)?;
    Ok(CliExit::Done)
}

fn unknown_shell(shell: &str) -> CliFailure {
    CliFailure::wrong_usage(format!("`{shell}` is no shell with completions"))
}

/// Adds the names to the arguments of a command and of those below it.
fn add_names(command: Command, path: &str, env: &Arc<CliEnvironment>) -> Command {
    let command = command.mut_args(|arg| {
        let value_name = arg.get_value_names().and_then(|names| names.first());
        let listed = ARGUMENTS.iter().find(|(at, id, _)| *at == path && arg.get_id() == id);
        let names = listed
            .map(|(.., names)| *names)
            .or_else(|| names_by_value_name(path, value_name?.as_str()));
        match names {
            Some(names) => {
                let env = Arc::clone(env);
                arg.add(ArgValueCandidates::new(move || list_names(&env, names)))
            }
            None => arg,
        }
    });
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        add_names(sub, path.trim_start(), env)
    })
}

/// Lists names. A configuration or a journal that cannot be read has none.
fn list_names(env: &CliEnvironment, names: CompletedNames) -> Vec<CompletionCandidate> {
    let Ok(config) = RepConfig::load(env, &env.here, &ConfigFlags::default()) else {
        return Vec::new();
    };
    let ctx = CliContext::new(env, config);
    let kind = match names {
        CompletedNames::Skills => return list_skills(&ctx, |entry| !entry.skill.is_agent()),
        CompletedNames::Agents => return list_skills(&ctx, |entry| entry.skill.is_agent()),
        CompletedNames::Workflows => return list_workflows(&ctx),
        CompletedNames::Runs => None,
        CompletedNames::Conversations => Some(RunKind::Conversation),
        CompletedNames::WorkflowRuns => Some(RunKind::Workflow),
    };
    list_runs(&ctx, kind).unwrap_or_default()
}

fn list_skills(
    ctx: &CliContext<'_>,
    is_wanted: impl Fn(&CatalogEntry) -> bool,
) -> Vec<CompletionCandidate> {
    let entries = ctx.load_catalog().map(Catalog::entries).unwrap_or_default();
    let wanted = entries.iter().filter(|entry| is_wanted(entry));
    wanted.map(|entry| candidate(&entry.id, &entry.skill.description)).collect()
}

fn list_workflows(ctx: &CliContext<'_>) -> Vec<CompletionCandidate> {
    let entries = ctx.load_catalog().map(Catalog::entries).unwrap_or_default();
    let rows = entries.iter().flat_map(|entry| workflow_rows(entry, false));
    rows.map(|row| candidate(&row.name, &row.description)).collect()
}

/// Lists the newest runs of a journal on this machine. A database elsewhere could keep the user waiting.
fn list_runs(
    ctx: &CliContext<'_>,
    kind: Option<RunKind>,
) -> Result<Vec<CompletionCandidate>, CliFailure> {
    if matches!(ctx.journal_target(None), Target::Url(_)) {
        return Ok(Vec::new());
    }
    build_runtime()?.block_on(async {
        let Some(journal) = ctx.open_journal_as_it_is().await? else { return Ok(Vec::new()) };
        let kind = kind.map(|kind| kind.to_string());
        let filter = Filter { kind, limit: RUNS_MAX, ..Filter::default() };
        let page = journal.runs(&filter).await;
        let runs = page.map_err(|error| CliFailure::cannot_run(error.to_string()))?.items;
        let named = runs.iter().enumerate().map(|(at, run)| {
            let about = format!("{} {}: {}", run.kind, run.status, run.name);
            // Keep the order: the newest first.
            candidate(run.id.short(), &about).display_order(Some(at))
        });
        Ok(named.collect())
    })
}

fn candidate(name: &str, about: &str) -> CompletionCandidate {
    let about = ui::fit_columns(about, HELP_COLUMNS_MAX);
    CompletionCandidate::new(name).help(Some(StyledStr::from(about)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_argument_exists() {
        let mut all = build_clap_command();
        all.build();
        for (path, id, names) in ARGUMENTS {
            let mut command = &all;
            for word in path.split(' ') {
                command = command.find_subcommand(word).unwrap();
            }
            let arg = command.get_arguments().find(|arg| arg.get_id() == id);
            assert!(arg.is_some(), "{path} {id} {names:?}");
        }
    }
}
