//! The command line: global options, the list of commands, and the dispatch to each command's
//! `run`.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::{Digest, NotADigest};
use repertoire_text::terminal::printable;

use crate::commands;
use crate::config::{Config, Flags};
use crate::env::Env;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::{self, Ui};

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
pub struct Cli {
    /// Emulate this agent's search paths, names and rules
    #[arg(long, global = true, value_enum, value_name = "PROFILE", help_heading = GLOBAL)]
    profile: Option<ProfileArg>,
    /// Search this folder too, before all others (may be repeated)
    #[arg(long = "root", global = true, value_name = "DIR", help_heading = GLOBAL)]
    roots: Vec<Utf8PathBuf>,
    /// Agree to the project's settings that start programs, if they have this digest (may be
    /// repeated); see `rep trust --project`
    #[arg(long = "consent", global = true, value_name = "DIGEST", value_parser = digest, help_heading = GLOBAL)]
    consents: Vec<Digest>,
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
    #[command(subcommand)]
    command: Command,
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
enum Command {
    /// Walk through the main features in a temporary folder
    Demo(commands::demo::Args),
    /// List skills by root, including shadowed and broken ones
    #[command(visible_alias = "ls")]
    List(commands::list::Args),
    /// Show all details of a skill
    Show(commands::show::Args),
    /// Pick the skills that a task needs, and explain why
    Match(commands::matching::Args),
    /// Print skills for an agent to read
    Read(commands::read::Args),
    /// Check skills, and apply safe fixes
    Lint(commands::lint::Args),
    /// Measure how well skills are picked for labelled queries
    Eval(commands::eval::Args),
    /// Write the list of skills into AGENTS.md
    Sync(commands::sync::Args),
    /// Print the catalog for a system prompt
    ToPrompt(commands::to_prompt::Args),
    /// Print a skill's properties as JSON
    Props(commands::props::Args),
    /// Show the dependencies between skills
    Deps(commands::deps::Args),
    /// Create a new skill
    New(commands::new::Args),
    /// Generate documentation for the skills
    Docs(commands::docs::Args),
    /// Trust the current version of a skill from a project or plugin
    Trust(commands::trust::Args),
    /// Have an agent do a task, with the skills that it needs
    Run(Box<commands::run::Args>),
    /// Chat with an agent
    Chat(Box<commands::chat::Args>),
    /// Execute one skill or sub-agent
    Exec(Box<commands::exec::Args>),
    /// List agents, or show one
    Agents(commands::agents::Args),
    /// List the tools available to agents
    Tools(commands::tools::Args),
    /// List conversations that can be resumed, or remove some
    Conversations(commands::conversations::Args),
    /// Review a change: agents report findings, the engine checks them
    Review(Box<commands::review::Args>),
    /// Run workflows: steps, reviews and gates that the engine enforces
    #[command(visible_alias = "wf")]
    Workflow(commands::workflow::Args),
    /// Run plans: checklists that agents work through
    Plan(Box<commands::plan::Args>),
    /// Respond to GitHub events, or preview the response
    Github(Box<commands::github::Args>),
    /// Run the declared checks, and report what failed and what to fix first
    Verify(Box<commands::verify::Args>),
    /// List, show and control runs
    Runs(commands::runs::Args),
    /// Print events, one per line
    Events(commands::events::Args),
    /// Rebuild runs from their events and report differences
    Replay(commands::replay::Args),
    /// Show past failures of checks and the fixes that worked
    Memory(commands::memory::Args),
    /// List failed events that need a person (dead letters)
    Dlq(commands::dlq::Args),
    /// Print metrics in the Prometheus format
    Metrics(commands::metrics::Args),
    /// Work on queued runs until stopped
    Daemon(commands::worker::DaemonArgs),
    /// Work on queued runs of a database that many hosts share
    Worker(commands::worker::WorkerArgs),
    /// Serve the web page, the API and MCP over HTTP on this machine
    Serve(commands::serve::Args),
    /// Serve skills to one agent over MCP, on standard input and output
    Mcp(commands::mcp::Args),
    /// Add `rep mcp` to an agent's configuration, check it, or remove it
    Setup(commands::setup::Args),
    /// Explain which skills an agent would see, which it would not, and why
    Doctor(commands::doctor::Args),
    /// Print the configuration and the origin of each value
    Config(commands::config::Args),
    /// Print completions for a shell
    Completions(commands::completions::Args),
    /// Print the manual page
    Man(commands::man::Args),
    /// Alias of `rep runs pause`
    #[command(hide = true)]
    Pause(commands::runs::order::PauseArgs),
    /// Alias of `rep runs resume`
    #[command(hide = true)]
    Resume(commands::runs::order::ResumeArgs),
    /// Alias of `rep runs cancel`
    #[command(hide = true)]
    Cancel(commands::runs::order::CancelArgs),
    /// Alias of `rep runs retry`
    #[command(hide = true)]
    Retry(commands::runs::order::RetryArgs),
    /// Alias of `rep runs steer`
    #[command(hide = true)]
    Steer(commands::runs::order::SteerArgs),
    /// Alias of `rep runs diff`
    #[command(hide = true)]
    Diff(commands::runs::diff::Args),
    /// Alias of `rep runs merge`
    #[command(hide = true)]
    Merge(commands::runs::merge::Args),
}

impl Command {
    /// Returns the command's name if it has no JSON output.
    fn text_only(&self) -> Option<&'static str> {
        match self {
            Command::Demo(_) => Some("demo"),
            Command::Docs(_) => Some("docs"),
            Command::Completions(_) => Some("completions"),
            Command::Man(_) => Some("man"),
            Command::Chat(_) => Some("chat"),
            Command::Metrics(_) => Some("metrics"),
            Command::Mcp(_) => Some("mcp"),
            Command::List(_)
            | Command::Show(_)
            | Command::Match(_)
            | Command::Read(_)
            | Command::Lint(_)
            | Command::Eval(_)
            | Command::Sync(_)
            | Command::ToPrompt(_)
            | Command::Props(_)
            | Command::Deps(_)
            | Command::New(_)
            | Command::Trust(_)
            | Command::Doctor(_)
            | Command::Run(_)
            | Command::Exec(_)
            | Command::Agents(_)
            | Command::Tools(_)
            | Command::Conversations(_)
            | Command::Review(_)
            | Command::Workflow(_)
            | Command::Plan(_)
            | Command::Github(_)
            | Command::Verify(_)
            | Command::Runs(_)
            | Command::Events(_)
            | Command::Replay(_)
            | Command::Memory(_)
            | Command::Dlq(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Cancel(_)
            | Command::Retry(_)
            | Command::Steer(_)
            | Command::Diff(_)
            | Command::Merge(_)
            | Command::Daemon(_)
            | Command::Worker(_)
            | Command::Serve(_)
            | Command::Setup(_)
            | Command::Config(_) => None,
        }
    }
}

/// The context passed to every command besides its own arguments.
pub(crate) struct Ctx<'a> {
    pub(crate) env: &'a Env,
    pub(crate) config: Config,
}

/// Returns the definition of the whole command line, for documentation and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs a command line and returns the process exit code.
pub fn main(env: &Env, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            // Failing to print the help (a closed pipe) is not an error.
            let _ = error.print();
            return code(exit);
        }
    };
    if let Command::Github(args) = &cli.command
        && args.works_on_events()
    {
        crate::env::handed_over::become_without_secrets_in_environment();
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
    let mut ui = Ui { out: &mut out, err: &mut err, colour, err_colour, columns, json };
    let outcome = run(env, cli, &mut ui);
    let outcome = match out.flush() {
        Err(error) if outcome.is_ok() => Err(error.into()),
        _ => outcome,
    };
    match outcome {
        Ok(exit) => code(exit),
        Err(failure) if failure.exit == Exit::Done => ExitCode::SUCCESS,
        Err(failure) => {
            let colour = err_colour && env.stderr_is_terminal;
            print_failure(&mut err, &failure, colour);
            code(failure.exit)
        }
    }
}

/// Reports a failure that happened before the command line was parsed.
pub fn report_early(failure: &Failure) -> ExitCode {
    print_failure(&mut std::io::stderr().lock(), failure, false);
    code(failure.exit)
}

/// Runs one command line with the given output streams, for the demo and for tests.
pub fn run_in(env: &Env, args: &[&str], ui: &mut Ui<'_>) -> Outcome {
    let args = std::iter::once("rep").chain(args.iter().copied());
    let cli = Cli::try_parse_from(args).map_err(|error| Failure::usage(error.to_string()))?;
    run(env, cli, ui)
}

fn run(env: &Env, cli: Cli, ui: &mut Ui<'_>) -> Outcome {
    let here = match &cli.directory {
        None => env.here.clone(),
        Some(dir) => folder(env, dir, "-C")?,
    };
    let moved = env.moved || cli.directory.is_some();
    let env = &Env { here: here.clone(), moved, ..env.clone() };
    for root in &cli.roots {
        folder(env, root, "--root")?;
    }
    let flags = Flags {
        profile: cli.profile.map(ProfileId::from),
        roots: cli.roots.iter().map(|root| here.join(root)).collect(),
        consents: cli.consents.clone(),
    };
    if ui.json
        && let Some(name) = cli.command.text_only()
    {
        return Err(
            Failure::usage(format!("`rep {name}` has no JSON output")).hint("Leave out `--json`.")
        );
    }
    // Commands that need no configuration still work when it is broken.
    match &cli.command {
        Command::Demo(args) => return commands::demo::run(env, args, ui),
        Command::Completions(args) => return commands::completions::run(args, ui),
        Command::Man(args) => return commands::man::run(env, args, ui),
        Command::Github(args) => return commands::github::run(env, &flags, args, ui),
        Command::Doctor(args) => {
            let (config, problems) = Config::load_reporting(env, &here, &flags);
            return commands::doctor::run(&Ctx { env, config }, &problems, args, ui);
        }
        _ => {}
    }
    let ctx = Ctx { env, config: Config::load(env, &here, &flags)? };
    match cli.command {
        Command::List(args) => commands::list::run(&ctx, &args, ui),
        Command::Show(args) => commands::show::run(&ctx, &args, ui),
        Command::Match(args) => commands::matching::run(&ctx, &args, ui),
        Command::Read(args) => commands::read::run(&ctx, &args, ui),
        Command::Lint(args) => commands::lint::run(&ctx, &args, ui),
        Command::Eval(args) => commands::eval::run(&ctx, &args, ui),
        Command::Sync(args) => commands::sync::run(&ctx, &args, ui),
        Command::ToPrompt(args) => commands::to_prompt::run(&ctx, &args, ui),
        Command::Props(args) => commands::props::run(&ctx, &args, ui),
        Command::Deps(args) => commands::deps::run(&ctx, &args, ui),
        Command::New(args) => commands::new::run(&ctx, &args, ui),
        Command::Docs(args) => commands::docs::run(&ctx, &args, ui),
        Command::Trust(args) => commands::trust::run(&ctx, &args, ui),
        Command::Run(args) => commands::run::run(&ctx, &args, ui),
        Command::Chat(args) => commands::chat::run(&ctx, &args, ui),
        Command::Exec(args) => commands::exec::run(&ctx, &args, ui),
        Command::Agents(args) => commands::agents::run(&ctx, &args, ui),
        Command::Tools(args) => commands::tools::run(&ctx, &args, ui),
        Command::Conversations(args) => commands::conversations::run(&ctx, &args, ui),
        Command::Review(args) => commands::review::run(&ctx, &args, ui),
        Command::Workflow(args) => commands::workflow::run(&ctx, &args, ui),
        Command::Plan(args) => commands::plan::run(&ctx, &args, ui),
        Command::Verify(args) => commands::verify::run(&ctx, &args, ui),
        Command::Runs(args) => commands::runs::run(&ctx, &args, ui),
        Command::Memory(args) => commands::memory::run(&ctx, &args, ui),
        Command::Dlq(args) => commands::dlq::run(&ctx, &args, ui),
        Command::Events(args) => commands::events::run(&ctx, &args, ui),
        Command::Replay(args) => commands::replay::run(&ctx, &args, ui),
        Command::Metrics(args) => commands::metrics::run(&ctx, &args, ui),
        Command::Pause(args) => commands::runs::order::pause(&ctx, &args, ui),
        Command::Resume(args) => commands::runs::order::resume(&ctx, &args, ui),
        Command::Cancel(args) => commands::runs::order::cancel(&ctx, &args, ui),
        Command::Retry(args) => commands::runs::order::retry(&ctx, &args, ui),
        Command::Steer(args) => commands::runs::order::steer(&ctx, &args, ui),
        Command::Diff(args) => commands::runs::diff::run(&ctx, &args, ui),
        Command::Merge(args) => commands::runs::merge::run(&ctx, &args, ui),
        Command::Daemon(args) => commands::worker::run_daemon(&ctx, &args, ui),
        Command::Worker(args) => commands::worker::run_worker(&ctx, &args, ui),
        Command::Serve(args) => commands::serve::run(&ctx, &args, ui),
        Command::Mcp(args) => commands::mcp::run(&ctx, &args, ui),
        Command::Setup(args) => commands::setup::run(&ctx, &args, ui),
        Command::Config(args) => commands::config::run(&ctx, &args, ui),
        Command::Demo(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Github(_)
        | Command::Doctor(_) => Ok(Exit::Done),
    }
}

/// Parses a digest given on the command line.
fn digest(text: &str) -> Result<Digest, NotADigest> {
    text.parse()
}

/// Resolves a folder given on the command line, which must exist.
fn folder(env: &Env, dir: &Utf8Path, flag: &str) -> Result<Utf8PathBuf, Failure> {
    let real = env.here.join(dir).canonicalize_utf8().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::usage(format!("`{flag} {dir}`: there is no such folder"))
        }
        _ => Failure::usage(format!("`{flag} {dir}` cannot be entered: {error}")),
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(Failure::usage(format!("`{flag} {dir}`: this is not a folder"))
            .hint("Name the folder that the file is in."))
    }
}

fn wants_colour(env: &Env, is_terminal: bool) -> bool {
    if env.var("NO_COLOR").is_some() {
        return false;
    }
    env.var("CLICOLOR_FORCE").is_some_and(|value| value != "0")
        || (is_terminal && env.var("TERM") != Some("dumb"))
}

fn print_failure(err: &mut dyn Write, failure: &Failure, colour: bool) {
    // If writing to standard error fails, the exit code is all that is left to report with.
    let label = paint_if(colour, ui::BAD, "error:");
    let _ = writeln!(err, "{label} {}", printable(&failure.message));
    for hint in &failure.hints {
        let label = paint_if(colour, ui::ACCENT, "hint:");
        let _ = writeln!(err, "{label} {}", printable(hint));
    }
}

fn paint_if(colour: bool, style: anstyle::Style, text: &str) -> String {
    if colour {
        format!("{}{text}{}", style.render(), style.render_reset())
    } else {
        text.to_owned()
    }
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}
