//! Pagination cursors. A cursor names the last item of a page, so that a list that changes in the
//! meantime neither repeats nor skips the remaining items.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use repertoire_skill::skill::ContentDigest;
use rmcp::ErrorData;

use super::limits::CURSOR_BYTES_MAX;

/// The number of digest bytes at the start of a cursor, which detect invalid cursors.
const SEAL_BYTES: usize = 6;

/// The cursor after the item `last` of a list.
pub(super) fn cursor_after(list: &str, last: &str) -> String {
    let mut bytes = cursor_digest(list, last).to_vec();
    bytes.extend_from_slice(last.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The item that a cursor of this list points to.
///
/// # Errors
///
/// Returns "Invalid params" for a cursor that does not belong to this list.
pub(super) fn decode_cursor(list: &str, cursor: &str) -> Result<String, ErrorData> {
    if cursor.len() > CURSOR_BYTES_MAX {
        return Err(unknown_cursor());
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| unknown_cursor())?;
    let (given, last) = bytes.split_at_checked(SEAL_BYTES).ok_or_else(unknown_cursor)?;
    let last = std::str::from_utf8(last).map_err(|_| unknown_cursor())?;
    if given == cursor_digest(list, last) { Ok(last.to_owned()) } else { Err(unknown_cursor()) }
}

fn unknown_cursor() -> ErrorData {
    let message = "this cursor was not given by this list; begin without one";
    ErrorData::invalid_params(message, None)
}

fn cursor_digest(list: &str, last: &str) -> [u8; SEAL_BYTES] {
    let digest = ContentDigest::hash_bytes(format!("{list}\n{last}").as_bytes());
    let mut seal = [0; SEAL_BYTES];
    seal.copy_from_slice(&digest.as_bytes()[..SEAL_BYTES]);
    seal
}

/// Returns the page after a cursor of a list that is sorted by `key`, and the cursor of the next
/// page.
///
/// # Errors
///
/// Returns "Invalid params" for a cursor that does not belong to this list.
pub(super) fn page_after<'a, T>(
    list: &str,
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    most: usize,
) -> Result<(&'a [T], Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = decode_cursor(list, cursor)?;
            items.partition_point(|item| key(item) <= last.as_str())
        }
    };
    let end = items.len().min(start + most);
    let page = &items[start..end];
    let next = page.last().filter(|_| end < items.len()).map(|last| cursor_after(list, key(last)));
    Ok((page, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_its_own_list_only() {
        let cursor = cursor_after("skills", "pdf");
        assert_eq!(decode_cursor("skills", &cursor).unwrap(), "pdf");
        assert!(decode_cursor("resources", &cursor).is_err());
        for made_up in ["", "x", "cGRm", "0", "????", &"A".repeat(5000)] {
            assert!(decode_cursor("skills", made_up).is_err(), "{made_up}");
        }
    }

    #[test]
    fn pages_cover_everything_once_also_when_the_last_one_goes() {
        let mut names: Vec<String> = (0..25).map(|number| format!("s{number:02}")).collect();
        let (first, next) = page_after("skills", &names, String::as_str, None, 10).unwrap();
        assert_eq!((first.len(), first[9].as_str()), (10, "s09"));
        let next = next.unwrap();
        names.retain(|name| name != "s09");
        let (second, next) = page_after("skills", &names, String::as_str, Some(&next), 10).unwrap();
        assert_eq!((second[0].as_str(), second.len()), ("s10", 10));
        let (third, next) =
            page_after("skills", &names, String::as_str, next.as_deref(), 10).unwrap();
        assert_eq!((third.len(), next), (5, None));
    }
}
