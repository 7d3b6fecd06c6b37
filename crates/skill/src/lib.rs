//! Everything about a skill before anyone selects it: the record and its dialects, lint, discovery, the
//! catalog, activation within a budget, and rendering for the peers.

pub mod catalog;
pub mod codes;
pub mod depend;
pub mod dialect;
pub mod discover;
pub mod limits;
pub mod load;
pub mod name;
pub mod openskills;
pub mod pack;
pub mod plugin;
pub mod profile;
pub mod resources;
pub mod skill;
pub mod skills_ref;
pub mod trust;
pub mod walk;
pub mod write;
