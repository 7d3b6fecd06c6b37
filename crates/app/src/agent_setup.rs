//! Assembles the system that runs agents from the configuration and the caller's options.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
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
use repertoire_model::ModelName;
use repertoire_model::prices::ModelPrices;
use repertoire_sandbox::process::UsageLimits;
use repertoire_skill::activate::ReferenceMode;
use repertoire_skill::catalog::{BrokenSkill, Catalog};
use repertoire_skill::name::nearest_name;
use repertoire_text::clock::SystemClock;
use repertoire_text::repository;

use crate::config::{ByteCount, ConfigKey, KEY, RuleTexts, SandboxSetting};
use crate::context::AppContext;
use crate::conversation::{
    ConversationDriver, ConversationStore, ConversationStoreError, OpenConversation,
};
use crate::error::AppError;
use crate::permission_rules::{KnownTools, parse_rules};
use crate::plan_setup::journal_clock;
use crate::usage::SkillUse;

mod backends;
mod sandbox;

use backends::is_builtin_loop;

/// Options of a run of an agent, which take precedence over the configuration.
#[derive(Clone, Debug, Default)]
pub struct AgentRunOptions {
    pub model: Option<ModelName>,
    /// The backend that executes the turns: `api`, `claude`, `codex`, `opencode`, `gemini`, `acp:PROGRAM`,
    /// `command:PROGRAM` or `scripted:FILE`.
    pub backend: Option<String>,
    /// Skills that are always loaded.
    pub skills: Vec<String>,
    /// True if only skills that are named explicitly are used.
    pub no_auto: bool,
    /// Paths that the task touches, which help to choose skills.
    pub paths: Vec<Utf8PathBuf>,
    /// The folder that the agent works in. `None` for the environment's working folder.
    pub work_dir: Option<Utf8PathBuf>,
    /// Maximum cost of the run, in US dollars.
    pub cost_usd_max: Option<f64>,
    /// Maximum number of turns.
    pub turns_max: Option<u32>,
    /// Maximum number of tokens of all calls together.
    pub tokens_max: Option<u64>,
    /// Maximum duration of the run.
    pub duration_max: Option<Duration>,
    /// The actions that the agent may take without asking. `None` for the configured ones.
    pub mode: Option<PermissionMode>,
    /// Rules for calls to allow, such as `bash(git status:*)`.
    pub allow: Vec<String>,
    /// Rules for calls to forbid.
    pub deny: Vec<String>,
}

impl AppContext<'_> {
    /// Returns a driver for conversations, as configured. Adds warnings about MCP servers that did not start, and
    /// about permission rules without effect.
    pub async fn build_driver(
        &self,
        options: &AgentRunOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(ConversationDriver, McpServers), AppError> {
        let (builder, servers) = self.build_with_mcp_servers(options, warnings).await?;
        let driver =
            ConversationDriver::new(builder, self.conversation_store()).map_err(build_failure)?;
        let driver = driver.in_folder(self.project_dir(options.work_dir.as_deref()));
        let servers =
            self.check_rules_or_close(driver.system(), servers, options, warnings).await?;
        Ok((driver, servers))
    }

    /// Returns a system that saves no conversations. Adds warnings as [`AppContext::build_driver`] does.
    pub async fn build_system(
        &self,
        options: &AgentRunOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(System, McpServers), AppError> {
        let (builder, servers) = self.build_with_mcp_servers(options, warnings).await?;
        let system = builder.build().map_err(build_failure)?;
        let servers = self.check_rules_or_close(&system, servers, options, warnings).await?;
        Ok((system, servers))
    }

    /// Starts the MCP servers and adds their tools. The servers run as long as the returned value
    /// lives.
    async fn build_with_mcp_servers(
        &self,
        options: &AgentRunOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(SystemBuilder, McpServers), AppError> {
        let mut builder = self.system_builder(options)?;
        let configs = self.mcp_configs()?;
        // An external agent starts the servers itself.
        if configs.is_empty() || !is_builtin_loop(options) {
            return Ok((builder, McpServers::default()));
        }
        let place = McpEnvironment {
            dir: self.work_dir(options),
            environment: self.env.tool_environment(false),
            limits: McpLimits::default(),
        };
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = said.clone();
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
        warnings.append(&mut said.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((builder, servers))
    }

    /// Checks the permission rules, and closes the servers if a rule is invalid.
    async fn check_rules_or_close(
        &self,
        system: &System,
        servers: McpServers,
        options: &AgentRunOptions,
        warnings: &mut Vec<String>,
    ) -> Result<McpServers, AppError> {
        // An external agent has tools of its own, which are unknown here.
        if !is_builtin_loop(options) {
            return Ok(servers);
        }
        match self.check_rules(&self.known_tools(system), options, warnings) {
            Ok(()) => Ok(servers),
            Err(failure) => {
                servers.close().await;
                Err(failure)
            }
        }
    }

    /// Returns the tools that rules can name, including those of MCP servers that are not running.
    pub fn known_tools(&self, system: &System) -> KnownTools {
        let servers = self.mcp_servers().unwrap_or_default();
        let servers = servers.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        KnownTools::new(system.tools().iter().map(|tool| tool.name().to_owned()), servers)
    }

    /// Returns the tools that are available without starting anything.
    pub fn builtin_tools(&self) -> Result<KnownTools, AppError> {
        let system =
            self.system_builder(&AgentRunOptions::default())?.build().map_err(build_failure)?;
        Ok(self.known_tools(&system))
    }

    /// Returns the project's folder: the top of the repository, or the working folder outside of
    /// one.
    pub fn project_dir(&self, cd: Option<&Utf8Path>) -> Utf8PathBuf {
        let here = cd.map_or_else(|| self.env.here.clone(), |dir| self.env.here.join(dir));
        let here = here.canonicalize_utf8().unwrap_or(here);
        let found = repository::find_work_tree(&here, &self.env.home()).map(Utf8Path::to_owned);
        found.unwrap_or(here)
    }

    /// Returns a note if a conversation was started in another project.
    pub fn note_on_other_project(
        &self,
        talk: &OpenConversation,
        options: &AgentRunOptions,
    ) -> Option<String> {
        let folder = &talk.head().folder;
        let is_here = *folder == self.project_dir(options.work_dir.as_deref());
        let short = || self.config.places().shorten_path(folder.as_str().into());
        (!folder.is_empty() && !is_here)
            .then(|| format!("this conversation was begun in {}, and goes on here", short()))
    }

    /// Returns the store of conversations. The journal is opened when it is first needed.
    pub fn conversation_store(&self) -> ConversationStore {
        let runs_dir = self.run_places().runs;
        ConversationStore::open_later(self.journal_target(None), journal_clock(), runs_dir)
    }

    fn usage_path(&self) -> Utf8PathBuf {
        self.env.data_dir().join("usage.json")
    }

    /// Returns a builder of the configured system, without the tools of MCP servers.
    pub fn system_builder(&self, options: &AgentRunOptions) -> Result<SystemBuilder, AppError> {
        Ok(System::builder()
            .discover(self.config.discovery_request()?)
            .config(self.agent_config(options)?)
            .endpoints(self.env.model_endpoints())
            .prices(self.model_prices()?)
            .environment(self.env.tool_environment(!is_builtin_loop(options)))
            .sandbox(self.configured_sandbox()?)
            .selector(self.make_selector()?)
            .research(self.research_settings())
            .work_dir(self.work_dir(options))
            .spill_dir(self.env.output_dir()))
    }

    fn agent_config(
        &self,
        options: &AgentRunOptions,
    ) -> Result<repertoire_agent::AgentConfig, AppError> {
        let config = &self.config;
        let mut out = repertoire_agent::AgentConfig {
            model: config.values().model.clone(),
            auto_trigger: config.selection_settings(),
            ..repertoire_agent::AgentConfig::default()
        };
        out.skill_budget.body_chars_max = config.values().skills_max_body_chars;
        if config.values().skills_load_references {
            out.references = ReferenceMode::Appended;
        }
        out.permissions = self.build_permissions(options)?;
        out.limits = self.run_limits();
        out.tools.usage = self.usage_limits();
        out.usage = SkillUse::read(&self.usage_path()).skills;
        Ok(out)
    }

    /// Returns the settings of the `research` tool.
    fn research_settings(&self) -> ResearchSettings {
        let search_url = self.config.values().research_search_url.clone();
        ResearchSettings { search_url, ..ResearchSettings::default() }
    }

    /// Returns a handle to git in a folder, running in the sandbox.
    pub fn git_in(&self, dir: impl Into<Utf8PathBuf>) -> Result<GitClient, AppError> {
        Ok(GitClient::new(dir, self.env.tool_environment(false), self.configured_sandbox()?))
    }

    /// Returns true if programs must run in a sandbox where outsiders' text can influence them. The
    /// user can waive that with `sandbox = "off"`.
    pub fn needs_sandbox(&self) -> bool {
        self.config.values().sandbox != SandboxSetting::Off
    }

    /// Returns the permissions from the configuration and the options.
    fn build_permissions(&self, options: &AgentRunOptions) -> Result<RunPermissions, AppError> {
        let values = self.config.values();
        let mode = options.mode.unwrap_or(values.permissions_mode);
        let configured = |key: &ConfigKey, rules: &RuleTexts| {
            parse_rules(&rules.0, &self.config.describe_origin(key))
        };
        let mut out = RunPermissions::new(mode).in_dir(self.work_dir(options));
        out.allow = configured(&KEY.permissions_allow, &values.permissions_allow)?;
        out.ask = configured(&KEY.permissions_ask, &values.permissions_ask)?;
        out.deny = configured(&KEY.permissions_deny, &values.permissions_deny)?;
        out.allow.extend(parse_rules(&options.allow, "--allow")?);
        out.deny.extend(parse_rules(&options.deny, "--deny")?);
        Ok(out)
    }

    fn work_dir(&self, options: &AgentRunOptions) -> Utf8PathBuf {
        let here = &self.env.here;
        options.work_dir.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir))
    }

    fn run_limits(&self) -> RunLimits {
        let values = self.config.values();
        RunLimits {
            depth_max: values.limits_depth,
            iterations_max: values.limits_iterations,
            tokens_max: values.limits_tokens,
            cost_usd_max: values.limits_cost,
            duration_max: values.limits_duration,
        }
    }

    /// Returns the limits on a command with everything that it starts. 0 means no limit.
    pub fn usage_limits(&self) -> UsageLimits {
        let values = self.config.values();
        let usual = UsageLimits::default_limits();
        UsageLimits {
            memory_bytes_max: match values.limits_command_memory {
                Some(ByteCount(bytes)) => limit_or_none(bytes),
                None => usual.memory_bytes_max,
            },
            processes_max: limit_or_none(values.limits_command_processes),
            disk_bytes_max: limit_or_none(values.limits_command_disk.0),
        }
    }

    fn model_prices(&self) -> Result<ModelPrices, AppError> {
        let mut prices = ModelPrices::builtin();
        if let Some(table) = &self.config.values().models {
            prices.extend(table).map_err(|error| {
                let origin = self.config.describe_origin(&KEY.models);
                AppError::wrong_usage(format!("{origin}: `models`: {error}"))
            })?;
        }
        Ok(prices)
    }

    /// Returns the options of a run for the system.
    pub fn run_options(&self, options: &AgentRunOptions) -> Result<RunOptions, AppError> {
        let mut limits = self.run_limits();
        limits.cost_usd_max = options.cost_usd_max.or(limits.cost_usd_max);
        limits.tokens_max = options.tokens_max.or(limits.tokens_max);
        limits.iterations_max = options.turns_max.unwrap_or(limits.iterations_max);
        limits.duration_max = options.duration_max.unwrap_or(limits.duration_max);
        let mut selection = self.config.selection_settings();
        selection.enabled &= !options.no_auto;
        Ok(RunOptions {
            model: options.model.clone(),
            skills: options.skills.clone(),
            selection: Some(selection),
            paths: options.paths.clone(),
            limits: Some(limits),
            permissions: Some(self.build_permissions(options)?),
            backend: self.make_backend(options)?,
            mcp_servers: self.mcp_servers(),
            forms: Some(self.answer_forms()),
            ..RunOptions::default()
        })
    }

    /// Returns the forms by which external agents return answers, with the `rep` program as the MCP
    /// server for them.
    pub fn answer_forms(&self) -> AnswerForms {
        // Gemini asks before calling a tool of an untrusted server; other agents ignore `trust`.
        let server = self
            .env
            .rep_program
            .as_ref()
            .map(|exe| serde_json::json!({ "command": exe, "args": ["mcp"], "trust": true }));
        AnswerForms::new(self.env.data_dir().join("forms"), server)
    }

    /// Returns the configured MCP servers as an `mcpServers` object.
    fn mcp_servers(&self) -> Option<serde_json::Value> {
        let servers = self.config.values().mcp_servers.as_ref();
        servers.and_then(|table| serde_json::to_value(table).ok())
    }

    /// Parses the configured MCP servers.
    fn mcp_configs(&self) -> Result<BTreeMap<String, McpServerConfig>, AppError> {
        let servers = self.mcp_servers().unwrap_or_default();
        let servers = servers.as_object().into_iter().flatten();
        let read = |(name, value): (&String, &serde_json::Value)| {
            let config = McpServerConfig::from_json(name, value).map_err(|error| {
                let origin = self.config.describe_origin(&KEY.mcp_servers);
                AppError::wrong_usage(format!("{origin}: {error}"))
            })?;
            Ok((name.clone(), config))
        };
        servers.map(read).collect()
    }

    /// Counts the uses of skills, which influence later selections.
    pub fn remember_use(&self, talk: &OpenConversation) {
        // The counts are only a tie-breaker, so a failed write is no reason to fail a finished run.
        let _ = talk.used_skills().add_to(&self.usage_path());
    }

    /// Checks that the agent exists and its model is available, before anything is started.
    pub fn check_reach(
        &self,
        system: &System,
        agent: &str,
        options: &AgentRunOptions,
        instead: Option<&str>,
    ) -> Result<(), AppError> {
        let definition = load_definition(system, agent)?;
        if !is_builtin_loop(options) {
            return Ok(());
        }
        let model = options.model.as_ref().or(definition.model.as_ref());
        let model = model.unwrap_or(&system.config().model);
        match self.env.model_endpoints().get(model.service) {
            Some(_) => Ok(()),
            None => Err(instead.into_iter().fold(self.no_key(model), AppError::hint)),
        }
    }

    fn no_key(&self, model: &ModelName) -> AppError {
        let variable = model.service.variables().key;
        let mut failure =
            AppError::cannot_run(format!("there is no key for {model}: {variable} is not set"));
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

/// Returns a limit for which 0 means none.
fn limit_or_none(most: u64) -> Option<u64> {
    (most > 0).then_some(most)
}

/// Reads the definition of an agent. The failure suggests a similar name.
pub fn load_definition(system: &System, agent: &str) -> Result<AgentDefinition, AppError> {
    let catalog = system.catalog();
    if let Some(entry) = catalog.get_agent(agent) {
        return AgentDefinition::from_entry(entry).map_err(|error| {
            let file = catalog.places().shorten_path(&entry.skill.origin.file);
            AppError::cannot_run(error.to_string()).hint(format!("It is defined in {file}."))
        });
    }
    if agent == DEFAULT_AGENT {
        return Ok(AgentDefinition::default());
    }
    if let Some(broken) = broken_agent(&catalog, agent) {
        return Err(AppError::cannot_run(broken));
    }
    let names = system.agent_names();
    let failure = AppError::cannot_run(format!("there is no agent `{agent}`"));
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
pub fn broken_name(broken: &BrokenSkill) -> Option<&str> {
    let is_agent = broken.path.components().any(|part| part.as_str() == "agents");
    broken.path.file_stem().filter(|stem| is_agent && !stem.eq_ignore_ascii_case("skill"))
}

pub fn build_failure(error: SystemBuildError) -> AppError {
    AppError::cannot_run(error.to_string())
}

/// Converts an error of the conversation store to a failure.
pub fn store_failure(error: ConversationStoreError) -> AppError {
    let failure = AppError::cannot_run(error.to_string());
    match error {
        ConversationStoreError::NotFound { .. }
        | ConversationStoreError::Ambiguous { .. }
        | ConversationStoreError::NoneIn { .. } => {
            failure.hint("`rep runs --kind conversation` lists them.")
        }
        ConversationStoreError::InUse { .. } => {
            failure.hint("Wait for it, or begin a new conversation without `--resume`.")
        }
        ConversationStoreError::Continued { id } => {
            failure.hint(format!("`--resume {id}` goes on from there, without this turn."))
        }
        ConversationStoreError::Damaged { .. } => {
            failure.hint("Begin a new conversation without `--resume`.")
        }
        ConversationStoreError::Newer { .. } => failure.hint("Use the later version of `rep`."),
        ConversationStoreError::NotSaved { source, .. } => {
            AppError { message: failure.message, ..store_failure(*source) }
        }
        ConversationStoreError::Io { .. }
        | ConversationStoreError::Journal(_)
        | ConversationStoreError::WriterCrashed => failure,
    }
}
