//! Sorted strings in two flat arrays, which can be used as read from a file and are found by binary search.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A table of sorted, distinct strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringTable {
    /// The end of each string, after a leading zero, as little-endian 32-bit numbers.
    offsets: Cow<'static, [u8]>,
    text: Cow<'static, [u8]>,
}

impl Default for StringTable {
    fn default() -> Self {
        StringTable { offsets: Cow::Borrowed(&[0; 4]), text: Cow::Borrowed(&[]) }
    }
}

impl StringTable {
    /// Creates a table of strings that are distinct and sorted by their bytes.
    pub fn from_sorted<'a>(strings: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = Vec::new();
        let mut offsets = vec![0; 4];
        for string in strings {
            text.extend_from_slice(string.as_bytes());
            offsets.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        StringTable { offsets: offsets.into(), text: text.into() }
    }

    /// Reads a table; `None` if the bytes are too short.
    ///
    /// Neither the ends nor the order are checked, which would take longer than answering a task. A malformed
    /// table finds fewer strings, but nothing worse happens.
    pub(crate) fn read(bytes: &mut BytesReader) -> Option<Self> {
        let count = bytes.read_u32()? as usize;
        let offsets = bytes.take_bytes(count.checked_add(1)?.checked_mul(4)?)?;
        let length = u32_at(&offsets, count) as usize;
        let text = bytes.take_bytes(length)?;
        Some(StringTable { offsets, text })
    }

    /// Appends the serialised table to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.offsets);
        bytes.extend_from_slice(&self.text);
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() / 4 - 1
    }

    /// Returns true if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the table takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.offsets.len() + self.text.len()
    }

    fn get_bytes(&self, at: usize) -> &[u8] {
        let start = u32_at(&self.offsets, at) as usize;
        let end = u32_at(&self.offsets, at + 1) as usize;
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the string at a position; empty if it is out of bounds or not UTF-8.
    pub fn get(&self, at: usize) -> &str {
        std::str::from_utf8(self.get_bytes(at)).unwrap_or_default()
    }

    /// Iterates over all strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Returns the position of a string.
    pub fn find(&self, string: &str) -> Option<usize> {
        let at = self.lower_bound(string);
        (at < self.len() && self.get_bytes(at) == string.as_bytes()).then_some(at)
    }

    /// Returns the position of the first string that is not less than this one.
    pub fn lower_bound(&self, string: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get_bytes(middle).cmp(string.as_bytes()) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Returns the positions of all strings with a prefix.
    pub fn starting_with(&self, prefix: &str) -> std::ops::Range<usize> {
        let start = self.lower_bound(prefix);
        let length =
            (start..self.len()).take_while(|at| self.get_bytes(*at).starts_with(prefix.as_bytes()));
        start..start + length.count()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(4 * at..4 * at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_le_bytes)
}

/// Reads a file from front to back; reading past the end returns `None`.
pub(crate) struct BytesReader {
    bytes: Cow<'static, [u8]>,
    at: usize,
}

impl BytesReader {
    pub(crate) fn new(bytes: Cow<'static, [u8]>) -> Self {
        BytesReader { bytes, at: 0 }
    }

    /// Returns the next bytes. This does not copy if the bytes are embedded in the program.
    pub(crate) fn take_bytes(&mut self, length: usize) -> Option<Cow<'static, [u8]>> {
        let end = self.at.checked_add(length)?;
        let range = self.at..end;
        self.at = end;
        match &self.bytes {
            Cow::Borrowed(bytes) => bytes.get(range).map(Cow::Borrowed),
            Cow::Owned(bytes) => bytes.get(range).map(|part| Cow::Owned(part.to_vec())),
        }
    }

    /// Returns a view of the next bytes.
    pub(crate) fn next_bytes(&mut self, length: usize) -> Option<&[u8]> {
        let start = self.at;
        self.at = start.checked_add(length)?;
        self.bytes.get(start..self.at)
    }

    /// Returns the bytes that were not read yet.
    pub(crate) fn remaining_bytes(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn read_u32(&mut self) -> Option<u32> {
        Some(u32_at(self.next_bytes(4)?, 0))
    }

    pub(crate) fn read_u64(&mut self) -> Option<u64> {
        Some(u64::from(self.read_u32()?) | u64::from(self.read_u32()?) << 32)
    }

    /// Consumes the expected bytes; `None` if the next ones differ.
    pub(crate) fn expect_bytes(&mut self, expected: &[u8]) -> Option<()> {
        (self.next_bytes(expected.len())? == expected).then_some(())
    }

    /// Returns true if all bytes were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_where_they_stand() {
        let words = ["", "a", "ab", "b", "ø"];
        let table = StringTable::from_sorted(words);
        for (at, word) in words.iter().enumerate() {
            assert_eq!(table.find(word), Some(at));
            assert_eq!(table.get(at), *word);
        }
        assert_eq!(table.find("aa"), None);
        assert_eq!(table.find("z"), None);
        assert_eq!(table.starting_with("a"), 1..3);
    }

    #[test]
    fn a_table_comes_back_from_its_bytes_and_a_cut_one_does_not() {
        let table = StringTable::from_sorted(["one", "two"]);
        let mut bytes = Vec::new();
        table.write(&mut bytes);
        let read = |bytes: &[u8]| StringTable::read(&mut BytesReader::new(bytes.to_vec().into()));
        assert!(read(&bytes).unwrap().iter().eq(table.iter()));
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_none(), "cut at {end}");
        }
    }
}
