//! The command line: global options, the list of commands, and the dispatch to each command's
//! `run`.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::ops::Deref;
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueEnum};
use repertoire::config::{ConfigFlags, RepConfig};
use repertoire::context::AppContext;
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::{ContentDigest, InvalidDigest};
use repertoire_text::terminal::printable_line;

use crate::commands;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::logging::{LogFormat, start_logging};
use crate::ui::{self, TerminalUi};

const AFTER_HELP: &str = "\
Examples:
  rep demo                     see it work, in a temporary folder
  rep list                     what is there, and what lost or broke
  rep match \"fill in a form\"   which skills a task needs, and why
  rep lint --fix .claude       check skills and mend what is certain
  rep read pdf-processing      hand a skill to an agent
  rep run \"fix the test\"       let an agent do it, with the skills it needs

Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 could not run.";

const GLOBAL: &str = "Options of every command";

/// Find, check and serve skills for AI agents
#[derive(Debug, Parser)]
#[command(name = "rep", version, after_help = AFTER_HELP, max_term_width = 100, disable_help_subcommand = true)]
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
    /// Walk through the main features in a temporary folder
    Demo(commands::demo::DemoArgs),
    /// List skills by root, including shadowed and broken ones
    #[command(visible_alias = "ls")]
    List(commands::list::SkillListArgs),
    /// Show all details of a skill
    Show(commands::show::SkillShowArgs),
    /// Pick the skills that a task needs, and explain why
    Match(commands::matching::MatchArgs),
    /// Print skills for an agent to read
    Read(commands::read::ReadArgs),
    /// Check skills, and apply safe fixes
    Lint(commands::lint::LintArgs),
    /// Measure how well skills are picked for labelled queries
    Eval(commands::eval::EvalArgs),
    /// Write the list of skills into AGENTS.md
    Sync(commands::sync::SyncArgs),
    /// Print the catalog for a system prompt
    ToPrompt(commands::to_prompt::ToPromptArgs),
    /// Print a skill's properties as JSON
    Props(commands::props::PropsArgs),
    /// Show the dependencies between skills
    Deps(commands::deps::DepsArgs),
    /// Create a new skill
    New(commands::new::NewArgs),
    /// Generate documentation for the skills
    Docs(commands::docs::DocsArgs),
    /// Trust the current version of a skill from a project or plugin
    Trust(commands::trust::TrustArgs),
    /// Have an agent do a task, with the skills that it needs
    Run(Box<commands::run::RunArgs>),
    /// Chat with an agent
    Chat(Box<commands::chat::ChatArgs>),
    /// Execute one skill or sub-agent
    Exec(Box<commands::exec::ExecArgs>),
    /// List agents, or show one
    Agents(commands::agents::AgentsArgs),
    /// List the tools available to agents
    Tools(commands::tools::ToolsArgs),
    /// List conversations that can be resumed, or remove some
    Conversations(commands::conversations::ConversationsArgs),
    /// Review a change: agents report findings, the engine checks them
    Review(Box<commands::review::ReviewArgs>),
    /// Run workflows: steps, reviews and gates that the engine enforces
    #[command(visible_alias = "wf")]
    Workflow(commands::workflow::WorkflowArgs),
    /// Run plans: checklists that agents work through
    Plan(Box<commands::plan::PlanArgs>),
    /// Respond to GitHub events, or preview the response
    Github(Box<commands::github::GithubArgs>),
    /// Run the declared checks, and report what failed and what to fix first
    Verify(Box<commands::verify::VerifyArgs>),
    /// List, show and control runs
    Runs(commands::runs::RunsArgs),
    /// Print events, one per line
    Events(commands::events::EventsArgs),
    /// Rebuild runs from their events and report differences
    Replay(commands::replay::ReplayArgs),
    /// Show past failures of checks and the fixes that worked
    Memory(commands::memory::MemoryArgs),
    /// List failed events that need a person (dead letters)
    Dlq(commands::dlq::DlqArgs),
    /// Print metrics in the Prometheus format
    Metrics(commands::metrics::MetricsArgs),
    /// Work on queued runs until stopped
    Daemon(commands::worker::DaemonArgs),
    /// Work on queued runs of a database that many hosts share
    Worker(commands::worker::WorkerArgs),
    /// Serve the web page, the API and MCP over HTTP on this machine
    Serve(commands::serve::ServeArgs),
    /// Serve skills to one agent over MCP, on standard input and output
    Mcp(commands::mcp::McpArgs),
    /// Add `rep mcp` to an agent's configuration, check it, or remove it
    Setup(commands::setup::SetupArgs),
    /// Explain which skills an agent would see, which it would not, and why
    Doctor(commands::doctor::DoctorArgs),
    /// Print the configuration and the origin of each value
    Config(commands::config::ConfigArgs),
    /// Print completions for a shell
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page
    Man(commands::man::ManArgs),
    /// Alias of `rep runs pause`
    #[command(hide = true)]
    Pause(commands::runs::control::RunsPauseArgs),
    /// Alias of `rep runs resume`
    #[command(hide = true)]
    Resume(commands::runs::control::RunsResumeArgs),
    /// Alias of `rep runs cancel`
    #[command(hide = true)]
    Cancel(commands::runs::control::RunsCancelArgs),
    /// Alias of `rep runs retry`
    #[command(hide = true)]
    Retry(commands::runs::control::RunsRetryArgs),
    /// Alias of `rep runs steer`
    #[command(hide = true)]
    Steer(commands::runs::control::RunsSteerArgs),
    /// Alias of `rep runs diff`
    #[command(hide = true)]
    Diff(commands::runs::diff::RunsDiffArgs),
    /// Alias of `rep runs merge`
    #[command(hide = true)]
    Merge(commands::runs::merge::RunsMergeArgs),
}

impl RepCommand {
    /// Returns the command's name if it has no JSON output.
    fn text_only(&self) -> Option<&'static str> {
        match self {
            RepCommand::Demo(_) => Some("demo"),
            RepCommand::Docs(_) => Some("docs"),
            RepCommand::Completions(_) => Some("completions"),
            RepCommand::Man(_) => Some("man"),
            RepCommand::Chat(_) => Some("chat"),
            RepCommand::Metrics(_) => Some("metrics"),
            RepCommand::Mcp(_) => Some("mcp"),
            RepCommand::List(_)
            | RepCommand::Show(_)
            | RepCommand::Match(_)
            | RepCommand::Read(_)
            | RepCommand::Lint(_)
            | RepCommand::Eval(_)
            | RepCommand::Sync(_)
            | RepCommand::ToPrompt(_)
            | RepCommand::Props(_)
            | RepCommand::Deps(_)
            | RepCommand::New(_)
            | RepCommand::Trust(_)
            | RepCommand::Doctor(_)
            | RepCommand::Run(_)
            | RepCommand::Exec(_)
            | RepCommand::Agents(_)
            | RepCommand::Tools(_)
            | RepCommand::Conversations(_)
            | RepCommand::Review(_)
            | RepCommand::Workflow(_)
            | RepCommand::Plan(_)
            | RepCommand::Github(_)
            | RepCommand::Verify(_)
            | RepCommand::Runs(_)
            | RepCommand::Events(_)
            | RepCommand::Replay(_)
            | RepCommand::Memory(_)
            | RepCommand::Dlq(_)
            | RepCommand::Pause(_)
            | RepCommand::Resume(_)
            | RepCommand::Cancel(_)
            | RepCommand::Retry(_)
            | RepCommand::Steer(_)
            | RepCommand::Diff(_)
            | RepCommand::Merge(_)
            | RepCommand::Daemon(_)
            | RepCommand::Worker(_)
            | RepCommand::Serve(_)
            | RepCommand::Setup(_)
            | RepCommand::Config(_) => None,
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
    RepCli::command()
}

/// Runs a command line and returns the process exit code.
pub fn main(env: &CliEnvironment, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match RepCli::try_parse_from(args) {
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
    let cli =
        RepCli::try_parse_from(args).map_err(|error| CliFailure::wrong_usage(error.to_string()))?;
    run_command(env, cli, ui)
}

fn run_command(env: &CliEnvironment, cli: RepCli, ui: &mut TerminalUi<'_>) -> CliResult {
    let is_daemon =
        matches!(cli.command, RepCommand::Serve(_) | RepCommand::Worker(_) | RepCommand::Daemon(_));
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
            | RepCommand::Man(_)
            | RepCommand::Github(_)
            | RepCommand::Doctor(_)
    );
    if !needs_configuration {
        start_logging(env, cli.log, format, None)?;
    }
    // Commands that need no configuration still work when it is broken.
    match &cli.command {
        RepCommand::Demo(args) => return commands::demo::run(env, args, ui),
        RepCommand::Completions(args) => return commands::completions::run(args, ui),
        RepCommand::Man(args) => return commands::man::run(env, args, ui),
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
        RepCommand::Show(args) => commands::show::run(ctx, &args, ui),
        RepCommand::Match(args) => commands::matching::run(ctx, &args, ui),
        RepCommand::Read(args) => commands::read::run(ctx, &args, ui),
        RepCommand::Lint(args) => commands::lint::run(ctx, &args, ui),
        RepCommand::Eval(args) => commands::eval::run(ctx, &args, ui),
        RepCommand::Sync(args) => commands::sync::run(ctx, &args, ui),
        RepCommand::ToPrompt(args) => commands::to_prompt::run(ctx, &args, ui),
        RepCommand::Props(args) => commands::props::run(ctx, &args, ui),
        RepCommand::Deps(args) => commands::deps::run(ctx, &args, ui),
        RepCommand::New(args) => commands::new::run(ctx, &args, ui),
        RepCommand::Docs(args) => commands::docs::run(ctx, &args, ui),
        RepCommand::Trust(args) => commands::trust::run(ctx, &args, ui),
        RepCommand::Run(args) => commands::run::run(ctx, &args, ui),
        RepCommand::Chat(args) => commands::chat::run(ctx, &args, ui),
        RepCommand::Exec(args) => commands::exec::run(ctx, &args, ui),
        RepCommand::Agents(args) => commands::agents::run(ctx, &args, ui),
        RepCommand::Tools(args) => commands::tools::run(ctx, &args, ui),
        RepCommand::Conversations(args) => commands::conversations::run(ctx, &args, ui),
        RepCommand::Review(args) => commands::review::run(ctx, &args, ui),
        RepCommand::Workflow(args) => commands::workflow::run(ctx, &args, ui),
        RepCommand::Plan(args) => commands::plan::run(ctx, &args, ui),
        RepCommand::Verify(args) => commands::verify::run(ctx, &args, ui),
        RepCommand::Runs(args) => commands::runs::run(ctx, &args, ui),
        RepCommand::Memory(args) => commands::memory::run(ctx, &args, ui),
        RepCommand::Dlq(args) => commands::dlq::run(ctx, &args, ui),
        RepCommand::Events(args) => commands::events::run(ctx, &args, ui),
        RepCommand::Replay(args) => commands::replay::run(ctx, &args, ui),
        RepCommand::Metrics(args) => commands::metrics::run(ctx, &args, ui),
        RepCommand::Pause(args) => commands::runs::control::pause_run(ctx, &args, ui),
        RepCommand::Resume(args) => commands::runs::control::resume_run(ctx, &args, ui),
        RepCommand::Cancel(args) => commands::runs::control::cancel_run(ctx, &args, ui),
        RepCommand::Retry(args) => commands::runs::control::retry_run(ctx, &args, ui),
        RepCommand::Steer(args) => commands::runs::control::steer_run(ctx, &args, ui),
        RepCommand::Diff(args) => commands::runs::diff::run(ctx, &args, ui),
        RepCommand::Merge(args) => commands::runs::merge::run(ctx, &args, ui),
        RepCommand::Daemon(args) => commands::worker::run_daemon(ctx, &args, ui),
        RepCommand::Worker(args) => commands::worker::run_worker(ctx, &args, ui),
        RepCommand::Serve(args) => commands::serve::run(ctx, &args, ui),
        RepCommand::Mcp(args) => commands::mcp::run(ctx, &args, ui),
        RepCommand::Setup(args) => commands::setup::run(ctx, &args, ui),
        RepCommand::Config(args) => commands::config::run(ctx, &args, ui),
        RepCommand::Demo(_)
        | RepCommand::Completions(_)
        | RepCommand::Man(_)
        | RepCommand::Github(_)
        | RepCommand::Doctor(_) => Ok(CliExit::Done),
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
