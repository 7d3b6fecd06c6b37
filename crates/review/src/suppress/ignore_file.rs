//! Parses `.repertoire/review-ignore.yaml`, the repository's file of suppressed findings.

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobSet;
use jiff::civil::Date;
use repertoire_text::source::{Span, TextPosition};
use repertoire_text::yaml::{Limits, YamlMapping, YamlNode, parse};

use super::FindingSuppression;
use crate::content::compile_globs;
use crate::fingerprints::{FindingFingerprints, FindingIdentity};
use crate::limits::REVIEW_IGNORES_MAX;

/// The suppressed findings of a repository.
#[derive(Clone, Debug, Default)]
pub struct IgnoreFile {
    path: Utf8PathBuf,
    entries: Vec<IgnoreEntry>,
    warnings: Vec<String>,
}

/// An entry of the ignore file.
#[derive(Clone, Debug)]
pub struct IgnoreEntry {
    what: IgnoreTarget,
    reason: Option<String>,
    line: u32,
}

#[derive(Clone, Debug)]
enum IgnoreTarget {
    Fingerprint(String),
    Path { files: GlobSet, category: Option<String>, pattern: Option<String> },
}

/// An error in the ignore file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {message}")]
pub struct IgnoreError {
    pub path: Utf8PathBuf,
    /// The line number, from 1.
    pub line: u32,
    pub message: String,
}

const KEYS: &[&str] = &["fingerprint", "path", "category", "pattern", "until", "reason"];

/// Room for [`REVIEW_IGNORES_MAX`] entries with all their keys.
const LIMITS: Limits = Limits { depth_max: 4, nodes_max: REVIEW_IGNORES_MAX * 16, repairs_max: 0 };

impl IgnoreFile {
    /// Parses an ignore file. Expired entries have no effect, and cause a warning.
    pub fn parse(path: &Utf8Path, text: &str, now_ms: u64) -> Result<IgnoreFile, IgnoreError> {
        let place = IgnoreFileReader { path, text };
        let node = parse(text, Span::new(0, text.len()), &LIMITS)
            .map_err(|error| place.error_at(error.span, error.message))?;
        let mut file = IgnoreFile { path: path.to_owned(), ..IgnoreFile::default() };
        if node.is_null() {
            return Ok(file);
        }
        let Some(items) = node.as_sequence() else {
            let found = node.shape_name();
            return Err(place.error_at(node.span, format!("this should be a list, and is {found}")));
        };
        if items.len() > REVIEW_IGNORES_MAX {
            let message = format!("{} entries; {REVIEW_IGNORES_MAX} at most", items.len());
            return Err(place.error_at(node.span, message));
        }
        let today = utc_date(now_ms);
        for item in items {
            let (entry, until) = place.parse_entry(item)?;
            match until.filter(|until| *until < today) {
                Some(until) => file.warnings.push(format!(
                    "{path}:{}: this was to be ignored until {until}, and is reported again",
                    entry.line
                )),
                None => file.entries.push(entry),
            }
        }
        Ok(file)
    }

    /// Warnings about expired entries.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The number of entries in effect.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no entry is in effect.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry that suppresses a finding.
    pub fn find_suppression(
        &self,
        about: &FindingIdentity<'_>,
        prints: &FindingFingerprints,
    ) -> Option<FindingSuppression> {
        let entry = self.entries.iter().find(|entry| entry.applies_to(about, prints))?;
        let by = format!("{}:{}", self.path, entry.line);
        Some(FindingSuppression { by, reason: entry.reason.clone() })
    }
}

impl IgnoreEntry {
    fn applies_to(&self, about: &FindingIdentity<'_>, prints: &FindingFingerprints) -> bool {
        match &self.what {
            IgnoreTarget::Fingerprint(print) => prints.fingerprint == *print,
            IgnoreTarget::Path { files, category, pattern } => {
                let is_category = |wanted: &String| about.categories.contains(wanted);
                let is_pattern = |wanted: &String| about.pattern == Some(wanted.as_str());
                files.is_match(about.file.path())
                    && category.as_ref().is_none_or(is_category)
                    && pattern.as_ref().is_none_or(is_pattern)
            }
        }
    }
}

fn utc_date(now_ms: u64) -> Date {
    let now = i64::try_from(now_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    now.unwrap_or(jiff::Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date()
}

struct IgnoreFileReader<'a> {
    path: &'a Utf8Path,
    text: &'a str,
}

impl IgnoreFileReader<'_> {
    fn error_at(&self, span: Span, message: impl Into<String>) -> IgnoreError {
        let line = self.line_of(span);
        IgnoreError { path: self.path.to_owned(), line, message: message.into() }
    }

    fn line_of(&self, span: Span) -> u32 {
        TextPosition::of_offset(self.text, span.start as usize).line
    }

    fn parse_entry(&self, item: &YamlNode) -> Result<(IgnoreEntry, Option<Date>), IgnoreError> {
        let Some(mapping) = item.as_mapping() else {
            let message = format!("an entry should have keys, and this is {}", item.shape_name());
            return Err(self.error_at(item.span, message));
        };
        if let Some(entry) =
            mapping.entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str()))
        {
            let message = format!("`{}` is no key; there are {}", entry.key, KEYS.join(", "));
            return Err(self.error_at(entry.key_span, message));
        }
        let text = |key: &str| self.read_text(mapping, key);
        let (print, path, reason) = (text("fingerprint")?, text("path")?, text("reason")?);
        let (category, pattern) = (text("category")?, text("pattern")?);
        let what = match (print, path) {
            (Some(print), None) if category.is_none() && pattern.is_none() => {
                IgnoreTarget::Fingerprint(print)
            }
            (None, Some(path)) => {
                if reason.is_none() {
                    let message = "a `path` that is ignored needs a `reason`";
                    return Err(self.error_at(item.span, message));
                }
                let (files, wrong) = compile_globs(&[path]);
                if let Some(wrong) = wrong.first() {
                    return Err(self.error_at(item.span, format!("`{wrong}` is not a glob")));
                }
                IgnoreTarget::Path { files, category, pattern }
            }
            (None, None) => {
                return Err(self.error_at(item.span, "an entry needs a `fingerprint` or a `path`"));
            }
            (Some(_), _) => {
                let message =
                    "a `fingerprint` says it all: leave out `path`, `category` and `pattern`";
                return Err(self.error_at(item.span, message));
            }
        };
        let until = match text("until")? {
            Some(text) => Some(text.parse::<Date>().map_err(|_| {
                let node = mapping.get("until").map_or(item.span, |node| node.span);
                self.error_at(node, format!("`{text}` is no date; write it as 2027-01-31"))
            })?),
            None => None,
        };
        Ok((IgnoreEntry { what, reason, line: self.line_of(item.span) }, until))
    }

    fn read_text(&self, mapping: &YamlMapping, key: &str) -> Result<Option<String>, IgnoreError> {
        let Some(node) = mapping.get(key) else { return Ok(None) };
        match node.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
            _ => Err(self.error_at(node.span, format!("`{key}` should be text"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprints::tests::{about, whole};
    use crate::fingerprints::{FileIndex, compute_fingerprints};

    /// 2026-11-16.
    const NOW_MS: u64 = 1_794_787_200_000;

    fn read(text: &str) -> Result<IgnoreFile, IgnoreError> {
        IgnoreFile::parse(".repertoire/review-ignore.yaml".into(), text, NOW_MS)
    }

    fn hit(file: &IgnoreFile, path: &str, category: &str, pattern: Option<&str>) -> Option<String> {
        let (code, categories) = (whole(path, "call();\n"), [category.to_owned()]);
        let index = FileIndex::new(&code);
        let about = about(&index, (1, 1), &categories, pattern);
        file.find_suppression(&about, &compute_fingerprints(&about)).map(|found| found.to_string())
    }

    #[test]
    fn entries_are_about_paths_categories_patterns_and_prints() {
        let (code, categories) = (whole("x.rs", "call();\n"), ["bugs".to_owned()]);
        let print = compute_fingerprints(&about(&FileIndex::new(&code), (1, 1), &categories, None));
        let text = format!(
            "- fingerprint: {}\n- path: legacy/**\n  category: style\n  reason: it goes away\n\
             - {{path: '*.sql', pattern: eval, reason: no code}}\n",
            print.fingerprint
        );
        let file = read(&text).unwrap();
        assert_eq!(file.len(), 3);
        assert_eq!(
            hit(&file, "x.rs", "bugs", None).as_deref(),
            Some("suppressed by .repertoire/review-ignore.yaml:1")
        );
        assert_eq!(hit(&file, "y.rs", "bugs", None), None);
        assert_eq!(
            hit(&file, "legacy/a/b.rs", "style", None).as_deref(),
            Some("suppressed by .repertoire/review-ignore.yaml:2 (it goes away)")
        );
        assert_eq!(hit(&file, "legacy/a/b.rs", "bugs", None), None);
        assert!(hit(&file, "db/1.sql", "bugs", Some("eval")).is_some());
        assert_eq!(hit(&file, "db/1.sql", "bugs", None), None);
    }

    #[test]
    fn what_has_run_out_has_no_effect_and_is_told() {
        let entry = |until: &str| format!("- path: a.rs\n  until: {until}\n  reason: later\n");
        let file = read(&format!("{}{}", entry("2026-11-15"), entry("2026-11-16"))).unwrap();
        assert_eq!(file.len(), 1, "the day itself still counts");
        assert_eq!(
            file.warnings(),
            [
                ".repertoire/review-ignore.yaml:1: this was to be ignored until 2026-11-15, and is reported again"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, said) in [
            ("- path: a\n  reason: b\n- path: c\n  categry: d\n", 4, "`categry` is no key"),
            ("path: a\n", 1, "should be a list, and is a mapping"),
            ("- a\n", 1, "should have keys, and this is text"),
            ("- reason: a\n", 1, "needs a `fingerprint` or a `path`"),
            ("\n- path: a\n", 2, "needs a `reason`"),
            ("- fingerprint: a\n  path: b\n  reason: c\n", 1, "says it all"),
            ("- path: a\n  reason: b\n  until: soon\n", 3, "`soon` is no date"),
            ("- path: [a]\n  reason: b\n", 1, "`path` should be text"),
            ("- path: 'a{'\n  reason: b\n", 1, "is not a glob"),
            ("- path: 'a\n", 1, ""),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(read("").unwrap().is_empty());
        assert!(read("# nothing\n").unwrap().is_empty());
    }
}
