//! The API, as programs meet it.

mod runs;
mod skills;
mod wrong;
