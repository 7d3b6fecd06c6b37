//! From text to words: what counts as a word, in any script, and how a word is brought to its stem.
//!
//! Words are cut where scripts and programmers cut them: at everything that is neither letter nor digit, and
//! at changes of case (`getUserName` is three words). Scripts that write without spaces become overlapping
//! pairs of characters. The background frequencies of the model were counted by the same rules.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

/// The longest word that is looked at: longer runs are data, not language.
const WORD_BYTES_MAX: usize = 64;

/// Calls `found` with every word of a text, in lower case and in order.
pub fn each_word(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    if text.is_ascii() {
        cut(text.chars(), &mut word, &mut found);
    } else {
        // Only what is not ASCII needs normal form, and most texts are mostly ASCII.
        cut(text.nfkc(), &mut word, &mut found);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// Written without spaces between words.
    Dense,
    /// `+` and `#` belong to a word that they follow: `c++`, `c#`.
    Sign,
    /// An apostrophe within a word.
    Apostrophe,
    Other,
}

fn class_of(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        '+' | '#' => Class::Sign,
        '\'' | '\u{2019}' => Class::Apostrophe,
        _ if c.is_ascii() => Class::Other,
        _ if is_dense(c) => Class::Dense,
        _ if c.is_uppercase() => Class::Upper,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_alphanumeric() || is_mark(c) => Class::Lower,
        _ => Class::Other,
    }
}

/// Whether a character belongs to a script without spaces between words.
pub(crate) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'     // Thai, Lao
        | '\u{1000}'..='\u{109f}'   // Burmese
        | '\u{1780}'..='\u{17ff}'   // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'   // kana
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// Vowel signs and accents that are characters of their own.
pub(crate) fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

fn cut(text: impl Iterator<Item = char>, word: &mut String, found: &mut impl FnMut(&str)) {
    let mut flush = |word: &mut String| {
        if !word.is_empty() && word.len() <= WORD_BYTES_MAX {
            found(word);
        }
        word.clear();
    };
    let mut before = Class::Other;
    let mut dense: Option<char> = None;
    let mut dense_is_paired = false;
    let mut text = text.peekable();
    while let Some(c) = text.next() {
        let class = class_of(c);
        if class == Class::Dense {
            flush(word);
            if let Some(first) = dense {
                word.push(first);
                word.push(c);
                flush(word);
            }
            dense_is_paired = dense.is_some();
            dense = Some(c);
            before = class;
            continue;
        }
        if let Some(alone) = dense.take()
            && !dense_is_paired
        {
            word.push(alone);
            flush(word);
        }
        match class {
            Class::Upper => {
                let next_is_lower = text.peek().is_some_and(|next| class_of(*next) == Class::Lower);
                // `parseURLNow`: a new word starts at P→U and at the N that begins `Now`.
                if matches!(before, Class::Lower | Class::Digit)
                    || (before == Class::Upper && next_is_lower)
                {
                    flush(word);
                }
                if before == Class::Sign {
                    flush(word);
                }
                word.extend(c.to_lowercase());
            }
            Class::Lower | Class::Digit => {
                if before == Class::Sign {
                    flush(word);
                }
                word.push(c);
            }
            Class::Sign if !word.is_empty() => word.push(c),
            // `don't` and `team's`: what follows the apostrophe is a word that nobody searches for.
            Class::Apostrophe if !word.is_empty() => flush(word),
            _ => flush(word),
        }
        before = class;
        // A run that is no word does not fill memory.
        if word.len() > WORD_BYTES_MAX + 4 {
            word.truncate(0);
            word.push_str(OVERLONG);
        }
    }
    if let Some(alone) = dense
        && !dense_is_paired
    {
        word.push(alone);
    }
    flush(word);
}

/// Longer than any word, so that what follows it is dropped with it.
const OVERLONG: &str = "_________________________________________________________________";

/// A language whose words we can bring to their stems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(u8);

struct Known {
    algorithm: Algorithm,
    stop: &'static str,
}

/// The languages; the first is what a text is in until its words say otherwise.
static LANGUAGES: &[Known] = &[
    Known { algorithm: Algorithm::English, stop: include_str!("../data/stop/english.txt") },
    Known { algorithm: Algorithm::Danish, stop: include_str!("../data/stop/danish.txt") },
    Known { algorithm: Algorithm::German, stop: include_str!("../data/stop/german.txt") },
    Known { algorithm: Algorithm::French, stop: include_str!("../data/stop/french.txt") },
    Known { algorithm: Algorithm::Spanish, stop: include_str!("../data/stop/spanish.txt") },
    Known { algorithm: Algorithm::Portuguese, stop: include_str!("../data/stop/portuguese.txt") },
    Known { algorithm: Algorithm::Italian, stop: include_str!("../data/stop/italian.txt") },
    Known { algorithm: Algorithm::Dutch, stop: include_str!("../data/stop/dutch.txt") },
    Known { algorithm: Algorithm::Swedish, stop: include_str!("../data/stop/swedish.txt") },
    Known { algorithm: Algorithm::Norwegian, stop: include_str!("../data/stop/norwegian.txt") },
];

/// The words of the genre itself: in the description of every skill, and in many a task.
static GENRE: &str = include_str!("../data/stop/genre.txt");

impl Language {
    /// English.
    pub const ENGLISH: Language = Language(0);

    /// Every language but English.
    pub fn others() -> impl Iterator<Item = Language> {
        (1..LANGUAGES.len() as u8).map(Language)
    }

    /// The language that a text is written in, by its most frequent little words.
    ///
    /// English unless another language has more of them, and at least two.
    pub fn of(text: &str) -> Language {
        const WORDS_READ: usize = 200;
        let mut votes = [0u32; 16];
        let mut read = 0;
        each_word(text, |word| {
            if read < WORDS_READ {
                for language in votes_of(word) {
                    votes[usize::from(language.0)] += 1;
                }
            }
            read += 1;
        });
        let english = votes[0];
        let (best, most) =
            votes.iter().enumerate().skip(1).fold((0, 0), |best, (at, votes)| {
                if *votes > best.1 { (at, *votes) } else { best }
            });
        if most >= 2 && most > english { Language(best as u8) } else { Language::ENGLISH }
    }

    /// Whether a word carries no meaning of its own in this language, or none among skills.
    pub fn is_stop_word(self, word: &str) -> bool {
        stop_words().get(word).is_some_and(|languages| {
            languages.contains(&self) || languages.contains(&Language::ENGLISH)
        })
    }

    /// The stem of a word in lower case.
    pub fn stem(self, word: &str) -> String {
        let known = &LANGUAGES[usize::from(self.0)];
        Stemmer::new(known.algorithm).stem(word).into_owned()
    }
}

fn stop_words() -> &'static HashMap<&'static str, Vec<Language>> {
    static WORDS: OnceLock<HashMap<&'static str, Vec<Language>>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words: HashMap<&str, Vec<Language>> = HashMap::new();
        for (at, known) in LANGUAGES.iter().enumerate() {
            for word in known.stop.split_whitespace() {
                words.entry(word).or_default().push(Language(at as u8));
            }
        }
        for word in GENRE.split_whitespace() {
            words.entry(word).or_default().push(Language::ENGLISH);
        }
        words
    })
}

fn votes_of(word: &str) -> &'static [Language] {
    static GENRE_WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let genre = GENRE_WORDS.get_or_init(|| GENRE.split_whitespace().collect());
    match stop_words().get(word) {
        Some(languages) if !genre.contains(word) => languages,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        each_word(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_cut_at_case_hyphen_and_underscore() {
        assert_eq!(words("getUserName"), ["get", "user", "name"]);
        assert_eq!(
            words("parseURLNow danish-tender_guidelines"),
            ["parse", "url", "now", "danish", "tender", "guidelines"]
        );
        assert_eq!(words("oauth2Login v1.2"), ["oauth2", "login", "v1", "2"]);
        assert_eq!(words("C++ and c# in it's"), ["c++", "and", "c#", "in", "it", "s"]);
    }

    #[test]
    fn scripts_without_spaces_become_pairs_of_characters() {
        assert_eq!(words("日本語"), ["日本", "本語"]);
        assert_eq!(words("猫 and 翻訳API"), ["猫", "and", "翻訳", "api"]);
        assert_eq!(words("Ｐｄｆ文書"), ["pdf", "文書"]);
    }

    #[test]
    fn letters_of_every_script_are_letters() {
        assert_eq!(words("Udbuddets ÆØÅ-krav"), ["udbuddets", "æøå", "krav"]);
        assert_eq!(words("Привет, мир"), ["привет", "мир"]);
        assert_eq!(words("हिन्दी"), ["हिन्दी"]);
    }

    #[test]
    fn a_run_without_end_is_no_word() {
        assert_eq!(words(&format!("a {} b", "x".repeat(100_000))), ["a", "b"]);
    }

    #[test]
    fn a_language_is_known_by_its_little_words() {
        assert_eq!(Language::of("Analyse the tender and its annexes"), Language::ENGLISH);
        let danish = Language::of("Gennemgå udbudsmaterialet og find de krav, der skal opfyldes");
        assert_eq!(danish.stem("udbuddets"), "udbud");
        assert_eq!(Language::of("zip"), Language::ENGLISH);
    }
}
