//! The addresses and keys of model services.

use crate::protocol::ModelService;
use crate::secret::ApiSecret;

/// The address and credentials of a service.
#[derive(Clone)]
pub struct ModelEndpoint {
    /// The URL to which the protocol's paths are appended.
    pub base_url: String,
    /// The API key, if one is needed.
    pub key: Option<ApiSecret>,
}

impl std::fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base_url = without_secrets(&self.base_url);
        f.debug_struct("ModelEndpoint")
            .field("base_url", &base_url)
            .field("key", &self.key)
            .finish()
    }
}

/// The endpoints of all services.
#[derive(Clone, Debug, Default)]
pub struct ModelEndpoints {
    pub anthropic: Option<ModelEndpoint>,
    pub openai: Option<ModelEndpoint>,
    /// Any OpenAI-compatible server.
    pub compat: Option<ModelEndpoint>,
}

impl ModelEndpoints {
    /// The endpoint of a service, if it is configured.
    pub fn get(&self, service: ModelService) -> Option<&ModelEndpoint> {
        match service {
            ModelService::Anthropic => self.anthropic.as_ref(),
            ModelService::OpenAi => self.openai.as_ref(),
            ModelService::Compat => self.compat.as_ref(),
        }
    }
}

/// Removes secrets from a URL: a user name and password before an `@`, and keys after a `?`.
pub(crate) fn without_secrets(url: &str) -> &str {
    let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
    url.split(['?', '#']).next().unwrap_or_default()
}
