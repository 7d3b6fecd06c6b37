//! Assembles runs of plans from the configuration and the options: the journal, the request,
//! and the agents that do the work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::definition::{AgentDefinition, ToolFilter};
use repertoire_agent::event::EventSink;
use repertoire_agent::permission::PermissionMode;
use repertoire_agent::{RunOptions, System};
use repertoire_checks::declared::{self, AllowedVariables, CheckDefinition, VariableRefusal};
use repertoire_github::base;
use repertoire_journal::run::Limits;
use repertoire_journal::{ClaimRules, Journal, JournalClock, JournalError, Target};
use repertoire_model::{ApiSecret, ModelName};
use repertoire_plan::learnings::LearningsFile;
use repertoire_plan::{
    PlanAgentProvider, PlanAgentSetup, PlanDeliveryMode, PlanLimits, PlanRequest, PlanRunner,
    PlanStepAgent, RecoverySettings, RunFolders, SkillRules,
};
use repertoire_select::settings::StepKind;
use repertoire_text::clock::{Clock as _, SystemClock};
use repertoire_text::fs;

use crate::agent_setup::{AgentRunOptions, build_failure};
use crate::config::{ConfigFlags, ConfigKey, ConfigValues, KEY, RepConfig};
use crate::consent;
use crate::context::AppContext;
use crate::env::AppEnvironment;
use crate::error::AppError;

const INSTRUCTIONS_BYTES_MAX: u64 = 256 * 1024;

/// The failure of opening the journal.
pub fn journal_unavailable(target: &Target, error: &JournalError) -> AppError {
    AppError::cannot_run(error.to_string()).hint(match target {
        Target::File(path) => format!("Runs are recorded in {path}."),
        Target::Url(_) => {
            "`database_url` (REPERTOIRE_DATABASE_URL) says where runs are recorded.".to_owned()
        }
    })
}

/// Returns the clock that stamps events: that of the system.
pub fn journal_clock() -> JournalClock {
    Arc::new(|| SystemClock.now_ms())
}

/// Options of a plan's run, which take precedence over the configuration.
#[derive(Clone, Debug, Default)]
pub struct PlanRunOptions {
    /// Specifications of the plan's goal that prompts refer to.
    pub specs: Vec<Utf8PathBuf>,
    /// Other files that prompts refer to.
    pub context: Vec<Utf8PathBuf>,
    /// Commands that must succeed after every change, in addition to `plan.checks`.
    pub checks: Vec<String>,
    /// True if known fixes and the tools' own fixers are tried on failed checks before asking an agent again.
    pub self_improve: bool,
    /// True if work is accepted without a review.
    pub no_review: bool,
    /// The branch to start from. `None` for the current branch.
    pub base: Option<String>,
    /// True if the run starts even if the checkout has uncommitted changes, which it leaves out.
    pub allow_dirty: bool,
    /// The way in which the finished work is delivered.
    pub ending: Option<PlanDeliveryMode>,
    /// The backend that executes the turns, as in [`AgentRunOptions::backend`].
    pub backend: Option<String>,
    /// The backend of reviews. `None` for the same one.
    pub review_backend: Option<String>,
    pub model: Option<String>,
    /// The model of reviews. `None` for the same one, unless the backend differs.
    pub review_model: Option<String>,
    pub agent: Option<String>,
    /// The agent of reviews.
    pub review_agent: Option<String>,
    /// Maximum cost of the whole run, in US dollars.
    pub cost_usd_max: Option<f64>,
    /// Maximum number of tokens of the whole run.
    pub tokens_max: Option<u64>,
    /// Maximum time that the whole run works.
    pub duration_max: Option<Duration>,
    /// Number of attempts after which a task is marked as failed.
    pub attempts_max: Option<u32>,
    /// True if agents may do anything without asking. Otherwise they can change files in the worktree and run
    /// commands in the sandbox.
    pub full_access: bool,
    /// Rules for calls to allow, such as `bash(git status:*)`.
    pub allow: Vec<String>,
    /// Rules for calls to forbid.
    pub deny: Vec<String>,
}

/// The time at which the checks of a table have to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStage {
    /// `plan.checks`: after every change.
    EveryChange,
    /// `plan.final_checks`: before a run is complete.
    Completion,
}

impl CheckStage {
    pub const ALL: [CheckStage; 2] = [CheckStage::EveryChange, CheckStage::Completion];

    /// The key of the table that declares the checks.
    pub fn config_key(self) -> &'static ConfigKey {
        match self {
            CheckStage::EveryChange => &KEY.plan_checks,
            CheckStage::Completion => &KEY.plan_final_checks,
        }
    }

    fn declared_table(self, values: &ConfigValues) -> Option<&toml::Table> {
        match self {
            CheckStage::EveryChange => values.plan_checks.as_ref(),
            CheckStage::Completion => values.plan_final_checks.as_ref(),
        }
    }
}

impl AppContext<'_> {
    /// Returns the location of the journal: the configured database, or a file in the data folder.
    pub fn journal_target(&self, database: Option<&str>) -> Target {
        let configured = self.config.values().database_url.as_ref().map(ApiSecret::reveal);
        match database.or(configured) {
            Some(url) => Target::Url(url.to_owned()),
            None => Target::File(self.env.data_dir().join("journal.sqlite")),
        }
    }

    pub async fn journal(&self, database: Option<&str>) -> Result<Journal, AppError> {
        let target = self.journal_target(database);
        let opened = Journal::open(&target, journal_clock()).await;
        opened.map_err(|error| journal_unavailable(&target, &error))
    }

    /// Returns the folders that runs use.
    pub fn run_places(&self) -> RunFolders {
        let data = self.env.data_dir();
        RunFolders {
            worktrees: data.join("worktrees"),
            runs: data.join("runs"),
            learnings: data.join("learnings"),
        }
    }

    /// Returns the learnings of a workspace.
    pub fn plan_learnings(&self, workspace: &Utf8Path) -> LearningsFile {
        LearningsFile::new(&self.run_places().learnings, workspace.as_str())
    }

    /// Returns the driver of plan runs.
    pub fn plan_runner(&self, journal: Journal, on_agent_event: Option<EventSink>) -> PlanRunner {
        let agent_provider = Arc::new(PlanAgentBuilder::new(self.env));
        PlanRunner { journal, agent_provider, places: self.run_places(), on_agent_event }
    }

    /// Returns the order of the queue and the maximum number of concurrent runs.
    pub fn queue_rules(&self) -> ClaimRules {
        let values = self.config.values();
        ClaimRules {
            order: values.queue_order,
            total_max: Some(values.queue_runs_max).filter(|max| *max > 0),
            per_workspace_max: Some(values.queue_workspace_runs_max).filter(|max| *max > 0),
        }
    }

    /// Time without a sign of life after which other workers take over a worker's runs.
    pub fn lease_duration(&self) -> Duration {
        self.config.values().queue_lease.max(Duration::from_millis(100))
    }

    /// Builds the request of a plan run from the options and the configuration. `plan` is
    /// relative to the workspace.
    pub fn plan_request(
        &self,
        plan: Utf8PathBuf,
        workspace: &Utf8Path,
        options: &PlanRunOptions,
    ) -> Result<PlanRequest, AppError> {
        let (config, values) = (&self.config, self.config.values());
        let configured_model = |model: &Option<ModelName>| model.as_ref().map(ModelName::to_string);
        let backend = options.backend.clone().or_else(|| values.plan_backend.clone());
        let model = options.model.clone().or_else(|| configured_model(&values.plan_model));
        let review_backend =
            options.review_backend.clone().or_else(|| values.plan_review_backend.clone());
        let review_model =
            options.review_model.clone().or_else(|| configured_model(&values.plan_review_model));
        let implementer = PlanStepAgent {
            agent: options.agent.clone().or_else(|| values.plan_agent.clone()),
            backend: backend.map(|backend| self.absolute_backend(&backend)),
            model,
            mode: options.full_access.then(|| "full".to_owned()),
            allow: options.allow.clone(),
            deny: options.deny.clone(),
            ..PlanStepAgent::default()
        };
        // A reviewer on a different backend does not inherit the implementer's model.
        let own_model = review_backend.is_none().then(|| implementer.model.clone()).flatten();
        let reviewer = PlanStepAgent {
            agent: options.review_agent.clone().or_else(|| values.plan_review_agent.clone()),
            backend: match review_backend {
                Some(backend) => Some(self.absolute_backend(&backend)),
                None => implementer.backend.clone(),
            },
            model: review_model.or(own_model),
            ..implementer.clone()
        };
        let mut all = self.declared_checks(CheckStage::EveryChange)?;
        let typed = options.checks.iter().enumerate();
        all.extend(
            typed.map(|(at, command)| CheckDefinition::new(format!("check-{}", at + 1), command)),
        );
        let request = PlanRequest {
            plan,
            asked: None,
            specs: self.make_relative_to(workspace, &options.specs)?,
            context: self.make_relative_to(workspace, &options.context)?,
            instructions: self.read_instructions()?,
            implementer,
            reviewer,
            review: !options.no_review && values.plan_review,
            checks: all,
            final_checks: self.declared_checks(CheckStage::Completion)?,
            base_branch: options.base.clone(),
            branch_prefix: values.plan_branch_prefix.clone(),
            allow_dirty: options.allow_dirty,
            copy: values.plan_copy.clone(),
            setup: values.plan_setup.clone().filter(|command| !command.trim().is_empty()),
            ending: options.ending.unwrap_or(values.plan_ending),
            once: false,
            bounds: self.plan_bounds(options),
            skills: SkillRules {
                enabled: values.skills_enabled,
                chosen: config.selection_settings().enabled,
                impl_max: config.max_skills_for(StepKind::Implementation),
                review_max: config.max_skills_for(StepKind::Review),
                body_chars_max: values.skills_max_body_chars,
                references: values.skills_load_references,
                ..SkillRules::default()
            },
            improve: (options.self_improve || values.plan_self_improve).then(|| RecoverySettings {
                scope: workspace.to_string(),
                network: values.plan_self_improve_network,
                ..RecoverySettings::default()
            }),
        };
        let both: Vec<CheckDefinition> =
            request.checks.iter().chain(&request.final_checks).cloned().collect();
        declared::validate_checks(&both).map_err(|error| {
            AppError::wrong_usage(error.to_string())
                .hint("Checks are declared in `plan.checks` of repertoire.toml.")
        })?;
        Ok(request)
    }

    /// Returns the bounds of a run. An untrusted project may lower them, but not raise them.
    fn plan_bounds(&self, options: &PlanRunOptions) -> PlanLimits {
        let (values, usual) = (self.config.values(), PlanLimits::default());
        let attempts = self.bounded(&KEY.plan_attempts, values.plan_attempts, usual.attempts_max);
        let step_ms = values.plan_step_time.as_millis() as u64;
        PlanLimits {
            attempts_max: options.attempts_max.unwrap_or(attempts),
            failures_max: self.bounded(
                &KEY.plan_failures,
                values.plan_failures,
                usual.failures_max,
            ),
            iterations_max: self.bounded(
                &KEY.plan_iterations,
                values.plan_iterations,
                usual.iterations_max,
            ),
            step_ms_max: self.bounded(&KEY.plan_step_time, step_ms, usual.step_ms_max),
            ..usual
        }
    }

    /// Returns the value of a key, but at most the usual one if a project has set it.
    fn bounded<T: Ord>(&self, key: &ConfigKey, value: T, usual: T) -> T {
        if self.config.is_from_project(key) { value.min(usual) } else { value }
    }

    /// Returns the limits of a run from the options and the configuration.
    pub fn plan_limits(&self, options: &PlanRunOptions) -> Limits {
        let values = self.config.values();
        let time = options.duration_max.or(values.plan_max_time);
        Limits {
            cost_usd: options.cost_usd_max.or(values.plan_max_cost),
            tokens: options.tokens_max.or(values.plan_max_tokens),
            time_ms: time.map(|time| time.as_millis() as u64),
        }
    }

    /// Returns the checks that the configuration declares for a stage.
    ///
    /// # Errors
    ///
    /// Fails if a check is invalid, and as long as the user has not agreed to the project's checks.
    pub fn declared_checks(&self, stage: CheckStage) -> Result<Vec<CheckDefinition>, AppError> {
        let key = stage.config_key();
        if self.config.proposed().iter().any(|setting| setting.key == key) {
            return Err(consent::consent_not_given());
        }
        let Some(table) = stage.declared_table(self.config.values()) else {
            return Ok(Vec::new());
        };
        let allowed = self.allowed_variables()?;
        let wrong = |check: &str, problem: String| {
            let place = self.config.place_within(key, &[check]);
            AppError::wrong_usage(format!("{place}: `{}.{check}`: {problem}", key.name))
                .hint("A check is a table with `command`, and perhaps `timeout`, `critical`, `depends_on`, `retries`, `network`, `env`.")
        };
        let read = |(check, value): (&String, &toml::Value)| {
            let toml::Value::Table(fields) = value else {
                return Err(wrong(check, "it is not a table".to_owned()));
            };
            let mut fields = fields.clone();
            fields.insert("name".to_owned(), toml::Value::from(check.as_str()));
            let read: CheckDefinition = toml::Value::Table(fields)
                .try_into()
                .map_err(|error: toml::de::Error| wrong(check, error.message().to_owned()))?;
            match self.refused_variable(key, &read, &allowed) {
                Some(failure) => Err(failure),
                None => Ok(read),
            }
        };
        table.iter().map(read).collect()
    }

    /// Returns the environment variables that checks may set.
    fn allowed_variables(&self) -> Result<AllowedVariables, AppError> {
        let added = self.config.values().checks_env_allowed.clone();
        AllowedVariables::with_added(added).map_err(|(variable, refusal)| {
            let key = &KEY.checks_env_allowed;
            let origin = self.config.describe_origin(key);
            AppError::wrong_usage(format!("{origin}: `{}`: `{variable}`: {refusal}", key.name))
        })
    }

    /// Returns the failure for the first variable that a check may not set.
    fn refused_variable(
        &self,
        key: &ConfigKey,
        check: &CheckDefinition,
        allowed: &AllowedVariables,
    ) -> Option<AppError> {
        let mut variables = check.env.keys().map(String::as_str);
        let (variable, refusal) =
            variables.find_map(|variable| Some((variable, allowed.refusal_of(variable)?)))?;
        let place = self.config.place_within(key, &[check.name.as_str(), "env", variable]);
        let path = format!("{}.{}.env.{variable}", key.name, check.name);
        let failure = AppError::wrong_usage(format!("{place}: `{path}`: {refusal}")).hint(format!(
            "Set it in the command, where it holds inside the sandbox only: `command = \"{variable}=… …\"`."
        ));
        Some(match refusal {
            VariableRefusal::NotListed => failure.hint(format!(
                "Or allow it in your own configuration: `checks.env_allowed = [\"{variable}\"]`."
            )),
            VariableRefusal::Forbidden | VariableRefusal::Malformed => failure,
        })
    }

    fn read_instructions(&self) -> Result<Option<String>, AppError> {
        let Some(path) = &self.config.values().plan_instructions else { return Ok(None) };
        let key = &KEY.plan_instructions;
        let project = self.project_dir(None);
        let real = path.canonicalize_utf8().unwrap_or_else(|_| path.clone());
        // An untrusted project must not get the user's other files sent to a model.
        if self.config.is_from_project(key) && !real.starts_with(&project) {
            let origin = self.config.describe_origin(key);
            return Err(AppError::wrong_usage(format!(
                "{origin}: `plan.instructions` {path} is not in {project}"
            ))
            .hint("A project may name a file of its own; your own configuration any file."));
        }
        let read = fs::read_text(path, INSTRUCTIONS_BYTES_MAX);
        read.map(Some).map_err(|error| {
            let origin = self.config.describe_origin(key);
            AppError::wrong_usage(format!(
                "{origin}: `plan.instructions` {path} cannot be read: {error}"
            ))
        })
    }

    /// Makes paths of the options relative to the workspace, since a run uses them in a
    /// worktree.
    pub fn make_relative_to(
        &self,
        workspace: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Vec<Utf8PathBuf>, AppError> {
        let one = |path: &Utf8PathBuf| {
            let full = self.env.here.join(path);
            let full = full.canonicalize_utf8().map_err(|error| {
                AppError::wrong_usage(format!("`{path}` cannot be found: {error}"))
            })?;
            full.strip_prefix(workspace).map(Utf8Path::to_owned).map_err(|_| {
                AppError::wrong_usage(format!("`{path}` is not in {workspace}")).hint(
                    "Runs work in a worktree of the repository, so what they need has to be in it.",
                )
            })
        };
        paths.iter().map(one).collect()
    }

    /// Makes the paths in a backend absolute, since runs start in a different folder.
    fn absolute_backend(&self, backend: &str) -> String {
        match backend.split_once(':') {
            Some(("scripted", file)) => format!("scripted:{}", self.env.here.join(file)),
            Some((kind, rest)) if rest.starts_with("./") || rest.starts_with("../") => {
                let (program, args) = rest.split_once(' ').unwrap_or((rest, ""));
                format!("{kind}:{} {args}", self.env.here.join(program)).trim_end().to_owned()
            }
            _ => backend.to_owned(),
        }
    }

    /// Returns the labels of a worker on this machine: the given ones and the host.
    pub fn worker_labels(&self, given: &[String]) -> BTreeSet<String> {
        let given =
            given.iter().map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        given.chain([host_label()]).collect()
    }
}

/// The label of this host. A run in one of its folders can only be worked on here.
pub fn host_label() -> String {
    format!("host:{}", host_name())
}

pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Assembles the agents of plan runs with the configuration of their workspace.
pub struct PlanAgentBuilder {
    env: AppEnvironment,
    /// Cached, since all runs of a workspace share skills and models. The flag tells if the backend
    /// is an external agent, since only these get API keys in their environment.
    systems: Mutex<BTreeMap<(Utf8PathBuf, bool), System>>,
    /// A checkout of the base branch whose skills are trusted: anyone who can write to that branch
    /// can also change the workflow that runs this program.
    vouched: Option<TrustedBaseConfig>,
}

/// A checkout of the base branch, with its configuration.
struct TrustedBaseConfig {
    base_checkout: base::BaseCheckout,
    config: RepConfig,
}

/// Tells if agents and models must be available.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReachCheck {
    Checked,
    Unchecked,
}

impl PlanAgentBuilder {
    pub fn new(env: &AppEnvironment) -> Self {
        PlanAgentBuilder { env: env.clone(), systems: Mutex::default(), vouched: None }
    }

    /// Trusts the skills of a checkout of the base branch, and uses its configuration for every
    /// workspace, so that files of a pull request have no influence.
    pub fn with_trusted_checkout(
        self,
        base_checkout: base::BaseCheckout,
        config: RepConfig,
    ) -> Self {
        PlanAgentBuilder { vouched: Some(TrustedBaseConfig { base_checkout, config }), ..self }
    }

    /// Assembles agents for previewing a prompt, which needs no API key and no program.
    pub fn build_for_preview(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<PlanAgentSetup, AppError> {
        let (implementer, reviewer) = (PlanStepAgent::default(), PlanStepAgent::default());
        let request = PlanRequest { implementer, reviewer, ..request.clone() };
        self.build_agents(workspace, &request, ReachCheck::Unchecked)
    }

    /// Checks that the agents, backends and models of a run are available.
    pub fn check_available(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<(), AppError> {
        self.build_agents(workspace, request, ReachCheck::Checked).map(drop)
    }

    fn build_agents(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
        reach: ReachCheck,
    ) -> Result<PlanAgentSetup, AppError> {
        let workspace =
            self.vouched.as_ref().map_or(workspace, |vouched| vouched.base_checkout.dir());
        let env = self.env.in_folder(workspace);
        let config = match &self.vouched {
            Some(vouched) => vouched.config.clone(),
            None => RepConfig::load(&env, workspace, &ConfigFlags::default())?,
        };
        let ctx = AppContext { env: &env, config };
        let implementer = agent_run_options(&request.implementer)?;
        let kind = (workspace.to_owned(), implementer.backend.is_some());
        let known = self.systems.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        let system = match known {
            Some(system) => system,
            None => {
                let mut builder = ctx.system_builder(&implementer)?;
                if let Some(vouched) = &self.vouched {
                    let request =
                        vouched.base_checkout.trust_skills(ctx.config.discovery_request()?);
                    let cannot = |error: base::BaseError| AppError::cannot_run(error.to_string());
                    builder = builder.discover(request.map_err(cannot)?);
                }
                let system = builder.build().map_err(build_failure)?;
                let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
                systems.insert(kind, system.clone());
                system
            }
        };
        for step_agent in [&request.implementer, &request.reviewer] {
            if reach == ReachCheck::Unchecked {
                break;
            }
            let agent = step_agent.agent.as_deref().unwrap_or("default");
            ctx.check_reach(&system, agent, &agent_run_options(step_agent)?, None)?;
        }
        let run_options = |step_agent: &PlanStepAgent,
                           options: &AgentRunOptions|
         -> Result<RunOptions, AppError> {
            Ok(RunOptions {
                definition: definition_of(step_agent),
                ignore_project_rules: step_agent.ignore_project_rules,
                ..ctx.run_options(options)?
            })
        };
        Ok(PlanAgentSetup {
            system,
            implementer: run_options(&request.implementer, &implementer)?,
            reviewer: run_options(&request.reviewer, &agent_run_options(&request.reviewer)?)?,
            environment: env.tool_environment(false),
        })
    }
}

impl PlanAgentProvider for PlanAgentBuilder {
    fn agent_setup(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<PlanAgentSetup, String> {
        self.build_agents(workspace, request, ReachCheck::Checked).map_err(|failure| {
            let hints = failure.hints.iter().map(|hint| format!(" {hint}"));
            format!("{}.{}", failure.message.trim_end_matches('.'), hints.collect::<String>())
        })
    }
}

/// Returns an agent definition for a request with its own system prompt or tools. `None` if it has
/// neither.
fn definition_of(step_agent: &PlanStepAgent) -> Option<AgentDefinition> {
    if step_agent.system.is_none() && step_agent.tools.is_none() {
        return None;
    }
    let usual = AgentDefinition::default();
    let tools = ToolFilter { allowed: step_agent.tools.clone(), ..ToolFilter::default() };
    Some(AgentDefinition {
        prompt: step_agent.system.clone().unwrap_or(usual.prompt),
        tools,
        ..usual
    })
}

/// Converts the settings of an implementer or reviewer to options of a run.
fn agent_run_options(step_agent: &PlanStepAgent) -> Result<AgentRunOptions, AppError> {
    let model = step_agent.model.as_deref().map(str::parse).transpose();
    let model = model.map_err(|error| AppError::wrong_usage(format!("the model: {error}")))?;
    Ok(AgentRunOptions {
        model,
        backend: step_agent.backend.clone(),
        mode: Some(match step_agent.mode.as_deref() {
            Some("read-only") => PermissionMode::ReadOnly,
            Some("full") => PermissionMode::Full,
            _ => PermissionMode::AcceptEdits,
        }),
        allow: step_agent.allow.clone(),
        deny: step_agent.deny.clone(),
        ..AgentRunOptions::default()
    })
}
