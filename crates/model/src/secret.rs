//! Texts that must not be printed.

/// No service gives out keys that are shorter.
const KEY_BYTES_MIN: usize = 6;

/// A key or token. It shows itself as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text. Only what puts it on the wire should ask.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the secret hidden.
    ///
    /// ```
    /// use repertoire_model::Secret;
    ///
    /// let key = Secret::new("sk-12345");
    /// assert_eq!(key.scrub("the key sk-12345 is wrong"), "the key *** is wrong");
    /// ```
    ///
    /// A text that is shorter than any key could be is left alone: it would be found in the middle of words.
    pub fn scrub(&self, text: &str) -> String {
        match self.0.trim() {
            short if short.len() < KEY_BYTES_MIN => text.to_owned(),
            secret => text.replace(secret, "***"),
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
