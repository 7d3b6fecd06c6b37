//! `rep run --skill`: executes one skill or sub-agent, as a step of a larger task would.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::executor::{ExecuteError, SkillExecutor, SkillResult, SubagentContext};
use repertoire_text::fs;

use crate::agent_flags::RunFlags;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::run::user_presence;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::foreground_run::{AlwaysAllowedCalls, ForegroundOutcome, ForegroundRun, StdinLines};
use crate::run_display::{RunDisplay, RunDisplayOptions, RunUsageTotal};
use crate::ui::{self, TerminalUi};

const CONTEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Arguments of `rep exec`, the old name of `rep run --skill`
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// The skill or sub-agent to execute
    #[arg(required_unless_present = "capability", value_name = "SKILL")]
    skill: Option<String>,
    /// Description of the task
    #[arg(value_name = "TASK")]
    task: Vec<String>,
    /// Use the first agent with this capability, instead of a name
    #[arg(long, value_name = "CAPABILITY")]
    capability: Option<String>,
    /// A JSON file with context for the skill: task, github, execution, research, codeReview,
    /// planning
    #[arg(long, value_name = "FILE")]
    context: Option<Utf8PathBuf>,
    #[command(flatten)]
    flags: RunFlags,
}

impl ExecArgs {
    pub(crate) fn execution(&self) -> SkillExecution<'_> {
        let name = self.skill.as_deref();
        let (target, first) = match &self.capability {
            // With `--capability`, the first positional argument is part of the task, not a name.
            Some(capability) => (ExecutionTarget::Capability(capability), name),
            None => (ExecutionTarget::Name(name.unwrap_or_default()), None),
        };
        let words = first.into_iter().chain(self.task.iter().map(String::as_str));
        SkillExecution {
            target,
            task: words.collect::<Vec<_>>().join(" "),
            context: self.context.as_deref(),
            flags: &self.flags,
        }
    }
}

/// A skill or an agent to execute on a task.
pub(crate) struct SkillExecution<'a> {
    pub(crate) target: ExecutionTarget<'a>,
    /// The description of the task. Empty if the context describes it.
    pub(crate) task: String,
    pub(crate) context: Option<&'a Utf8Path>,
    pub(crate) flags: &'a RunFlags,
}

pub(crate) enum ExecutionTarget<'a> {
    /// The name of a skill or sub-agent.
    Name(&'a str),
    /// The first agent with this capability.
    Capability(&'a str),
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    execution: &SkillExecution<'_>,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let context = read_context(ctx, execution)?;
    let agent_options = execution.flags.to_options();
    let mut options = ctx.run_options(&agent_options)?;
    let runtime = build_runtime()?;
    let outcome = runtime.block_on(async {
        let (system, servers) = ctx.open_system(&agent_options, ui).await?;
        // Report an unknown name before a missing model, as it is the likelier mistake.
        if let ExecutionTarget::Name(name) = execution.target
            && let Err(missing) = system.catalog().resolve(name)
        {
            servers.close().await;
            return Err(not_executed(missing.into()));
        }
        if let Err(failure) = ctx.check_reach(&system, DEFAULT_AGENT, &agent_options, None) {
            servers.close().await;
            return Err(failure.into());
        }
        let attended = ForegroundRun::connect(
            &mut options,
            user_presence(ctx, ui),
            &AlwaysAllowedCalls::default(),
        );
        let executor = SkillExecutor::new(system, options);
        let work = async {
            match execution.target {
                ExecutionTarget::Capability(capability) => {
                    executor.execute_capability(capability, &context).await
                }
                ExecutionTarget::Name(name) => executor.execute(name, &context).await,
            }
        };
        let rewritten = ctx.env.stderr_is_terminal;
        let mut live =
            RunDisplay::new(RunDisplayOptions { rewritten, ..RunDisplayOptions::default() });
        let mut lines = StdinLines::new();
        // Events are printed for people only; `--json` prints just the result.
        let json = std::mem::take(&mut ui.json);
        let mut quiet = std::io::sink();
        let left = if json {
            let mut silent = TerminalUi {
                out: &mut std::io::sink(),
                err: &mut quiet,
                colour: false,
                err_colour: false,
                columns: ui.columns,
                json: false,
            };
            attended.attend(work, &mut live, &mut lines, &mut silent).await
        } else {
            attended.attend(work, &mut live, &mut lines, ui).await
        };
        ui.json = json;
        servers.close().await;
        match left? {
            ForegroundOutcome::Ended(result) => {
                live.close_line(ui)?;
                print_result(&result.map_err(not_executed)?, live.spent(), ui)
            }
            ForegroundOutcome::Dropped => Ok(CliExit::Interrupted),
        }
    });
    runtime.shutdown_background();
    outcome
}

fn read_context(
    ctx: &CliContext<'_>,
    execution: &SkillExecution<'_>,
) -> Result<SubagentContext, CliFailure> {
    let mut context = match execution.context {
        None => SubagentContext::default(),
        Some(path) => {
            let text =
                fs::read_text(&ctx.typed_path(path), CONTEXT_BYTES_MAX).map_err(|error| {
                    CliFailure::wrong_usage(format!("`--context {path}` cannot be read: {error}"))
                })?;
            serde_json::from_str(&text).map_err(|error| {
                CliFailure::wrong_usage(format!("`--context {path}` is not a context: {error}"))
            })?
        }
    };
    if !execution.task.is_empty() {
        context.context.task.description.clone_from(&execution.task);
        context.context.task.source = "prompt".to_owned();
    }
    Ok(context)
}

fn print_result(result: &SkillResult, spent: RunUsageTotal, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json {
        ui.print_json(result)?;
    } else {
        if !result.output.is_empty() {
            let text = result.output.trim_end_matches('\n');
            writeln!(ui.out, "{}", ui::printable_lines(text))?;
        }
        let metadata = &result.metadata;
        let mut parts = spent.describe_parts();
        parts.push(ui::format_time(metadata.duration_ms));
        if metadata.retries > 0 {
            parts.push(format!("tried again {} times", metadata.retries));
        }
        if metadata.cached {
            parts.push("an earlier result".to_owned());
        }
        let line = ui.paint_err(ui::FAINT, parts.join(" · "));
        ui.print_note(&line)?;
    }
    match &result.error {
        None if result.success => Ok(CliExit::Done),
        error => Err(CliFailure::negative_answer(
            error.clone().unwrap_or_else(|| "it did not succeed".to_owned()),
        )),
    }
}

fn not_executed(error: ExecuteError) -> CliFailure {
    let failure = CliFailure::cannot_run(error.to_string());
    match error {
        ExecuteError::NotFound(missing) => match missing.nearest {
            Some(near) => failure.hint(format!("Did you mean `{near}`?")),
            None => failure.hint("`rep list` shows every skill, `rep agents` every agent."),
        },
        ExecuteError::NoCapability { .. } => {
            failure.hint("`rep agents NAME` says what one can do.")
        }
        ExecuteError::MissingTools { .. } => {
            failure.hint("`rep agents --tools` lists what there is.")
        }
    }
}
