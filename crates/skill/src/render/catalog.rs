//! Renders the catalog for a prompt within a number of characters. Skills that fit the task come in full, the
//! others shortened to the same length each, then as names only, then only counted.
//!
//! The same input always gives the same text, and it is never longer than allowed. Skills that the model must
//! not choose by itself are left out, and so are agents, which are a separate namespace.

use repertoire_text::layout::one_line;
use std::borrow::Cow;
use std::fmt::Write as _;

use super::{describe_skill, escape_xml};
use crate::catalog::CatalogEntry;

const OPEN: &str = "<available_skills>\n";
const CLOSE: &str = "</available_skills>\n";
const NAME_TAGS_CHARS: usize = "<skill><name></name></skill>\n".len();
const DESCRIPTION_TAGS_CHARS: usize = "<description></description>".len();
/// A shorter description says nothing, so the name alone is shown instead.
const DESCRIPTION_CHARS_MIN: usize = 24;

/// A rendered catalog, and how much of each skill it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogText {
    /// The text; empty if there are no skills, or not even room for their number.
    pub text: String,
    /// The number of skills with their whole description.
    pub full: usize,
    /// The number of skills with a shortened description.
    pub shortened: usize,
    /// The number of skills with their name alone.
    pub names_only: usize,
    /// The number of skills that are only counted.
    pub counted: usize,
}

/// Returns true if a model may choose a skill, so that it is listed.
pub fn is_offered(entry: &CatalogEntry) -> bool {
    entry.skill.is_offered()
}

/// Renders a catalog in at most `chars_max` characters. `winners` are the ids of the skills that fit the
/// task, best first.
pub fn render_catalog(entries: &[CatalogEntry], winners: &[&str], chars_max: usize) -> CatalogText {
    let mut lines = order_lines(entries, winners);
    let Some(room) = chars_max.checked_sub(OPEN.len() + CLOSE.len()).filter(|_| !lines.is_empty())
    else {
        return CatalogText { counted: lines.len(), ..CatalogText::default() };
    };
    if lines.iter().map(CatalogLine::chars_full).sum::<usize>() <= room {
        lines.iter_mut().for_each(|line| line.shown = DescriptionDetail::Full);
        return write_lines(&lines);
    }
    let Some(after_count) = room.checked_sub(count_line(lines.len()).chars().count()) else {
        return CatalogText { counted: lines.len(), ..CatalogText::default() };
    };
    let left = show_winners(&mut lines, after_count);
    let mut rest: Vec<&mut CatalogLine<'_>> =
        lines.iter_mut().filter(|line| line.shown == DescriptionDetail::Counted).collect();
    let names: usize = rest.iter().map(|line| line.chars_name()).sum();
    // If every name fits, no count line is needed, so its characters are free as well.
    match (left + room - after_count).checked_sub(names) {
        Some(left) => show_shortened(&mut rest, left),
        None => show_names(&mut rest, left),
    }
    write_lines(&lines)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DescriptionDetail {
    Counted,
    Name,
    Shortened(usize),
    Full,
}

struct CatalogLine<'a> {
    name: Cow<'a, str>,
    description: String,
    name_chars: usize,
    description_chars: usize,
    is_winner: bool,
    shown: DescriptionDetail,
}

impl<'a> CatalogLine<'a> {
    fn new(entry: &'a CatalogEntry, is_winner: bool) -> Self {
        let mut description = describe_skill(entry);
        if let Some(when) = &entry.skill.claude.when_to_use {
            description = format!("{description} {}", one_line(when));
        }
        let name = escape_xml(&entry.id);
        CatalogLine {
            name_chars: name.chars().count(),
            description_chars: escape_xml(&description).chars().count(),
            name,
            description,
            is_winner,
            shown: DescriptionDetail::Counted,
        }
    }

    fn chars_name(&self) -> usize {
        NAME_TAGS_CHARS + self.name_chars
    }

    fn chars_description(&self) -> usize {
        DESCRIPTION_TAGS_CHARS + self.description_chars
    }

    fn chars_full(&self) -> usize {
        self.chars_name() + self.chars_description()
    }
}

/// Returns the winners in their order, then the other skills in catalog order.
fn order_lines<'a>(entries: &'a [CatalogEntry], winners: &[&str]) -> Vec<CatalogLine<'a>> {
    let offered = || entries.iter().filter(|entry| is_offered(entry));
    let mut lines = Vec::new();
    for (at, id) in winners.iter().enumerate() {
        if !winners[..at].contains(id) {
            let named = offered().filter(|entry| entry.id == *id);
            lines.extend(named.map(|entry| CatalogLine::new(entry, true)));
        }
    }
    let others = offered().filter(|entry| !winners.contains(&entry.id.as_str()));
    lines.extend(others.map(|entry| CatalogLine::new(entry, false)));
    lines
}

/// Shows winners in full as long as they fit. Returns the remaining room.
fn show_winners(lines: &mut [CatalogLine<'_>], mut room: usize) -> usize {
    for line in lines.iter_mut().filter(|line| line.is_winner) {
        if let Some(left) = room.checked_sub(line.chars_full()) {
            line.shown = DescriptionDetail::Full;
            room = left;
        }
    }
    room
}

fn show_names(lines: &mut [&mut CatalogLine<'_>], mut room: usize) {
    for line in lines {
        if let Some(left) = room.checked_sub(line.chars_name()) {
            line.shown = DescriptionDetail::Name;
            room = left;
        }
    }
}

/// Shows every name, with descriptions up to the greatest common length that fits.
fn show_shortened(lines: &mut [&mut CatalogLine<'_>], room: usize) {
    let level = fair_level(lines.iter().map(|line| line.chars_description()).collect(), room);
    for line in lines {
        let shortened = level.saturating_sub(DESCRIPTION_TAGS_CHARS);
        line.shown = match line.chars_description() {
            needed if needed <= level => DescriptionDetail::Full,
            _ if shortened >= DESCRIPTION_CHARS_MIN => DescriptionDetail::Shortened(shortened),
            _ => DescriptionDetail::Name,
        };
    }
}

/// Returns the greatest level such that all needs, each capped at the level, fit into the room. What small
/// needs leave over goes to the large ones.
pub(crate) fn fair_level(mut needs: Vec<usize>, mut room: usize) -> usize {
    needs.sort_unstable();
    let count = needs.len();
    for (at, need) in needs.into_iter().enumerate() {
        let share = room / (count - at);
        if need > share {
            return share;
        }
        room -= need;
    }
    usize::MAX
}

fn count_line(count: usize) -> String {
    format!("… and {count} more; search for them\n")
}

fn write_lines(lines: &[CatalogLine<'_>]) -> CatalogText {
    let mut out = CatalogText { text: OPEN.to_owned(), ..CatalogText::default() };
    for line in lines {
        let (count, description) = match line.shown {
            DescriptionDetail::Counted => {
                out.counted += 1;
                continue;
            }
            DescriptionDetail::Name => (&mut out.names_only, None),
            DescriptionDetail::Shortened(chars_max) => (
                &mut out.shortened,
                Some(Cow::Owned(shorten_description(&line.description, chars_max))),
            ),
            DescriptionDetail::Full => (&mut out.full, Some(escape_xml(&line.description))),
        };
        *count += 1;
        let _ = write!(out.text, "<skill><name>{}</name>", line.name);
        if let Some(description) = description {
            let _ = write!(out.text, "<description>{description}</description>");
        }
        out.text.push_str("</skill>\n");
    }
    if out.counted > 0 {
        out.text.push_str(&count_line(out.counted));
    }
    out.text.push_str(CLOSE);
    out
}

/// Returns the escaped start of a text, in at most `chars_max` characters including the ellipsis. It ends at
/// a word boundary if there is one nearby.
fn shorten_description(text: &str, chars_max: usize) -> String {
    let mut used = 1;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += escape_xml(c.encode_utf8(&mut [0; 4])).chars().count();
        if used > chars_max {
            break;
        }
        end = at + c.len_utf8();
    }
    let kept = &text[..end];
    let ends_word = text[end..].starts_with(' ');
    let at_word = kept.rfind(' ').filter(|at| !ends_word && *at >= end - end / 3);
    let kept = at_word.map_or(kept, |at| &kept[..at]);
    format!("{}…", escape_xml(kept.trim_end_matches([' ', ',', '.', ';', ':'])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{make_described_entry, make_entry};
    use proptest::prelude::*;

    fn some() -> Vec<CatalogEntry> {
        vec![
            make_described_entry(
                "forms",
                "Fills forms & <fields> in documents. Use when a form comes in.",
                "",
                "x",
            ),
            make_entry("hidden", "disable-model-invocation: true\n", "x"),
            make_described_entry("notes", "Short.", "when_to_use: For notes.\n", "x"),
            make_described_entry(
                "pdf",
                "Reads and writes PDF files of every kind. Use when a task names a PDF.",
                "",
                "x",
            ),
            make_described_entry(
                "tender",
                "Checks Danish public tenders for compliance. Use for udbud.",
                "",
                "x",
            ),
        ]
    }

    #[track_caller]
    fn check(winners: &[&str], chars_max: usize) -> String {
        let found = render_catalog(&some(), winners, chars_max);
        assert!(found.text.chars().count() <= chars_max);
        let CatalogText { text, full, shortened, names_only, counted } = found;
        assert_eq!(full + shortened + names_only + counted, 4);
        format!("{text}full {full}, shortened {shortened}, names {names_only}, counted {counted}")
    }

    #[test]
    fn everything_is_shown_where_it_fits() {
        insta::assert_snapshot!(check(&[], 1_000), @r#"
        <available_skills>
        <skill><name>forms</name><description>Fills forms &amp; &lt;fields&gt; in documents. Use when a form comes in.</description></skill>
        <skill><name>notes</name><description>Short. For notes.</description></skill>
        <skill><name>pdf</name><description>Reads and writes PDF files of every kind. Use when a task names a PDF.</description></skill>
        <skill><name>tender</name><description>Checks Danish public tenders for compliance. Use for udbud.</description></skill>
        </available_skills>
        full 4, shortened 0, names 0, counted 0
        "#);
    }

    #[test]
    fn winners_come_first_and_in_full_and_the_rest_is_shortened_alike() {
        insta::assert_snapshot!(check(&["pdf"], 440), @r#"
        <available_skills>
        <skill><name>pdf</name><description>Reads and writes PDF files of every kind. Use when a task names a PDF.</description></skill>
        <skill><name>forms</name><description>Fills forms &amp; &lt;fields&gt;…</description></skill>
        <skill><name>notes</name><description>Short. For notes.</description></skill>
        <skill><name>tender</name><description>Checks Danish public tenders for…</description></skill>
        </available_skills>
        full 2, shortened 2, names 0, counted 0
        "#);
    }

    #[test]
    fn names_alone_are_shown_where_descriptions_do_not_fit() {
        insta::assert_snapshot!(check(&["pdf"], 290), @r#"
        <available_skills>
        <skill><name>pdf</name><description>Reads and writes PDF files of every kind. Use when a task names a PDF.</description></skill>
        <skill><name>forms</name></skill>
        <skill><name>notes</name></skill>
        <skill><name>tender</name></skill>
        </available_skills>
        full 1, shortened 0, names 3, counted 0
        "#);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        insta::assert_snapshot!(check(&["pdf"], 245), @r#"
        <available_skills>
        <skill><name>pdf</name><description>Reads and writes PDF files of every kind. Use when a task names a PDF.</description></skill>
        <skill><name>forms</name></skill>
        … and 2 more; search for them
        </available_skills>
        full 1, shortened 0, names 1, counted 2
        "#);
        insta::assert_snapshot!(check(&["pdf"], 80), @r#"
        <available_skills>
        … and 4 more; search for them
        </available_skills>
        full 0, shortened 0, names 0, counted 4
        "#);
    }

    #[test]
    fn no_skills_or_no_room_give_no_text() {
        assert_eq!(render_catalog(&[], &[], 100), CatalogText::default());
        let none = render_catalog(&some(), &[], 10);
        assert_eq!((none.text.as_str(), none.counted), ("", 4));
    }

    proptest! {
        #[test]
        fn a_catalog_never_exceeds_its_budget_and_counts_every_skill(
            descriptions in prop::collection::vec("[a-z<&ø \"]{1,80}x", 0..12),
            winner in 0..12usize,
            chars_max in 0..900usize,
        ) {
            let entries: Vec<CatalogEntry> = descriptions
                .iter()
                .enumerate()
                .map(|(at, text)| make_described_entry(&format!("skill-{at}"), text, "", "x"))
                .collect();
            let winner = format!("skill-{winner}");
            let found = render_catalog(&entries, &[&winner], chars_max);
            prop_assert!(found.text.chars().count() <= chars_max);
            let shown = found.full + found.shortened + found.names_only;
            prop_assert_eq!(shown + found.counted, entries.len());
            prop_assert_eq!(found.text.matches("<skill>").count(), shown);
            prop_assert_eq!(&found, &render_catalog(&entries, &[&winner], chars_max));
        }
    }
}
