//! Sends questions to agents: one call per prompt and schema, within the limits of the whole review.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_agent::definition::{AgentDefinition, ToolFilter};
use repertoire_agent::event::EventSink;
use repertoire_agent::permission::PermissionMode;
use repertoire_agent::spending::RunLimits;
use repertoire_agent::{RunOptions, RunReport, System};
use repertoire_model::{ModelName, ResponseFormat};
use repertoire_select::SelectionSettings;
use serde_json::Value;
use tokio::time::Instant;

use super::lineup::ModelTier;
use super::prompt::ReviewPrompt;

/// The read-only tools that review agents may use. Each name also allows the equivalent tool of Claude Code.
const TOOLS: &[&str] = &["read", "grep", "glob", "list"];

/// A prompt for one agent, with the schema of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The name of the agent, pair or batch.
    pub name: String,
    pub tier: ModelTier,
    pub prompt: ReviewPrompt,
    /// The name and the JSON Schema of the answer.
    pub schema: (&'static str, Value),
}

/// The answer to a [`Question`], with its costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The structured answer; `None` if the call failed or the answer did not match the schema.
    pub value: Option<Value>,
    /// The reason why `value` is `None`.
    pub error: Option<String>,
    /// The model, if one was configured.
    pub model: Option<String>,
    pub duration: Duration,
    /// All tokens but the output tokens, including cached ones.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The cost, if the price of the model is known.
    pub cost_usd: Option<f64>,
    /// True if no agent was called because the allowance is used up.
    pub is_broke: bool,
}

/// Answers questions: [`ReviewAgents`], or a script in tests.
pub trait ReviewAnswerProvider: Send + Sync {
    /// Answers a question. Never fails: an error is part of the answer. Calls `on_call` as soon as an agent is called,
    /// and not at all if the allowance does not permit a call.
    fn ask<'a>(
        &'a self,
        question: &'a Question,
        on_call: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Answer>;
}

/// The limits of a whole review; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReviewAllowance {
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    /// The maximum duration of the review.
    pub time: Option<Duration>,
    /// The maximum duration of one call.
    pub call_time: Option<Duration>,
}

/// Creates an event sink for the question with the given name.
pub type MakeSink = Arc<dyn Fn(&str) -> EventSink + Send + Sync>;

/// Runs review agents, with read-only permissions.
pub struct ReviewAgents {
    /// The agent system. Its working folder is the folder under review.
    pub system: System,
    /// Options of every call: backend, model, permissions.
    pub options: RunOptions,
    /// The model of each tier. A tier without an entry uses the model of `options`.
    pub models: BTreeMap<ModelTier, ModelName>,
    /// The limits for all calls together.
    pub allowance: ReviewAllowance,
    /// The number of concurrent calls. Each call may use an equal share of what is left of the allowance.
    pub at_once: usize,
    /// Creates the listener for the events of one call, from the name of its question.
    pub on_event: Option<MakeSink>,
    purse: Mutex<ReviewSpending>,
}

#[derive(Clone, Copy, Debug)]
struct ReviewSpending {
    cost_usd: f64,
    tokens: u64,
    begun: Instant,
}

impl ReviewAgents {
    /// Creates agents without an allowance, one call at a time.
    pub fn new(system: System, options: RunOptions) -> Self {
        let purse = ReviewSpending { cost_usd: 0.0, tokens: 0, begun: Instant::now() };
        ReviewAgents {
            system,
            options,
            models: BTreeMap::new(),
            allowance: ReviewAllowance::default(),
            at_once: 1,
            on_event: None,
            purse: Mutex::new(purse),
        }
    }

    /// Computes the limits of the next call, or returns the reason why the allowance is used up.
    fn next_call_limits(&self) -> Result<RunLimits, String> {
        let purse = *self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = self.options.limits.unwrap_or(self.system.config().limits);
        let ReviewAllowance { cost_usd, tokens, time, call_time } = self.allowance;
        let cost_left = cost_usd.map(|max| max - purse.cost_usd);
        let tokens_left = tokens.map(|max| max.saturating_sub(purse.tokens));
        let time_left = time.map(|max| max.saturating_sub(purse.begun.elapsed()));
        if cost_left.is_some_and(|left| left <= 0.0) {
            return Err(format!(
                "the review may cost ${}, which is spent",
                cost_usd.unwrap_or_default()
            ));
        }
        if tokens_left == Some(0) {
            return Err(format!(
                "the review may use {} tokens, which are used",
                tokens.unwrap_or_default()
            ));
        }
        if time_left.is_some_and(|left| left.is_zero()) {
            return Err("the time for the review is over".to_owned());
        }
        let times = [Some(usual.duration_max), time_left, call_time];
        let share = self.at_once.max(1);
        Ok(RunLimits {
            tokens_max: tokens_left.map(|left| left.div_ceil(share as u64)).or(usual.tokens_max),
            cost_usd_max: cost_left.map(|left| left / share as f64).or(usual.cost_usd_max),
            duration_max: times.into_iter().flatten().min().unwrap_or(usual.duration_max),
            ..usual
        })
    }

    fn record_spending(&self, report: &RunReport) {
        let mut purse = self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        purse.cost_usd += report.cost_usd.unwrap_or_default().max(0.0);
        purse.tokens = purse.tokens.saturating_add(report.usage.total());
    }

    async fn call_agent(&self, question: &Question, on_call: &(dyn Fn() + Send + Sync)) -> Answer {
        let limits = match self.next_call_limits() {
            Ok(limits) => limits,
            Err(reason) => {
                return Answer { error: Some(reason), is_broke: true, ..Answer::default() };
            }
        };
        on_call();
        let model = self.models.get(&question.tier).or(self.options.model.as_ref()).cloned();
        let definition = AgentDefinition {
            name: question.name.clone(),
            description: "Looks at a change.".to_owned(),
            prompt: question.prompt.system.clone(),
            tools: ToolFilter {
                allowed: Some(TOOLS.iter().map(|tool| (*tool).to_owned()).collect()),
                disallowed: Vec::new(),
            },
            ..AgentDefinition::default()
        };
        let (name, schema) = &question.schema;
        let format = ResponseFormat::Schema { name: (*name).to_owned(), schema: schema.clone() };
        let mut permissions = self.options.permissions.clone().unwrap_or_default();
        permissions.mode = PermissionMode::ReadOnly;
        let options = RunOptions {
            definition: Some(definition),
            model: model.clone(),
            format: Some(format),
            limits: Some(limits),
            // The prompt already contains the skills.
            selection: Some(SelectionSettings {
                enabled: false,
                max_skills: 0,
                ..SelectionSettings::default()
            }),
            permissions: Some(permissions),
            on_event: self.on_event.as_ref().map(|make| make(&question.name)),
            ..self.options.clone()
        };
        let report = self.system.run(&question.name, question.prompt.task.clone(), options).await;
        self.record_spending(&report);
        let usage = &report.usage;
        let error = report.error.as_ref().map(ToString::to_string);
        let missing = || Some("the answer does not have the shape that was asked for".to_owned());
        Answer {
            error: error.or_else(|| report.structured.is_none().then(missing).flatten()),
            value: report.structured,
            model: model.map(|model| model.to_string()),
            duration: report.duration,
            input_tokens: usage.total().saturating_sub(usage.output_tokens),
            output_tokens: usage.output_tokens,
            cost_usd: report.cost_usd,
            is_broke: false,
        }
    }
}

impl ReviewAnswerProvider for ReviewAgents {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
        on_call: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Answer> {
        Box::pin(self.call_agent(question, on_call))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use camino::Utf8Path;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn no_agent_counts_as_called_once_the_allowance_is_used_up() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = Utf8Path::from_path(dir.path()).unwrap();
        let system = System::builder().work_dir(work_dir).build().unwrap();
        let allowance = ReviewAllowance { tokens: Some(0), ..ReviewAllowance::default() };
        let agents = ReviewAgents { allowance, ..ReviewAgents::new(system, RunOptions::default()) };
        let question = Question {
            name: "security-agent".to_owned(),
            tier: ModelTier::Fast,
            prompt: ReviewPrompt { system: String::new(), task: String::new() },
            schema: ("findings", json!({})),
        };
        let is_called = AtomicBool::new(false);
        let on_call = || is_called.store(true, Ordering::SeqCst);
        let answer = agents.ask(&question, &on_call).await;
        assert!(answer.is_broke && !is_called.into_inner(), "{answer:?}");
    }
}
