//! Reviews of changes: what has changed, who looks at it, what they find, and what of that is true.
//!
//! Agents propose findings; the engine decides which of them have a place in the change, which prove themselves, which a
//! validator has to agree to, and which are the same. A [`record::Review`] has all of it, what was left out included.

pub mod baseline;
pub mod change;
pub mod content;
pub mod diff;
pub mod finding;
pub mod lineup;
pub mod patterns;
pub mod prints;
pub mod record;
pub mod rules;
pub mod scope;
pub mod suppress;
