//! The API, as programs meet it.

mod metrics;
mod reviews;
mod runs;
mod skills;
mod workflows;
mod wrong;
