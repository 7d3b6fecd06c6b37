//! Executes single skills: checks their tools, enforces timeouts and concurrency limits, retries
//! failures, and caches results for a minute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use repertoire_select::SelectionSettings;
use repertoire_skill::catalog::{CatalogEntry, SkillNotFound};
use repertoire_skill::skill::ContentDigest;
use repertoire_skill::trust::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::definition::{AgentDefinition, DEFAULT_AGENT, ToolFilter};
use crate::event::AgentRunStatus;
use crate::limits::{EXECUTION_BACKOFF_MAX_MS, EXECUTION_BACKOFF_MS, EXECUTIONS_AT_ONCE_MAX};
use crate::middleware::TurnError;
use crate::permission::tool_name;
use crate::run::lock_unpoisoned;
use crate::spending::RunBudget;
use crate::system::{AgentOrigin, AgentRunError, RunOptions, RunReport, System};
use crate::tool::ToolInvocation;

mod cache;
mod context;
mod metrics;

use cache::ResultCache;
pub use context::{
    CodeReviewContext, ExecutionContext, GitHubContext, PlanningContext, ResearchContext,
    SkillContext, SubagentContext, TaskInfo,
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
    NotFound(#[from] SkillNotFound),
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
    cache: Mutex<ResultCache>,
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
        self.execute_requested(name, context, AgentOrigin::ByName).await
    }

    async fn execute_requested(
        &self,
        name: &str,
        context: &SubagentContext,
        asked: AgentOrigin,
    ) -> Result<SkillResult, ExecuteError> {
        self.system.refresh();
        let catalog = self.system.catalog();
        let entry = catalog.resolve(name)?;
        self.check_tools(entry, context)?;
        let key = cache_key(entry, context, &self.options);
        let cacheable = entry.skill.execution.cacheable;
        if let Some(result) = self.cached_result(entry, key).filter(|_| cacheable) {
            return Ok(result);
        }
        let own = self.skill_semaphore(entry);
        // These semaphores are never closed, so acquiring a permit cannot fail.
        let _own = match &own {
            Some(own) => own.acquire().await.ok(),
            None => None,
        };
        let _turn = self.turns.acquire().await.ok();
        // Another caller may have cached the same request in the meantime.
        if let Some(result) = self.cached_result(entry, key).filter(|_| cacheable) {
            return Ok(result);
        }
        let result = self.execute_with_retries(entry, context, asked).await;
        if result.success && cacheable {
            lock_unpoisoned(&self.cache).insert(key, result.clone(), self.system.clock().now_ms());
        }
        lock_unpoisoned(&self.metrics).entry(entry.id.clone()).or_default().add(&result);
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
            Some(entry) => self.execute_requested(&entry.id, context, AgentOrigin::Otherwise).await,
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
        lock_unpoisoned(&self.metrics).clone()
    }

    fn check_tools(
        &self,
        entry: &CatalogEntry,
        context: &SubagentContext,
    ) -> Result<(), ExecuteError> {
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

    fn skill_semaphore(&self, entry: &CatalogEntry) -> Option<Arc<Semaphore>> {
        // The system itself limits concurrent runs of agents.
        let most = entry.skill.execution.max_concurrent.filter(|_| !entry.skill.is_agent())?.max(1);
        let mut each = lock_unpoisoned(&self.each);
        let semaphore =
            each.entry(entry.id.clone()).or_insert_with(|| Arc::new(Semaphore::new(most as usize)));
        Some(semaphore.clone())
    }

    fn cached_result(&self, entry: &CatalogEntry, key: ContentDigest) -> Option<SkillResult> {
        let mut result = lock_unpoisoned(&self.cache).get(key, self.system.clock().now_ms())?;
        result.metadata.cached = true;
        lock_unpoisoned(&self.metrics).entry(entry.id.clone()).or_default().cache_hits += 1;
        Some(result)
    }

    /// Retries until the execution succeeds, cannot succeed, or has used up its retries.
    async fn execute_with_retries(
        &self,
        entry: &CatalogEntry,
        context: &SubagentContext,
        asked: AgentOrigin,
    ) -> SkillResult {
        let begun = Instant::now();
        let mut retries = 0;
        // A skill sets its own number of retries, but all attempts share the limits of one run.
        let limits = self.options.limits.unwrap_or(self.system.config().limits);
        let spending = Arc::new(RunBudget::new(limits));
        loop {
            let (result, again) = self.execute_once(entry, context, asked, &spending).await;
            let may_retry =
                again == RetryVerdict::Perhaps && retries < entry.skill.execution.max_retries;
            if result.success || !may_retry || self.options.cancel.is_cancelled() {
                return with_metadata(result, begun, retries);
            }
            let wait_ms = EXECUTION_BACKOFF_MS.saturating_mul(1 << retries.min(16));
            let wait = Duration::from_millis(wait_ms.min(EXECUTION_BACKOFF_MAX_MS));
            // If cancelled during the delay, return the last failure.
            if self.options.cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return with_metadata(result, begun, retries);
            }
            retries += 1;
        }
    }

    async fn execute_once(
        &self,
        entry: &CatalogEntry,
        context: &SubagentContext,
        asked: AgentOrigin,
        spending: &Arc<RunBudget>,
    ) -> (SkillResult, RetryVerdict) {
        let mut options = self.options.clone();
        let agent =
            prepare_options(&self.system, entry, context, &mut options, AgentNaming::Allowed);
        let cancel = options.cancel.child_token();
        options.cancel = cancel.clone();
        let timeout_ms = entry.skill.execution.timeout_ms;
        // Only the skill chose this agent, so it does not count as requested by name.
        let asked = if entry.skill.is_agent() { asked } else { AgentOrigin::Otherwise };
        let task = context.task_text(entry);
        let running = self.system.run_with_origin(&agent, task, options, asked, spending.clone());
        match tokio::time::timeout(Duration::from_millis(timeout_ms), running).await {
            Ok(report) => result_of_report(report),
            // Dropping the run kills its processes; the token stops everything else that listens to
            // it.
            Err(_) => {
                cancel.cancel();
                let error =
                    format!("`{}` took longer than {timeout_ms} ms (`timeout_ms`)", entry.id);
                (failed_result(String::new(), error), RetryVerdict::Perhaps)
            }
        }
    }
}

fn with_metadata(mut result: SkillResult, begun: Instant, retries: u32) -> SkillResult {
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    result.metadata = ResultMetadata { duration_ms, retries, cached: false };
    result
}

/// The prospects of a retry after a failed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryVerdict {
    Perhaps,
    Useless,
}

/// Controls if a skill may choose the agent that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentNaming {
    Allowed,
    Ignored,
}

/// Sets the options for executing a skill, and returns the agent to run.
fn prepare_options(
    system: &System,
    entry: &CatalogEntry,
    context: &SubagentContext,
    options: &mut RunOptions,
    naming: AgentNaming,
) -> String {
    let skill = &entry.skill;
    if skill.is_agent() {
        return entry.id.clone();
    }
    let named = skill.claude.agent.clone().filter(|_| naming == AgentNaming::Allowed);
    let named = named.filter(|agent| system.catalog().get_agent(agent).is_some());
    let disallowed = skill.execution.disallowed_tools.clone();
    if let Some(agent) = &named
        && !disallowed.is_empty()
        // A definition that cannot be parsed is reported when the agent is loaded.
        && let Some(Ok(mut definition)) = system.catalog().get_agent(agent).map(AgentDefinition::from_entry)
    {
        definition.tools.disallowed.extend(disallowed);
        options.definition = Some(definition);
    } else if named.is_none() {
        let tools = context.context.execution.as_ref().map(|place| place.tools.clone());
        let tools = tools.filter(|tools| !tools.is_empty());
        options.definition = Some(AgentDefinition {
            tools: ToolFilter { allowed: tools, disallowed },
            model: skill.claude.model.as_deref().and_then(|model| model.parse().ok()),
            ..AgentDefinition::default()
        });
    }
    options.skills = vec![entry.id.clone()];
    options.selection = Some(SelectionSettings { enabled: false, ..system.config().auto_trigger });
    if !skill.spec.allowed_tools.is_empty() {
        let permissions = options.permissions.clone();
        let permissions = permissions.unwrap_or_else(|| system.config().permissions.clone());
        let is_trusted = entry.trust == TrustLevel::Trusted;
        options.permissions = Some(permissions.narrowed_by(&skill.spec.allowed_tools, is_trusted));
    }
    named.unwrap_or_else(|| DEFAULT_AGENT.to_owned())
}

/// Converts a report to a result. An answer that is a JSON object with `success` decides that
/// itself.
fn result_of_report(report: RunReport) -> (SkillResult, RetryVerdict) {
    if let Some(error) = report.error {
        return (
            failed_result(report.text, error.to_string()),
            retry_verdict(report.status, &error),
        );
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
    (SkillResult { success, output: report.text, data, error, metadata }, RetryVerdict::Perhaps)
}

fn retry_verdict(status: AgentRunStatus, error: &AgentRunError) -> RetryVerdict {
    match (status, error) {
        (AgentRunStatus::Failed, AgentRunError::Backend { .. }) => RetryVerdict::Perhaps,
        (AgentRunStatus::Failed, AgentRunError::Turn(TurnError::Shape(_) | TurnError::CutOff)) => {
            RetryVerdict::Perhaps
        }
        // Model calls were already retried, and other errors would only repeat.
        _ => RetryVerdict::Useless,
    }
}

fn failed_result(output: String, error: String) -> SkillResult {
    let metadata = ResultMetadata::default();
    SkillResult { success: false, output, data: None, error: Some(error), metadata }
}

/// The cache key: a digest of the skill's file and all its inputs.
fn cache_key(
    entry: &CatalogEntry,
    context: &SubagentContext,
    options: &RunOptions,
) -> ContentDigest {
    let input = serde_json::to_vec(context).unwrap_or_default();
    let mut bytes = entry.skill.digest().as_bytes().to_vec();
    bytes.extend(entry.id.as_bytes());
    bytes.push(0);
    bytes.extend(options.model.as_ref().map(ToString::to_string).unwrap_or_default().as_bytes());
    bytes.push(0);
    bytes.extend(input);
    ContentDigest::hash_bytes(&bytes)
}

/// Runs a skill with `context: fork` in a conversation of its own, on behalf of the calling agent.
pub(crate) async fn run_forked_skill(
    call: ToolInvocation<'_>,
    entry: &CatalogEntry,
    arguments: &str,
) -> Result<String, String> {
    let run = call.run;
    let mut options = RunOptions {
        permissions: Some(run.permissions()),
        arguments: BTreeMap::from([(entry.id.clone(), arguments.to_owned())]),
        ..RunOptions::default()
    };
    // The skill gets the tools of the calling agent, and may name another agent only if the caller
    // may delegate.
    let tools = lock_unpoisoned(&run.offered).clone();
    let may_delegate = tools.iter().any(|tool| tool == "delegate");
    let naming = if may_delegate { AgentNaming::Allowed } else { AgentNaming::Ignored };
    let mut context = SubagentContext::default();
    context.context.execution = Some(ExecutionContext { tools, ..ExecutionContext::default() });
    let agent = prepare_options(&run.system, entry, &context, &mut options, naming);
    let task = match arguments.trim() {
        "" => format!("Carry out the skill `{}`.", entry.id),
        arguments => arguments.to_owned(),
    };
    let report = run.system.run_subagent(run, &agent, task, options).await;
    report.into_answer().map_err(|error| format!("The skill {} did not finish: {error}.", entry.id))
}
