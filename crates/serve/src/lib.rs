//! What agents and people outside the process meet: the Model Context Protocol, an HTTP API and a page.
//!
//! Everything here is thin: a request is translated, the [`House`] is asked, and the answer is translated back. What is
//! decided about skills, runs and reviews is decided in the crates below.

pub mod clients;
pub mod house;
pub mod http;
pub mod limits;
pub mod mcp;
pub mod page;
mod plain;

pub use house::{House, News};
