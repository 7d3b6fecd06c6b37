//! Decides what happens to each finding between the phases: suppressed, already known, below the minimum severity,
//! proven by a pattern, or changed by a validator's verdict.

use std::collections::BTreeMap;

use crate::extract::Severity;

use super::super::aggregate::Believed;
use super::super::finding::{Finding, Phase};
use super::super::patterns::{Claim, Hit, names_file, rule_hit};
use super::super::prints::{About, FileIndex, Files, Prints, known, prints};
use super::super::record;
use super::super::record::{FalseClaim, Insight, LeftOut, PATTERNS, Reported, Validation, Why};
use super::super::suppress;
use super::super::validate::{self, Verdict};
use super::{Plan, Work};

/// The decided severity and validation of findings and insights, by id.
pub(super) type Settled = BTreeMap<String, (Severity, Validation)>;

/// Turns a pattern match into a finding, or leaves it out because of a false-positive rule.
pub(super) fn take_hit(plan: &Plan, hit: Hit, work: &mut Work) {
    let finding = Finding {
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
    match names_file(rules, &finding.file) {
        Some(rule) => {
            let reason = format!("a false-positive rule is about it: {rule}");
            work.left_out.push(left_out(&finding, None, Why::FalsePositiveRule, reason));
        }
        None => work.findings.push(finding),
    }
}

/// Leaves out unwanted findings. Returns the findings that are settled without a validator, and those that need one.
pub(super) fn sift(plan: &Plan, rules: &[String], work: &mut Work) -> (Settled, Vec<Finding>) {
    let (mut settled, mut due) = (Settled::new(), Vec::new());
    let files = Files::of(&plan.gathered.change);
    for mut finding in std::mem::take(&mut work.findings) {
        let proven = prove(plan, rules, &mut finding, &mut work.false_claims);
        if let Some((why, reason)) = unwanted(plan, &files, &finding) {
            let print = print(&files, &finding).map(|prints| prints.fingerprint);
            work.left_out.push(left_out(&finding, print, why, reason));
            continue;
        }
        let is_due = validate::is_due(finding.severity, plan.depth, &plan.lineup);
        match (proven, is_due) {
            (false, true) => due.push(finding.clone()),
            (proven, _) => {
                let validation = if proven { Validation::Pattern } else { Validation::Accepted };
                settled.insert(finding.id.clone(), (finding.severity, validation));
            }
        }
        work.findings.push(finding);
    }
    (settled, due)
}

/// Returns true if a pattern proves the finding. A false claim is recorded, and the finding continues without the
/// pattern.
fn prove(
    plan: &Plan,
    rules: &[String],
    finding: &mut Finding,
    false_claims: &mut Vec<FalseClaim>,
) -> bool {
    if finding.phase == Phase::Patterns {
        return true;
    }
    let Some(pattern) = finding.pattern.take() else { return false };
    match claim(plan, rules, finding, &pattern) {
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
fn unwanted(plan: &Plan, files: &Files<'_>, finding: &Finding) -> Option<(Why, String)> {
    let file = files.get(&finding.file)?;
    let categories = [finding.category.clone()];
    let about = about(file, finding, &categories);
    let said = suppress::in_code(&about).or_else(|| plan.ignore.hit(&about, &prints(&about)));
    if let Some(said) = said {
        let reason = said.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Some((Why::Suppressed, format!("{}{reason}", said.by)));
    }
    if known(&plan.baseline, &about) {
        return Some((Why::Known, "it was reported before".to_owned()));
    }
    below(plan, finding.severity)
}

fn below(plan: &Plan, severity: Severity) -> Option<(Why, String)> {
    (severity < plan.min_severity)
        .then(|| (Why::BelowMinimum, format!("{severity} is below {}", plan.min_severity)))
}

/// Checks that the pattern which an agent names proves its finding.
fn claim(plan: &Plan, rules: &[String], finding: &Finding, pattern: &str) -> Result<(), String> {
    let file =
        plan.gathered.change.file(&finding.file).ok_or("the file is not part of the change")?;
    match plan.patterns.matches(pattern, file, finding.lines) {
        Claim::Holds { trusted: false, .. } => return Err("its skill is not trusted".to_owned()),
        // A pattern proves a problem of its own severity and category, not any claim about the matching lines.
        Claim::Holds { severity, .. } if finding.severity > severity => {
            return Err(format!("it proves something {severity}, and not {}", finding.severity));
        }
        Claim::Holds { category, .. } if finding.category != category => {
            return Err(format!("it proves something about `{category}`"));
        }
        Claim::Holds { .. } => {}
        other => return Err(other.reason().to_owned()),
    }
    match rule_hit(rules, &finding.file, &cited(plan, finding)) {
        Some(rule) => Err(format!("a false-positive rule is about it: {rule}")),
        None => Ok(()),
    }
}

/// Applies a validator's verdict to a finding or an insight.
pub(super) fn settle(id: &str, verdict: Option<&Verdict>, work: &mut Work, settled: &mut Settled) {
    let finding = work.findings.iter().find(|finding| finding.id == *id);
    let thought = work.thoughts.iter().find(|thought| thought.id == *id);
    let severity =
        finding.map(|finding| finding.severity).or(thought.map(|thought| thought.severity));
    let Some(severity) = severity else { return };
    let reason = match validate::settle(severity, verdict) {
        Ok(decided) => {
            settled.insert(id.to_owned(), decided);
            return;
        }
        Err(reason) => reason,
    };
    match (finding, thought) {
        (Some(finding), _) => work.left_out.push(left_out(finding, None, Why::Invalid, reason)),
        (None, Some(thought)) => work.left_out.push(LeftOut {
            title: thought.title.clone(),
            file: thought.file.to_string(),
            lines: None,
            severity: Some(thought.severity),
            agent: "synthesis".to_owned(),
            phase: Phase::Synthesis,
            fingerprint: None,
            rule: None,
            why: Why::Invalid,
            reason,
        }),
        (None, None) => {}
    }
}

/// The findings that passed validation, with their fingerprints.
pub(super) fn believed(plan: &Plan, settled: &Settled, work: &mut Work) -> Vec<Believed> {
    let mut out = Vec::new();
    let files = Files::of(&plan.gathered.change);
    for finding in &work.findings {
        let Some((severity, validation)) = settled.get(&finding.id) else { continue };
        let Prints { fingerprint, line_prints } = print(&files, finding).unwrap_or_default();
        if let Some((why, reason)) = below(plan, *severity) {
            work.left_out.push(left_out(finding, Some(fingerprint), why, reason));
            continue;
        }
        let finding = Finding { severity: *severity, ..finding.clone() };
        // After a downgrade, the finding may be no worse than one that was reported before.
        if files.get(&finding.file).is_some_and(|file| is_known(plan, file, &finding)) {
            let reason = "it was reported before".to_owned();
            work.left_out.push(left_out(&finding, Some(fingerprint), Why::Known, reason));
            continue;
        }
        out.push(Believed { finding, validation: validation.clone(), fingerprint, line_prints });
    }
    out
}

/// The insights that passed validation and still have findings of both categories.
pub(super) fn insights(
    plan: &Plan,
    settled: &Settled,
    reported: &[Reported],
    work: &mut Work,
) -> Vec<Insight> {
    let mut out = Vec::new();
    for thought in &work.thoughts {
        let Some((severity, validation)) = settled.get(&thought.id) else { continue };
        let standing: Vec<&Finding> = work
            .findings
            .iter()
            .filter(|finding| thought.related.contains(&finding.id))
            .filter(|finding| reported.iter().any(|one| one.members.contains(&finding.id)))
            .collect();
        let both = thought
            .categories
            .iter()
            .all(|category| standing.iter().any(|finding| finding.category == *category));
        let gone =
            (!both).then(|| (Why::Unfounded, "a finding behind it did not stand".to_owned()));
        if let Some((why, reason)) = gone.or_else(|| below(plan, *severity)) {
            work.left_out.push(LeftOut {
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
        out.push(Insight {
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

fn is_known(plan: &Plan, file: &FileIndex<'_>, finding: &Finding) -> bool {
    known(&plan.baseline, &about(file, finding, std::slice::from_ref(&finding.category)))
}

fn print(files: &Files<'_>, finding: &Finding) -> Option<Prints> {
    let file = files.get(&finding.file)?;
    Some(prints(&about(file, finding, std::slice::from_ref(&finding.category))))
}

fn about<'a>(file: &'a FileIndex<'a>, finding: &'a Finding, categories: &'a [String]) -> About<'a> {
    let Finding { lines, severity, .. } = *finding;
    About { file, lines, categories, pattern: finding.pattern.as_deref(), severity }
}

/// The text of the cited lines.
fn cited(plan: &Plan, finding: &Finding) -> String {
    let Some(file) = plan.gathered.change.file(&finding.file) else { return String::new() };
    let count = (finding.lines.last - finding.lines.first + 1) as usize;
    let lines = file.text.lines().skip(finding.lines.first as usize - 1).take(count);
    lines.collect::<Vec<_>>().join("\n")
}

fn left_out(finding: &Finding, fingerprint: Option<String>, why: Why, reason: String) -> LeftOut {
    LeftOut {
        title: finding.title.clone(),
        file: finding.file.to_string(),
        lines: Some(finding.lines),
        severity: Some(finding.severity),
        agent: finding.agent.clone(),
        phase: finding.phase,
        fingerprint,
        rule: Some(record::rule(&finding.category, finding.pattern.as_deref())),
        why,
        reason,
    }
}
