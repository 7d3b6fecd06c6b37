//! Access to language models: requests, responses, and their cost.
//!
//! This crate knows nothing of agents and skills. It supports two protocols, Anthropic's Messages and
//! OpenAI-compatible Chat Completions, one file each in [`protocol`]: pure functions from a
//! [`ModelRequest`] to JSON and from the server's events to [`ResponseDelta`]s. [`client`] puts them
//! on the network and enforces timeouts.
//!
//! - [`message`], [`request`], [`response`]: the types that both protocols are converted from and
//!   to.
//! - [`endpoint`]: the addresses and keys of the services.
//! - [`name`]: `anthropic/…`, `openai/…`, `compat/…`.
//! - [`error`]: errors, grouped by what the caller can do about them; [`retry`] and [`breaker`]
//!   decide what to do.
//! - [`prices`]: context windows and prices, as a table that the user can extend.
//! - [`secret`]: keys that cannot be printed.
//!
//! A call:
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use repertoire_model::{
//!     CallTimeouts, ModelClient, ModelEndpoint, ModelEndpoints, ModelError, ModelMessage, ModelName,
//!     ModelProvider, ModelRequest, ModelResponse, ModelService, ResponseAssembler,
//! };
//!
//! async fn ask(model: &ModelName, question: &str) -> Result<Option<ModelResponse>, ModelError> {
//!     let local = ModelEndpoint { base_url: "http://127.0.0.1:11434/v1".to_owned(), key: None };
//!     let endpoints = ModelEndpoints::default().with(ModelService::Compat, local);
//!     let client = ModelClient::new(endpoints, CallTimeouts::default());
//!     let messages = [ModelMessage::user(question)];
//!     let mut answer = client.stream(&ModelRequest::new(model, &messages));
//!     let mut assembler = ResponseAssembler::default();
//!     while let Some(delta) = answer.next().await {
//!         assembler.push(&delta?);
//!     }
//!     Ok(assembler.finish())
//! }
//! ```
//!
//! Reacting to a failed call:
//!
//! ```
//! use repertoire_model::retry::{RetryAdvice, RetryPolicy};
//! use repertoire_model::{ModelError, ModelService};
//!
//! let error = ModelError::BrokenOff { service: ModelService::Compat };
//! let advice = RetryPolicy::default().advise(&error, 1, 0.5, 0);
//! assert_eq!(advice, RetryAdvice::Retry { after_ms: 1000 });
//! ```

pub mod breaker;
pub mod client;
pub mod endpoint;
pub mod error;
mod error_parsing;
pub mod limits;
pub mod message;
pub mod name;
pub mod prices;
pub mod protocol;
pub mod request;
pub mod response;
pub mod retry;
mod retry_headers;
pub mod secret;
mod transport;
mod turns;

pub use client::{CallTimeouts, DeltaStream, ModelClient, ModelProvider};
pub use endpoint::{ModelEndpoint, ModelEndpoints, ServiceVariables};
pub use error::ModelError;
pub use message::{AssistantPart, ModelMessage, ToolCall, ToolResult, UserPart};
pub use name::ModelName;
pub use protocol::ModelService;
pub use request::{
    ModelRequest, PromptCaching, ResponseFormat, SamplingParams, ThinkingMode, ToolChoice, ToolSpec,
};
pub use response::{ModelResponse, ResponseAssembler, ResponseDelta, StopReason, TokenUsage};
pub use secret::ApiSecret;
