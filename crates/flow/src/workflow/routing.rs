//! Edges between steps. In a file, `next: there` is a linear step, `next: end` the last one, and a mapping from
//! outcomes to steps a branch.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Outcome, StepId};

/// The word for the end of a workflow. No step can have this id.
pub(crate) const END: &str = "end";

/// The edges of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Always to the same step.
    Linear(StepId),
    /// By outcome.
    Branch(IndexMap<Outcome, Target>),
    /// To the end of the workflow.
    Terminal,
}

/// The target of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Step(StepId),
    End,
}

impl Routing {
    /// The target of an outcome: its own edge, or that of `default`. `None` if the outcome has no edge, which is not
    /// the same as leading to the end.
    pub fn target(&self, outcome: &Outcome) -> Option<Target> {
        match self {
            Routing::Linear(step) => (*outcome == Outcome::Ok).then(|| Target::Step(step.clone())),
            Routing::Terminal => (*outcome == Outcome::Ok).then_some(Target::End),
            Routing::Branch(edges) => {
                edges.get(outcome).or_else(|| edges.get(&Outcome::Default)).cloned()
            }
        }
    }

    /// The outcomes that have an edge, in the order of the file.
    pub fn outcomes(&self) -> Vec<Outcome> {
        match self {
            Routing::Linear(_) | Routing::Terminal => vec![Outcome::Ok],
            Routing::Branch(edges) => edges.keys().cloned().collect(),
        }
    }

    /// The edges, in the order of the file.
    pub fn edges(&self) -> Vec<(Outcome, Target)> {
        match self {
            Routing::Linear(step) => vec![(Outcome::Ok, Target::Step(step.clone()))],
            Routing::Terminal => vec![(Outcome::Ok, Target::End)],
            Routing::Branch(edges) => {
                edges.iter().map(|(outcome, target)| (outcome.clone(), target.clone())).collect()
            }
        }
    }
}

impl Target {
    /// The step, unless the target is the end.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            Target::Step(step) => Some(step),
            Target::End => None,
        }
    }
}

impl From<&str> for Target {
    fn from(word: &str) -> Self {
        if word == END { Target::End } else { Target::Step(word.into()) }
    }
}

impl From<&str> for Routing {
    fn from(word: &str) -> Self {
        match Target::from(word) {
            Target::End => Routing::Terminal,
            Target::Step(step) => Routing::Linear(step),
        }
    }
}

impl<const N: usize> From<[(Outcome, &str); N]> for Routing {
    fn from(edges: [(Outcome, &str); N]) -> Self {
        Routing::Branch(edges.into_iter().map(|(outcome, to)| (outcome, to.into())).collect())
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.step().map_or(END, StepId::as_str))
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(word.as_ref().into())
    }
}

impl Serialize for Routing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Routing::Linear(step) => serializer.serialize_str(step.as_str()),
            Routing::Terminal => serializer.serialize_str(END),
            Routing::Branch(edges) => edges.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Routing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = Routing;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step, `end`, or a mapping from outcomes to steps")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Routing, E> {
                Ok(word.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Routing, A::Error> {
                let mut edges = IndexMap::new();
                while let Some((outcome, target)) = map.next_entry()? {
                    edges.insert(outcome, target);
                }
                Ok(Routing::Branch(edges))
            }
        }

        deserializer.deserialize_any(Form)
    }
}

impl JsonSchema for Routing {
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
