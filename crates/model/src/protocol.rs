//! The protocols of model services, and the one list of services.
//!
//! Each protocol is one file in this folder: it implements `ModelProtocol` and `ResponseDecoder`
//! as pure functions, and the [client](crate::client) puts it on the network. To add a service, add
//! its file here and its line to [`ModelService`]; the compiler and the tests below report where
//! else the service is missing.

mod anthropic;
mod chat;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::anthropic::AnthropicProtocol;
use self::chat::ChatProtocol;
use crate::endpoint::ServiceVariables;
use crate::error::ModelError;
use crate::error_parsing::{self, FailedResponse};
use crate::request::ModelRequest;
use crate::response::ResponseDelta;

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

    /// The protocol that the service speaks.
    pub(crate) fn protocol(self) -> &'static dyn ModelProtocol {
        match self {
            ModelService::Anthropic => &AnthropicProtocol,
            ModelService::OpenAi => &ChatProtocol::OPENAI,
            ModelService::Compat => &ChatProtocol::COMPAT,
        }
    }

    /// The name before the slash.
    pub fn as_str(self) -> &'static str {
        self.protocol().service_name()
    }

    /// The environment variables with its key and address.
    pub fn variables(self) -> ServiceVariables {
        self.protocol().variables()
    }
}

impl fmt::Display for ModelService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A protocol, as spoken by one service.
pub(crate) trait ModelProtocol: Sync {
    /// The service whose errors and answers these are.
    fn service(&self) -> ModelService;

    /// The name before the slash in a model's name, in lower case.
    fn service_name(&self) -> &'static str;

    /// The form of its models' names, for error messages.
    fn name_form(&self) -> String {
        format!("{}/NAME", self.service_name())
    }

    /// The environment variables that configure the service.
    fn variables(&self) -> ServiceVariables;

    /// The path of the API. `base_path` is the path of the configured URL, without a slash at its
    /// end.
    fn api_path(&self, base_path: &str) -> String;

    /// Headers that every request has, in addition to the content type.
    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The name and value of the header with the API key.
    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// Builds the body of a request. `output_tokens_max` is the limit of the model, if it is known.
    fn request_body(
        &self,
        request: &ModelRequest<'_>,
        output_tokens_max: Option<u32>,
        delivery: AnswerDelivery,
    ) -> Value;

    /// Creates a decoder for the answer to a request.
    fn new_decoder(&self, request: &ModelRequest<'_>) -> Box<dyn ResponseDecoder>;

    /// Converts a response with an error status. The default recognises the errors of all common
    /// services, because proxies pass them on.
    fn response_error(&self, failed: &FailedResponse<'_>) -> ModelError {
        error_parsing::status_error(self.service(), failed)
    }
}

/// The way in which a server is asked to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerDelivery {
    /// As a stream of events.
    Streamed,
    /// As one JSON document.
    Whole,
}

/// Converts the answer to one request to deltas.
pub(crate) trait ResponseDecoder: Send + Sync {
    /// Decodes the data of one event. Ignores unknown events and fields.
    ///
    /// # Errors
    ///
    /// Returns the server's error, or [`ModelError::Protocol`] if the data is not JSON.
    fn decode_event(&mut self, data: &str, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError>;

    /// Decodes a complete (not streamed) answer.
    ///
    /// # Errors
    ///
    /// The same as for [`decode_event`](Self::decode_event).
    fn decode_answer(
        &mut self,
        answer: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError>;

    /// Ends the answer.
    ///
    /// # Errors
    ///
    /// Returns [`ModelError::BrokenOff`] if the model had not ended the answer.
    fn finish(&mut self, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError>;

    /// Returns true once the server has ended the stream.
    fn is_done(&self) -> bool;

    /// Returns true once the model has ended its answer, even if more events follow.
    fn is_complete(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_is_listed_once_under_its_own_name() {
        for (at, service) in ModelService::ALL.into_iter().enumerate() {
            assert_eq!(service as usize, at, "the breakers are indexed by service");
            assert_eq!(service.protocol().service(), service);
            assert_eq!(serde_json::to_value(service).unwrap(), service.as_str());
        }
        let schema = schemars::schema_for!(ModelService).to_value();
        let variants = schema["oneOf"].as_array().map(Vec::len);
        assert_eq!(variants, Some(ModelService::ALL.len()), "a service is missing in `ALL`");
    }
}
