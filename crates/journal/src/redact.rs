//! Redacts secrets in values before they are stored. The patterns are in
//! [`repertoire_text::secrets`].

use std::borrow::Cow;

use repertoire_text::secrets::{MARK, has_secret, redact};
use serde_json::Value;

/// Redacts secrets in all strings of a value, and the values of keys that name a secret.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if has_secret(&format!("{key}=\"{text}\"")) => {
                        *text = MARK.to_owned();
                    }
                    value => redact_value(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lose_their_secrets_and_keep_their_shape() {
        let mut value = serde_json::json!({ "a": ["x ghp_abcdefghijklmnop1234"], "client_secret": "abcd", "n": 1 });
        redact_value(&mut value);
        let clean = serde_json::json!({ "a": ["x [redacted]"], "client_secret": MARK, "n": 1 });
        assert_eq!(value, clean);
    }
}
