//! Finds skills where OpenSkills does: a folder, or a link to one, directly in one of four roots, with a
//! `SKILL.md`. The name of the folder is the name of the skill; the first root that has it wins.
//!
//! Reads are bounded and never leave a skill's folder through a linked `SKILL.md`. A file that cannot be read
//! is skipped with a diagnostic, where OpenSkills fails; a name that leaves the roots is not found.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use memchr::memmem;
use repertoire_text::fs::{ReadError, is_beneath, read_bytes_beneath, read_text};
use repertoire_text::{Diagnostic, Limits};

use super::entry::{OpenSkillsEntry, SkillLocation};
use super::js::{is_line_end, is_whitespace, path_join};

const FILE_NAME: &str = "SKILL.md";

/// A skill as OpenSkills sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSkillsSkill {
    /// The name of the folder, or the name that was requested.
    pub name: String,
    /// The text after the first `description:` at the start of a line, anywhere in the file.
    pub description: String,
    /// `project` if the root's path contains the project's path, which is always so in the home folder.
    pub location: SkillLocation,
    /// The skill's folder as joined from root and name: not resolved, not canonical.
    pub dir: Utf8PathBuf,
    /// The path of its `SKILL.md`.
    pub file: Utf8PathBuf,
}

impl OpenSkillsSkill {
    /// Returns the skill in the form that the renderers take.
    pub fn to_entry(&self) -> OpenSkillsEntry<'_> {
        OpenSkillsEntry {
            name: &self.name,
            description: &self.description,
            location: self.location,
        }
    }

    /// Reads its `SKILL.md`. Bytes that are not UTF-8 become U+FFFD, as in Node.
    pub fn read_content(&self) -> Result<String, ReadError> {
        read_skill_file(&self.dir)
    }
}

/// Finds all skills of a project and a home folder in OpenSkills' order: by root, then in byte order.
pub fn find_all_skills(project: &Utf8Path, home: &Utf8Path) -> Vec<OpenSkillsSkill> {
    scan_skills(project, home).0
}

/// Like [`find_all_skills`], with diagnostics about the files that could not be read.
pub fn scan_skills(project: &Utf8Path, home: &Utf8Path) -> (Vec<OpenSkillsSkill>, Vec<Diagnostic>) {
    let mut skills = Vec::new();
    let mut diagnostics = Vec::new();
    let mut seen = BTreeSet::new();
    for root in search_roots(project, home) {
        let names = folders_in(&root.dir).unwrap_or_else(|error| {
            diagnostics.push(ReadError::Io(error).to_diagnostic(&root.dir));
            Vec::new()
        });
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            match root.open_skill(&name) {
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

/// Finds the skill that OpenSkills would read for a name. The name is a path below a root, such as
/// `group/nested`; one that leaves the four roots is not found, however it is written.
pub fn find(name: &str, project: &Utf8Path, home: &Utf8Path) -> Option<OpenSkillsSkill> {
    let roots = search_roots(project, home);
    let is_inside = |dir: &Utf8Path| roots.iter().any(|root| root.contains_path(dir));
    roots
        .iter()
        .filter(|root| is_inside(&path_join(&[root.dir.as_str(), name])))
        .find_map(|root| root.open_skill(name).ok())
}

struct OpenSkillsRoot {
    dir: Utf8PathBuf,
    location: SkillLocation,
}

impl OpenSkillsRoot {
    fn new(base: &Utf8Path, folder: &str, project: &Utf8Path) -> Self {
        let dir = path_join(&[base.as_str(), folder]);
        let is_project = dir.as_str().contains(project.as_str());
        OpenSkillsRoot {
            dir,
            location: if is_project { SkillLocation::Project } else { SkillLocation::Global },
        }
    }

    /// Returns true if a joined path is the root or below it. Joining has resolved `..` between slashes; this
    /// also rejects any other form of parent component.
    fn contains_path(&self, dir: &Utf8Path) -> bool {
        dir.strip_prefix(&self.dir).is_ok_and(|rest| rest == "" || is_beneath(rest))
    }

    fn open_skill(&self, name: &str) -> Result<OpenSkillsSkill, ReadError> {
        let dir = path_join(&[self.dir.as_str(), name]);
        let description = extract_description(&read_skill_file(&dir)?).to_owned();
        let file = dir.join(FILE_NAME);
        Ok(OpenSkillsSkill {
            name: name.to_owned(),
            description,
            location: self.location,
            dir,
            file,
        })
    }
}

fn search_roots(project: &Utf8Path, home: &Utf8Path) -> [OpenSkillsRoot; 4] {
    [
        OpenSkillsRoot::new(project, ".agent/skills", project),
        OpenSkillsRoot::new(home, ".agent/skills", project),
        OpenSkillsRoot::new(project, ".claude/skills", project),
        OpenSkillsRoot::new(home, ".claude/skills", project),
    ]
}

/// Returns the names of the folders and links in a root, sorted; empty if there is no root. Whether a link
/// leads to a folder is found out when its `SKILL.md` is opened. Names that are not UTF-8 are skipped: Node
/// cannot open them either.
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

/// Plain files cost a single open; only linked ones, and those that are not UTF-8, are opened again beneath
/// their folder.
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

/// Returns true if the file simply does not exist, as behind a link to something that is not a folder.
fn is_absence(error: &ReadError) -> bool {
    match error {
        ReadError::NotFound => true,
        ReadError::Io(error) => error.kind() == ErrorKind::NotADirectory,
        _ => false,
    }
}

/// Matches `/^description:\s*(.+?)$/m` over the whole file, and trims the result. `\s*` crosses lines, so an
/// empty value takes the next text. Therefore the first key decides: the pattern only fails if nothing but
/// white space follows, which gives the same empty text.
fn extract_description(content: &str) -> &str {
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
