//! The files of a skill with their sizes and digests. A file is read again only if its stamp has
//! changed.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::resources;
use repertoire_skill::skill::{ContentDigest, Skill};
use repertoire_text::fs::FileStamp;

use super::limits::{BYTES_MAX, FILES_MAX};
use super::served_text::ServedSkillText;

/// The limits on the folder of a served skill.
pub(super) const FOLDER: ResourceLimits =
    ResourceLimits { files_max: FILES_MAX - 1, bytes_max: BYTES_MAX, depth_max: 8 };

/// The files of a skill except its `SKILL.md`, sorted by path.
#[derive(Debug)]
pub(super) struct SkillManifest {
    pub(super) files: Vec<ManifestFile>,
}

#[derive(Debug)]
pub(super) struct ManifestFile {
    /// The path below the skill's folder.
    pub(super) path: Utf8PathBuf,
    pub(super) bytes: u64,
    pub(super) digest: ContentDigest,
    stamp: Option<FileStamp>,
}

/// The reason why a skill is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotServed {
    /// The skill exceeds the limits of the extension.
    #[error(
        "it has more than {FILES_MAX} files, {BYTES_MAX} bytes or 8 levels of folders, the limits of a skill that is served"
    )]
    TooLarge,
    #[error("its file `{path}` cannot be read: {why}")]
    Unreadable { path: Utf8PathBuf, why: String },
}

impl SkillManifest {
    /// Lists the current files. Reuses the data of unchanged files from `before`.
    pub(super) fn read_skill(
        skill: &Skill,
        copy: &ServedSkillText,
        before: Option<&SkillManifest>,
    ) -> Result<Self, NotServed> {
        let found = resources::list_resources(skill, &FOLDER);
        let limit = repertoire_skill::codes::RESOURCE_LIMIT.id;
        if found.diagnostics.iter().any(|diagnostic| diagnostic.code.id == limit) {
            return Err(NotServed::TooLarge);
        }
        let mut total = copy.text.len() as u64;
        let mut files = Vec::with_capacity(found.files.len());
        for resource in found.files.into_iter().filter(|file| file.path != super::uri::SKILL_FILE) {
            let file = ManifestFile::read_file(skill, resource.path, before)?;
            total = total.saturating_add(file.bytes);
            files.push(file);
        }
        if total > BYTES_MAX {
            return Err(NotServed::TooLarge);
        }
        files.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
        Ok(SkillManifest { files })
    }
}

impl ManifestFile {
    fn read_file(
        skill: &Skill,
        path: Utf8PathBuf,
        before: Option<&SkillManifest>,
    ) -> Result<Self, NotServed> {
        let stamp = FileStamp::of_file(&skill.origin.dir().join(&path));
        let known = before.and_then(|manifest| manifest.find(&path));
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return Ok(ManifestFile { path, bytes: known.bytes, digest: known.digest, stamp });
        }
        let bytes = resources::read_resource_bytes(skill, &path, &FOLDER).map_err(|error| {
            NotServed::Unreadable { path: path.clone(), why: error.to_string() }
        })?;
        Ok(ManifestFile {
            bytes: bytes.len() as u64,
            digest: ContentDigest::hash_bytes(&bytes),
            path,
            stamp,
        })
    }
}

impl SkillManifest {
    fn find(&self, path: &Utf8Path) -> Option<&ManifestFile> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path.as_str())).ok()?;
        Some(&self.files[at])
    }
}
