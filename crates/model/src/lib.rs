//! The wire to language models: what is said to them, what comes back, and what it cost.
//!
//! It knows nothing of agents and skills. Two protocols are spoken, [`anthropic`] Messages and OpenAI-compatible
//! Chat Completions ([`chat`]); both are pure functions from a [`Request`] to JSON and from the server's events to
//! [`Delta`]s. [`client`] puts them on the network, with time limits of its own.
//!
//! - [`message`], [`request`], [`response`]: the values that both protocols are translated from and to.
//! - [`name`]: `anthropic/…`, `openai/…`, `compat/…`.
//! - [`error`]: what can go wrong, by what the caller can do about it; [`retry`] and [`breaker`] decide what to do.
//! - [`prices`]: context windows and prices, as a table that the user extends.
//! - [`secret`]: keys that cannot be printed.

pub mod anthropic;
pub mod breaker;
pub mod chat;
pub mod client;
pub mod error;
mod fault;
pub mod limits;
pub mod message;
pub mod name;
pub mod prices;
pub mod request;
pub mod response;
pub mod retry;
pub mod secret;
mod transport;
mod turns;
mod waiting;

pub use client::{Client, DeltaStream, Endpoint, Endpoints, Provider, Timeouts};
pub use error::Error;
pub use message::{AssistantPart, Message, ToolCall, ToolResult, UserPart};
pub use name::{ModelName, Service};
pub use request::{Caching, Request, ResponseFormat, Sampling, Thinking, ToolChoice, ToolSpec};
pub use response::{Assembler, Delta, Response, StopReason, Usage};
pub use secret::Secret;
