//! Workflows from the outside: the engine in sentences, in random graphs, on every workflow that is shipped, and with runs in a journal.

mod drive;
mod engine;
mod gates;
mod people;
mod properties;
mod random;
mod shipped;
mod store;
mod support;
