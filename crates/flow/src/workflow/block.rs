//! The instructions of a step: plain text and typed blocks. In a file, text is written as it is, and a block is a
//! mapping with one key, its kind.
//!
//! The same type is used before and after templates are rendered: [`Block::try_map`] visits its texts.

use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    ConditionalDispatch, ParallelDispatch, StepId, SubagentBrief, SubagentDispatch,
    TemplateDispatch,
};

/// A block of a step's instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(transform = or_text)]
pub enum StepBlock {
    /// Plain text.
    Text(String),
    /// The state of the run.
    StateBanner(StateBanner),
    /// The state of a gate's review: the iteration, and how to review. The value is the gate's id.
    QrBanner(StepId),
    /// Actions that are forbidden.
    Forbidden(Vec<String>),
    /// The expected form of the answer.
    ExpectedOutput(ExpectedOutput),
    /// The action for each result.
    Routing(Vec<ResultRoute>),
    /// Instructions for the orchestrating agent after a review.
    PostQrRouting(PostReview),
    /// A resource of the workflow, by name.
    Resource(String),
    /// A convention, by name: the skill's own, or one of the pack.
    Convention(String),
    /// Problems to look for, as questions.
    DetectionQuestions(DetectionQuestions),
    /// Criteria to verify.
    VerificationChecklist(Vec<ChecklistItem>),
    /// An example of incorrect behaviour.
    IncorrectBehavior(IncorrectBehavior),
    /// The rule that the agent delegates the work and does none of it itself.
    OrchestratorConstraint(String),
    /// The reason why criteria are written down before the work is examined.
    FactoredVerification(String),
    /// Guidance for asking open questions instead of leading ones.
    OpenQuestions(String),
    /// The model for each kind of work.
    ModelSelection(ModelSelection),
    /// Work for sub-agents.
    Dispatch(SubagentDispatch),
    /// The form in which a reviewer ends its answer, so that its reader knows what to do next.
    QrReport(ReportForm),
}

/// The state of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateBanner {
    /// The name of the checkpoint.
    pub checkpoint: String,
    /// The kind of pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// Explanations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The iteration; filled in by the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// The expected form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedOutput {
    /// The answer if there are no issues.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub if_pass: String,
    /// The answer if there are issues.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when_issues: String,
    /// The categories of findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// The action for a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRoute {
    /// The result.
    pub result: String,
    /// The action.
    pub action: String,
}

/// Instructions for the orchestrating agent after a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostReview {
    /// The gate that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<StepId>,
    /// The role of the orchestrating agent.
    pub role: String,
    /// The strictness rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The action for each result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<ResultRoute>,
    /// Actions that are forbidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
}

/// Problems to look for, as questions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetectionQuestions {
    /// The category of the problems.
    pub category: String,
    /// The questions.
    pub questions: Vec<DetectionQuestion>,
}

/// A question with an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetectionQuestion {
    /// The id that findings refer to.
    pub id: String,
    /// The question.
    pub ask: String,
}

/// A criterion to verify.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChecklistItem {
    /// The element that is examined.
    pub element: String,
    /// The criterion that has to hold.
    pub criterion: String,
    /// The action if it does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub if_missing: String,
}

/// An example of incorrect behaviour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncorrectBehavior {
    /// The incorrect behaviour.
    pub example: String,
    /// Its consequence.
    pub consequence: String,
}

/// The model for each sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSelection {
    /// The model for all sub-agents that are not named.
    pub default: String,
    /// The reason for the choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// Other models, by sub-agent.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub overrides: IndexMap<String, String>,
}

/// The form in which a reviewer ends its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportForm {
    /// The place where the findings are written.
    pub report: String,
    /// The next action of the agent that reads the answer.
    pub orchestrator_action: String,
}

impl From<&str> for StepBlock {
    fn from(text: &str) -> Self {
        StepBlock::Text(text.to_owned())
    }
}

impl From<SubagentDispatch> for StepBlock {
    fn from(dispatch: SubagentDispatch) -> Self {
        StepBlock::Dispatch(dispatch)
    }
}

impl StepBlock {
    /// Returns the block with every text mapped by `f`. Ids of gates, resources, conventions and sub-workflows, and
    /// expressions, are not texts.
    pub fn try_map<E>(&self, f: &mut dyn FnMut(&str) -> Result<String, E>) -> Result<StepBlock, E> {
        fn map_texts<E>(
            texts: &[String],
            f: &mut dyn FnMut(&str) -> Result<String, E>,
        ) -> Result<Vec<String>, E> {
            texts.iter().map(|text| f(text)).collect()
        }
        fn map_routes<E>(
            routes: &[ResultRoute],
            f: &mut dyn FnMut(&str) -> Result<String, E>,
        ) -> Result<Vec<ResultRoute>, E> {
            routes
                .iter()
                .map(|route| {
                    Ok(ResultRoute { result: f(&route.result)?, action: f(&route.action)? })
                })
                .collect()
        }
        Ok(match self {
            StepBlock::Text(text) => StepBlock::Text(f(text)?),
            StepBlock::StateBanner(banner) => StepBlock::StateBanner(StateBanner {
                checkpoint: f(&banner.checkpoint)?,
                mode: f(&banner.mode)?,
                lines: map_texts(&banner.lines, f)?,
                iteration: banner.iteration,
            }),
            StepBlock::QrBanner(gate) => StepBlock::QrBanner(gate.clone()),
            StepBlock::Forbidden(texts) => StepBlock::Forbidden(map_texts(texts, f)?),
            StepBlock::ExpectedOutput(output) => StepBlock::ExpectedOutput(ExpectedOutput {
                if_pass: f(&output.if_pass)?,
                when_issues: f(&output.when_issues)?,
                categories: map_texts(&output.categories, f)?,
            }),
            StepBlock::Routing(cases) => StepBlock::Routing(map_routes(cases, f)?),
            StepBlock::PostQrRouting(post) => StepBlock::PostQrRouting(PostReview {
                gate: post.gate.clone(),
                role: f(&post.role)?,
                rule: f(&post.rule)?,
                routes: map_routes(&post.routes, f)?,
                forbidden: map_texts(&post.forbidden, f)?,
            }),
            StepBlock::Resource(name) => StepBlock::Resource(name.clone()),
            StepBlock::Convention(name) => StepBlock::Convention(name.clone()),
            StepBlock::DetectionQuestions(asked) => {
                StepBlock::DetectionQuestions(DetectionQuestions {
                    category: f(&asked.category)?,
                    questions: asked
                        .questions
                        .iter()
                        .map(|question| {
                            Ok(DetectionQuestion {
                                id: question.id.clone(),
                                ask: f(&question.ask)?,
                            })
                        })
                        .collect::<Result<_, E>>()?,
                })
            }
            StepBlock::VerificationChecklist(items) => StepBlock::VerificationChecklist(
                items
                    .iter()
                    .map(|item| {
                        Ok(ChecklistItem {
                            element: f(&item.element)?,
                            criterion: f(&item.criterion)?,
                            if_missing: f(&item.if_missing)?,
                        })
                    })
                    .collect::<Result<_, E>>()?,
            ),
            StepBlock::IncorrectBehavior(wrong) => {
                StepBlock::IncorrectBehavior(IncorrectBehavior {
                    example: f(&wrong.example)?,
                    consequence: f(&wrong.consequence)?,
                })
            }
            StepBlock::OrchestratorConstraint(text) => StepBlock::OrchestratorConstraint(f(text)?),
            StepBlock::FactoredVerification(text) => StepBlock::FactoredVerification(f(text)?),
            StepBlock::OpenQuestions(text) => StepBlock::OpenQuestions(f(text)?),
            StepBlock::ModelSelection(models) => StepBlock::ModelSelection(ModelSelection {
                default: f(&models.default)?,
                rationale: f(&models.rationale)?,
                overrides: models.overrides.clone(),
            }),
            StepBlock::Dispatch(dispatch) => StepBlock::Dispatch(dispatch.try_map(f)?),
            StepBlock::QrReport(form) => StepBlock::QrReport(ReportForm {
                report: f(&form.report)?,
                orchestrator_action: f(&form.orchestrator_action)?,
            }),
        })
    }
}

impl SubagentDispatch {
    fn try_map<E>(
        &self,
        f: &mut dyn FnMut(&str) -> Result<String, E>,
    ) -> Result<SubagentDispatch, E> {
        Ok(match self {
            SubagentDispatch::Single(brief) => SubagentDispatch::Single(brief.try_map(f)?),
            SubagentDispatch::Parallel(parallel) => SubagentDispatch::Parallel(ParallelDispatch {
                instruction: f(&parallel.instruction)?,
                shared: f(&parallel.shared)?,
                agents: parallel
                    .agents
                    .iter()
                    .map(|brief| brief.try_map(f))
                    .collect::<Result<_, E>>()?,
            }),
            // The brief is a template for each entry, so it is rendered once the entries are known.
            SubagentDispatch::Template(template) => SubagentDispatch::Template(TemplateDispatch {
                shared: f(&template.shared)?,
                ..template.clone()
            }),
            SubagentDispatch::Conditional(conditional) => {
                SubagentDispatch::Conditional(ConditionalDispatch {
                    condition: f(&conditional.condition)?,
                    expression: conditional.expression.clone(),
                    then: Box::new(conditional.then.try_map(f)?),
                    otherwise: match &conditional.otherwise {
                        Some(other) => Some(Box::new(other.try_map(f)?)),
                        None => None,
                    },
                })
            }
        })
    }
}

impl SubagentBrief {
    /// Returns the brief with every text mapped by `f`.
    pub fn try_map<E>(
        &self,
        f: &mut dyn FnMut(&str) -> Result<String, E>,
    ) -> Result<SubagentBrief, E> {
        Ok(SubagentBrief {
            id: f(&self.id)?,
            agent: self.agent.clone(),
            task: f(&self.task)?,
            workflow: self.workflow.clone(),
            with: self
                .with
                .iter()
                .map(|(name, text)| Ok((name.clone(), f(text)?)))
                .collect::<Result<_, E>>()?,
            model: self.model.clone(),
            files: self.files.iter().map(|file| f(file)).collect::<Result<_, E>>()?,
            returns: f(&self.returns)?,
            return_tokens_max: self.return_tokens_max,
        })
    }
}

impl Serialize for StepBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StepBlock::Text(text) => serializer.serialize_str(text),
            // The derived form, which has a key.
            keyed => StepBlock::serialize(keyed, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StepBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = StepBlock;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a mapping with one key, the kind of the block")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<StepBlock, E> {
                Ok(StepBlock::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StepBlock, A::Error> {
                if let Some(keys) = map.size_hint().filter(|keys| *keys != 1) {
                    let said = format_args!("a block has one key, its kind, and here are {keys}");
                    return Err(serde::de::Error::custom(said));
                }
                StepBlock::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_any(Form)
    }
}

/// Adds plain text to the schema of blocks.
fn or_text(schema: &mut Schema) {
    if let Some(Value::Array(forms)) = schema.get_mut("oneOf") {
        forms.insert(0, serde_json::json!({ "type": "string", "description": "Text." }));
    }
}
