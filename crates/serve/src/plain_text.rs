//! Decides whether a file is sent as text in JSON.

/// Returns true if a text stays small as JSON. Control characters take six characters each there,
/// so a binary file that happens to be UTF-8 could grow to six times its size.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_costly =
        |byte: &u8| *byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t' | 0x08 | 0x0c);
    let costly = text.as_bytes().iter().filter(|byte| is_costly(byte)).count();
    !text.contains('\0') && costly <= text.len() / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_small_as_json_is_plain() {
        for plain in
            ["", "text\n\twith \"quotes\"", "\u{1b}[31mred\u{1b}[0m and a good deal of other text"]
        {
            assert!(is_plain(plain), "{plain:?}");
        }
        for binary in ["\0", "PK\u{3}\u{4}\u{14}", &"\u{1}".repeat(100)] {
            assert!(!is_plain(binary), "{binary:?}");
        }
    }
}
