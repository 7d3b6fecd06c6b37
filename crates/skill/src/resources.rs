//! The other files of a skill's folder. They are listed and read only on request, and never from outside the
//! folder. The same set of files is listed, read and covered by the digest that is trusted.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use repertoire_text::{Diagnostic, codes as text_codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codes;
use crate::limits::ResourceLimits;
use crate::pack;
use crate::skill::{Digest, Scope, Skill};
use crate::walk::is_refused_name;

/// The purpose of a resource, by the folder that contains it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// `references/` or `reference/`: documents to read.
    References,
    /// `assets/`: files to copy.
    Assets,
    /// `scripts/`: programs to run.
    Scripts,
    /// `examples/`: samples to imitate.
    Examples,
    /// Any other file.
    Other,
}

impl Group {
    /// All groups, in display order.
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

/// A file beside a skill's `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// The purpose of the file.
    pub group: Group,
    /// The path relative to the skill's folder.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The size of the file.
    pub bytes: u64,
}

/// The resources of a skill, and the files that were left out.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// The files, by group and then by path.
    pub files: Vec<Resource>,
    /// The reasons why files were left out.
    pub diagnostics: Vec<Diagnostic>,
}

impl Resources {
    /// Iterates over the paths of one group.
    pub fn of_group(&self, group: Group) -> impl Iterator<Item = &Utf8Path> {
        self.files.iter().filter(move |file| file.group == group).map(|file| file.path.as_path())
    }
}

/// Lists the resources of a skill. A flat skill has none.
pub fn list(skill: &Skill, limits: &ResourceLimits) -> Resources {
    survey(skill, limits).0
}

/// Reads one resource as text. It accepts every file that [`list`] finds, and those that only a limit keeps
/// out of the list.
pub fn read(skill: &Skill, path: &Utf8Path, limits: &ResourceLimits) -> Result<String, ReadError> {
    String::from_utf8(read_bytes(skill, path, limits)?)
        .map_err(|error| ReadError::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

/// Like [`read`], for files of any content.
pub fn read_bytes(
    skill: &Skill,
    path: &Utf8Path,
    limits: &ResourceLimits,
) -> Result<Vec<u8>, ReadError> {
    if !fs::is_beneath(path) {
        return Err(ReadError::PathRefused);
    }
    if !skill.origin.is_folder() || is_own_file(skill, path) {
        return Err(ReadError::NotFound);
    }
    if let Some(folder) = pack_folder(skill) {
        let bytes = pack::read(folder.join(path).as_str()).ok_or(ReadError::NotFound)?;
        return Ok(bytes.into_owned());
    }
    refuse_unlisted(skill.origin.dir(), path, limits)?;
    fs::read_bytes_beneath(skill.origin.dir(), path, limits.bytes_max)
}

/// Computes the digest of a skill with all its files, which is what a user agrees to when trusting it.
///
/// It covers every path and content and the target of every link, so adding, changing, renaming or removing
/// any file or link changes it. Returns `None` if not all files can be read; such a skill cannot be trusted.
pub fn digest_of_all(skill: &Skill, limits: &ResourceLimits) -> Option<Digest> {
    let (resources, links) = survey(skill, limits);
    if !resources.diagnostics.is_empty() {
        return None;
    }
    let mut lines = vec![format!("{} {}", skill.digest(), skill.origin.file.file_name()?)];
    for file in &resources.files {
        let bytes =
            fs::read_bytes_beneath(skill.origin.dir(), &file.path, limits.bytes_max).ok()?;
        lines.push(format!("{} {}", Digest::of(&bytes), file.path));
    }
    // Quoted, so that a name cannot imitate the arrow or a line break.
    lines.extend(links.iter().map(|link| format!("link {:?} -> {:?}", link.path, link.target)));
    Some(Digest::of(lines.join("\n").as_bytes()))
}

/// A symbolic link within the skill's folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    /// The path relative to the skill's folder.
    path: Utf8PathBuf,
    /// The final target, relative to the skill's folder. The text of the link itself may stay the same while
    /// a link behind it changes.
    target: Utf8PathBuf,
}

fn survey(skill: &Skill, limits: &ResourceLimits) -> (Resources, Vec<Link>) {
    if !skill.origin.is_folder() {
        return Default::default();
    }
    match pack_folder(skill) {
        Some(folder) => (list_pack(skill, &folder), Vec::new()),
        None => list_folder(skill, limits),
    }
}

/// Returns true if a path below the skill's folder is the file that the skill was loaded from.
fn is_own_file(skill: &Skill, path: &Utf8Path) -> bool {
    let mut parts = names_of(path);
    parts.next() == skill.origin.file.file_name() && parts.next().is_none()
}

fn names_of(path: &Utf8Path) -> impl DoubleEndedIterator<Item = &str> {
    path.components().map(|part| part.as_str()).filter(|name| *name != ".")
}

/// Rejects a path that would not be listed. This examines only the one path, because callers may read all of
/// a skill's files in turn.
fn refuse_unlisted(
    dir: &Utf8Path,
    path: &Utf8Path,
    limits: &ResourceLimits,
) -> Result<(), ReadError> {
    let names: Vec<&str> = names_of(path).collect();
    if names.len() > limits.depth_max + 1 || names.iter().any(|name| is_refused_name(name)) {
        return Err(ReadError::NotFound);
    }
    let real_dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let mut at = dir.to_owned();
    for (number, name) in names.iter().enumerate() {
        at.push(name);
        match look(&real_dir, &at) {
            Look::Folder if *name == ".git" => return Err(ReadError::NotFound),
            // If the path itself is a folder, opening it gives the proper error.
            Look::Folder => {}
            Look::File(..) if number + 1 == names.len() => {}
            Look::LeavesFolder => return Err(ReadError::LinkLeaves),
            Look::Irregular(error) => return Err(error),
            Look::File(..) | Look::LinkInside(_) | Look::Nothing => {
                return Err(ReadError::NotFound);
            }
        }
    }
    Ok(())
}

/// Returns the folder inside the embedded pack, for built-in skills that are used from memory.
fn pack_folder(skill: &Skill) -> Option<Utf8PathBuf> {
    let origin = &skill.origin;
    let in_place = origin.scope == Scope::Builtin && !origin.file.exists();
    in_place.then(|| origin.dir().strip_prefix(&origin.root).ok().map(Utf8Path::to_owned))?
}

fn list_pack(skill: &Skill, folder: &Utf8Path) -> Resources {
    let mut files: Vec<Resource> = pack::files()
        .iter()
        .filter_map(|path| {
            let rest = Utf8Path::new(path.as_ref()).strip_prefix(folder).ok()?;
            let bytes = pack::read(path)?.len() as u64;
            (!is_own_file(skill, rest)).then(|| Resource {
                group: Group::of(rest),
                path: rest.to_owned(),
                bytes,
            })
        })
        .collect();
    files.sort();
    Resources { files, diagnostics: Vec::new() }
}

fn list_folder(skill: &Skill, limits: &ResourceLimits) -> (Resources, Vec<Link>) {
    let dir = skill.origin.dir();
    let real_dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let entries_left = limits.files_max.saturating_mul(ENTRIES_PER_FILE);
    let mut listing = Listing {
        skill,
        dir,
        real_dir,
        limits,
        entries_left,
        bytes_total: 0,
        links: Vec::new(),
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
    let Listing { mut out, mut links, links_out, .. } = listing;
    out.diagnostics.extend(leaves(&links_out));
    out.files.sort();
    links.sort();
    (out, links)
}

/// The number of entries, including folders and links, that are examined per file that may be listed.
const ENTRIES_PER_FILE: usize = 2;

/// The maximum number of links out of the folder that are resolved. Each costs as much as several files, only
/// the first is reported by name, and no honest skill has many.
const LINKS_OUT_MAX: usize = 128;

/// A listing in progress.
struct Listing<'a> {
    skill: &'a Skill,
    dir: &'a Utf8Path,
    real_dir: Utf8PathBuf,
    limits: &'a ResourceLimits,
    entries_left: usize,
    bytes_total: u64,
    links: Vec<Link>,
    links_out: Vec<Utf8PathBuf>,
    out: Resources,
}

impl Listing<'_> {
    /// Lists one folder. Returns false once a limit is exceeded.
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
                // Git's own files are not part of the skill.
                Look::Folder if name == ".git" => {}
                Look::Folder if depth < self.limits.depth_max => pending.push((path, depth + 1)),
                Look::Folder => return false,
                Look::File(bytes, target) => {
                    self.link(&path, target);
                    if !self.file(path, bytes) {
                        return false;
                    }
                }
                // The target folder is listed under its own name.
                Look::LinkInside(target) => self.link(&path, Some(target)),
                Look::LeavesFolder if self.links_out.len() == LINKS_OUT_MAX => return false,
                Look::LeavesFolder => self.links_out.push(self.dir.join(&path)),
                Look::Irregular(error) => {
                    self.out.diagnostics.push(error.to_diagnostic(&self.dir.join(&path)));
                }
                Look::Nothing => {}
            }
        }
        all
    }

    fn link(&mut self, path: &Utf8Path, target: Option<Utf8PathBuf>) {
        self.links.extend(target.map(|target| Link { path: path.to_owned(), target }));
    }

    /// Lists one file. Returns false once a limit is exceeded.
    fn file(&mut self, path: Utf8PathBuf, bytes: u64) -> bool {
        if is_own_file(self.skill, &path) {
            return true;
        }
        self.bytes_total = self.bytes_total.saturating_add(bytes);
        let too_many = self.out.files.len() >= self.limits.files_max;
        if too_many || self.bytes_total > self.limits.bytes_max {
            return false;
        }
        self.out.files.push(Resource { group: Group::of(&path), path, bytes });
        true
    }

    /// Returns the names in a folder, sorted, and whether the list is complete.
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
    /// A file, or a link to one with its target.
    File(u64, Option<Utf8PathBuf>),
    Folder,
    /// A link to a folder, or to something else that is not a file.
    LinkInside(Utf8PathBuf),
    LeavesFolder,
    Irregular(ReadError),
    Nothing,
}

fn look(real_dir: &Utf8Path, path: &Utf8Path) -> Look {
    let Ok(metadata) = path.symlink_metadata() else { return Look::Nothing };
    if metadata.is_file() {
        return Look::File(metadata.len(), None);
    }
    if metadata.is_dir() {
        return Look::Folder;
    }
    if !metadata.is_symlink() {
        return fs::refuse_irregular(path).map_or_else(Look::Irregular, |()| Look::Nothing);
    }
    let Some(place) = place_inside(real_dir, path) else { return Look::LeavesFolder };
    match real_dir.join(&place).symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Look::File(metadata.len(), Some(place)),
        Ok(_) => Look::LinkInside(place),
        Err(_) => Look::LeavesFolder,
    }
}

/// Returns the target of a link relative to the skill's folder; `None` if it is outside or in `.git`.
fn place_inside(real_dir: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let real = path.canonicalize_utf8().ok()?;
    let place = real.strip_prefix(real_dir).ok()?;
    let in_git = place.components().any(|part| part.as_str() == ".git");
    (!in_git).then(|| place.to_owned())
}

fn over_limit(path: &Utf8Path, limits: &ResourceLimits) -> Diagnostic {
    let code = &codes::RESOURCE_LIMIT;
    let message = format!(
        "the skill has more than {} files, {} bytes, {LINKS_OUT_MAX} links that leave it or {} levels of folders, \
         the limits; the rest is left out",
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
    let message = format!(
        "the symbolic link is broken, or leads into `.git` or out of the skill's folder{more}"
    );
    Some(Diagnostic::new(code, message).in_file(first).help(code.remedy))
}

fn refused_name(folder: &Utf8Path, name: &str) -> Diagnostic {
    let code = &codes::NAME_ON_DISK;
    let message = format!(
        "`{}` was passed over because of its name",
        repertoire_text::terminal::printable(name)
    );
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

    /// Trusts what `lay` created, lets `change` modify it, and expects the trust to be void.
    #[track_caller]
    fn check_noticed(lay: impl Fn(&Utf8Path), change: impl Fn(&Utf8Path)) {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        fs::write_atomic(&dir.join("v1/run.sh"), b"1").unwrap();
        fs::write_atomic(&dir.join("v2/run.sh"), b"2").unwrap();
        lay(&dir);
        let before = digest_of_all(&skill, &ResourceLimits::default()).unwrap();
        change(&dir);
        assert_ne!(digest_of_all(&skill, &ResourceLimits::default()), Some(before));
    }

    fn link_again(target: &str, link: &Utf8Path) {
        let _ = std::fs::remove_file(link);
        symlink(target, link).unwrap();
    }

    #[test]
    fn the_digest_changes_when_a_link_to_a_folder_leads_elsewhere() {
        check_noticed(
            |dir| link_again("v1", &dir.join("scripts")),
            |dir| link_again("v2", &dir.join("scripts")),
        );
        // The same through a second link that is not listed itself.
        check_noticed(
            |dir| {
                std::fs::create_dir(dir.join(".git")).unwrap();
                link_again("../v1", &dir.join(".git/now"));
                link_again(".git/now", &dir.join("scripts"));
            },
            |dir| link_again("../v2", &dir.join(".git/now")),
        );
    }

    #[test]
    fn the_digest_covers_a_second_file_that_could_be_the_skill() {
        let put = |dir: &Utf8Path, text: &str| {
            fs::write_atomic(&dir.join("skill.md"), text.as_bytes()).unwrap();
        };
        check_noticed(|dir| put(dir, "one"), |dir| put(dir, "two"));
    }

    #[test]
    fn what_git_keeps_is_neither_listed_nor_read_nor_reached_by_a_link() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        let limits = ResourceLimits::default();
        fs::write_atomic(&dir.join(".git/hooks/run"), b"1").unwrap();
        assert!(digest_of_all(&skill, &limits).is_some());
        symlink(".git/hooks/run", dir.join("file")).unwrap();
        symlink(".git/hooks", dir.join("folder")).unwrap();
        let found = list(&skill, &limits);
        assert!(found.files.is_empty(), "{:?}", found.files);
        assert_eq!(found.diagnostics[0].code.id, "RS006");
        assert_eq!(digest_of_all(&skill, &limits), None);
        for path in [".git/hooks/run", "./.git/hooks/run", "file", "folder/run"] {
            assert!(read(&skill, path.into(), &limits).is_err(), "{path}");
        }
    }

    #[test]
    fn only_what_is_listed_is_read() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        let limits = ResourceLimits::default();
        fs::write_atomic(&dir.join("v1/run.sh"), b"1").unwrap();
        symlink("v1", dir.join("scripts")).unwrap();
        symlink("v1/run.sh", dir.join("run")).unwrap();
        let found = list(&skill, &limits);
        for file in &found.files {
            assert_eq!(read(&skill, &file.path, &limits).unwrap(), "1");
        }
        assert_eq!(found.files.len(), 2);
        assert_eq!(read(&skill, "./v1/./run.sh".into(), &limits).unwrap(), "1");
        for path in ["scripts/run.sh", "SKILL.md", "./SKILL.md", "v1", "scripts", "run/x", "v1/no"]
        {
            assert!(read(&skill, path.into(), &limits).is_err(), "{path}");
        }
    }
}
