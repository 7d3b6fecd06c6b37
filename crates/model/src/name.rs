//! Names of models: the service, a slash, and the service's own name.

use std::fmt;
use std::str::FromStr;

use crate::protocol::ModelService;

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
#[error("`{0}` is not the name of a model: write {forms}", forms = name_forms())]
pub struct ModelNameError(pub String);

/// The forms of model names: `a/NAME, b/NAME or c/NAME`.
fn name_forms() -> String {
    let forms = ModelService::ALL.map(|service| service.protocol().name_form());
    match forms.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_is_answered_with_the_forms_of_good_ones() {
        let error = "qwen3".parse::<ModelName>().unwrap_err();
        insta::assert_snapshot!(error, @"`qwen3` is not the name of a model: write anthropic/NAME, openai/NAME or compat/NAME (any OpenAI-compatible server)");
    }
}
