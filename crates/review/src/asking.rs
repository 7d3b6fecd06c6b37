//! Asking an agent: one call with a prompt and a schema, whoever answers, within what the whole review may use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_agent::definition::{Definition, ToolFilter};
use repertoire_agent::event::Sink;
use repertoire_agent::permission::Mode;
use repertoire_agent::spending::RunLimits;
use repertoire_agent::{Report, RunOptions, System};
use repertoire_model::{ModelName, ResponseFormat};
use repertoire_select::Settings;
use serde_json::Value;
use tokio::time::Instant;

use super::lineup::ModelTier;
use super::prompt::Prompt;

/// Tools of agents that look: our names, those of Claude Code included.
const TOOLS: &[&str] = &["read", "grep", "glob", "list"];

/// Something to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Who is asked: an agent, a pair, a batch.
    pub name: String,
    /// Which kind of model.
    pub tier: ModelTier,
    /// What is said.
    pub prompt: Prompt,
    /// The shape of the answer, by a name.
    pub schema: (&'static str, Value),
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The answer; `None` if there is none in the shape that was asked for.
    pub value: Option<Value>,
    /// Why there is none.
    pub error: Option<String>,
    /// The model, if one was named.
    pub model: Option<String>,
    /// How long it took.
    pub duration: Duration,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// What it cost, where the price is known.
    pub cost_usd: Option<f64>,
    /// Whether nobody was asked, because nothing is left to spend.
    pub is_broke: bool,
}

/// Whoever answers questions.
pub trait Panel: Send + Sync {
    /// Answers one. It never fails: what goes wrong is an answer as well.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// What a whole review may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allowance {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Time of everything.
    pub time: Option<Duration>,
    /// Time of one call.
    pub call_time: Option<Duration>,
}

/// Makes a listener for the question of a name.
pub type MakeSink = Arc<dyn Fn(&str) -> Sink + Send + Sync>;

/// Agents that look at files and change nothing.
pub struct Agents {
    /// What runs share. It works in the folder that is reviewed.
    pub system: System,
    /// What every call is asked with: a backend, a model, permissions.
    pub options: RunOptions,
    /// The models of tiers, where they are named.
    pub models: BTreeMap<ModelTier, ModelName>,
    /// What all calls together may use.
    pub allowance: Allowance,
    /// How many are at work at once: each may use its share of what is left.
    pub at_once: usize,
    /// Who is told what agents do, by the name of the question.
    pub on_event: Option<MakeSink>,
    purse: Mutex<Purse>,
}

#[derive(Clone, Copy, Debug)]
struct Purse {
    cost_usd: f64,
    tokens: u64,
    begun: Instant,
}

impl Agents {
    /// Agents that work with a system.
    pub fn new(system: System, options: RunOptions) -> Self {
        let purse = Purse { cost_usd: 0.0, tokens: 0, begun: Instant::now() };
        Agents {
            system,
            options,
            models: BTreeMap::new(),
            allowance: Allowance::default(),
            at_once: 1,
            on_event: None,
            purse: Mutex::new(purse),
        }
    }

    /// What is left for one call; why not, if nothing is.
    fn left(&self) -> Result<RunLimits, String> {
        let purse = *self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = self.options.limits.unwrap_or(self.system.config().limits);
        let Allowance { cost_usd, tokens, time, call_time } = self.allowance;
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

    fn pay(&self, report: &Report) {
        let mut purse = self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        purse.cost_usd += report.cost_usd.unwrap_or_default().max(0.0);
        purse.tokens = purse.tokens.saturating_add(report.usage.total());
    }

    async fn call(&self, question: &Question) -> Answer {
        let limits = match self.left() {
            Ok(limits) => limits,
            Err(reason) => {
                return Answer { error: Some(reason), is_broke: true, ..Answer::default() };
            }
        };
        let model = self.models.get(&question.tier).or(self.options.model.as_ref()).cloned();
        let definition = Definition {
            name: question.name.clone(),
            description: "Looks at a change.".to_owned(),
            prompt: question.prompt.system.clone(),
            tools: ToolFilter {
                allowed: Some(TOOLS.iter().map(|tool| (*tool).to_owned()).collect()),
                disallowed: Vec::new(),
            },
            ..Definition::default()
        };
        let (name, schema) = &question.schema;
        let format = ResponseFormat::Schema { name: (*name).to_owned(), schema: schema.clone() };
        let mut permissions = self.options.permissions.clone().unwrap_or_default();
        permissions.mode = Mode::ReadOnly;
        let options = RunOptions {
            definition: Some(definition),
            model: model.clone(),
            format: Some(format),
            limits: Some(limits),
            // The prompt has the skills already.
            selection: Some(Settings { enabled: false, max_skills: 0, ..Settings::default() }),
            permissions: Some(permissions),
            on_event: self.on_event.as_ref().map(|make| make(&question.name)),
            ..self.options.clone()
        };
        let report = self.system.run(&question.name, question.prompt.task.clone(), options).await;
        self.pay(&report);
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

impl Panel for Agents {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(self.call(question))
    }
}
