//! A scripted model server for tests: supports all protocols, streamed and not, and fails on
//! command. Also contains a fake GitHub ([`github`]) and a collector of traces ([`TraceCollector`]).
//!
//! The server writes HTTP itself, so that a test controls where an answer breaks off and how long
//! it stalls. It shares no code with the client under test.
//!
//! ```
//! use repertoire_scripted::{ModelScript, ScriptedServer, ScriptedTurn};
//! use serde_json::json;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let script = ModelScript::new()
//!     .turn(ScriptedTurn::tool("bash", json!({ "command": "ls" })))
//!     .turn(ScriptedTurn::text("There are two files."));
//! let server = ScriptedServer::start(script).await;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! # });
//! ```

mod collector;
mod connection;
pub mod github;
mod http;
pub mod limits;
mod protocol;
mod recorded_request;
mod script;
mod server;

pub use collector::TraceCollector;
pub use recorded_request::RecordedRequest;
pub use script::{ModelFault, ModelScript, ScriptedToolUse, ScriptedTurn, ScriptedUsage};
pub use server::ScriptedServer;
