//! The other files of a skill's folder: listed when asked for, read when asked for, and never from
//! outside the folder.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use repertoire_text::{Diagnostic, codes as text_codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codes;
use crate::dialect::is_skill_file;
use crate::limits::ResourceLimits;
use crate::pack;
use crate::skill::{Digest, Scope, Skill};
use crate::walk::is_refused_name;

/// What a resource is for, by the folder it stands in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// `references/` or `reference/`: to read.
    References,
    /// `assets/`: to copy from.
    Assets,
    /// `scripts/`: to run.
    Scripts,
    /// `examples/`: to imitate.
    Examples,
    /// Anything else.
    Other,
}

impl Group {
    /// All groups, in the order in which they are listed.
    pub const ALL: &[Group] =
        &[Group::References, Group::Assets, Group::Scripts, Group::Examples, Group::Other];

    pub(crate) fn of(path: &Utf8Path) -> Self {
        match path.components().next().map(|part| part.as_str()) {
            Some("references" | "reference") => Group::References,
            Some("assets") => Group::Assets,
            Some("scripts") => Group::Scripts,
            Some("examples") => Group::Examples,
            _ => Group::Other,
        }
    }
}

/// One file beside a skill's `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// What it is for.
    pub group: Group,
    /// Its path below the skill's folder.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// The resources of a skill and what was left out.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// Files, by group and then by path.
    pub files: Vec<Resource>,
    /// What was left out, and why.
    pub diagnostics: Vec<Diagnostic>,
}

impl Resources {
    /// The paths of one group.
    pub fn of_group(&self, group: Group) -> impl Iterator<Item = &Utf8Path> {
        self.files.iter().filter(move |file| file.group == group).map(|file| file.path.as_path())
    }
}

/// Lists the resources of a skill. A flat skill has none.
pub fn list(skill: &Skill, limits: &ResourceLimits) -> Resources {
    if !skill.origin.is_folder() {
        return Resources::default();
    }
    match pack_folder(skill) {
        Some(folder) => list_pack(&folder),
        None => list_folder(skill.origin.dir(), limits),
    }
}

/// Reads one resource as text.
pub fn read(skill: &Skill, path: &Utf8Path, limits: &ResourceLimits) -> Result<String, ReadError> {
    if let Some(folder) = pack_folder(skill) {
        if !fs::is_beneath(path) {
            return Err(ReadError::PathRefused);
        }
        let bytes = pack::read(folder.join(path).as_str()).ok_or(ReadError::NotFound)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    fs::read_text_beneath(skill.origin.dir(), path, limits.bytes_max)
}

/// The digest of a skill with all its files: what a person agrees to when trusting it.
///
/// It covers every path and content, so adding, changing, renaming or removing any file changes it.
/// A skill whose files cannot all be read has no such digest and cannot be trusted.
pub fn digest_of_all(skill: &Skill, limits: &ResourceLimits) -> Option<Digest> {
    let resources = list(skill, limits);
    if !resources.diagnostics.is_empty() {
        return None;
    }
    let mut lines = vec![format!("{} {}", skill.digest(), skill.origin.file.file_name()?)];
    for file in &resources.files {
        let bytes =
            fs::read_bytes_beneath(skill.origin.dir(), &file.path, limits.bytes_max).ok()?;
        lines.push(format!("{} {}", Digest::of(&bytes), file.path));
    }
    Some(Digest::of(lines.join("\n").as_bytes()))
}

/// The folder inside the embedded pack, for built-in skills that are used in place.
fn pack_folder(skill: &Skill) -> Option<Utf8PathBuf> {
    let origin = &skill.origin;
    let in_place = origin.scope == Scope::Builtin && !origin.file.exists();
    in_place.then(|| origin.dir().strip_prefix(&origin.root).ok().map(Utf8Path::to_owned))?
}

fn list_pack(folder: &Utf8Path) -> Resources {
    let mut files: Vec<Resource> = pack::files()
        .iter()
        .filter_map(|path| {
            let rest = Utf8Path::new(path.as_ref()).strip_prefix(folder).ok()?;
            let bytes = pack::read(path)?.len() as u64;
            (!is_skill_file(rest.as_str())).then(|| Resource {
                group: Group::of(rest),
                path: rest.to_owned(),
                bytes,
            })
        })
        .collect();
    files.sort();
    Resources { files, diagnostics: Vec::new() }
}

fn list_folder(dir: &Utf8Path, limits: &ResourceLimits) -> Resources {
    let real_dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let entries_left = limits.files_max.saturating_mul(ENTRIES_PER_FILE);
    let mut listing = Listing {
        dir,
        real_dir,
        limits,
        entries_left,
        bytes_total: 0,
        links_out: Vec::new(),
        out: Resources::default(),
    };
    let mut pending = vec![(Utf8PathBuf::new(), 0_usize)];
    while let Some((relative, depth)) = pending.pop() {
        if !listing.list(&relative, depth, &mut pending) {
            listing.out.diagnostics.push(over_limit(dir, limits));
            break;
        }
    }
    let Listing { mut out, links_out, .. } = listing;
    out.diagnostics.extend(leaves(&links_out));
    out.files.sort();
    out
}

/// How many entries, folders and links included, are looked at for each file that may be listed.
const ENTRIES_PER_FILE: usize = 2;

/// A listing under way.
struct Listing<'a> {
    dir: &'a Utf8Path,
    real_dir: Utf8PathBuf,
    limits: &'a ResourceLimits,
    entries_left: usize,
    bytes_total: u64,
    links_out: Vec<Utf8PathBuf>,
    out: Resources,
}

impl Listing<'_> {
    /// Lists one folder; false once a limit is passed.
    fn list(
        &mut self,
        relative: &Utf8Path,
        depth: usize,
        pending: &mut Vec<(Utf8PathBuf, usize)>,
    ) -> bool {
        let folder = self.dir.join(relative);
        let Some((names, all)) = self.names(&folder) else {
            let code = &text_codes::UNREADABLE;
            let found = Diagnostic::new(code, "the folder cannot be read");
            self.out.diagnostics.push(found.in_file(&folder).help(code.remedy));
            return true;
        };
        for name in names {
            let path = relative.join(&name);
            match look(&self.real_dir, &self.dir.join(&path)) {
                // What git keeps for itself is no part of the skill.
                Look::Folder if name == ".git" => {}
                Look::Folder if depth < self.limits.depth_max => pending.push((path, depth + 1)),
                Look::Folder => return false,
                Look::File(_) if relative == "" && is_skill_file(&name) => {}
                Look::File(bytes) => {
                    self.bytes_total = self.bytes_total.saturating_add(bytes);
                    let too_many = self.out.files.len() >= self.limits.files_max;
                    if too_many || self.bytes_total > self.limits.bytes_max {
                        return false;
                    }
                    self.out.files.push(Resource { group: Group::of(&path), path, bytes });
                }
                Look::LeavesFolder => self.links_out.push(self.dir.join(&path)),
                Look::Irregular(error) => {
                    self.out.diagnostics.push(error.to_diagnostic(&self.dir.join(&path)));
                }
                Look::Nothing => {}
            }
        }
        all
    }

    /// The names in a folder, sorted, and whether these are all.
    fn names(&mut self, folder: &Utf8Path) -> Option<(Vec<String>, bool)> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).ok()? {
            if self.entries_left == 0 {
                return Some((names, false));
            }
            self.entries_left -= 1;
            match entry.ok()?.file_name().into_string() {
                Ok(name) if !is_refused_name(&name) => names.push(name),
                Ok(name) => self.out.diagnostics.push(refused_name(folder, &name)),
                Err(name) => {
                    self.out.diagnostics.push(refused_name(folder, &name.to_string_lossy()));
                }
            }
        }
        names.sort();
        Some((names, true))
    }
}

enum Look {
    File(u64),
    Folder,
    LeavesFolder,
    Irregular(ReadError),
    Nothing,
}

fn look(real_dir: &Utf8Path, path: &Utf8Path) -> Look {
    let Ok(metadata) = path.symlink_metadata() else { return Look::Nothing };
    if metadata.is_file() {
        return Look::File(metadata.len());
    }
    if metadata.is_dir() {
        return Look::Folder;
    }
    if !metadata.is_symlink() {
        return fs::refuse_irregular(path).map_or_else(Look::Irregular, |()| Look::Nothing);
    }
    let target = path.canonicalize_utf8().ok().filter(|target| target.starts_with(real_dir));
    // Links to folders inside are found under their own names; a link to a file is one more name.
    match target.and_then(|target| target.symlink_metadata().ok()) {
        Some(metadata) if metadata.is_file() => Look::File(metadata.len()),
        Some(_) => Look::Nothing,
        None => Look::LeavesFolder,
    }
}

fn over_limit(path: &Utf8Path, limits: &ResourceLimits) -> Diagnostic {
    let code = &codes::RESOURCE_LIMIT;
    let message = format!(
        "the skill has more than {} files, {} bytes or {} levels of folders, the limits; the rest is left out",
        limits.files_max, limits.bytes_max, limits.depth_max
    );
    Diagnostic::new(code, message).in_file(path).help(code.remedy)
}

fn leaves(links: &[Utf8PathBuf]) -> Option<Diagnostic> {
    let first = links.first()?;
    let code = &text_codes::LINK_LEAVES;
    let more = match links.len() {
        1 => String::new(),
        count => format!(" (and {} more links)", count - 1),
    };
    let message = format!("the symbolic link is broken or leads out of the skill's folder{more}");
    Some(Diagnostic::new(code, message).in_file(first).help(code.remedy))
}

fn refused_name(folder: &Utf8Path, name: &str) -> Diagnostic {
    let code = &codes::NAME_ON_DISK;
    let message = format!("`{}` was passed over because of its name", name.escape_debug());
    Diagnostic::new(code, message).in_file(folder).help(code.remedy)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::load::load;
    use crate::skill::Origin;
    use repertoire_text::{Limits, Source};

    fn skill(dir: &Utf8Path) -> Skill {
        let file = dir.join("SKILL.md");
        let text = "---\nname: a\ndescription: d\n---\n";
        fs::write_atomic(&file, text.as_bytes()).unwrap();
        load(Source::new(file.clone(), text), Origin::file(file), &Limits::default()).skill.unwrap()
    }

    #[test]
    fn files_are_grouped_sorted_and_kept_inside() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        for path in ["scripts/run.py", "reference/b.md", "references/a.md", "LICENSE.txt", "x/y.md"]
        {
            fs::write_atomic(&dir.join(path), b"1234").unwrap();
        }
        symlink("/etc/passwd", dir.join("out")).unwrap();
        symlink("LICENSE.txt", dir.join("in")).unwrap();
        let found = list(&skill, &ResourceLimits::default());
        let shown: Vec<String> =
            found.files.iter().map(|file| format!("{:?} {}", file.group, file.path)).collect();
        assert_eq!(
            shown,
            [
                "References reference/b.md",
                "References references/a.md",
                "Scripts scripts/run.py",
                "Other LICENSE.txt",
                "Other in",
                "Other x/y.md",
            ]
        );
        assert_eq!(found.diagnostics.len(), 1);
        assert_eq!(found.diagnostics[0].code.id, "RS006");
        assert!(read(&skill, "out".into(), &ResourceLimits::default()).is_err());
        assert_eq!(read(&skill, "x/y.md".into(), &ResourceLimits::default()).unwrap(), "1234");
    }

    #[test]
    fn more_files_than_allowed_are_left_out_and_said_so() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        for number in 0..20 {
            fs::write_atomic(&dir.join(format!("f{number:02}")), b"1").unwrap();
        }
        let limits = ResourceLimits { files_max: 10, ..ResourceLimits::default() };
        let found = list(&skill, &limits);
        assert_eq!((found.files.len(), found.diagnostics[0].code.id), (10, "RS400"));
    }

    #[test]
    fn the_digest_of_all_files_changes_with_any_of_them() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        let limits = ResourceLimits::default();
        let mut seen = vec![digest_of_all(&skill, &limits).unwrap()];
        for (path, content) in [("x", "1"), ("x", "2"), ("y", "2")] {
            fs::write_atomic(&dir.join(path), content.as_bytes()).unwrap();
            seen.push(digest_of_all(&skill, &limits).unwrap());
        }
        std::fs::remove_file(dir.join("x")).unwrap();
        seen.push(digest_of_all(&skill, &limits).unwrap());
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
