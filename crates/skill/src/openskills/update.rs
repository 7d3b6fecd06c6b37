//! Inserts the block into a file: in place of the old one, or at the end.
//!
//! [`Style::Compat`] does what OpenSkills does, damage included. [`Style::Repertoire`] changes only the
//! block, is idempotent, and rejects a file whose markers do not pair.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::entry::OpenSkillsStyle;
use super::js::{expand_template, is_whitespace};
use super::sync::new_file;

const SYSTEM_START: &str = "<skills_system";
const SYSTEM_END: &str = "</skills_system>";
const TABLE_START: &str = "<!-- SKILLS_TABLE_START -->";
const TABLE_END: &str = "<!-- SKILLS_TABLE_END -->";

static SYSTEM_TAGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("<skills_system[^>]*>|</skills_system>").expect("the pattern is a valid constant")
});

/// A file after the block was inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedSkillsFile {
    pub text: String,
    pub outcome: BlockUpdateOutcome,
}

/// The change that was made to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUpdateOutcome {
    /// The file did not exist; it now has a heading and the block.
    Created,
    /// The block was added at the end.
    Added,
    /// The old block was replaced; in [`OpenSkillsStyle::Compat`] also if nothing changed.
    Synced,
    /// The file already had this block. Never in [`OpenSkillsStyle::Compat`].
    Unchanged,
}

/// Markers that do not enclose exactly one block, so that it is unclear what to replace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// A start marker without an end after it.
    #[error("`{start}` on line {line} is never closed by `{end}`")]
    Unclosed {
        /// The marker that was found.
        start: &'static str,
        /// The marker that is missing.
        end: &'static str,
        /// The line of the start marker, from 1.
        line: usize,
    },
    /// An end marker without a start before it.
    #[error("`{end}` on line {line} has no `{start}` before it")]
    Unopened {
        /// The marker that is missing.
        start: &'static str,
        /// The marker that was found.
        end: &'static str,
        /// The line of the end marker, from 1.
        line: usize,
    },
    /// A second block.
    #[error(
        "there is more than one block: `{start}` on line {first_line} and on line {second_line}"
    )]
    Several {
        /// The marker that occurs twice.
        start: &'static str,
        /// The line of the first one, from 1.
        first_line: usize,
        /// The line of the second one.
        second_line: usize,
    },
}

/// Inserts `block`, as rendered by [`render_block`](super::render_block), into the text of a file.
/// `file_stem` is the heading of a file that does not exist yet.
///
/// In [`OpenSkillsStyle::Repertoire`] a marker right after a backtick is prose, and the block takes the line ending of
/// the file's first line. [`OpenSkillsStyle::Compat`] never fails.
pub fn update_block(
    existing: Option<&str>,
    file_stem: &str,
    block: &str,
    style: OpenSkillsStyle,
) -> Result<UpdatedSkillsFile, MarkerError> {
    match (existing, style) {
        (None, OpenSkillsStyle::Compat) => {
            let text = replace_section(&new_file(file_stem), block);
            Ok(UpdatedSkillsFile { text, outcome: BlockUpdateOutcome::Created })
        }
        (None, OpenSkillsStyle::Repertoire) => {
            let text = format!("{}{block}\n", new_file(file_stem));
            Ok(UpdatedSkillsFile { text, outcome: BlockUpdateOutcome::Created })
        }
        (Some(existing), OpenSkillsStyle::Compat) => {
            let has_markers = existing.contains(SYSTEM_START) || existing.contains(TABLE_START);
            let outcome =
                if has_markers { BlockUpdateOutcome::Synced } else { BlockUpdateOutcome::Added };
            Ok(UpdatedSkillsFile { text: replace_section(existing, block), outcome })
        }
        (Some(existing), OpenSkillsStyle::Repertoire) => insert_or_replace(existing, block),
    }
}

/// OpenSkills' `replaceSkillsSection`, which treats dollars in a block as template syntax.
fn replace_section(content: &str, block: &str) -> String {
    if content.contains(SYSTEM_START) {
        return match system_section(content) {
            Some(range) => replace_by_template(content, &[range], block),
            None => content.to_owned(),
        };
    }
    if content.contains(TABLE_START) {
        let inner = SYSTEM_TAGS.replace_all(block, "");
        let template = format!("{TABLE_START}\n{inner}\n{TABLE_END}");
        return replace_by_template(content, &table_sections(content), &template);
    }
    format!("{}\n\n{block}\n", content.trim_end_matches(is_whitespace))
}

/// Matches `/<skills_system[^>]*>[\s\S]*?<\/skills_system>/`. If the first start does not match, no later one
/// can: it has no `>` or no end behind it either.
fn system_section(content: &str) -> Option<Range<usize>> {
    let start = content.find(SYSTEM_START)?;
    let tag_end = start + content[start..].find('>')? + 1;
    let end = tag_end + content[tag_end..].find(SYSTEM_END)? + SYSTEM_END.len();
    Some(start..end)
}

/// Matches `/<!-- SKILLS_TABLE_START -->[\s\S]*?<!-- SKILLS_TABLE_END -->/g`.
fn table_sections(content: &str) -> Vec<Range<usize>> {
    let mut sections = Vec::new();
    let mut from = 0;
    while let Some(start) = content[from..].find(TABLE_START).map(|at| from + at) {
        let Some(end) = content[start..].find(TABLE_END) else { break };
        from = start + end + TABLE_END.len();
        sections.push(start..from);
    }
    sections
}

fn replace_by_template(content: &str, ranges: &[Range<usize>], template: &str) -> String {
    let mut out = String::with_capacity(content.len() + template.len());
    let mut from = 0;
    for range in ranges {
        out.push_str(&content[from..range.start]);
        let (before, after) = (&content[..range.start], &content[range.end..]);
        expand_template(template, before, &content[range.clone()], after, &mut out);
        from = range.end;
    }
    out.push_str(&content[from..]);
    out
}

fn insert_or_replace(existing: &str, block: &str) -> Result<UpdatedSkillsFile, MarkerError> {
    let line_break = line_break_of(existing);
    let block = block.replace("\r\n", "\n").replace('\n', line_break);
    if let Some(range) = find_section(existing, SYSTEM_START, SYSTEM_END)? {
        return Ok(splice_section(existing, range, &block));
    }
    // If the user kept only the inner markers, insert only the table.
    if let Some(range) = find_section(existing, TABLE_START, TABLE_END)? {
        return Ok(splice_section(existing, range, extract_table(&block)));
    }
    let gap = match existing {
        "" => String::new(),
        text if text.ends_with("\n\n") || text.ends_with("\n\r\n") => String::new(),
        text if text.ends_with('\n') => line_break.to_owned(),
        _ => line_break.repeat(2),
    };
    let text = format!("{existing}{gap}{block}{line_break}");
    Ok(UpdatedSkillsFile { text, outcome: BlockUpdateOutcome::Added })
}

fn splice_section(existing: &str, range: Range<usize>, section: &str) -> UpdatedSkillsFile {
    let outcome = if &existing[range.clone()] == section {
        BlockUpdateOutcome::Unchanged
    } else {
        BlockUpdateOutcome::Synced
    };
    let text = [&existing[..range.start], section, &existing[range.end..]].concat();
    UpdatedSkillsFile { text, outcome }
}

fn extract_table(block: &str) -> &str {
    match (block.find(TABLE_START), block.rfind(TABLE_END)) {
        (Some(start), Some(end)) if start < end => &block[start..end + TABLE_END.len()],
        _ => block,
    }
}

fn line_break_of(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first_line, _)) if first_line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns the only section between two markers, if there is any.
fn find_section(
    text: &str,
    start: &'static str,
    end: &'static str,
) -> Result<Option<Range<usize>>, MarkerError> {
    let starts = find_markers(text, start);
    let ends = find_markers(text, end);
    match (starts.as_slice(), ends.as_slice()) {
        ([], []) => Ok(None),
        ([first, second, ..], _) => Err(MarkerError::Several {
            start,
            first_line: line_at(text, *first),
            second_line: line_at(text, *second),
        }),
        ([first], []) => Err(MarkerError::Unclosed { start, end, line: line_at(text, *first) }),
        ([first], [last]) if first < last => Ok(Some(*first..*last + end.len())),
        ([first], [one, _, ..]) if one < first => {
            Err(MarkerError::Unopened { start, end, line: line_at(text, *one) })
        }
        ([_], [_, extra, ..]) => {
            Err(MarkerError::Unopened { start, end, line: line_at(text, *extra) })
        }
        ([] | [_], [only, ..]) => {
            Err(MarkerError::Unopened { start, end, line: line_at(text, *only) })
        }
    }
}

/// Returns the number of the line at an offset, from 1.
fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the positions of a marker, except in a code span or as the beginning of a longer word.
fn find_markers(text: &str, marker: &str) -> Vec<usize> {
    let stands = |at: &usize| {
        let next = text[at + marker.len()..].chars().next();
        let is_whole =
            marker.ends_with('>') || next.is_none_or(|next| next == '>' || next.is_whitespace());
        is_whole && !text[..*at].ends_with('`')
    };
    text.match_indices(marker).map(|(at, _)| at).filter(stands).collect()
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
