//! Edges between steps. In a file, `next: there` is a linear step, `next: end` the last one, and a mapping from
//! outcomes to steps a branch.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{StepId, WorkflowOutcome};

/// The word for the end of a workflow. No step can have this id.
pub(crate) const END: &str = "end";

/// The edges of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepRouting {
    /// Always to the same step.
    Linear(StepId),
    /// By outcome.
    Branch(IndexMap<WorkflowOutcome, EdgeTarget>),
    /// To the end of the workflow.
    Terminal,
}

/// The target of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeTarget {
    Step(StepId),
    End,
}

impl StepRouting {
    /// The target of an outcome: its own edge, or that of `default`. `None` if the outcome has no edge, which is not
    /// the same as leading to the end.
    pub fn find_target(&self, outcome: &WorkflowOutcome) -> Option<EdgeTarget> {
        match self {
            StepRouting::Linear(step) => {
                (*outcome == WorkflowOutcome::Ok).then(|| EdgeTarget::Step(step.clone()))
            }
            StepRouting::Terminal => (*outcome == WorkflowOutcome::Ok).then_some(EdgeTarget::End),
            StepRouting::Branch(edges) => {
                edges.get(outcome).or_else(|| edges.get(&WorkflowOutcome::Default)).cloned()
            }
        }
    }

    /// The outcomes that have an edge, in the order of the file.
    pub fn routed_outcomes(&self) -> Vec<WorkflowOutcome> {
        match self {
            StepRouting::Linear(_) | StepRouting::Terminal => vec![WorkflowOutcome::Ok],
            StepRouting::Branch(edges) => edges.keys().cloned().collect(),
        }
    }

    /// The edges, in the order of the file.
    pub fn all_edges(&self) -> Vec<(WorkflowOutcome, EdgeTarget)> {
        match self {
            StepRouting::Linear(step) => {
                vec![(WorkflowOutcome::Ok, EdgeTarget::Step(step.clone()))]
            }
            StepRouting::Terminal => vec![(WorkflowOutcome::Ok, EdgeTarget::End)],
            StepRouting::Branch(edges) => {
                edges.iter().map(|(outcome, target)| (outcome.clone(), target.clone())).collect()
            }
        }
    }
}

impl EdgeTarget {
    /// The step, unless the target is the end.
    pub fn as_step(&self) -> Option<&StepId> {
        match self {
            EdgeTarget::Step(step) => Some(step),
            EdgeTarget::End => None,
        }
    }
}

impl From<&str> for EdgeTarget {
    fn from(word: &str) -> Self {
        if word == END { EdgeTarget::End } else { EdgeTarget::Step(word.into()) }
    }
}

impl From<&str> for StepRouting {
    fn from(word: &str) -> Self {
        match EdgeTarget::from(word) {
            EdgeTarget::End => StepRouting::Terminal,
            EdgeTarget::Step(step) => StepRouting::Linear(step),
        }
    }
}

impl<const N: usize> From<[(WorkflowOutcome, &str); N]> for StepRouting {
    fn from(edges: [(WorkflowOutcome, &str); N]) -> Self {
        StepRouting::Branch(edges.into_iter().map(|(outcome, to)| (outcome, to.into())).collect())
    }
}

impl Serialize for EdgeTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_step().map_or(END, StepId::as_str))
    }
}

impl<'de> Deserialize<'de> for EdgeTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(word.as_ref().into())
    }
}

impl Serialize for StepRouting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StepRouting::Linear(step) => serializer.serialize_str(step.as_str()),
            StepRouting::Terminal => serializer.serialize_str(END),
            StepRouting::Branch(edges) => edges.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StepRouting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = StepRouting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step, `end`, or a mapping from outcomes to steps")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<StepRouting, E> {
                Ok(word.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StepRouting, A::Error> {
                let mut edges = IndexMap::new();
                while let Some((outcome, target)) = map.next_entry()? {
                    edges.insert(outcome, target);
                }
                Ok(StepRouting::Branch(edges))
            }
        }

        deserializer.deserialize_any(Form)
    }
}

impl JsonSchema for StepRouting {
    fn schema_name() -> Cow<'static, str> {
        "Routing".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A step, `end`, or a mapping from outcomes to steps.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "additionalProperties": { "type": "string" }, "minProperties": 1 },
            ],
        })
    }
}
