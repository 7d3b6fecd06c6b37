//! Merges findings about the same lines into one. The result does not depend on the order in which agents answered.

use camino::Utf8PathBuf;
use std::collections::BTreeMap;

use super::change::{LineKind, LineRange, ReviewedFile};
use super::finding::{FindingFix, Phase, ReviewFinding};
use super::record::{ExcerptLine, FindingValidation, RelatedFinding, ReportedFinding};
use crate::limits::{REVIEW_EXCERPT_LINES, REVIEW_EXCERPT_LINES_MAX, REVIEW_LINE_CHARS_MAX};

/// A finding that passed validation.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidatedFinding {
    /// The finding, with its severity after validation.
    pub finding: ReviewFinding,
    /// The result of its validation.
    pub validation: FindingValidation,
    pub fingerprint: String,
    /// The fingerprints of its lines.
    pub line_prints: Vec<String>,
}

/// Merges findings of one file whose line ranges overlap, directly or through other findings, and sorts the result by
/// severity (worst first), then by file and lines. `categories` is the category order of the line-up.
pub fn merge_findings(
    believed: Vec<ValidatedFinding>,
    categories: &[String],
) -> Vec<ReportedFinding> {
    let mut by_file: BTreeMap<Utf8PathBuf, Vec<ValidatedFinding>> = BTreeMap::new();
    for one in believed {
        by_file.entry(one.finding.file.clone()).or_default().push(one);
    }
    let clusters = by_file.into_values().flat_map(cluster_by_lines);
    let mut out: Vec<ReportedFinding> =
        clusters.map(|cluster| merge_cluster(cluster, categories)).collect();
    out.sort_by(|a, b| {
        (b.severity, &a.file, a.lines, &a.title).cmp(&(a.severity, &b.file, b.lines, &b.title))
    });
    for (at, reported) in out.iter_mut().enumerate() {
        reported.id = format!("R{}", at + 1);
    }
    out
}

fn cluster_by_lines(mut all: Vec<ValidatedFinding>) -> Vec<Vec<ValidatedFinding>> {
    all.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let mut out: Vec<Vec<ValidatedFinding>> = Vec::new();
    let mut end = 0;
    for one in all {
        let LineRange { first, last } = one.finding.lines;
        match out.last_mut() {
            Some(cluster) if first <= end => cluster.push(one),
            _ => out.push(vec![one]),
        }
        end = end.max(last);
    }
    out
}

/// A sort key that does not depend on the order in which agents answered.
fn sort_key(one: &ValidatedFinding) -> (LineRange, &str, &str, &str) {
    let finding = &one.finding;
    (finding.lines, &finding.category, &finding.agent, &finding.title)
}

fn merge_cluster(cluster: Vec<ValidatedFinding>, categories: &[String]) -> ReportedFinding {
    let place = |category: &String| categories.iter().position(|known| known == category);
    let lead = cluster
        .iter()
        .max_by(|a, b| {
            // An agent's description tells the reader more than the name of a pattern.
            let is_said = |one: &ValidatedFinding| one.finding.phase != Phase::Patterns;
            let rank = |one: &ValidatedFinding| {
                (one.finding.severity, is_said(one), validation_rank(&one.validation))
            };
            rank(a)
                .cmp(&rank(b))
                .then(a.finding.confidence.total_cmp(&b.finding.confidence))
                .then(sort_key(b).cmp(&sort_key(a)))
        })
        .expect("a cluster is not empty");
    let finding = &lead.finding;
    let mut rest: Vec<String> = cluster
        .iter()
        .map(|one| one.finding.category.clone())
        .filter(|other| *other != finding.category)
        .collect();
    rest.sort_by_key(|category| (place(category), category.clone()));
    rest.dedup();
    let mut agents: Vec<String> = cluster.iter().map(|one| one.finding.agent.clone()).collect();
    agents.sort();
    agents.dedup();
    let same = || cluster.iter().filter(|one| one.finding.category == finding.category);
    let longest = |text: fn(&ReviewFinding) -> &String| {
        let texts =
            same().filter(|one| one.finding.phase == finding.phase).map(|one| text(&one.finding));
        texts.max_by_key(|text| text.chars().count()).cloned().unwrap_or_default()
    };
    let others = cluster.iter().filter(|one| one.finding.category != finding.category);
    let also = others.map(|one| RelatedFinding {
        title: one.finding.title.clone(),
        category: one.finding.category.clone(),
        severity: one.finding.severity,
        description: one.finding.description.clone(),
    });
    // A pattern match in these lines proves the merged finding, even if another finding leads the cluster.
    let proven = same().map(|one| (&one.validation, one.finding.severity));
    let proven = proven
        .filter(|(validation, severity)| {
            **validation == FindingValidation::Pattern && *severity >= finding.severity
        })
        .map(|(validation, _)| validation)
        .next();
    let is_diff = |fix: &&FindingFix| matches!(fix, FindingFix::Diff(_));
    let fixes = || cluster.iter().filter_map(|one| one.finding.fix.as_ref());
    ReportedFinding {
        id: String::new(),
        fingerprint: lead.fingerprint.clone(),
        line_prints: {
            let mut all: Vec<String> =
                cluster.iter().flat_map(|one| one.line_prints.clone()).collect();
            all.sort();
            all.dedup();
            all
        },
        title: finding.title.clone(),
        file: finding.file.clone(),
        lines: cluster
            .iter()
            .map(|one| one.finding.lines)
            .reduce(covering_range)
            .unwrap_or(finding.lines),
        severity: finding.severity,
        description: longest(|finding| &finding.description),
        failure_scenario: longest(|finding| &finding.failure_scenario),
        confidence: cluster.iter().map(|one| one.finding.confidence).fold(0.0, f64::max),
        fix: finding
            .fix
            .clone()
            .or_else(|| fixes().find(is_diff).or_else(|| fixes().next()).cloned()),
        // A rule belongs to one category, so a pattern of another category would change the rule.
        pattern: finding
            .pattern
            .clone()
            .or_else(|| same().find_map(|one| one.finding.pattern.clone())),
        details: same()
            .rev()
            .flat_map(|one| one.finding.details.clone())
            .chain(finding.details.clone())
            .collect(),
        also: also.collect(),
        agents,
        validation: proven.cloned().unwrap_or_else(|| lead.validation.clone()),
        members: cluster.iter().map(|one| one.finding.id.clone()).collect(),
        categories: [finding.category.clone()].into_iter().chain(rest).collect(),
        excerpt: Vec::new(),
    }
}

/// Ranks validation results from weakest (0) to strongest.
fn validation_rank(validation: &FindingValidation) -> u8 {
    match validation {
        FindingValidation::Pattern => 4,
        FindingValidation::Valid { .. } => 3,
        FindingValidation::Downgraded { .. } => 2,
        FindingValidation::Accepted => 1,
        FindingValidation::Unverified { .. } => 0,
    }
}

fn covering_range(a: LineRange, b: LineRange) -> LineRange {
    LineRange { first: a.first.min(b.first), last: a.last.max(b.last) }
}

/// The cited lines with [`REVIEW_EXCERPT_LINES`] lines of context on each side.
pub fn make_excerpt(file: &ReviewedFile, lines: LineRange) -> Vec<ExcerptLine> {
    let shown = lines.widened_by(REVIEW_EXCERPT_LINES);
    let added: Vec<u32> = file
        .hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
        .filter(|line| line.kind == LineKind::Added)
        .filter_map(|line| line.new)
        .collect();
    (1..)
        .zip(file.text.lines())
        .skip_while(|(number, _)| *number < shown.first)
        .take_while(|(number, _)| *number <= shown.last)
        .take(REVIEW_EXCERPT_LINES_MAX)
        .map(|(number, text)| ExcerptLine {
            number,
            text: truncate_line(text),
            cited: lines.overlaps(LineRange::from_line(number)),
            added: added.binary_search(&number).is_ok(),
        })
        .collect()
}

/// Truncates a line to [`REVIEW_LINE_CHARS_MAX`] characters.
pub(super) fn truncate_line(line: &str) -> String {
    match line.char_indices().nth(REVIEW_LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::ReviewSeverity;
    use proptest::prelude::*;

    fn one(
        id: &str,
        lines: (u32, u32),
        category: &str,
        severity: ReviewSeverity,
        said: &str,
    ) -> ValidatedFinding {
        let finding = ReviewFinding {
            id: id.to_owned(),
            agent: format!("{category}-agent"),
            phase: Phase::Thorough,
            title: format!("{category} {id}"),
            file: "a.rs".into(),
            lines: LineRange { first: lines.0, last: lines.1 },
            function: None,
            category: category.to_owned(),
            severity,
            description: said.to_owned(),
            failure_scenario: "it fails".to_owned(),
            confidence: 0.5,
            fix: None,
            pattern: None,
            details: BTreeMap::new(),
        };
        let validation = FindingValidation::Valid { reason: String::new() };
        ValidatedFinding {
            finding,
            validation,
            fingerprint: id.to_owned(),
            line_prints: vec![id.to_owned()],
        }
    }

    fn order() -> Vec<String> {
        ["security", "bugs", "performance"].map(str::to_owned).to_vec()
    }

    #[test]
    fn findings_that_overlap_over_others_are_one() {
        let all = vec![
            one("F1", (10, 12), "bugs", ReviewSeverity::Minor, "short"),
            one("F2", (12, 15), "security", ReviewSeverity::Critical, "the worst"),
            one("F3", (15, 15), "bugs", ReviewSeverity::Minor, "a longer text"),
            one("F4", (17, 18), "performance", ReviewSeverity::Major, "apart"),
        ];
        let out = merge_findings(all, &order());
        assert_eq!(out.len(), 2);
        let first = &out[0];
        assert_eq!((first.id.as_str(), first.title.as_str()), ("R1", "security F2"));
        assert_eq!(first.lines, LineRange { first: 10, last: 15 });
        assert_eq!(first.categories, ["security", "bugs"]);
        assert_eq!(first.members, ["F1", "F2", "F3"]);
        assert_eq!(first.agents_badge(), Some("2 agents"));
        assert_eq!(first.severity, ReviewSeverity::Critical);
        assert_eq!(first.also.len(), 2);
        assert_eq!(out[1].agents_badge(), None);
    }

    proptest! {
        #[test]
        fn the_order_of_answers_does_not_matter_and_nothing_is_lost(
            ranges in proptest::collection::vec((1u32..60, 0u32..6, 0usize..3, 0usize..4), 1..14),
            seed in any::<u64>(),
        ) {
            let all: Vec<ValidatedFinding> = ranges.iter().enumerate().map(|(at, (first, length, category, severity))| {
                one(&format!("F{at}"), (*first, first + length), &order()[*category], ReviewSeverity::ALL[*severity], "text")
            }).collect();
            let mut shuffled = all.clone();
            let length = shuffled.len();
            for at in 0..length {
                shuffled.swap(at, (seed as usize).wrapping_mul(at + 7) % length);
            }
            let out = merge_findings(all, &order());
            prop_assert_eq!(&merge_findings(shuffled, &order()), &out);
            prop_assert_eq!(out.iter().map(|one| one.members.len()).sum::<usize>(), ranges.len());
            for (at, one) in out.iter().enumerate() {
                for other in &out[at + 1..] {
                    prop_assert!(!one.lines.overlaps(other.lines));
                }
            }
        }
    }
}
