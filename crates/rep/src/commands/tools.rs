//! `rep tools`: lists the tools available to agents.

use repertoire_agent::definition::{DEFAULT_AGENT, Definition};
use repertoire_agent::effect::{EffectLimit, Refusal};
use repertoire_agent::tool::Access;
use repertoire_agent::{RunOptions, System};
use repertoire_model::ToolSpec;
use repertoire_select::Settings;
use serde_json::json;

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::{RunFlags, definition, runtime};
use crate::schema::{ToolJson, ToolsJson};
use crate::ui::{self, Ui};

/// Arguments of `rep tools`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show which tools this agent has, and why it lacks the others
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let runtime = runtime()?;
    let (system, servers) = runtime.block_on(ctx.system(&RunFlags::default(), ui))?;
    let agent = args.agent.as_ref().map(|name| definition(&system, name)).transpose()?;
    let specs = runtime.block_on(async {
        let specs = specs(&system).await;
        servers.close().await;
        specs
    })?;
    let rows: Vec<ToolJson> = system
        .tools()
        .iter()
        .map(|tool| {
            let name = tool.name();
            let why_not = agent.as_ref().and_then(|agent| {
                let limit = EffectLimit::of(&agent.name, &agent.tools);
                match limit.refuses_tool(&**tool) {
                    Some(Refusal { effect: None, .. }) => {
                        Some(format!("`disallowed_tools` of {} names it", agent.name))
                    }
                    _ if !agent.tools.has(name) => {
                        Some(format!("`tools` of {} does not name it", agent.name))
                    }
                    Some(Refusal { effect: Some(effect), .. }) => {
                        Some(format!("{} may not {effect}", agent.name))
                    }
                    None => None,
                }
            });
            let idle = matches!(name, "skill" | "skill_search") && !system.has_skills();
            let why_not = why_not.or_else(|| idle.then(|| "there are no skills".to_owned()));
            ToolJson {
                name: name.to_owned(),
                access: access_word(tool.access(&json!({}))).to_owned(),
                about: about(&specs, name),
                available: why_not.is_none(),
                why_not,
            }
        })
        .collect();
    if ui.json {
        ui.print_json(&ToolsJson { agent: args.agent.clone(), tools: rows })?;
        return Ok(Exit::Done);
    }
    for row in &rows {
        let mark = if row.available { ui.paint(ui::GOOD, "✓") } else { ui.paint(ui::BAD, "✗") };
        let access = ui.paint(ui::FAINT, ui::pad(&row.access, 8));
        let text = row.why_not.as_ref().unwrap_or(&row.about);
        let room = ui.columns.saturating_sub(32).max(20);
        writeln!(ui.out, "{mark} {}  {access}  {}", ui::pad(&row.name, 14), ui::fit(text, room))?;
    }
    Ok(Exit::Done)
}

/// Returns the first sentence of a tool's description.
fn about(specs: &[ToolSpec], name: &str) -> String {
    let spec = specs.iter().find(|spec| spec.name == name);
    let text = spec.map(|spec| spec.description.as_str()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
}

/// Returns the tools as seen by an agent that may use all of them.
async fn specs(system: &System) -> Result<Vec<ToolSpec>, Failure> {
    let selection = Settings { enabled: false, ..Settings::default() };
    let options = RunOptions {
        definition: Some(Definition::default()),
        selection: Some(selection),
        ..RunOptions::default()
    };
    let preview = system.preview(DEFAULT_AGENT, "", options).await;
    Ok(preview.map_err(|error| Failure::cannot_run(error.to_string()))?.tools)
}

fn access_word(access: Access) -> &'static str {
    match access {
        Access::None => "none",
        Access::Read => "reads",
        Access::Write => "writes",
        Access::Execute => "executes",
        Access::Network => "network",
    }
}
