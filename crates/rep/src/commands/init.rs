//! `rep init`: writes a first `repertoire.toml` and sets up the clients it finds. It never overwrites a
//! configuration file.

use camino::{Utf8Path, Utf8PathBuf};
use clap::builder::PossibleValuesParser;

use self::checks::{ProposedCheck, detect_checks, render_configuration};
use crate::cli::CliContext;
use crate::commands::setup::{self, clients::known_clients};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::place_to_write;
use crate::ui::{self, TerminalUi};

mod checks;

/// Name of the configuration file.
const FILE: &str = "repertoire.toml";

const AFTER_HELP: &str = "\
Examples:
  rep init                                      ask about each step
  rep init --yes                                accept what is suggested
  rep init --yes --check \"npm test\" --client claude
  rep init --yes --no-checks --no-clients       write a configuration file without checks";

/// Arguments of `rep init`
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InitArgs {
    /// Accept everything that is suggested, without asking
    #[arg(short, long)]
    yes: bool,
    /// A command that must succeed after every change, such as "cargo test" (may be repeated;
    /// default: suggested from the project's files)
    #[arg(long = "check", value_name = "COMMAND")]
    checks: Vec<String>,
    /// Declare no checks
    #[arg(long, conflicts_with = "checks")]
    no_checks: bool,
    /// Set up this client (may be repeated; default: every client that is installed)
    #[arg(long = "client", value_name = "NAME", value_parser = PossibleValuesParser::new(known_clients().iter().map(|client| client.id.as_str())))]
    clients: Vec<String>,
    /// Set up no clients
    #[arg(long, conflicts_with = "clients")]
    no_clients: bool,
}

/// Where answers come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InitAnswers {
    /// The user, at a terminal.
    Asked,
    /// The suggestions and the flags.
    Suggested,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &InitArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let answers = if args.yes {
        InitAnswers::Suggested
    } else if ctx.can_be_asked(ui) {
        InitAnswers::Asked
    } else {
        return Err(CliFailure::wrong_usage(
            "`rep init` asks questions, and this is not a terminal",
        )
        .hint("`rep init --yes` accepts what is suggested; see `rep init --help`."));
    };
    let project = ctx.project_dir(None);
    let has_checks = write_configuration(ctx, args, &project, answers, ui)?;
    let exit = set_up_clients(ctx, args, answers, ui)?;
    print_next(ctx, has_checks, ui)?;
    Ok(exit)
}

/// Writes the configuration file, unless there is one. Returns true if it declares checks.
fn write_configuration(
    ctx: &CliContext<'_>,
    args: &InitArgs,
    project: &Utf8Path,
    answers: InitAnswers,
    ui: &mut TerminalUi<'_>,
) -> Result<bool, CliFailure> {
    let path = project.join(FILE);
    let shown = ctx.config.places().shorten_path(&path);
    if path.symlink_metadata().is_ok() {
        writeln!(ui.out, "{shown} exists and is not changed.")?;
        if !args.checks.is_empty() {
            ui.print_warning(&format!(
                "`--check` has no effect: add the checks to {shown} by hand"
            ))?;
        }
        return Ok(false);
    }
    let checks = choose_checks(args, project, answers, ui)?;
    let text = render_configuration(&checks);
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, &shown))?;
    for line in text.lines() {
        writeln!(ui.out, "{}", format!("  {line}").trim_end())?;
    }
    writeln!(ui.out)?;
    if answers == InitAnswers::Asked && !ui.ask_yes_by_default("Write this file?")? {
        writeln!(ui.out, "{shown} was not written.")?;
        return Ok(false);
    }
    // The user may have taken a while to answer.
    if path.symlink_metadata().is_ok() {
        return Err(CliFailure::negative_answer(format!("{shown} was created in the meantime"))
            .hint("Nothing was changed."));
    }
    place_to_write(project, &path)?
        .write_atomic(text.as_bytes())
        .map_err(|error| CliFailure::cannot_run(format!("{shown} cannot be written: {error}")))?;
    writeln!(ui.out, "{} {shown}", ui.paint(ui::GOOD, "wrote"))?;
    Ok(!checks.is_empty())
}

fn choose_checks(
    args: &InitArgs,
    project: &Utf8Path,
    answers: InitAnswers,
    ui: &mut TerminalUi<'_>,
) -> Result<Vec<ProposedCheck>, CliFailure> {
    if args.no_checks {
        return Ok(Vec::new());
    }
    if !args.checks.is_empty() {
        return Ok(args.checks.iter().map(|command| ProposedCheck::new(command)).collect());
    }
    let suggested = detect_checks(project);
    if answers == InitAnswers::Suggested {
        return Ok(suggested);
    }
    let mut checks = Vec::new();
    for check in suggested {
        let question = format!("Must `{}` succeed after every change?", check.command);
        if ui.ask_yes_by_default(&question)? {
            checks.push(check);
        }
    }
    loop {
        let command = ui.read_line("Another command that must succeed (Enter: none): ")?;
        if command.is_empty() {
            return Ok(checks);
        }
        checks.push(ProposedCheck::new(&command));
    }
}

/// Sets up the clients as `rep setup CLIENT` does. A client that fails does not stop the others.
fn set_up_clients(
    ctx: &CliContext<'_>,
    args: &InitArgs,
    answers: InitAnswers,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if args.no_clients {
        return Ok(CliExit::Done);
    }
    let found = if args.clients.is_empty() {
        setup::find_missing_setups(ctx)
    } else {
        let named = args.clients.iter().filter_map(|id| setup::clients::find_client(id));
        named.map(|client| (client, None)).collect()
    };
    if found.is_empty() {
        writeln!(ui.out, "No clients to set up; `rep setup` lists those that are supported.")?;
    }
    let mut exit = CliExit::Done;
    for (client, file) in found {
        if answers == InitAnswers::Asked && args.clients.is_empty() {
            let place: Utf8PathBuf = file.unwrap_or_default();
            let place = ctx.config.places().shorten_path(&place);
            let question =
                format!("Let {} use the skills (adds an entry to {place})?", client.name);
            if !ui.ask_yes_by_default(&question)? {
                continue;
            }
        }
        if let Err(failure) = setup::set_up_client(ctx, client, ui) {
            ui.print_warning(&failure.message)?;
            for hint in &failure.hints {
                ui.print_note(&format!("hint: {hint}"))?;
            }
            exit = CliExit::CannotRun;
        }
    }
    Ok(exit)
}

fn print_next(
    ctx: &CliContext<'_>,
    has_checks: bool,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    use repertoire_skill::skill::Scope;
    let catalog = ctx.load_catalog()?;
    let has_skills = catalog.entries().iter().any(|e| e.skill.origin.scope == Scope::Project);
    let mut rows = Vec::new();
    if has_skills {
        rows.push(("rep lint", "check the project's skills"));
    } else {
        rows.push(("rep new NAME", "create the project's first skill"));
    }
    rows.push(("rep match \"TASK\"", "see which skills a task needs"));
    if has_checks {
        rows.push(("rep verify", "run the checks; it shows them and asks for your consent once"));
    }
    rows.push(("rep doctor", "see which skills your agents see"));
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Next"))?;
    for (command, about) in rows {
        let command = ui.paint(ui::ACCENT, ui::pad_columns(command, 16));
        writeln!(ui.out, "  {command}  {about}")?;
    }
    Ok(())
}
