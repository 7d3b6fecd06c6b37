//! Assembles the system that runs agents from the configuration and the command line.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::config::parse_duration;
use repertoire::{
    ConversationDriver, ConversationStore, ConversationStoreError, OpenConversation, SkillUse,
};
use repertoire_agent::definition::{AgentDefinition, DEFAULT_AGENT};
use repertoire_agent::event::{EventEmitter, EventSink};
use repertoire_agent::form::AnswerForms;
use repertoire_agent::mcp::{McpEnvironment, McpLimits, McpServerConfig, McpServers};
use repertoire_agent::permission::{PermissionMode, RunPermissions};
use repertoire_agent::spending::RunLimits;
use repertoire_agent::system::{SystemBuildError, SystemBuilder};
use repertoire_agent::tools::ResearchSettings;
use repertoire_agent::{AgentEvent, EventKind, RunOptions, System};
use repertoire_git::repo::GitClient;
use repertoire_model::prices::ModelPrices;
use repertoire_model::{ModelName, ModelService};
use repertoire_sandbox::process::UsageLimits;
use repertoire_skill::activate::ReferenceMode;
use repertoire_skill::catalog::{BrokenSkill, Catalog};
use repertoire_skill::name::nearest_name;
use repertoire_text::clock::SystemClock;
use repertoire_text::repository;

use crate::cli::CliContext;
use crate::failure::CliFailure;
use crate::permission_rules::{KnownTools, parse_rules};
use crate::ui::{self, TerminalUi};

mod backends;
mod sandbox;

use backends::is_builtin_loop;

const WHO: &str = "Agent and model";
const LIMITS: &str = "Limits";
const FREEDOM: &str = "Permissions";

/// Options of every command that runs an agent
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RunFlags {
    /// The model, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<ModelName>,
    /// The backend that executes the turns: api, claude, codex, opencode, gemini, acp:PROGRAM,
    /// command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// Always load these skills (may be repeated, or a comma-separated list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = WHO)]
    pub(crate) skills: Vec<String>,
    /// Use only skills that are named explicitly
    #[arg(long, help_heading = WHO)]
    pub(crate) no_auto: bool,
    /// A path that the task touches, which helps to choose skills (may be repeated)
    #[arg(long = "path", value_name = "PATH", help_heading = WHO)]
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// The folder that the agent works in
    #[arg(long, value_name = "DIR", help_heading = WHO)]
    pub(crate) cd: Option<Utf8PathBuf>,
    /// Stop when the run has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = LIMITS)]
    pub(crate) max_turns: Option<u32>,
    /// Stop when all calls together have used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after this time, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) timeout: Option<Duration>,
    /// Let the agent read, but change nothing
    #[arg(long, conflicts_with_all = ["accept_edits", "full_access"], help_heading = FREEDOM)]
    pub(crate) read_only: bool,
    /// Let the agent change files in the folder and run commands in the sandbox without asking
    #[arg(long, conflicts_with = "full_access", help_heading = FREEDOM)]
    pub(crate) accept_edits: bool,
    /// Let the agent do anything without asking
    #[arg(long, help_heading = FREEDOM)]
    pub(crate) full_access: bool,
    /// Allow calls that match this rule, such as 'bash(git status:*)' (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) allow: Vec<String>,
    /// Forbid calls that match this rule (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) deny: Vec<String>,
}

pub(crate) fn parse_dollars(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "it is not a number".to_owned())?;
    let fits = number.is_finite() && number > 0.0;
    fits.then_some(number).ok_or_else(|| "it must be more than nothing".to_owned())
}

/// Creates a runtime for commands that wait for models and processes.
pub(crate) fn build_runtime() -> Result<tokio::runtime::Runtime, CliFailure> {
    build_runtime_with_threads(2)
}

/// Creates a runtime with the given number of threads.
pub(crate) fn build_runtime_with_threads(
    threads: usize,
) -> Result<tokio::runtime::Runtime, CliFailure> {
    let made =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    made.map_err(|error| CliFailure::cannot_run(format!("no threads can be started: {error}")))
}

impl CliContext<'_> {
    /// Returns a driver for conversations, as configured.
    pub(crate) async fn build_driver(
        &self,
        flags: &RunFlags,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(ConversationDriver, McpServers), CliFailure> {
        let (builder, servers) = self.build_with_mcp_servers(flags, ui).await?;
        let driver =
            ConversationDriver::new(builder, self.conversation_store()).map_err(build_failure)?;
        let driver = driver.in_folder(self.project_dir(flags.cd.as_deref()));
        let servers = self.check_rules_or_close(driver.system(), servers, flags, ui).await?;
        Ok((driver, servers))
    }

    /// Returns a system that saves no conversations.
    pub(crate) async fn build_system(
        &self,
        flags: &RunFlags,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(System, McpServers), CliFailure> {
        let (builder, servers) = self.build_with_mcp_servers(flags, ui).await?;
        let system = builder.build().map_err(build_failure)?;
        let servers = self.check_rules_or_close(&system, servers, flags, ui).await?;
        Ok((system, servers))
    }

    /// Starts the MCP servers and adds their tools. The servers run as long as the returned value
    /// lives.
    async fn build_with_mcp_servers(
        &self,
        flags: &RunFlags,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(SystemBuilder, McpServers), CliFailure> {
        let mut builder = self.system_builder(flags)?;
        let configs = self.mcp_configs()?;
        // An external agent starts the servers itself.
        if configs.is_empty() || !is_builtin_loop(flags) {
            return Ok((builder, McpServers::default()));
        }
        let place = McpEnvironment {
            dir: self.work_dir(flags),
            environment: self.env.tool_environment(false),
            limits: McpLimits::default(),
        };
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = warnings.clone();
        let sink: EventSink = Arc::new(move |event: &AgentEvent| {
            if let EventKind::Warning { message } = &event.kind {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
            }
        });
        let events = EventEmitter::new("mcp", "mcp", Arc::new(SystemClock), sink);
        let servers = McpServers::connect(&configs, &place, &events).await;
        for tool in servers.tools() {
            builder = builder.tool(tool);
        }
        let warnings =
            std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
        for warning in warnings {
            let line = ui.paint_err(ui::WARN, format!("! {}", ui::fit_columns(&warning, 400)));
            ui.print_note(&line)?;
        }
        Ok((builder, servers))
    }

    /// Checks the permission rules, and closes the servers if a rule is invalid.
    async fn check_rules_or_close(
        &self,
        system: &System,
        servers: McpServers,
        flags: &RunFlags,
        ui: &mut TerminalUi<'_>,
    ) -> Result<McpServers, CliFailure> {
        // An external agent has tools of its own, which are unknown here.
        if !is_builtin_loop(flags) {
            return Ok(servers);
        }
        match self.check_rules(&self.known_tools(system), flags, ui) {
            Ok(()) => Ok(servers),
            Err(failure) => {
                servers.close().await;
                Err(failure)
            }
        }
    }

    /// Returns the tools that rules can name, including those of MCP servers that are not running.
    pub(crate) fn known_tools(&self, system: &System) -> KnownTools {
        let servers = self.mcp_servers().unwrap_or_default();
        let servers = servers.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        KnownTools::new(system.tools().iter().map(|tool| tool.name().to_owned()), servers)
    }

    /// Returns the tools that are available without starting anything.
    pub(crate) fn builtin_tools(&self) -> Result<KnownTools, CliFailure> {
        let system = self.system_builder(&RunFlags::default())?.build().map_err(build_failure)?;
        Ok(self.known_tools(&system))
    }

    /// Returns the project's folder: the top of the repository, or the working folder outside of
    /// one.
    pub(crate) fn project_dir(&self, cd: Option<&Utf8Path>) -> Utf8PathBuf {
        let here = cd.map_or_else(|| self.env.here.clone(), |dir| self.env.here.join(dir));
        let here = here.canonicalize_utf8().unwrap_or(here);
        let found = repository::find_work_tree(&here, &self.env.home()).map(Utf8Path::to_owned);
        found.unwrap_or(here)
    }

    /// Returns a note if a conversation was started in another project.
    pub(crate) fn note_on_other_project(
        &self,
        talk: &OpenConversation,
        flags: &RunFlags,
    ) -> Option<String> {
        let folder = &talk.head().folder;
        let is_here = *folder == self.project_dir(flags.cd.as_deref());
        let short = || self.config.places().shorten_path(folder.as_str().into());
        (!folder.is_empty() && !is_here)
            .then(|| format!("this conversation was begun in {}, and goes on here", short()))
    }

    /// Returns the store of conversations.
    pub(crate) fn conversation_store(&self) -> ConversationStore {
        ConversationStore::new(self.env.conversations_dir())
    }

    fn usage_path(&self) -> Utf8PathBuf {
        self.env.data_dir().join("usage.json")
    }

    pub(crate) fn system_builder(&self, flags: &RunFlags) -> Result<SystemBuilder, CliFailure> {
        Ok(System::builder()
            .discover(self.config.discovery_request()?)
            .config(self.agent_config(flags)?)
            .endpoints(self.env.model_endpoints())
            .prices(self.model_prices()?)
            .environment(self.env.tool_environment(!is_builtin_loop(flags)))
            .sandbox(self.configured_sandbox()?)
            .selector(self.make_selector()?)
            .research(self.research_settings())
            .work_dir(self.work_dir(flags))
            .spill_dir(self.env.output_dir()))
    }

    fn agent_config(&self, flags: &RunFlags) -> Result<repertoire_agent::AgentConfig, CliFailure> {
        let config = &self.config;
        let mut out = repertoire_agent::AgentConfig::default();
        if let Some(model) = config.get_text("model").and_then(|text| text.parse().ok()) {
            out.model = model;
        }
        out.auto_trigger = config.selection_settings();
        out.skill_budget.body_chars_max = config.body_chars_max();
        if config.load_references() {
            out.references = ReferenceMode::Appended;
        }
        out.permissions = self.build_permissions(flags)?;
        out.limits = self.run_limits();
        out.tools.usage = self.usage_limits();
        out.usage = SkillUse::read(&self.usage_path()).skills;
        Ok(out)
    }

    /// Returns the settings of the `research` tool.
    fn research_settings(&self) -> ResearchSettings {
        let search_url = self.config.get_text("research.search_url").map(str::to_owned);
        ResearchSettings { search_url, ..ResearchSettings::default() }
    }

    /// Returns a handle to git in a folder, running in the sandbox.
    pub(crate) fn git_in(&self, dir: impl Into<Utf8PathBuf>) -> Result<GitClient, CliFailure> {
        Ok(GitClient::new(dir, self.env.tool_environment(false), self.configured_sandbox()?))
    }

    /// Returns true if programs must run in a sandbox where outsiders' text can influence them. The
    /// user can waive that with `sandbox = "off"`.
    pub(crate) fn needs_sandbox(&self) -> bool {
        self.config.get_text("sandbox") != Some("off")
    }

    /// Returns the permissions from the configuration and the command line.
    fn build_permissions(&self, flags: &RunFlags) -> Result<RunPermissions, CliFailure> {
        let mode = match self.config.get_text("permissions.mode") {
            _ if flags.read_only => PermissionMode::ReadOnly,
            _ if flags.full_access => PermissionMode::Full,
            _ if flags.accept_edits => PermissionMode::AcceptEdits,
            Some("read-only") => PermissionMode::ReadOnly,
            Some("accept-edits") => PermissionMode::AcceptEdits,
            Some("full") => PermissionMode::Full,
            _ => PermissionMode::Default,
        };
        let configured = |name: &str| {
            parse_rules(&self.config.get_texts(name), &self.config.describe_origin(name))
        };
        let mut out = RunPermissions::new(mode).in_dir(self.work_dir(flags));
        out.allow = configured("permissions.allow")?;
        out.ask = configured("permissions.ask")?;
        out.deny = configured("permissions.deny")?;
        out.allow.extend(parse_rules(&flags.allow, "--allow")?);
        out.deny.extend(parse_rules(&flags.deny, "--deny")?);
        Ok(out)
    }

    fn work_dir(&self, flags: &RunFlags) -> Utf8PathBuf {
        let here = &self.env.here;
        flags.cd.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir))
    }

    fn run_limits(&self) -> RunLimits {
        let config = &self.config;
        let default = RunLimits::default();
        let number = |name: &str| config.get_number(name).map(|number| number as u64);
        let small = |name: &str, other: u32| {
            number(name).and_then(|number| u32::try_from(number).ok()).unwrap_or(other)
        };
        let time = config.get_text("limits.duration").and_then(|text| parse_duration(text).ok());
        RunLimits {
            depth_max: small("limits.depth", default.depth_max),
            iterations_max: small("limits.iterations", default.iterations_max),
            tokens_max: number("limits.tokens"),
            cost_usd_max: config.get_number("limits.cost"),
            duration_max: time.unwrap_or(default.duration_max),
        }
    }

    /// Returns the limits on a command with everything that it starts. 0 means no limit.
    pub(crate) fn usage_limits(&self) -> UsageLimits {
        let config = &self.config;
        let usual = UsageLimits::default_limits();
        UsageLimits {
            memory_bytes_max: limit_or_none(
                config.get_bytes("limits.command_memory"),
                usual.memory_bytes_max,
            ),
            processes_max: limit_or_none(
                config.get_bytes("limits.command_processes"),
                usual.processes_max,
            ),
            disk_bytes_max: limit_or_none(
                config.get_bytes("limits.command_disk"),
                usual.disk_bytes_max,
            ),
        }
    }

    fn model_prices(&self) -> Result<ModelPrices, CliFailure> {
        let mut prices = ModelPrices::builtin();
        if let Some(table) = self.config.get_table("models") {
            prices.extend(table).map_err(|error| {
                CliFailure::wrong_usage(format!(
                    "{}: `models`: {error}",
                    self.config.describe_origin("models")
                ))
            })?;
        }
        Ok(prices)
    }

    /// Returns the options of a run from the command line.
    pub(crate) fn run_options(&self, flags: &RunFlags) -> Result<RunOptions, CliFailure> {
        let mut limits = self.run_limits();
        limits.cost_usd_max = flags.max_cost.or(limits.cost_usd_max);
        limits.tokens_max = flags.max_tokens.or(limits.tokens_max);
        limits.iterations_max = flags.max_turns.unwrap_or(limits.iterations_max);
        limits.duration_max = flags.timeout.unwrap_or(limits.duration_max);
        let mut selection = self.config.selection_settings();
        selection.enabled &= !flags.no_auto;
        Ok(RunOptions {
            model: flags.model.clone(),
            skills: flags.skills.clone(),
            selection: Some(selection),
            paths: flags.paths.clone(),
            limits: Some(limits),
            permissions: Some(self.build_permissions(flags)?),
            backend: self.make_backend(flags)?,
            mcp_servers: self.mcp_servers(),
            forms: Some(self.answer_forms()),
            ..RunOptions::default()
        })
    }

    /// Returns the forms by which external agents return answers, with this program as the MCP
    /// server for them.
    pub(crate) fn answer_forms(&self) -> AnswerForms {
        let exe = std::env::current_exe().ok();
        let exe = exe.and_then(|path| path.into_os_string().into_string().ok());
        // Gemini asks before calling a tool of an untrusted server; other agents ignore `trust`.
        let server =
            exe.map(|exe| serde_json::json!({ "command": exe, "args": ["mcp"], "trust": true }));
        AnswerForms::new(self.env.data_dir().join("forms"), server)
    }

    /// Returns the configured MCP servers as an `mcpServers` object.
    fn mcp_servers(&self) -> Option<serde_json::Value> {
        self.config.get_table("mcp_servers").and_then(|table| serde_json::to_value(table).ok())
    }

    /// Parses the configured MCP servers.
    fn mcp_configs(&self) -> Result<BTreeMap<String, McpServerConfig>, CliFailure> {
        let servers = self.mcp_servers().unwrap_or_default();
        let servers = servers.as_object().into_iter().flatten();
        let read = |(name, value): (&String, &serde_json::Value)| {
            let config = McpServerConfig::from_json(name, value).map_err(|error| {
                CliFailure::wrong_usage(format!(
                    "{}: {error}",
                    self.config.describe_origin("mcp_servers")
                ))
            })?;
            Ok((name.clone(), config))
        };
        servers.map(read).collect()
    }

    /// Counts the uses of skills, which influence later selections.
    pub(crate) fn remember_use(&self, talk: &OpenConversation) {
        // The counts are only a tie-breaker, so a failed write is no reason to fail a finished run.
        let _ = talk.used_skills().add_to(&self.usage_path());
    }

    /// Checks that the agent exists and its model is available, before anything is started.
    pub(crate) fn check_reach(
        &self,
        system: &System,
        agent: &str,
        flags: &RunFlags,
        instead: Option<&str>,
    ) -> Result<(), CliFailure> {
        let definition = load_definition(system, agent)?;
        if !is_builtin_loop(flags) {
            return Ok(());
        }
        let model = flags.model.as_ref().or(definition.model.as_ref());
        let model = model.unwrap_or(&system.config().model);
        match self.env.model_endpoints().get(model.service) {
            Some(_) => Ok(()),
            None => Err(instead.into_iter().fold(self.no_key(model), CliFailure::hint)),
        }
    }

    fn no_key(&self, model: &ModelName) -> CliFailure {
        let variable = match model.service {
            ModelService::Anthropic => "ANTHROPIC_API_KEY",
            ModelService::OpenAi | ModelService::Compat => "OPENAI_API_KEY",
        };
        let mut failure =
            CliFailure::cannot_run(format!("there is no key for {model}: {variable} is not set"));
        failure = match self.env.var("OPENAI_BASE_URL") {
            Some(url) => failure.hint(format!("For the server at {url}: `-m compat/NAME`.")),
            None => failure.hint(
                "A server of your own (Ollama, vLLM, llama.cpp): `-m compat/NAME`, with OPENAI_BASE_URL for its address.",
            ),
        };
        let found = self.agent_clis();
        if !found.is_empty() {
            let list: Vec<String> =
                found.iter().map(|name| format!("`--backend {name}`")).collect();
            failure =
                failure.hint(format!("An agent that is installed here: {}.", list.join(", ")));
        }
        failure
    }
}

fn limit_or_none(set: Option<u64>, usual: Option<u64>) -> Option<u64> {
    set.or(usual).filter(|most| *most > 0)
}

/// Reads the definition of an agent. The failure suggests a similar name.
pub(crate) fn load_definition(system: &System, agent: &str) -> Result<AgentDefinition, CliFailure> {
    let catalog = system.catalog();
    if let Some(entry) = catalog.get_agent(agent) {
        return AgentDefinition::from_entry(entry).map_err(|error| {
            let file = catalog.places().shorten_path(&entry.skill.origin.file);
            CliFailure::cannot_run(error.to_string()).hint(format!("It is defined in {file}."))
        });
    }
    if agent == DEFAULT_AGENT {
        return Ok(AgentDefinition::default());
    }
    if let Some(broken) = broken_agent(&catalog, agent) {
        return Err(CliFailure::cannot_run(broken));
    }
    let names = system.agent_names();
    let failure = CliFailure::cannot_run(format!("there is no agent `{agent}`"));
    let failure = match nearest_name(agent, names.iter().map(String::as_str)) {
        Some(near) => failure.hint(format!("Did you mean `{near}`?")),
        None => failure,
    };
    Err(failure.hint("`rep agents` lists them."))
}

/// Returns a message if the agent's file exists but cannot be parsed.
fn broken_agent(catalog: &Catalog, agent: &str) -> Option<String> {
    let mut broken = catalog.broken().iter();
    let broken = broken.find(|broken| broken.path.file_stem() == Some(agent))?;
    let BrokenSkill { reason, path, .. } = broken;
    let path = catalog.places().shorten_path(path);
    Some(format!("`{agent}` is broken: {} [{}], {path}", reason.message, reason.code.id))
}

/// Returns the name that a broken file would have as an agent, if it lies in an `agents` folder.
pub(crate) fn broken_name(broken: &BrokenSkill) -> Option<&str> {
    let is_agent = broken.path.components().any(|part| part.as_str() == "agents");
    broken.path.file_stem().filter(|stem| is_agent && !stem.eq_ignore_ascii_case("skill"))
}

pub(crate) fn build_failure(error: SystemBuildError) -> CliFailure {
    CliFailure::cannot_run(error.to_string())
}

/// Converts an error of the conversation store to a failure.
pub(crate) fn store_failure(error: ConversationStoreError) -> CliFailure {
    match &error {
        ConversationStoreError::NotFound { .. }
        | ConversationStoreError::Ambiguous { .. }
        | ConversationStoreError::NoneIn { .. } => {
            CliFailure::cannot_run(error.to_string()).hint("`rep conversations` lists them.")
        }
        ConversationStoreError::InUse { .. } => CliFailure::cannot_run(error.to_string())
            .hint("Wait for it, or begin a new conversation without `--resume`."),
        ConversationStoreError::Damaged { path, .. } => CliFailure::cannot_run(error.to_string())
            .hint(format!(
                "What happened is in {}; begin a new conversation without `--resume`.",
                path.with_file_name("events.jsonl")
            )),
        ConversationStoreError::Newer { .. } => {
            CliFailure::cannot_run(error.to_string()).hint("Use the later version of `rep`.")
        }
        ConversationStoreError::Io { .. } => CliFailure::cannot_run(error.to_string()),
    }
}
