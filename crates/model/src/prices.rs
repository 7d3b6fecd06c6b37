//! What models can read and write, and what they charge.
//!
//! The table ships with the program and is extended by the user's. A dated version of a model, as
//! `anthropic/claude-haiku-4-5-20251001`, is found by the name without its date; of a model that is not in the table
//! nothing is known, and nothing is guessed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toml::{Table, Value};

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

/// What is wrong with a table of models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A key is not the name of a model.
    #[error(transparent)]
    Name(#[from] crate::name::BadModelName),
    /// What a key stands for is not a table.
    #[error("`{model}` must be a table, as {{ context_tokens = 200000, input_usd = 1.0, … }}")]
    NotATable {
        /// The key.
        model: String,
    },
    /// There is no such field.
    #[error("`{model}` has a field `{field}` that is not known; the fields are {fields}", fields = FIELDS.join(", "))]
    UnknownField {
        /// The key.
        model: String,
        /// The field.
        field: String,
    },
    /// A field that cannot be left out.
    #[error("`{model}` lacks `{field}`")]
    Missing {
        /// The key.
        model: String,
        /// The field.
        field: &'static str,
    },
    /// A field with a value that cannot be.
    #[error("`{field}` of `{model}` must be {expected}")]
    BadValue {
        /// The key.
        model: String,
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

const FIELDS: [&str; 6] = [
    "context_tokens",
    "output_tokens_max",
    "input_usd",
    "output_usd",
    "cache_read_usd",
    "cache_write_usd",
];

/// The table of models. Copies share it until one is changed.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    models: Arc<BTreeMap<String, ModelInfo>>,
}

impl Prices {
    /// The table that ships with the program.
    pub fn builtin() -> Self {
        static BUILTIN: OnceLock<Prices> = OnceLock::new();
        let read = || {
            let table =
                include_str!("../data/models.toml").parse().expect("a test reads the table");
            let mut prices = Prices::default();
            prices.extend(&table).expect("a test reads the table");
            prices
        };
        BUILTIN.get_or_init(read).clone()
    }

    /// Adds models, or replaces what is known of them. Of a model that is in the table already, only the fields that
    /// change have to be given; of a new one, all but those of the cache, which then cost as much as other tokens.
    ///
    /// # Errors
    ///
    /// Which key is wrong, and what is wrong with it. Nothing is taken over then.
    pub fn extend(&mut self, table: &Table) -> Result<(), PriceError> {
        let mut models = self.models.as_ref().clone();
        for (model, value) in table {
            model.parse::<ModelName>()?;
            let row = Row { model, fields: value.as_table().ok_or_else(|| not_a_table(model))? };
            let info = row.info(self.models.get(model))?;
            models.insert(model.clone(), info);
        }
        self.models = Arc::new(models);
        Ok(())
    }

    /// What is known of a model.
    pub fn get(&self, model: &ModelName) -> Option<&ModelInfo> {
        let name = model.to_string();
        let longest_first = self.models.range(..=name.clone()).rev();
        let mut known =
            longest_first.filter(|(key, _)| name.strip_prefix(key.as_str()).is_some_and(is_date));
        known.next().map(|(_, info)| info)
    }

    /// What a call cost, if the price is known.
    pub fn cost_usd(&self, model: &ModelName, usage: &Usage) -> Option<f64> {
        let info = self.get(model)?;
        let parts = [
            (usage.input_tokens, info.input_usd),
            (usage.output_tokens, info.output_usd),
            (usage.cache_read_tokens, info.cache_read_usd),
            (usage.cache_write_tokens, info.cache_write_usd),
        ];
        Some(parts.iter().map(|(tokens, usd)| *tokens as f64 * usd / 1e6).sum())
    }
}

/// Whether the rest of a name only says which version of the model is meant. `gpt-5-mini` is no version of `gpt-5`.
fn is_date(rest: &str) -> bool {
    let Some(version) = rest.strip_prefix(['-', '@']) else {
        return rest.is_empty();
    };
    let digits = version.chars().filter(char::is_ascii_digit).count();
    version == "latest" || (digits >= 6 && version.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

fn not_a_table(model: &str) -> PriceError {
    PriceError::NotATable { model: model.to_owned() }
}

/// One model of a table that is being read.
struct Row<'a> {
    model: &'a str,
    fields: &'a Table,
}

impl Row<'_> {
    fn info(&self, known: Option<&ModelInfo>) -> Result<ModelInfo, PriceError> {
        if let Some(field) = self.fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            let (model, field) = (self.model.to_owned(), field.clone());
            return Err(PriceError::UnknownField { model, field });
        }
        let input_usd = self.usd("input_usd", known.map(|info| info.input_usd))?;
        let output_tokens =
            self.tokens("output_tokens_max", known.map(|info| u64::from(info.output_tokens_max)))?;
        Ok(ModelInfo {
            context_tokens: self.tokens("context_tokens", known.map(|info| info.context_tokens))?,
            output_tokens_max: u32::try_from(output_tokens)
                .map_err(|_| self.bad("output_tokens_max", TOKENS))?,
            input_usd,
            output_usd: self.usd("output_usd", known.map(|info| info.output_usd))?,
            cache_read_usd: self.usd(
                "cache_read_usd",
                known.map_or(Some(input_usd), |info| Some(info.cache_read_usd)),
            )?,
            cache_write_usd: self.usd(
                "cache_write_usd",
                known.map_or(Some(input_usd), |info| Some(info.cache_write_usd)),
            )?,
        })
    }

    fn tokens(&self, field: &'static str, known: Option<u64>) -> Result<u64, PriceError> {
        let Some(value) = self.fields.get(field) else {
            return known.ok_or_else(|| self.missing(field));
        };
        let tokens = value.as_integer().and_then(|tokens| u64::try_from(tokens).ok());
        tokens.filter(|tokens| *tokens > 0).ok_or_else(|| self.bad(field, TOKENS))
    }

    fn usd(&self, field: &'static str, known: Option<f64>) -> Result<f64, PriceError> {
        let usd = match self.fields.get(field) {
            None => return known.ok_or_else(|| self.missing(field)),
            Some(Value::Float(usd)) => Some(*usd),
            Some(Value::Integer(usd)) => Some(*usd as f64),
            Some(_) => None,
        };
        let usd = usd.filter(|usd| usd.is_finite() && *usd >= 0.0);
        usd.ok_or_else(|| self.bad(field, "dollars for a million tokens, 0 or more"))
    }

    fn missing(&self, field: &'static str) -> PriceError {
        PriceError::Missing { model: self.model.to_owned(), field }
    }

    fn bad(&self, field: &'static str, expected: &'static str) -> PriceError {
        PriceError::BadValue { model: self.model.to_owned(), field, expected }
    }
}

const TOKENS: &str = "a whole number of tokens, above 0";
