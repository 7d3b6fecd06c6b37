//! A scripted model server for tests: supports all protocols, streamed and not, and fails on
//! command. Also contains a fake GitHub ([`github`]).
//!
//! The server writes HTTP itself, so that a test controls where an answer breaks off and how long
//! it stalls. It shares no code with the client under test.
//!
//! ```
//! use repertoire_scripted::{Script, Server, Turn};
//! use serde_json::json;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let script = Script::new()
//!     .turn(Turn::tool("bash", json!({ "command": "ls" })))
//!     .turn(Turn::text("There are two files."));
//! let server = Server::start(script).await;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! # });
//! ```

mod connection;
pub mod github;
mod http;
pub mod limits;
mod protocol;
mod recorded_request;
mod script;
mod server;

pub use recorded_request::RecordedRequest;
pub use script::{ModelFault, ModelScript, ScriptedToolUse, ScriptedTurn, ScriptedUsage};
pub use server::ScriptedServer;
