//! `rep mcp`: serves skills to one agent over MCP, on standard input and output.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use repertoire_serve::mcp;
use repertoire_text::terminal::printable_line;
use tokio_util::sync::CancellationToken;

use super::daemon::cancel_on_signal;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::{self, TerminalUi};

/// Maximum wait at the end for the thread that reads input, since a blocked read cannot be woken.
const LAST_READ: Duration = Duration::from_millis(50);

/// Arguments of `rep mcp`; clients start it as configured by `rep setup`
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// Serve this form for the client to fill in (set by `rep` for the agents that it starts)
    #[arg(long, value_name = "FORM")]
    form: Option<String>,
    /// Call one tool, print the result as an agent would read it, and exit
    #[arg(long, value_name = "TOOL", conflicts_with = "form")]
    call: Option<String>,
    /// Arguments of the tool, as a JSON object
    #[arg(
        value_name = "ARGUMENTS",
        requires = "call",
        default_value = "{}",
        hide_default_value = true
    )]
    arguments: String,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &McpArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if let Some(tool) = &args.call {
        return call_tool(ctx, tool, &args.arguments, ui);
    }
    let runtime = build_runtime()?;
    let outcome = runtime.block_on(async {
        let serve_state = ctx.agent_services()?;
        let form = args.form.as_deref().map(|id| serve_state.forms().find(id)).transpose();
        let form = form.map_err(|error| CliFailure::negative_answer(error.to_string()))?;
        let shutdown = CancellationToken::new();
        cancel_on_signal(shutdown.clone())?;
        let _watching = serve_state.watch();
        // `main` holds the lock of standard output, so use the same streams through new
        // descriptors.
        let (input, output) =
            (duplicate_stream(std::io::stdin())?, duplicate_stream(std::io::stdout())?);
        mcp::serve_stdio(serve_state, form, input, output, shutdown)
            .await
            .map_err(|error| CliFailure::cannot_run(error.to_string()))?;
        Ok(CliExit::Done)
    });
    runtime.shutdown_timeout(LAST_READ);
    outcome
}

/// Calls one tool and prints its result as an agent would read it.
fn call_tool(
    ctx: &CliContext<'_>,
    tool: &str,
    arguments: &str,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let given = serde_json::from_str(arguments).map_err(|error| {
        CliFailure::wrong_usage(format!("the arguments are no JSON object: {error}"))
            .hint(r#"For instance: rep mcp --call skill_search '{"task": "write release notes"}'"#)
    })?;
    let answer = build_runtime()?.block_on(async {
        let serve_state = ctx.agent_services()?;
        mcp::call_tool(serve_state, tool, given).await.map_err(|names| {
            CliFailure::negative_answer(format!("there is no tool `{}`", printable_line(tool)))
                .hint(format!("There are {}.", names.join(", ")))
        })
    });
    let (text, done) = answer?;
    writeln!(ui.out, "{}", ui::printable_lines(&text))?;
    Ok(if done { CliExit::Done } else { CliExit::No })
}

fn duplicate_stream(stream: impl AsFd) -> Result<tokio::fs::File, CliFailure> {
    let handle = stream.as_fd().try_clone_to_owned();
    let handle =
        handle.map_err(|error| CliFailure::cannot_run(format!("no standard streams: {error}")))?;
    Ok(tokio::fs::File::from_std(File::from(handle)))
}
