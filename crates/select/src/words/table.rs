//! A table of words: what was worked out for a word once is found again.
//!
//! Most words are short, and a short word is a number. Comparing numbers that stand in the table spares a walk
//! to a string elsewhere in memory, which is most of what a lookup costs.

use foldhash::{HashMap, HashMapExt};

/// Something a word.
pub(crate) struct Table<T> {
    short: HashMap<u128, T>,
    long: HashMap<Box<str>, T>,
}

/// A word of at most 15 bytes as a number: its bytes, and its length above them.
fn number(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len()).filter(|room| room.len() < 16)?.copy_from_slice(word.as_bytes());
    bytes[15] = word.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

impl<T: Copy> Table<T> {
    pub(crate) fn new() -> Self {
        Table { short: HashMap::new(), long: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    #[inline]
    pub(crate) fn get(&self, word: &str) -> Option<T> {
        match number(word) {
            Some(number) => self.short.get(&number).copied(),
            None => self.long.get(word).copied(),
        }
    }

    pub(crate) fn insert(&mut self, word: &str, value: T) {
        match number(word) {
            Some(number) => self.short.insert(number, value),
            None => self.long.insert(word.into(), value),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_are_told_apart() {
        let words: Vec<String> = (0..40).map(|length| "\0".repeat(length)).collect();
        let mut table = Table::new();
        for (at, word) in words.iter().enumerate() {
            assert_eq!(table.get(word), None);
            table.insert(word, at);
        }
        assert!(words.iter().enumerate().all(|(at, word)| table.get(word) == Some(at)));
        assert_eq!(table.len(), words.len());
    }
}
