//! Finds a mention of the bot: the trigger phrase as a word of its own, in the author's own words.
//!
//! Quoted, hidden and code text does not count. In doubt, text counts as code: a missed mention can
//! be repeated, but unwanted work cannot be undone.

use std::sync::LazyLock;

use regex::Regex;

/// A mention of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotMention {
    /// The byte offset of the phrase.
    pub at: usize,
    /// The author's own text after the phrase, as written.
    pub instruction: String,
    /// The text that the author quotes after the phrase, written by others.
    pub quoted: String,
    /// True if the text begins with the phrase.
    pub leads: bool,
}

/// The placeholder for text that does not count.
const BLANK: char = '\u{1}';

/// Finds the first mention in a text.
pub fn parse_mention(text: &str, phrase: &str) -> Option<BotMention> {
    let phrase = phrase.trim();
    if phrase.is_empty() {
        return None;
    }
    let spoken = blank_silent_text(text);
    let found = spoken.char_indices().find_map(|(at, _)| {
        let end = at + length_of_match(&spoken[at..], phrase)?;
        (starts_word(&spoken[..at], phrase) && ends_word(&spoken[end..])).then_some((at, end))
    });
    found.map(|(at, end)| {
        let (instruction, quoted) = own_and_quoted(&text[end..]);
        let instruction = instruction.trim_start_matches([':', ',']).trim().to_owned();
        BotMention { at, instruction, quoted, leads: text[..at].trim().is_empty() }
    })
}

/// Splits a text into the author's own words and quotations. A line that directly follows a quoted
/// one is rendered as part of the quotation, and everything below the attribution line of a mail
/// program is a quotation.
fn own_and_quoted(text: &str) -> (String, String) {
    let (mut own, mut quoted) = (String::new(), String::new());
    let mut last = 0;
    for found in QUOTATION.find_iter(text) {
        own.push_str(&text[last..found.start()]);
        quoted.push_str(&format!("{}\n", found.as_str()));
        last = found.end();
    }
    own.push_str(&text[last..]);
    let (mut kept, mut goes_on, mut is_reply) = (String::new(), false, false);
    for line in own.split_inclusive('\n') {
        let bare = line.trim();
        is_reply = is_reply || REPLY.is_match(bare);
        goes_on = is_reply || is_quote(bare) || goes_on && !bare.is_empty();
        if goes_on {
            quoted.push_str(line);
        } else {
            kept.push_str(line);
        }
    }
    (kept, quoted.trim().to_owned())
}

/// Matches a quotation in HTML.
static QUOTATION: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"(?is)<(?:blockquote|q)\b.*?(?:</(?:blockquote|q)\s*>|\z)"));

/// Matches the line that mail programs write above a quotation.
static REPLY: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)^(?:on\b.{4,300}\bwrote:|am\b.{4,300}\bschrieb\b.{0,200}:|le\b.{4,300}\ba écrit\s*:|-{2,}\s*original message\s*-{2,}|-- ?)$",
    )
});

/// Returns the length of the phrase at the start of a text, ignoring case; `None` if the text does
/// not start with it.
fn length_of_match(text: &str, phrase: &str) -> Option<usize> {
    let mut wanted = phrase.chars().flat_map(char::to_lowercase).peekable();
    for (at, c) in text.char_indices() {
        if wanted.peek().is_none() {
            return Some(at);
        }
        for lower in c.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

/// Returns true for letters, digits, and punctuation within addresses and names.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '@' | '\\')
}

fn starts_word(before: &str, phrase: &str) -> bool {
    // A phrase such as `!bot` brings its own word boundary, but `a.@bot` and `mail@bot` are
    // addresses.
    let Some(last) = before.chars().next_back() else { return true };
    let dotted = last == '.' && before.chars().rev().nth(1).is_some_and(is_of_name);
    let address = dotted && phrase.starts_with('@');
    !is_of_name(last) && !address && !is_joined(last)
}

fn ends_word(after: &str) -> bool {
    let mut rest = after.chars();
    let Some(next) = rest.next() else { return true };
    // A full stop ends a sentence, but `@bot.example` and `@bot[x]` are other names.
    let dotted = next == '.' && rest.next().is_some_and(is_of_name);
    !is_of_name(next) && !dotted && next != '[' && !is_joined(next)
}

/// Returns true for invisible characters, which make it a different word.
fn is_joined(c: char) -> bool {
    c != BLANK && !matches!(c, '\n' | '\r' | '\t') && repertoire_text::invisible::is_invisible(c)
}

/// Replaces text that does not count by placeholders, of the same length in bytes.
fn blank_silent_text(text: &str) -> String {
    let mut out = blank_lines(&blank_matches(text, &COMMENT));
    for hidden in [&*HIDDEN, &*CODE_ELEMENT] {
        out = blank_matches(&out, hidden);
    }
    out = blank_spans(&out);
    blank_matches(&out, &TAG)
}

/// Matches a comment, which may span lines.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"(?s)<!--.*?-->"));

/// Matches what HTML does not show. An unclosed construct hides the rest.
static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?s)<!--.*?(?:-->|\z)|<\?.*?(?:\?>|\z)|<!\[CDATA\[.*?(?:\]\]>|\z)|<![A-Za-z][^>]*>?",
    )
});

/// Matches elements with code, quotations and hidden text.
static CODE_ELEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(concat!(
        r"(?is)<pre\b.*?(?:</pre\s*>|\z)|<code\b.*?(?:</code\s*>|\z)",
        r"|<(?:blockquote|q)\b.*?(?:</(?:blockquote|q)\s*>|\z)",
        r"|<(?:kbd|samp|tt)\b.*?(?:</(?:kbd|samp|tt)\s*>|\z)",
        r"|<(?:script|style|template|textarea)\b.*?(?:</(?:script|style|template|textarea)\s*>|\z)",
        r#"|<[a-z][^<>]*\s(?:hidden\b|style\s*=)[^<>]*>[^<]*"#,
    ))
});

/// Matches a tag with its attributes.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r#"(?s)</?[A-Za-z][A-Za-z0-9-]*(?:[\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)?>"#)
});

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

fn blank_matches(text: &str, pattern: &Regex) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for found in pattern.find_iter(text) {
        out.push_str(&text[last..found.start()]);
        push_blanks(found.as_str(), &mut out);
        last = found.end();
    }
    out.push_str(&text[last..]);
    out
}

fn push_blanks(text: &str, out: &mut String) {
    for byte in text.bytes() {
        out.push(if byte == b'\n' { '\n' } else { BLANK });
    }
}

/// Blanks quoted lines and code blocks.
fn blank_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let silent = if let Some((mark, length)) = fence {
            if closes_fence(bare, mark, length) {
                fence = None;
            }
            true
        } else if let Some(opened) = opening_fence(bare) {
            fence = Some(opened);
            true
        } else {
            is_quote(bare) || is_indented(line)
        };
        if silent {
            push_blanks(line, &mut out);
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Returns the mark and the length of a code fence that opens in this line, possibly in a list or
/// quotation.
fn opening_fence(bare: &str) -> Option<(char, usize)> {
    let bare = bare.trim_start_matches(|c: char| {
        matches!(c, '>' | '-' | '*' | '+' | ' ' | '\t' | '.' | ')') || c.is_ascii_digit()
    });
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = bare.chars().take_while(|c| *c == mark).count();
    let info = &bare[length..];
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length))
}

fn closes_fence(bare: &str, mark: char, length: usize) -> bool {
    let bare = bare.trim_start_matches(['>', ' ', '\t']);
    !bare.is_empty() && bare.chars().all(|c| c == mark) && bare.chars().count() >= length
}

fn is_quote(bare: &str) -> bool {
    let bare = bare.trim_start_matches(|c: char| {
        matches!(c, '-' | '*' | '+' | ' ' | '\t' | '.' | ')') || c.is_ascii_digit()
    });
    bare.starts_with('>')
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.trim_start_matches(' ').starts_with('\t')
}

/// Blanks inline code. A run of backticks closes at the next run of the same length; without one it
/// is not code.
fn blank_spans(text: &str) -> String {
    let runs = runs_of_backticks(text);
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    let mut at = 0;
    while at < runs.len() {
        let (start, length) = runs[at];
        let close = runs[at + 1..].iter().position(|(_, other)| *other == length);
        let Some(close) = close.map(|close| at + 1 + close) else {
            at += 1;
            continue;
        };
        let end = runs[close].0 + length;
        out.push_str(&text[last..start]);
        push_blanks(&text[start..end], &mut out);
        last = end;
        at = close + 1;
    }
    out.push_str(&text[last..]);
    out
}

fn runs_of_backticks(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}
