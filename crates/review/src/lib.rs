//! Reviews of changes: what has changed, who looks at it, what they find, and what of that is true.
//!
//! Agents propose findings; the engine decides which of them have a place in the change, which prove themselves, which a
//! validator has to agree to, and which are the same. A [`record::Review`] has all of it, what was left out included.

pub mod admit;
pub mod aggregate;
pub mod asking;
pub mod baseline;
pub mod change;
pub mod codes;
pub mod content;
pub mod diff;
pub mod extract;
pub mod finding;
pub mod instructions;
pub mod limits;
pub mod lineup;
pub mod patterns;
pub mod pipeline;
pub mod prints;
pub mod prompt;
pub mod record;
pub mod report;
pub mod rules;
pub mod scope;
pub mod store;
pub mod suppress;
pub mod surroundings;
pub mod synthesis;
pub mod validate;
