//! Finds a known secret in its encoded forms: plain, reversed, percent-encoded, escaped, hexadecimal or Base64.

use memchr::memmem::Finder;

/// Shorter secrets are not searched for: they would match in the middle of ordinary words.
const SECRET_BYTES_MIN: usize = 6;
/// The minimum length of an encoded form that is searched for.
const FORM_BYTES_MIN: usize = 8;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret with its encoded forms, to be found in text.
#[derive(Clone)]
pub struct EncodedSecret {
    /// Forms that are compared exactly, the longest first.
    exact: Vec<String>,
    /// Forms that are compared case-insensitively: hexadecimal and percent-encoded.
    in_lower_case: Vec<String>,
}

impl EncodedSecret {
    /// Prepares the forms of a secret. Returns `None` if it is too short to be told from ordinary text.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        if secret.len() < SECRET_BYTES_MIN {
            return None;
        }
        let mut exact = vec![secret.to_owned(), secret.chars().rev().collect()];
        exact.push(json_escaped(secret));
        for alphabet in [STANDARD, URL_SAFE] {
            exact.extend((0..3).flat_map(|offset| base64_at(secret.as_bytes(), offset, alphabet)));
        }
        let separated =
            [("", ""), ("", ":"), ("", " "), ("\\x", "\\x"), ("0x", ", 0x"), ("%", "%")];
        let mut in_lower_case: Vec<String> = separated
            .iter()
            .map(|(first, separator)| format!("{first}{}", hex_joined(secret, separator)))
            .collect();
        in_lower_case.push(percent_encoded(secret));
        for forms in [&mut exact, &mut in_lower_case] {
            forms.retain(|form| form.len() >= FORM_BYTES_MIN || form == secret);
            forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            forms.dedup();
        }
        Some(EncodedSecret { exact, in_lower_case })
    }

    /// Replaces every form of the secret with a mark.
    ///
    /// ```
    /// use repertoire_text::secrets::EncodedSecret;
    ///
    /// let token = EncodedSecret::new("ghs_16C7e42F292c6912E7").unwrap();
    /// assert_eq!(token.hide("x Z2hzXzE2QzdlNDJGMjkyYzY5MTJFNw== y", "***"), "x *** y");
    /// ```
    pub fn hide(&self, text: &str, mark: &str) -> String {
        let mut out = text.to_owned();
        for form in &self.exact {
            out = replace_form(&out, &out, form, mark);
        }
        for form in &self.in_lower_case {
            let lower = out.to_ascii_lowercase();
            out = replace_form(&out, &lower, form, mark);
        }
        out
    }

    /// Returns true if a text contains any form of the secret.
    pub fn is_in(&self, text: &str) -> bool {
        let lower = || text.to_ascii_lowercase();
        self.exact.iter().any(|form| text.contains(form.as_str()))
            || self.in_lower_case.iter().any(|form| lower().contains(form.as_str()))
    }
}

impl std::fmt::Debug for EncodedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

fn hex_joined(secret: &str, separator: &str) -> String {
    let bytes: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(separator)
}

/// Replaces `form` in `text` at the positions where it occurs in `searched`, which has the same length.
fn replace_form(text: &str, searched: &str, form: &str, mark: &str) -> String {
    let finder = Finder::new(form);
    let mut places = finder.find_iter(searched.as_bytes()).peekable();
    if places.peek().is_none() {
        return text.to_owned();
    }
    let (mut out, mut last) = (String::with_capacity(text.len()), 0);
    for at in places {
        // Empty if the form begins with characters that were taken for the padding of the previous one.
        out.push_str(text.get(last..at).unwrap_or_default());
        out.push_str(mark);
        last = at + form.len();
        // Also remove the padding of Base64.
        last += text[last..].bytes().take(2).take_while(|byte| *byte == b'=').count();
    }
    out.push_str(&text[last..]);
    out
}

/// The Base64 characters that depend only on the secret, if `offset` bytes of other text precede it: in the middle of
/// other text, and at its end.
fn base64_at(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> [String; 2] {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(secret.iter().copied()).collect();
    let digit = |at: usize| {
        let bit = at * 6;
        let pair =
            u16::from_be_bytes([padded[bit / 8], padded.get(bit / 8 + 1).copied().unwrap_or(0)]);
        char::from(alphabet[usize::from(pair >> (10 - bit % 8)) & 63])
    };
    let bits = padded.len() * 8;
    let first = (offset * 8).div_ceil(6);
    [bits / 6, bits.div_ceil(6)].map(|last| (first..last).map(digit).collect())
}

fn percent_encoded(secret: &str) -> String {
    let mut out = String::new();
    for byte in secret.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte.to_ascii_lowercase()));
            }
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn json_escaped(secret: &str) -> String {
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghs_16C7e42F292c6912E7/x+y";

    fn base64(text: &str, alphabet: &[u8; 64]) -> String {
        let mut out = String::new();
        for chunk in text.as_bytes().chunks(3) {
            let bytes = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
            let whole = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
            for at in 0..4 {
                match at <= chunk.len() {
                    true => out.push(char::from(alphabet[(whole >> (18 - at * 6)) as usize & 63])),
                    false => out.push('='),
                }
            }
        }
        out
    }

    #[track_caller]
    fn check_hidden(text: &str) {
        let hidden = EncodedSecret::new(TOKEN).unwrap().hide(text, "***");
        assert!(hidden.contains("***"), "{text} became {hidden}");
        for part in TOKEN.as_bytes().windows(12) {
            assert!(!hidden.contains(std::str::from_utf8(part).unwrap()), "{hidden}");
        }
    }

    #[test]
    fn every_encoded_form_is_hidden() {
        check_hidden(TOKEN);
        check_hidden(&format!("a {TOKEN}, b"));
        check_hidden(&TOKEN.chars().rev().collect::<String>());
        for before in ["", "x", "xy", "xyz", "token=", "user:"] {
            for after in ["", "\n", "ab", "abc"] {
                for alphabet in [STANDARD, URL_SAFE] {
                    let text = base64(&format!("{before}{TOKEN}{after}"), alphabet);
                    check_hidden(&text);
                    check_hidden(text.trim_end_matches('='));
                }
            }
        }
        let hex: String = TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect();
        check_hidden(&hex);
        check_hidden(&hex.to_uppercase());
        let spaced: Vec<String> = TOKEN.bytes().map(|byte| format!("{byte:02X}")).collect();
        for separator in [" ", ":", "%", "\\x"] {
            check_hidden(&format!("{separator}{}", spaced.join(separator)));
        }
        check_hidden(&percent_encoded(TOKEN));
        check_hidden(&percent_encoded(TOKEN).to_uppercase());
    }

    #[test]
    fn short_secrets_are_not_searched_for() {
        assert!(EncodedSecret::new("abc").is_none() && EncodedSecret::new(" 12345 ").is_none());
        let short = EncodedSecret::new("hunter2").unwrap();
        assert_eq!(short.hide("hunter2 2retnuh", "***"), "*** 2retnuh");
        assert_eq!(short.hide("nothing here", "***"), "nothing here");
    }

    #[test]
    fn padding_goes_with_the_secret_and_text_around_it_stays() {
        let secret = EncodedSecret::new("0123456789").unwrap();
        assert_eq!(secret.hide("a MDEyMzQ1Njc4OQ== b", "***"), "a *** b");
        assert!(secret.is_in("x9876543210y") && !secret.is_in("012345"));
    }
    #[test]
    fn a_secret_that_begins_like_padding_is_hidden_twice_in_a_row() {
        let secret = EncodedSecret::new("=abcdefg").unwrap();
        assert_eq!(secret.hide("=abcdefg=abcdefg.", "***"), "******.");
        let secret = EncodedSecret::new("======").unwrap();
        assert_eq!(secret.hide(&"=".repeat(19), "***"), "*********");
    }

    /// A secret in every encoding that is searched for.
    fn encodings(secret: &str) -> Vec<String> {
        let hex = |separator: &str| {
            let bytes: Vec<String> = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
            bytes.join(separator)
        };
        let mut texts = vec![secret.to_owned(), secret.chars().rev().collect()];
        texts.extend([json_escaped(secret), percent_encoded(secret)]);
        texts.extend([base64(secret, STANDARD), base64(secret, URL_SAFE)]);
        texts.extend(["", ":", " "].map(hex));
        texts
    }

    proptest::proptest! {
        #[test]
        fn any_secret_is_hidden_in_any_text(
            secret in "\\PC{6,20}|[=%\\\\\"/+ a\u{e9}\u{1}]{6,16}|[^*]{6,12}",
            between in "[= a\n%\\\\]{0,4}",
            order in proptest::collection::vec((0_usize..9, 1_usize..4), 1..8),
        ) {
            let secret = secret.trim().replace('*', "x");
            let Some(encoded) = EncodedSecret::new(&secret) else { return Ok(()) };
            let forms = encodings(&secret);
            let mut text = between.clone();
            for (form, times) in order {
                text.push_str(&forms[form].repeat(times));
                text.push_str(&between);
            }
            let hidden = encoded.hide(&text, "***");
            proptest::prop_assert!(!hidden.contains(&secret), "{text:?} became {hidden:?}");
            proptest::prop_assert!(!encoded.is_in(&hidden), "{text:?} became {hidden:?}");
        }
    }
}
