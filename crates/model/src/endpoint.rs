//! The addresses and keys of model services.

use std::collections::BTreeMap;

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

/// How a service is configured with environment variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceVariables {
    pub key: &'static str,
    pub base_url: &'static str,
    /// The address if `base_url` is not set.
    pub default_url: &'static str,
    /// False if the service can be used without a key, like a server on the same machine.
    pub needs_key: bool,
}

/// The endpoints of the services that are configured.
#[derive(Clone, Debug, Default)]
pub struct ModelEndpoints(BTreeMap<ModelService, ModelEndpoint>);

impl ModelEndpoints {
    /// Reads the endpoints of all services from environment variables.
    pub fn from_variables<'a>(get_variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let mut endpoints = ModelEndpoints::default();
        for service in ModelService::ALL {
            let variables = service.variables();
            let url = get_variable(variables.base_url);
            let mut key = get_variable(variables.key);
            if variables.needs_key && key.is_none() {
                continue;
            }
            if !variables.needs_key && url.is_none() {
                // The key was set for another address, so it is not sent to the default one.
                key = None;
            }
            let base_url = url.unwrap_or(variables.default_url).trim_end_matches('/').to_owned();
            let key = key.map(|key| ApiSecret::new(key.trim()));
            endpoints = endpoints.with(service, ModelEndpoint { base_url, key });
        }
        endpoints
    }

    /// Adds or replaces the endpoint of a service.
    #[must_use]
    pub fn with(mut self, service: ModelService, endpoint: ModelEndpoint) -> Self {
        self.0.insert(service, endpoint);
        self
    }

    /// The endpoint of a service, if it is configured.
    pub fn get(&self, service: ModelService) -> Option<&ModelEndpoint> {
        self.0.get(&service)
    }
}

/// Removes secrets from a URL: a user name and password before an `@`, and keys after a `?`.
pub(crate) fn without_secrets(url: &str) -> &str {
    let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
    url.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(variables: &[(&str, &'static str)]) -> ModelEndpoints {
        ModelEndpoints::from_variables(|name| {
            variables.iter().find(|(set, _)| *set == name).map(|(_, value)| *value)
        })
    }

    #[test]
    fn a_service_that_needs_a_key_is_there_only_with_one() {
        let none = endpoints(&[]);
        assert!(none.get(ModelService::Anthropic).is_none());
        assert!(none.get(ModelService::OpenAi).is_none());
        let one = endpoints(&[("ANTHROPIC_API_KEY", " k\n"), ("ANTHROPIC_BASE_URL", "http://a/")]);
        let endpoint = one.get(ModelService::Anthropic).unwrap();
        assert_eq!(endpoint.base_url, "http://a");
        assert_eq!(endpoint.key.as_ref().unwrap().reveal(), "k");
    }

    #[test]
    fn a_key_goes_only_to_the_address_it_was_set_for() {
        let with_key = endpoints(&[("OPENAI_API_KEY", "k")]);
        let local = with_key.get(ModelService::Compat).unwrap();
        assert!(local.base_url.starts_with("http://127.0.0.1:"));
        assert!(local.key.is_none());
        let elsewhere = endpoints(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://a/v1")]);
        let compat = elsewhere.get(ModelService::Compat).unwrap();
        assert_eq!(compat.base_url, "http://a/v1");
        assert!(compat.key.is_some());
    }
}
