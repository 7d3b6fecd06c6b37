//! Parses `.repertoire/review-ignore.yaml`, the repository's file of suppressed findings.

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobSet;
use jiff::civil::Date;
use repertoire_text::source::{Position, Span};
use repertoire_text::yaml::{Limits, Mapping, Node, parse};

use super::Suppressed;
use crate::content::globs;
use crate::limits::REVIEW_IGNORES_MAX;
use crate::prints::{About, Prints};

/// The suppressed findings of a repository.
#[derive(Clone, Debug, Default)]
pub struct IgnoreFile {
    path: Utf8PathBuf,
    entries: Vec<Ignore>,
    warnings: Vec<String>,
}

/// An entry of the ignore file.
#[derive(Clone, Debug)]
pub struct Ignore {
    what: What,
    reason: Option<String>,
    line: u32,
}

#[derive(Clone, Debug)]
enum What {
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
        let place = Place { path, text };
        let node = parse(text, Span::new(0, text.len()), &LIMITS)
            .map_err(|error| place.wrong(error.span, error.message))?;
        let mut file = IgnoreFile { path: path.to_owned(), ..IgnoreFile::default() };
        if node.is_null() {
            return Ok(file);
        }
        let Some(items) = node.as_sequence() else {
            let found = node.shape();
            return Err(place.wrong(node.span, format!("this should be a list, and is {found}")));
        };
        if items.len() > REVIEW_IGNORES_MAX {
            let message = format!("{} entries; {REVIEW_IGNORES_MAX} at most", items.len());
            return Err(place.wrong(node.span, message));
        }
        let today = today(now_ms);
        for item in items {
            let (entry, until) = place.entry(item)?;
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
    pub fn hit(&self, about: &About<'_>, prints: &Prints) -> Option<Suppressed> {
        let entry = self.entries.iter().find(|entry| entry.is_about(about, prints))?;
        let by = format!("{}:{}", self.path, entry.line);
        Some(Suppressed { by, reason: entry.reason.clone() })
    }
}

impl Ignore {
    fn is_about(&self, about: &About<'_>, prints: &Prints) -> bool {
        match &self.what {
            What::Fingerprint(print) => prints.fingerprint == *print,
            What::Path { files, category, pattern } => {
                let is_category = |wanted: &String| about.categories.contains(wanted);
                let is_pattern = |wanted: &String| about.pattern == Some(wanted.as_str());
                files.is_match(about.file.path())
                    && category.as_ref().is_none_or(is_category)
                    && pattern.as_ref().is_none_or(is_pattern)
            }
        }
    }
}

fn today(now_ms: u64) -> Date {
    let now = i64::try_from(now_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    now.unwrap_or(jiff::Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date()
}

struct Place<'a> {
    path: &'a Utf8Path,
    text: &'a str,
}

impl Place<'_> {
    fn wrong(&self, span: Span, message: impl Into<String>) -> IgnoreError {
        let line = self.line(span);
        IgnoreError { path: self.path.to_owned(), line, message: message.into() }
    }

    fn line(&self, span: Span) -> u32 {
        Position::of(self.text, span.start as usize).line
    }

    fn entry(&self, item: &Node) -> Result<(Ignore, Option<Date>), IgnoreError> {
        let Some(mapping) = item.as_mapping() else {
            let message = format!("an entry should have keys, and this is {}", item.shape());
            return Err(self.wrong(item.span, message));
        };
        if let Some(entry) =
            mapping.entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str()))
        {
            let message = format!("`{}` is no key; there are {}", entry.key, KEYS.join(", "));
            return Err(self.wrong(entry.key_span, message));
        }
        let text = |key: &str| self.text_of(mapping, key);
        let (print, path, reason) = (text("fingerprint")?, text("path")?, text("reason")?);
        let (category, pattern) = (text("category")?, text("pattern")?);
        let what = match (print, path) {
            (Some(print), None) if category.is_none() && pattern.is_none() => {
                What::Fingerprint(print)
            }
            (None, Some(path)) => {
                if reason.is_none() {
                    let message = "a `path` that is ignored needs a `reason`";
                    return Err(self.wrong(item.span, message));
                }
                let (files, wrong) = globs(&[path]);
                if let Some(wrong) = wrong.first() {
                    return Err(self.wrong(item.span, format!("`{wrong}` is not a glob")));
                }
                What::Path { files, category, pattern }
            }
            (None, None) => {
                return Err(self.wrong(item.span, "an entry needs a `fingerprint` or a `path`"));
            }
            (Some(_), _) => {
                let message =
                    "a `fingerprint` says it all: leave out `path`, `category` and `pattern`";
                return Err(self.wrong(item.span, message));
            }
        };
        let until = match text("until")? {
            Some(text) => Some(text.parse::<Date>().map_err(|_| {
                let node = mapping.get("until").map_or(item.span, |node| node.span);
                self.wrong(node, format!("`{text}` is no date; write it as 2027-01-31"))
            })?),
            None => None,
        };
        Ok((Ignore { what, reason, line: self.line(item.span) }, until))
    }

    fn text_of(&self, mapping: &Mapping, key: &str) -> Result<Option<String>, IgnoreError> {
        let Some(node) = mapping.get(key) else { return Ok(None) };
        match node.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
            _ => Err(self.wrong(node.span, format!("`{key}` should be text"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prints::tests::{about, whole};
    use crate::prints::{FileIndex, prints};

    /// 2026-11-16.
    const NOW_MS: u64 = 1_794_787_200_000;

    fn read(text: &str) -> Result<IgnoreFile, IgnoreError> {
        IgnoreFile::parse(".repertoire/review-ignore.yaml".into(), text, NOW_MS)
    }

    fn hit(file: &IgnoreFile, path: &str, category: &str, pattern: Option<&str>) -> Option<String> {
        let (code, categories) = (whole(path, "call();\n"), [category.to_owned()]);
        let index = FileIndex::of(&code);
        let about = about(&index, (1, 1), &categories, pattern);
        file.hit(&about, &prints(&about)).map(|found| found.to_string())
    }

    #[test]
    fn entries_are_about_paths_categories_patterns_and_prints() {
        let (code, categories) = (whole("x.rs", "call();\n"), ["bugs".to_owned()]);
        let print = prints(&about(&FileIndex::of(&code), (1, 1), &categories, None));
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
