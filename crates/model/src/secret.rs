//! Texts that must not be printed.

use repertoire_text::secrets::EncodedSecret;

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

    /// The text with every occurrence of the secret hidden, also reversed, in Base64, in hexadecimal and escaped.
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
        EncodedSecret::new(&self.0).map_or_else(|| text.to_owned(), |known| known.hide(text, "***"))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
