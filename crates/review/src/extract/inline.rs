//! The inline content of a paragraph, an item or a cell: its text, styles and links.

/// The style of a run of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InlineStyle {
    Plain,
    Strong,
    Code,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineRun {
    pub(super) style: InlineStyle,
    pub(super) text: String,
}

/// The inline content of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InlineMarkdown {
    pub(super) runs: Vec<InlineRun>,
    /// The targets of its links.
    pub(super) links: Vec<String>,
}

impl InlineMarkdown {
    pub(super) fn push(&mut self, style: InlineStyle, text: &str) {
        match self.runs.last_mut() {
            // Adjacent code spans stay separate.
            Some(last) if last.style == style && style != InlineStyle::Code => {
                last.text.push_str(text)
            }
            _ => self.runs.push(InlineRun { style, text: text.to_owned() }),
        }
    }

    pub(super) fn add_link(&mut self, target: &str) {
        self.links.push(target.to_owned());
    }

    pub(super) fn is_blank(&self) -> bool {
        self.runs.iter().all(|run| run.text.trim().is_empty())
    }

    /// The text without markup, on one line.
    pub(super) fn plain_text(&self) -> String {
        join_plain(self.runs.iter().map(|run| run.text.as_str()))
    }

    /// As [`Inline::plain`], with backticks around code.
    pub(super) fn marked_text(&self) -> String {
        let pieces = self.runs.iter().flat_map(|run| {
            // A backtick within the code would end it too early.
            let is_marked = run.style == InlineStyle::Code && !run.text.contains('`');
            let mark = if is_marked { "`" } else { "" };
            [mark, run.text.as_str(), mark]
        });
        join_plain(pieces)
    }

    /// The texts of the code spans.
    pub(super) fn code_texts(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().filter(|run| run.style == InlineStyle::Code).map(|run| run.text.as_str())
    }
}

/// Joins pieces on one line: collapses whitespace, and removes control characters.
pub(super) fn join_plain<'a>(pieces: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::new();
    let mut gap = false;
    for c in pieces.flat_map(str::chars) {
        if c.is_whitespace() || c == '\u{feff}' {
            gap = true;
        } else if !c.is_control() {
            if gap && !out.is_empty() {
                out.push(' ');
            }
            gap = false;
            out.push(c);
        }
    }
    out
}

/// Normalises a text to lower-case words, separated by spaces: `Auto-Validated Patterns` becomes `auto validated
/// patterns`.
pub(super) fn normalise_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !matches!(c, '\'' | '’') && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Returns true if `words` contains `wanted` as whole words.
pub(super) fn contains_words(words: &str, wanted: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| c == ' ');
    words.match_indices(wanted).any(|(at, _)| {
        is_edge(words[..at].chars().next_back())
            && is_edge(words[at + wanted.len()..].chars().next())
    })
}
