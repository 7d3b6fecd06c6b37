//! GitHub as Repertoire sees it: what an event says ([`event`]), whether it calls for work ([`trigger`]), who may ask for
//! it ([`actor`]), what becomes of the text of strangers ([`stranger`]), and what can be asked of the service ([`client`]).
//!
//! Everything but the client is a function over values. Nothing here knows of skills, agents or runs.

pub mod actor;
pub mod automerge;
pub mod base;
pub mod client;
pub mod codes;
pub mod comment;
pub mod credentials;
pub mod event;
pub mod grant;
pub mod limits;
pub mod mode;
pub mod outputs;
pub mod publish;
pub mod run;
pub mod stranger;
pub mod tasks;
pub mod template;
pub mod tracking;
pub mod trigger;
