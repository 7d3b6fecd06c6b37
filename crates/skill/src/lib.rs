//! Everything about a skill before anyone selects it: the record and its dialects, lint, discovery, the
//! catalog, activation within a budget, and rendering for the peers.

pub mod activate;
pub mod arguments;
pub mod catalog;
pub mod codes;
pub mod depend;
pub mod dialect;
pub mod discover;
pub mod ledger;
pub mod library;
pub mod limits;
pub mod lint;
pub mod load;
pub mod name;
pub mod openskills;
pub mod pack;
pub mod plugin;
pub mod profile;
pub mod render;
pub mod resources;
pub mod skill;
pub mod skills_ref;
#[cfg(test)]
mod testing;
pub mod trust;
pub mod walk;
pub mod write;
