//! Finds focus areas: the categories that a skill looks at, with a severity and checks.

use repertoire_text::Span;

use super::limits::{
    REVIEW_AREAS_MAX, REVIEW_CHECKS_MAX, REVIEW_NAME_CHARS_MAX, REVIEW_TEXT_CHARS_MAX,
};
use crate::codes;

use super::collect::{BulletText, ReviewDiagnostics, collect_bullets};
use super::document::{
    DocumentBlock, DocumentBlockKind, DocumentItem, DocumentTitle, MarkdownDocument,
};
use super::inline::InlineMarkdown;
use super::label::{
    bare_severity, foreign_severity, parse_lead, split_severity, without_section_number,
};
use super::sections;
use super::{FocusArea, ReviewSeverity};

/// Finds the focus areas of a document: those in sections for them, or else those in checklists.
pub(super) fn find_areas(
    document: &MarkdownDocument,
    out: &mut ReviewDiagnostics,
) -> Vec<FocusArea> {
    report_foreign_severities(document, out);
    let marked = find_areas_in(document, sections::is_focus, out);
    if !marked.is_empty() {
        return marked;
    }
    let mut listed = find_areas_in(document, sections::is_checklist, out);
    listed.retain(|area| !area.checks.is_empty());
    listed
}

/// Reports labels with a severity of another scale.
fn report_foreign_severities(document: &MarkdownDocument, out: &mut ReviewDiagnostics) {
    let meanings = title_roles(document, sections::is_focus);
    for block in &document.blocks {
        let is_closed = block.title.is_some_and(|at| meanings[at] == TitleRole::Closed);
        let name = match (&block.kind, block.title) {
            (DocumentBlockKind::Title, Some(at)) => document.titles[at].text.clone(),
            (DocumentBlockKind::Item(item), _) => {
                parse_lead(&item.lead).map_or_else(String::new, |lead| lead.name)
            }
            _ => continue,
        };
        if let Some(word) = foreign_severity(&name).filter(|_| !is_closed) {
            let message = format!("`{word}` is no severity, so `{name}` has none");
            out.add(&codes::REVIEW_SEVERITY, message, &document.source, block.span);
        }
    }
}

/// Finds the areas in sections that `is_container` accepts, and those with a severity anywhere.
fn find_areas_in(
    document: &MarkdownDocument,
    is_container: fn(&DocumentTitle) -> bool,
    out: &mut ReviewDiagnostics,
) -> Vec<FocusArea> {
    let mut reader = AreaReader::new(document, is_container);
    for block in &document.blocks {
        reader.read_block(block);
    }
    let source = &document.source;
    let mut areas = Vec::new();
    for draft in reader.drafts {
        let span = draft.span;
        let Some(mut checks) = draft.collect_checks() else { continue };
        if areas.len() == REVIEW_AREAS_MAX {
            let message = format!("there are more than {REVIEW_AREAS_MAX} focus areas, the limit");
            out.add(&codes::REVIEW_CUT, message, source, span);
            break;
        }
        out.cap_list(&mut checks, REVIEW_CHECKS_MAX, "checks here", source, |check| check.span);
        let checks = checks
            .into_iter()
            .map(|check| out.clip_text(check.text, REVIEW_TEXT_CHARS_MAX, source, check.span))
            .collect();
        let name = without_section_number(&draft.name).to_owned();
        let name = out.clip_text(name, REVIEW_NAME_CHARS_MAX, source, span);
        areas.push(FocusArea { name, severity: draft.severity, checks });
    }
    areas
}

/// The role of a title for the blocks below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TitleRole {
    /// No role.
    None,
    /// No role, and none for the titles below it either.
    Closed,
    /// The titles and bold items below it are areas.
    Container(Option<ReviewSeverity>),
    Area(Option<ReviewSeverity>),
    /// Introduces the checks of an area above it, given by the index of that area's title.
    Part(usize, Option<ReviewSeverity>),
}

impl TitleRole {
    /// The severity that titles and items below inherit. The outer `None` means that they are not areas.
    fn inherited_severity(self) -> Option<Option<ReviewSeverity>> {
        match self {
            TitleRole::None | TitleRole::Closed => None,
            TitleRole::Container(severity)
            | TitleRole::Area(severity)
            | TitleRole::Part(_, severity) => Some(severity),
        }
    }
}

fn title_roles(
    document: &MarkdownDocument,
    is_container: fn(&DocumentTitle) -> bool,
) -> Vec<TitleRole> {
    let mut out: Vec<TitleRole> = Vec::with_capacity(document.titles.len());
    for title in &document.titles {
        let above = title.parent.map_or(TitleRole::None, |at| out[at]);
        out.push(title_role(title, above, is_container));
    }
    // Let each introduction refer to the nearest area above it.
    for at in 0..out.len() {
        if let (TitleRole::Part(_, severity), Some(parent)) = (out[at], document.titles[at].parent)
        {
            out[at] = match out[parent] {
                TitleRole::Part(area, _) => TitleRole::Part(area, severity),
                _ => TitleRole::Part(parent, severity),
            };
        }
    }
    out
}

fn title_role(
    title: &DocumentTitle,
    above: TitleRole,
    is_container: fn(&DocumentTitle) -> bool,
) -> TitleRole {
    let belongs_elsewhere = sections::is_left_out(title)
        || sections::is_auto_validated(title)
        || sections::is_false_positives(title)
        || sections::is_priority(title)
        || sections::is_about_reports(title);
    if above == TitleRole::Closed || belongs_elsewhere {
        return TitleRole::Closed;
    }
    let (name, severity) = split_severity(&title.text);
    // Otherwise a severity in the title of the file would turn every section into an area.
    let is_listed = matches!(above, TitleRole::Container(_));
    let inherited = above.inherited_severity().filter(|_| title.rank != 2 || is_listed);
    if is_container(title) {
        return TitleRole::Container(severity.or(inherited.flatten()));
    }
    let Some(inherited) = inherited else {
        return severity.map_or(TitleRole::None, |severity| TitleRole::Area(Some(severity)));
    };
    if matches!(above, TitleRole::Area(_) | TitleRole::Part(..)) && severity.is_none() {
        if sections::is_introduction(title) {
            return TitleRole::Part(0, inherited);
        }
        if sections::is_aside(title) {
            return TitleRole::Closed;
        }
    }
    if let Some(found) = bare_severity(&name).filter(|_| severity.is_none()) {
        return TitleRole::Area(Some(found));
    }
    TitleRole::Area(severity.or(inherited))
}

/// An area under construction.
#[derive(Default)]
struct AreaDraft<'a> {
    name: String,
    severity: Option<ReviewSeverity>,
    span: Span,
    /// The text on the line of its label.
    own: Option<BulletText>,
    items: Vec<(&'a DocumentBlock, &'a DocumentItem)>,
    /// Used as checks if there are no items.
    prose: Vec<BulletText>,
    /// True if a title or item below it is an area as well.
    parted: bool,
}

impl AreaDraft<'_> {
    /// The checks. Returns `None` if it has none and only contains other areas.
    fn collect_checks(&self) -> Option<Vec<BulletText>> {
        let mut checks: Vec<BulletText> = self.own.iter().cloned().collect();
        checks.extend(collect_bullets(self.items.iter().copied(), DocumentItem::plain_text));
        if checks.is_empty() && !self.parted {
            checks.extend(self.prose.iter().cloned());
        }
        (!checks.is_empty() || !self.parted).then_some(checks)
    }
}

/// Collects areas from the blocks of a document.
struct AreaReader<'a> {
    document: &'a MarkdownDocument,
    meanings: Vec<TitleRole>,
    drafts: Vec<AreaDraft<'a>>,
    /// The index of the draft of each title, if it has one.
    of_title: Vec<Option<usize>>,
    /// The depth of the item that is an area, and the index of its draft.
    item: Option<(usize, usize)>,
}

impl<'a> AreaReader<'a> {
    fn new(document: &'a MarkdownDocument, is_container: fn(&DocumentTitle) -> bool) -> Self {
        AreaReader {
            document,
            meanings: title_roles(document, is_container),
            drafts: Vec::new(),
            of_title: vec![None; document.titles.len()],
            item: None,
        }
    }

    fn read_block(&mut self, block: &'a DocumentBlock) {
        match &block.kind {
            DocumentBlockKind::Title => self.read_title(block),
            DocumentBlockKind::Paragraph(inline) => {
                self.item = None;
                if let Some(draft) = self.draft_at(block.title) {
                    let bullet = BulletText { text: inline.plain_text(), span: block.span };
                    let draft = &mut self.drafts[draft];
                    // Text on the line of a label has the span of the label.
                    if draft.span == block.span && !bullet.text.ends_with(':') {
                        draft.own = Some(bullet);
                    } else {
                        draft.prose.push(bullet);
                    }
                }
            }
            DocumentBlockKind::Item(item) => self.read_item(block, item),
            DocumentBlockKind::Table(_) => self.item = None,
        }
    }

    fn read_title(&mut self, block: &'a DocumentBlock) {
        self.item = None;
        let Some(at) = block.title else { return };
        if let TitleRole::Area(severity) = self.meanings[at] {
            let (name, _) = split_severity(&self.document.titles[at].text);
            self.mark_parted_above(self.document.titles[at].parent);
            let draft = self.open_draft(name, severity, block.span, Some(at));
            // The title of the file is an area only if it has checks of its own.
            self.drafts[draft].parted = self.document.titles[at].rank == 1;
        }
    }

    fn read_item(&mut self, block: &'a DocumentBlock, item: &'a DocumentItem) {
        if let Some((depth, draft)) = self.item {
            if item.depth > depth {
                self.drafts[draft].items.push((block, item));
                return;
            }
            self.item = None;
        }
        let meaning = block.title.map_or(TitleRole::None, |at| self.meanings[at]);
        if meaning == TitleRole::Closed {
            return;
        }
        if let Some((name, severity, own)) = area_of_item(item, meaning) {
            self.mark_parted_above(block.title);
            let severity = severity.or(meaning.inherited_severity().flatten());
            let draft = self.open_draft(name, severity, block.span, None);
            self.drafts[draft].own = own.map(|text| BulletText { text, span: block.span });
            self.item = Some((item.depth, draft));
            return;
        }
        if let (TitleRole::Container(severity), Some(at)) = (meaning, block.title)
            && self.of_title[at].is_none()
        {
            let (name, _) = split_severity(&self.document.titles[at].text);
            self.open_draft(name, severity, block.span, Some(at));
        }
        if let Some(draft) = self.draft_at(block.title) {
            self.drafts[draft].items.push((block, item));
        }
    }

    fn open_draft(
        &mut self,
        name: String,
        severity: Option<ReviewSeverity>,
        span: Span,
        title: Option<usize>,
    ) -> usize {
        let draft = self.drafts.len();
        self.drafts.push(AreaDraft { name, severity, span, ..AreaDraft::default() });
        if let Some(at) = title {
            self.of_title[at] = Some(draft);
        }
        draft
    }

    /// The index of the draft that collects the blocks below a title.
    fn draft_at(&self, title: Option<usize>) -> Option<usize> {
        let at = title?;
        match self.meanings[at] {
            TitleRole::Part(area, _) => self.of_title[area],
            TitleRole::Area(_) | TitleRole::Container(_) => self.of_title[at],
            TitleRole::None | TitleRole::Closed => None,
        }
    }

    fn mark_parted_above(&mut self, title: Option<usize>) {
        let mut above = title;
        while let Some(at) = above {
            if let Some(draft) = self.of_title[at] {
                self.drafts[draft].parted = true;
            }
            above = self.document.titles[at].parent;
        }
    }
}

/// Returns the name, severity and further text if an item is an area. An item with a severity is an area anywhere,
/// others only in a container.
fn area_of_item(
    item: &DocumentItem,
    meaning: TitleRole,
) -> Option<(String, Option<ReviewSeverity>, Option<String>)> {
    let is_listed = matches!(meaning, TitleRole::Container(_));
    if let Some(lead) = parse_lead(&item.lead).filter(|lead| !lead.name.is_empty()) {
        let is_label = lead.parted || lead.rest.is_blank();
        let counts = is_label && (lead.severity.is_some() || is_listed);
        return counts.then(|| (lead.name, lead.severity, non_empty_text(&lead.rest)));
    }
    let plain = item.lead.plain_text();
    let (name, severity) = split_severity(&plain);
    let ends_there = plain.trim_end_matches([':', ' ']).ends_with([')', ']']);
    (is_listed && severity.is_some() && ends_there).then_some((name, severity, None))
}

fn non_empty_text(inline: &InlineMarkdown) -> Option<String> {
    Some(inline.plain_text()).filter(|text| !text.is_empty())
}
