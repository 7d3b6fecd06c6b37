//! `skill://` URIs. They name a skill and one of its files, and nothing else: URIs with `..`,
//! encoded slashes, or any other form than ours are rejected.

use super::limits::{URI_BYTES_MAX, URI_SEGMENTS_MAX};

const SCHEME: &str = "skill://";

/// The last segment of the URI of a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// The URI of a file or folder of a skill.
pub(super) fn format_uri(path: &str, below: &str) -> String {
    let mut uri = format!("{SCHEME}{path}");
    for segment in below.split('/').filter(|segment| !segment.is_empty()) {
        uri.push('/');
        for byte in segment.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(byte));
                }
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    uri
}

/// Parses a URI into decoded segments; `None` if it is not valid. Ignores a trailing slash.
pub(super) fn parse_uri(uri: &str) -> Option<Vec<String>> {
    let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= URI_BYTES_MAX)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let segments: Option<Vec<String>> = rest.split('/').map(decode_segment).collect();
    segments.filter(|segments| segments.len() <= URI_SEGMENTS_MAX)
}

/// Decodes a segment, if it is a valid file name.
fn decode_segment(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(rest.next()?)? << 4 | hex_digit(rest.next()?)?,
            b'?' | b'#' | b'\\' => return None,
            byte => byte,
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    let is_name = !name.is_empty() && name != "." && name != "..";
    (is_name && !name.contains(['/', '\\', '\0'])).then_some(name)
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for below in ["SKILL.md", "references/a b.md", "ü/100%.md", "a#b?c.md"] {
            let uri = format_uri("acme.plugin/pdf", below);
            let segments = parse_uri(&uri).unwrap();
            assert_eq!(segments.join("/"), format!("acme.plugin/pdf/{below}"), "{uri}");
        }
        assert_eq!(format_uri("pdf", ""), "skill://pdf");
        assert_eq!(parse_uri("skill://pdf/scripts/").unwrap(), ["pdf", "scripts"]);
    }

    #[test]
    fn an_address_that_climbs_or_hides_leads_nowhere() {
        for uri in [
            "skill://x/../../etc/passwd",
            "skill://x/%2e%2e/%2E%2E/etc/passwd",
            "skill://x/..%2f..%2fetc/passwd",
            "skill://x/a%00b",
            "skill://x/a%5cb",
            "skill://x/a\\..\\b",
            "skill://x//SKILL.md",
            "skill://x/SKILL.md?y",
            "skill://x/SKILL.md#y",
            "skill://x/%zz",
            "skill://x/%f",
            "skill://x/%ff",
            "skill://",
            "file:///etc/passwd",
            "SKILL://x/SKILL.md",
            "",
        ] {
            assert_eq!(parse_uri(uri), None, "{uri}");
        }
        assert_eq!(parse_uri(&format!("skill://{}", "a/".repeat(5000))), None);
    }
}
