//! `--incremental`: continues from the last review of the same scope.
//!
//! A file is skipped only if an earlier review has seen exactly this change of it, with all
//! reviewers answering, and at least as thoroughly. Findings reported there are still open, and are
//! carried on until the file changes.

use repertoire_review::change::{ReviewChange, ReviewedFile, SkippedFile};
use repertoire_review::fingerprints;
use repertoire_review::pipeline::ReviewPlan;
use repertoire_review::record::{
    FileRecord, LeftOutFinding, LeftOutReason, ReportedFinding, ReviewDepth, ReviewRecord,
};
use repertoire_review::store::{ReviewStore, ReviewStoreError};

/// The earlier reviews that a review continues.
pub struct IncrementalBase {
    /// The last review of the same scope in which all reviewers answered. Its findings are not
    /// reported again.
    last: ReviewRecord,
    /// The last of them that was at least as thorough. Files that it has seen are skipped.
    seen: Option<ReviewRecord>,
}

/// Finds the reviews that a plan can continue, leaves out the files that they have seen unchanged,
/// and adds their findings to the baseline. `None` if there are none.
///
/// # Errors
///
/// Fails if the journal cannot be used. Single reviews that cannot be read are passed over.
pub async fn continue_earlier(
    reviews: &ReviewStore,
    plan: &mut ReviewPlan,
) -> Result<Option<IncrementalBase>, ReviewStoreError> {
    let mut last: Option<ReviewRecord> = None;
    for name in reviews.review_ids().await? {
        let Ok(review) = reviews.load_review(&name).await else { continue };
        if !is_same_scope(&review, plan) {
            continue;
        }
        let is_enough = is_as_thorough(&review, plan);
        let seen = is_enough.then(|| review.clone());
        let latest = last.get_or_insert(review);
        if is_enough {
            let before = IncrementalBase { last: latest.clone(), seen };
            skip_seen_files(plan, &before);
            return Ok(Some(before));
        }
    }
    let before = last.map(|last| IncrementalBase { last, seen: None });
    if let Some(before) = &before {
        skip_seen_files(plan, before);
    }
    Ok(before)
}

/// Returns true if a review was about the same scope, and every agent has answered.
fn is_same_scope(review: &ReviewRecord, plan: &ReviewPlan) -> bool {
    let scope = &plan.gathered.scope;
    review.scope.words == scope.words
        && review.scope.branch == scope.branch
        && review.subject == plan.lineup.subject
        && review.failed_calls().next().is_none()
}

fn is_as_thorough(review: &ReviewRecord, plan: &ReviewPlan) -> bool {
    let categories = plan.categories();
    let has = |key: &String| review.categories.iter().any(|known| known.key == *key);
    let knows = |name: &String| review.skills.iter().any(|known| known.name == *name);
    depth_rank(review.depth) >= depth_rank(plan.depth)
        && review.min_severity <= plan.min_severity
        && categories.iter().all(has)
        && plan.skills.iter().all(|resolved| knows(&resolved.skill.name))
}

fn depth_rank(depth: ReviewDepth) -> u8 {
    match depth {
        ReviewDepth::Patterns => 0,
        ReviewDepth::Quick => 1,
        ReviewDepth::Deep => 2,
    }
}

/// Skips files that an earlier review has seen unchanged, and adds its findings to the baseline.
fn skip_seen_files(plan: &mut ReviewPlan, before: &IncrementalBase) {
    for reported in open_findings(&before.last) {
        plan.baseline.add_reported(reported);
    }
    for left_out in &before.last.left_out {
        plan.baseline.add_known(left_out);
    }
    let Some(last) = &before.seen else { return };
    let ReviewChange { files, skipped } = &mut plan.gathered.change;
    let (seen, new): (Vec<ReviewedFile>, Vec<ReviewedFile>) =
        std::mem::take(files).into_iter().partition(|file| find_seen_file(last, file).is_some());
    *files = new;
    let reason = format!("unchanged since the review {}", last.id);
    skipped.extend(seen.into_iter().map(|file| SkippedFile {
        path: file.path,
        reason: reason.clone(),
        missed: false,
    }));
}

fn find_seen_file<'a>(last: &'a ReviewRecord, file: &ReviewedFile) -> Option<&'a FileRecord> {
    let digest = fingerprints::change_digest(file);
    let mut known = last.files.iter().chain(&last.unchanged);
    known.find(|known| known.path == file.path && known.digest == digest)
}

/// The findings that were open at the end of a review.
fn open_findings(last: &ReviewRecord) -> impl Iterator<Item = &ReportedFinding> {
    last.findings.iter().chain(&last.still_open)
}

/// Carries over the files and findings of the earlier review.
pub fn carry_over(review: &mut ReviewRecord, before: &IncrementalBase) {
    let IncrementalBase { last, seen } = before;
    let is_unchanged = |record: &&FileRecord| {
        let mut looked_at = review.files.iter();
        let is_skipped = review.skipped.iter().any(|skipped| skipped.path == record.path);
        is_skipped && !looked_at.any(|file| file.path == record.path)
    };
    let seen = seen.iter().flat_map(|seen| seen.files.iter().chain(&seen.unchanged));
    let unchanged: Vec<FileRecord> = seen.filter(is_unchanged).cloned().collect();
    let is_open = |reported: &&ReportedFinding| {
        let found_again = |out: &LeftOutFinding| {
            out.why == LeftOutReason::Known && out.file == reported.file.as_str()
        };
        unchanged.iter().any(|file| file.path == reported.file)
            || review.left_out.iter().any(found_again)
    };
    let still_open: Vec<ReportedFinding> = open_findings(last).filter(is_open).cloned().collect();
    if let Some(worst) = still_open.iter().map(|reported| reported.severity).max() {
        let count = match still_open.len() {
            1 => "1 finding".to_owned(),
            number => format!("{number} findings"),
        };
        review.warnings.push(format!(
            "{count} of earlier reviews still open and not repeated, the worst {worst}: `rep review show {}`",
            last.id
        ));
    }
    // Findings known from a baseline stay known.
    let accepted = |out: &&LeftOutFinding| {
        let is_there = |file: &FileRecord| file.path == out.file.as_str();
        out.why == LeftOutReason::Known && unchanged.iter().any(is_there)
    };
    review.left_out.extend(last.left_out.iter().filter(accepted).cloned());
    review.unchanged = unchanged;
    review.still_open = still_open;
}
