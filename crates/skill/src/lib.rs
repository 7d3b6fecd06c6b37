//! Everything about a skill before anyone selects it: the record and its dialects, lint, discovery, the
//! catalog, activation within a budget, and rendering for the peers.

pub mod codes;
pub mod openskills;
pub mod skills_ref;
