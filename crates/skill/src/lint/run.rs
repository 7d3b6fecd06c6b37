//! Lints files and folders: finds them, reads and checks each in parallel, then checks them together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_text::diagnostic::apply_edits;
use repertoire_text::{Diagnostic, Severity, SharedText, Source, SpanEdit, fs};

use semver::Version;

use super::{LintRuleSet, check_reference, check_skill, check_together};
use crate::catalog::{Catalog, CatalogEntry};
use crate::dependencies::KnownSkills;
use crate::dialect::is_skill_file;
use crate::discover::{ReadBoundary, looks_like_a_skill, read_candidate};
use crate::hidden_text;
use crate::limits::{SkillLimits, WalkLimits};
use crate::load::{SkillLoadResult, load_skill};
use crate::name;
use crate::skill::{Skill, SkillOrigin};
use crate::trust::TrustLevel;
use crate::walk::{SkillCandidate, WalkOptions, walk_folder};

/// A folder named on the command line is searched deeper and longer than a root.
const WALK: WalkLimits = WalkLimits { depth_max: 32, entries_max: 1_000_000 };

/// The options of a lint run.
pub struct LintRequest<'a> {
    /// Files and folders.
    pub paths: &'a [Utf8PathBuf],
    pub rules: LintRuleSet,
    pub limits: SkillLimits,
    /// Returns the folder that links in a searched folder must not leave; `None` if they may lead anywhere.
    pub links_beneath: &'a (dyn Fn(&Utf8Path) -> Option<Utf8PathBuf> + Sync),
    /// Returns the skills that may satisfy dependencies. It is only called if the linted files themselves do
    /// not satisfy them all.
    pub environment: &'a (dyn Fn() -> Catalog + Sync),
    /// An additional check over all skills together, supplied by a crate that depends on this one.
    pub comparison: Option<SkillComparison<'a>>,
    /// An additional check of a skill's folder, supplied by a crate that depends on this one. It gets the
    /// skill and the names beside its file, and may also report on the skill's own file.
    pub companions: Option<&'a CompanionCheck<'a>>,
}

/// Checks other files of a skill's folder.
pub type CompanionCheck<'a> = dyn Fn(&Skill, &[String]) -> Vec<FileReport> + Sync + 'a;

/// A check that compares all skills.
#[derive(Clone, Copy)]
pub struct SkillComparison<'a> {
    /// The maximum number of skills; with more, the comparison is skipped and the report says so.
    pub skills_max: usize,
    /// Returns findings about the skills, which are sorted by path and without duplicates.
    pub check: &'a (dyn Fn(&[Arc<Skill>]) -> Vec<Diagnostic> + Sync),
}

/// The findings about one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    pub path: Utf8PathBuf,
    /// The name of the skill, if it could be loaded.
    pub name: Option<String>,
    /// The text that fixes refer to, if there are any. Otherwise it is not kept, because thousands of files
    /// are checked at once and few are shown.
    pub text: Option<SharedText>,
    /// The findings in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// True if the file was reached through a link, and so may not belong to the linted folder.
    pub linked: bool,
}

/// The result of a lint run.
#[derive(Clone, Debug, Default)]
pub struct LintReport {
    /// The reports on all files, sorted by path.
    pub files: Vec<FileReport>,
    /// The number of skills, if it exceeded the limit for the comparison.
    pub not_compared: Option<usize>,
}

/// The counts for the last line of the output.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
pub struct LintSummary {
    /// The number of files that were checked.
    pub files: usize,
    /// The number of files without a finding.
    pub clean: usize,
    /// The number of errors in all files.
    pub errors: usize,
    /// The number of warnings in all files.
    pub warnings: usize,
    /// The number of findings of severity `info` in all files.
    pub infos: usize,
    /// The number of findings that `--fix` corrects.
    pub fixable: usize,
}

impl FileReport {
    /// Returns the text to show findings in: the one that was checked, or the file as it is now.
    pub fn shown_text(&self, limits: &SkillLimits) -> Option<SharedText> {
        let read =
            || fs::read_text(&self.path, limits.text.file_bytes_max).ok().map(SharedText::from);
        self.text.clone().or_else(read)
    }
}

impl LintReport {
    /// Counts the findings.
    pub fn count_findings(&self) -> LintSummary {
        let mut out = LintSummary { files: self.files.len(), ..LintSummary::default() };
        for file in &self.files {
            out.clean += usize::from(file.diagnostics.is_empty());
            for found in &file.diagnostics {
                match found.severity {
                    Severity::Error => out.errors += 1,
                    Severity::Warning => out.warnings += 1,
                    Severity::Info => out.infos += 1,
                }
                out.fixable += usize::from(found.fix.is_some() && !file.linked);
            }
        }
        out
    }
}

struct LintedFile {
    report: FileReport,
    /// Reports on other files of the skill's folder.
    companions: Vec<FileReport>,
    /// The skill, if it has to be checked together with others.
    skill: Option<Arc<Skill>>,
    /// The skill, if all skills are compared.
    compared: Option<Arc<Skill>>,
    /// The name and version that other skills may depend on.
    known: Option<(String, Option<Version>)>,
}

/// Lints files and folders.
pub fn lint_paths(request: &LintRequest<'_>) -> LintReport {
    let mut reports = Vec::new();
    let mut candidates = Vec::new();
    for path in request.paths {
        if path.is_dir() {
            let beneath = (request.links_beneath)(path);
            let walked = walk_folder(path, &walk_options(beneath.as_deref()));
            let boundary = beneath.and_then(|beneath| ReadBoundary::open_above(&beneath, path));
            candidates.extend(walked.candidates.into_iter().map(|found| (found, boundary.clone())));
            reports.extend(walked.diagnostics.into_iter().map(report_on_path));
        } else {
            candidates.push((candidate_for_file(path), None));
        }
    }
    candidates.sort_by(|(a, _), (b, _)| a.path.as_str().cmp(b.path.as_str()));
    candidates.dedup_by(|(a, _), (b, _)| a.path.as_str() == b.path.as_str());
    let room = ComparisonQuota::new(request);
    let check = |(candidate, boundary): &(SkillCandidate, Option<ReadBoundary>)| {
        check_file((candidate, boundary.as_ref()), request, &room)
    };
    let checked: Vec<LintedFile> = candidates.par_iter().filter_map(check).collect();
    let mut together = Vec::new();
    let mut not_compared = None;
    if request.rules != LintRuleSet::AgentSkills {
        together = check_all_together(&checked, request);
        match compare_skills(&checked, request) {
            Ok(found) => together.extend(found),
            Err(skills) => not_compared = Some(skills),
        }
    }
    for checked in checked {
        reports.push(checked.report);
        reports.extend(checked.companions);
    }
    reports.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    merge_reports_by_file(&mut reports);
    for found in together {
        let at = found.path.as_ref().and_then(|path| {
            reports.binary_search_by(|report| report.path.as_str().cmp(path.as_str())).ok()
        });
        if let Some(at) = at {
            reports[at].diagnostics.push(found);
        }
    }
    // The order of the reference validator's findings is part of the output that we reproduce.
    if request.rules != LintRuleSet::AgentSkills {
        for report in &mut reports {
            report.diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        }
    }
    LintReport { files: reports, not_compared }
}

/// Applies every safe fix, except through a link. Returns the files that changed.
pub fn apply_fixes(report: &LintReport) -> Result<Vec<Utf8PathBuf>, (Utf8PathBuf, std::io::Error)> {
    let mut changed = Vec::new();
    for file in &report.files {
        let Some(text) = file.text.as_ref().filter(|_| !file.linked) else { continue };
        let edits: Vec<&SpanEdit> = file
            .diagnostics
            .iter()
            .filter_map(|found| found.fix.as_ref())
            .flat_map(|fix| &fix.edits)
            .collect();
        if edits.is_empty() {
            continue;
        }
        let new = apply_edits(text, edits);
        fs::write_atomic(&file.path, new.as_bytes()).map_err(|error| (file.path.clone(), error))?;
        changed.push(file.path.clone());
    }
    Ok(changed)
}

/// Merges the reports on one file, which may be a skill of its own and a resource of the skill around it. The
/// reports must be sorted by path.
fn merge_reports_by_file(reports: &mut Vec<FileReport>) {
    reports.dedup_by(|later, first| {
        let is_same = later.path.as_str() == first.path.as_str();
        if is_same {
            first.name = first.name.take().or(later.name.take());
            first.text = first.text.take().or(later.text.take());
            first.linked |= later.linked;
            let is_known = |found: &Diagnostic| {
                let same =
                    |one: &Diagnostic| one.code.id == found.code.id && one.span == found.span;
                first.diagnostics.iter().any(same)
            };
            later.diagnostics.retain(|found| !is_known(found));
            first.diagnostics.append(&mut later.diagnostics);
        }
        is_same
    });
}

fn walk_options(links_beneath: Option<&Utf8Path>) -> WalkOptions<'_> {
    WalkOptions {
        limits: WALK,
        depth_is_habit: false,
        flat_files: true,
        inside_resources: true,
        links_beneath,
    }
}

fn report_on_path(found: Diagnostic) -> FileReport {
    let path = found.path.clone().unwrap_or_default();
    FileReport { path, name: None, text: None, diagnostics: vec![found], linked: false }
}

fn candidate_for_file(path: &Utf8Path) -> SkillCandidate {
    let is_folder = path.file_name().is_some_and(is_skill_file);
    let parent = path.parent().filter(|dir| *dir != "").unwrap_or(Utf8Path::new("."));
    let mut siblings: Vec<String> = match parent.read_dir_utf8() {
        Ok(entries) if is_folder => {
            entries.flatten().map(|entry| entry.file_name().to_owned()).collect()
        }
        _ => Vec::new(),
    };
    siblings.sort();
    // A link named on the command line is followed on purpose.
    let target = path.canonicalize_utf8().ok();
    SkillCandidate { path: path.to_owned(), target, linked: false, siblings }
}

/// Checks one file. Returns `None` for a Markdown file that is not a skill.
fn check_file(
    (candidate, boundary): (&SkillCandidate, Option<&ReadBoundary>),
    request: &LintRequest<'_>,
    room: &ComparisonQuota,
) -> Option<LintedFile> {
    let path = &candidate.path;
    let text = match read_candidate(candidate, boundary, request.limits.text.file_bytes_max) {
        Ok((text, _)) => text,
        Err(error) => {
            let report = report_on_path(error.to_diagnostic(path));
            let companions = Vec::new();
            return Some(LintedFile {
                report,
                companions,
                skill: None,
                compared: None,
                known: None,
            });
        }
    };
    let is_flat = !path.file_name().is_some_and(is_skill_file);
    if is_flat && !request.paths.contains(path) && !looks_like_a_skill(&text) {
        return None;
    }
    let source = Source::new(path.clone(), text);
    let (skill, diagnostics) = match request.rules {
        LintRuleSet::AgentSkills => (None, check_reference(&source, &folder_name(path))),
        rules => {
            let SkillLoadResult { skill, mut diagnostics } = load_skill(
                source.clone(),
                SkillOrigin::from_file(path.clone()),
                &request.limits.text,
            );
            if let Some(skill) = &skill {
                diagnostics.extend(check_skill(skill, &candidate.siblings, rules));
            }
            (skill, diagnostics)
        }
    };
    let mut looked = match (&skill, request.companions) {
        (Some(skill), Some(look)) => look(skill, &candidate.siblings),
        _ => Vec::new(),
    };
    if let Some(skill) = &skill {
        looked.extend(report_hidden_text(skill, candidate, request));
    }
    let (own, companions): (Vec<_>, Vec<_>) =
        looked.into_iter().partition(|report| report.path == *path);
    let diagnostics: Vec<Diagnostic> =
        diagnostics.into_iter().chain(own.into_iter().flat_map(|own| own.diagnostics)).collect();
    let report = FileReport {
        path: path.clone(),
        name: skill.as_ref().map(|skill| skill.name.clone()),
        text: diagnostics.iter().any(|found| found.fix.is_some()).then(|| source.shared_text()),
        diagnostics,
        linked: candidate.linked,
    };
    let known = skill.as_ref().map(|skill| (skill.name.clone(), skill.version.clone()));
    let skill = skill.map(Arc::new);
    let compared = skill.clone().filter(|_| room.take_slot());
    let skill = skill.filter(|skill| affects_others(skill));
    Some(LintedFile { report, companions, skill, compared, known })
}

/// Reports invisible characters in the other files of a skill's folder.
fn report_hidden_text(
    skill: &Skill,
    candidate: &SkillCandidate,
    request: &LintRequest<'_>,
) -> Vec<FileReport> {
    let own = candidate.path.file_name().unwrap_or_default();
    let has_resources = candidate.siblings.iter().any(|name| name != own);
    if !has_resources || candidate.linked {
        return Vec::new();
    }
    let found = hidden_text::find_in_resources(skill, &request.limits.resources);
    found.into_iter().map(|found| report_on_path(found.diagnostic)).collect()
}

/// The number of skills that may still be kept for the comparison, so that a run over too many skills does
/// not hold them all in memory.
struct ComparisonQuota {
    left: AtomicUsize,
}

impl ComparisonQuota {
    fn new(request: &LintRequest<'_>) -> Self {
        let skills_max = request.comparison.map_or(0, |comparison| comparison.skills_max);
        ComparisonQuota { left: AtomicUsize::new(skills_max) }
    }

    fn take_slot(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok()
    }
}

/// Runs the comparison. Returns the number of skills as an error if there are too many.
fn compare_skills(
    checked: &[LintedFile],
    request: &LintRequest<'_>,
) -> Result<Vec<Diagnostic>, usize> {
    let Some(comparison) = &request.comparison else { return Ok(Vec::new()) };
    let loaded = checked.iter().filter(|checked| checked.known.is_some()).count();
    if loaded > comparison.skills_max {
        return Err(loaded);
    }
    // A file and a link to it are the same skill; the file itself takes precedence, whatever its path.
    let (linked, own): (Vec<&LintedFile>, Vec<&LintedFile>) =
        checked.iter().partition(|checked| checked.report.linked);
    let mut seen = BTreeSet::new();
    let is_new = |checked: &&LintedFile| {
        linked.is_empty()
            || checked.report.path.canonicalize_utf8().is_ok_and(|real| seen.insert(real))
    };
    let mut skills: Vec<Arc<Skill>> = own
        .iter()
        .chain(&linked)
        .copied()
        .filter(is_new)
        .filter_map(|checked| checked.compared.clone())
        .collect();
    skills.sort_by(|a, b| a.origin.file.as_str().cmp(b.origin.file.as_str()));
    Ok((comparison.check)(&skills))
}

fn affects_others(skill: &Skill) -> bool {
    let triggers = &skill.triggers;
    !skill.execution.dependencies.is_empty()
        || !triggers.keywords.is_empty()
        || !triggers.patterns.is_empty()
}

/// Returns the name of the folder that contains a file, even if the path does not spell it out.
fn folder_name(path: &Utf8Path) -> String {
    let parent = path.parent().filter(|dir| *dir != "").unwrap_or(Utf8Path::new("."));
    match parent.file_name() {
        Some(name) => name.to_owned(),
        None => {
            let real = parent.canonicalize_utf8().ok();
            real.and_then(|real| real.file_name().map(str::to_owned)).unwrap_or_default()
        }
    }
}

fn check_all_together(checked: &[LintedFile], request: &LintRequest<'_>) -> Vec<Diagnostic> {
    let skills = || checked.iter().filter_map(|checked| checked.skill.as_ref());
    if skills().next().is_none() {
        return Vec::new();
    }
    let mut known: KnownSkills =
        checked.iter().filter_map(|checked| checked.known.clone()).collect();
    let unmet = skills()
        .flat_map(|skill| &skill.execution.dependencies)
        .any(|need| !known.can_satisfy(need));
    if unmet {
        known.add_entries((request.environment)().entries());
    }
    let mut entries: Vec<CatalogEntry> = skills().map(entry_for_skill).collect();
    entries.sort_by(|a, b| {
        (&a.id, a.skill.origin.file.as_str()).cmp(&(&b.id, b.skill.origin.file.as_str()))
    });
    check_together(&entries, &known)
}

fn entry_for_skill(skill: &Arc<Skill>) -> CatalogEntry {
    CatalogEntry {
        id: name::normalise_name(&skill.name),
        skill: Arc::clone(skill),
        trust: TrustLevel::Untrusted,
    }
}
