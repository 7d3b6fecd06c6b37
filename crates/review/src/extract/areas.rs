//! Finds focus areas: the categories that a skill looks at, with a severity and checks.

use repertoire_text::Span;

use super::limits::{
    REVIEW_AREAS_MAX, REVIEW_CHECKS_MAX, REVIEW_NAME_CHARS_MAX, REVIEW_TEXT_CHARS_MAX,
};
use crate::codes;

use super::found::{Bullet, Findings, bullets};
use super::inline::Inline;
use super::label::{
    bare_severity, foreign_severity, lead_of, split_severity, without_section_number,
};
use super::sections;
use super::tree::{Block, Document, Item, Kind, Title};
use super::{FocusArea, Severity};

/// Finds the focus areas of a document: those in sections for them, or else those in checklists.
pub(super) fn find(document: &Document, out: &mut Findings) -> Vec<FocusArea> {
    foreign_severities(document, out);
    let marked = find_in(document, sections::is_focus, out);
    if !marked.is_empty() {
        return marked;
    }
    let mut listed = find_in(document, sections::is_checklist, out);
    listed.retain(|area| !area.checks.is_empty());
    listed
}

/// Reports labels with a severity of another scale.
fn foreign_severities(document: &Document, out: &mut Findings) {
    let meanings = meanings(document, sections::is_focus);
    for block in &document.blocks {
        let is_closed = block.title.is_some_and(|at| meanings[at] == Meaning::Closed);
        let name = match (&block.kind, block.title) {
            (Kind::Title, Some(at)) => document.titles[at].text.clone(),
            (Kind::Item(item), _) => lead_of(&item.lead).map_or_else(String::new, |lead| lead.name),
            _ => continue,
        };
        if let Some(word) = foreign_severity(&name).filter(|_| !is_closed) {
            let message = format!("`{word}` is no severity, so `{name}` has none");
            out.add(&codes::REVIEW_SEVERITY, message, &document.source, block.span);
        }
    }
}

/// Finds the areas in sections that `is_container` accepts, and those with a severity anywhere.
fn find_in(
    document: &Document,
    is_container: fn(&Title) -> bool,
    out: &mut Findings,
) -> Vec<FocusArea> {
    let mut reader = Reader::new(document, is_container);
    for block in &document.blocks {
        reader.block(block);
    }
    let source = &document.source;
    let mut areas = Vec::new();
    for draft in reader.drafts {
        let span = draft.span;
        let Some(mut checks) = draft.checks() else { continue };
        if areas.len() == REVIEW_AREAS_MAX {
            let message = format!("there are more than {REVIEW_AREAS_MAX} focus areas, the limit");
            out.add(&codes::REVIEW_CUT, message, source, span);
            break;
        }
        out.cap(&mut checks, REVIEW_CHECKS_MAX, "checks here", source, |check| check.span);
        let checks = checks
            .into_iter()
            .map(|check| out.clip(check.text, REVIEW_TEXT_CHARS_MAX, source, check.span))
            .collect();
        let name = without_section_number(&draft.name).to_owned();
        let name = out.clip(name, REVIEW_NAME_CHARS_MAX, source, span);
        areas.push(FocusArea { name, severity: draft.severity, checks });
    }
    areas
}

/// The role of a title for the blocks below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// No role.
    None,
    /// No role, and none for the titles below it either.
    Closed,
    /// The titles and bold items below it are areas.
    Container(Option<Severity>),
    Area(Option<Severity>),
    /// Introduces the checks of an area above it, given by the index of that area's title.
    Part(usize, Option<Severity>),
}

impl Meaning {
    /// The severity that titles and items below inherit. The outer `None` means that they are not areas.
    fn inherited(self) -> Option<Option<Severity>> {
        match self {
            Meaning::None | Meaning::Closed => None,
            Meaning::Container(severity) | Meaning::Area(severity) | Meaning::Part(_, severity) => {
                Some(severity)
            }
        }
    }
}

fn meanings(document: &Document, is_container: fn(&Title) -> bool) -> Vec<Meaning> {
    let mut out: Vec<Meaning> = Vec::with_capacity(document.titles.len());
    for title in &document.titles {
        let above = title.parent.map_or(Meaning::None, |at| out[at]);
        out.push(meaning(title, above, is_container));
    }
    // Let each introduction refer to the nearest area above it.
    for at in 0..out.len() {
        if let (Meaning::Part(_, severity), Some(parent)) = (out[at], document.titles[at].parent) {
            out[at] = match out[parent] {
                Meaning::Part(area, _) => Meaning::Part(area, severity),
                _ => Meaning::Part(parent, severity),
            };
        }
    }
    out
}

fn meaning(title: &Title, above: Meaning, is_container: fn(&Title) -> bool) -> Meaning {
    let belongs_elsewhere = sections::is_left_out(title)
        || sections::is_auto_validated(title)
        || sections::is_false_positives(title)
        || sections::is_priority(title)
        || sections::is_about_reports(title);
    if above == Meaning::Closed || belongs_elsewhere {
        return Meaning::Closed;
    }
    let (name, severity) = split_severity(&title.text);
    // Otherwise a severity in the title of the file would turn every section into an area.
    let is_listed = matches!(above, Meaning::Container(_));
    let inherited = above.inherited().filter(|_| title.rank != 2 || is_listed);
    if is_container(title) {
        return Meaning::Container(severity.or(inherited.flatten()));
    }
    let Some(inherited) = inherited else {
        return severity.map_or(Meaning::None, |severity| Meaning::Area(Some(severity)));
    };
    if matches!(above, Meaning::Area(_) | Meaning::Part(..)) && severity.is_none() {
        if sections::is_introduction(title) {
            return Meaning::Part(0, inherited);
        }
        if sections::is_aside(title) {
            return Meaning::Closed;
        }
    }
    if let Some(found) = bare_severity(&name).filter(|_| severity.is_none()) {
        return Meaning::Area(Some(found));
    }
    Meaning::Area(severity.or(inherited))
}

/// An area under construction.
#[derive(Default)]
struct Draft<'a> {
    name: String,
    severity: Option<Severity>,
    span: Span,
    /// The text on the line of its label.
    own: Option<Bullet>,
    items: Vec<(&'a Block, &'a Item)>,
    /// Used as checks if there are no items.
    prose: Vec<Bullet>,
    /// True if a title or item below it is an area as well.
    parted: bool,
}

impl Draft<'_> {
    /// The checks. Returns `None` if it has none and only contains other areas.
    fn checks(&self) -> Option<Vec<Bullet>> {
        let mut checks: Vec<Bullet> = self.own.iter().cloned().collect();
        checks.extend(bullets(self.items.iter().copied(), Item::plain));
        if checks.is_empty() && !self.parted {
            checks.extend(self.prose.iter().cloned());
        }
        (!checks.is_empty() || !self.parted).then_some(checks)
    }
}

/// Collects areas from the blocks of a document.
struct Reader<'a> {
    document: &'a Document,
    meanings: Vec<Meaning>,
    drafts: Vec<Draft<'a>>,
    /// The index of the draft of each title, if it has one.
    of_title: Vec<Option<usize>>,
    /// The depth of the item that is an area, and the index of its draft.
    item: Option<(usize, usize)>,
}

impl<'a> Reader<'a> {
    fn new(document: &'a Document, is_container: fn(&Title) -> bool) -> Self {
        Reader {
            document,
            meanings: meanings(document, is_container),
            drafts: Vec::new(),
            of_title: vec![None; document.titles.len()],
            item: None,
        }
    }

    fn block(&mut self, block: &'a Block) {
        match &block.kind {
            Kind::Title => self.title(block),
            Kind::Paragraph(inline) => {
                self.item = None;
                if let Some(draft) = self.draft_at(block.title) {
                    let bullet = Bullet { text: inline.plain(), span: block.span };
                    let draft = &mut self.drafts[draft];
                    // Text on the line of a label has the span of the label.
                    if draft.span == block.span && !bullet.text.ends_with(':') {
                        draft.own = Some(bullet);
                    } else {
                        draft.prose.push(bullet);
                    }
                }
            }
            Kind::Item(item) => self.item(block, item),
            Kind::Table(_) => self.item = None,
        }
    }

    fn title(&mut self, block: &'a Block) {
        self.item = None;
        let Some(at) = block.title else { return };
        if let Meaning::Area(severity) = self.meanings[at] {
            let (name, _) = split_severity(&self.document.titles[at].text);
            self.part_above(self.document.titles[at].parent);
            let draft = self.open(name, severity, block.span, Some(at));
            // The title of the file is an area only if it has checks of its own.
            self.drafts[draft].parted = self.document.titles[at].rank == 1;
        }
    }

    fn item(&mut self, block: &'a Block, item: &'a Item) {
        if let Some((depth, draft)) = self.item {
            if item.depth > depth {
                self.drafts[draft].items.push((block, item));
                return;
            }
            self.item = None;
        }
        let meaning = block.title.map_or(Meaning::None, |at| self.meanings[at]);
        if meaning == Meaning::Closed {
            return;
        }
        if let Some((name, severity, own)) = area_of_item(item, meaning) {
            self.part_above(block.title);
            let severity = severity.or(meaning.inherited().flatten());
            let draft = self.open(name, severity, block.span, None);
            self.drafts[draft].own = own.map(|text| Bullet { text, span: block.span });
            self.item = Some((item.depth, draft));
            return;
        }
        if let (Meaning::Container(severity), Some(at)) = (meaning, block.title)
            && self.of_title[at].is_none()
        {
            let (name, _) = split_severity(&self.document.titles[at].text);
            self.open(name, severity, block.span, Some(at));
        }
        if let Some(draft) = self.draft_at(block.title) {
            self.drafts[draft].items.push((block, item));
        }
    }

    fn open(
        &mut self,
        name: String,
        severity: Option<Severity>,
        span: Span,
        title: Option<usize>,
    ) -> usize {
        let draft = self.drafts.len();
        self.drafts.push(Draft { name, severity, span, ..Draft::default() });
        if let Some(at) = title {
            self.of_title[at] = Some(draft);
        }
        draft
    }

    /// The index of the draft that collects the blocks below a title.
    fn draft_at(&self, title: Option<usize>) -> Option<usize> {
        let at = title?;
        match self.meanings[at] {
            Meaning::Part(area, _) => self.of_title[area],
            Meaning::Area(_) | Meaning::Container(_) => self.of_title[at],
            Meaning::None | Meaning::Closed => None,
        }
    }

    fn part_above(&mut self, title: Option<usize>) {
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
    item: &Item,
    meaning: Meaning,
) -> Option<(String, Option<Severity>, Option<String>)> {
    let is_listed = matches!(meaning, Meaning::Container(_));
    if let Some(lead) = lead_of(&item.lead).filter(|lead| !lead.name.is_empty()) {
        let is_label = lead.parted || lead.rest.is_blank();
        let counts = is_label && (lead.severity.is_some() || is_listed);
        return counts.then(|| (lead.name, lead.severity, non_empty_text(&lead.rest)));
    }
    let plain = item.lead.plain();
    let (name, severity) = split_severity(&plain);
    let ends_there = plain.trim_end_matches([':', ' ']).ends_with([')', ']']);
    (is_listed && severity.is_some() && ends_there).then_some((name, severity, None))
}

fn non_empty_text(inline: &Inline) -> Option<String> {
    Some(inline.plain()).filter(|text| !text.is_empty())
}
