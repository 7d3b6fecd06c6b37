//! Extracts the approach, mindset, steps and questions of a methodology skill.

use repertoire_text::Span;

use super::limits::{
    REVIEW_APPROACH_CHARS_MAX, REVIEW_QUESTIONS_MAX, REVIEW_STEPS_MAX, REVIEW_TEXT_CHARS_MAX,
};

use super::ReviewMethodology;
use super::collect::{BulletText, ReviewDiagnostics, select_items, select_paragraphs};
use super::document::{
    DocumentBlock, DocumentBlockKind, DocumentItem, DocumentTitle, MarkdownDocument,
};
use super::inline::{InlineMarkdown, contains_words, normalise_words};
use super::label::parse_lead;
use super::rules::{blocks_outside, section_blocks};
use super::sections::{
    is_approach, is_illustration, is_left_out, is_mindset, is_overview, is_questions, is_steps,
    is_verification,
};

/// Finds the methodology of a document. Returns `None` if it has none.
pub(super) fn find_methodology(
    document: &MarkdownDocument,
    out: &mut ReviewDiagnostics,
) -> Option<ReviewMethodology> {
    let source = &document.source;
    let clip = |bullet: Option<BulletText>, out: &mut ReviewDiagnostics| {
        bullet.map(|found| out.clip_text(found.text, REVIEW_APPROACH_CHARS_MAX, source, found.span))
    };
    let method = ReviewMethodology {
        approach: clip(find_approach(document), out).unwrap_or_default(),
        mindset: clip(find_mindset(document), out).unwrap_or_default(),
        steps: clip_texts(find_steps(document), REVIEW_STEPS_MAX, "steps", document, out),
        questions: clip_texts(
            find_questions(document),
            REVIEW_QUESTIONS_MAX,
            "questions",
            document,
            out,
        ),
    };
    (method != ReviewMethodology::default()).then_some(method)
}

fn clip_texts(
    mut bullets: Vec<BulletText>,
    max: usize,
    what: &str,
    document: &MarkdownDocument,
    out: &mut ReviewDiagnostics,
) -> Vec<String> {
    let source = &document.source;
    out.cap_list(&mut bullets, max, what, source, |bullet| bullet.span);
    bullets
        .into_iter()
        .map(|bullet| out.clip_text(bullet.text, REVIEW_TEXT_CHARS_MAX, source, bullet.span))
        .collect()
}

/// The labelled approach, or the first statement of a suitable section, or else of the document.
fn find_approach(document: &MarkdownDocument) -> Option<BulletText> {
    let all = blocks_without(document, |_| false);
    find_labelled(&all, |name| matches!(name, "core principle" | "approach"))
        .or_else(|| first_prose(&section_blocks(document, is_approach)))
        .or_else(|| first_prose(&section_blocks(document, is_overview)))
        .or_else(|| first_prose(&blocks_without(document, |title| title.rank > 1)))
        .or_else(|| first_prose(&blocks_without(document, is_illustration)))
}

/// `**Core principle:** Find the cause first.`
fn find_labelled(blocks: &[&DocumentBlock], is_name: impl Fn(&str) -> bool) -> Option<BulletText> {
    select_paragraphs(blocks.iter().copied()).find_map(|(block, inline)| {
        let lead = parse_lead(inline)
            .filter(|lead| lead.parted && is_name(&normalise_words(&lead.name)))?;
        let text = lead.rest.plain_text();
        (!text.is_empty()).then_some(BulletText { text, span: block.span })
    })
}

/// The first paragraph that stands on its own: neither a labelled remark nor an introduction to a list.
fn first_prose(blocks: &[&DocumentBlock]) -> Option<BulletText> {
    let mut prose = select_paragraphs(blocks.iter().copied());
    let (block, inline) = prose.find(|(block, inline)| !block.quoted && is_statement(inline))?;
    Some(BulletText { text: inline.plain_text(), span: block.span })
}

fn is_statement(inline: &InlineMarkdown) -> bool {
    let is_remark = parse_lead(inline).is_some_and(|lead| lead.parted && !lead.rest.is_blank());
    !is_remark && !inline.plain_text().ends_with(':')
}

/// The labelled mindset, or the items of its section joined in one line.
fn find_mindset(document: &MarkdownDocument) -> Option<BulletText> {
    let all = blocks_without(document, |_| false);
    let named = |name: &str| name == "mindset" || name == "principles" || name == "key principles";
    if let Some(found) = find_labelled(&all, named) {
        return Some(found);
    }
    let named =
        section_blocks(document, |title| contains_words(&normalise_words(&title.text), "mindset"));
    let other = || section_blocks(document, |title| is_mindset(title) && !is_approach(title));
    let section = if named.is_empty() { other() } else { named };
    let mut bullets: Vec<BulletText> = select_items(section.iter().copied())
        .filter(|(_, item)| item.depth == 1)
        .map(|(block, item)| BulletText { text: item.lead.plain_text(), span: block.span })
        .filter(|bullet| !bullet.text.is_empty())
        .collect();
    if bullets.is_empty() {
        return first_prose(&section);
    }
    let span = Span { start: bullets[0].span.start, end: bullets[bullets.len() - 1].span.end };
    // More items than characters that are kept.
    bullets.truncate(REVIEW_APPROACH_CHARS_MAX);
    let last = bullets.len() - 1;
    let joined: Vec<&str> = bullets
        .iter()
        .enumerate()
        .map(|(at, bullet)| {
            if at == last {
                bullet.text.as_str()
            } else {
                bullet.text.trim_end_matches(['.', ';', ','])
            }
        })
        .collect();
    Some(BulletText { text: joined.join("; "), span })
}

/// Finds the steps. Prefers the numbered items of step sections, or their numbered titles if most of these have no
/// numbered items. Falls back to numbered titles and items of the whole document, then to titles and bullets of the
/// step sections. Verification checklists come last, since they describe a result instead of an action.
fn find_steps(document: &MarkdownDocument) -> Vec<BulletText> {
    let about = document.titles_below(|title| is_steps(title) && !is_not_steps(title));
    let is_about = |block: &&DocumentBlock| block.title.is_some_and(|at| about[at]);
    let all = blocks_without(document, |title| is_illustration(title) || is_not_steps(title));
    let at_the_end =
        section_blocks(document, |title| is_verification(title) && !is_questions(title));
    let inside: Vec<&DocumentBlock> = all.iter().copied().filter(is_about).collect();
    let phases_inside = numbered_titles(document, &inside);
    let is_divided =
        phases_inside.len() > 1 && !holds_most(&phases_inside, &numbered_items(&inside));
    let mut found = if is_divided { phases_inside.clone() } else { numbered_items(&inside) };
    let others: [&dyn Fn() -> Vec<BulletText>; 8] = [
        &|| phases_inside.clone(),
        &|| numbered_titles(document, &all),
        &|| numbered_items(&all),
        &|| titles_inside(document, &inside),
        &|| list_bullets(&inside, |item| item.depth == 1),
        &|| stage_titles(document, &all),
        &|| numbered_items(&at_the_end),
        &|| list_bullets(&at_the_end, |item| item.depth == 1),
    ];
    for other in others {
        if found.is_empty() {
            found = other();
        }
    }
    found
}

/// Returns true for titles whose lists are not steps, even within a step section.
fn is_not_steps(title: &DocumentTitle) -> bool {
    is_questions(title) || is_verification(title)
}

fn numbered_items(blocks: &[&DocumentBlock]) -> Vec<BulletText> {
    list_bullets(blocks, |item| item.numbered && item.depth == 1)
}

/// Returns true if at least half of the numbered titles have numbered items below them. Both are in document order.
fn holds_most(titles: &[BulletText], items: &[BulletText]) -> bool {
    let has_items = |at: usize| {
        let start = titles[at].span.start;
        let end = titles.get(at + 1).map_or(u32::MAX, |next| next.span.start);
        let first = items.partition_point(|item| item.span.start < start);
        items.get(first).is_some_and(|item| item.span.start < end)
    };
    let held = (0..titles.len()).filter(|at| has_items(*at)).count();
    held * 2 >= titles.len()
}

fn list_bullets(
    blocks: &[&DocumentBlock],
    counts: impl Fn(&DocumentItem) -> bool,
) -> Vec<BulletText> {
    select_items(blocks.iter().copied())
        .filter(|(_, item)| counts(item))
        .map(|(block, item)| BulletText { text: item.lead.plain_text(), span: block.span })
        .map(|bullet| BulletText { text: bullet.text.trim_end_matches(':').to_owned(), ..bullet })
        .filter(|bullet| !bullet.text.is_empty() && !bullet.text.ends_with('?'))
        .collect()
}

/// Headings such as `Phase 1: Look` and `2. Think`, without their numbers.
fn numbered_titles(document: &MarkdownDocument, blocks: &[&DocumentBlock]) -> Vec<BulletText> {
    let of_block = |block: &&DocumentBlock| {
        let title = title_of(document, block)?;
        let text = without_number(&title.text)?;
        Some(BulletText { text: text.to_owned(), span: block.span })
    };
    blocks.iter().filter_map(of_block).collect()
}

/// Headings such as `RED - Write a failing test`. A single one is not a sequence.
fn stage_titles(document: &MarkdownDocument, blocks: &[&DocumentBlock]) -> Vec<BulletText> {
    let of_block = |block: &&DocumentBlock| {
        let title = title_of(document, block).filter(|title| is_stage(&title.text))?;
        Some(BulletText { text: title.text.clone(), span: block.span })
    };
    let found: Vec<BulletText> = blocks.iter().filter_map(of_block).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// Returns true for a heading that starts with a word in capitals and a dash or colon.
fn is_stage(text: &str) -> bool {
    let name = text.split([' ', ':']).next().unwrap_or("");
    let rest = text[name.len()..].trim_start();
    name.len() > 2
        && name.chars().all(|c| c.is_ascii_uppercase())
        && rest.starts_with(['-', '–', '—', ':'])
}

/// The titles directly below those of step sections.
fn titles_inside(document: &MarkdownDocument, blocks: &[&DocumentBlock]) -> Vec<BulletText> {
    let of_block = |block: &&DocumentBlock| {
        let title = title_of(document, block)?;
        let text = title.text.trim_end_matches(':').to_owned();
        let is_direct = title.parent.is_some_and(|above| is_steps(&document.titles[above]));
        (is_direct && !is_steps(title) && !text.is_empty())
            .then_some(BulletText { text, span: block.span })
    };
    blocks.iter().filter_map(of_block).collect()
}

fn title_of<'a>(
    document: &'a MarkdownDocument,
    block: &DocumentBlock,
) -> Option<&'a DocumentTitle> {
    let is_title = matches!(block.kind, DocumentBlockKind::Title);
    block.title.filter(|_| is_title).map(|at| &document.titles[at])
}

/// The text after `Phase 1:`, `Step 2 -`, `3.` or `1.1`; the whole title if nothing follows. Returns `None` if the
/// title has no number.
fn without_number(title: &str) -> Option<&str> {
    let text = title.trim_start();
    let word = ["phase ", "step ", "stage "]
        .iter()
        .find(|word| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
    let number = word.map_or(text, |word| &text[word.len()..]);
    let (rest, is_dotted) = after_number(number);
    let mark = rest.chars().next();
    let is_numbered = rest.len() < number.len()
        && (mark.is_none_or(|c| matches!(c, '.' | ':' | ')' | ' ' | '-' | '–' | '—')))
        && (word.is_some()
            || mark.is_some_and(|c| matches!(c, '.' | ')' | ':') || is_dotted && c == ' '));
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ".:)-–—".contains(c));
    is_numbered.then_some(if rest.is_empty() { title } else { rest })
}

/// The text after a number, and whether the number has several parts, as in `1.2`.
fn after_number(text: &str) -> (&str, bool) {
    let mut rest = without_digits(text);
    let mut is_dotted = false;
    while let Some(after) = rest.strip_prefix('.').filter(|_| rest.len() < text.len())
        && after.starts_with(|c: char| c.is_ascii_digit())
    {
        rest = without_digits(after);
        is_dotted = true;
    }
    (rest, is_dotted)
}

fn without_digits(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// Items that end in a question mark, and questions in the prose of question sections, without duplicates.
fn find_questions(document: &MarkdownDocument) -> Vec<BulletText> {
    let about = document.titles_below(is_questions);
    let all = blocks_without(document, is_illustration);
    let mut out: Vec<BulletText> = Vec::new();
    let mut add = |text: &str, span: Span| {
        // Collecting one more than the limit is enough to report that some were cut.
        if out.len() <= REVIEW_QUESTIONS_MAX && !out.iter().any(|known| known.text == text) {
            out.push(BulletText { text: text.to_owned(), span });
        }
    };
    for block in all {
        match &block.kind {
            DocumentBlockKind::Item(item) => {
                let text = item.lead.plain_text();
                if let Some(question) = question_of(&text) {
                    add(question, block.span);
                }
            }
            DocumentBlockKind::Paragraph(inline) if block.title.is_some_and(|at| about[at]) => {
                let text = inline.plain_text();
                split_sentences(&text)
                    .filter(|one| one.ends_with('?'))
                    .for_each(|one| add(one, block.span));
            }
            DocumentBlockKind::Paragraph(_)
            | DocumentBlockKind::Table(_)
            | DocumentBlockKind::Title => {}
        }
    }
    out
}

/// Returns the item if it is a question, without a remark in parentheses after it.
fn question_of(text: &str) -> Option<&str> {
    if text.ends_with('?') {
        return Some(text);
    }
    let (question, remark) = text.split_once("? (")?;
    let is_remark = remark.find(')') == Some(remark.len() - 1);
    is_remark.then(|| &text[..question.len() + 1])
}

fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?']).map(|one| without_open_quote(one.trim()))
}

/// Removes an opening quotation mark if the sentence does not contain the closing one.
fn without_open_quote(text: &str) -> &str {
    let is_open = text.matches('"').count() % 2 == 1 || text.contains('“') && !text.contains('”');
    if is_open { text.trim_start_matches(['"', '“']) } else { text }
}

/// Blocks that are below neither a left-out title nor one that `is_kind` accepts.
fn blocks_without(
    document: &MarkdownDocument,
    is_kind: impl Fn(&DocumentTitle) -> bool,
) -> Vec<&DocumentBlock> {
    blocks_outside(document, |title| is_left_out(title) || is_kind(title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_front_of_a_title_is_dropped() {
        let check = |title, text| assert_eq!(without_number(title), text);
        check("Phase 1: Look", Some("Look"));
        check("Step 2 - Think", Some("Think"));
        check("3. Act", Some("Act"));
        check("1.1 Design and Architecture", Some("Design and Architecture"));
        check("Step 2.10: Names", Some("Names"));
        check("1.2.3. Names", Some("Names"));
        check("Phase 4", Some("Phase 4"));
        check("Phased rollout", None);
        check("3 rules", None);
        check("2FA", None);
    }
}
