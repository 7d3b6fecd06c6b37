//! GitHub as Repertoire sees it: what an event says ([`event`]), and what can be asked of the service ([`client`]).
//!
//! Everything but the client is a function over values. Nothing here knows of skills, agents or runs.

pub mod client;
pub mod comment;
pub mod event;
pub mod outputs;
