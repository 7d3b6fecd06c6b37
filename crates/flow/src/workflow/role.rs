//! Roles of sub-agents.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The role of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentRole {
    /// Looks for problems.
    QualityReviewer,
    /// Writes documentation.
    TechnicalWriter,
    /// Writes code.
    Developer,
    /// Reads and reports, without changing anything.
    Explore,
    /// Does anything.
    #[default]
    GeneralPurpose,
    /// A role that the workflow declares under `roles`.
    Custom(String),
}

impl AgentRole {
    /// The five built-in roles, which need not be declared.
    pub const KNOWN: [AgentRole; 5] = [
        AgentRole::QualityReviewer,
        AgentRole::TechnicalWriter,
        AgentRole::Developer,
        AgentRole::Explore,
        AgentRole::GeneralPurpose,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            AgentRole::QualityReviewer => "quality-reviewer",
            AgentRole::TechnicalWriter => "technical-writer",
            AgentRole::Developer => "developer",
            AgentRole::Explore => "explore",
            AgentRole::GeneralPurpose => "general-purpose",
            AgentRole::Custom(name) => name,
        }
    }
}

impl From<&str> for AgentRole {
    fn from(word: &str) -> Self {
        AgentRole::KNOWN
            .into_iter()
            .find(|role| role.as_str() == word)
            .unwrap_or_else(|| AgentRole::Custom(word.to_owned()))
    }
}

impl fmt::Display for AgentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for AgentRole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AgentRole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(word.as_ref().into())
    }
}

impl JsonSchema for AgentRole {
    fn schema_name() -> Cow<'static, str> {
        "AgentRole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The role of a sub-agent: one of the five that everybody knows, or one declared under `roles`.",
            "type": "string",
            "examples": AgentRole::KNOWN.map(|role| role.as_str().to_owned()),
        })
    }
}
