//! `rep mcp`: serves skills to one agent over MCP, on standard input and output.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use repertoire_serve::mcp;
use repertoire_text::terminal::printable;
use tokio_util::sync::CancellationToken;

use super::worker::stop_when_asked;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::ui::{self, Ui};

/// Maximum wait at the end for the thread that reads input, since a blocked read cannot be woken.
const LAST_READ: Duration = Duration::from_millis(50);

/// Arguments of `rep mcp`; clients start it as configured by `rep setup`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if let Some(tool) = &args.call {
        return call(ctx, tool, &args.arguments, ui);
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let house = ctx.house()?;
        let form = args.form.as_deref().map(|id| house.forms().form(id)).transpose();
        let form = form.map_err(|error| Failure::no(error.to_string()))?;
        let shutdown = CancellationToken::new();
        stop_when_asked(shutdown.clone())?;
        let _watching = house.watch();
        // `main` holds the lock of standard output, so use the same streams through new
        // descriptors.
        let (input, output) = (again(std::io::stdin())?, again(std::io::stdout())?);
        mcp::stdio(house, form, input, output, shutdown)
            .await
            .map_err(|error| Failure::cannot_run(error.to_string()))?;
        Ok(Exit::Done)
    });
    runtime.shutdown_timeout(LAST_READ);
    outcome
}

/// Calls one tool and prints its result as an agent would read it.
fn call(ctx: &Ctx<'_>, tool: &str, arguments: &str, ui: &mut Ui<'_>) -> Outcome {
    let given = serde_json::from_str(arguments).map_err(|error| {
        Failure::usage(format!("the arguments are no JSON object: {error}"))
            .hint(r#"For instance: rep mcp --call skill_search '{"task": "write release notes"}'"#)
    })?;
    let answer = runtime()?.block_on(async {
        let house = ctx.house()?;
        mcp::call(house, tool, given).await.map_err(|names| {
            Failure::no(format!("there is no tool `{}`", printable(tool)))
                .hint(format!("There are {}.", names.join(", ")))
        })
    });
    let (text, done) = answer?;
    writeln!(ui.out, "{}", ui::printable_lines(&text))?;
    Ok(if done { Exit::Done } else { Exit::No })
}

fn again(stream: impl AsFd) -> Result<tokio::fs::File, Failure> {
    let handle = stream.as_fd().try_clone_to_owned();
    let handle =
        handle.map_err(|error| Failure::cannot_run(format!("no standard streams: {error}")))?;
    Ok(tokio::fs::File::from_std(File::from(handle)))
}
