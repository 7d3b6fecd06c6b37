//! Computes `primaryLocationLineHash`, by which code scanning recognises a line that has moved.
//!
//! GitHub computes the hash on upload if it is absent, and warns if it differs from its own, so this must match
//! exactly: the 100 UTF-16 units from the start of the line, without spaces and tabs, as digits of a number in base 37,
//! followed by the ordinal among lines with the same hash.

/// The number of UTF-16 units that are hashed.
const UNITS: usize = 100;
/// Marks the end of the file.
const END: u16 = u16::MAX;

/// The hash of a line, counted from 1. Returns `None` if the file has no such line.
pub(super) fn line_hash(text: &str, line: u32) -> Option<String> {
    let (units, starts) = units_and_starts(text);
    let start = *starts.get(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let hash = hash_at(&units, start);
    let before = starts.iter().take_while(|other| **other <= start);
    let nth = before.filter(|other| hash_at(&units, **other) == hash).count();
    Some(format!("{hash:x}:{nth}"))
}

/// The UTF-16 units that are hashed, and the index of each line's first unit.
fn units_and_starts(text: &str) -> (Vec<u16>, Vec<usize>) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut units, mut starts) = (Vec::new(), Vec::new());
    for line in text.split('\n') {
        starts.push(units.len());
        units.extend(line.encode_utf16().filter(|unit| *unit != 0x20 && *unit != 0x09));
        units.push(0x0a);
    }
    // The last line has no line break.
    units.pop();
    units.push(END);
    (units, starts)
}

fn hash_at(units: &[u16], start: usize) -> u64 {
    let after = units[start..].iter().copied().chain(std::iter::repeat(0));
    after.take(UNITS).fold(0, |hash: u64, unit| hash.wrapping_mul(37).wrapping_add(u64::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_github_computes() {
        assert_eq!(line_hash("", 1).as_deref(), Some("c129715d7a2bc9a3:1"));
        let four = " a\nb\n  \t\tc\n d";
        let hashes: Vec<String> = (1..=5).filter_map(|line| line_hash(four, line)).collect();
        let expect =
            ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"];
        assert_eq!(hashes, expect);
    }

    #[test]
    fn the_same_lines_are_counted() {
        let text = "Lorem ipsum dolor sit amet.\n".repeat(10);
        let first = line_hash(&text, 1);
        assert_eq!(first.as_deref(), Some("a7f2ff13bc495cf2:1"));
        assert_eq!(line_hash(&text, 3).as_deref(), Some("a7f2ff13bc495cf2:3"));
        assert_eq!(line_hash(&text.replace('\n', "\r\n"), 1), first);
        assert_eq!(line_hash(&text, 0), None);
    }
}
