//! Outcomes of steps.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkflowOutcome {
    /// Done.
    Ok,
    /// Done, with a negative result.
    Fail,
    /// The following work is not needed.
    Skip,
    /// Once more.
    Iterate,
    /// Matches any outcome without an edge of its own; never reported.
    Default,
    /// An outcome defined by the workflow.
    Named(String),
}

impl WorkflowOutcome {
    pub fn as_str(&self) -> &str {
        match self {
            WorkflowOutcome::Ok => "ok",
            WorkflowOutcome::Fail => "fail",
            WorkflowOutcome::Skip => "skip",
            WorkflowOutcome::Iterate => "iterate",
            WorkflowOutcome::Default => "default",
            WorkflowOutcome::Named(name) => name,
        }
    }
}

impl From<&str> for WorkflowOutcome {
    fn from(word: &str) -> Self {
        match word {
            "ok" => WorkflowOutcome::Ok,
            "fail" => WorkflowOutcome::Fail,
            "skip" => WorkflowOutcome::Skip,
            "iterate" => WorkflowOutcome::Iterate,
            "default" => WorkflowOutcome::Default,
            name => WorkflowOutcome::Named(name.to_owned()),
        }
    }
}

impl FromStr for WorkflowOutcome {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(word.into())
    }
}

impl fmt::Display for WorkflowOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for WorkflowOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for WorkflowOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(word.as_ref().into())
    }
}

impl JsonSchema for WorkflowOutcome {
    fn schema_name() -> Cow<'static, str> {
        "Outcome".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How a step ended: ok, fail, skip, iterate, default, or a word of the workflow's own.",
            "type": "string",
            "pattern": "^[a-z][a-z0-9_-]{0,63}$",
        })
    }
}
