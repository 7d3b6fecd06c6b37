//! Inspection of an attempt's change, before the checks are trusted.

use std::collections::BTreeSet;

use crate::declared::CheckDefinition;
use crate::limits::{LINTER_LINES_MAX, RECOVER_DIFF_BYTES_MAX};
use crate::memory::fix_policy::{find_weakening, is_test, refuse_path};
use crate::memory::patch::{PatchedFile, parse_patch};
use repertoire_git::repo::{DiffTarget, GitClient, GitDiff, TreeEntryMode};

use super::{RecoverAction, RecoverError, RecoverStrategy};
use repertoire_git::repo::TreeId;
use repertoire_journal::FixRemedy;

/// The change made by an attempt.
#[derive(Debug)]
pub(super) struct AttemptChange {
    pub(super) diff: GitDiff,
    /// Deleted and renamed files.
    pub(super) gone: BTreeSet<String>,
}

impl AttemptChange {
    /// The difference between the backup and the current files.
    pub(super) async fn between_trees(
        git: &GitClient,
        before: &TreeId,
        now: &TreeId,
    ) -> Result<Self, RecoverError> {
        let of = DiffTarget::Commits { from: before.0.clone(), to: now.0.clone() };
        let diff = git.diff(&of, RECOVER_DIFF_BYTES_MAX).await?;
        let changes = git.tree_changes(before, now).await?;
        let absent = changes.iter().filter(|change| change.new_mode == TreeEntryMode::Absent);
        let renamed = changes.iter().filter_map(|change| change.from.as_ref());
        let names = absent.map(|change| &change.name).chain(renamed);
        Ok(AttemptChange { diff, gone: names.map(|name| name.path.to_string()).collect() })
    }

    pub(super) fn changed_files(&self) -> Vec<String> {
        self.diff.files.iter().map(|file| file.path.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.diff.files.is_empty()
    }
}

/// The reason to roll back a change without running the checks. `changed` lists the files of the
/// present change.
pub(super) fn refuse_change(
    seen: &AttemptChange,
    action: &RecoverAction,
    changed: &BTreeSet<String>,
    checks: &[CheckDefinition],
) -> Option<String> {
    let lines = seen.diff.insertions + seen.diff.deletions;
    if seen.diff.cut {
        return Some("it changed too much to be looked at".to_owned());
    }
    if let Some(path) = seen.gone.iter().find(|path| is_test(path)) {
        return Some(format!("the test `{path}` is gone"));
    }
    // These names come from git, not from the text of a patch, which could be forged.
    let unusual = seen.diff.files.iter().find_map(|file| {
        let lines = file.insertions.unwrap_or(u64::MAX).saturating_add(file.deletions.unwrap_or(0));
        let placed = PatchedFile {
            path: file.path.clone(),
            from: file.from.clone(),
            deleted: seen.gone.contains(&file.path),
            added: vec![String::new(); usize::try_from(lines.min(10_000)).unwrap_or(0)],
            ..PatchedFile::default()
        };
        refuse_path(&placed).or_else(|| names_check(&file.path, checks))
    });
    let weaker = || parse_patch(&seen.diff.text).iter().find_map(find_weakening);
    unusual.or_else(weaker).or_else(|| match action.strategy {
        RecoverStrategy::LinterFix if lines > LINTER_LINES_MAX => {
            Some(format!("it changed {lines} lines, and {LINTER_LINES_MAX} are allowed"))
        }
        RecoverStrategy::LinterFix => refuse_outside(seen, changed),
        RecoverStrategy::InstallDependency => refuse_outside(seen, &BTreeSet::new()),
        _ => refuse_unannounced(seen, action),
    })
}

fn refuse_outside(seen: &AttemptChange, allowed: &BTreeSet<String>) -> Option<String> {
    let strange = seen.diff.files.iter().find(|file| !allowed.contains(&file.path));
    strange
        .map(|file| format!("it changed `{}`, which is not part of the change", file.path))
        .or_else(|| seen.gone.iter().next().map(|path| format!("`{path}` is gone")))
}

/// Refuses changes to tests, and changes to files that the patch does not name.
fn refuse_unannounced(seen: &AttemptChange, action: &RecoverAction) -> Option<String> {
    if let Some(file) = seen.diff.files.iter().find(|file| is_test(&file.path)) {
        return Some(format!("it changed the test `{}`", file.path));
    }
    let FixRemedy::Patch(text) = &action.fix.remedy else { return None };
    let announced: BTreeSet<String> = parse_patch(text)
        .into_iter()
        .flat_map(|file| file.from.into_iter().chain([file.path]))
        .collect();
    let strange = seen.diff.files.iter().find(|file| !announced.contains(&file.path));
    strange.map(|file| format!("it changed `{}`, which it did not announce", file.path))
}

/// Refuses changes to a script that a check runs, since that script is part of the check.
fn names_check(path: &str, checks: &[CheckDefinition]) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    // Only scripts: source files are arguments of many checks, such as the only file of a small
    // project.
    let is_script =
        [".sh", ".bash", ".mk", ".ps1", ".bat"].iter().any(|ending| path.ends_with(ending))
            || !path.rsplit('/').next().unwrap_or(path).contains('.');
    let named = checks.iter().find(|check| {
        let mut words = check.command.split(|c| !is_word(c));
        is_script && words.any(|word| word.trim_start_matches("./") == path)
    });
    named.map(|check| format!("`{path}` is what the check `{}` runs", check.name))
}
