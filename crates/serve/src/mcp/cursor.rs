//! Where a list goes on. A cursor names the last thing that was listed, so that a list whose skills change meanwhile
//! neither repeats nor leaves out what stays.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use repertoire_skill::skill::Digest;
use rmcp::ErrorData;

use super::limits::CURSOR_BYTES_MAX;

/// Bytes of a digest that a cursor begins with, so that one that was made up is told from one that was given.
const SEAL_BYTES: usize = 6;

/// The cursor after `last`, in the list of this name.
pub(super) fn after(list: &str, last: &str) -> String {
    let mut bytes = seal(list, last).to_vec();
    bytes.extend_from_slice(last.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What a cursor of this list stands after.
///
/// # Errors
///
/// "Invalid params" for a cursor that this list has not given.
pub(super) fn read(list: &str, cursor: &str) -> Result<String, ErrorData> {
    let unknown = || {
        let message = "this cursor was not given by this list; begin without one";
        ErrorData::invalid_params(message, None)
    };
    if cursor.len() > CURSOR_BYTES_MAX {
        return Err(unknown());
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| unknown())?;
    let (given, last) = bytes.split_at_checked(SEAL_BYTES).ok_or_else(unknown)?;
    let last = std::str::from_utf8(last).map_err(|_| unknown())?;
    if given == seal(list, last) { Ok(last.to_owned()) } else { Err(unknown()) }
}

fn seal(list: &str, last: &str) -> [u8; SEAL_BYTES] {
    let digest = Digest::of(format!("{list}\n{last}").as_bytes());
    let mut seal = [0; SEAL_BYTES];
    seal.copy_from_slice(&digest.as_bytes()[..SEAL_BYTES]);
    seal
}

/// One page of what comes after a cursor in a list that is sorted by `key`, and the cursor of the next.
///
/// # Errors
///
/// "Invalid params" for a cursor that this list has not given.
pub(super) fn page<'a, T>(
    list: &str,
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    most: usize,
) -> Result<(&'a [T], Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = read(list, cursor)?;
            items.partition_point(|item| key(item) <= last.as_str())
        }
    };
    let end = items.len().min(start + most);
    let page = &items[start..end];
    let next = page.last().filter(|_| end < items.len()).map(|last| after(list, key(last)));
    Ok((page, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_its_own_list_only() {
        let cursor = after("skills", "pdf");
        assert_eq!(read("skills", &cursor).unwrap(), "pdf");
        assert!(read("resources", &cursor).is_err());
        for made_up in ["", "x", "cGRm", "0", "????", &"A".repeat(5000)] {
            assert!(read("skills", made_up).is_err(), "{made_up}");
        }
    }

    #[test]
    fn pages_cover_everything_once_also_when_the_last_one_goes() {
        let mut names: Vec<String> = (0..25).map(|number| format!("s{number:02}")).collect();
        let (first, next) = page("skills", &names, String::as_str, None, 10).unwrap();
        assert_eq!((first.len(), first[9].as_str()), (10, "s09"));
        let next = next.unwrap();
        names.retain(|name| name != "s09");
        let (second, next) = page("skills", &names, String::as_str, Some(&next), 10).unwrap();
        assert_eq!((second[0].as_str(), second.len()), ("s10", 10));
        let (third, next) = page("skills", &names, String::as_str, next.as_deref(), 10).unwrap();
        assert_eq!((third.len(), next), (5, None));
    }
}
