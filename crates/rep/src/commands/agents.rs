//! `rep agents`: lists the available agents, or shows one in detail.

use repertoire::permission_rules::KnownTools;
use repertoire_agent::definition::{AgentDefinition, DEFAULT_AGENT};
use repertoire_model::ThinkingMode;
use repertoire_skill::catalog::{BrokenSkill, Catalog, CatalogEntry};
use repertoire_skill::name::nearest_name;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::terminal;

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{AgentJson, AgentsJson};
use crate::ui::{self, TerminalUi};
use repertoire::agent_setup::broken_name;

pub(crate) mod tools;

/// Arguments of `rep agents`
#[derive(Debug, clap::Args)]
#[command(mut_arg("agent", |arg| arg.requires("tools").conflicts_with("name")))]
pub(crate) struct AgentsArgs {
    /// Show all details of this agent
    name: Option<String>,
    /// List the tools available to agents, or, with NAME, to this agent
    #[arg(long)]
    tools: bool,
    #[command(flatten)]
    tools_args: tools::AgentsToolsArgs,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &AgentsArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if args.tools {
        let agent = args.name.as_ref().or(args.tools_args.agent.as_ref());
        return tools::run(ctx, agent.map(String::as_str), ui);
    }
    let catalog = ctx.load_catalog()?;
    let agents = list_agents(catalog);
    if let Some(name) = &args.name {
        let Some(agent) = agents.iter().find(|agent| agent.name == *name) else {
            return Err(unknown_agent(name, &agents));
        };
        let tools = ctx.builtin_tools()?;
        let agent = &with_unknown_tools(agent.clone(), &tools);
        if ui.json {
            ui.print_json(&AgentsJson { agents: vec![agent.clone()] })?;
        } else {
            print_one(catalog, agent, ui)?;
        }
        return Ok(if agent.problem.is_some() { CliExit::No } else { CliExit::Done });
    }
    if ui.json {
        ui.print_json(&AgentsJson { agents })?;
        return Ok(CliExit::Done);
    }
    for agent in &agents {
        print_row(agent, ui)?;
    }
    Ok(CliExit::Done)
}

fn list_agents(catalog: &Catalog) -> Vec<AgentJson> {
    let entries = catalog.entries().iter().filter(|entry| entry.skill.is_agent());
    let mut agents: Vec<AgentJson> = entries.map(agent_of_entry).collect();
    if !agents.iter().any(|agent| agent.name == DEFAULT_AGENT) {
        agents.push(AgentJson::from_definition(&AgentDefinition::default()));
    }
    for broken in catalog.broken() {
        let Some(name) = broken_name(broken) else { continue };
        if !agents.iter().any(|agent| agent.name == name) {
            agents.push(agent_of_broken_file(broken, name));
        }
    }
    agents.sort_by(|a, b| a.name.cmp(&b.name));
    agents
}

fn agent_of_entry(entry: &CatalogEntry) -> AgentJson {
    let skill = &entry.skill;
    let read = AgentDefinition::from_entry(entry);
    let mut agent = match &read {
        Ok(definition) => AgentJson::from_definition(definition),
        Err(_) => AgentJson::from_definition(&AgentDefinition {
            name: entry.id.clone(),
            description: skill.description.clone(),
            trust: entry.trust,
            ..AgentDefinition::default()
        }),
    };
    agent.problem = read.err().map(|error| error.message);
    agent.path = Some(skill.origin.file.to_string());
    agent.scope = Some(skill.origin.scope);
    agent.capabilities = skill.capabilities.clone();
    agent
}

/// Describes an agent whose file could not be parsed.
fn agent_of_broken_file(broken: &BrokenSkill, name: &str) -> AgentJson {
    let BrokenSkill { path, scope, reason } = broken;
    AgentJson {
        path: Some(path.to_string()),
        scope: Some(*scope),
        problem: Some(format!("{} [{}]", reason.message, reason.code.id)),
        ..AgentJson::from_definition(&AgentDefinition {
            name: name.to_owned(),
            description: String::new(),
            trust: TrustLevel::Untrusted,
            ..AgentDefinition::default()
        })
    }
}

/// Fills in `unknown_tools`. An agent cannot run if it names tools and all of them are unknown.
fn with_unknown_tools(agent: AgentJson, known: &KnownTools) -> AgentJson {
    let named = agent.tools.iter().flatten();
    let unknown_tools: Vec<String> = named.filter(|name| !known.has_tool(name)).cloned().collect();
    let named = agent.tools.as_ref().map_or(0, Vec::len);
    let has_none = named > 0 && unknown_tools.len() == named;
    let problem =
        has_none.then(|| "it names no tool that there is; see `rep agents --tools`".to_owned());
    AgentJson { problem: agent.problem.clone().or(problem), unknown_tools, ..agent }
}

fn unknown_agent(name: &str, agents: &[AgentJson]) -> CliFailure {
    let failure = CliFailure::negative_answer(format!("there is no agent `{name}`"));
    let failure = match nearest_name(name, agents.iter().map(|agent| agent.name.as_str())) {
        Some(near) => failure.hint(format!("Did you mean `{near}`?")),
        None => failure,
    };
    failure.hint("`rep agents` lists them.")
}

fn print_row(agent: &AgentJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let mark = if agent.problem.is_some() { ui.paint(ui::BAD, "✗ ") } else { String::new() };
    let name = ui.paint(ui::STRONG, ui::fit_columns(&agent.name, 40));
    let mut notes = Vec::new();
    if let Some(scope) = agent.scope {
        notes.push(format!("{scope:?}").to_lowercase());
    }
    if let Some(model) = &agent.model {
        notes.push(ui::fit_columns(model, 40));
    }
    if !agent.description.is_empty() {
        notes.push(tools_in_words(agent));
    }
    if !agent.skills.is_empty() {
        notes.push(format!("pins {}", agent.skills.join(", ")));
    }
    let notes = ui.paint(ui::FAINT, format!("({})", ui::fit_columns(&notes.join(" · "), 120)));
    writeln!(ui.out, "{mark}{name} {notes}")?;
    if agent.trust != TrustLevel::Trusted && agent.problem.is_none() {
        writeln!(ui.out, "  {}", ui.paint(ui::WARN, "not trusted; see `rep trust`"))?;
    }
    if let Some(problem) = &agent.problem {
        writeln!(ui.out, "  {}", ui.paint(ui::BAD, ui::fit_columns(problem, 200)))?;
    }
    let room = ui.columns.saturating_sub(2).max(20);
    if agent.description.is_empty() {
        Ok(())
    } else {
        writeln!(ui.out, "  {}", ui::fit_columns(&agent.description, room))
    }
}

fn tools_in_words(agent: &AgentJson) -> String {
    let mut out = match &agent.tools {
        None => "every tool".to_owned(),
        Some(tools) if tools.is_empty() => "no tools".to_owned(),
        Some(tools) => tools.join(", "),
    };
    if !agent.disallowed_tools.is_empty() {
        out.push_str(&format!(" but {}", agent.disallowed_tools.join(", ")));
    }
    out
}

fn print_one(catalog: &Catalog, agent: &AgentJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, ui::fit_columns(&agent.name, 60)))?;
    let room = ui.columns.saturating_sub(4);
    writeln!(ui.out, "  {}\n", ui::wrap_words(&agent.description, room, "  "))?;
    let file = agent.path.as_ref().map(|path| catalog.places().shorten_path(path.as_str().into()));
    let trust = if agent.trust == TrustLevel::Trusted { "trusted" } else { "not trusted" };
    let facts = [
        ("file", file.unwrap_or_else(|| "built in".to_owned())),
        ("trust", trust.to_owned()),
        ("model", agent.model.clone().unwrap_or_else(|| "the configured one".to_owned())),
        ("tools", tools_in_words(agent)),
        ("skills", ui::join_or(&agent.skills, "chosen for each task")),
        ("thinking", agent.thinking_tokens.map_or("no".to_owned(), |n| format!("{n} tokens"))),
        ("turns", agent.max_iterations.map_or("as configured".to_owned(), |n| n.to_string())),
        ("can do", ui::join_or(&agent.capabilities, "nothing that is declared")),
    ];
    for (name, value) in facts {
        let value = ui::wrap_words(&value, ui.columns.saturating_sub(13).max(20), "             ");
        writeln!(ui.out, "  {} {value}", ui.paint(ui::FAINT, ui::pad_columns(name, 10)))?;
    }
    for skill in agent.skills.iter().filter(|skill| catalog.resolve(skill).is_err()) {
        let line = format!("skill `{}` is pinned, and is not there", ui::fit_columns(skill, 60));
        writeln!(ui.out, "\n{}", ui.paint(ui::BAD, line))?;
    }
    for tool in &agent.unknown_tools {
        let line = format!("tool `{}` is named, and is not there", ui::fit_columns(tool, 60));
        writeln!(ui.out, "\n{}", ui.paint(ui::BAD, line))?;
    }
    if let Some(problem) = &agent.problem {
        writeln!(
            ui.out,
            "\n{} {}",
            ui.paint(ui::BAD, "cannot run:"),
            ui::fit_columns(problem, 400)
        )?;
    }
    let own = catalog.diagnostics().iter();
    for found in
        own.filter(|found| found.path.as_ref().map(|path| path.as_str()) == agent.path.as_deref())
    {
        write!(ui.out, "\n{}", terminal::render_diagnostic(found, None, ui.diagnostics_colour()))?;
    }
    Ok(())
}

impl AgentJson {
    fn from_definition(definition: &AgentDefinition) -> Self {
        AgentJson {
            name: definition.name.clone(),
            description: definition.description.clone(),
            model: definition.model.as_ref().map(ToString::to_string),
            tools: definition.tools.allowed.clone(),
            disallowed_tools: definition.tools.disallowed.clone(),
            skills: definition.skills.clone(),
            thinking_tokens: match definition.thinking {
                ThinkingMode::Budget(tokens) => Some(tokens),
                ThinkingMode::Off => None,
            },
            max_iterations: definition.max_iterations,
            capabilities: Vec::new(),
            trust: definition.trust,
            scope: None,
            path: None,
            unknown_tools: Vec::new(),
            problem: None,
        }
    }
}
