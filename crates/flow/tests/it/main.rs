//! Workflows from the outside: the engine in sentences, in random graphs, and on every workflow that is shipped.

mod drive;
mod engine;
mod gates;
mod people;
mod properties;
mod random;
mod shipped;
mod support;
