//! Extracts false-positive rules and priority files.

use repertoire_text::Source;

use super::limits::{REVIEW_GLOBS_MAX, REVIEW_RULES_MAX, REVIEW_TEXT_CHARS_MAX};
use crate::codes;

use super::PriorityFiles;
use super::found::{Bullet, Findings, bullets, items, paragraphs};
use super::glob;
use super::inline::{Inline, words};
use super::label::lead_of;
use super::patterns::no_section;
use super::pointer::{self, Shared, targets_of};
use super::sections::{is_false_positives, is_flagged, is_left_out, is_priority};
use super::tree::{Block, Document, Item, Kind, Table, Title};

/// Finds the false-positive rules of a skill.
pub(super) fn false_positives(
    document: &Document,
    subjects: &[Vec<String>],
    shared: &mut Shared<'_>,
    out: &mut Findings,
) -> Vec<String> {
    let section = section(document, is_false_positives);
    let section = without_flagged(document, section);
    let mut rules = Rules::default();
    rules.extend(labelled(document), document, out);
    rules.extend(rules_of(&section), document, out);
    for pointer in pointer::find(&section) {
        if pointer.path.is_empty() {
            continue;
        }
        let Some(target) = shared.open(&pointer, &document.source, out) else { continue };
        match pointer::meant(target, pointer.anchor.as_deref(), subjects, is_item) {
            Some(mut blocks) => {
                // In a file about more than false positives, use the sections about them.
                let about = target.titles_below(is_false_positives);
                let is_about = |block: &&Block| block.title.is_some_and(|at| about[at]);
                if pointer.anchor.is_none() && blocks.iter().any(|b| is_item(b) && is_about(b)) {
                    blocks.retain(is_about);
                }
                rules.extend(rules_of(&without_flagged(target, blocks)), target, out);
            }
            None => no_section(&pointer, &document.source, out),
        }
    }
    rules.list
}

fn is_item(block: &Block) -> bool {
    matches!(block.kind, Kind::Item(_))
}

fn without_flagged<'a>(document: &Document, mut blocks: Vec<&'a Block>) -> Vec<&'a Block> {
    let flagged = document.titles_below(is_flagged);
    blocks.retain(|block| block.title.is_none_or(|at| !flagged[at]));
    blocks
}

/// The bullets of a section, or its paragraphs if it has none. Blocks that point to another file are not rules. Code
/// keeps its backticks, which tell the review which files and lines a rule is about.
fn rules_of(section: &[&Block]) -> Vec<Bullet> {
    let says_something = |block: &&Block| targets_of(block).is_empty();
    let own = section.iter().copied().filter(says_something);
    let mut found = bullets(items(own.clone()), Item::marked);
    if found.is_empty() {
        let prose = paragraphs(own).map(|(block, inline)| (block.span, inline.marked()));
        let prose = prose.filter(|(_, text)| !text.ends_with(':'));
        found.extend(prose.map(|(span, text)| Bullet { text, span }));
    }
    found
}

/// Labelled paragraphs such as `**False positives:** fixtures and samples`.
fn labelled(document: &Document) -> Vec<Bullet> {
    let of_block = |(block, inline): (&Block, &Inline)| {
        let lead = lead_of(inline).filter(|lead| words(&lead.name).contains("false positive"))?;
        let text = lead.rest.marked();
        (lead.parted && !text.is_empty()).then_some(Bullet { text, span: block.span })
    };
    paragraphs(outside(document, is_left_out)).filter_map(of_block).collect()
}

/// The rules that were found so far, without duplicates.
#[derive(Default)]
struct Rules {
    list: Vec<String>,
    is_cut: bool,
}

impl Rules {
    fn extend(&mut self, bullets: Vec<Bullet>, document: &Document, out: &mut Findings) {
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
            let text = out.clip(bullet.text, REVIEW_TEXT_CHARS_MAX, source, bullet.span);
            if !self.list.contains(&text) {
                self.list.push(text);
            }
        }
    }
}

/// Finds the priority files of a skill.
pub(super) fn priority_files(document: &Document, out: &mut Findings) -> Option<PriorityFiles> {
    let source = &document.source;
    let mut patterns: Vec<(_, String)> = Vec::new();
    let section = section(document, is_priority);
    for block in &section {
        let (globs, broken) = match &block.kind {
            Kind::Item(item) => glob::of_item(&item.lead, block.span.slice(source.text())),
            // In prose, only code is taken for a glob.
            Kind::Paragraph(inline) if inline.codes().next().is_some() => glob::of_item(inline, ""),
            Kind::Table(table) => of_table(table, source),
            Kind::Paragraph(_) | Kind::Title => continue,
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
    out.cap(&mut patterns, REVIEW_GLOBS_MAX, "globs of priority files", source, |(span, _)| *span);
    let patterns: Vec<String> = patterns.into_iter().map(|(_, glob)| glob).collect();
    (!patterns.is_empty()).then_some(PriorityFiles { patterns })
}

/// Returns the globs in the cells of a table, and the texts that look like a glob but are invalid.
fn of_table(table: &Table, source: &Source) -> (Vec<String>, Vec<String>) {
    let (mut globs, mut broken) = (Vec::new(), Vec::new());
    for cell in table.rows.iter().flat_map(|row| &row.cells) {
        let written = cell.span.slice(source.text()).trim().trim_matches('|');
        let (found, odd) = glob::of_item(&cell.inline, written);
        globs.extend(found);
        broken.extend(odd);
    }
    (globs, broken)
}

/// The blocks of the sections that `is_kind` accepts, except those about when to use the skill.
pub(super) fn section(document: &Document, is_kind: impl Fn(&Title) -> bool) -> Vec<&Block> {
    let inside = document.titles_below(is_kind);
    let mut blocks = outside(document, is_left_out);
    blocks.retain(|block| block.title.is_some_and(|at| inside[at]));
    blocks
}

/// The blocks that are not below a title that `is_kind` accepts.
pub(super) fn outside(document: &Document, is_kind: impl Fn(&Title) -> bool) -> Vec<&Block> {
    let inside = document.titles_below(is_kind);
    document.blocks.iter().filter(|block| block.title.is_none_or(|at| !inside[at])).collect()
}
