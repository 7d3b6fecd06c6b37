//! Assembles runs of plans from the configuration and the command line: the journal, the request,
//! and the agents that do the work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::config::{ConfigFlags, RepConfig, parse_duration};
use repertoire_agent::definition::{AgentDefinition, ToolFilter};
use repertoire_agent::event::EventSink;
use repertoire_agent::{RunOptions, System};
use repertoire_checks::declared::{self, AllowedVariables, CheckDefinition, VariableRefusal};
use repertoire_github::base;
use repertoire_journal::run::Limits;
use repertoire_journal::{ClaimRules, Journal, JournalError, QueueOrder, Target};
use repertoire_plan::learnings::LearningsFile;
use repertoire_plan::{
    PlanAgentProvider, PlanAgentSetup, PlanDeliveryMode, PlanLimits, PlanRequest, PlanRunner,
    PlanStepAgent, RecoverySettings, RunFolders, SkillRules,
};
use repertoire_select::settings::StepKind;
use repertoire_text::fs;

use crate::agent_setup::{RunFlags, build_failure};
use crate::cli::CliContext;
use crate::consent;
use crate::env::CliEnvironment;
use crate::failure::CliFailure;

const INSTRUCTIONS_BYTES_MAX: u64 = 256 * 1024;
const WHAT: &str = "What to do";
const WHO: &str = "Who does it";
const LIMITS: &str = "Limits";
const FREEDOM: &str = "Permissions";

/// The failure of opening the journal.
pub(crate) fn journal_unavailable(target: &Target, error: &JournalError) -> CliFailure {
    CliFailure::cannot_run(error.to_string()).hint(match target {
        Target::File(path) => format!("Runs are recorded in {path}."),
        Target::Url(_) => {
            "`database_url` (REPERTOIRE_DATABASE_URL) says where runs are recorded.".to_owned()
        }
    })
}

/// Options of a plan's run
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PlanFlags {
    /// A specification of the plan's goal that prompts refer to (may be repeated)
    #[arg(long = "spec", value_name = "FILE", help_heading = WHAT)]
    pub(crate) specs: Vec<Utf8PathBuf>,
    /// Another file that prompts refer to (may be repeated)
    #[arg(long = "context", value_name = "FILE", help_heading = WHAT)]
    pub(crate) context: Vec<Utf8PathBuf>,
    /// A command that must succeed after every change, in addition to `plan.checks` (may be
    /// repeated)
    #[arg(long = "check", value_name = "COMMAND", help_heading = WHAT)]
    pub(crate) checks: Vec<String>,
    /// Try to fix failed checks with known fixes and the tools' own fixers before asking an agent
    /// again
    #[arg(long, help_heading = WHAT)]
    pub(crate) self_improve: bool,
    /// Accept work without a review
    #[arg(long, help_heading = WHAT)]
    pub(crate) no_review: bool,
    /// Branch to start from (default: the current branch)
    #[arg(long, value_name = "BRANCH", help_heading = WHAT)]
    pub(crate) base: Option<String>,
    /// Start even if the checkout has uncommitted changes, and leave them out
    #[arg(long, help_heading = WHAT)]
    pub(crate) allow_dirty: bool,
    /// Deliver the finished work this way
    #[arg(long, value_name = "HOW", value_parser = ["keep", "merge", "squash", "branch"], help_heading = WHAT)]
    pub(crate) ending: Option<String>,
    /// The backend that executes the turns: api, claude, codex, opencode, gemini, acp:PROGRAM,
    /// command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// The backend of reviews (default: the same)
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) review_backend: Option<String>,
    /// The model, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<String>,
    /// The model of reviews (default: the same, unless the backend differs)
    #[arg(long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) review_model: Option<String>,
    /// The agent (default: `default`)
    #[arg(short, long, value_name = "AGENT", help_heading = WHO)]
    pub(crate) agent: Option<String>,
    /// The agent of reviews
    #[arg(long, value_name = "AGENT", help_heading = WHO)]
    pub(crate) review_agent: Option<String>,
    /// Stop when the whole run has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = crate::agent_setup::parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when the whole run has used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop when the whole run has worked for this long, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) max_time: Option<Duration>,
    /// Mark a task as failed after this many attempts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = LIMITS)]
    pub(crate) attempts: Option<u32>,
    /// Let agents do anything without asking; by default they can change files in the worktree and
    /// run commands in the sandbox
    #[arg(long, help_heading = FREEDOM)]
    pub(crate) full_access: bool,
    /// Allow calls that match this rule, such as 'bash(git status:*)' (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) allow: Vec<String>,
    /// Forbid calls that match this rule (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) deny: Vec<String>,
}

impl CliContext<'_> {
    /// Returns the location of the journal: the configured database, or a file in the data folder.
    pub(crate) fn journal_target(&self, database: Option<&str>) -> Target {
        match database.or(self.config.get_text("database_url")) {
            Some(url) => Target::Url(url.to_owned()),
            None => Target::File(self.env.data_dir().join("journal.sqlite")),
        }
    }

    pub(crate) async fn journal(&self, database: Option<&str>) -> Result<Journal, CliFailure> {
        let target = self.journal_target(database);
        let clock = Arc::new(|| {
            use repertoire_text::clock::Clock;
            repertoire_text::clock::SystemClock.now_ms()
        });
        Journal::open(&target, clock).await.map_err(|error| journal_unavailable(&target, &error))
    }

    /// Returns the folders that runs use.
    pub(crate) fn run_places(&self) -> RunFolders {
        let data = self.env.data_dir();
        RunFolders {
            worktrees: data.join("worktrees"),
            runs: data.join("runs"),
            learnings: data.join("learnings"),
        }
    }

    /// Returns the learnings of a workspace.
    pub(crate) fn plan_learnings(&self, workspace: &Utf8Path) -> LearningsFile {
        LearningsFile::new(&self.run_places().learnings, workspace.as_str())
    }

    /// Returns the driver of plan runs.
    pub(crate) fn plan_runner(
        &self,
        journal: Journal,
        on_agent_event: Option<EventSink>,
    ) -> PlanRunner {
        let crew = Arc::new(PlanAgentBuilder::new(self.env));
        PlanRunner { journal, crew, places: self.run_places(), on_agent_event }
    }

    /// Returns the order of the queue and the maximum number of concurrent runs.
    pub(crate) fn queue_rules(&self) -> ClaimRules {
        let count = |name: &str| {
            self.config.get_number(name).map(|number| number as u32).filter(|number| *number > 0)
        };
        ClaimRules {
            order: match self.config.get_text("queue.order") {
                Some("newest") => QueueOrder::NewestFirst,
                _ => QueueOrder::Fifo,
            },
            total_max: count("queue.runs_max"),
            per_workspace_max: count("queue.workspace_runs_max"),
        }
    }

    /// Time without a sign of life after which other workers take over a worker's runs.
    pub(crate) fn lease_duration(&self) -> Duration {
        let text = self.config.get_text("queue.lease").and_then(|text| parse_duration(text).ok());
        text.unwrap_or(Duration::from_secs(30)).max(Duration::from_millis(100))
    }

    /// Builds the request of a plan run from the command line and the configuration. `plan` is
    /// relative to the workspace.
    pub(crate) fn plan_request(
        &self,
        plan: Utf8PathBuf,
        workspace: &Utf8Path,
        flags: &PlanFlags,
    ) -> Result<PlanRequest, CliFailure> {
        let config = &self.config;
        let text = |name: &str| config.get_text(name).map(str::to_owned);
        let backend = flags.backend.clone().or_else(|| text("plan.backend"));
        let model = flags.model.clone().or_else(|| text("plan.model"));
        let review_backend = flags.review_backend.clone().or_else(|| text("plan.review_backend"));
        let review_model = flags.review_model.clone().or_else(|| text("plan.review_model"));
        let implementer = PlanStepAgent {
            agent: flags.agent.clone().or_else(|| text("plan.agent")),
            backend: backend.map(|backend| self.absolute_backend(&backend)),
            model,
            mode: flags.full_access.then(|| "full".to_owned()),
            allow: flags.allow.clone(),
            deny: flags.deny.clone(),
            ..PlanStepAgent::default()
        };
        // A reviewer on a different backend does not inherit the implementer's model.
        let own_model = review_backend.is_none().then(|| implementer.model.clone()).flatten();
        let reviewer = PlanStepAgent {
            agent: flags.review_agent.clone().or_else(|| text("plan.review_agent")),
            backend: match review_backend {
                Some(backend) => Some(self.absolute_backend(&backend)),
                None => implementer.backend.clone(),
            },
            model: review_model.or(own_model),
            ..implementer.clone()
        };
        let ending = flags.ending.clone().or_else(|| text("plan.ending"));
        // An untrusted project may lower these bounds, but not raise them.
        let number = |name: &str, usual: u32| {
            let asked = config.get_number(name).map_or(usual, |n| n as u32);
            if config.is_from_project(name) { asked.min(usual) } else { asked }
        };
        let usual = PlanLimits::default();
        let step_time = text("plan.step_time").and_then(|text| parse_duration(&text).ok());
        let step_ms = step_time.map_or(usual.step_ms_max, |time| time.as_millis() as u64);
        let bounds = PlanLimits {
            attempts_max: flags.attempts.unwrap_or(number("plan.attempts", usual.attempts_max)),
            failures_max: number("plan.failures", usual.failures_max),
            iterations_max: number("plan.iterations", usual.iterations_max),
            step_ms_max: if config.is_from_project("plan.step_time") {
                step_ms.min(usual.step_ms_max)
            } else {
                step_ms
            },
            ..usual
        };
        let mut all = self.declared_checks("plan.checks")?;
        let typed = flags.checks.iter().enumerate();
        all.extend(
            typed.map(|(at, command)| CheckDefinition::new(format!("check-{}", at + 1), command)),
        );
        let request = PlanRequest {
            plan,
            asked: None,
            specs: self.make_relative_to(workspace, &flags.specs)?,
            context: self.make_relative_to(workspace, &flags.context)?,
            instructions: self.read_instructions()?,
            implementer,
            reviewer,
            review: !flags.no_review && config.get_bool("plan.review"),
            checks: all,
            final_checks: self.declared_checks("plan.final_checks")?,
            base_branch: flags.base.clone(),
            branch_prefix: text("plan.branch_prefix").unwrap_or_else(|| "rep/".to_owned()),
            allow_dirty: flags.allow_dirty,
            copy: config.get_texts("plan.copy"),
            setup: text("plan.setup").filter(|command| !command.trim().is_empty()),
            ending: ending.and_then(|word| PlanDeliveryMode::from_word(&word)).unwrap_or_default(),
            once: false,
            bounds,
            skills: SkillRules {
                enabled: config.get_bool("skills_enabled"),
                chosen: config.selection_settings().enabled,
                impl_max: config.max_skills_for(StepKind::Implementation),
                review_max: config.max_skills_for(StepKind::Review),
                body_chars_max: config.body_chars_max(),
                references: config.load_references(),
                ..SkillRules::default()
            },
            improve: (flags.self_improve || config.get_bool("plan.self_improve")).then(|| {
                RecoverySettings {
                    scope: workspace.to_string(),
                    network: config.get_bool("plan.self_improve_network"),
                    ..RecoverySettings::default()
                }
            }),
        };
        let both: Vec<CheckDefinition> =
            request.checks.iter().chain(&request.final_checks).cloned().collect();
        declared::validate_checks(&both).map_err(|error| {
            CliFailure::wrong_usage(error.to_string())
                .hint("Checks are declared in `plan.checks` of repertoire.toml.")
        })?;
        Ok(request)
    }

    /// Returns the limits of a run from the command line and the configuration.
    pub(crate) fn plan_limits(&self, flags: &PlanFlags) -> Limits {
        let config = &self.config;
        let time = config.get_text("plan.max_time").and_then(|text| parse_duration(text).ok());
        Limits {
            cost_usd: flags.max_cost.or_else(|| config.get_number("plan.max_cost")),
            tokens: flags
                .max_tokens
                .or_else(|| config.get_number("plan.max_tokens").map(|n| n as u64)),
            time_ms: flags.max_time.or(time).map(|time| time.as_millis() as u64),
        }
    }

    /// Returns the checks declared in a table of the configuration.
    ///
    /// # Errors
    ///
    /// Fails if a check is invalid, and as long as the user has not agreed to the project's checks.
    pub(crate) fn declared_checks(&self, name: &str) -> Result<Vec<CheckDefinition>, CliFailure> {
        if self.config.proposed().iter().any(|setting| setting.name == name) {
            return Err(consent::consent_not_given());
        }
        let Some(table) = self.config.get_table(name) else { return Ok(Vec::new()) };
        let allowed = self.allowed_variables()?;
        let wrong = |check: &str, problem: String| {
            let place = self.config.place_within(name, &[check]);
            CliFailure::wrong_usage(format!("{place}: `{name}.{check}`: {problem}"))
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
            match self.refused_variable(name, &read, &allowed) {
                Some(failure) => Err(failure),
                None => Ok(read),
            }
        };
        table.iter().map(read).collect()
    }

    /// Returns the environment variables that checks may set.
    fn allowed_variables(&self) -> Result<AllowedVariables, CliFailure> {
        const NAME: &str = "checks.env_allowed";
        AllowedVariables::with_added(self.config.get_texts(NAME)).map_err(|(variable, refusal)| {
            let origin = self.config.describe_origin(NAME);
            CliFailure::wrong_usage(format!("{origin}: `{NAME}`: `{variable}`: {refusal}"))
        })
    }

    /// Returns the failure for the first variable that a check may not set.
    fn refused_variable(
        &self,
        name: &str,
        check: &CheckDefinition,
        allowed: &AllowedVariables,
    ) -> Option<CliFailure> {
        let mut variables = check.env.keys().map(String::as_str);
        let (variable, refusal) =
            variables.find_map(|variable| Some((variable, allowed.refusal_of(variable)?)))?;
        let place = self.config.place_within(name, &[check.name.as_str(), "env", variable]);
        let key = format!("{name}.{}.env.{variable}", check.name);
        let failure = CliFailure::wrong_usage(format!("{place}: `{key}`: {refusal}")).hint(format!(
            "Set it in the command, where it holds inside the sandbox only: `command = \"{variable}=… …\"`."
        ));
        Some(match refusal {
            VariableRefusal::NotListed => failure.hint(format!(
                "Or allow it in your own configuration: `checks.env_allowed = [\"{variable}\"]`."
            )),
            VariableRefusal::Forbidden | VariableRefusal::Malformed => failure,
        })
    }

    fn read_instructions(&self) -> Result<Option<String>, CliFailure> {
        let Some(path) = self.config.get_path("plan.instructions") else { return Ok(None) };
        let project = self.project_dir(None);
        let real = path.canonicalize_utf8().unwrap_or_else(|_| path.clone());
        // An untrusted project must not get the user's other files sent to a model.
        if self.config.is_from_project("plan.instructions") && !real.starts_with(&project) {
            let origin = self.config.describe_origin("plan.instructions");
            return Err(CliFailure::wrong_usage(format!(
                "{origin}: `plan.instructions` {path} is not in {project}"
            ))
            .hint("A project may name a file of its own; your own configuration any file."));
        }
        let read = fs::read_text(&path, INSTRUCTIONS_BYTES_MAX);
        read.map(Some).map_err(|error| {
            let origin = self.config.describe_origin("plan.instructions");
            CliFailure::wrong_usage(format!(
                "{origin}: `plan.instructions` {path} cannot be read: {error}"
            ))
        })
    }

    /// Makes paths from the command line relative to the workspace, since a run uses them in a
    /// worktree.
    pub(crate) fn make_relative_to(
        &self,
        workspace: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Vec<Utf8PathBuf>, CliFailure> {
        let one = |path: &Utf8PathBuf| {
            let full = self.env.here.join(path);
            let full = full.canonicalize_utf8().map_err(|error| {
                CliFailure::wrong_usage(format!("`{path}` cannot be found: {error}"))
            })?;
            full.strip_prefix(workspace).map(Utf8Path::to_owned).map_err(|_| {
                CliFailure::wrong_usage(format!("`{path}` is not in {workspace}")).hint(
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
    pub(crate) fn worker_labels(&self, given: &[String]) -> BTreeSet<String> {
        let given =
            given.iter().map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        given.chain([host_label()]).collect()
    }
}

/// The label of this host. A run in one of its folders can only be worked on here.
pub(crate) fn host_label() -> String {
    format!("host:{}", host_name())
}

pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Assembles the agents of plan runs with the configuration of their workspace.
pub(crate) struct PlanAgentBuilder {
    env: CliEnvironment,
    /// Cached, since all runs of a workspace share skills and models. The flag tells if the backend
    /// is an external agent, since only these get API keys in their environment.
    systems: Mutex<BTreeMap<(Utf8PathBuf, bool), System>>,
    /// A checkout of the base branch whose skills are trusted: anyone who can write to that branch
    /// can also change the workflow that runs this program.
    vouched: Option<TrustedBaseConfig>,
}

/// A checkout of the base branch, with its configuration.
struct TrustedBaseConfig {
    house: base::BaseCheckout,
    config: RepConfig,
}

/// Tells if agents and models must be available.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReachCheck {
    Checked,
    Unchecked,
}

impl PlanAgentBuilder {
    pub(crate) fn new(env: &CliEnvironment) -> Self {
        PlanAgentBuilder { env: env.clone(), systems: Mutex::default(), vouched: None }
    }

    /// Trusts the skills of a checkout of the base branch, and uses its configuration for every
    /// workspace, so that files of a pull request have no influence.
    pub(crate) fn with_trusted_checkout(
        self,
        house: base::BaseCheckout,
        config: RepConfig,
    ) -> Self {
        PlanAgentBuilder { vouched: Some(TrustedBaseConfig { house, config }), ..self }
    }

    /// Assembles agents for previewing a prompt, which needs no API key and no program.
    pub(crate) fn build_for_preview(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<PlanAgentSetup, CliFailure> {
        let (implementer, reviewer) = (PlanStepAgent::default(), PlanStepAgent::default());
        let request = PlanRequest { implementer, reviewer, ..request.clone() };
        self.build_agents(workspace, &request, ReachCheck::Unchecked)
    }

    /// Checks that the agents, backends and models of a run are available.
    pub(crate) fn check_available(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<(), CliFailure> {
        self.build_agents(workspace, request, ReachCheck::Checked).map(drop)
    }

    fn build_agents(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
        reach: ReachCheck,
    ) -> Result<PlanAgentSetup, CliFailure> {
        let workspace = self.vouched.as_ref().map_or(workspace, |vouched| vouched.house.dir());
        let env = self.env.in_folder(workspace);
        let config = match &self.vouched {
            Some(vouched) => vouched.config.clone(),
            None => RepConfig::load(&env, workspace, &ConfigFlags::default())?,
        };
        let ctx = CliContext { env: &env, config };
        let flags = run_flags(&request.implementer)?;
        let kind = (workspace.to_owned(), flags.backend.is_some());
        let known = self.systems.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        let system = match known {
            Some(system) => system,
            None => {
                let mut builder = ctx.system_builder(&flags)?;
                if let Some(vouched) = &self.vouched {
                    let request = vouched.house.trust_skills(ctx.config.discovery_request()?);
                    let cannot = |error: base::BaseError| CliFailure::cannot_run(error.to_string());
                    builder = builder.discover(request.map_err(cannot)?);
                }
                let system = builder.build().map_err(build_failure)?;
                let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
                systems.insert(kind, system.clone());
                system
            }
        };
        for hand in [&request.implementer, &request.reviewer] {
            if reach == ReachCheck::Unchecked {
                break;
            }
            let agent = hand.agent.as_deref().unwrap_or("default");
            ctx.check_reach(&system, agent, &run_flags(hand)?, None)?;
        }
        let options = |hand: &PlanStepAgent, flags: &RunFlags| -> Result<RunOptions, CliFailure> {
            Ok(RunOptions {
                definition: definition_of(hand),
                ignore_project_rules: hand.ignore_project_rules,
                ..ctx.run_options(flags)?
            })
        };
        Ok(PlanAgentSetup {
            system,
            implementer: options(&request.implementer, &flags)?,
            reviewer: options(&request.reviewer, &run_flags(&request.reviewer)?)?,
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
fn definition_of(hand: &PlanStepAgent) -> Option<AgentDefinition> {
    if hand.system.is_none() && hand.tools.is_none() {
        return None;
    }
    let usual = AgentDefinition::default();
    let tools = ToolFilter { allowed: hand.tools.clone(), ..ToolFilter::default() };
    Some(AgentDefinition { prompt: hand.system.clone().unwrap_or(usual.prompt), tools, ..usual })
}

/// Converts the settings of an implementer or reviewer to options of a run.
fn run_flags(hand: &PlanStepAgent) -> Result<RunFlags, CliFailure> {
    let model = hand.model.as_deref().map(str::parse).transpose();
    let model = model.map_err(|error| CliFailure::wrong_usage(format!("the model: {error}")))?;
    Ok(RunFlags {
        model,
        backend: hand.backend.clone(),
        read_only: hand.mode.as_deref() == Some("read-only"),
        accept_edits: !matches!(hand.mode.as_deref(), Some("full" | "read-only")),
        full_access: hand.mode.as_deref() == Some("full"),
        allow: hand.allow.clone(),
        deny: hand.deny.clone(),
        ..RunFlags::default()
    })
}
