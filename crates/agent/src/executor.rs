//! Executes single skills: checks their tools, enforces timeouts and concurrency limits, retries
//! failures, and caches results for a minute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use repertoire_select::Settings;
use repertoire_skill::catalog::{Entry, NotFound};
use repertoire_skill::skill::Digest;
use repertoire_skill::trust::Trust;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::definition::{DEFAULT_AGENT, Definition, ToolFilter};
use crate::event::Status;
use crate::limits::{EXECUTION_BACKOFF_MAX_MS, EXECUTION_BACKOFF_MS, EXECUTIONS_AT_ONCE_MAX};
use crate::middleware::TurnError;
use crate::permission::tool_name;
use crate::run::lock;
use crate::spending::Spending;
use crate::system::{Asked, Report, RunError, RunOptions, System};
use crate::tool::Call;

mod cache;
mod context;
mod metrics;

use cache::Cache;
pub use context::{
    CodeReview, ExecutionPlace, GitHub, Planning, Research, SkillContext, SubagentContext, TaskInfo,
};
pub use metrics::SkillMetrics;

/// The result of executing a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillResult {
    /// True if the skill achieved its purpose.
    pub success: bool,
    /// The text of the answer.
    pub output: String,
    /// The answer as JSON, if it is an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The error, unless the execution succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Measurements of the execution.
    pub metadata: ResultMetadata,
}

/// Measurements of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultMetadata {
    /// The duration, without the time spent in the queue.
    pub duration_ms: u64,
    /// The number of retries.
    pub retries: u32,
    /// True if the result is from the cache.
    pub cached: bool,
}

/// The reason why a skill was not executed at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error("no agent has the capability `{capability}`; there are {}", known.join(", "))]
    NoCapability {
        capability: String,
        /// The capabilities that agents have.
        known: Vec<String>,
    },
    /// Tools that the skill requires are not available.
    #[error("`{skill}` requires tools that are not there: {}", missing.join(", "))]
    MissingTools { skill: String, missing: Vec<String> },
}

/// Executes skills and sub-agents by name.
pub struct SkillExecutor {
    system: System,
    options: RunOptions,
    /// Limits all executions. Tokio's semaphore is fair: the longest-waiting caller is served
    /// first.
    turns: Semaphore,
    each: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    cache: Mutex<Cache>,
    metrics: Mutex<BTreeMap<String, SkillMetrics>>,
}

impl SkillExecutor {
    /// Creates an executor. `options` apply to every run: model, limits, event sinks.
    pub fn new(system: System, options: RunOptions) -> Self {
        SkillExecutor {
            system,
            options,
            turns: Semaphore::new(EXECUTIONS_AT_ONCE_MAX),
            each: Mutex::default(),
            cache: Mutex::default(),
            metrics: Mutex::default(),
        }
    }

    /// Executes a skill or a sub-agent by name.
    ///
    /// # Errors
    ///
    /// Returns an error if the skill or a required tool does not exist. A failed execution is a
    /// result, not an error.
    pub async fn execute(
        &self,
        name: &str,
        context: &SubagentContext,
    ) -> Result<SkillResult, ExecuteError> {
        self.execute_asked(name, context, Asked::ByName).await
    }

    async fn execute_asked(
        &self,
        name: &str,
        context: &SubagentContext,
        asked: Asked,
    ) -> Result<SkillResult, ExecuteError> {
        self.system.refresh();
        let catalog = self.system.catalog();
        let entry = catalog.resolve(name)?;
        self.check_tools(entry, context)?;
        let key = key(entry, context, &self.options);
        let cacheable = entry.skill.execution.cacheable;
        if let Some(result) = self.cached(entry, key).filter(|_| cacheable) {
            return Ok(result);
        }
        let own = self.own_turns(entry);
        // These semaphores are never closed, so acquiring a permit cannot fail.
        let _own = match &own {
            Some(own) => own.acquire().await.ok(),
            None => None,
        };
        let _turn = self.turns.acquire().await.ok();
        // Another caller may have cached the same request in the meantime.
        if let Some(result) = self.cached(entry, key).filter(|_| cacheable) {
            return Ok(result);
        }
        let result = self.tried(entry, context, asked).await;
        if result.success && cacheable {
            lock(&self.cache).put(key, result.clone(), self.system.clock().now_ms());
        }
        lock(&self.metrics).entry(entry.id.clone()).or_default().add(&result);
        Ok(result)
    }

    /// Executes the first agent, in order of name, that has a capability.
    ///
    /// # Errors
    ///
    /// Returns an error if no agent has it.
    pub async fn execute_capability(
        &self,
        capability: &str,
        context: &SubagentContext,
    ) -> Result<SkillResult, ExecuteError> {
        let catalog = self.system.catalog();
        let able = catalog.by_capability(capability).find(|entry| entry.skill.is_agent());
        match able {
            Some(entry) => self.execute_asked(&entry.id, context, Asked::Otherwise).await,
            None => {
                let all = catalog.entries().iter().flat_map(|entry| &entry.skill.capabilities);
                let mut known: Vec<String> = all.cloned().collect();
                known.sort();
                known.dedup();
                Err(ExecuteError::NoCapability { capability: capability.to_owned(), known })
            }
        }
    }

    /// The metrics of each skill so far.
    pub fn metrics(&self) -> BTreeMap<String, SkillMetrics> {
        lock(&self.metrics).clone()
    }

    fn check_tools(&self, entry: &Entry, context: &SubagentContext) -> Result<(), ExecuteError> {
        let given = context.context.execution.as_ref().map(|place| &place.tools);
        let given = given.filter(|tools| !tools.is_empty());
        let is_there = |name: &String| {
            let ours = tool_name(name);
            self.system.tools().iter().any(|tool| tool.name() == ours)
                && given.is_none_or(|tools| tools.iter().any(|tool| tool_name(tool) == ours))
        };
        let required = &entry.skill.execution.required_tools;
        let missing: Vec<String> =
            required.iter().filter(|name| !is_there(name)).cloned().collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(ExecuteError::MissingTools { skill: entry.id.clone(), missing })
        }
    }

    fn own_turns(&self, entry: &Entry) -> Option<Arc<Semaphore>> {
        // The system itself limits concurrent runs of agents.
        let most = entry.skill.execution.max_concurrent.filter(|_| !entry.skill.is_agent())?.max(1);
        let mut each = lock(&self.each);
        let semaphore =
            each.entry(entry.id.clone()).or_insert_with(|| Arc::new(Semaphore::new(most as usize)));
        Some(semaphore.clone())
    }

    fn cached(&self, entry: &Entry, key: Digest) -> Option<SkillResult> {
        let mut result = lock(&self.cache).get(key, self.system.clock().now_ms())?;
        result.metadata.cached = true;
        lock(&self.metrics).entry(entry.id.clone()).or_default().cache_hits += 1;
        Some(result)
    }

    /// Retries until the execution succeeds, cannot succeed, or has used up its retries.
    async fn tried(&self, entry: &Entry, context: &SubagentContext, asked: Asked) -> SkillResult {
        let begun = Instant::now();
        let mut retries = 0;
        // A skill sets its own number of retries, but all attempts share the limits of one run.
        let limits = self.options.limits.unwrap_or(self.system.config().limits);
        let spending = Arc::new(Spending::new(limits));
        loop {
            let (result, again) = self.once(entry, context, asked, &spending).await;
            let may_retry = again == Again::Perhaps && retries < entry.skill.execution.max_retries;
            if result.success || !may_retry || self.options.cancel.is_cancelled() {
                return timed(result, begun, retries);
            }
            let wait_ms = EXECUTION_BACKOFF_MS.saturating_mul(1 << retries.min(16));
            let wait = Duration::from_millis(wait_ms.min(EXECUTION_BACKOFF_MAX_MS));
            // If cancelled during the delay, return the last failure.
            if self.options.cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return timed(result, begun, retries);
            }
            retries += 1;
        }
    }

    async fn once(
        &self,
        entry: &Entry,
        context: &SubagentContext,
        asked: Asked,
        spending: &Arc<Spending>,
    ) -> (SkillResult, Again) {
        let mut options = self.options.clone();
        let agent = prepare(&self.system, entry, context, &mut options, Naming::Allowed);
        let cancel = options.cancel.child_token();
        options.cancel = cancel.clone();
        let timeout_ms = entry.skill.execution.timeout_ms;
        // Only the skill chose this agent, so it does not count as requested by name.
        let asked = if entry.skill.is_agent() { asked } else { Asked::Otherwise };
        let task = context.task_text(entry);
        let running = self.system.run_asked(&agent, task, options, asked, spending.clone());
        match tokio::time::timeout(Duration::from_millis(timeout_ms), running).await {
            Ok(report) => judged(report),
            // Dropping the run kills its processes; the token stops everything else that listens to
            // it.
            Err(_) => {
                cancel.cancel();
                let error =
                    format!("`{}` took longer than {timeout_ms} ms (`timeout_ms`)", entry.id);
                (failed(String::new(), error), Again::Perhaps)
            }
        }
    }
}

fn timed(mut result: SkillResult, begun: Instant, retries: u32) -> SkillResult {
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    result.metadata = ResultMetadata { duration_ms, retries, cached: false };
    result
}

/// The prospects of a retry after a failed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Perhaps,
    Useless,
}

/// Controls if a skill may choose the agent that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    Allowed,
    Ignored,
}

/// Sets the options for executing a skill, and returns the agent to run.
fn prepare(
    system: &System,
    entry: &Entry,
    context: &SubagentContext,
    options: &mut RunOptions,
    naming: Naming,
) -> String {
    let skill = &entry.skill;
    if skill.is_agent() {
        return entry.id.clone();
    }
    let named = skill.claude.agent.clone().filter(|_| naming == Naming::Allowed);
    let named = named.filter(|agent| system.catalog().agent(agent).is_some());
    let disallowed = skill.execution.disallowed_tools.clone();
    if let Some(agent) = &named
        && !disallowed.is_empty()
        // A definition that cannot be parsed is reported when the agent is loaded.
        && let Some(Ok(mut definition)) = system.catalog().agent(agent).map(Definition::read)
    {
        definition.tools.disallowed.extend(disallowed);
        options.definition = Some(definition);
    } else if named.is_none() {
        let tools = context.context.execution.as_ref().map(|place| place.tools.clone());
        let tools = tools.filter(|tools| !tools.is_empty());
        options.definition = Some(Definition {
            tools: ToolFilter { allowed: tools, disallowed },
            model: skill.claude.model.as_deref().and_then(|model| model.parse().ok()),
            ..Definition::default()
        });
    }
    options.skills = vec![entry.id.clone()];
    options.selection = Some(Settings { enabled: false, ..system.config().auto_trigger });
    if !skill.spec.allowed_tools.is_empty() {
        let permissions = options.permissions.clone();
        let permissions = permissions.unwrap_or_else(|| system.config().permissions.clone());
        let is_trusted = entry.trust == Trust::Trusted;
        options.permissions = Some(permissions.narrowed_by(&skill.spec.allowed_tools, is_trusted));
    }
    named.unwrap_or_else(|| DEFAULT_AGENT.to_owned())
}

/// Converts a report to a result. An answer that is a JSON object with `success` decides that
/// itself.
fn judged(report: Report) -> (SkillResult, Again) {
    if let Some(error) = report.error {
        return (failed(report.text, error.to_string()), worth_another_try(report.status, &error));
    }
    let data = report.structured.or_else(|| serde_json::from_str(report.text.trim()).ok());
    let data = data.filter(Value::is_object);
    let told = data.as_ref().and_then(|data| data.get("success")).and_then(Value::as_bool);
    let success = told.unwrap_or(true);
    let error = (!success).then(|| {
        let why = data.as_ref().and_then(|data| data.get("error")).and_then(Value::as_str);
        why.unwrap_or("the skill says that it did not succeed").to_owned()
    });
    let metadata = ResultMetadata::default();
    (SkillResult { success, output: report.text, data, error, metadata }, Again::Perhaps)
}

fn worth_another_try(status: Status, error: &RunError) -> Again {
    match (status, error) {
        (Status::Failed, RunError::Backend { .. }) => Again::Perhaps,
        (Status::Failed, RunError::Turn(TurnError::Shape(_) | TurnError::CutOff)) => Again::Perhaps,
        // Model calls were already retried, and other errors would only repeat.
        _ => Again::Useless,
    }
}

fn failed(output: String, error: String) -> SkillResult {
    let metadata = ResultMetadata::default();
    SkillResult { success: false, output, data: None, error: Some(error), metadata }
}

/// The cache key: a digest of the skill's file and all its inputs.
fn key(entry: &Entry, context: &SubagentContext, options: &RunOptions) -> Digest {
    let input = serde_json::to_vec(context).unwrap_or_default();
    let mut bytes = entry.skill.digest().as_bytes().to_vec();
    bytes.extend(entry.id.as_bytes());
    bytes.push(0);
    bytes.extend(options.model.as_ref().map(ToString::to_string).unwrap_or_default().as_bytes());
    bytes.push(0);
    bytes.extend(input);
    Digest::of(&bytes)
}

/// Runs a skill with `context: fork` in a conversation of its own, on behalf of the calling agent.
pub(crate) async fn fork(call: Call<'_>, entry: &Entry, arguments: &str) -> Result<String, String> {
    let run = call.run;
    let mut options = RunOptions {
        permissions: Some(run.permissions()),
        arguments: BTreeMap::from([(entry.id.clone(), arguments.to_owned())]),
        ..RunOptions::default()
    };
    // The skill gets the tools of the calling agent, and may name another agent only if the caller
    // may delegate.
    let tools = lock(&run.offered).clone();
    let may_delegate = tools.iter().any(|tool| tool == "delegate");
    let naming = if may_delegate { Naming::Allowed } else { Naming::Ignored };
    let mut context = SubagentContext::default();
    context.context.execution = Some(ExecutionPlace { tools, ..ExecutionPlace::default() });
    let agent = prepare(&run.system, entry, &context, &mut options, naming);
    let task = match arguments.trim() {
        "" => format!("Carry out the skill `{}`.", entry.id),
        arguments => arguments.to_owned(),
    };
    let report = run.system.run_for(run, &agent, task, options).await;
    report.into_answer().map_err(|error| format!("The skill {} did not finish: {error}.", entry.id))
}
