//! Text in HTML pages, and the hashes by which a content security policy names a style or script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::invisible::shown_in_report;

/// Escapes text for HTML and XML, as content and as an attribute's value. Invisible characters are shown as `⟨U+202E⟩`.
///
/// ```
/// use repertoire_text::html::escape_visibly;
///
/// assert_eq!(escape_visibly("<b title='x'>\u{202e}"), "&lt;b title=&#39;x&#39;&gt;⟨U+202E⟩");
/// ```
pub fn escape_visibly(text: &str) -> String {
    let text = shown_in_report(text);
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The source expression that allows a style or script of this text in a content security policy.
pub fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
