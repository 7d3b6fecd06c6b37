//! Decides what happens to each finding between the phases: suppressed, already known, below the minimum severity,
//! proven by a pattern, or changed by a validator's verdict.

use std::collections::BTreeMap;

use crate::extract::ReviewSeverity;

use super::super::aggregate::ValidatedFinding;
use super::super::finding::{Phase, ReviewFinding};
use super::super::fingerprints::{
    FileIndex, FindingFingerprints, FindingIdentity, IndexedFiles, compute_fingerprints,
    is_known_finding,
};
use super::super::patterns::{PatternClaim, PatternHit, find_rule_about, find_rule_naming_file};
use super::super::record;
use super::super::record::{
    FalseClaim, FindingValidation, LeftOutFinding, LeftOutReason, PATTERNS, ReportedFinding,
    ReviewInsight,
};
use super::super::suppress;
use super::super::validate::{self, ValidatorVerdict};
use super::{ReviewPlan, ReviewRunState};

/// The decided severity and validation of findings and insights, by id.
pub(super) type SettledFindings = BTreeMap<String, (ReviewSeverity, FindingValidation)>;

/// Turns a pattern match into a finding, or leaves it out because of a false-positive rule.
pub(super) fn admit_hit(plan: &ReviewPlan, hit: PatternHit, work: &mut ReviewRunState) {
    let finding = ReviewFinding {
        id: format!("F{}", work.findings.len() + 1),
        agent: PATTERNS.to_owned(),
        phase: Phase::Patterns,
        title: hit.description.clone(),
        file: hit.file.clone(),
        lines: hit.lines,
        function: None,
        category: hit.category.clone(),
        severity: hit.severity,
        description: format!("The pattern `{}` of the skill `{}` matches.", hit.pattern, hit.skill),
        // The description of the pattern is sufficient.
        failure_scenario: String::new(),
        confidence: 1.0,
        fix: None,
        pattern: Some(hit.pattern.clone()),
        details: BTreeMap::new(),
    };
    // Only the rules of the pattern's own skill apply here. Rules of other skills are about other findings.
    let own = plan.skills.iter().find(|resolved| resolved.skill.name == hit.skill);
    let rules = own.map(|own| own.skill.false_positive_rules.as_slice()).unwrap_or_default();
    match find_rule_naming_file(rules, &finding.file) {
        Some(rule) => {
            let reason = format!("a false-positive rule is about it: {rule}");
            work.left_out.push(leave_out(&finding, None, LeftOutReason::FalsePositiveRule, reason));
        }
        None => work.findings.push(finding),
    }
}

/// Leaves out unwanted findings. Returns the findings that are settled without a validator, and those that need one.
pub(super) fn sift_findings(
    plan: &ReviewPlan,
    rules: &[String],
    work: &mut ReviewRunState,
) -> (SettledFindings, Vec<ReviewFinding>) {
    let (mut settled, mut due) = (SettledFindings::new(), Vec::new());
    let files = IndexedFiles::from_change(&plan.gathered.change);
    for mut finding in std::mem::take(&mut work.findings) {
        let proven = prove_by_pattern(plan, rules, &mut finding, &mut work.false_claims);
        if let Some((why, reason)) = unwanted_reason(plan, &files, &finding) {
            let print = fingerprints_of(&files, &finding).map(|prints| prints.fingerprint);
            work.left_out.push(leave_out(&finding, print, why, reason));
            continue;
        }
        let is_due = validate::is_due(finding.severity, plan.depth, &plan.lineup);
        match (proven, is_due) {
            (false, true) => due.push(finding.clone()),
            (proven, _) => {
                let validation =
                    if proven { FindingValidation::Pattern } else { FindingValidation::Accepted };
                settled.insert(finding.id.clone(), (finding.severity, validation));
            }
        }
        work.findings.push(finding);
    }
    (settled, due)
}

/// Returns true if a pattern proves the finding. A false claim is recorded, and the finding continues without the
/// pattern.
fn prove_by_pattern(
    plan: &ReviewPlan,
    rules: &[String],
    finding: &mut ReviewFinding,
    false_claims: &mut Vec<FalseClaim>,
) -> bool {
    if finding.phase == Phase::Patterns {
        return true;
    }
    let Some(pattern) = finding.pattern.take() else { return false };
    match verify_claim(plan, rules, finding, &pattern) {
        Ok(()) => finding.pattern = Some(pattern),
        Err(reason) => false_claims.push(FalseClaim {
            finding: finding.id.clone(),
            agent: finding.agent.clone(),
            pattern,
            reason,
        }),
    }
    finding.pattern.is_some()
}

/// Returns the reason why a finding is not reported, regardless of any validator.
fn unwanted_reason(
    plan: &ReviewPlan,
    files: &IndexedFiles<'_>,
    finding: &ReviewFinding,
) -> Option<(LeftOutReason, String)> {
    let file = files.get(&finding.file)?;
    let categories = [finding.category.clone()];
    let about = identity_of(file, finding, &categories);
    let said = suppress::find_comment(&about)
        .or_else(|| plan.ignore.find_suppression(&about, &compute_fingerprints(&about)));
    if let Some(said) = said {
        let reason = said.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Some((LeftOutReason::Suppressed, format!("{}{reason}", said.by)));
    }
    if is_known_finding(&plan.baseline, &about) {
        return Some((LeftOutReason::Known, "it was reported before".to_owned()));
    }
    below_minimum(plan, finding.severity)
}

fn below_minimum(plan: &ReviewPlan, severity: ReviewSeverity) -> Option<(LeftOutReason, String)> {
    (severity < plan.min_severity).then(|| {
        (LeftOutReason::BelowMinimum, format!("{severity} is below {}", plan.min_severity))
    })
}

/// Checks that the pattern which an agent names proves its finding.
fn verify_claim(
    plan: &ReviewPlan,
    rules: &[String],
    finding: &ReviewFinding,
    pattern: &str,
) -> Result<(), String> {
    let file = plan
        .gathered
        .change
        .find_file(&finding.file)
        .ok_or("the file is not part of the change")?;
    match plan.patterns.check_claim(pattern, file, finding.lines) {
        PatternClaim::Holds { trusted: false, .. } => {
            return Err("its skill is not trusted".to_owned());
        }
        // A pattern proves a problem of its own severity and category, not any claim about the matching lines.
        PatternClaim::Holds { severity, .. } if finding.severity > severity => {
            return Err(format!("it proves something {severity}, and not {}", finding.severity));
        }
        PatternClaim::Holds { category, .. } if finding.category != category => {
            return Err(format!("it proves something about `{category}`"));
        }
        PatternClaim::Holds { .. } => {}
        other => return Err(other.reason().to_owned()),
    }
    match find_rule_about(rules, &finding.file, &cited_text(plan, finding)) {
        Some(rule) => Err(format!("a false-positive rule is about it: {rule}")),
        None => Ok(()),
    }
}

/// Applies a validator's verdict to a finding or an insight.
pub(super) fn settle_finding(
    id: &str,
    verdict: Option<&ValidatorVerdict>,
    work: &mut ReviewRunState,
    settled: &mut SettledFindings,
) {
    let finding = work.findings.iter().find(|finding| finding.id == *id);
    let thought = work.thoughts.iter().find(|thought| thought.id == *id);
    let severity =
        finding.map(|finding| finding.severity).or(thought.map(|thought| thought.severity));
    let Some(severity) = severity else { return };
    let reason = match validate::apply_verdict(severity, verdict) {
        Ok(decided) => {
            settled.insert(id.to_owned(), decided);
            return;
        }
        Err(reason) => reason,
    };
    match (finding, thought) {
        (Some(finding), _) => {
            work.left_out.push(leave_out(finding, None, LeftOutReason::Invalid, reason))
        }
        (None, Some(thought)) => work.left_out.push(LeftOutFinding {
            title: thought.title.clone(),
            file: thought.file.to_string(),
            lines: None,
            severity: Some(thought.severity),
            agent: "synthesis".to_owned(),
            phase: Phase::Synthesis,
            fingerprint: None,
            rule: None,
            why: LeftOutReason::Invalid,
            reason,
        }),
        (None, None) => {}
    }
}

/// The findings that passed validation, with their fingerprints.
pub(super) fn validated_findings(
    plan: &ReviewPlan,
    settled: &SettledFindings,
    work: &mut ReviewRunState,
) -> Vec<ValidatedFinding> {
    let mut out = Vec::new();
    let files = IndexedFiles::from_change(&plan.gathered.change);
    for finding in &work.findings {
        let Some((severity, validation)) = settled.get(&finding.id) else { continue };
        let FindingFingerprints { fingerprint, line_prints } =
            fingerprints_of(&files, finding).unwrap_or_default();
        if let Some((why, reason)) = below_minimum(plan, *severity) {
            work.left_out.push(leave_out(finding, Some(fingerprint), why, reason));
            continue;
        }
        let finding = ReviewFinding { severity: *severity, ..finding.clone() };
        // After a downgrade, the finding may be no worse than one that was reported before.
        if files.get(&finding.file).is_some_and(|file| is_known(plan, file, &finding)) {
            let reason = "it was reported before".to_owned();
            work.left_out.push(leave_out(
                &finding,
                Some(fingerprint),
                LeftOutReason::Known,
                reason,
            ));
            continue;
        }
        out.push(ValidatedFinding {
            finding,
            validation: validation.clone(),
            fingerprint,
            line_prints,
        });
    }
    out
}

/// The insights that passed validation and still have findings of both categories.
pub(super) fn validated_insights(
    plan: &ReviewPlan,
    settled: &SettledFindings,
    reported: &[ReportedFinding],
    work: &mut ReviewRunState,
) -> Vec<ReviewInsight> {
    let mut out = Vec::new();
    for thought in &work.thoughts {
        let Some((severity, validation)) = settled.get(&thought.id) else { continue };
        let standing: Vec<&ReviewFinding> = work
            .findings
            .iter()
            .filter(|finding| thought.related.contains(&finding.id))
            .filter(|finding| reported.iter().any(|one| one.members.contains(&finding.id)))
            .collect();
        let both = thought
            .categories
            .iter()
            .all(|category| standing.iter().any(|finding| finding.category == *category));
        let gone = (!both)
            .then(|| (LeftOutReason::Unfounded, "a finding behind it did not stand".to_owned()));
        if let Some((why, reason)) = gone.or_else(|| below_minimum(plan, *severity)) {
            work.left_out.push(LeftOutFinding {
                title: thought.title.clone(),
                file: thought.file.to_string(),
                lines: None,
                severity: Some(*severity),
                agent: "synthesis".to_owned(),
                phase: Phase::Synthesis,
                fingerprint: None,
                rule: None,
                why,
                reason,
            });
            continue;
        }
        let mut related: Vec<String> = reported
            .iter()
            .filter(|one| standing.iter().any(|finding| one.members.contains(&finding.id)))
            .map(|one| one.id.clone())
            .collect();
        related.dedup();
        out.push(ReviewInsight {
            id: format!("I{}", out.len() + 1),
            title: thought.title.clone(),
            categories: thought.categories.clone(),
            insight: thought.insight.clone(),
            severity: *severity,
            file: thought.file.clone(),
            line: thought.line,
            related,
            validation: validation.clone(),
        });
    }
    out
}

fn is_known(plan: &ReviewPlan, file: &FileIndex<'_>, finding: &ReviewFinding) -> bool {
    is_known_finding(
        &plan.baseline,
        &identity_of(file, finding, std::slice::from_ref(&finding.category)),
    )
}

fn fingerprints_of(
    files: &IndexedFiles<'_>,
    finding: &ReviewFinding,
) -> Option<FindingFingerprints> {
    let file = files.get(&finding.file)?;
    Some(compute_fingerprints(&identity_of(file, finding, std::slice::from_ref(&finding.category))))
}

fn identity_of<'a>(
    file: &'a FileIndex<'a>,
    finding: &'a ReviewFinding,
    categories: &'a [String],
) -> FindingIdentity<'a> {
    let ReviewFinding { lines, severity, .. } = *finding;
    FindingIdentity { file, lines, categories, pattern: finding.pattern.as_deref(), severity }
}

/// The text of the cited lines.
fn cited_text(plan: &ReviewPlan, finding: &ReviewFinding) -> String {
    let Some(file) = plan.gathered.change.find_file(&finding.file) else { return String::new() };
    let count = (finding.lines.last - finding.lines.first + 1) as usize;
    let lines = file.text.lines().skip(finding.lines.first as usize - 1).take(count);
    lines.collect::<Vec<_>>().join("\n")
}

fn leave_out(
    finding: &ReviewFinding,
    fingerprint: Option<String>,
    why: LeftOutReason,
    reason: String,
) -> LeftOutFinding {
    LeftOutFinding {
        title: finding.title.clone(),
        file: finding.file.to_string(),
        lines: Some(finding.lines),
        severity: Some(finding.severity),
        agent: finding.agent.clone(),
        phase: finding.phase,
        fingerprint,
        rule: Some(record::rule_id(&finding.category, finding.pattern.as_deref())),
        why,
        reason,
    }
}
