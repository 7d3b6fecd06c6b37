//! Where OpenSkills looks, and what it takes for a skill: a folder, or a link to one, directly in one of
//! four roots, with a `SKILL.md`. The folder's name is the skill's name; the first root that has it wins.
//!
//! Reads are bounded and never leave a skill's folder through a linked `SKILL.md`. A file that cannot be
//! read is a diagnostic and no skill, where OpenSkills dies; a name that leaves the roots is not found.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use memchr::memmem;
use repertoire_text::fs::{ReadError, is_beneath, read_bytes_beneath, read_text};
use repertoire_text::{Diagnostic, Limits};

use super::entry::{Entry, Location};
use super::js::{is_line_end, is_whitespace, path_join};

const FILE_NAME: &str = "SKILL.md";

/// A skill as OpenSkills sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The folder's name, or the name that was asked for.
    pub name: String,
    /// What follows the first `description:` at the start of a line, anywhere in the file.
    pub description: String,
    /// `project` if the root's path contains the project's, which in the home folder is always so.
    pub location: Location,
    /// The skill's folder as joined from root and name: not resolved, not canonical.
    pub dir: Utf8PathBuf,
    /// Its `SKILL.md`.
    pub file: Utf8PathBuf,
}

impl Found {
    /// The skill as a renderer takes it.
    pub fn entry(&self) -> Entry<'_> {
        Entry { name: &self.name, description: &self.description, location: self.location }
    }

    /// The text of its `SKILL.md`. Bytes that are not UTF-8 become U+FFFD, as in Node.
    pub fn content(&self) -> Result<String, ReadError> {
        read_skill_file(&self.dir)
    }
}

/// All skills of a project and a home folder, in OpenSkills' order: roots in turn, byte order within.
pub fn find_all(project: &Utf8Path, home: &Utf8Path) -> Vec<Found> {
    scan(project, home).0
}

/// Like [`find_all`], with what was passed over because it could not be read.
pub fn scan(project: &Utf8Path, home: &Utf8Path) -> (Vec<Found>, Vec<Diagnostic>) {
    let mut skills = Vec::new();
    let mut diagnostics = Vec::new();
    let mut seen = BTreeSet::new();
    for root in roots(project, home) {
        let names = folders_in(&root.dir).unwrap_or_else(|error| {
            diagnostics.push(ReadError::Io(error).to_diagnostic(&root.dir));
            Vec::new()
        });
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            match root.open(&name) {
                Ok(found) => {
                    seen.insert(name);
                    skills.push(found);
                }
                Err(error) if is_absence(&error) => {}
                Err(error) => {
                    let file = path_join(&[root.dir.as_str(), &name, FILE_NAME]);
                    diagnostics.push(error.to_diagnostic(&file));
                }
            }
        }
    }
    (skills, diagnostics)
}

/// The skill that OpenSkills would read for a name. The name is a path below a root, such as
/// `group/nested`; one that leaves the four roots is not found, however it is written.
pub fn find(name: &str, project: &Utf8Path, home: &Utf8Path) -> Option<Found> {
    let roots = roots(project, home);
    let is_inside = |dir: &Utf8Path| roots.iter().any(|root| root.holds(dir));
    roots
        .iter()
        .filter(|root| is_inside(&path_join(&[root.dir.as_str(), name])))
        .find_map(|root| root.open(name).ok())
}

struct Root {
    dir: Utf8PathBuf,
    location: Location,
}

impl Root {
    /// Whether a joined path is the root or below it. Joining has resolved `..` between slashes; this
    /// also refuses what else the system takes for a step up.
    fn holds(&self, dir: &Utf8Path) -> bool {
        dir.strip_prefix(&self.dir).is_ok_and(|rest| rest == "" || is_beneath(rest))
    }

    fn open(&self, name: &str) -> Result<Found, ReadError> {
        let dir = path_join(&[self.dir.as_str(), name]);
        let description = description(&read_skill_file(&dir)?).to_owned();
        let file = dir.join(FILE_NAME);
        Ok(Found { name: name.to_owned(), description, location: self.location, dir, file })
    }
}

fn roots(project: &Utf8Path, home: &Utf8Path) -> [Root; 4] {
    let root = |base: &Utf8Path, folder: &str| {
        let dir = path_join(&[base.as_str(), folder]);
        let is_project = dir.as_str().contains(project.as_str());
        Root { dir, location: if is_project { Location::Project } else { Location::Global } }
    };
    [
        root(project, ".agent/skills"),
        root(home, ".agent/skills"),
        root(project, ".claude/skills"),
        root(home, ".claude/skills"),
    ]
}

/// Names of the folders and links in a root, sorted; none if there is no root. Whether a link leads to
/// a folder shows when its `SKILL.md` is opened. A name that is not UTF-8 is no skill: Node cannot open
/// it either.
fn folders_in(root: &Utf8Path) -> io::Result<Vec<String>> {
    let entries = match root.read_dir_utf8() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()))
        .map(|entry| entry.file_name().to_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Most files are plain and cost one open; a linked or ill-encoded one is opened again with care.
fn read_skill_file(dir: &Utf8Path) -> Result<String, ReadError> {
    let bytes_max = Limits::default().file_bytes_max;
    match read_text(&dir.join(FILE_NAME), bytes_max) {
        Err(ReadError::LinkLeaves | ReadError::NotUtf8 { .. }) => {
            let bytes = read_bytes_beneath(dir, Utf8Path::new(FILE_NAME), bytes_max)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        other => other,
    }
}

/// Whether there is simply no such file, as behind a link to something that is no folder.
fn is_absence(error: &ReadError) -> bool {
    match error {
        ReadError::NotFound => true,
        ReadError::Io(error) => error.kind() == ErrorKind::NotADirectory,
        _ => false,
    }
}

/// `/^description:\s*(.+?)$/m` over the whole file, trimmed. The `\s*` crosses lines: an empty value
/// takes whatever text comes next. So the first key decides, and after it only blanks can fail to match,
/// which leaves the same empty text.
fn description(content: &str) -> &str {
    const KEY: &str = "description:";
    let mut places = memmem::find_iter(content.as_bytes(), KEY);
    let Some(key) = places.find(|at| content[..*at].chars().next_back().is_none_or(is_line_end))
    else {
        return "";
    };
    let value = content[key + KEY.len()..].trim_start_matches(is_whitespace);
    value.split(is_line_end).next().unwrap_or("").trim_end_matches(is_whitespace)
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
