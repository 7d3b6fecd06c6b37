//! Secrets in a command's output: they are redacted, and their presence is reported as an error.

use std::borrow::Cow;

use repertoire_text::secrets;

use super::super::error::{ErrorCategory, ErrorSeverity, ParsedError, ReportingTool};

/// Redacts tokens and passwords in a text.
pub fn redact_secrets(text: &str) -> Cow<'_, str> {
    secrets::redact_tokens(text, secrets::MARK)
}

/// An error with the line of the first secret in the output, if there is one.
pub(super) fn secret_error(text: &str) -> Option<ParsedError> {
    if !secrets::has_token(text) {
        return None;
    }
    let line = text.lines().position(secrets::has_token).map_or(1, |at| at + 1);
    let message =
        format!("the output shows a secret, first in its line {line}; it has to be replaced");
    let error = ParsedError::new(ReportingTool::Generic, ErrorCategory::Environment, message);
    Some(ParsedError { severity: ErrorSeverity::Critical, ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_not_repeated() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for (text, expected) in [
            (format!("token {token}."), "token [redacted].".to_owned()),
            (
                "fetch https://me:hunter22@example.com/x".to_owned(),
                "fetch https://me:[redacted]@example.com/x".to_owned(),
            ),
            ("sk-ant-api03-abcdefghijklmnop".to_owned(), "[redacted]".to_owned()),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----"
                    .to_owned(),
                "[redacted]".to_owned(),
            ),
            ("task-force and sk-short".to_owned(), "task-force and sk-short".to_owned()),
            ("http://localhost:3000/a@b".to_owned(), "http://localhost:3000/a@b".to_owned()),
        ] {
            assert_eq!(redact_secrets(&text), expected);
        }
    }
}
