//! Workflows as data: steps, outcomes and gates that an engine enforces.
pub mod limits;
pub mod workflow;
