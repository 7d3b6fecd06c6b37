//! MCP, as clients meet it: over streams in this process, and over HTTP.

mod conversations;
mod hostile;
mod http;
mod news;
mod skills;
mod tools;
mod wire;
