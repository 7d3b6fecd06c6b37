//! Contexts in which invisible characters are legitimate: emoji, ideographs and the scripts that need joiners or marks.
//!
//! Each character is judged by its neighbours, which must not be invisible themselves: a run of invisible characters is
//! never legitimate, because runs can carry data.

use super::table::{InvisibleKind, TABLE};

/// Emoji flags of England, Scotland and Wales: tags after a black flag. Fonts draw no others.
const FLAG_TAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];
const BLACK_FLAG: char = '\u{1f3f4}';
/// Code points that are legitimate in some contexts, for programs that cannot judge the context.
const SOMETIMES_PROPER: &[(u32, u32)] = &[
    (0x09, 0x0a),
    (0x0d, 0x0d),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x180b, 0x180f),
    (0x200c, 0x200f),
    (0x2800, 0x2800),
    (0xfe0e, 0xfe0f),
    (0x13430, 0x1343f),
];
/// The maximum distance between a direction mark and a letter of a right-to-left script.
const MARK_DISTANCE_CHARS_MAX: usize = 8;

/// The ranges of the table without the code points that are legitimate in some contexts.
pub(super) fn ranges_never_proper() -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for (first, last, _) in TABLE {
        let mut first = *first;
        for (start, end) in SOMETIMES_PROPER {
            if first > *end || start > last {
                continue;
            }
            if first < *start {
                out.push((first, start - 1));
            }
            first = end + 1;
        }
        if first <= *last {
            out.push((first, *last));
        }
    }
    out
}

/// The last examined run of blank Braille patterns, cached so that a long run is read only once.
#[derive(Debug, Default)]
pub(super) struct BrailleRun {
    end: usize,
    has_dots_beside: bool,
}

/// The end of an invisible character (or a sequence of them) that is legitimate at `start`; `None` if it is not. For
/// one text, `braille` must be the same in all calls, and `start` must increase from call to call.
pub(super) fn end_of_proper_use(
    text: &str,
    start: usize,
    c: char,
    braille: &mut BrailleRun,
) -> Option<usize> {
    let (before, end) = (&text[..start], start + c.len_utf8());
    let after = &text[end..];
    let previous = before.chars().next_back();
    let next = after.chars().next();
    let is_proper = match c {
        '\n' | '\t' => true,
        '\r' => next == Some('\n'),
        '\u{feff}' => start == 0,
        '\u{e0020}'..='\u{e007f}' => {
            let flag = FLAG_TAGS.iter().find(|tags| text[start..].starts_with(**tags));
            return flag.filter(|_| previous == Some(BLACK_FLAG)).map(|tags| start + tags.len());
        }
        '\u{200b}' => is_visible_in(previous, UNSPACED) && is_visible_in(next, UNSPACED),
        '\u{200c}' => is_visible_in(previous, JOINING),
        '\u{200d}' => joins_emoji(before, next) || is_visible_in(previous, JOINING),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => is_near_right_to_left(before, after),
        '\u{34f}' => is_visible_in(previous, COMBINING),
        '\u{115f}' | '\u{1160}' => {
            is_visible_in(previous, HANGUL_JAMO) || is_visible_in(next, HANGUL_JAMO)
        }
        '\u{180b}'..='\u{180f}' => is_visible_in(previous, MONGOLIAN),
        '\u{2800}' => braille.is_in_place(text, start),
        '\u{13430}'..='\u{1343f}' => is_visible_in(previous, EGYPTIAN),
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            previous.is_some_and(|base| takes_selector(base, c, after))
        }
        _ => false,
    };
    is_proper.then_some(end)
}

/// Returns true for a joiner between two emoji. The first may have a selector or a skin tone.
fn joins_emoji(before: &str, next: Option<char>) -> bool {
    let base = before.strip_suffix('\u{fe0f}').unwrap_or(before).chars().next_back();
    is_visible_in(base, EMOJI) && is_visible_in(next, EMOJI)
}

/// Returns true if a base takes a variation selector: emoji, keycaps, ideographs and a few registered letters and
/// signs.
fn takes_selector(base: char, selector: char, after: &str) -> bool {
    let base_in = |ranges| is_visible_in(Some(base), ranges);
    match selector {
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_key = base.is_ascii_digit() || matches!(base, '#' | '*');
            base_in(EMOJI) || (is_key && after.starts_with('\u{20e3}'))
        }
        '\u{fe00}' => base == '0' || base_in(REGISTERED) || base_in(IDEOGRAPHS),
        '\u{fe01}' | '\u{fe02}' => base_in(IDEOGRAPHS),
        // No registered collection uses higher ones.
        '\u{e0100}'..='\u{e011f}' => base_in(IDEOGRAPHS),
        _ => false,
    }
}

/// Returns true if a direction mark stands alone near a letter of a right-to-left script, on the same line.
fn is_near_right_to_left(before: &str, after: &str) -> bool {
    if before.chars().next_back().is_some_and(is_direction_mark) {
        return false;
    }
    has_right_to_left_near(before.chars().rev()) || has_right_to_left_near(after.chars())
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

fn has_right_to_left_near(chars: impl Iterator<Item = char>) -> bool {
    let visible = chars.take_while(|c| InvisibleKind::of_char(*c).is_none());
    visible.take(MARK_DISTANCE_CHARS_MAX).any(|c| is_visible_in(Some(c), RIGHT_TO_LEFT))
}

impl BrailleRun {
    /// Returns true if a blank Braille pattern stands among patterns with dots, as in Braille art.
    fn is_in_place(&mut self, text: &str, start: usize) -> bool {
        if start >= self.end {
            let after = text[start..].trim_start_matches('\u{2800}');
            self.end = text.len() - after.len();
            self.has_dots_beside =
                has_dots(text[..start].chars().next_back()) || has_dots(after.chars().next());
        }
        self.has_dots_beside
    }
}

fn has_dots(c: Option<char>) -> bool {
    matches!(c, Some('\u{2801}'..='\u{28ff}'))
}

fn is_visible_in(c: Option<char>, ranges: &[(char, char)]) -> bool {
    c.is_some_and(|c| {
        let in_range = ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
        in_range && InvisibleKind::of_char(c).is_none()
    })
}

const EMOJI: &[(char, char)] = &[
    ('\u{a9}', '\u{a9}'),
    ('\u{ae}', '\u{ae}'),
    ('\u{203c}', '\u{203c}'),
    ('\u{2049}', '\u{2049}'),
    ('\u{2122}', '\u{2122}'),
    ('\u{2139}', '\u{2139}'),
    ('\u{2190}', '\u{21ff}'),
    ('\u{2300}', '\u{23ff}'),
    ('\u{24c2}', '\u{24c2}'),
    ('\u{25a0}', '\u{27bf}'),
    ('\u{2900}', '\u{297f}'),
    ('\u{2b00}', '\u{2bff}'),
    ('\u{3030}', '\u{3030}'),
    ('\u{303d}', '\u{303d}'),
    ('\u{3297}', '\u{3299}'),
    ('\u{1f000}', '\u{1faff}'),
];

const IDEOGRAPHS: &[(char, char)] = &[
    ('\u{3001}', '\u{3007}'),
    ('\u{3400}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff01}', '\u{ff1f}'),
    ('\u{20000}', '\u{3ffff}'),
];

/// Mathematical signs, and Myanmar and Phags-pa letters, with a registered variation.
const REGISTERED: &[(char, char)] = &[
    ('\u{1000}', '\u{109f}'),
    ('\u{2200}', '\u{22ff}'),
    ('\u{2a00}', '\u{2aff}'),
    ('\u{a840}', '\u{a877}'),
    ('\u{aa60}', '\u{aa7f}'),
];

/// Scripts whose letters join or form clusters.
const JOINING: &[(char, char)] = &[
    ('\u{600}', '\u{dff}'),
    ('\u{f00}', '\u{109f}'),
    ('\u{1780}', '\u{18af}'),
    ('\u{1a20}', '\u{1cff}'),
    ('\u{a840}', '\u{a8df}'),
    ('\u{a980}', '\u{abff}'),
    ('\u{fb50}', '\u{fdff}'),
    ('\u{fe70}', '\u{fefc}'),
    ('\u{10a00}', '\u{10a5f}'),
    ('\u{10ac0}', '\u{10aff}'),
    ('\u{10d00}', '\u{10d3f}'),
    ('\u{11000}', '\u{11fff}'),
    ('\u{1e900}', '\u{1e95f}'),
];

/// Scripts without spaces, in which a zero-width space marks the end of a word.
const UNSPACED: &[(char, char)] =
    &[('\u{e00}', '\u{eff}'), ('\u{1000}', '\u{109f}'), ('\u{1780}', '\u{17ff}')];

const RIGHT_TO_LEFT: &[(char, char)] = &[
    ('\u{590}', '\u{8ff}'),
    ('\u{fb1d}', '\u{fdff}'),
    ('\u{fe70}', '\u{fefc}'),
    ('\u{10800}', '\u{10fff}'),
    ('\u{1e800}', '\u{1efff}'),
];

const COMBINING: &[(char, char)] = &[('\u{300}', '\u{36f}'), ('\u{591}', '\u{5c7}')];
const HANGUL_JAMO: &[(char, char)] = &[('\u{1100}', '\u{11ff}')];
const MONGOLIAN: &[(char, char)] = &[('\u{1820}', '\u{18aa}')];
const EGYPTIAN: &[(char, char)] = &[('\u{13000}', '\u{1342f}')];
