//! The findings of an earlier review, so that they are not reported again.

use std::collections::{BTreeMap, BTreeSet};

use crate::extract::ReviewSeverity;
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{ReadError, read_text};
use serde::Deserialize;

use super::fingerprints::KnownFindingQuery;
use super::record::{LeftOutFinding, LeftOutReason, ReportedFinding, VERSION};
use crate::limits::REVIEW_BASELINE_BYTES_MAX;

/// The findings that an earlier review reported.
#[derive(Clone, Debug, Default)]
pub struct ReviewBaseline {
    by_path: BTreeMap<Utf8PathBuf, KnownInFile>,
}

#[derive(Clone, Debug, Default)]
struct KnownInFile {
    known: Vec<KnownFinding>,
    /// Maps each fingerprint, of a finding or of one of its lines, to indexes in `known`.
    by_print: BTreeMap<String, Vec<usize>>,
}

#[derive(Clone, Debug)]
struct KnownFinding {
    fingerprint: String,
    line_prints: BTreeSet<String>,
    categories: Vec<String>,
    severity: ReviewSeverity,
}

/// An error in reading the record of an earlier review.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("the earlier review {path} cannot be read: {source}")]
    Read { path: Utf8PathBuf, source: ReadError },
    #[error("{path} is no record of a review: {why}; give it a file that a review wrote as JSON")]
    NotARecord { path: Utf8PathBuf, why: String },
    /// The record was written by a later version.
    #[error(
        "{path} has version {version} of the record, and {VERSION} is the latest that is known; update `rep`"
    )]
    TooNew { path: Utf8PathBuf, version: u32 },
}

/// The part of a review record that a baseline needs. Tolerates fields that are missing or unknown.
#[derive(Deserialize)]
struct BaselineRecord {
    #[serde(default)]
    version: Option<u32>,
    findings: Vec<FindingDisk>,
    #[serde(default)]
    left_out: Vec<LeftOutDisk>,
}

#[derive(Deserialize)]
struct FindingDisk {
    fingerprint: String,
    #[serde(default)]
    line_prints: Vec<String>,
    file: Utf8PathBuf,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default = "worst")]
    severity: ReviewSeverity,
}

#[derive(Deserialize)]
struct LeftOutDisk {
    file: Utf8PathBuf,
    #[serde(default)]
    fingerprint: Option<String>,
    #[serde(default)]
    severity: Option<ReviewSeverity>,
    why: serde_json::Value,
}

/// The severity to assume if a record has none, so that its finding counts as known at any severity.
fn worst() -> ReviewSeverity {
    ReviewSeverity::Critical
}

impl ReviewBaseline {
    /// Reads the record of an earlier review.
    pub fn read(path: &Utf8Path) -> Result<ReviewBaseline, BaselineError> {
        let text = read_text(path, REVIEW_BASELINE_BYTES_MAX);
        let text = text.map_err(|source| BaselineError::Read { path: path.to_owned(), source })?;
        ReviewBaseline::parse(path, &text)
    }

    /// Parses a record. `path` is used in error messages only.
    pub fn parse(path: &Utf8Path, text: &str) -> Result<ReviewBaseline, BaselineError> {
        let wrong = |why: String| BaselineError::NotARecord { path: path.to_owned(), why };
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| wrong(format!("it is not JSON ({error})")))?;
        if value.get("runs").is_some() && value.get("findings").is_none() {
            return Err(wrong("it is SARIF".to_owned()));
        }
        let disk: BaselineRecord =
            serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        if let Some(version) = disk.version.filter(|version| *version > VERSION) {
            return Err(BaselineError::TooNew { path: path.to_owned(), version });
        }
        let mut baseline = ReviewBaseline::default();
        for finding in disk.findings {
            let FindingDisk { fingerprint, line_prints, file, categories, severity } = finding;
            let line_prints = line_prints.into_iter().collect();
            baseline.add(file, KnownFinding { fingerprint, line_prints, categories, severity });
        }
        // Findings that were already known to that review stay known.
        let known = serde_json::json!(LeftOutReason::Known);
        for left in disk.left_out.into_iter().filter(|left| left.why == known) {
            if let Some(fingerprint) = left.fingerprint {
                let severity = left.severity.unwrap_or_else(worst);
                baseline.add(left.file, KnownFinding::by_print_alone(fingerprint, severity));
            }
        }
        Ok(baseline)
    }

    /// Adds a finding that was reported before.
    pub fn add_reported(&mut self, finding: &ReportedFinding) {
        let known = KnownFinding {
            fingerprint: finding.fingerprint.clone(),
            line_prints: finding.line_prints.iter().cloned().collect(),
            categories: finding.categories.clone(),
            severity: finding.severity,
        };
        self.add(finding.file.clone(), known);
    }

    /// Adds a finding that an earlier review left out because it was already known. Other left-out findings are
    /// ignored.
    pub fn add_known(&mut self, left_out: &LeftOutFinding) {
        let Some(fingerprint) = left_out.fingerprint.clone() else { return };
        if left_out.why == LeftOutReason::Known {
            let known = KnownFinding {
                fingerprint,
                line_prints: Default::default(),
                categories: Vec::new(),
                severity: left_out.severity.unwrap_or(ReviewSeverity::Critical),
            };
            self.add(Utf8PathBuf::from(&left_out.file), known);
        }
    }

    fn add(&mut self, path: Utf8PathBuf, known: KnownFinding) {
        let there = self.by_path.entry(path).or_default();
        let at = there.known.len();
        for print in std::iter::once(&known.fingerprint).chain(&known.line_prints) {
            there.by_print.entry(print.clone()).or_default().push(at);
        }
        there.known.push(known);
    }

    /// The number of known findings.
    pub fn len(&self) -> usize {
        self.by_path.values().map(|there| there.known.len()).sum()
    }

    /// Returns true if no finding is known.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Returns true if a finding of at least this severity was reported before in the same file, with the same
    /// fingerprint, or with one of these categories and all of the added lines of this one. A finding that cites an
    /// added line which the earlier one did not is new.
    pub fn is_known(
        &self,
        path: &Utf8Path,
        categories: &[String],
        severity: ReviewSeverity,
        sought: &KnownFindingQuery,
    ) -> bool {
        let Some(there) = self.by_path.get(path) else { return false };
        let with = |print: &String| there.by_print.get(print).into_iter().flatten();
        let mut alike = with(&sought.fingerprint).chain(sought.speaking.iter().flat_map(with));
        alike.any(|at| {
            let known = &there.known[*at];
            severity <= known.severity && known.is_same(categories, sought)
        })
    }
}

impl KnownFinding {
    fn by_print_alone(fingerprint: String, severity: ReviewSeverity) -> KnownFinding {
        let (line_prints, categories) = (BTreeSet::new(), Vec::new());
        KnownFinding { fingerprint, line_prints, categories, severity }
    }

    fn is_same(&self, categories: &[String], sought: &KnownFindingQuery) -> bool {
        let has = |print: &String| self.line_prints.contains(print);
        let of_category = || categories.iter().any(|one| self.categories.contains(one));
        let same_lines =
            || sought.speaking.as_ref().is_some_and(has) && sought.came.iter().all(has);
        self.fingerprint == sought.fingerprint || of_category() && same_lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{LineKind, ReviewedFile};
    use crate::fingerprints::tests::{about, whole};
    use crate::fingerprints::{FileIndex, FindingIdentity, compute_fingerprints, is_known_finding};

    fn parse(text: &str) -> Result<ReviewBaseline, BaselineError> {
        ReviewBaseline::parse("review.json".into(), text)
    }

    /// The baseline of a review that has reported these lines of a file.
    fn after(file: &ReviewedFile, lines: (u32, u32), severity: Option<&str>) -> ReviewBaseline {
        let (index, bugs) = (FileIndex::new(file), ["bugs".to_owned()]);
        let prints = compute_fingerprints(&about(&index, lines, &bugs, None));
        let mut finding = serde_json::json!({
            "fingerprint": prints.fingerprint, "line_prints": prints.line_prints,
            "file": file.path, "categories": bugs,
        });
        if let Some(severity) = severity {
            finding["severity"] = severity.into();
        }
        parse(&serde_json::json!({"version": 1, "findings": [finding]}).to_string()).unwrap()
    }

    fn knows(
        baseline: &ReviewBaseline,
        file: &ReviewedFile,
        lines: (u32, u32),
        severity: ReviewSeverity,
        category: &str,
    ) -> bool {
        let (index, categories) = (FileIndex::new(file), [category.to_owned()]);
        is_known_finding(
            baseline,
            &FindingIdentity { severity, ..about(&index, lines, &categories, None) },
        )
    }

    #[test]
    fn what_was_reported_is_known_under_its_old_name_and_with_a_smaller_range() {
        let text = "first();\nsecond();\nthird();\n";
        let baseline = after(&whole("old.rs", text), (1, 2), None);
        let mut now = whole("new.rs", &format!("zero();\n{text}"));
        let knows = |now: &ReviewedFile, first, last, category: &str| {
            knows(&baseline, now, (first, last), ReviewSeverity::Critical, category)
        };
        assert!(!knows(&now, 2, 3, "bugs"), "another file");
        now.old_path = Some("old.rs".into());
        assert!(knows(&now, 2, 3, "bugs"));
        assert!(knows(&now, 3, 3, "bugs"), "one of its lines");
        assert!(!knows(&now, 4, 4, "bugs"), "another line");
        assert!(!knows(&now, 3, 4, "bugs"), "another line as well");
        assert!(!knows(&now, 1, 3, "bugs"), "another line before");
        assert!(!knows(&now, 3, 3, "style"), "another category");
        assert_eq!(baseline.len(), 1);
    }

    #[test]
    fn what_is_worse_now_is_not_known() {
        let file = whole("a.rs", "first();\nsecond();\n");
        let baseline = after(&file, (1, 2), Some("Minor"));
        for lines in [(1, 2), (2, 2)] {
            let knows = |severity| knows(&baseline, &file, lines, severity, "bugs");
            assert!(knows(ReviewSeverity::Suggestion) && knows(ReviewSeverity::Minor), "{lines:?}");
            assert!(!knows(ReviewSeverity::Major) && !knows(ReviewSeverity::Critical), "{lines:?}");
        }
    }

    #[test]
    fn a_line_that_was_there_before_the_change_makes_nothing_known() {
        let mut file = whole("a.rs", "old_line();\nfirst();\n");
        let baseline = after(&file, (1, 1), None);
        assert!(knows(&baseline, &file, (1, 1), ReviewSeverity::Major, "bugs"));
        file.hunks[0].lines[0].kind = LineKind::Context;
        assert!(!knows(&baseline, &file, (1, 2), ReviewSeverity::Major, "bugs"));
    }

    #[test]
    fn what_was_known_before_stays_known() {
        let record = r#"{"findings": [], "left_out": [
            {"file": "a.rs", "fingerprint": "abc", "why": "known"},
            {"file": "a.rs", "fingerprint": "mild", "severity": "Minor", "why": "known"},
            {"file": "a.rs", "fingerprint": "def", "why": "too_mild"},
            {"file": "a.rs", "why": "known"}]}"#;
        let baseline = parse(record).unwrap();
        let is_known = |print: &str| {
            let sought =
                KnownFindingQuery { fingerprint: print.to_owned(), ..KnownFindingQuery::default() };
            baseline.is_known("a.rs".into(), &["bugs".to_owned()], ReviewSeverity::Major, &sought)
        };
        assert!(is_known("abc") && !is_known("def") && !is_known("mild"));
    }

    #[test]
    fn what_is_no_record_is_refused_with_a_reason() {
        for (text, said) in [
            ("", "not JSON"),
            ("[]", "no record of a review"),
            ("{}", "missing field `findings`"),
            (r#"{"findings": [{"file": "a"}]}"#, "fingerprint"),
            (r#"{"$schema": "sarif", "runs": []}"#, "it is SARIF"),
            (r#"{"version": 99, "findings": []}"#, "update `rep`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("review.json"), "{error}");
        }
        let error = ReviewBaseline::read("/no/such/file.json".into()).unwrap_err();
        assert!(matches!(error, BaselineError::Read { .. }), "{error}");
    }
}
