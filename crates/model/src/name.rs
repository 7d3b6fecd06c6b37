//! Names of models: the service, a slash, and the service's own name.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model service.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ModelService {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API.
    OpenAi,
    /// Any OpenAI-compatible server: Ollama, vLLM, llama.cpp, OpenRouter.
    Compat,
}

impl ModelService {
    pub const ALL: [ModelService; 3] =
        [ModelService::Anthropic, ModelService::OpenAi, ModelService::Compat];

    /// The name before the slash.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelService::Anthropic => "anthropic",
            ModelService::OpenAi => "openai",
            ModelService::Compat => "compat",
        }
    }
}

impl fmt::Display for ModelService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model of a service, written `anthropic/claude-haiku-4-5`.
///
/// ```
/// use repertoire_model::{ModelName, ModelService};
///
/// let name: ModelName = "compat/qwen3:8b".parse()?;
/// assert_eq!((name.service, name.model.as_str()), (ModelService::Compat, "qwen3:8b"));
/// assert!("qwen3".parse::<ModelName>().is_err());
/// # Ok::<(), repertoire_model::name::ModelNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName {
    pub service: ModelService,
    /// The service's name for the model; may contain slashes.
    pub model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a model: write anthropic/NAME, openai/NAME or compat/NAME (any OpenAI-compatible server)"
)]
pub struct ModelNameError(pub String);

impl FromStr for ModelName {
    type Err = ModelNameError;

    fn from_str(text: &str) -> Result<Self, ModelNameError> {
        let bad = || ModelNameError(text.to_owned());
        let (service, model) = text.split_once('/').ok_or_else(bad)?;
        let service = ModelService::ALL.into_iter().find(|known| known.as_str() == service);
        let service = service.filter(|_| !model.trim().is_empty()).ok_or_else(bad)?;
        Ok(ModelName { service, model: model.trim().to_owned() })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.model)
    }
}
