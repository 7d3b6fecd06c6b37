//! What the crate promises, seen from outside.

#![allow(clippy::unwrap_used)]

mod actor;
mod attacks;
mod event;
mod fixtures;
mod stranger;
mod trigger;
