//! The command line: global options, the list of commands, and the dispatch to each command's
//! `run`.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::ops::Deref;
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use repertoire::config::{ConfigFlags, RepConfig};
use repertoire::context::AppContext;
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::{ContentDigest, InvalidDigest};
use repertoire_text::terminal::printable_line;

use crate::commands;
use crate::completion;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::logging::{LogFormat, start_logging};
use crate::ui::{self, TerminalUi};

mod help;
mod old_names;
mod unknown_command;

use old_names::OldCommand;

const AFTER_HELP: &str = "\
Examples:
  rep demo                     try it in a temporary folder
  rep init                     set up the project that you are in
  rep list                     list your skills, and those that do not load
  rep match \"fill in a form\"   see which skills a task needs, and why
  rep lint --fix .claude       check skills and fix what can be fixed safely
  rep run \"fix the test\"       have an agent do it, with the skills it needs
  rep plan run                 have an agent work through PLAN.md
  rep help runs show           help on one command

Exit codes: 0 success, 1 negative answer, 2 usage error, 3 could not run.";

/// Maximum width of help, in columns.
const HELP_COLUMNS_MAX: usize = 100;

const GLOBAL: &str = "Options of every command";

/// Find, check and serve skills for AI agents
#[derive(Debug, Parser)]
#[command(name = "rep", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct RepCli {
    /// Emulate this agent's search paths, names and rules
    #[arg(long, global = true, value_enum, value_name = "PROFILE", help_heading = GLOBAL)]
    profile: Option<ProfileArg>,
    /// Search this folder too, before all others (may be repeated)
    #[arg(long = "root", global = true, value_name = "DIR", help_heading = GLOBAL)]
    roots: Vec<Utf8PathBuf>,
    /// Agree to the project's settings that start programs, if they have this digest (may be
    /// repeated); see `rep trust --project`
    #[arg(long = "consent", global = true, value_name = "DIGEST", value_parser = parse_digest, help_heading = GLOBAL)]
    consents: Vec<ContentDigest>,
    /// Print JSON
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = GLOBAL
    )]
    color: ColorArg,
    /// Work as if started in this folder
    #[arg(short = 'C', global = true, value_name = "DIR", help_heading = GLOBAL)]
    directory: Option<Utf8PathBuf>,
    /// Log to standard error what is done and how long it takes (twice: more)
    #[arg(long, global = true, action = ArgAction::Count, help_heading = GLOBAL)]
    log: u8,
    #[command(subcommand)]
    command: RepCommand,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ColorArg {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileArg {
    Repertoire,
    Agentskills,
    Openskills,
    Claude,
    Codex,
    Gemini,
}

impl From<ProfileArg> for ProfileId {
    fn from(arg: ProfileArg) -> Self {
        match arg {
            ProfileArg::Repertoire => ProfileId::Repertoire,
            ProfileArg::Agentskills => ProfileId::Agentskills,
            ProfileArg::Openskills => ProfileId::Openskills,
            ProfileArg::Claude => ProfileId::Claude,
            ProfileArg::Codex => ProfileId::Codex,
            ProfileArg::Gemini => ProfileId::Gemini,
        }
    }
}

#[derive(Debug, Subcommand)]
enum RepCommand {
    /// List skills by root, including shadowed and broken ones
    #[command(visible_alias = "ls")]
    List(commands::list::SkillListArgs),
    /// Pick the skills that a task needs, and explain why
    Match(commands::matching::MatchArgs),
    /// Show a skill, its dependencies, or documentation of all skills
    Show(commands::show::SkillShowArgs),
    /// Print skills for an agent to read
    Read(commands::read::ReadArgs),
    /// Check skills, and apply safe fixes
    Lint(commands::lint::LintArgs),
    /// Create a new skill
    New(commands::new::NewArgs),
    /// Trust the current version of a skill from a project or plugin
    Trust(commands::trust::TrustArgs),
    /// Write the list of skills into AGENTS.md, or print it
    Sync(commands::sync::SyncArgs),
    /// Measure how well skills are picked for labelled queries
    Eval(commands::eval::EvalArgs),
    /// Have an agent do a task, with the skills that it needs
    Run(Box<commands::run::RunArgs>),
    /// Chat with an agent
    Chat(Box<commands::chat::ChatArgs>),
    /// List agents and their tools, or show one agent
    Agents(commands::agents::AgentsArgs),
    /// Connect an agent that you already have, over MCP
    Setup(commands::setup::SetupArgs),
    /// Run plans: checklists that agents work through
    Plan(Box<commands::plan::PlanArgs>),
    /// Review a change: agents report findings, the engine checks them
    Review(Box<commands::review::ReviewArgs>),
    /// Run workflows: steps, reviews and gates that the engine enforces
    #[command(visible_alias = "wf")]
    Workflow(commands::workflow::WorkflowArgs),
    /// Run the declared checks, and report what failed and what to fix first
    Verify(Box<commands::verify::VerifyArgs>),
    /// List, show and control runs of every kind
    Runs(commands::runs::RunsArgs),
    /// Respond to GitHub events, or preview the response
    Github(Box<commands::github::GithubArgs>),
    /// Serve the web page, the API and MCP over HTTP on this machine
    Serve(commands::serve::ServeArgs),
    /// Serve skills to one agent over MCP, on standard input and output
    Mcp(commands::mcp::McpArgs),
    /// Work on queued runs until stopped
    Daemon(commands::daemon::DaemonArgs),
    /// Set up a project: write `repertoire.toml`, and connect the agents that are installed
    Init(commands::init::InitArgs),
    /// Explain which skills an agent sees, which it does not, and why
    Doctor(commands::doctor::DoctorArgs),
    /// Print the configuration and the origin of each value
    Config(commands::config::ConfigArgs),
    /// Print completions for a shell, or the manual page
    Completions(commands::completions::CompletionsArgs),
    /// Try the main features in a temporary folder
    Demo(commands::demo::DemoArgs),
    #[command(flatten)]
    Old(OldCommand),
    /// A word that is no command
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

impl RepCommand {
    /// Returns the command's name if it has no JSON output.
    fn text_only(&self) -> Option<&'static str> {
        match self {
            RepCommand::Demo(_) => Some("demo"),
            RepCommand::Completions(_) => Some("completions"),
            RepCommand::Chat(_) => Some("chat"),
            RepCommand::Init(_) => Some("init"),
            RepCommand::Mcp(_) => Some("mcp"),
            RepCommand::Show(args) => args.text_only(),
            RepCommand::Runs(args) => args.text_only(),
            RepCommand::Old(old) => old.text_only(),
            RepCommand::List(_)
            | RepCommand::Match(_)
            | RepCommand::Read(_)
            | RepCommand::Lint(_)
            | RepCommand::New(_)
            | RepCommand::Trust(_)
            | RepCommand::Sync(_)
            | RepCommand::Eval(_)
            | RepCommand::Run(_)
            | RepCommand::Agents(_)
            | RepCommand::Setup(_)
            | RepCommand::Plan(_)
            | RepCommand::Review(_)
            | RepCommand::Workflow(_)
            | RepCommand::Verify(_)
            | RepCommand::Github(_)
            | RepCommand::Serve(_)
            | RepCommand::Daemon(_)
            | RepCommand::Doctor(_)
            | RepCommand::Config(_)
            | RepCommand::Unknown(_) => None,
        }
    }
}

/// The context passed to every command besides its own arguments.
pub(crate) struct CliContext<'a> {
    pub(crate) env: &'a CliEnvironment,
    /// The part without terminals.
    pub(crate) app: AppContext<'a>,
}

impl<'a> CliContext<'a> {
    pub(crate) fn new(env: &'a CliEnvironment, config: RepConfig) -> Self {
        CliContext { env, app: AppContext { env, config } }
    }
}

impl<'a> Deref for CliContext<'a> {
    type Target = AppContext<'a>;

    fn deref(&self) -> &AppContext<'a> {
        &self.app
    }
}

/// Returns the definition of the whole command line, for documentation and completions.
pub fn build_clap_command() -> clap::Command {
    help::group_commands(RepCli::command(), HELP_COLUMNS_MAX)
}

/// Parses the arguments, with help that fits the terminal.
fn parse_args<I>(columns: usize, args: I) -> Result<RepCli, clap::Error>
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    let mut command = help::group_commands(RepCli::command(), columns.min(HELP_COLUMNS_MAX));
    let matches = command.try_get_matches_from_mut(args)?;
    RepCli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Runs a command line and returns the process exit code.
pub fn main(env: &CliEnvironment, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Some(shell) = env.var(completion::VARIABLE).filter(|shell| !shell.is_empty()) {
        return match completion::answer_shell(env, shell, args) {
            Ok(exit) => to_exit_code(exit),
            Err(failure) => report_early(&failure),
        };
    }
    let cli = match parse_args(env.columns, args) {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { CliExit::Usage } else { CliExit::Done };
            // Failing to print the help (a closed pipe) is not an error.
            let _ = error.print();
            return to_exit_code(exit);
        }
    };
    if let RepCommand::Github(args) = &cli.command
        && args.works_on_events()
    {
        repertoire::env::secret_handover::become_without_secrets_in_environment();
    }
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    let mut err = std::io::stderr().lock();
    let colour = match cli.color {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => wants_colour(env, env.is_terminal),
    };
    let err_colour = match cli.color {
        ColorArg::Auto => wants_colour(env, env.stderr_is_terminal),
        ColorArg::Always | ColorArg::Never => colour,
    };
    let (columns, json) = (env.columns, cli.json);
    let mut ui = TerminalUi { out: &mut out, err: &mut err, colour, err_colour, columns, json };
    if let Some(problem) = &env.program_problem {
        let head = ui.paint_err(ui::WARN, "warning:");
        // A closed stream is no reason not to run the command.
        let _ = ui.print_note(&format!("{head} {problem}"));
    }
    let outcome = run_command(env, cli, &mut ui);
    let outcome = match out.flush() {
        Err(error) if outcome.is_ok() => Err(error.into()),
        _ => outcome,
    };
    match outcome {
        Ok(exit) => to_exit_code(exit),
        Err(failure) if failure.exit == CliExit::Done => ExitCode::SUCCESS,
        Err(failure) => {
            let colour = err_colour && env.stderr_is_terminal;
            print_failure(&mut err, &failure, colour);
            to_exit_code(failure.exit)
        }
    }
}

/// Reports a failure that happened before the command line was parsed.
pub fn report_early(failure: &CliFailure) -> ExitCode {
    print_failure(&mut std::io::stderr().lock(), failure, false);
    to_exit_code(failure.exit)
}

/// Runs one command line with the given output streams, for the demo and for tests.
pub fn run_in(env: &CliEnvironment, args: &[&str], ui: &mut TerminalUi<'_>) -> CliResult {
    let args = std::iter::once("rep").chain(args.iter().copied());
    let cli = parse_args(env.columns, args)
        .map_err(|error| CliFailure::wrong_usage(error.to_string()))?;
    run_command(env, cli, ui)
}

fn run_command(env: &CliEnvironment, cli: RepCli, ui: &mut TerminalUi<'_>) -> CliResult {
    if let RepCommand::Unknown(words) = &cli.command {
        return Err(unknown_command::explain(words));
    }
    let is_daemon = match &cli.command {
        RepCommand::Serve(_) | RepCommand::Daemon(_) => true,
        RepCommand::Old(old) => matches!(old, OldCommand::Worker(_)),
        _ => false,
    };
    let format =
        if is_daemon && !env.stderr_is_terminal { LogFormat::Json } else { LogFormat::Text };
    let here = match &cli.directory {
        None => env.here.clone(),
        Some(dir) => resolve_folder(env, dir, "-C")?,
    };
    let env = &match &cli.directory {
        None => env.clone(),
        Some(_) => env.in_folder(&here),
    };
    for root in &cli.roots {
        resolve_folder(env, root, "--root")?;
    }
    let flags = ConfigFlags {
        profile: cli.profile.map(ProfileId::from),
        roots: cli.roots.iter().map(|root| here.join(root)).collect(),
        consents: cli.consents.clone(),
    };
    if ui.json
        && let Some(name) = cli.command.text_only()
    {
        return Err(CliFailure::wrong_usage(format!("`rep {name}` has no JSON output"))
            .hint("Leave out `--json`."));
    }
    let needs_configuration = !matches!(
        cli.command,
        RepCommand::Demo(_)
            | RepCommand::Completions(_)
            | RepCommand::Old(OldCommand::Man(_))
            | RepCommand::Github(_)
            | RepCommand::Doctor(_)
    );
    if !needs_configuration {
        start_logging(env, cli.log, format, None)?;
    }
    // Commands that need no configuration still work when it is broken.
    match &cli.command {
        RepCommand::Demo(args) => return commands::demo::run(env, args, ui),
        RepCommand::Completions(args) => return commands::completions::run(env, args, ui),
        RepCommand::Old(OldCommand::Man(args)) => {
            return commands::completions::man::run(env, args, ui);
        }
        RepCommand::Github(args) => return commands::github::run(env, &flags, args, ui),
        RepCommand::Doctor(args) => {
            let (config, problems) = RepConfig::load_reporting(env, &here, &flags);
            let problems: Vec<CliFailure> = problems.into_iter().map(CliFailure::from).collect();
            return commands::doctor::run(&CliContext::new(env, config), &problems, args, ui);
        }
        _ => {}
    }
    let ctx = CliContext::new(env, RepConfig::load(env, &here, &flags)?);
    let (layer, export) = ctx.start_telemetry()?.unzip();
    start_logging(env, cli.log, format, layer)?;
    let outcome = run_configured(&ctx, cli.command, ui);
    if let Some(export) = export {
        export.finish();
    }
    outcome
}

/// Runs a command that needs the configuration.
fn run_configured(ctx: &CliContext<'_>, command: RepCommand, ui: &mut TerminalUi<'_>) -> CliResult {
    match command {
        RepCommand::List(args) => commands::list::run(ctx, &args, ui),
        RepCommand::Match(args) => commands::matching::run(ctx, &args, ui),
        RepCommand::Show(args) => commands::show::run(ctx, &args, ui),
        RepCommand::Read(args) => commands::read::run(ctx, &args, ui),
        RepCommand::Lint(args) => commands::lint::run(ctx, &args, ui),
        RepCommand::New(args) => commands::new::run(ctx, &args, ui),
        RepCommand::Trust(args) => commands::trust::run(ctx, &args, ui),
        RepCommand::Sync(args) => commands::sync::run(ctx, &args, ui),
        RepCommand::Eval(args) => commands::eval::run(ctx, &args, ui),
        RepCommand::Run(args) => commands::run::run(ctx, &args, ui),
        RepCommand::Chat(args) => commands::chat::run(ctx, &args, ui),
        RepCommand::Agents(args) => commands::agents::run(ctx, &args, ui),
        RepCommand::Setup(args) => commands::setup::run(ctx, &args, ui),
        RepCommand::Plan(args) => commands::plan::run(ctx, &args, ui),
        RepCommand::Review(args) => commands::review::run(ctx, &args, ui),
        RepCommand::Workflow(args) => commands::workflow::run(ctx, &args, ui),
        RepCommand::Verify(args) => commands::verify::run(ctx, &args, ui),
        RepCommand::Runs(args) => commands::runs::run(ctx, &args, ui),
        RepCommand::Serve(args) => commands::serve::run(ctx, &args, ui),
        RepCommand::Mcp(args) => commands::mcp::run(ctx, &args, ui),
        RepCommand::Daemon(args) => commands::daemon::run(ctx, &args, ui),
        RepCommand::Init(args) => commands::init::run(ctx, &args, ui),
        RepCommand::Config(args) => commands::config::run(ctx, &args, ui),
        RepCommand::Old(old) => old.run(ctx, ui),
        RepCommand::Demo(_)
        | RepCommand::Completions(_)
        | RepCommand::Github(_)
        | RepCommand::Doctor(_)
        | RepCommand::Unknown(_) => Ok(CliExit::Done),
    }
}

/// Parses a digest given on the command line.
fn parse_digest(text: &str) -> Result<ContentDigest, InvalidDigest> {
    text.parse()
}

/// Resolves a folder given on the command line, which must exist.
fn resolve_folder(
    env: &CliEnvironment,
    dir: &Utf8Path,
    flag: &str,
) -> Result<Utf8PathBuf, CliFailure> {
    let real = env.here.join(dir).canonicalize_utf8().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            CliFailure::wrong_usage(format!("`{flag} {dir}`: there is no such folder"))
        }
        _ => CliFailure::wrong_usage(format!("`{flag} {dir}` cannot be entered: {error}")),
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(CliFailure::wrong_usage(format!("`{flag} {dir}`: this is not a folder"))
            .hint("Name the folder that the file is in."))
    }
}

fn wants_colour(env: &CliEnvironment, is_terminal: bool) -> bool {
    if env.var("NO_COLOR").is_some() {
        return false;
    }
    env.var("CLICOLOR_FORCE").is_some_and(|value| value != "0")
        || (is_terminal && env.var("TERM") != Some("dumb"))
}

/// Prints a failure with its hints.
pub(crate) fn print_failure(err: &mut dyn Write, failure: &CliFailure, colour: bool) {
    // If writing to standard error fails, the exit code is all that is left to report with.
    let label = paint_if(colour, ui::BAD, "error:");
    let _ = writeln!(err, "{label} {}", printable_line(&failure.message));
    for hint in &failure.hints {
        let label = paint_if(colour, ui::ACCENT, "hint:");
        let _ = writeln!(err, "{label} {}", printable_line(hint));
    }
}

fn paint_if(colour: bool, style: anstyle::Style, text: &str) -> String {
    if colour {
        format!("{}{text}{}", style.render(), style.render_reset())
    } else {
        text.to_owned()
    }
}

fn to_exit_code(exit: CliExit) -> ExitCode {
    ExitCode::from(exit as u8)
}
