//! `rep agents --tools`: lists the tools available to agents.

use repertoire::agent_setup::{AgentRunOptions, load_definition};
use repertoire_agent::definition::{AgentDefinition, DEFAULT_AGENT};
use repertoire_agent::effect::{EffectLimit, EffectRefusal};
use repertoire_agent::tool::ToolAccess;
use repertoire_agent::{RunOptions, System};
use repertoire_model::ToolSpec;
use repertoire_select::SelectionSettings;
use serde_json::json;

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{ToolListJson, ToolRowJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep agents --tools`
#[derive(Debug, clap::Args)]
pub(crate) struct AgentsToolsArgs {
    /// With `--tools`: show which tools this agent has, and why it lacks the others
    #[arg(short, long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
}

pub(crate) fn run(ctx: &CliContext<'_>, agent: Option<&str>, ui: &mut TerminalUi<'_>) -> CliResult {
    let runtime = build_runtime()?;
    let (system, servers) = runtime.block_on(ctx.open_system(&AgentRunOptions::default(), ui))?;
    let definition = agent.map(|name| load_definition(&system, name)).transpose()?;
    let specs = runtime.block_on(async {
        let specs = tool_specs(&system).await;
        servers.close().await;
        specs
    })?;
    let rows: Vec<ToolRowJson> = system
        .tools()
        .iter()
        .map(|tool| {
            let name = tool.name();
            let why_not = definition.as_ref().and_then(|agent| {
                let limit = EffectLimit::for_agent(&agent.name, &agent.tools);
                match limit.refuses_tool(&**tool) {
                    Some(EffectRefusal { effect: None, .. }) => {
                        Some(format!("`disallowed_tools` of {} names it", agent.name))
                    }
                    _ if !agent.tools.has(name) => {
                        Some(format!("`tools` of {} does not name it", agent.name))
                    }
                    Some(EffectRefusal { effect: Some(effect), .. }) => {
                        Some(format!("{} may not {effect}", agent.name))
                    }
                    None => None,
                }
            });
            let idle = matches!(name, "skill" | "skill_search") && !system.has_skills();
            let why_not = why_not.or_else(|| idle.then(|| "there are no skills".to_owned()));
            ToolRowJson {
                name: name.to_owned(),
                access: access_word(tool.access(&json!({}))).to_owned(),
                about: describe_tool(&specs, name),
                available: why_not.is_none(),
                why_not,
            }
        })
        .collect();
    if ui.json {
        ui.print_json(&ToolListJson { agent: agent.map(str::to_owned), tools: rows })?;
        return Ok(CliExit::Done);
    }
    for row in &rows {
        let mark = if row.available { ui.paint(ui::GOOD, "✓") } else { ui.paint(ui::BAD, "✗") };
        let access = ui.paint(ui::FAINT, ui::pad_columns(&row.access, 8));
        let text = row.why_not.as_ref().unwrap_or(&row.about);
        let room = ui.columns.saturating_sub(32).max(20);
        writeln!(
            ui.out,
            "{mark} {}  {access}  {}",
            ui::pad_columns(&row.name, 14),
            ui::fit_columns(text, room)
        )?;
    }
    Ok(CliExit::Done)
}

/// Returns the first sentence of a tool's description.
fn describe_tool(specs: &[ToolSpec], name: &str) -> String {
    let spec = specs.iter().find(|spec| spec.name == name);
    let text = spec.map(|spec| spec.description.as_str()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
}

/// Returns the tools as seen by an agent that may use all of them.
async fn tool_specs(system: &System) -> Result<Vec<ToolSpec>, CliFailure> {
    let selection = SelectionSettings { enabled: false, ..SelectionSettings::default() };
    let options = RunOptions {
        definition: Some(AgentDefinition::default()),
        selection: Some(selection),
        ..RunOptions::default()
    };
    let preview = system.preview(DEFAULT_AGENT, "", options).await;
    Ok(preview.map_err(|error| CliFailure::cannot_run(error.to_string()))?.tools)
}

fn access_word(access: ToolAccess) -> &'static str {
    match access {
        ToolAccess::None => "none",
        ToolAccess::Read => "reads",
        ToolAccess::Write => "writes",
        ToolAccess::Execute => "executes",
        ToolAccess::Network => "network",
    }
}
