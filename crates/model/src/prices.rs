//! The limits and prices of models.
//!
//! A built-in table that the user can extend. A dated version of a model, such as
//! `anthropic/claude-haiku-4-5-20251001`, is looked up without its date. Nothing is assumed about
//! models that are not in the table.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toml::{Table, Value};

use crate::name::ModelName;
use crate::response::TokenUsage;

/// The limits and prices of a model. Prices are in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelInfo {
    /// The size of the context window.
    pub context_tokens: u64,
    /// The maximum number of tokens of an answer.
    pub output_tokens_max: u32,
    /// The price of input tokens.
    pub input_usd: f64,
    /// The price of output tokens.
    pub output_usd: f64,
    /// The price of tokens read from the cache.
    pub cache_read_usd: f64,
    /// The price of tokens written to the cache.
    pub cache_write_usd: f64,
}

/// An invalid model table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    #[error(transparent)]
    Name(#[from] crate::name::ModelNameError),
    #[error("`{model}` must be a table, as {{ context_tokens = 200000, input_usd = 1.0, … }}")]
    NotATable { model: String },
    #[error("`{model}` has a field `{field}` that is not known; the fields are {fields}", fields = FIELDS.join(", "))]
    UnknownField { model: String, field: String },
    #[error("`{model}` lacks `{field}`")]
    Missing { model: String, field: &'static str },
    #[error("`{field}` of `{model}` must be {expected}")]
    BadValue { model: String, field: &'static str, expected: &'static str },
}

const FIELDS: [&str; 9] = [
    "context_tokens",
    "output_tokens_max",
    "input_usd",
    "output_usd",
    "cache_read_usd",
    "cache_write_usd",
    "long_above_tokens",
    "long_input_factor",
    "long_output_factor",
];

/// The table of models. Copy-on-write: copies share the data until one is changed.
#[derive(Clone, Debug, Default)]
pub struct ModelPrices {
    models: Arc<BTreeMap<String, ModelPricing>>,
}

#[derive(Clone, Copy, Debug)]
struct ModelPricing {
    info: ModelInfo,
    long: Option<LongPromptSurcharge>,
}

/// A surcharge for long prompts.
#[derive(Clone, Copy, Debug)]
struct LongPromptSurcharge {
    above_tokens: u64,
    input_factor: f64,
    output_factor: f64,
}

impl ModelPrices {
    /// The built-in table.
    pub fn builtin() -> Self {
        static BUILTIN: OnceLock<ModelPrices> = OnceLock::new();
        BUILTIN.get_or_init(read_builtin).clone()
    }

    /// Adds or updates models. For a model that is already in the table, only changed fields are
    /// needed; for a new one, all except the cache prices, which default to the input price.
    ///
    /// # Errors
    ///
    /// Returns the invalid key and the problem. The table is unchanged then.
    pub fn extend(&mut self, table: &Table) -> Result<(), PriceError> {
        let mut models = self.models.as_ref().clone();
        for (model, value) in table {
            model.parse::<ModelName>()?;
            let row = ModelTableRow {
                model,
                fields: value.as_table().ok_or_else(|| not_a_table(model))?,
            };
            models.insert(model.clone(), row.parse_pricing(self.models.get(model))?);
        }
        self.models = Arc::new(models);
        Ok(())
    }

    /// The limits and prices of a model.
    pub fn get(&self, model: &ModelName) -> Option<&ModelInfo> {
        self.find_pricing(model).map(|known| &known.info)
    }

    /// The cost of one call, if the price is known. A surcharge for long prompts applies to single
    /// calls, so don't sum the usage of several calls before this.
    pub fn cost_usd(&self, model: &ModelName, usage: &TokenUsage) -> Option<f64> {
        let ModelPricing { info, long } = self.find_pricing(model)?;
        let prompt_tokens = usage.total().saturating_sub(usage.output_tokens);
        let long = long.filter(|long| prompt_tokens > long.above_tokens);
        let (input, output) =
            long.map_or((1.0, 1.0), |long| (long.input_factor, long.output_factor));
        let parts = [
            (usage.input_tokens, info.input_usd * input),
            (usage.output_tokens, info.output_usd * output),
            (usage.cache_read_tokens, info.cache_read_usd * input),
            (usage.cache_write_tokens, info.cache_write_usd * input),
        ];
        Some(parts.iter().map(|(tokens, usd)| *tokens as f64 * usd / 1e6).sum())
    }

    fn find_pricing(&self, model: &ModelName) -> Option<&ModelPricing> {
        let name = model.to_string();
        let names = (1..=name.len()).rev().filter_map(|end| name.split_at_checked(end));
        let mut known = names.filter(|(_, rest)| is_version_suffix(rest));
        known.find_map(|(key, _)| self.models.get(key))
    }
}

fn read_builtin() -> ModelPrices {
    let table = include_str!("../data/models.toml").parse().expect("a test reads the table");
    let mut prices = ModelPrices::default();
    prices.extend(&table).expect("a test reads the table");
    prices
}

/// Returns true if the rest of a name is only a version of the model. `gpt-5-mini` is not a version
/// of `gpt-5`.
fn is_version_suffix(rest: &str) -> bool {
    let Some(version) = rest.strip_prefix(['-', '@']) else {
        return rest.is_empty();
    };
    let digits = version.chars().filter(char::is_ascii_digit).count();
    version == "latest" || (digits >= 6 && version.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

fn not_a_table(model: &str) -> PriceError {
    PriceError::NotATable { model: model.to_owned() }
}

/// A row of a model table that is being parsed.
struct ModelTableRow<'a> {
    model: &'a str,
    fields: &'a Table,
}

impl ModelTableRow<'_> {
    fn parse_pricing(&self, before: Option<&ModelPricing>) -> Result<ModelPricing, PriceError> {
        if let Some(field) = self.fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            let (model, field) = (self.model.to_owned(), field.clone());
            return Err(PriceError::UnknownField { model, field });
        }
        let info = self.parse_info(before.map(|before| &before.info))?;
        let long = self.parse_surcharge(before.and_then(|before| before.long.as_ref()))?;
        Ok(ModelPricing { info, long })
    }

    fn parse_info(&self, before: Option<&ModelInfo>) -> Result<ModelInfo, PriceError> {
        let output_tokens_max = before.map(|info| u64::from(info.output_tokens_max));
        let output_tokens_max = self.parse_tokens("output_tokens_max", output_tokens_max)?;
        let input_usd = self.parse_number("input_usd", before.map(|info| info.input_usd))?;
        let cache_read_usd = before.map_or(input_usd, |info| info.cache_read_usd);
        let cache_write_usd = before.map_or(input_usd, |info| info.cache_write_usd);
        Ok(ModelInfo {
            context_tokens: self
                .parse_tokens("context_tokens", before.map(|info| info.context_tokens))?,
            output_tokens_max: u32::try_from(output_tokens_max)
                .map_err(|_| self.bad_value("output_tokens_max", TOKENS))?,
            input_usd,
            output_usd: self.parse_number("output_usd", before.map(|info| info.output_usd))?,
            cache_read_usd: self.parse_number("cache_read_usd", Some(cache_read_usd))?,
            cache_write_usd: self.parse_number("cache_write_usd", Some(cache_write_usd))?,
        })
    }

    /// Parses the surcharge: all three fields are needed, or none.
    fn parse_surcharge(
        &self,
        before: Option<&LongPromptSurcharge>,
    ) -> Result<Option<LongPromptSurcharge>, PriceError> {
        let given = self.fields.keys().any(|field| field.starts_with("long_"));
        if !given && before.is_none() {
            return Ok(None);
        }
        Ok(Some(LongPromptSurcharge {
            above_tokens: self
                .parse_tokens("long_above_tokens", before.map(|long| long.above_tokens))?,
            input_factor: self
                .parse_number("long_input_factor", before.map(|long| long.input_factor))?,
            output_factor: self
                .parse_number("long_output_factor", before.map(|long| long.output_factor))?,
        }))
    }

    fn parse_tokens(&self, field: &'static str, known: Option<u64>) -> Result<u64, PriceError> {
        let Some(value) = self.fields.get(field) else {
            return known.ok_or_else(|| self.missing_field(field));
        };
        let tokens = value.as_integer().and_then(|tokens| u64::try_from(tokens).ok());
        tokens.filter(|tokens| *tokens > 0).ok_or_else(|| self.bad_value(field, TOKENS))
    }

    fn parse_number(&self, field: &'static str, known: Option<f64>) -> Result<f64, PriceError> {
        let number = match self.fields.get(field) {
            None => return known.ok_or_else(|| self.missing_field(field)),
            Some(Value::Float(number)) => Some(*number),
            Some(Value::Integer(number)) => Some(*number as f64),
            Some(_) => None,
        };
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.bad_value(field, "a number, 0 or more"))
    }

    fn missing_field(&self, field: &'static str) -> PriceError {
        PriceError::Missing { model: self.model.to_owned(), field }
    }

    fn bad_value(&self, field: &'static str, expected: &'static str) -> PriceError {
        PriceError::BadValue { model: self.model.to_owned(), field, expected }
    }
}

const TOKENS: &str = "a whole number of tokens, above 0";

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ModelName {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(table: &str, expect: &str) {
        let error = ModelPrices::builtin().extend(&table.parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn every_model_of_the_table_is_found_and_has_sound_figures() {
        let prices = ModelPrices::builtin();
        assert!(prices.models.len() > 20);
        for (key, known) in prices.models.iter() {
            let info = prices.get(&name(key)).unwrap();
            assert_eq!(info, &known.info, "{key}");
            assert!(u64::from(info.output_tokens_max) < info.context_tokens, "{key}");
            assert!(info.cache_read_usd < info.input_usd, "{key}");
            assert!(info.input_usd < info.output_usd, "{key}");
            assert!(info.input_usd <= info.cache_write_usd, "{key}");
        }
    }

    #[test]
    fn a_date_is_a_version_and_a_word_is_another_model() {
        let prices = ModelPrices::builtin();
        let input_usd = |text| prices.get(&name(text)).map(|info| info.input_usd);
        assert_eq!(input_usd("anthropic/claude-haiku-4-5-20251001"), Some(1.0));
        assert_eq!(input_usd("anthropic/claude-haiku-4-5@20251001"), Some(1.0));
        assert_eq!(input_usd("anthropic/claude-sonnet-4-5-latest"), Some(3.0));
        assert_eq!(input_usd("openai/gpt-5-2025-08-07"), Some(1.25));
        assert_eq!(input_usd("openai/gpt-5-mini-2025-08-07"), Some(0.25));
        for unknown in
            ["openai/gpt-5-huge", "openai/gpt-51", "compat/gpt-5", "openai/g", "openai/é"]
        {
            assert_eq!(input_usd(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let prices = ModelPrices::builtin();
        let usage = TokenUsage {
            input_tokens: 1_000,
            output_tokens: 2_000,
            cache_read_tokens: 10_000,
            cache_write_tokens: 4_000,
        };
        let cost = prices.cost_usd(&name("anthropic/claude-haiku-4-5"), &usage).unwrap();
        assert!((cost - 0.017).abs() < 1e-12, "{cost}");
        assert_eq!(prices.cost_usd(&name("compat/qwen3:8b"), &usage), None);
    }

    #[test]
    fn long_prompts_cost_more_from_their_limit_on() {
        let prices = ModelPrices::builtin();
        let cost = |input_tokens| {
            let usage =
                TokenUsage { input_tokens, output_tokens: 1_000_000, ..TokenUsage::default() };
            prices.cost_usd(&name("anthropic/claude-haiku-5-5"), &usage).unwrap()
        };
        assert!((cost(100_000) - 0.51).abs() < 1e-9);
        assert!((cost(200_000) - 2.6).abs() < 1e-9);
    }

    #[test]
    fn a_user_adds_and_replaces() {
        let mut prices = ModelPrices::builtin();
        let table = r#"
            "compat/qwen3:8b" = { context_tokens = 40960, output_tokens_max = 8192, input_usd = 0, output_usd = 0 }
            "anthropic/claude-haiku-4-5" = { input_usd = 0.5 }
        "#;
        prices.extend(&table.parse().unwrap()).unwrap();
        assert_eq!(prices.cost_usd(&name("compat/qwen3:8b"), &TokenUsage::default()), Some(0.0));
        let haiku = prices.get(&name("anthropic/claude-haiku-4-5")).unwrap();
        assert_eq!((haiku.input_usd, haiku.output_usd), (0.5, 5.0));
        assert_eq!(ModelPrices::builtin().get(&name("compat/qwen3:8b")), None);
    }

    #[test]
    fn a_wrong_table_is_refused_with_its_place() {
        check(
            "qwen3 = {}",
            "`qwen3` is not the name of a model: write anthropic/NAME, openai/NAME or compat/NAME (any OpenAI-compatible server)",
        );
        check(
            "'compat/a' = 3",
            "`compat/a` must be a table, as { context_tokens = 200000, input_usd = 1.0, … }",
        );
        check("'compat/a' = { input_usd = 1 }", "`compat/a` lacks `output_tokens_max`");
        check(
            "'openai/gpt-5' = { input_usd = -1.0 }",
            "`input_usd` of `openai/gpt-5` must be a number, 0 or more",
        );
        check(
            "'openai/gpt-5' = { context_tokens = 0 }",
            "`context_tokens` of `openai/gpt-5` must be a whole number of tokens, above 0",
        );
        check(
            "'openai/gpt-5' = { long_input_factor = 2 }",
            "`openai/gpt-5` lacks `long_above_tokens`",
        );
        check(
            "'openai/gpt-5' = { price = 1 }",
            "`openai/gpt-5` has a field `price` that is not known; the fields are context_tokens, output_tokens_max, input_usd, output_usd, cache_read_usd, cache_write_usd, long_above_tokens, long_input_factor, long_output_factor",
        );
    }
}
