//! Text that must not be printed.

use repertoire_text::secrets::EncodedSecret;

/// A key or token. Its `Debug` output is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiSecret(String);

impl ApiSecret {
    pub fn new(text: impl Into<String>) -> Self {
        ApiSecret(text.into())
    }

    /// Returns the text. Only for sending it to the service.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the secret in a text, also reversed, in Base64, in hexadecimal
    /// and escaped.
    ///
    /// ```
    /// use repertoire_model::ApiSecret;
    ///
    /// let key = ApiSecret::new("sk-12345");
    /// assert_eq!(key.scrub("the key sk-12345 is wrong"), "the key *** is wrong");
    /// ```
    ///
    /// Very short secrets are not replaced: they would match in the middle of words.
    pub fn scrub(&self, text: &str) -> String {
        EncodedSecret::new(&self.0).map_or_else(|| text.to_owned(), |known| known.hide(text, "***"))
    }
}

impl std::fmt::Debug for ApiSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
