//! Parses Markdown into titles and the blocks below them.
//!
//! The parser's tree is flattened in document order, so that nothing here recurses, however deeply a text is nested.
//! Code blocks and HTML are left out.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use repertoire_text::{Source, Span};

use super::inline::{Inline, Style};
use super::label::{is_title, lead_of};

/// A parsed Markdown document.
pub(super) struct Document {
    pub(super) source: Source,
    /// Headings and bold labels, in order.
    pub(super) titles: Vec<Title>,
    /// All blocks, including titles, in order.
    pub(super) blocks: Vec<Block>,
}

/// A heading, or a bold paragraph that acts as one.
pub(super) struct Title {
    pub(super) text: String,
    /// The level: 1 to 6 for headings, [`LABEL`] for labels.
    pub(super) rank: u8,
    /// The index of the title above it, which is always smaller than its own.
    pub(super) parent: Option<usize>,
}

/// The rank of a bold label.
pub(super) const LABEL: u8 = 7;

/// A block of a document.
pub(super) struct Block {
    /// The index of the title above it, or of the title itself.
    pub(super) title: Option<usize>,
    pub(super) span: Span,
    /// True if it is in a block quote, which is usually a remark to the reader of the file.
    pub(super) quoted: bool,
    pub(super) kind: Kind,
}

/// The kind of a block, with its content.
pub(super) enum Kind {
    Title,
    Paragraph(Inline),
    /// An item of a list. Items of nested lists follow as blocks of their own.
    Item(Item),
    Table(Table),
}

#[derive(Default)]
pub(super) struct Item {
    /// The nesting depth, from 1.
    pub(super) depth: usize,
    /// True if its list is numbered.
    pub(super) numbered: bool,
    /// The first paragraph.
    pub(super) lead: Inline,
    /// The other paragraphs.
    pub(super) rest: Vec<Inline>,
}

impl Item {
    /// The text of all paragraphs on one line.
    pub(super) fn plain(&self) -> String {
        self.joined(Inline::plain)
    }

    /// As [`Item::plain`], with backticks around code.
    pub(super) fn marked(&self) -> String {
        self.joined(Inline::marked)
    }

    fn joined(&self, text_of: fn(&Inline) -> String) -> String {
        let mut out = text_of(&self.lead);
        for more in self.rest.iter().map(text_of).filter(|more| !more.is_empty()) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&more);
        }
        out
    }
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) header: Vec<Cell>,
    pub(super) rows: Vec<Row>,
}

#[derive(Default)]
pub(super) struct Row {
    pub(super) span: Span,
    pub(super) cells: Vec<Cell>,
}

#[derive(Default)]
pub(super) struct Cell {
    pub(super) inline: Inline,
    pub(super) span: Span,
}

impl Document {
    /// Parses a part of a source.
    pub(super) fn read(source: &Source, span: Span) -> Self {
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
        let text = span.slice(source.text());
        let mut reader = Reader { text, base: span.start as usize, ..Reader::default() };
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            reader.event(event, range);
        }
        Document { source: source.clone(), titles: reader.titles, blocks: reader.blocks }
    }

    /// A title and its ancestors, innermost first.
    pub(super) fn chain(&self, title: Option<usize>) -> impl Iterator<Item = &Title> {
        let above = |at: &usize| self.titles[*at].parent;
        std::iter::successors(title, above).map(|at| &self.titles[at])
    }

    /// The blocks below a title that `passes` accepts, at any depth.
    pub(super) fn below(&self, passes: impl Fn(&Title) -> bool) -> Vec<&Block> {
        let passing = self.titles_below(passes);
        self.blocks.iter().filter(|block| block.title.is_some_and(|at| passing[at])).collect()
    }

    /// For each title, whether `passes` accepts it or one of its ancestors.
    pub(super) fn titles_below(&self, passes: impl Fn(&Title) -> bool) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::with_capacity(self.titles.len());
        for title in &self.titles {
            out.push(title.parent.is_some_and(|above| out[above]) || passes(title));
        }
        out
    }
}

/// The state of parsing a document.
#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    base: usize,
    titles: Vec<Title>,
    blocks: Vec<Block>,
    /// For each open list, whether it is numbered.
    lists: Vec<bool>,
    /// The indexes of the blocks of the open items.
    items: Vec<usize>,
    inline: Inline,
    inline_span: Option<Range<usize>>,
    strong: usize,
    /// True if the collected text starts at the left margin below an item. Markdown counts it as part of the item.
    at_margin: bool,
    /// The number of open block quotes.
    quotes: usize,
    /// The number of open code or HTML blocks.
    muted: usize,
    table: Option<(Table, Range<usize>)>,
    row: Row,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) => self.push(Style::Plain, &text, range),
            Event::Code(code) => self.push(Style::Code, &code, range),
            Event::SoftBreak | Event::HardBreak => self.push(Style::Plain, " ", range),
            // Ignore comments and tags, but separate words at `<br>`.
            Event::InlineHtml(_) => self.push(Style::Plain, " ", range),
            _ => {}
        }
    }

    fn push(&mut self, style: Style, text: &str, range: Range<usize>) {
        if self.muted > 0 {
            return;
        }
        let style = if style == Style::Plain && self.strong > 0 { Style::Strong } else { style };
        self.inline.push(style, text);
        self.cover(range);
    }

    /// Extends the span of the collected text.
    fn cover(&mut self, range: Range<usize>) {
        self.inline_span = Some(match self.inline_span.take() {
            Some(before) => before.start.min(range.start)..before.end.max(range.end),
            None => range,
        });
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Strong => {
                self.leave_item(&range);
                self.strong += 1;
            }
            Tag::Link { dest_url, .. } if self.muted == 0 => self.inline.link(&dest_url),
            Tag::CodeBlock(_) | Tag::HtmlBlock | Tag::MetadataBlock(_) => {
                self.finish_inline();
                self.muted += 1;
            }
            Tag::List(first) => {
                self.finish_inline();
                self.lists.push(first.is_some());
            }
            Tag::Item => {
                self.finish_inline();
                self.open_item(range);
            }
            Tag::Table(_) => {
                self.finish_inline();
                self.table = Some((Table::default(), range));
            }
            Tag::TableHead | Tag::TableRow => {
                self.row = Row { span: self.span(range), cells: Vec::new() };
            }
            Tag::BlockQuote(_) => {
                self.finish_inline();
                self.quotes += 1;
            }
            Tag::Paragraph | Tag::Heading { .. } => self.finish_inline(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Strong => {
                self.strong = self.strong.saturating_sub(1);
                self.cover(range);
            }
            TagEnd::Emphasis | TagEnd::Strikethrough | TagEnd::Link => self.cover(range),
            TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) => {
                self.muted = self.muted.saturating_sub(1);
            }
            TagEnd::BlockQuote(_) => {
                self.finish_inline();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Paragraph => self.finish_inline(),
            TagEnd::Heading(level) => self.finish_heading(level, range),
            TagEnd::Item => {
                self.finish_inline();
                self.items.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let inline = self.take_inline();
                let span = self.span(range);
                self.row.cells.push(Cell { inline, span });
            }
            TagEnd::TableHead => {
                if let Some((table, _)) = &mut self.table {
                    table.header = std::mem::take(&mut self.row).cells;
                }
            }
            TagEnd::TableRow => {
                if let Some((table, _)) = &mut self.table {
                    table.rows.push(std::mem::take(&mut self.row));
                }
            }
            TagEnd::Table => {
                if let Some((table, range)) = self.table.take() {
                    self.block(range, Kind::Table(table));
                }
            }
            _ => {}
        }
    }

    /// Ends the item before a bold line at the left margin: it is meant as a label, even without a blank line between
    /// them.
    fn leave_item(&mut self, range: &Range<usize>) {
        let is_at_margin = self.text[..range.start].ends_with('\n');
        if is_at_margin && !self.items.is_empty() && self.inline_span.is_some() {
            self.finish_inline();
            self.at_margin = true;
        }
    }

    fn open_item(&mut self, range: Range<usize>) {
        let numbered = self.lists.last().copied().unwrap_or(false);
        let item = Item { depth: self.lists.len(), numbered, ..Item::default() };
        self.items.push(self.blocks.len());
        // The range of an item includes nested lists, so start with an empty span: its first paragraph extends it.
        self.block(range.start..range.start, Kind::Item(item));
    }

    fn finish_heading(&mut self, level: HeadingLevel, range: Range<usize>) {
        let text = self.take_inline().plain();
        self.title(text, level as u8, range);
    }

    /// Adds a title. A heading closes headings of the same or a lower level; a label closes the label before it.
    fn title(&mut self, text: String, rank: u8, range: Range<usize>) {
        let mut parent = self.blocks.last().and_then(|block| block.title);
        while let Some(at) = parent
            && self.titles[at].rank >= rank
        {
            parent = self.titles[at].parent;
        }
        self.titles.push(Title { text, rank, parent });
        let span = self.span(range);
        let title = Some(self.titles.len() - 1);
        self.blocks.push(Block { title, span, quoted: false, kind: Kind::Title });
    }

    /// Stores the collected text: in the open item, or as a paragraph or a label.
    fn finish_inline(&mut self) {
        let at_margin = std::mem::take(&mut self.at_margin);
        let Some(range) = self.inline_span.clone() else { return };
        let inline = self.take_inline();
        if inline.is_blank() {
            return;
        }
        let label = lead_of(&inline).filter(is_title);
        if let Some(at) = self.items.last().copied()
            && !(at_margin && label.is_some())
        {
            let span = self.span(range);
            let Block { kind: Kind::Item(item), span: place, .. } = &mut self.blocks[at] else {
                return;
            };
            if item.lead.is_blank() {
                item.lead = inline;
                *place = Span { start: place.start, end: span.end.max(place.start) };
            } else {
                item.rest.push(inline);
            }
            return;
        }
        match label {
            Some(lead) => {
                self.title(lead.title(), LABEL, range.clone());
                if !lead.rest.is_blank() {
                    self.block(range, Kind::Paragraph(lead.rest));
                }
            }
            None => self.block(range, Kind::Paragraph(inline)),
        }
    }

    fn take_inline(&mut self) -> Inline {
        self.inline_span = None;
        std::mem::take(&mut self.inline)
    }

    fn block(&mut self, range: Range<usize>, kind: Kind) {
        let title = self.blocks.last().and_then(|block| block.title);
        let span = self.span(range);
        self.blocks.push(Block { title, span, quoted: self.quotes > 0, kind });
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.base + range.start, self.base + range.end)
    }
}
