//! Reads a repository's rules: instructions for agents, and the configuration of reviews.
//!
//! Everything is read from the state before the change, so that a change cannot rewrite the rules that judge it.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::list_entries;
use serde::{Deserialize, Serialize};

use super::change::ReviewChange;
use super::content::truncate_text;
use crate::limits::{
    REVIEW_BASE_FILE_BYTES_MAX, REVIEW_BASE_FILES_MAX, REVIEW_RULE_BYTES_MAX,
    REVIEW_RULE_CHARS_MAX, REVIEW_RULE_FILES_MAX, REVIEW_RULES_CHARS_MAX,
};
use repertoire_git::repo::{GitClient, GitError, TreeEntry, TreeEntryMode, TreeId};

/// A file with instructions for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFile {
    pub path: Utf8PathBuf,
    /// The folder that the rules apply to, with everything below it; empty for the whole repository.
    pub applies_to: Utf8PathBuf,
    /// The text, with a note at the end if it was truncated.
    pub text: String,
}

/// The state before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewBaseState {
    Tree(TreeId),
    /// There is none: nothing is committed yet, or there is no repository.
    None,
}

/// Paths of rule files, relative to any folder.
const RULE_FILES: &[&str] =
    &["AGENTS.md", "CLAUDE.md", ".ai/AI-AGENT-INSTRUCTIONS.md", ".github/copilot-instructions.md"];

/// The folder of a repository's own line-ups.
const LINEUPS: &str = ".repertoire/review/";

/// The project configuration, in any folder.
const CONFIG_FILE: &str = "repertoire.toml";

/// The repository's file of suppressed findings.
pub const IGNORE_FILE: &str = ".repertoire/review-ignore.yaml";

/// Reads a file of the state before the change. Returns `None` if it did not exist or cannot be used.
pub async fn read_base_file(
    git: &GitClient,
    base: &ReviewBaseState,
    path: &Utf8Path,
) -> Result<Option<String>, GitError> {
    let mut warnings = Vec::new();
    let paths = BTreeSet::from([path.to_owned()]);
    let found = base.read_files(git, &paths, REVIEW_BASE_FILE_BYTES_MAX, &mut warnings).await?;
    Ok(found.into_values().next())
}

/// Reads the rules that apply to the files of a change. Rules of outer folders come first.
pub async fn read_rules(
    git: &GitClient,
    base: &ReviewBaseState,
    change: &ReviewChange,
    warnings: &mut Vec<String>,
) -> Result<Vec<RuleFile>, GitError> {
    let found = base.read_files(git, &rule_paths(change), REVIEW_RULE_BYTES_MAX, warnings).await?;
    let mut rules: Vec<RuleFile> = found.into_iter().filter_map(to_rule_file).collect();
    rules.sort_by_key(|rule| (rule.applies_to.components().count(), rule.path.clone()));
    Ok(apply_limits(rules, warnings))
}

/// The paths at which rules for the files of a change may exist.
fn rule_paths(change: &ReviewChange) -> BTreeSet<Utf8PathBuf> {
    let folders: BTreeSet<&Utf8Path> =
        change.files.iter().flat_map(|file| file.path.ancestors().skip(1)).collect();
    let paths = folders.iter().flat_map(|folder| RULE_FILES.iter().map(|name| folder.join(name)));
    paths.collect()
}

/// Reads the review configuration of the state before the change: line-ups, the ignore file, and `repertoire.toml` in
/// the folder `here` and all folders above it.
pub async fn read_base_files(
    git: &GitClient,
    base: &ReviewBaseState,
    here: &Utf8Path,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<Utf8PathBuf, String>, GitError> {
    let mut paths: BTreeSet<Utf8PathBuf> = base.lineup_paths(git).await?.into_iter().collect();
    if paths.len() > REVIEW_BASE_FILES_MAX {
        warnings.push(format!(
            "{LINEUPS} has {} files; the first {REVIEW_BASE_FILES_MAX} are read",
            paths.len()
        ));
        paths = paths.into_iter().take(REVIEW_BASE_FILES_MAX).collect();
    }
    paths.insert(IGNORE_FILE.into());
    paths.extend(here.ancestors().map(|folder| folder.join(CONFIG_FILE)));
    base.read_files(git, &paths, REVIEW_BASE_FILE_BYTES_MAX, warnings).await
}

/// Returns a warning if the change touches files that configure reviews.
pub(super) fn touched_warning<'a>(paths: impl Iterator<Item = &'a Utf8Path>) -> Option<String> {
    let names = paths.filter(|path| is_review_config(path)).map(|path| format!("`{path}`"));
    let names: BTreeSet<String> = names.collect();
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "the change touches {}; this review goes by what was there before",
            names.join(", ")
        )
    })
}

fn is_review_config(path: &Utf8Path) -> bool {
    let rule = RULE_FILES.iter().any(|name| path.ends_with(name));
    rule || path.as_str().starts_with(LINEUPS) || path == IGNORE_FILE
}

/// Returns a warning if there is no state before the change, but rules exist below `top`: they are not used.
pub(super) fn without_base_warning(top: &Utf8Path, change: &ReviewChange) -> Option<String> {
    let mut paths = rule_paths(change);
    paths.insert(IGNORE_FILE.into());
    let folder = top.join(LINEUPS);
    let lineups = list_entries(&folder).into_iter().flatten().flatten();
    let names = lineups.filter_map(|entry| entry.name.into_string().ok());
    paths.extend(names.map(|name| Utf8Path::new(LINEUPS).join(name)).filter(is_yaml));
    paths.retain(|path| top.join(path).is_file());
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    (!names.is_empty()).then(|| {
        format!(
            "there is no earlier state to go by, so {} {verb} not count: what is reviewed cannot bring its own rules",
            names.join(", ")
        )
    })
}

fn is_yaml(path: &Utf8PathBuf) -> bool {
    matches!(path.extension(), Some("yaml" | "yml"))
}

fn to_rule_file((path, text): (Utf8PathBuf, String)) -> Option<RuleFile> {
    let name = RULE_FILES.iter().find(|name| path.ends_with(name))?;
    let above = Utf8Path::new(name).components().count();
    let applies_to = path.ancestors().nth(above)?.to_owned();
    (!text.trim().is_empty()).then_some(RuleFile { path, applies_to, text })
}

fn apply_limits(rules: Vec<RuleFile>, warnings: &mut Vec<String>) -> Vec<RuleFile> {
    let mut kept: Vec<RuleFile> = Vec::new();
    let mut left = REVIEW_RULES_CHARS_MAX;
    for mut rule in rules {
        if kept.len() == REVIEW_RULE_FILES_MAX || left == 0 {
            warnings.push(format!("the rules in `{}` are left out: there are too many", rule.path));
            continue;
        }
        let chars = rule.text.chars().count();
        let room = left.min(REVIEW_RULE_CHARS_MAX);
        if chars > room {
            warnings.push(format!(
                "of the rules in `{}` only the first {room} characters are used",
                rule.path
            ));
            rule.text = truncate_text(&rule.text, room);
        }
        left -= chars.min(room);
        kept.push(rule);
    }
    kept
}

impl ReviewBaseState {
    /// Reads files of the state before the change. Adds a warning for each one that cannot be read.
    async fn read_files(
        &self,
        git: &GitClient,
        paths: &BTreeSet<Utf8PathBuf>,
        bytes_max: u64,
        warnings: &mut Vec<String>,
    ) -> Result<BTreeMap<Utf8PathBuf, String>, GitError> {
        match self {
            ReviewBaseState::Tree(tree) => read_tree(git, tree, paths, bytes_max, warnings).await,
            ReviewBaseState::None => Ok(BTreeMap::new()),
        }
    }

    /// The paths of the repository's own line-ups.
    async fn lineup_paths(&self, git: &GitClient) -> Result<Vec<Utf8PathBuf>, GitError> {
        let ReviewBaseState::Tree(tree) = self else { return Ok(Vec::new()) };
        let entries = git.entries_at(tree, &[Utf8Path::new(LINEUPS)]).await?;
        Ok(entries.into_iter().map(|entry| entry.name.path).filter(is_yaml).collect())
    }
}

async fn read_tree(
    git: &GitClient,
    tree: &TreeId,
    paths: &BTreeSet<Utf8PathBuf>,
    bytes_max: u64,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<Utf8PathBuf, String>, GitError> {
    let paths: Vec<&Utf8Path> = paths.iter().map(Utf8PathBuf::as_path).collect();
    let entries = git.entries_at(tree, &paths).await?;
    // Skip symbolic links: they usually point to another rule file, which would be read twice.
    let is_file =
        |entry: &TreeEntry| matches!(entry.mode, TreeEntryMode::File | TreeEntryMode::Program);
    let entries: Vec<TreeEntry> = entries.into_iter().filter(is_file).collect();
    let objects: Vec<String> = entries.iter().map(|entry| entry.blob.to_string()).collect();
    let sizes: Vec<_> = git.object_sizes(&objects).await?.into_iter().flatten().collect();
    let small: Vec<_> = sizes.into_iter().filter(|(_, size)| *size <= bytes_max).collect();
    let blobs = git.read_blobs(&small).await?;
    let mut found = BTreeMap::new();
    for entry in entries {
        let text = blobs.get(&entry.blob).map(|bytes| String::from_utf8(bytes.clone()));
        match text {
            Some(Ok(text)) => drop(found.insert(entry.name.path, text)),
            Some(Err(_)) => warnings.push(unread_warning(&entry.name.path, "it is not UTF-8")),
            None => warnings.push(unread_warning(&entry.name.path, "it is too large")),
        }
    }
    Ok(found)
}

fn unread_warning(path: &Utf8Path, why: &str) -> String {
    format!("`{path}` is left out: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_file_speaks_about_the_folder_it_is_for() {
        for (path, folder) in [
            ("AGENTS.md", ""),
            ("web/CLAUDE.md", "web"),
            (".github/copilot-instructions.md", ""),
            ("a/b/.ai/AI-AGENT-INSTRUCTIONS.md", "a/b"),
        ] {
            let rule = to_rule_file((path.into(), "text".to_owned())).unwrap();
            assert_eq!(rule.applies_to, folder, "{path}");
        }
        assert_eq!(to_rule_file(("AGENTS.md".into(), " \n".to_owned())), None);
    }

    #[test]
    fn rules_beyond_the_limit_are_cut_and_named() {
        let rule = |path: &str, chars: usize| RuleFile {
            path: path.into(),
            applies_to: Utf8PathBuf::new(),
            text: "x".repeat(chars),
        };
        let many = (0..4).map(|at| rule(&format!("{at}"), REVIEW_RULE_CHARS_MAX + 1)).collect();
        let mut warnings = Vec::new();
        let kept = apply_limits(many, &mut warnings);
        assert_eq!((kept.len(), warnings.len()), (3, 4));
        assert!(kept[0].text.contains("[cut here: 1 characters more]"));
        assert!(warnings[3].contains("`3` are left out"), "{warnings:?}");
    }

    #[test]
    fn a_change_of_the_rules_is_said() {
        let paths = ["src/a.rs", "web/AGENTS.md", ".repertoire/review/code.yaml"];
        let said = touched_warning(paths.iter().map(|path| Utf8Path::new(*path))).unwrap();
        assert!(said.contains("`.repertoire/review/code.yaml`, `web/AGENTS.md`"), "{said}");
        assert_eq!(touched_warning([Utf8Path::new("a.rs")].into_iter()), None);
    }
}
