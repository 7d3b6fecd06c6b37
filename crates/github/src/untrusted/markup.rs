//! Markdown as GitHub parses it: code blocks, links, images, definitions, footnotes and tables.
//!
//! A CommonMark parser finds the boundaries. Regular expressions would not do, since an author can
//! get them out of step. The text is unchanged except for the [`Edit`]s.

use repertoire_text::layout::one_line;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::{HiddenKind, RemovalCounts, addresses, blocks, separate_words};

/// A replacement of a part of the text.
pub(super) struct TextEdit {
    range: Range<usize>,
    with: String,
    what: Option<HiddenKind>,
}

impl TextEdit {
    pub(super) fn new(range: Range<usize>, with: &str, what: Option<HiddenKind>) -> Self {
        TextEdit { range, with: with.to_owned(), what }
    }

    pub(super) fn removal(range: Range<usize>, what: HiddenKind) -> Self {
        TextEdit { range, with: String::new(), what: Some(what) }
    }
}

/// Returns the Markdown events of a text with their ranges.
pub(super) fn markdown_events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    Parser::new_ext(text, options).into_offset_iter()
}

/// The ranges of a text that are code, and those that are HTML, each in order.
#[derive(Default)]
pub(super) struct MarkdownRanges {
    /// Code blocks.
    pub(super) blocks: Vec<Range<usize>>,
    /// Inline code, with its backticks.
    pub(super) spans: Vec<Range<usize>>,
    /// Whole HTML blocks.
    pub(super) html_blocks: Vec<Range<usize>>,
    /// HTML in blocks and inline HTML.
    pub(super) html: Vec<Range<usize>>,
}

impl MarkdownRanges {
    pub(super) fn find_ranges(text: &str) -> Self {
        let mut ranges = MarkdownRanges::default();
        for (event, range) in markdown_events(text) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => ranges.blocks.push(range),
                Event::Code(_) => ranges.spans.push(range),
                Event::Start(Tag::HtmlBlock) => ranges.html_blocks.push(range),
                Event::Html(_) | Event::InlineHtml(_) => ranges.html.push(range),
                _ => {}
            }
        }
        ranges
    }

    /// Returns true if a position is in code.
    pub(super) fn is_code(&self, at: usize) -> bool {
        range_containing(&self.blocks, at).is_some() || range_containing(&self.spans, at).is_some()
    }
}

/// Returns the range that contains a position. The ranges must be in order and disjoint.
pub(super) fn range_containing(ranges: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    let after = ranges.partition_point(|range| range.start <= at);
    ranges[..after].last().filter(|range| range.contains(&at))
}

/// Removes the hidden parts of blocks, links, images, definitions, footnotes and tables.
pub(super) fn without_hidden_text(text: &str, counts: &mut RemovalCounts) -> String {
    let mut reader = MarkdownReader::new(text);
    let mut links = LinkReader::new(text);
    let events: Vec<_> = markdown_events(text).collect();
    let masked = masked_references(text, &events);
    match &masked {
        Some(masked) => {
            self::markdown_events(masked)
                .for_each(|(event, range)| links.read_event(&event, range));
        }
        None => events.iter().for_each(|(event, range)| links.read_event(event, range.clone())),
    }
    for (event, range) in events {
        reader.read_event(event, range);
    }
    apply_edits(text, reader.into_edits(links), counts)
}

/// Masks the references to footnotes in a text; `None` if there are none. GitHub's parser allows
/// them in the text of a link, ours does not.
fn masked_references(text: &str, events: &[(Event<'_>, Range<usize>)]) -> Option<String> {
    let is_reference = |event: &Event<'_>| matches!(event, Event::FootnoteReference(_));
    let references = || events.iter().filter(|(event, _)| is_reference(event));
    references().next()?;
    let mut masked = String::with_capacity(text.len());
    for (_, range) in references() {
        masked.push_str(&text[masked.len()..range.start]);
        masked.extend(std::iter::repeat_n('x', range.len()));
    }
    masked.push_str(&text[masked.len()..]);
    Some(masked)
}

/// Applies the edits. An edit inside another is left for the next pass.
fn apply_edits(text: &str, mut edits: Vec<TextEdit>, counts: &mut RemovalCounts) -> String {
    edits.sort_by_key(|edit| (edit.range.start, usize::MAX - edit.range.end));
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for edit in edits {
        if edit.range.start < last {
            continue;
        }
        out.push_str(&text[last..edit.range.start]);
        last = edit.range.end;
        if let Some(what) = edit.what {
            counts.add(what);
        }
        if edit.with.is_empty() && edit.what.is_some() {
            separate_words(&mut out, &text[last..]);
        } else {
            out.push_str(&edit.with);
        }
    }
    out.push_str(&text[last..]);
    out
}

/// A link or image whose end was not reached yet.
struct OpenLink {
    link_type: LinkType,
    address: String,
    has_title: bool,
    label: String,
    is_picture: bool,
    /// The end of the last part of its text.
    text_end: usize,
    has_text: bool,
}

/// Collects the edits of links and images.
struct LinkReader<'t> {
    text: &'t str,
    edits: Vec<TextEdit>,
    open: Vec<OpenLink>,
    /// The normalised names of the definitions that are used.
    used: BTreeSet<String>,
}

impl<'t> LinkReader<'t> {
    fn new(text: &'t str) -> Self {
        LinkReader { text, edits: Vec::new(), open: Vec::new(), used: BTreeSet::new() }
    }

    fn read_event(&mut self, event: &Event<'_>, range: Range<usize>) {
        if matches!(event, Event::End(TagEnd::Link | TagEnd::Image)) {
            self.close_link(range);
            return;
        }
        if let Some(open) = self.open.last_mut() {
            open.text_end = open.text_end.max(range.end);
            open.has_text |= is_seen(event);
        }
        let Event::Start(
            tag @ (Tag::Link { link_type, dest_url, title, id }
            | Tag::Image { link_type, dest_url, title, id }),
        ) = event
        else {
            return;
        };
        let is_picture = matches!(tag, Tag::Image { .. });
        self.used.insert(normalise_name(id));
        self.open.push(OpenLink {
            link_type: *link_type,
            address: dest_url.to_string(),
            has_title: !title.is_empty(),
            label: id.to_string(),
            is_picture,
            text_end: range.start + if is_picture { 2 } else { 1 },
            has_text: false,
        });
    }

    fn close_link(&mut self, mut range: Range<usize>) {
        let Some(open) = self.open.pop() else { return };
        if open.link_type == LinkType::Collapsed && self.text[range.end..].starts_with("[]") {
            range.end += "[]".len();
        }
        if matches!(open.link_type, LinkType::Autolink | LinkType::Email) {
            return;
        }
        let short = addresses::shorten_address(&open.address);
        let what = if open.is_picture && open.has_text {
            Some(HiddenKind::PictureText)
        } else if open.has_title {
            Some(HiddenKind::LinkTitle)
        } else if short.is_some() {
            Some(HiddenKind::LinkAddress)
        } else if open.link_type == LinkType::Reference && open.label.split_whitespace().count() > 1
        {
            Some(HiddenKind::Reference)
        } else {
            None
        };
        let address = short.unwrap_or(open.address);
        if open.is_picture {
            let with = format!("![]({address})");
            if self.text[range.clone()] != with {
                self.edits.push(TextEdit::new(range.clone(), &with, what));
            }
            return;
        }
        if !open.has_text {
            self.edits.push(TextEdit::removal(range.clone(), HiddenKind::LinkAddress));
            return;
        }
        let text_end = open.text_end.min(range.end);
        let Some(bracket) = self.text[text_end..range.end].find(']') else { return };
        let tail = text_end + bracket..range.end;
        let with = format!("]({address})");
        if self.text[tail.clone()] != with {
            self.edits.push(TextEdit::new(tail, &with, what));
        }
    }
}

/// A footnote: its normalised name, its range, and the names it refers to.
struct MarkdownFootnote {
    name: String,
    range: Range<usize>,
    refers: BTreeSet<String>,
}

struct MarkdownReader<'t> {
    text: &'t str,
    edits: Vec<TextEdit>,
    /// Link reference definitions, with their normalised names.
    definitions: Vec<(String, Range<usize>)>,
    /// The open fenced block, with the ranges of its content so far.
    fenced: Option<(Range<usize>, Vec<Range<usize>>)>,
    footnotes: Vec<MarkdownFootnote>,
    /// Open footnotes, the innermost last.
    open_footnotes: Vec<usize>,
    /// The names of footnotes that the text itself refers to.
    referred: BTreeSet<String>,
    /// The end of the text that has been shown so far.
    shown_to: usize,
    /// Blocks without nested blocks, and inline parts outside of such a block.
    leaves: Vec<Range<usize>>,
    /// Code and HTML.
    verbatim: Vec<Range<usize>>,
    row_cells_end: usize,
}

impl<'t> MarkdownReader<'t> {
    fn new(text: &'t str) -> Self {
        MarkdownReader {
            text,
            edits: Vec::new(),
            definitions: Vec::new(),
            fenced: None,
            footnotes: Vec::new(),
            open_footnotes: Vec::new(),
            referred: BTreeSet::new(),
            shown_to: 0,
            leaves: Vec::new(),
            verbatim: Vec::new(),
            row_cells_end: 0,
        }
    }

    fn read_event(&mut self, event: Event<'_>, range: Range<usize>) {
        self.note_shown(&event, &range);
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                self.verbatim.push(range.clone());
                if matches!(kind, CodeBlockKind::Fenced(_)) {
                    self.fenced = Some((range, Vec::new()));
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((block, content)) = self.fenced.take() {
                    self.edits.extend(blocks::edits_of_fenced(self.text, &block, &content));
                }
            }
            Event::Text(_) => {
                if let Some((_, content)) = &mut self.fenced {
                    content.push(range);
                }
            }
            Event::Code(_) | Event::Html(_) | Event::InlineHtml(_) => self.verbatim.push(range),
            Event::Start(Tag::FootnoteDefinition(name)) => {
                let footnote = MarkdownFootnote {
                    name: normalise_name(&name),
                    range,
                    refers: BTreeSet::new(),
                };
                self.open_footnotes.push(self.footnotes.len());
                self.footnotes.push(footnote);
            }
            Event::End(TagEnd::FootnoteDefinition) => {
                self.open_footnotes.pop();
            }
            Event::FootnoteReference(name) if !is_plain_name(&name) => {
                self.edits.push(TextEdit::removal(range, HiddenKind::Footnote));
            }
            Event::FootnoteReference(name) => {
                let inside = self.open_footnotes.last().map(|at| &mut self.footnotes[*at].refers);
                inside.unwrap_or(&mut self.referred).insert(normalise_name(&name));
            }
            Event::Start(Tag::TableRow) => self.row_cells_end = range.start,
            Event::End(TagEnd::TableCell) => self.row_cells_end = range.end,
            Event::End(TagEnd::TableRow) => self.close_row(&range),
            _ => {}
        }
    }

    /// Removes the cells beyond the columns of a table. The parser emits no events for them.
    fn close_row(&mut self, range: &Range<usize>) {
        let rest = &self.text[self.row_cells_end.min(range.end)..range.end];
        let plain = rest.trim_end();
        let from = range.end - rest.len();
        if plain.chars().any(|c| !c.is_whitespace() && c != '|') {
            let bar = usize::from(plain.starts_with('|'));
            self.edits
                .push(TextEdit::removal(from + bar..from + plain.len(), HiddenKind::TableCell));
        }
    }

    /// Records what is shown, and looks for definitions in the gaps between. The parser emits no
    /// events for definitions.
    fn note_shown(&mut self, event: &Event<'_>, range: &Range<usize>) {
        let is_inside_leaf = self.leaves.last().is_some_and(|leaf| range.end <= leaf.end);
        if is_inside_leaf {
            return;
        }
        let is_leaf = match event {
            Event::Start(tag) => !is_container(tag),
            Event::End(_) => return,
            _ => true,
        };
        if !is_leaf {
            return;
        }
        self.note_gap(range.start);
        self.shown_to = self.shown_to.max(range.end);
        self.leaves.push(range.clone());
    }

    fn note_gap(&mut self, end: usize) {
        if end <= self.shown_to {
            return;
        }
        let mut at = self.shown_to;
        let mut is_definition = false;
        for line in self.text[self.shown_to..end].split_inclusive('\n') {
            let start = at;
            at += line.len();
            let body = line.trim_end();
            let rest = &body[MARKERS.find(body).map_or(0, |found| found.end())..];
            is_definition = match rest.chars().next() {
                None => continue,
                Some('[') => !rest.starts_with("[!"),
                Some(_) => is_definition,
            };
            if is_definition {
                let from = start + body.len() - rest.len();
                let name = rest.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
                let name = name.map(|(name, _)| normalise_name(name)).unwrap_or_default();
                self.definitions.push((name, from..start + body.len()));
            }
        }
    }

    fn into_edits(mut self, links: LinkReader<'_>) -> Vec<TextEdit> {
        self.note_gap(self.text.len());
        self.edits.extend(links.edits);
        let mut used = links.used;
        for (name, range) in std::mem::take(&mut self.definitions) {
            // The links contain their addresses now, so the definitions can go. Only the first one
            // of a name was ever used.
            let what = (name.is_empty() || !used.remove(&name)).then_some(HiddenKind::Reference);
            self.edits.push(TextEdit::new(range, "", what));
        }
        let shown = self.shown_footnotes();
        for (at, footnote) in self.footnotes.iter().enumerate() {
            if !shown.contains(&at) {
                self.edits.push(TextEdit::removal(footnote.range.clone(), HiddenKind::Footnote));
            }
        }
        self.remove_doubtful_footnotes();
        for (range, short) in addresses::shorten_github_urls(self.text) {
            if range_containing(&self.verbatim, range.start).is_none() {
                self.edits.push(TextEdit::new(range, &short, Some(HiddenKind::LinkAddress)));
            }
        }
        self.edits
    }

    /// Removes what GitHub's parser may take for a footnote but ours does not, such as `[^a[b]:
    /// text`.
    fn remove_doubtful_footnotes(&mut self) {
        for found in FOOTNOTE.captures_iter(self.text) {
            let Some(start) = found.get(1).map(|mark| mark.start()) else { continue };
            let is_known = self
                .footnotes
                .binary_search_by_key(&start, |footnote| footnote.range.start)
                .is_ok();
            if is_known || range_containing(&self.verbatim, start).is_some() {
                continue;
            }
            let end = range_containing(&self.leaves, start).map_or(start, |leaf| leaf.end);
            if start < end {
                self.edits.push(TextEdit::removal(start..end, HiddenKind::Footnote));
            }
        }
    }

    /// Returns the footnotes that the page shows: the first of each name, if the text or another
    /// shown footnote refers to it.
    fn shown_footnotes(&self) -> BTreeSet<usize> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let plain = self.footnotes.iter().enumerate().filter(|(_, note)| is_plain_name(&note.name));
        for (at, footnote) in plain {
            first.entry(&footnote.name).or_insert(at);
        }
        let mut shown = BTreeSet::new();
        let mut left: Vec<&String> = self.referred.iter().collect();
        while let Some(name) = left.pop() {
            let Some(at) = first.get(name.as_str()) else { continue };
            if shown.insert(*at) {
                left.extend(&self.footnotes[*at].refers);
            }
        }
        shown
    }
}

/// Matches the markers of quotations, lists and footnotes at the start of a line.
static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^(?:[ \t>*+.)\-0-9]|\[\^[^\[\]\n]+\]:|\[![A-Za-z]+\])*";
    Regex::new(pattern).expect("the pattern is a constant")
});

/// Matches the start of a footnote as GitHub's parser does.
static FOOTNOTE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?m)^[ \t>*+.)\-0-9]*(\[\^)[^\]\s]+\]:";
    Regex::new(pattern).expect("the pattern is a constant")
});

/// The maximum length of the name of a footnote. The page shows a number instead of the name.
const FOOTNOTE_NAME_CHARS_MAX: usize = 24;

/// The maximum number of words in the name of a footnote.
const FOOTNOTE_NAME_WORDS_MAX: usize = 3;

/// Returns true if both parsers accept a name for a footnote, and it is too short to carry a
/// message.
fn is_plain_name(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().all(is_word)
        && name.chars().count() <= FOOTNOTE_NAME_CHARS_MAX
        && name.split(['-', '_', '.']).count() <= FOOTNOTE_NAME_WORDS_MAX
}

fn is_container(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::BlockQuote(_) | Tag::List(_) | Tag::Item | Tag::FootnoteDefinition(_))
}

/// Returns true if an event in a link is visible.
fn is_seen(event: &Event<'_>) -> bool {
    match event {
        Event::Text(text) | Event::Code(text) => !text.trim().is_empty(),
        Event::InlineHtml(tag) => tag.to_ascii_lowercase().starts_with("<img"),
        Event::Start(Tag::Image { .. }) => true,
        _ => false,
    }
}

/// Normalises a name: names are compared without regard to case and white space.
fn normalise_name(name: &str) -> String {
    one_line(name).to_lowercase()
}
