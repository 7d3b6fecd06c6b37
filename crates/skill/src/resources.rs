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
use crate::skill::{ContentDigest, Scope, Skill};
use crate::walk::is_refused_name;

/// The purpose of a resource, by the folder that contains it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ResourceGroup {
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

impl ResourceGroup {
    /// All groups, in display order.
    pub const ALL: &[ResourceGroup] = &[
        ResourceGroup::References,
        ResourceGroup::Assets,
        ResourceGroup::Scripts,
        ResourceGroup::Examples,
        ResourceGroup::Other,
    ];

    pub(crate) fn from_path(path: &Utf8Path) -> Self {
        match path.components().next().map(|part| part.as_str()) {
            Some("references" | "reference") => ResourceGroup::References,
            Some("assets") => ResourceGroup::Assets,
            Some("scripts") => ResourceGroup::Scripts,
            Some("examples") => ResourceGroup::Examples,
            _ => ResourceGroup::Other,
        }
    }
}

/// A file beside a skill's `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ResourceFile {
    /// The purpose of the file.
    pub group: ResourceGroup,
    /// The path relative to the skill's folder.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The size of the file.
    pub bytes: u64,
}

/// The resources of a skill, and the files that were left out.
#[derive(Clone, Debug, Default)]
pub struct ResourceList {
    /// The files, by group and then by path.
    pub files: Vec<ResourceFile>,
    /// The reasons why files were left out.
    pub diagnostics: Vec<Diagnostic>,
}

impl ResourceList {
    /// Iterates over the paths of one group.
    pub fn of_group(&self, group: ResourceGroup) -> impl Iterator<Item = &Utf8Path> {
        self.files.iter().filter(move |file| file.group == group).map(|file| file.path.as_path())
    }
}

/// Lists the resources of a skill. A flat skill has none.
pub fn list_resources(skill: &Skill, limits: &ResourceLimits) -> ResourceList {
    survey_folder(skill, limits).0
}

/// Reads one resource as text. It accepts every file that [`list_resources`] finds, and those that only a limit keeps
/// out of the list.
pub fn read_resource(
    skill: &Skill,
    path: &Utf8Path,
    limits: &ResourceLimits,
) -> Result<String, ReadError> {
    String::from_utf8(read_resource_bytes(skill, path, limits)?)
        .map_err(|error| ReadError::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

/// Like [`read_resource`], for files of any content.
pub fn read_resource_bytes(
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
        let bytes = pack::read_pack_file(folder.join(path).as_str()).ok_or(ReadError::NotFound)?;
        return Ok(bytes.into_owned());
    }
    refuse_unlisted(skill.origin.dir(), path, limits)?;
    fs::read_bytes_beneath(skill.origin.dir(), path, limits.bytes_max)
}

/// Computes the digest of a skill with all its files, which is what a user agrees to when trusting it.
///
/// It covers every path and content and the target of every link, so adding, changing, renaming or removing
/// any file or link changes it. Returns `None` if not all files can be read; such a skill cannot be trusted.
pub fn digest_all_files(skill: &Skill, limits: &ResourceLimits) -> Option<ContentDigest> {
    let (resources, links) = survey_folder(skill, limits);
    if !resources.diagnostics.is_empty() {
        return None;
    }
    let mut lines = vec![format!("{} {}", skill.digest(), skill.origin.file.file_name()?)];
    for file in &resources.files {
        let bytes =
            fs::read_bytes_beneath(skill.origin.dir(), &file.path, limits.bytes_max).ok()?;
        lines.push(format!("{} {}", ContentDigest::hash_bytes(&bytes), file.path));
    }
    // Quoted, so that a name cannot imitate the arrow or a line break.
    lines.extend(links.iter().map(|link| format!("link {:?} -> {:?}", link.path, link.target)));
    Some(ContentDigest::hash_bytes(lines.join("\n").as_bytes()))
}

/// A symbolic link within the skill's folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResourceLink {
    /// The path relative to the skill's folder.
    path: Utf8PathBuf,
    /// The final target, relative to the skill's folder. The text of the link itself may stay the same while
    /// a link behind it changes.
    target: Utf8PathBuf,
}

fn survey_folder(skill: &Skill, limits: &ResourceLimits) -> (ResourceList, Vec<ResourceLink>) {
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
        match inspect_path(&real_dir, &at) {
            ResourcePathKind::Folder if *name == ".git" => return Err(ReadError::NotFound),
            // If the path itself is a folder, opening it gives the proper error.
            ResourcePathKind::Folder => {}
            ResourcePathKind::File(..) if number + 1 == names.len() => {}
            ResourcePathKind::LeavesFolder => return Err(ReadError::LinkLeaves),
            ResourcePathKind::Irregular(error) => return Err(error),
            ResourcePathKind::File(..)
            | ResourcePathKind::LinkInside(_)
            | ResourcePathKind::Nothing => {
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

fn list_pack(skill: &Skill, folder: &Utf8Path) -> ResourceList {
    let mut files: Vec<ResourceFile> = pack::list_pack_files()
        .iter()
        .filter_map(|path| {
            let rest = Utf8Path::new(path.as_ref()).strip_prefix(folder).ok()?;
            let bytes = pack::read_pack_file(path)?.len() as u64;
            (!is_own_file(skill, rest)).then(|| ResourceFile {
                group: ResourceGroup::from_path(rest),
                path: rest.to_owned(),
                bytes,
            })
        })
        .collect();
    files.sort();
    ResourceList { files, diagnostics: Vec::new() }
}

fn list_folder(skill: &Skill, limits: &ResourceLimits) -> (ResourceList, Vec<ResourceLink>) {
    let dir = skill.origin.dir();
    let real_dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let entries_left = limits.files_max.saturating_mul(ENTRIES_PER_FILE);
    let mut listing = ResourceLister {
        skill,
        dir,
        real_dir,
        limits,
        entries_left,
        bytes_total: 0,
        links: Vec::new(),
        links_out: Vec::new(),
        out: ResourceList::default(),
    };
    let mut pending = vec![(Utf8PathBuf::new(), 0_usize)];
    while let Some((relative, depth)) = pending.pop() {
        if !listing.list_subfolder(&relative, depth, &mut pending) {
            listing.out.diagnostics.push(limit_diagnostic(dir, limits));
            break;
        }
    }
    let ResourceLister { mut out, mut links, links_out, .. } = listing;
    out.diagnostics.extend(leaving_links_diagnostic(&links_out));
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
struct ResourceLister<'a> {
    skill: &'a Skill,
    dir: &'a Utf8Path,
    real_dir: Utf8PathBuf,
    limits: &'a ResourceLimits,
    entries_left: usize,
    bytes_total: u64,
    links: Vec<ResourceLink>,
    links_out: Vec<Utf8PathBuf>,
    out: ResourceList,
}

impl ResourceLister<'_> {
    /// Lists one folder. Returns false once a limit is exceeded.
    fn list_subfolder(
        &mut self,
        relative: &Utf8Path,
        depth: usize,
        pending: &mut Vec<(Utf8PathBuf, usize)>,
    ) -> bool {
        let folder = self.dir.join(relative);
        let Some((entries, all)) = self.read_entries(&folder) else {
            let code = &text_codes::UNREADABLE;
            let found = Diagnostic::new(code, "the folder cannot be read");
            self.out.diagnostics.push(found.in_file(&folder).help(code.remedy));
            return true;
        };
        for ResourceEntry { name, is_folder } in entries {
            let path = relative.join(&name);
            let kind = if is_folder {
                ResourcePathKind::Folder
            } else {
                inspect_path(&self.real_dir, &self.dir.join(&path))
            };
            match kind {
                // Git's own files are not part of the skill.
                ResourcePathKind::Folder if name == ".git" => {}
                ResourcePathKind::Folder if depth < self.limits.depth_max => {
                    pending.push((path, depth + 1))
                }
                ResourcePathKind::Folder => return false,
                ResourcePathKind::File(bytes, target) => {
                    self.add_link(&path, target);
                    if !self.add_file(path, bytes) {
                        return false;
                    }
                }
                // The target folder is listed under its own name.
                ResourcePathKind::LinkInside(target) => self.add_link(&path, Some(target)),
                ResourcePathKind::LeavesFolder if self.links_out.len() == LINKS_OUT_MAX => {
                    return false;
                }
                ResourcePathKind::LeavesFolder => self.links_out.push(self.dir.join(&path)),
                ResourcePathKind::Irregular(error) => {
                    self.out.diagnostics.push(error.to_diagnostic(&self.dir.join(&path)));
                }
                ResourcePathKind::Nothing => {}
            }
        }
        all
    }

    fn add_link(&mut self, path: &Utf8Path, target: Option<Utf8PathBuf>) {
        self.links.extend(target.map(|target| ResourceLink { path: path.to_owned(), target }));
    }

    /// Lists one file. Returns false once a limit is exceeded.
    fn add_file(&mut self, path: Utf8PathBuf, bytes: u64) -> bool {
        if is_own_file(self.skill, &path) {
            return true;
        }
        self.bytes_total = self.bytes_total.saturating_add(bytes);
        let too_many = self.out.files.len() >= self.limits.files_max;
        if too_many || self.bytes_total > self.limits.bytes_max {
            return false;
        }
        self.out.files.push(ResourceFile { group: ResourceGroup::from_path(&path), path, bytes });
        true
    }

    /// Returns the entries of a folder, sorted by name, and whether the list is complete.
    fn read_entries(&mut self, folder: &Utf8Path) -> Option<(Vec<ResourceEntry>, bool)> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder).ok()? {
            if self.entries_left == 0 {
                return Some((entries, false));
            }
            self.entries_left -= 1;
            let entry = entry.ok()?;
            // The listing tells folders apart, so that a tree of nothing but folders costs no call for each.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match entry.file_name().into_string() {
                Ok(name) if !is_refused_name(&name) => {
                    entries.push(ResourceEntry { name, is_folder })
                }
                Ok(name) => self.out.diagnostics.push(refused_name_diagnostic(folder, &name)),
                Err(name) => {
                    self.out
                        .diagnostics
                        .push(refused_name_diagnostic(folder, &name.to_string_lossy()));
                }
            }
        }
        entries.sort();
        Some((entries, true))
    }
}

/// An entry of a folder with a valid name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ResourceEntry {
    name: String,
    is_folder: bool,
}

enum ResourcePathKind {
    /// A file, or a link to one with its target.
    File(u64, Option<Utf8PathBuf>),
    Folder,
    /// A link to a folder, or to something else that is not a file.
    LinkInside(Utf8PathBuf),
    LeavesFolder,
    Irregular(ReadError),
    Nothing,
}

fn inspect_path(real_dir: &Utf8Path, path: &Utf8Path) -> ResourcePathKind {
    let Ok(metadata) = path.symlink_metadata() else { return ResourcePathKind::Nothing };
    if metadata.is_file() {
        return ResourcePathKind::File(metadata.len(), None);
    }
    if metadata.is_dir() {
        return ResourcePathKind::Folder;
    }
    if !metadata.is_symlink() {
        return fs::refuse_irregular(path)
            .map_or_else(ResourcePathKind::Irregular, |()| ResourcePathKind::Nothing);
    }
    let Some(place) = place_inside(real_dir, path) else { return ResourcePathKind::LeavesFolder };
    match real_dir.join(&place).symlink_metadata() {
        Ok(metadata) if metadata.is_file() => ResourcePathKind::File(metadata.len(), Some(place)),
        Ok(_) => ResourcePathKind::LinkInside(place),
        Err(_) => ResourcePathKind::LeavesFolder,
    }
}

/// Returns the target of a link relative to the skill's folder; `None` if it is outside or in `.git`.
fn place_inside(real_dir: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let real = path.canonicalize_utf8().ok()?;
    let place = real.strip_prefix(real_dir).ok()?;
    let in_git = place.components().any(|part| part.as_str() == ".git");
    (!in_git).then(|| place.to_owned())
}

fn limit_diagnostic(path: &Utf8Path, limits: &ResourceLimits) -> Diagnostic {
    let code = &codes::RESOURCE_LIMIT;
    let message = format!(
        "the skill has more than {} files, {} bytes, {LINKS_OUT_MAX} links that leave it or {} levels of folders, \
         the limits; the rest is left out",
        limits.files_max, limits.bytes_max, limits.depth_max
    );
    Diagnostic::new(code, message).in_file(path).help(code.remedy)
}

fn leaving_links_diagnostic(links: &[Utf8PathBuf]) -> Option<Diagnostic> {
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

fn refused_name_diagnostic(folder: &Utf8Path, name: &str) -> Diagnostic {
    let code = &codes::NAME_ON_DISK;
    let message = format!(
        "`{}` was passed over because of its name",
        repertoire_text::terminal::printable_line(name)
    );
    Diagnostic::new(code, message).in_file(folder).help(code.remedy)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::load::load_skill;
    use crate::skill::SkillOrigin;
    use repertoire_text::{Limits, Source};

    fn skill(dir: &Utf8Path) -> Skill {
        let file = dir.join("SKILL.md");
        let text = "---\nname: a\ndescription: d\n---\n";
        fs::write_atomic(&file, text.as_bytes()).unwrap();
        load_skill(
            Source::new(file.clone(), text),
            SkillOrigin::from_file(file),
            &Limits::default(),
        )
        .skill
        .unwrap()
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
        let found = list_resources(&skill, &ResourceLimits::default());
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
        assert!(read_resource(&skill, "out".into(), &ResourceLimits::default()).is_err());
        assert_eq!(
            read_resource(&skill, "x/y.md".into(), &ResourceLimits::default()).unwrap(),
            "1234"
        );
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
        let found = list_resources(&skill, &limits);
        assert_eq!((found.files.len(), found.diagnostics[0].code.id), (10, "RS400"));
    }

    #[test]
    fn the_digest_of_all_files_changes_with_any_of_them() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
        let skill = skill(&dir);
        let limits = ResourceLimits::default();
        let mut seen = vec![digest_all_files(&skill, &limits).unwrap()];
        for (path, content) in [("x", "1"), ("x", "2"), ("y", "2")] {
            fs::write_atomic(&dir.join(path), content.as_bytes()).unwrap();
            seen.push(digest_all_files(&skill, &limits).unwrap());
        }
        std::fs::remove_file(dir.join("x")).unwrap();
        seen.push(digest_all_files(&skill, &limits).unwrap());
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
        let before = digest_all_files(&skill, &ResourceLimits::default()).unwrap();
        change(&dir);
        assert_ne!(digest_all_files(&skill, &ResourceLimits::default()), Some(before));
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
        assert!(digest_all_files(&skill, &limits).is_some());
        symlink(".git/hooks/run", dir.join("file")).unwrap();
        symlink(".git/hooks", dir.join("folder")).unwrap();
        let found = list_resources(&skill, &limits);
        assert!(found.files.is_empty(), "{:?}", found.files);
        assert_eq!(found.diagnostics[0].code.id, "RS006");
        assert_eq!(digest_all_files(&skill, &limits), None);
        for path in [".git/hooks/run", "./.git/hooks/run", "file", "folder/run"] {
            assert!(read_resource(&skill, path.into(), &limits).is_err(), "{path}");
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
        let found = list_resources(&skill, &limits);
        for file in &found.files {
            assert_eq!(read_resource(&skill, &file.path, &limits).unwrap(), "1");
        }
        assert_eq!(found.files.len(), 2);
        assert_eq!(read_resource(&skill, "./v1/./run.sh".into(), &limits).unwrap(), "1");
        for path in ["scripts/run.sh", "SKILL.md", "./SKILL.md", "v1", "scripts", "run/x", "v1/no"]
        {
            assert!(read_resource(&skill, path.into(), &limits).is_err(), "{path}");
        }
    }
}
