//! The interfaces to agents and people outside the process: the Model Context Protocol, an HTTP API
//! and a web page.
//!
//! Everything here is thin: it translates requests to calls of the [`ServeState`], and results to
//! responses. Decisions about skills, runs and reviews are made in the crates below.

pub mod http;
pub mod limits;
pub mod mcp;
pub mod page;
mod plain_text;
pub mod serve_state;

pub use serve_state::{CatalogNews, ServeState};
