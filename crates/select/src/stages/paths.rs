//! Matches the globs that skills declare against the paths that a task touches.
//!
//! All globs are compiled into sets when the first task with paths arrives. An invalid glob is reported as a
//! problem of its skill and does not affect the others.

use std::collections::HashMap;
use std::sync::OnceLock;

use globset::{Glob, GlobSet};
use repertoire_skill::catalog::compile_glob;

use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::limits::{GLOB_BYTES_MAX, TASK_PATHS_MAX};
use crate::selection::SelectionReason;
use crate::task::Task;

/// Below 1, because a path only tells which kind of file is touched, not what to do with it.
const STRENGTH: f32 = 0.7;

/// The number of globs compiled into one set: the time to compile grows faster than their number.
const SET: usize = 512;

/// The globs of all skills.
#[derive(Debug, Default)]
pub(crate) struct PathTriggers {
    globs: Vec<OwnedGlob>,
    sets: OnceLock<Vec<(usize, GlobSet)>>,
    problems: Vec<GlobProblem>,
}

/// A glob with the skills that declare it.
#[derive(Debug)]
struct OwnedGlob {
    glob: Glob,
    written: String,
    /// The index of the skill, and the position of the glob in its list.
    owners: Vec<(usize, usize)>,
}

/// A glob that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GlobProblem {
    /// The index of the skill in the catalog.
    pub(crate) skill: usize,
    pub(crate) glob: String,
    pub(crate) message: String,
}

impl PathTriggers {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> PathTriggers {
        let mut paths = PathTriggers::default();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (skill, document) in documents.iter().enumerate() {
            for (place, written) in document.triggers.paths.iter().enumerate() {
                if let Some(at) = known.get(written.as_str()) {
                    paths.globs[*at].owners.push((skill, place));
                    continue;
                }
                match compile_bounded(written) {
                    Ok(glob) => {
                        known.insert(written, paths.globs.len());
                        let written = written.clone();
                        paths.globs.push(OwnedGlob { glob, written, owners: vec![(skill, place)] });
                    }
                    Err(message) => {
                        let glob = written.clone();
                        paths.problems.push(GlobProblem { skill, glob, message });
                    }
                }
            }
        }
        paths
    }

    /// Returns the skills with a glob that matches a path of the task, in catalog order. The reason is the
    /// first glob of the skill that matches, with the first path.
    pub(crate) fn find(&self, task: &Task) -> Vec<StageEvidence> {
        if self.globs.is_empty() || task.paths.is_empty() {
            return Vec::new();
        }
        let sets = self.sets.get_or_init(|| compile_sets(&self.globs));
        // For each glob, the index of the first path that it matches.
        let mut first = vec![None; self.globs.len()];
        let mut matched = Vec::new();
        for (path_at, path) in task.paths.iter().take(TASK_PATHS_MAX).enumerate() {
            let path = path.strip_prefix(".").unwrap_or(path);
            for (start, set) in sets {
                set.matches_into(path, &mut matched);
                for at in &matched {
                    first[start + at].get_or_insert(path_at);
                }
            }
        }
        let mut hits = Vec::new();
        for (glob_at, path_at) in first.into_iter().enumerate() {
            let Some(path_at) = path_at else { continue };
            let owners = self.globs[glob_at].owners.iter();
            hits.extend(owners.map(|(skill, place)| (*skill, *place, path_at, glob_at)));
        }
        hits.sort_unstable();
        hits.dedup_by_key(|(skill, ..)| *skill);
        let evidence = hits.into_iter().map(|(skill, _, path_at, glob_at)| StageEvidence {
            skill,
            strength: STRENGTH,
            reason: SelectionReason::Path {
                glob: self.globs[glob_at].written.clone(),
                path: task.paths[path_at].to_string(),
            },
        });
        evidence.collect()
    }

    /// The globs that cannot be used.
    pub(crate) fn problems(&self) -> &[GlobProblem] {
        &self.problems
    }
}

fn compile_bounded(glob: &str) -> Result<Glob, String> {
    if glob.len() > GLOB_BYTES_MAX {
        return Err(format!("the glob has {} bytes; the limit is {GLOB_BYTES_MAX}", glob.len()));
    }
    compile_glob(glob).map_err(|error| error.kind().to_string())
}

/// Compiles sets, each with the index of its first glob.
fn compile_sets(globs: &[OwnedGlob]) -> Vec<(usize, GlobSet)> {
    let mut sets = Vec::new();
    for (at, globs) in globs.chunks(SET).enumerate() {
        add_sets(at * SET, globs, &mut sets);
    }
    sets
}

/// Compiles one set, or splits the globs in half if they are too large together.
fn add_sets(first: usize, globs: &[OwnedGlob], sets: &mut Vec<(usize, GlobSet)>) {
    match GlobSet::new(globs.iter().map(|owned| &owned.glob)) {
        Ok(set) => sets.push((first, set)),
        Err(_) if globs.len() > 1 => {
            let (left, right) = globs.split_at(globs.len() / 2);
            add_sets(first, left, sets);
            add_sets(first + left.len(), right, sets);
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use repertoire_skill::catalog::glob_matches;

    use super::*;

    fn document(globs: &[&str]) -> SkillDocument<'static> {
        let mut document = SkillDocument::new("a", "a", "", "");
        document.triggers.paths = globs.iter().map(|glob| glob.to_string()).collect();
        document
    }

    fn find(paths: &PathTriggers, touched: &[&str]) -> Vec<(usize, String)> {
        let touched = touched.iter().map(Utf8PathBuf::from).collect();
        let task = Task { paths: touched, ..Task::default() };
        let evidence = paths.find(&task).into_iter();
        evidence.map(|found| (found.skill, found.reason.to_string())).collect()
    }

    #[test]
    fn a_skill_is_found_once_by_its_first_glob_and_the_first_path() {
        let paths = PathTriggers::new(&[
            document(&["*.md", "src/**/*.rs", "*.rs"]),
            document(&["*.py"]),
            document(&["*.rs"]),
        ]);
        assert_eq!(
            find(&paths, &["Cargo.toml", "src/a/b.rs", "./src/c.rs"]),
            [
                (0, "`src/a/b.rs` matches its paths `src/**/*.rs`".to_owned()),
                (2, "`src/a/b.rs` matches its paths `*.rs`".to_owned()),
            ]
        );
        assert!(find(&paths, &[]).is_empty());
    }

    #[test]
    fn a_bad_glob_is_a_problem_and_breaks_no_other() {
        let long = "a".repeat(GLOB_BYTES_MAX + 1);
        let paths = PathTriggers::new(&[document(&["[", "{a", &long]), document(&["*.rs"])]);
        assert_eq!(find(&paths, &["a.rs"]).len(), 1);
        let problems: Vec<&str> = paths.problems().iter().map(|p| p.message.as_str()).collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(paths.problems().iter().all(|problem| problem.skill == 0));
    }

    #[test]
    fn a_leading_dot_makes_no_difference() {
        let paths = PathTriggers::new(&[document(&["src/*.rs"])]);
        assert_eq!(find(&paths, &["./src/a.rs"]).len(), 1);
    }

    #[test]
    fn globs_mean_what_they_mean_to_the_catalog_however_many_there_are() {
        let many: Vec<String> = (0..1_200).map(|at| format!("dir{at}/*/[ab]?.{{rs,md}}")).collect();
        let documents: Vec<_> = many.iter().map(|glob| document(&[glob])).collect();
        let paths = PathTriggers::new(&documents);
        for path in ["dir7/x/a1.rs", "dir700/x/b1.md", "dir1199/y/az.md", "dir7/x/y/a1.rs"] {
            let expect: Vec<usize> =
                (0..many.len()).filter(|at| glob_matches(&many[*at], path.into())).collect();
            let found: Vec<usize> = find(&paths, &[path]).into_iter().map(|hit| hit.0).collect();
            assert_eq!(found, expect, "{path}");
        }
    }

    #[test]
    fn globs_that_are_too_big_together_are_halved() {
        // Larger than any glob that is admitted, so that a few are enough.
        let big = |at: usize| compile_glob(&format!("{at}/{}", "?[ab]".repeat(4_000))).unwrap();
        let owned = |at| OwnedGlob { glob: big(at), written: String::new(), owners: Vec::new() };
        let globs: Vec<OwnedGlob> = (0..20).map(owned).collect();
        let sets = compile_sets(&globs);
        assert!(sets.len() > 1);
        let path = format!("3/{}", "xa".repeat(4_000));
        let found = sets
            .iter()
            .flat_map(|(start, set)| set.matches(&path).into_iter().map(move |at| start + at));
        assert_eq!(found.collect::<Vec<_>>(), [3]);
    }

    proptest::proptest! {
        #[test]
        fn no_glob_and_no_path_makes_it_panic(glob in "[\\[\\]{}!*?/a-c,.^-]{0,12}", path in "[a-c/.]{0,12}") {
            let paths = PathTriggers::new(&[document(&[&glob])]);
            let found = find(&paths, &[&path]).len();
            let plain = Utf8PathBuf::from(&path);
            if !path.starts_with('.') && !path.contains("/.") && !path.contains("//") {
                proptest::prop_assert_eq!(found == 1, glob_matches(&glob, &plain));
            }
        }
    }
}
