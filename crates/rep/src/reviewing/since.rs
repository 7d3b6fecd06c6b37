//! `--incremental`: continues from the last review of the same scope.
//!
//! A file is skipped only if an earlier review has seen exactly this change of it, with all
//! reviewers answering, and at least as thoroughly. Findings reported there are still open, and are
//! carried on until the file changes.

use repertoire_review::change::{Change, ChangedFile, Skipped};
use repertoire_review::pipeline::Plan;
use repertoire_review::prints;
use repertoire_review::record::{Depth, FileRecord, LeftOut, Reported, Review, Why};
use repertoire_review::store::Reviews;

use crate::ui;

/// The earlier reviews that a review continues.
pub(crate) struct Before {
    /// The last review of the same scope in which all reviewers answered. Its findings are not
    /// reported again.
    last: Review,
    /// The last of them that was at least as thorough. Files that it has seen are skipped.
    seen: Option<Review>,
}

/// Finds the reviews that a plan can continue. `None` if there are none.
pub(super) fn find(reviews: &Reviews, plan: &Plan) -> Option<Before> {
    let whole = |review: &Review| {
        let scope = &plan.gathered.scope;
        review.scope.words == scope.words
            && review.scope.branch == scope.branch
            && review.subject == plan.lineup.subject
            && review.failed_calls().next().is_none()
    };
    let all = reviews.names().into_iter().filter_map(|name| reviews.load(&name).ok());
    let mut all = all.filter(whole);
    let last = all.next()?;
    let seen = if is_as_close(&last, plan) {
        Some(last.clone())
    } else {
        all.find(|review| is_as_close(review, plan))
    };
    Some(Before { last, seen })
}

fn is_as_close(review: &Review, plan: &Plan) -> bool {
    let categories = plan.categories();
    let has = |key: &String| review.categories.iter().any(|known| known.key == *key);
    let knows = |name: &String| review.skills.iter().any(|known| known.name == *name);
    rank(review.depth) >= rank(plan.depth)
        && review.min_severity <= plan.min_severity
        && categories.iter().all(has)
        && plan.skills.iter().all(|resolved| knows(&resolved.skill.name))
}

fn rank(depth: Depth) -> u8 {
    match depth {
        Depth::Patterns => 0,
        Depth::Quick => 1,
        Depth::Deep => 2,
    }
}

/// Skips files that an earlier review has seen unchanged, and adds its findings to the baseline.
pub(super) fn apply(plan: &mut Plan, before: &Before) {
    for reported in open(&before.last) {
        plan.baseline.learn(reported);
    }
    for left_out in &before.last.left_out {
        plan.baseline.learn_known(left_out);
    }
    let Some(last) = &before.seen else { return };
    let Change { files, skipped } = &mut plan.gathered.change;
    let (seen, new): (Vec<ChangedFile>, Vec<ChangedFile>) =
        std::mem::take(files).into_iter().partition(|file| seen(last, file).is_some());
    *files = new;
    let reason = format!("unchanged since the review {}", last.id);
    skipped.extend(seen.into_iter().map(|file| Skipped {
        path: file.path,
        reason: reason.clone(),
        missed: false,
    }));
}

fn seen<'a>(last: &'a Review, file: &ChangedFile) -> Option<&'a FileRecord> {
    let digest = prints::change_digest(file);
    let mut known = last.files.iter().chain(&last.unchanged);
    known.find(|known| known.path == file.path && known.digest == digest)
}

/// The findings that were open at the end of a review.
fn open(last: &Review) -> impl Iterator<Item = &Reported> {
    last.findings.iter().chain(&last.still_open)
}

/// Carries over the files and findings of the earlier review.
pub(crate) fn carry(review: &mut Review, before: &Before) {
    let Before { last, seen } = before;
    let is_unchanged = |record: &&FileRecord| {
        let mut looked_at = review.files.iter();
        let is_skipped = review.skipped.iter().any(|skipped| skipped.path == record.path);
        is_skipped && !looked_at.any(|file| file.path == record.path)
    };
    let seen = seen.iter().flat_map(|seen| seen.files.iter().chain(&seen.unchanged));
    let unchanged: Vec<FileRecord> = seen.filter(is_unchanged).cloned().collect();
    let is_open = |reported: &&Reported| {
        let found_again =
            |out: &LeftOut| out.why == Why::Known && out.file == reported.file.as_str();
        unchanged.iter().any(|file| file.path == reported.file)
            || review.left_out.iter().any(found_again)
    };
    let still_open: Vec<Reported> = open(last).filter(is_open).cloned().collect();
    if let Some(worst) = still_open.iter().map(|reported| reported.severity).max() {
        let count = ui::count(still_open.len(), "finding");
        review.warnings.push(format!(
            "{count} of earlier reviews still open and not repeated, the worst {worst}: `rep review show {}`",
            last.id
        ));
    }
    // Findings known from a baseline stay known.
    let accepted = |out: &&LeftOut| {
        let is_there = |file: &FileRecord| file.path == out.file.as_str();
        out.why == Why::Known && unchanged.iter().any(is_there)
    };
    review.left_out.extend(last.left_out.iter().filter(accepted).cloned());
    review.unchanged = unchanged;
    review.still_open = still_open;
}
