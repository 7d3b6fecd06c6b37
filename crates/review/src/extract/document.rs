//! Parses Markdown into titles and the blocks below them.
//!
//! The parser's tree is flattened in document order, so that nothing here recurses, however deeply a text is nested.
//! Code blocks and HTML are left out.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use repertoire_text::{Source, Span};

use super::inline::{InlineMarkdown, InlineStyle};
use super::label::{is_title, parse_lead};

/// A parsed Markdown document.
pub(super) struct MarkdownDocument {
    pub(super) source: Source,
    /// Headings and bold labels, in order.
    pub(super) titles: Vec<DocumentTitle>,
    /// All blocks, including titles, in order.
    pub(super) blocks: Vec<DocumentBlock>,
}

/// A heading, or a bold paragraph that acts as one.
pub(super) struct DocumentTitle {
    pub(super) text: String,
    /// The level: 1 to 6 for headings, [`LABEL`] for labels.
    pub(super) rank: u8,
    /// The index of the title above it, which is always smaller than its own.
    pub(super) parent: Option<usize>,
}

/// The rank of a bold label.
pub(super) const LABEL: u8 = 7;

/// A block of a document.
pub(super) struct DocumentBlock {
    /// The index of the title above it, or of the title itself.
    pub(super) title: Option<usize>,
    pub(super) span: Span,
    /// True if it is in a block quote, which is usually a remark to the reader of the file.
    pub(super) quoted: bool,
    pub(super) kind: DocumentBlockKind,
}

/// The kind of a block, with its content.
pub(super) enum DocumentBlockKind {
    Title,
    Paragraph(InlineMarkdown),
    /// An item of a list. Items of nested lists follow as blocks of their own.
    Item(DocumentItem),
    Table(DocumentTable),
}

#[derive(Default)]
pub(super) struct DocumentItem {
    /// The nesting depth, from 1.
    pub(super) depth: usize,
    /// True if its list is numbered.
    pub(super) numbered: bool,
    /// The first paragraph.
    pub(super) lead: InlineMarkdown,
    /// The other paragraphs.
    pub(super) rest: Vec<InlineMarkdown>,
}

impl DocumentItem {
    /// The text of all paragraphs on one line.
    pub(super) fn plain_text(&self) -> String {
        self.join_texts(InlineMarkdown::plain_text)
    }

    /// As [`Item::plain`], with backticks around code.
    pub(super) fn marked_text(&self) -> String {
        self.join_texts(InlineMarkdown::marked_text)
    }

    fn join_texts(&self, text_of: fn(&InlineMarkdown) -> String) -> String {
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
pub(super) struct DocumentTable {
    pub(super) header: Vec<DocumentCell>,
    pub(super) rows: Vec<DocumentRow>,
}

#[derive(Default)]
pub(super) struct DocumentRow {
    pub(super) span: Span,
    pub(super) cells: Vec<DocumentCell>,
}

#[derive(Default)]
pub(super) struct DocumentCell {
    pub(super) inline: InlineMarkdown,
    pub(super) span: Span,
}

impl MarkdownDocument {
    /// Parses a part of a source.
    pub(super) fn parse(source: &Source, span: Span) -> Self {
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
        let text = span.slice(source.text());
        let mut reader =
            DocumentReader { text, base: span.start as usize, ..DocumentReader::default() };
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            reader.handle_event(event, range);
        }
        MarkdownDocument { source: source.clone(), titles: reader.titles, blocks: reader.blocks }
    }

    /// A title and its ancestors, innermost first.
    pub(super) fn title_chain(&self, title: Option<usize>) -> impl Iterator<Item = &DocumentTitle> {
        let above = |at: &usize| self.titles[*at].parent;
        std::iter::successors(title, above).map(|at| &self.titles[at])
    }

    /// The blocks below a title that `passes` accepts, at any depth.
    pub(super) fn blocks_below(
        &self,
        passes: impl Fn(&DocumentTitle) -> bool,
    ) -> Vec<&DocumentBlock> {
        let passing = self.titles_below(passes);
        self.blocks.iter().filter(|block| block.title.is_some_and(|at| passing[at])).collect()
    }

    /// For each title, whether `passes` accepts it or one of its ancestors.
    pub(super) fn titles_below(&self, passes: impl Fn(&DocumentTitle) -> bool) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::with_capacity(self.titles.len());
        for title in &self.titles {
            out.push(title.parent.is_some_and(|above| out[above]) || passes(title));
        }
        out
    }
}

/// The state of parsing a document.
#[derive(Default)]
struct DocumentReader<'a> {
    text: &'a str,
    base: usize,
    titles: Vec<DocumentTitle>,
    blocks: Vec<DocumentBlock>,
    /// For each open list, whether it is numbered.
    lists: Vec<bool>,
    /// The indexes of the blocks of the open items.
    items: Vec<usize>,
    inline: InlineMarkdown,
    inline_span: Option<Range<usize>>,
    strong: usize,
    /// True if the collected text starts at the left margin below an item. Markdown counts it as part of the item.
    at_margin: bool,
    /// The number of open block quotes.
    quotes: usize,
    /// The number of open code or HTML blocks.
    muted: usize,
    table: Option<(DocumentTable, Range<usize>)>,
    row: DocumentRow,
}

impl DocumentReader<'_> {
    fn handle_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start_tag(tag, range),
            Event::End(tag) => self.end_tag(tag, range),
            Event::Text(text) => self.push_text(InlineStyle::Plain, &text, range),
            Event::Code(code) => self.push_text(InlineStyle::Code, &code, range),
            Event::SoftBreak | Event::HardBreak => self.push_text(InlineStyle::Plain, " ", range),
            // Ignore comments and tags, but separate words at `<br>`.
            Event::InlineHtml(_) => self.push_text(InlineStyle::Plain, " ", range),
            _ => {}
        }
    }

    fn push_text(&mut self, style: InlineStyle, text: &str, range: Range<usize>) {
        if self.muted > 0 {
            return;
        }
        let style = if style == InlineStyle::Plain && self.strong > 0 {
            InlineStyle::Strong
        } else {
            style
        };
        self.inline.push(style, text);
        self.extend_span(range);
    }

    /// Extends the span of the collected text.
    fn extend_span(&mut self, range: Range<usize>) {
        self.inline_span = Some(match self.inline_span.take() {
            Some(before) => before.start.min(range.start)..before.end.max(range.end),
            None => range,
        });
    }

    fn start_tag(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Strong => {
                self.leave_item(&range);
                self.strong += 1;
            }
            Tag::Link { dest_url, .. } if self.muted == 0 => self.inline.add_link(&dest_url),
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
                self.table = Some((DocumentTable::default(), range));
            }
            Tag::TableHead | Tag::TableRow => {
                self.row = DocumentRow { span: self.source_span(range), cells: Vec::new() };
            }
            Tag::BlockQuote(_) => {
                self.finish_inline();
                self.quotes += 1;
            }
            Tag::Paragraph | Tag::Heading { .. } => self.finish_inline(),
            _ => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Strong => {
                self.strong = self.strong.saturating_sub(1);
                self.extend_span(range);
            }
            TagEnd::Emphasis | TagEnd::Strikethrough | TagEnd::Link => self.extend_span(range),
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
                let span = self.source_span(range);
                self.row.cells.push(DocumentCell { inline, span });
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
                    self.add_block(range, DocumentBlockKind::Table(table));
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
        let item = DocumentItem { depth: self.lists.len(), numbered, ..DocumentItem::default() };
        self.items.push(self.blocks.len());
        // The range of an item includes nested lists, so start with an empty span: its first paragraph extends it.
        self.add_block(range.start..range.start, DocumentBlockKind::Item(item));
    }

    fn finish_heading(&mut self, level: HeadingLevel, range: Range<usize>) {
        let text = self.take_inline().plain_text();
        self.add_title(text, level as u8, range);
    }

    /// Adds a title. A heading closes headings of the same or a lower level; a label closes the label before it.
    fn add_title(&mut self, text: String, rank: u8, range: Range<usize>) {
        let mut parent = self.blocks.last().and_then(|block| block.title);
        while let Some(at) = parent
            && self.titles[at].rank >= rank
        {
            parent = self.titles[at].parent;
        }
        self.titles.push(DocumentTitle { text, rank, parent });
        let span = self.source_span(range);
        let title = Some(self.titles.len() - 1);
        self.blocks.push(DocumentBlock {
            title,
            span,
            quoted: false,
            kind: DocumentBlockKind::Title,
        });
    }

    /// Stores the collected text: in the open item, or as a paragraph or a label.
    fn finish_inline(&mut self) {
        let at_margin = std::mem::take(&mut self.at_margin);
        let Some(range) = self.inline_span.clone() else { return };
        let inline = self.take_inline();
        if inline.is_blank() {
            return;
        }
        let label = parse_lead(&inline).filter(is_title);
        if let Some(at) = self.items.last().copied()
            && !(at_margin && label.is_some())
        {
            let span = self.source_span(range);
            let DocumentBlock { kind: DocumentBlockKind::Item(item), span: place, .. } =
                &mut self.blocks[at]
            else {
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
                self.add_title(lead.title_text(), LABEL, range.clone());
                if !lead.rest.is_blank() {
                    self.add_block(range, DocumentBlockKind::Paragraph(lead.rest));
                }
            }
            None => self.add_block(range, DocumentBlockKind::Paragraph(inline)),
        }
    }

    fn take_inline(&mut self) -> InlineMarkdown {
        self.inline_span = None;
        std::mem::take(&mut self.inline)
    }

    fn add_block(&mut self, range: Range<usize>, kind: DocumentBlockKind) {
        let title = self.blocks.last().and_then(|block| block.title);
        let span = self.source_span(range);
        self.blocks.push(DocumentBlock { title, span, quoted: self.quotes > 0, kind });
    }

    fn source_span(&self, range: Range<usize>) -> Span {
        Span::new(self.base + range.start, self.base + range.end)
    }
}
