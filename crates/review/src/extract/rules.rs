//! Extracts false-positive rules and priority files.

use repertoire_text::Source;

use super::limits::{REVIEW_GLOBS_MAX, REVIEW_RULES_MAX, REVIEW_TEXT_CHARS_MAX};
use crate::codes;

use super::PriorityFiles;
use super::collect::{
    BulletText, ReviewDiagnostics, collect_bullets, select_items, select_paragraphs,
};
use super::document::{
    DocumentBlock, DocumentBlockKind, DocumentItem, DocumentTable, DocumentTitle, MarkdownDocument,
};
use super::glob;
use super::inline::{InlineMarkdown, normalise_words};
use super::label::parse_lead;
use super::patterns::report_missing_section;
use super::pointer::{self, SharedFiles, block_targets};
use super::sections::{is_false_positives, is_flagged, is_left_out, is_priority};

/// Finds the false-positive rules of a skill.
pub(super) fn find_false_positives(
    document: &MarkdownDocument,
    subjects: &[Vec<String>],
    shared: &mut SharedFiles<'_>,
    out: &mut ReviewDiagnostics,
) -> Vec<String> {
    let section = section_blocks(document, is_false_positives);
    let section = without_flagged(document, section);
    let mut rules = FalsePositiveRules::default();
    rules.add_bullets(labelled_rules(document), document, out);
    rules.add_bullets(rules_of(&section), document, out);
    for pointer in pointer::find_pointers(&section) {
        if pointer.path.is_empty() {
            continue;
        }
        let Some(target) = shared.open_file(&pointer, &document.source, out) else { continue };
        match pointer::blocks_meant(target, pointer.anchor.as_deref(), subjects, is_item) {
            Some(mut blocks) => {
                // In a file about more than false positives, use the sections about them.
                let about = target.titles_below(is_false_positives);
                let is_about = |block: &&DocumentBlock| block.title.is_some_and(|at| about[at]);
                if pointer.anchor.is_none() && blocks.iter().any(|b| is_item(b) && is_about(b)) {
                    blocks.retain(is_about);
                }
                rules.add_bullets(rules_of(&without_flagged(target, blocks)), target, out);
            }
            None => report_missing_section(&pointer, &document.source, out),
        }
    }
    rules.list
}

fn is_item(block: &DocumentBlock) -> bool {
    matches!(block.kind, DocumentBlockKind::Item(_))
}

fn without_flagged<'a>(
    document: &MarkdownDocument,
    mut blocks: Vec<&'a DocumentBlock>,
) -> Vec<&'a DocumentBlock> {
    let flagged = document.titles_below(is_flagged);
    blocks.retain(|block| block.title.is_none_or(|at| !flagged[at]));
    blocks
}

/// The bullets of a section, or its paragraphs if it has none. Blocks that point to another file are not rules. Code
/// keeps its backticks, which tell the review which files and lines a rule is about.
fn rules_of(section: &[&DocumentBlock]) -> Vec<BulletText> {
    let says_something = |block: &&DocumentBlock| block_targets(block).is_empty();
    let own = section.iter().copied().filter(says_something);
    let mut found = collect_bullets(select_items(own.clone()), DocumentItem::marked_text);
    if found.is_empty() {
        let prose =
            select_paragraphs(own).map(|(block, inline)| (block.span, inline.marked_text()));
        let prose = prose.filter(|(_, text)| !text.ends_with(':'));
        found.extend(prose.map(|(span, text)| BulletText { text, span }));
    }
    found
}

/// Labelled paragraphs such as `**False positives:** fixtures and samples`.
fn labelled_rules(document: &MarkdownDocument) -> Vec<BulletText> {
    let of_block = |(block, inline): (&DocumentBlock, &InlineMarkdown)| {
        let lead = parse_lead(inline)
            .filter(|lead| normalise_words(&lead.name).contains("false positive"))?;
        let text = lead.rest.marked_text();
        (lead.parted && !text.is_empty()).then_some(BulletText { text, span: block.span })
    };
    select_paragraphs(blocks_outside(document, is_left_out)).filter_map(of_block).collect()
}

/// The rules that were found so far, without duplicates.
#[derive(Default)]
struct FalsePositiveRules {
    list: Vec<String>,
    is_cut: bool,
}

impl FalsePositiveRules {
    fn add_bullets(
        &mut self,
        bullets: Vec<BulletText>,
        document: &MarkdownDocument,
        out: &mut ReviewDiagnostics,
    ) {
        for bullet in bullets {
            if self.is_cut {
                return;
            }
            if self.list.len() == REVIEW_RULES_MAX {
                self.is_cut = true;
                let message = format!(
                    "there are more than {REVIEW_RULES_MAX} false-positive rules, the limit"
                );
                out.add(&codes::REVIEW_CUT, message, &document.source, bullet.span);
                return;
            }
            let source = &document.source;
            let text = out.clip_text(bullet.text, REVIEW_TEXT_CHARS_MAX, source, bullet.span);
            if !self.list.contains(&text) {
                self.list.push(text);
            }
        }
    }
}

/// Finds the priority files of a skill.
pub(super) fn find_priority_files(
    document: &MarkdownDocument,
    out: &mut ReviewDiagnostics,
) -> Option<PriorityFiles> {
    let source = &document.source;
    let mut patterns: Vec<(_, String)> = Vec::new();
    let section = section_blocks(document, is_priority);
    for block in &section {
        let (globs, broken) = match &block.kind {
            DocumentBlockKind::Item(item) => {
                glob::globs_of_item(&item.lead, block.span.slice(source.text()))
            }
            // In prose, only code is taken for a glob.
            DocumentBlockKind::Paragraph(inline) if inline.code_texts().next().is_some() => {
                glob::globs_of_item(inline, "")
            }
            DocumentBlockKind::Table(table) => globs_of_table(table, source),
            DocumentBlockKind::Paragraph(_) | DocumentBlockKind::Title => continue,
        };
        if let Some(first) = broken.first() {
            let message = format!("`{first}` is not a glob");
            out.add(&codes::REVIEW_GLOB, message, source, block.span);
        }
        for glob in globs {
            let is_new = !patterns.iter().take(REVIEW_GLOBS_MAX).any(|(_, known)| *known == glob);
            if is_new {
                patterns.push((block.span, glob));
            }
        }
    }
    if let Some(first) = section.first().filter(|_| patterns.is_empty()) {
        let message = "this section names no files that come first".to_owned();
        out.add(&codes::REVIEW_GLOB, message, source, first.span);
    }
    out.cap_list(
        &mut patterns,
        REVIEW_GLOBS_MAX,
        "globs of priority files",
        source,
        |(span, _)| *span,
    );
    let patterns: Vec<String> = patterns.into_iter().map(|(_, glob)| glob).collect();
    (!patterns.is_empty()).then_some(PriorityFiles { patterns })
}

/// Returns the globs in the cells of a table, and the texts that look like a glob but are invalid.
fn globs_of_table(table: &DocumentTable, source: &Source) -> (Vec<String>, Vec<String>) {
    let (mut globs, mut broken) = (Vec::new(), Vec::new());
    for cell in table.rows.iter().flat_map(|row| &row.cells) {
        let written = cell.span.slice(source.text()).trim().trim_matches('|');
        let (found, odd) = glob::globs_of_item(&cell.inline, written);
        globs.extend(found);
        broken.extend(odd);
    }
    (globs, broken)
}

/// The blocks of the sections that `is_kind` accepts, except those about when to use the skill.
pub(super) fn section_blocks(
    document: &MarkdownDocument,
    is_kind: impl Fn(&DocumentTitle) -> bool,
) -> Vec<&DocumentBlock> {
    let inside = document.titles_below(is_kind);
    let mut blocks = blocks_outside(document, is_left_out);
    blocks.retain(|block| block.title.is_some_and(|at| inside[at]));
    blocks
}

/// The blocks that are not below a title that `is_kind` accepts.
pub(super) fn blocks_outside(
    document: &MarkdownDocument,
    is_kind: impl Fn(&DocumentTitle) -> bool,
) -> Vec<&DocumentBlock> {
    let inside = document.titles_below(is_kind);
    document.blocks.iter().filter(|block| block.title.is_none_or(|at| !inside[at])).collect()
}
