//! `rep run`: has an agent do a task, with the skills that it needs.

use std::io::Read;

use camino::Utf8PathBuf;
use repertoire::agent_setup::store_failure;
use repertoire::{ConversationDriver, ConversationStoreError, OpenConversation};
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::mcp::McpServers;
use repertoire_agent::middleware::TurnError;
use repertoire_agent::spending::LimitReached;
use repertoire_agent::{AgentRunError, AgentRunStatus, RunOptions, RunReport};
use repertoire_model::ResponseFormat;
use repertoire_text::fs;

use crate::agent_flags::RunFlags;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::foreground_run::{
    AlwaysAllowedCalls, ForegroundOutcome, ForegroundRun, StdinLines, UserPresence,
};
use crate::run_display::{RunDisplay, RunDisplayOptions, describe_error, short};
use crate::ui::TerminalUi;

mod preview;
pub(crate) mod skill;

/// The hint for a missing API key.
const DRY: &str = "`--dry-run` shows what would be sent, without a key.";
const SKILL: &str = "One skill";
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;
/// Time without standard input after which a note says that it is awaited; also the time for which a
/// dropped turn is stored.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Arguments of `rep run`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("executed").args(["skill", "capability"]))]
pub(crate) struct RunArgs {
    /// The task, in any words; `-` reads it from standard input; other piped input is appended to
    /// it
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    /// The agent (default: the one of the resumed conversation, or `default`)
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Execute this skill or sub-agent on the task, without a conversation
    #[arg(
        long,
        value_name = "SKILL",
        conflicts_with_all = ["agent", "resume", "dry_run", "schema", "thinking"],
        help_heading = SKILL
    )]
    skill: Option<String>,
    /// Execute the first agent with this capability on the task
    #[arg(
        long,
        value_name = "CAPABILITY",
        conflicts_with_all = ["skill", "agent", "resume", "dry_run", "schema", "thinking"],
        help_heading = SKILL
    )]
    capability: Option<String>,
    /// With `--skill` or `--capability`: a JSON file with context: task, github, execution,
    /// research, codeReview, planning
    #[arg(long, value_name = "FILE", requires = "executed", help_heading = SKILL)]
    context: Option<Utf8PathBuf>,
    /// Continue a conversation, given by its id, a prefix of the id, or `last`
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// Print the request without sending it
    #[arg(long)]
    dry_run: bool,
    /// A file with a JSON Schema that the answer must match
    #[arg(long, value_name = "FILE")]
    schema: Option<Utf8PathBuf>,
    /// Show the model's thinking
    #[arg(short = 'v', long, visible_alias = "verbose")]
    thinking: bool,
    #[command(flatten)]
    flags: RunFlags,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if let Some(execution) = skill_execution(args, ui)? {
        return skill::run(ctx, &execution, ui);
    }
    let prompt = read_prompt(ctx, args, ui)?;
    let mut options = ctx.run_options(&args.flags.to_options())?;
    options.format = args.schema.as_ref().map(|path| read_schema(ctx, path)).transpose()?;
    let runtime = build_runtime()?;
    let outcome = runtime.block_on(async {
        let (driver, servers) = ctx.open_driver(&args.flags.to_options(), ui).await?;
        let outcome = if args.dry_run {
            preview::run(&driver, args, &prompt, options, ui).await
        } else {
            run_attended(ctx, &driver, args, &prompt, options, ui).await
        };
        close_driver(&driver, servers).await;
        outcome
    });
    // A thread may still be blocked on reading standard input; don't wait for it.
    runtime.shutdown_background();
    outcome
}

/// Returns the skill to execute instead of a conversation, if one is named.
fn skill_execution<'a>(
    args: &'a RunArgs,
    ui: &mut TerminalUi<'_>,
) -> Result<Option<skill::SkillExecution<'a>>, CliFailure> {
    let target = match (&args.capability, &args.skill) {
        (Some(capability), _) => skill::ExecutionTarget::Capability(capability),
        (None, Some(name)) => skill::ExecutionTarget::Name(name),
        (None, None) => return Ok(None),
    };
    let typed = args.prompt.join(" ");
    let task = if typed.trim() == "-" { standard_input(ui)? } else { typed };
    let context = args.context.as_deref();
    Ok(Some(skill::SkillExecution { target, task, context, flags: &args.flags }))
}

/// Ends the MCP servers, and stores what a turn that was dropped has handed over.
pub(crate) async fn close_driver(driver: &ConversationDriver, servers: McpServers) {
    servers.close().await;
    // A journal that does not answer must not keep a user who wants to leave.
    let _ = tokio::time::timeout(PATIENCE, driver.finish_writing()).await;
}

async fn run_attended(
    ctx: &CliContext<'_>,
    driver: &ConversationDriver,
    args: &RunArgs,
    prompt: &str,
    mut options: RunOptions,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let resumed = resume_named(driver, args.resume.as_deref()).await?;
    let agent = agent_name(args, resumed.as_ref());
    ctx.check_reach(driver.system(), &agent, &args.flags.to_options(), Some(DRY))?;
    let mut talk = resumed.unwrap_or_else(|| driver.begin_conversation(&agent));
    let mut live = RunDisplay::new(display_options(ctx, args));
    if let Some(line) =
        ctx.note_on_other_project(&talk, &args.flags.to_options()).filter(|_| !ui.json)
    {
        live.print_note(&line, ui)?;
    }
    if talk.interrupted().is_some() && !ui.json {
        live.print_note(
            "the last run of this conversation was interrupted; it goes on from there",
            ui,
        )?;
    }
    let attended = ForegroundRun::connect(
        &mut options,
        user_presence(ctx, ui),
        &AlwaysAllowedCalls::default(),
    );
    let mut lines = StdinLines::new();
    let work = talk.send_prompt(&agent, prompt, options);
    let (report, unsaved) = match attended.attend(work, &mut live, &mut lines, ui).await? {
        ForegroundOutcome::Ended(sent) => split_unsaved(sent)?,
        ForegroundOutcome::Dropped => return Ok(CliExit::Interrupted),
    };
    live.print_end(&report, ui)?;
    ctx.remember_use(&talk);
    match unsaved {
        Some(failure) => Err(failure),
        None => judge_report(report),
    }
}

/// Resumes the named conversation, if there is a name.
pub(crate) async fn resume_named(
    driver: &ConversationDriver,
    wanted: Option<&str>,
) -> Result<Option<OpenConversation>, CliFailure> {
    match wanted {
        Some(id) => Ok(Some(driver.resume_conversation(id).await.map_err(store_failure)?)),
        None => Ok(None),
    }
}

/// Separates the report of a run from the failure to save it, so that the answer is shown anyway.
pub(crate) fn split_unsaved(
    sent: Result<RunReport, ConversationStoreError>,
) -> Result<(RunReport, Option<CliFailure>), CliFailure> {
    match sent {
        Ok(report) => Ok((report, None)),
        Err(ConversationStoreError::NotSaved { report, source }) => {
            let answer = report.as_ref().clone();
            let error = ConversationStoreError::NotSaved { report, source };
            Ok((answer, Some(store_failure(error).into())))
        }
        Err(error) => Err(store_failure(error).into()),
    }
}

/// Returns the requested agent, or that of the conversation, or the default one.
fn agent_name(args: &RunArgs, talk: Option<&OpenConversation>) -> String {
    let known = talk.map(|talk| talk.head().agent.clone()).filter(|agent| !agent.is_empty());
    args.agent.clone().or(known).unwrap_or_else(|| DEFAULT_AGENT.to_owned())
}

fn display_options(ctx: &CliContext<'_>, args: &RunArgs) -> RunDisplayOptions {
    RunDisplayOptions {
        thinking: args.thinking,
        streamed: ctx.env.is_terminal,
        rewritten: ctx.env.stderr_is_terminal,
    }
}

/// Questions are asked only at a terminal, and not with `--json`.
pub(crate) fn user_presence(ctx: &CliContext<'_>, ui: &TerminalUi<'_>) -> UserPresence {
    if ctx.env.stdin_is_terminal && ctx.env.stderr_is_terminal && !ui.json {
        UserPresence::There
    } else {
        UserPresence::Absent
    }
}

/// Converts a report to an exit code or a failure.
pub(crate) fn judge_report(report: RunReport) -> CliResult {
    let Some(error) = report.error else { return Ok(CliExit::Done) };
    if report.status == AgentRunStatus::Cancelled {
        return Ok(CliExit::Interrupted);
    }
    let failure = if is_set_up_wrong(&error) {
        CliFailure::cannot_run(describe_error(&error))
    } else {
        CliFailure::negative_answer(describe_error(&error))
    };
    let resume = format!("`rep run --resume {} …` goes on", short(&report.conversation));
    Err(match report.status {
        AgentRunStatus::Limited if is_price_unknown(&error) => {
            failure.hint("Or leave out the limit on cost (`--max-cost`, `limits.cost`).")
        }
        AgentRunStatus::Limited => failure.hint(format!("{resume}, with a higher limit.")),
        AgentRunStatus::Paused => failure.hint(format!("{resume} then.")),
        _ => failure,
    })
}

fn is_price_unknown(error: &AgentRunError) -> bool {
    matches!(error, AgentRunError::Turn(TurnError::Limit(LimitReached::PriceUnknown { .. })))
}

/// Returns true if the user has to change the configuration before a run can work.
fn is_set_up_wrong(error: &AgentRunError) -> bool {
    use repertoire_model::ModelError;
    matches!(
        error,
        AgentRunError::Turn(
            TurnError::Model(ModelError::NotConfigured { .. } | ModelError::Unauthorised { .. })
                | TurnError::Definition(_)
                | TurnError::UnknownAgent { .. }
                | TurnError::UnknownTools { .. }
                | TurnError::Limit(LimitReached::PriceUnknown { .. })
        )
    )
}

fn read_prompt(
    ctx: &CliContext<'_>,
    args: &RunArgs,
    ui: &mut TerminalUi<'_>,
) -> Result<String, CliFailure> {
    let typed = args.prompt.join(" ");
    let is_dash = typed.trim() == "-";
    let piped =
        if is_dash || !ctx.env.stdin_is_terminal { standard_input(ui)? } else { String::new() };
    let piped = piped.trim_end();
    match (is_dash || typed.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => Err(CliFailure::wrong_usage("there is no task").hint(
            "Write it after the options, or pipe it in: `rep run \"fix the failing test\"`.",
        )),
        (true, false) => Ok(piped.to_owned()),
        (false, true) => Ok(typed),
        // Input piped in beside a task is material, and is marked as such.
        (false, false) => Ok(format!("{typed}\n\n<stdin>\n{piped}\n</stdin>")),
    }
}

fn standard_input(ui: &mut TerminalUi<'_>) -> Result<String, CliFailure> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(PROMPT_BYTES_MAX + 1).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = match receiver.recv_timeout(PATIENCE) {
        Ok(read) => Ok(read),
        Err(_) => {
            ui.print_note(
                "waiting for the end of standard input (`< /dev/null` if there is none)",
            )?;
            receiver.recv()
        }
    };
    let bytes = read.unwrap_or_else(|_| Ok(Vec::new())).map_err(|error| {
        CliFailure::cannot_run(format!("standard input cannot be read: {error}"))
    })?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(CliFailure::wrong_usage(format!(
            "standard input is larger than {} MiB",
            PROMPT_BYTES_MAX / 1024 / 1024
        ))
        .hint("Put it into a file and name the file in the task."));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_schema(ctx: &CliContext<'_>, path: &Utf8PathBuf) -> Result<ResponseFormat, CliFailure> {
    let text = fs::read_text(&ctx.typed_path(path), SCHEMA_BYTES_MAX).map_err(|error| {
        CliFailure::wrong_usage(format!("`--schema {path}` cannot be read: {error}"))
    })?;
    let schema: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        CliFailure::wrong_usage(format!("`--schema {path}` is not JSON: {error}"))
    })?;
    jsonschema::validator_for(&schema).map_err(|error| {
        CliFailure::wrong_usage(format!("`--schema {path}` is not a JSON Schema: {error}"))
    })?;
    Ok(ResponseFormat::Schema { name: "answer".to_owned(), schema })
}
