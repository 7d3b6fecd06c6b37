//! Collects diagnostics and list items, within limits. Truncation is reported.

use repertoire_text::diagnostic::DiagnosticCode;
use repertoire_text::{Diagnostic, Source, Span};

use super::limits::{REVIEW_FINDINGS_MAX, REVIEW_TEXT_CHARS_MAX};
use crate::codes;

use super::document::{DocumentBlock, DocumentBlockKind, DocumentItem};
use super::inline::InlineMarkdown;

/// Diagnostics about one skill.
#[derive(Default)]
pub(super) struct ReviewDiagnostics {
    list: Vec<Diagnostic>,
    dropped: usize,
}

impl ReviewDiagnostics {
    /// Adds a diagnostic at a span. Diagnostics beyond the limit are only counted.
    pub(super) fn add(
        &mut self,
        code: &'static DiagnosticCode,
        message: String,
        source: &Source,
        span: Span,
    ) {
        if self.list.len() >= REVIEW_FINDINGS_MAX {
            self.dropped += 1;
            return;
        }
        self.list.push(Diagnostic::new(code, message).at(source, span).help(code.remedy));
    }

    /// Adds a diagnostic about the whole file.
    pub(super) fn add_for_file(
        &mut self,
        code: &'static DiagnosticCode,
        message: String,
        source: &Source,
    ) {
        let finding = Diagnostic::new(code, message).in_file(source.path()).help(code.remedy);
        self.list.push(finding);
    }

    /// Returns the diagnostics. If some were dropped, the last one says how many.
    pub(super) fn finish(mut self, source: &Source) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            let message = format!("{} more findings about this skill are not shown", self.dropped);
            self.add_for_file(&codes::REVIEW_CUT, message, source);
        }
        self.list
    }

    /// Truncates a text to a limit, and reports it.
    pub(super) fn clip_text(
        &mut self,
        text: String,
        chars_max: usize,
        source: &Source,
        span: Span,
    ) -> String {
        // A text has at least as many bytes as characters.
        if text.len() <= chars_max || text.chars().count() <= chars_max {
            return text;
        }
        let message = format!("this text has more than {chars_max} characters, the limit");
        self.add(&codes::REVIEW_CUT, message, source, span);
        let mut out: String = text.chars().take(chars_max - 1).collect();
        out.truncate(out.trim_end().len());
        out.push('…');
        out
    }

    /// Truncates a list to a limit, and reports it.
    pub(super) fn cap_list<T>(
        &mut self,
        list: &mut Vec<T>,
        max: usize,
        what: &str,
        source: &Source,
        span_of: impl Fn(&T) -> Span,
    ) {
        if list.len() > max {
            let message = format!("there are {} {what}; the limit is {max}", list.len());
            self.add(&codes::REVIEW_CUT, message, source, span_of(&list[max]));
            list.truncate(max);
        }
    }
}

/// A text with its span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BulletText {
    pub(super) text: String,
    pub(super) span: Span,
}

/// Collects the texts of list items. An item that ends in a colon becomes a prefix of the items nested below it.
pub(super) fn collect_bullets<'a>(
    items: impl Iterator<Item = (&'a DocumentBlock, &'a DocumentItem)>,
    text_of: fn(&DocumentItem) -> String,
) -> Vec<BulletText> {
    let mut out = Vec::new();
    // The current prefix: its depth, its text, and whether an item has used it.
    let mut lead: Option<(usize, BulletText, bool)> = None;
    for (block, item) in items {
        if let Some((depth, bullet, used)) = lead.take() {
            if item.depth > depth {
                lead = Some((depth, bullet, true));
            } else if !used {
                out.push(without_colon(bullet));
            }
        }
        let text = text_of(item);
        let bullet = BulletText { text, span: block.span };
        if bullet.text.is_empty() {
            continue;
        }
        if lead.is_none() && bullet.text.ends_with(':') {
            lead = Some((item.depth, bullet, false));
            continue;
        }
        match &lead {
            Some((_, above, _)) => {
                let above: String = above.text.chars().take(REVIEW_TEXT_CHARS_MAX).collect();
                out.push(BulletText { text: format!("{above} {}", bullet.text), ..bullet });
            }
            None => out.push(bullet),
        }
    }
    out.extend(lead.filter(|(_, _, used)| !used).map(|(_, bullet, _)| without_colon(bullet)));
    out
}

fn without_colon(bullet: BulletText) -> BulletText {
    BulletText { text: bullet.text.trim_end_matches([':', ' ']).to_owned(), ..bullet }
}

/// Selects the list items.
pub(super) fn select_items<'a>(
    blocks: impl IntoIterator<Item = &'a DocumentBlock>,
) -> impl Iterator<Item = (&'a DocumentBlock, &'a DocumentItem)> {
    blocks.into_iter().filter_map(|block| match &block.kind {
        DocumentBlockKind::Item(item) => Some((block, item)),
        _ => None,
    })
}

/// Selects the paragraphs.
pub(super) fn select_paragraphs<'a>(
    blocks: impl IntoIterator<Item = &'a DocumentBlock>,
) -> impl Iterator<Item = (&'a DocumentBlock, &'a InlineMarkdown)> {
    blocks.into_iter().filter_map(|block| match &block.kind {
        DocumentBlockKind::Paragraph(inline) => Some((block, inline)),
        _ => None,
    })
}
