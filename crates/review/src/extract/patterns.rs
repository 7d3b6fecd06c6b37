//! Extracts auto-validated patterns from tables of ids, expressions and descriptions, in the skill or in a shared file.

use regex::{Regex, RegexBuilder};
use repertoire_text::{Source, Span};

use super::limits::{
    REVIEW_NAME_CHARS_MAX, REVIEW_PATTERN_BYTES_MAX, REVIEW_PATTERN_CACHE_BYTES_MAX,
    REVIEW_PATTERN_COMPILED_BYTES_MAX, REVIEW_PATTERN_GLOBS_MAX, REVIEW_PATTERNS_MAX,
    REVIEW_TEXT_CHARS_MAX,
};
use crate::codes;

use super::collect::{ReviewDiagnostics, select_paragraphs};
use super::document::{
    DocumentBlock, DocumentBlockKind, DocumentCell, DocumentRow, DocumentTable, MarkdownDocument,
};
use super::glob;
use super::inline::normalise_words;
use super::label::{severity_in, split_severity};
use super::pointer::{self, SharedFiles};
use super::rules::section_blocks;
use super::sections::is_auto_validated;
use super::{ReviewPattern, ReviewSeverity};

/// A reason why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePattern {
    #[error("it has {bytes} bytes; the limit is {REVIEW_PATTERN_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("it holds a control character")]
    ControlCharacter,
    #[error("it uses look-around, which has no bound on time")]
    LookAround,
    #[error("it uses back-references, which have no bound on time")]
    BackReference,
    #[error("it is too large when compiled")]
    TooLarge,
    #[error("it is not a regular expression: {reason}")]
    Invalid { reason: String },
    /// The expression matches the empty string, and so everywhere.
    #[error("it matches the empty text, and so everything")]
    Empty,
}

/// Compiles the expression of a pattern within limits. `^` and `$` match at line boundaries.
///
/// ```
/// use repertoire_review::extract::{UnusablePattern, compile_pattern};
///
/// assert!(compile_pattern(r"eval\s*\(").unwrap().is_match("x = eval (y)"));
/// assert_eq!(compile_pattern("(?!a)b").unwrap_err(), UnusablePattern::LookAround);
/// assert_eq!(compile_pattern("a*").unwrap_err(), UnusablePattern::Empty);
/// ```
pub fn compile_pattern(expression: &str) -> Result<Regex, UnusablePattern> {
    if expression.len() > REVIEW_PATTERN_BYTES_MAX {
        return Err(UnusablePattern::TooLong { bytes: expression.len() });
    }
    if expression.chars().any(char::is_control) {
        return Err(UnusablePattern::ControlCharacter);
    }
    let regex = RegexBuilder::new(expression)
        .multi_line(true)
        .size_limit(REVIEW_PATTERN_COMPILED_BYTES_MAX)
        .dfa_size_limit(REVIEW_PATTERN_CACHE_BYTES_MAX)
        .build()
        .map_err(|error| unusable_reason(&error))?;
    // These texts have positions beside letters, whitespace, punctuation and line breaks. An expression that can match
    // the empty string at all does so in one of them.
    let matches_nothing = |text: &str| regex.find_iter(text).any(|found| found.is_empty());
    if ["", "a b", "a\n;"].into_iter().any(matches_nothing) {
        Err(UnusablePattern::Empty)
    } else {
        Ok(regex)
    }
}

fn unusable_reason(error: &regex::Error) -> UnusablePattern {
    let regex::Error::Syntax(message) = error else { return UnusablePattern::TooLarge };
    if message.contains("look-around") {
        return UnusablePattern::LookAround;
    }
    if message.contains("backreferences") {
        return UnusablePattern::BackReference;
    }
    let last = message.lines().next_back().unwrap_or("").trim();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    UnusablePattern::Invalid { reason: super::inline::join_plain(std::iter::once(reason)) }
}

/// Finds the patterns of a skill.
pub(super) fn find_patterns(
    document: &MarkdownDocument,
    subjects: &[Vec<String>],
    shared: &mut SharedFiles<'_>,
    out: &mut ReviewDiagnostics,
) -> Vec<ReviewPattern> {
    let section = section_blocks(document, is_auto_validated);
    let mut list = PatternList { patterns: Vec::new(), is_cut: false, wanted: named_ids(&section) };
    // The skill's own tables are taken as a whole, even if its prose names only some of the ids.
    let wanted = std::mem::take(&mut list.wanted);
    list.add_tables(document, &section, UnknownTable::Reported, out);
    list.wanted = wanted;
    for pointer in pointer::find_pointers(&section) {
        let target = if pointer.path.is_empty() {
            Some(document)
        } else {
            shared.open_file(&pointer, &document.source, out)
        };
        let Some(target) = target else { continue };
        match blocks_of(target, pointer.anchor.as_deref(), subjects, &list.wanted) {
            Some(blocks) => list.add_tables(target, &blocks, UnknownTable::PassedOver, out),
            None => report_missing_section(&pointer, &document.source, out),
        }
    }
    list.add_named_ids(&section);
    list.patterns
}

/// Returns true if the document has a table of patterns.
pub(super) fn has_table(document: &MarkdownDocument) -> bool {
    section_blocks(document, is_auto_validated).iter().any(|block| is_pattern_table(block))
}

fn is_pattern_table(block: &DocumentBlock) -> bool {
    matches!(&block.kind, DocumentBlockKind::Table(table) if PatternColumns::from_table(table).is_some())
}

/// Reports an anchor that does not exist.
pub(super) fn report_missing_section(
    pointer: &pointer::SharedFilePointer,
    source: &Source,
    out: &mut ReviewDiagnostics,
) {
    let anchor = pointer.anchor.as_deref().unwrap_or("");
    let message = format!("`{}` has no section `#{anchor}`", pointer.path);
    out.add(&codes::REVIEW_POINTER_DEAD, message, source, pointer.span);
}

/// The blocks of a shared file that apply. If the skill names ids, they are searched in the whole file. Returns `None`
/// if the anchor does not exist.
fn blocks_of<'a>(
    target: &'a MarkdownDocument,
    anchor: Option<&str>,
    subjects: &[Vec<String>],
    wanted: &[String],
) -> Option<Vec<&'a DocumentBlock>> {
    let subjects = if wanted.is_empty() { subjects } else { &[] };
    let blocks = pointer::blocks_meant(target, anchor, subjects, is_pattern_table)?;
    if anchor.is_some() || blocks.len() < target.blocks.len() {
        return Some(blocks);
    }
    // In a file about more than patterns, use the section about them.
    let section = target.blocks_below(is_auto_validated);
    Some(if section.iter().any(|block| is_pattern_table(block)) { section } else { blocks })
}

/// The ids that the prose of a section names as code: `deprecated_package`, `hack_comment`.
fn named_ids(section: &[&DocumentBlock]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (_, inline) in select_paragraphs(section.iter().copied()) {
        for code in inline.code_texts().map(str::trim) {
            let is_new = is_id(code) && code.contains('_') && !out.iter().any(|id| id == code);
            if is_new && out.len() < REVIEW_PATTERNS_MAX {
                out.push(code.to_owned());
            }
        }
    }
    out
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= REVIEW_NAME_CHARS_MAX
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/'))
}

/// The treatment of a table that has no patterns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownTable {
    Reported,
    PassedOver,
}

/// The patterns that were found so far.
struct PatternList {
    patterns: Vec<ReviewPattern>,
    is_cut: bool,
    /// If not empty, only these ids are taken.
    wanted: Vec<String>,
}

impl PatternList {
    fn add_tables(
        &mut self,
        document: &MarkdownDocument,
        blocks: &[&DocumentBlock],
        unknown: UnknownTable,
        out: &mut ReviewDiagnostics,
    ) {
        for block in blocks {
            let DocumentBlockKind::Table(table) = &block.kind else { continue };
            let Some(columns) = PatternColumns::from_table(table) else {
                if unknown == UnknownTable::Reported {
                    let message = "this table has no column `Pattern`, `ID`, `Name` or `Regex`";
                    let source = &document.source;
                    out.add(&codes::REVIEW_TABLE, message.to_owned(), source, block.span);
                }
                continue;
            };
            let severity =
                document.title_chain(block.title).find_map(|title| split_severity(&title.text).1);
            for row in &table.rows {
                self.add_row(&columns, row, severity, &document.source, out);
            }
        }
    }

    fn add_row(
        &mut self,
        columns: &PatternColumns,
        row: &DocumentRow,
        inherited: Option<ReviewSeverity>,
        source: &Source,
        out: &mut ReviewDiagnostics,
    ) {
        if self.is_cut || row.cells.iter().all(|cell| cell.inline.is_blank()) {
            return;
        }
        let Some((id, expression)) = columns.read_row(row, source) else {
            let message = "this row has no id of a pattern".to_owned();
            out.add(&codes::REVIEW_TABLE, message, source, row.span);
            return;
        };
        if !self.wanted.is_empty() && !self.wanted.contains(&id) {
            return;
        }
        if self.patterns.iter().any(|known| known.id == id) {
            let message = format!("`{id}` is there already; the first one counts");
            out.add(&codes::REVIEW_PATTERN_DUPLICATE, message, source, row.span);
            return;
        }
        if self.patterns.len() == REVIEW_PATTERNS_MAX {
            self.is_cut = true;
            let message = format!("there are more than {REVIEW_PATTERNS_MAX} patterns, the limit");
            out.add(&codes::REVIEW_CUT, message, source, row.span);
            return;
        }
        let mut pattern = columns.read_pattern(id, row, source, out);
        pattern.severity = pattern.severity.or(inherited);
        if let Some(expression) = expression {
            take_expression(&mut pattern, expression, row.span, source, out);
        }
        self.patterns.push(pattern);
    }

    /// Adds ids that the skill names but no table describes. They have no expression, so only a reader can recognise
    /// them.
    fn add_named_ids(&mut self, section: &[&DocumentBlock]) {
        for id in named_ids(section) {
            let is_known = self.patterns.iter().any(|known| known.id == id);
            if !is_known && self.patterns.len() < REVIEW_PATTERNS_MAX {
                self.patterns.push(ReviewPattern::with_id(id));
            }
        }
    }
}

fn take_expression(
    pattern: &mut ReviewPattern,
    expression: String,
    span: Span,
    source: &Source,
    out: &mut ReviewDiagnostics,
) {
    if let Err(reason) = compile_pattern(&expression) {
        let message = format!("the expression of `{}` cannot be used: {reason}", pattern.id);
        out.add(&codes::REVIEW_PATTERN_UNUSABLE, message, source, span);
        pattern.unusable = Some(reason.to_string());
    }
    let kept = expression.chars().filter(|c| !c.is_control());
    pattern.pattern = Some(kept.take(REVIEW_PATTERN_BYTES_MAX).collect());
}

/// The index of each column, by its role.
#[derive(Default)]
struct PatternColumns {
    id: Option<usize>,
    regex: Option<usize>,
    /// A column `Pattern`, which may hold the id or the expression.
    either: Option<usize>,
    description: Option<usize>,
    severity: Option<usize>,
    files: Option<usize>,
}

impl PatternColumns {
    fn from_table(table: &DocumentTable) -> Option<Self> {
        let mut columns = PatternColumns::default();
        let mut free = None;
        for (at, cell) in table.header.iter().enumerate() {
            let words = normalise_words(&cell.inline.plain_text());
            let slot = match words.split(' ').find_map(column_role) {
                Some(ColumnRole::Regex) => &mut columns.regex,
                Some(ColumnRole::Severity) => &mut columns.severity,
                Some(ColumnRole::Files) => &mut columns.files,
                Some(ColumnRole::Id) => &mut columns.id,
                Some(ColumnRole::Description) => &mut columns.description,
                None if matches!(words.as_str(), "pattern" | "patterns") => &mut columns.either,
                None => &mut free,
            };
            slot.get_or_insert(at);
        }
        columns.settle_pattern_column();
        columns.description = columns.description.or(free);
        let names = columns.id.or(columns.either).or(columns.regex);
        names.is_some().then_some(columns)
    }

    /// Decides on the column `Pattern`: beside an id it is the expression, beside an expression it is the id.
    fn settle_pattern_column(&mut self) {
        match (self.id, self.regex) {
            (Some(_), None) => self.regex = self.either.take(),
            (None, Some(_)) => self.id = self.either.take(),
            (Some(_), Some(_)) => self.either = None,
            (None, None) => {}
        }
    }

    /// Reads the id and the expression of a row. Returns `None` if the row has no id.
    fn read_row(&self, row: &DocumentRow, source: &Source) -> Option<(String, Option<String>)> {
        let mut id = cell_at(row, self.id).map(id_of).filter(|id| !id.is_empty());
        let mut expression = cell_at(row, self.regex).and_then(|cell| expression_of(cell, source));
        if let Some(either) = cell_at(row, self.either) {
            let text = code_or_plain(either);
            if is_id(&text) {
                id = Some(text);
            } else {
                expression = expression_of(either, source);
            }
        }
        if id.is_none() && expression.is_some() {
            id = cell_at(row, self.description).map(|cell| make_slug(&cell.inline.plain_text()));
        }
        id.filter(|id| !id.is_empty()).map(|id| (id, expression))
    }

    fn read_pattern(
        &self,
        id: String,
        row: &DocumentRow,
        source: &Source,
        out: &mut ReviewDiagnostics,
    ) -> ReviewPattern {
        let description = cell_at(row, self.description).map(|cell| cell.inline.plain_text());
        let description = description.unwrap_or_default();
        let description = out.clip_text(description, REVIEW_TEXT_CHARS_MAX, source, row.span);
        let said =
            cell_at(row, self.severity).map(|cell| cell.inline.plain_text()).unwrap_or_default();
        let severity = severity_in(&said);
        if severity.is_none() && said.contains(char::is_alphanumeric) {
            let message = format!("`{said}` is no severity, so `{id}` has none of its own");
            out.add(&codes::REVIEW_SEVERITY, message, source, row.span);
        }
        let (mut files, unknown) = cell_at(row, self.files)
            .map(|cell| glob::globs_of_cell(&cell.inline))
            .unwrap_or_default();
        if let Some(first) = unknown.first() {
            let message = format!(
                "`{first}` is no glob and no language that we know; `{id}` is for the files that are left, or for all"
            );
            out.add(&codes::REVIEW_GLOB, message, source, row.span);
        }
        out.cap_list(&mut files, REVIEW_PATTERN_GLOBS_MAX, "globs of a pattern", source, |_| {
            row.span
        });
        ReviewPattern { description, severity, files, ..ReviewPattern::with_id(id) }
    }
}

fn cell_at(row: &DocumentRow, column: Option<usize>) -> Option<&DocumentCell> {
    column.and_then(|at| row.cells.get(at))
}

/// The role of a column, by a word of its header.
#[derive(Clone, Copy)]
enum ColumnRole {
    Id,
    Regex,
    Description,
    Severity,
    Files,
}

fn column_role(word: &str) -> Option<ColumnRole> {
    match word {
        "regex" | "regexp" | "regexes" | "expression" | "expressions" => Some(ColumnRole::Regex),
        "severity" => Some(ColumnRole::Severity),
        "file" | "files" | "glob" | "globs" | "language" | "languages" | "lang" => {
            Some(ColumnRole::Files)
        }
        "id" | "ids" | "name" | "names" | "key" => Some(ColumnRole::Id),
        "description" | "descriptions" | "finds" | "meaning" | "detects" | "catches" | "what" => {
            Some(ColumnRole::Description)
        }
        _ => None,
    }
}

fn code_or_plain(cell: &DocumentCell) -> String {
    let mut codes = cell.inline.code_texts();
    match (codes.next(), codes.next()) {
        (Some(code), None) => super::inline::join_plain(std::iter::once(code)),
        _ => cell.inline.plain_text(),
    }
}

fn id_of(cell: &DocumentCell) -> String {
    let text = match cell.inline.code_texts().next() {
        Some(code) => super::inline::join_plain(std::iter::once(code)),
        None => cell.inline.plain_text(),
    };
    if is_id(&text) { text } else { make_slug(&text) }
}

/// Makes an id from words: `Hardcoded password` becomes `hardcoded_password`.
fn make_slug(text: &str) -> String {
    normalise_words(text).replace(' ', "_").chars().take(REVIEW_NAME_CHARS_MAX).collect()
}

/// The expression in a cell; `None` if the cell says that there is none. Text that is not code is taken from the
/// Markdown source, since the parser would drop some of its characters.
fn expression_of(cell: &DocumentCell, source: &Source) -> Option<String> {
    let plain = cell.inline.plain_text();
    if says_none(&plain) {
        return None;
    }
    let mut codes = cell.inline.code_texts();
    if let Some(code) = codes.next() {
        return Some(code.to_owned()).filter(|code| !code.trim().is_empty());
    }
    let written = cell.span.slice(source.text()).trim().trim_matches('|').trim();
    let is_prose = !written.contains(['\\', '[', ']', '(', ')', '*', '+', '?', '^', '$', '|', '{'])
        && written.contains(' ');
    (!is_prose && !written.is_empty()).then(|| written.replace("\\|", "|"))
}

fn says_none(text: &str) -> bool {
    let words = normalise_words(text);
    words.is_empty() && text.chars().all(|c| matches!(c, '-' | '–' | '—' | ' '))
        || words == "none"
        || words == "n a"
        || words.starts_with("n a ")
        || words.starts_with("none ")
        || words.starts_with("detected ")
}
