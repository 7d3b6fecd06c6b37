//! A scripted model server for tests: it speaks both protocols, streamed and not, and fails on command. Beside it stands a
//! fake GitHub ([`github`]).
//!
//! It is written down to the bytes, so that a test decides where an answer breaks off and how long nothing comes. It
//! shares no code with the client that it tests.
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
mod recorded;
mod script;
mod server;

pub use recorded::Recorded;
pub use script::{Fault, Script, ToolUse, Turn, Usage};
pub use server::Server;
