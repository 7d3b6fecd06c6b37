//! What an earlier review has reported, so that it is not reported again.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{ReadError, read_text};
use serde::Deserialize;

use super::prints::Prints;
use super::record::{Reported, VERSION, Why};
use crate::limits::REVIEW_BASELINE_BYTES_MAX;

/// What an earlier review has reported.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    by_path: BTreeMap<Utf8PathBuf, Vec<Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    fingerprint: String,
    line_prints: Vec<String>,
    /// Empty if they are not known any more.
    categories: Vec<String>,
}

/// An earlier review that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It cannot be read.
    #[error("the earlier review {path} cannot be read: {source}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        source: ReadError,
    },
    /// It is no record of a review.
    #[error("{path} is no record of a review: {why}; give it a file that a review wrote as JSON")]
    NotARecord {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is of a later version.
    #[error(
        "{path} has version {version} of the record, and {VERSION} is the latest that is known; update `rep`"
    )]
    TooNew {
        /// The file.
        path: Utf8PathBuf,
        /// Its version.
        version: u32,
    },
}

/// What is read of a record: older ones may have less, newer ones more.
#[derive(Deserialize)]
struct Disk {
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
}

#[derive(Deserialize)]
struct LeftOutDisk {
    file: Utf8PathBuf,
    #[serde(default)]
    fingerprint: Option<String>,
    why: serde_json::Value,
}

impl Baseline {
    /// Reads the record of an earlier review.
    pub fn read(path: &Utf8Path) -> Result<Baseline, BaselineError> {
        let text = read_text(path, REVIEW_BASELINE_BYTES_MAX);
        let text = text.map_err(|source| BaselineError::Read { path: path.to_owned(), source })?;
        Baseline::parse(path, &text)
    }

    /// As [`Baseline::read`], of a text that was read already.
    pub fn parse(path: &Utf8Path, text: &str) -> Result<Baseline, BaselineError> {
        let wrong = |why: String| BaselineError::NotARecord { path: path.to_owned(), why };
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| wrong(format!("it is not JSON ({error})")))?;
        if value.get("runs").is_some() && value.get("findings").is_none() {
            return Err(wrong("it is SARIF".to_owned()));
        }
        let disk: Disk = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        if let Some(version) = disk.version.filter(|version| *version > VERSION) {
            return Err(BaselineError::TooNew { path: path.to_owned(), version });
        }
        let mut baseline = Baseline::default();
        for finding in disk.findings {
            let FindingDisk { fingerprint, line_prints, file, categories } = finding;
            baseline.add(file, Known { fingerprint, line_prints, categories });
        }
        // What was known to that review is known to this one.
        let known = serde_json::json!(Why::Known);
        for left in disk.left_out.into_iter().filter(|left| left.why == known) {
            if let Some(fingerprint) = left.fingerprint {
                let (line_prints, categories) = (Vec::new(), Vec::new());
                baseline.add(left.file, Known { fingerprint, line_prints, categories });
            }
        }
        Ok(baseline)
    }

    /// Adds a finding that was reported before.
    pub fn learn(&mut self, finding: &Reported) {
        let known = Known {
            fingerprint: finding.fingerprint.clone(),
            line_prints: finding.line_prints.clone(),
            categories: finding.categories.clone(),
        };
        self.add(finding.file.clone(), known);
    }

    fn add(&mut self, path: Utf8PathBuf, known: Known) {
        self.by_path.entry(path).or_default().push(known);
    }

    /// How many findings are known.
    pub fn len(&self) -> usize {
        self.by_path.values().map(Vec::len).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Whether something was reported before: in the same file, of one of these categories, and with the same print or
    /// about one of the same lines.
    pub fn is_known(&self, path: &Utf8Path, categories: &[String], prints: &Prints) -> bool {
        let known = self.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
        known.iter().any(|known| {
            let same = known.fingerprint == prints.fingerprint;
            let shared =
                || prints.line_prints.iter().any(|print| known.line_prints.contains(print));
            match known.categories.is_empty() {
                true => same,
                false => {
                    let in_common = categories.iter().any(|one| known.categories.contains(one));
                    in_common && (same || shared())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::change::{ChangedFile, LineRange};
    use crate::review::prints::tests::whole;
    use crate::review::prints::{About, known, prints};

    fn parse(text: &str) -> Result<Baseline, BaselineError> {
        Baseline::parse("review.json".into(), text)
    }

    #[test]
    fn what_was_reported_is_known_under_its_old_name_and_with_another_range() {
        let bugs = ["bugs".to_owned()];
        let text = "first();\nsecond();\nthird();\n";
        let before = whole("old.rs", text);
        let at = |first, last| LineRange { first, last };
        let reported =
            prints(&About { file: &before, lines: at(1, 2), categories: &bugs, pattern: None });
        let record = serde_json::json!({"version": 1, "findings": [{
            "fingerprint": reported.fingerprint, "line_prints": reported.line_prints,
            "file": "old.rs", "categories": ["bugs"],
        }]});
        let baseline = parse(&record.to_string()).unwrap();
        let mut now = whole("new.rs", &format!("zero();\n{text}"));
        fn about<'a>(
            file: &'a ChangedFile,
            lines: LineRange,
            categories: &'a [String],
        ) -> About<'a> {
            About { file, lines, categories, pattern: None }
        }
        assert!(!known(&baseline, &about(&now, at(2, 3), &bugs)), "another file");
        now.old_path = Some("old.rs".into());
        assert!(known(&baseline, &about(&now, at(2, 3), &bugs)));
        assert!(known(&baseline, &about(&now, at(3, 3), &bugs)), "a shared line");
        assert!(!known(&baseline, &about(&now, at(4, 4), &bugs)), "another line");
        let style = ["style".to_owned()];
        assert!(!known(&baseline, &about(&now, at(2, 3), &style)), "another category");
        assert_eq!(baseline.len(), 1);
    }

    #[test]
    fn what_was_known_before_stays_known() {
        let record = r#"{"findings": [], "left_out": [
            {"file": "a.rs", "fingerprint": "abc", "why": "known"},
            {"file": "a.rs", "fingerprint": "def", "why": "too_mild"},
            {"file": "a.rs", "why": "known"}]}"#;
        let baseline = parse(record).unwrap();
        let is_known = |print: &str| {
            let prints = Prints { fingerprint: print.to_owned(), line_prints: Vec::new() };
            baseline.is_known("a.rs".into(), &["bugs".to_owned()], &prints)
        };
        assert!(is_known("abc") && !is_known("def"));
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
        let error = Baseline::read("/no/such/file.json".into()).unwrap_err();
        assert!(matches!(error, BaselineError::Read { .. }), "{error}");
    }
}
