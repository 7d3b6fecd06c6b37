//! What models can read and write, and what they charge.

use crate::name::ModelName;
use crate::response::Usage;

/// What is known of a model. Prices are in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelInfo {
    /// Tokens that fit into a conversation.
    pub context_tokens: u64,
    /// Most tokens of an answer.
    pub output_tokens_max: u32,
    /// For tokens that are read.
    pub input_usd: f64,
    /// For tokens that are written.
    pub output_usd: f64,
    /// For tokens that are read from the cache.
    pub cache_read_usd: f64,
    /// For tokens that are written to the cache.
    pub cache_write_usd: f64,
}

/// The table of models.
#[derive(Clone, Debug, Default)]
pub struct Prices {}

impl Prices {
    /// The table that ships with the program.
    pub fn builtin() -> Self {
        Prices {}
    }

    /// What is known of a model.
    pub fn get(&self, model: &ModelName) -> Option<&ModelInfo> {
        let _ = model;
        None
    }

    /// What a call cost, if the price is known.
    pub fn cost_usd(&self, model: &ModelName, usage: &Usage) -> Option<f64> {
        let _ = (model, usage);
        None
    }
}
