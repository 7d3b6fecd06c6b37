//! The API, as programs meet it.

mod skills;
mod wrong;
