//! The rules of the specification, with the messages of the reference validator.

use std::borrow::Cow;
use std::sync::LazyLock;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use regex::Regex;
use repertoire_text::yaml::{YamlEntry, YamlMapping};
use repertoire_text::{Diagnostic, DiagnosticCode, Limits, Source, Span, fs};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::frontmatter::parse_frontmatter;
use crate::codes;

/// The maximum number of characters in a name.
const NAME_CHARS_MAX: usize = 64;
/// The maximum number of characters in a description.
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// The maximum number of characters in `compatibility`.
const COMPATIBILITY_CHARS_MAX: usize = 500;

/// The fields of the specification, sorted.
const ALLOWED_FIELDS: [&str; 6] =
    ["allowed-tools", "compatibility", "description", "license", "metadata", "name"];

/// A problem that skills-ref reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFinding {
    /// The message of skills-ref.
    pub message: String,
    /// The rule that is violated.
    pub kind: SpecFindingKind,
    /// The field that the rule is about, if any.
    pub field: Option<Field>,
    /// The position in the file, if there is one.
    pub span: Option<Span>,
}

/// A field with rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Name,
    Description,
    Compatibility,
}

/// The rules of skills-ref, in the order in which they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecFindingKind {
    /// The path does not exist.
    PathMissing,
    /// The path is not a folder.
    NotAFolder,
    /// The folder has no `SKILL.md`.
    SkillMdMissing,
    /// The file cannot be read, or is not UTF-8; skills-ref crashes here.
    Unreadable,
    /// The file does not start with `---`.
    FrontmatterMissing,
    /// There is no second `---`.
    FrontmatterNotClosed,
    /// The text between the two is not strict YAML.
    Yaml,
    /// The frontmatter is YAML, but not a mapping.
    NotAMapping,
    /// There are fields that the specification does not know.
    UnexpectedFields,
    /// A required field is missing.
    FieldMissing,
    /// A required field is empty or not a string.
    FieldEmpty,
    NameTooLong,
    NameNotLowercase,
    NameEdgeHyphen,
    /// The name contains `--`.
    NameDoubleHyphen,
    /// The name contains characters other than letters, digits and hyphens.
    NameCharacters,
    /// The name differs from the folder's.
    NameNotFolder,
    DescriptionTooLong,
    CompatibilityNotText,
    CompatibilityTooLong,
}

impl SpecFindingKind {
    /// The code of the corresponding diagnostic.
    pub fn code(self) -> &'static DiagnosticCode {
        match self {
            SpecFindingKind::PathMissing => &codes::SPEC_PATH_MISSING,
            SpecFindingKind::NotAFolder => &codes::SPEC_NOT_A_FOLDER,
            SpecFindingKind::SkillMdMissing => &codes::SPEC_SKILL_MD_MISSING,
            SpecFindingKind::Unreadable => &codes::SPEC_UNREADABLE,
            SpecFindingKind::FrontmatterMissing => &codes::SPEC_FRONTMATTER_MISSING,
            SpecFindingKind::FrontmatterNotClosed => &codes::SPEC_FRONTMATTER_NOT_CLOSED,
            SpecFindingKind::Yaml => &codes::SPEC_YAML,
            SpecFindingKind::NotAMapping => &codes::SPEC_NOT_A_MAPPING,
            SpecFindingKind::UnexpectedFields => &codes::SPEC_UNEXPECTED_FIELDS,
            SpecFindingKind::FieldMissing => &codes::SPEC_FIELD_MISSING,
            SpecFindingKind::FieldEmpty => &codes::SPEC_FIELD_EMPTY,
            SpecFindingKind::NameTooLong => &codes::SPEC_NAME_TOO_LONG,
            SpecFindingKind::NameNotLowercase => &codes::SPEC_NAME_LOWERCASE,
            SpecFindingKind::NameEdgeHyphen => &codes::SPEC_NAME_EDGE_HYPHEN,
            SpecFindingKind::NameDoubleHyphen => &codes::SPEC_NAME_DOUBLE_HYPHEN,
            SpecFindingKind::NameCharacters => &codes::SPEC_NAME_CHARACTERS,
            SpecFindingKind::NameNotFolder => &codes::SPEC_NAME_FOLDER,
            SpecFindingKind::DescriptionTooLong => &codes::SPEC_DESCRIPTION_TOO_LONG,
            SpecFindingKind::CompatibilityNotText => &codes::SPEC_COMPATIBILITY_NOT_TEXT,
            SpecFindingKind::CompatibilityTooLong => &codes::SPEC_COMPATIBILITY_TOO_LONG,
        }
    }
}

impl Field {
    /// The name of the field in the frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Name => "name",
            Field::Description => "description",
            Field::Compatibility => "compatibility",
        }
    }
}

impl SpecFinding {
    /// Creates a finding without a position.
    pub(super) fn new(kind: SpecFindingKind, message: impl Into<String>) -> Self {
        SpecFinding { message: message.into(), kind, field: None, span: None }
    }

    /// Creates a finding about a field, with its position if the field is present.
    pub(super) fn about_field(
        kind: SpecFindingKind,
        field: Field,
        entry: Option<&YamlEntry>,
        message: impl Into<String>,
    ) -> Self {
        let span =
            entry.map(|entry| Span { start: entry.key_span.start, end: entry.value.span.end });
        SpecFinding { message: message.into(), kind, field: Some(field), span }
    }

    /// Sets the position.
    pub(super) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Converts the finding to a diagnostic about `source`, with the remedy of its code.
    pub fn to_diagnostic(&self, source: &Source) -> Diagnostic {
        let code = self.kind.code();
        let diagnostic = Diagnostic::new(code, self.message.as_str()).help(code.remedy);
        match self.span {
            Some(span) => diagnostic.at(source, span),
            None => diagnostic.in_file(source.path()),
        }
    }
}

/// Validates the text of a `SKILL.md` in a folder named `dir_name`, like skills-ref.
pub fn validate(text: &str, dir_name: &str) -> Vec<SpecFinding> {
    match parse_frontmatter(text) {
        Ok(metadata) => validate_fields(&metadata.fields, dir_name),
        Err(finding) => vec![finding],
    }
}

/// Validates a path like `agentskills validate`: a skill's folder or its `SKILL.md`.
pub fn validate_path(path: &Utf8Path) -> Vec<SpecFinding> {
    let dir = skill_dir(path);
    let text = match read_skill_md(dir) {
        Ok((text, _)) => text,
        Err(fs::ReadError::NotFound) => return vec![explain_missing(dir)],
        Err(_) if !dir.is_dir() => return vec![explain_missing(dir)],
        Err(error) => return vec![unreadable_finding(&error)],
    };
    validate(&text, &dir_name(dir))
}

/// Formats a path like Python's `pathlib`: no `.` components, no doubled or trailing slashes.
pub fn shown_path(path: &Utf8Path) -> Utf8PathBuf {
    let parts = path.components().filter(|part| *part != Utf8Component::CurDir);
    let shown: Utf8PathBuf = parts.collect();
    if shown.as_str().is_empty() { ".".into() } else { shown }
}

/// Returns the folder of a skill: a path to `SKILL.md` itself stands for the folder around it.
pub(super) fn skill_dir(path: &Utf8Path) -> &Utf8Path {
    let is_skill_md = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("skill.md"))
        && path.is_file();
    match path.parent() {
        Some(parent) if is_skill_md && parent == "" => Utf8Path::new("."),
        Some(parent) if is_skill_md => parent,
        _ => path,
    }
}

/// Reads the folder's `SKILL.md`, or its `skill.md`, and returns the name that was found.
pub(super) fn read_skill_md(dir: &Utf8Path) -> Result<(String, &'static str), fs::ReadError> {
    match read_in_folder(dir, "SKILL.md") {
        Err(fs::ReadError::NotFound) => Ok((read_in_folder(dir, "skill.md")?, "skill.md")),
        found => Ok((found?, "SKILL.md")),
    }
}

fn read_in_folder(dir: &Utf8Path, name: &str) -> Result<String, fs::ReadError> {
    let bytes_max = Limits::default().file_bytes_max;
    // Only a link needs the slower read that keeps it beneath the folder.
    match fs::read_text(&dir.join(name), bytes_max) {
        Err(fs::ReadError::LinkLeaves) => {
            fs::read_text_beneath(dir, Utf8Path::new(name), bytes_max)
        }
        found => found,
    }
}

/// The finding about a file that exists but cannot be read.
pub(super) fn unreadable_finding(error: &fs::ReadError) -> SpecFinding {
    SpecFinding::new(SpecFindingKind::Unreadable, format!("SKILL.md cannot be read: {error}"))
}

fn explain_missing(dir: &Utf8Path) -> SpecFinding {
    let shown = shown_path(dir);
    if !dir.exists() {
        return SpecFinding::new(
            SpecFindingKind::PathMissing,
            format!("Path does not exist: {shown}"),
        );
    }
    if !dir.is_dir() {
        return SpecFinding::new(SpecFindingKind::NotAFolder, format!("Not a directory: {shown}"));
    }
    SpecFinding::new(SpecFindingKind::SkillMdMissing, "Missing required file: SKILL.md")
}

/// Returns the folder's name as given, or its real name if the path has no last component.
fn dir_name(dir: &Utf8Path) -> Cow<'_, str> {
    if let Some(name) = dir.file_name() {
        return Cow::Borrowed(name);
    }
    let real = dir.canonicalize_utf8().ok();
    Cow::Owned(real.as_deref().and_then(Utf8Path::file_name).unwrap_or("").to_owned())
}

fn validate_fields(fields: &YamlMapping, dir_name: &str) -> Vec<SpecFinding> {
    let mut findings = Vec::new();
    findings.extend(unexpected_fields(fields));
    match find_field(fields, "name") {
        Some(found) => validate_name(found, dir_name, &mut findings),
        None => findings.push(missing_field(Field::Name)),
    }
    match find_field(fields, "description") {
        Some(found) => findings.extend(validate_description(found)),
        None => findings.push(missing_field(Field::Description)),
    }
    if let Some(found) = find_field(fields, "compatibility") {
        findings.extend(validate_compatibility(found));
    }
    findings
}

/// Looks up a field.
pub(super) fn find_field<'a>(fields: &'a YamlMapping, name: &str) -> Option<&'a YamlEntry> {
    fields.entries.iter().find(|entry| entry.key == name)
}

/// The finding about a missing required field.
pub(super) fn missing_field(field: Field) -> SpecFinding {
    let message = format!("Missing required field in frontmatter: {}", field.as_str());
    SpecFinding::about_field(SpecFindingKind::FieldMissing, field, None, message)
}

/// Returns the trimmed text of a required field, or the finding about its absence.
pub(super) fn required_text(entry: &YamlEntry, field: Field) -> Result<&str, SpecFinding> {
    match entry.value.as_str().map(python_strip) {
        Some(text) if !text.is_empty() => Ok(text),
        _ => {
            let message = format!("Field '{}' must be a non-empty string", field.as_str());
            Err(SpecFinding::about_field(SpecFindingKind::FieldEmpty, field, Some(entry), message))
        }
    }
}

fn unexpected_fields(fields: &YamlMapping) -> Option<SpecFinding> {
    let is_extra = |entry: &&YamlEntry| !ALLOWED_FIELDS.contains(&entry.key.as_str());
    let first = fields.entries.iter().find(is_extra)?;
    let mut names: Vec<&str> =
        fields.entries.iter().filter(is_extra).map(|entry| entry.key.as_str()).collect();
    names.sort_unstable();
    let message = format!(
        "Unexpected fields in frontmatter: {}. Only ['{}'] are allowed.",
        names.join(", "),
        ALLOWED_FIELDS.join("', '")
    );
    Some(SpecFinding::new(SpecFindingKind::UnexpectedFields, message).at(first.key_span))
}

fn validate_name(entry: &YamlEntry, dir_name: &str, findings: &mut Vec<SpecFinding>) {
    let mut find = |kind, message: String| {
        findings.push(SpecFinding::about_field(kind, Field::Name, Some(entry), message));
    };
    let name = match required_text(entry, Field::Name) {
        Ok(text) => normalise_nfkc(text),
        Err(finding) => return findings.push(finding),
    };
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        let limit = NAME_CHARS_MAX;
        let message =
            format!("Skill name '{name}' exceeds {limit} character limit ({chars} chars)");
        find(SpecFindingKind::NameTooLong, message);
    }
    if !is_lowercase(&name) {
        find(SpecFindingKind::NameNotLowercase, format!("Skill name '{name}' must be lowercase"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        let message = "Skill name cannot start or end with a hyphen";
        find(SpecFindingKind::NameEdgeHyphen, message.to_owned());
    }
    if name.contains("--") {
        let message = "Skill name cannot contain consecutive hyphens";
        find(SpecFindingKind::NameDoubleHyphen, message.to_owned());
    }
    if !name.chars().all(|c| c == '-' || is_alphanumeric(c)) {
        let message = format!(
            "Skill name '{name}' contains invalid characters. \
             Only letters, digits, and hyphens are allowed."
        );
        find(SpecFindingKind::NameCharacters, message);
    }
    if normalise_nfkc(dir_name) != name {
        let message = format!("Directory name '{dir_name}' must match skill name '{name}'");
        find(SpecFindingKind::NameNotFolder, message);
    }
}

fn validate_description(entry: &YamlEntry) -> Option<SpecFinding> {
    if let Err(finding) = required_text(entry, Field::Description) {
        return Some(finding);
    }
    let chars = chars_over(entry.value.as_str()?, DESCRIPTION_CHARS_MAX)?;
    let limit = DESCRIPTION_CHARS_MAX;
    let message = format!("Description exceeds {limit} character limit ({chars} chars)");
    Some(SpecFinding::about_field(
        SpecFindingKind::DescriptionTooLong,
        Field::Description,
        Some(entry),
        message,
    ))
}

fn validate_compatibility(entry: &YamlEntry) -> Option<SpecFinding> {
    let find = |kind, message: String| {
        Some(SpecFinding::about_field(kind, Field::Compatibility, Some(entry), message))
    };
    let Some(text) = entry.value.as_str() else {
        let message = "Field 'compatibility' must be a string";
        return find(SpecFindingKind::CompatibilityNotText, message.to_owned());
    };
    let chars = chars_over(text, COMPATIBILITY_CHARS_MAX)?;
    let limit = COMPATIBILITY_CHARS_MAX;
    let message = format!("Compatibility exceeds {limit} character limit ({chars} chars)");
    find(SpecFindingKind::CompatibilityTooLong, message)
}

/// Returns the number of characters if it exceeds the limit.
fn chars_over(text: &str, limit: usize) -> Option<usize> {
    // The number of characters never exceeds the number of bytes, so most texts need no counting.
    (text.len() > limit).then(|| text.chars().count()).filter(|chars| *chars > limit)
}

/// Python's `str.strip`, which also treats the four ASCII separators as whitespace.
fn python_strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Python's `unicodedata.normalize("NFKC", …)`.
fn normalise_nfkc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkc().collect())
}

/// Python's `text == text.lower()`.
fn is_lowercase(text: &str) -> bool {
    if text.is_ascii() {
        return !text.bytes().any(|byte| byte.is_ascii_uppercase());
    }
    text.to_lowercase() == text
}

/// Python's `str.isalnum` for one character: a letter or a number, but not a mark.
fn is_alphanumeric(c: char) -> bool {
    static LETTER_OR_NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{N}]$").expect("the pattern is constant"));
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    LETTER_OR_NUMBER.is_match(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
