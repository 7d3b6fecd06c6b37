//! A hash table keyed by words.
//!
//! Most words are short enough to be stored as integers. Comparing integers within the table avoids following
//! a pointer to a string, which is most of the cost of a lookup.

use foldhash::{HashMap, HashMapExt};

/// A map from words to values.
pub(crate) struct WordTable<T> {
    short: HashMap<u128, T>,
    long: HashMap<Box<str>, T>,
}

/// Encodes a word of at most 15 bytes as an integer: its bytes, and its length above them.
fn encode_short_word(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len()).filter(|room| room.len() < 16)?.copy_from_slice(word.as_bytes());
    bytes[15] = word.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

impl<T: Copy> WordTable<T> {
    pub(crate) fn new() -> Self {
        WordTable { short: HashMap::new(), long: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    #[inline]
    pub(crate) fn get(&self, word: &str) -> Option<T> {
        match encode_short_word(word) {
            Some(number) => self.short.get(&number).copied(),
            None => self.long.get(word).copied(),
        }
    }

    pub(crate) fn insert(&mut self, word: &str, value: T) {
        match encode_short_word(word) {
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
        let mut table = WordTable::new();
        for (at, word) in words.iter().enumerate() {
            assert_eq!(table.get(word), None);
            table.insert(word, at);
        }
        assert!(words.iter().enumerate().all(|(at, word)| table.get(word) == Some(at)));
        assert_eq!(table.len(), words.len());
    }
}
