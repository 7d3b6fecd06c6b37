//! Configuration files of other programs on disk: read within limits, written atomically, with a
//! record of our changes so that everything created for our entry can be removed with it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, FileStamp, FolderHandle, LocationError, ReadError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::McpClient;
use super::entry_edit::{CreatedObjects, EntryEditError, EntryLocation, is_bare};
use super::limits::{CLIENT_CONFIG_BYTES_MAX, CLIENT_RECORD_BYTES_MAX};

/// The reason why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("{path}: {source}")]
    Edit { path: Utf8PathBuf, source: EntryEditError },
    /// The entry is not ours.
    #[error("the entry `{name}` of {path} is not ours: {found}")]
    Foreign { path: Utf8PathBuf, name: String, found: Box<Value> },
    #[error("{path} is a link to {target}, which may belong to others as well")]
    Link { path: Utf8PathBuf, target: String },
    /// The file is behind a symbolic link that leads out of the project.
    #[error("{path} is outside of the project: {link} is a symbolic link to {target}")]
    OutsideProject { path: Utf8PathBuf, link: Utf8PathBuf, target: String },
    #[error("{path} is read-only")]
    ReadOnly { path: Utf8PathBuf },
    #[error("{path}: {source}")]
    Read { path: Utf8PathBuf, source: ReadError },
    /// Another program has changed the file since it was read.
    #[error("{path} was changed by somebody else just now")]
    Changed { path: Utf8PathBuf },
    #[error("{path} cannot be written: {source}")]
    Write { path: Utf8PathBuf, source: io::Error },
}

/// The change made to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// The file did not exist and was created.
    Made,
    /// The entry was added or removed.
    Changed,
    /// The file was already as requested.
    Unchanged,
    /// The file had been created for the entry and was deleted with it.
    Removed,
    /// The entry that ours had replaced was restored.
    Restored,
}

/// The entry in a file, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryOwner {
    Nothing,
    Ours(Value),
    /// Another program's entry with the same name.
    Foreign(Value),
}

/// A configuration file, and the folder with the records of our changes.
pub(crate) struct ClientConfigFile<'a> {
    pub(crate) path: &'a Utf8Path,
    /// The client to which the file belongs.
    pub(crate) client: &'a McpClient,
    /// The name of the entry.
    pub(crate) name: &'a str,
    /// The folder with the records.
    pub(crate) memory: &'a Utf8Path,
    /// The project of the file: it is not read or written through a link that leads out of it.
    /// `None` for the user's own file.
    pub(crate) project: Option<&'a Utf8Path>,
}

/// A record of what was created for an entry.
#[derive(Debug, Default, Serialize, Deserialize)]
struct EntryRecord {
    path: String,
    name: String,
    #[serde(default)]
    file: bool,
    /// Folders that were created, the outermost first.
    #[serde(default)]
    folders: Vec<Utf8PathBuf>,
    made: CreatedObjects,
    /// The entry as we wrote it.
    #[serde(default)]
    entry: Option<Value>,
    /// The entry that ours replaced.
    #[serde(default)]
    former: Option<ReplacedEntry>,
}

/// An entry that ours replaced. May contain secrets, like the file itself.
#[derive(Debug, Serialize, Deserialize)]
struct ReplacedEntry {
    entry: Value,
    /// The position of the change, and the text there before and after it, for restoring the exact
    /// bytes.
    at: usize,
    was: String,
    is: String,
}

impl ClientConfigFile<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or parsed.
    pub(crate) fn get_entry(&self) -> Result<Option<Value>, ConfigFileError> {
        match self.read_file()? {
            None => Ok(None),
            Some((text, _)) => self.parse_entry(&text),
        }
    }

    /// The entry and its owner.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or parsed.
    pub(crate) fn find_owner(&self) -> Result<EntryOwner, ConfigFileError> {
        Ok(match self.get_entry()? {
            None => EntryOwner::Nothing,
            Some(entry) if self.is_ours(&entry, &self.load_record()) => EntryOwner::Ours(entry),
            Some(entry) => EntryOwner::Foreign(entry),
        })
    }

    /// Adds the entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be changed; it is unchanged then.
    pub(crate) fn add_entry(&self, entry: &Value) -> Result<FileChange, ConfigFileError> {
        let record = EntryRecord { entry: Some(entry.clone()), ..self.new_record() };
        let Some((text, stamp)) = self.read_file()? else {
            let text = super::entry_edit::render_file(
                self.client.format,
                &self.client.keys,
                self.name,
                entry,
            );
            let made = CreatedObjects { objects: self.client.keys.len() + 1, opened: false };
            let record =
                EntryRecord { file: true, folders: self.missing_folders(), made, ..record };
            self.write_file(&text)?;
            // Without a record, the empty objects stay behind when the entry is removed, which does
            // no harm.
            let _ = self.save_record(&record);
            return Ok(FileChange::Made);
        };
        let edited = self
            .entry_location()
            .add_entry(&text, entry)
            .map_err(|source| self.edit_error(source))?;
        let Some((edited, made)) = edited else { return Ok(FileChange::Unchanged) };
        self.check_writable(stamp)?;
        self.write_file(&edited)?;
        let _ = self.save_record(&EntryRecord { made, ..record });
        Ok(FileChange::Changed)
    }

    /// Replaces another entry of that name; [`ClientConfigFile::remove_entry`] restores it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be changed; it is unchanged then.
    pub(crate) fn replace_entry(&self, entry: &Value) -> Result<FileChange, ConfigFileError> {
        match self.find_owner()? {
            EntryOwner::Nothing => self.add_entry(entry),
            EntryOwner::Ours(found) | EntryOwner::Foreign(found) if found == *entry => {
                Ok(FileChange::Unchanged)
            }
            EntryOwner::Ours(_) => {
                self.remove_entry()?;
                self.replace_entry(entry)
            }
            EntryOwner::Foreign(found) => self.swap_entry(found, entry),
        }
    }

    fn swap_entry(&self, found: Value, entry: &Value) -> Result<FileChange, ConfigFileError> {
        let Some((text, stamp)) = self.read_file()? else { return self.add_entry(entry) };
        let edit = |source| self.edit_error(source);
        let without =
            self.entry_location().remove_entry(&text, CreatedObjects::default()).map_err(edit)?;
        let without = without.as_deref().unwrap_or(&text);
        let Some((edited, made)) = self.entry_location().add_entry(without, entry).map_err(edit)?
        else {
            return Ok(FileChange::Unchanged);
        };
        self.check_writable(stamp)?;
        let former = Some(ReplacedEntry::from_texts(found, &text, &edited));
        let record = EntryRecord { made, entry: Some(entry.clone()), former, ..self.new_record() };
        // Write the record first: without it, the entry could not be restored.
        self.save_record(&record)
            .map_err(|source| ConfigFileError::Write { path: self.record_file(), source })?;
        self.write_file(&edited)?;
        Ok(FileChange::Changed)
    }

    /// Removes our entry, and restores the one that it replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry is not ours or the file cannot be changed; it is unchanged
    /// then.
    pub(crate) fn remove_entry(&self) -> Result<FileChange, ConfigFileError> {
        let Some((text, stamp)) = self.read_file()? else { return Ok(FileChange::Unchanged) };
        let record = self.load_record();
        let Some(found) = self.parse_entry(&text)? else { return Ok(FileChange::Unchanged) };
        if !self.is_ours(&found, &record) {
            let (path, name) = (self.path.to_owned(), self.name.to_owned());
            return Err(ConfigFileError::Foreign { path, name, found: Box::new(found) });
        }
        if let Some(former) = &record.former {
            let restored = former.restore(&self.entry_location(), &text, record.made);
            let restored = restored.map_err(|source| self.edit_error(source))?;
            self.check_writable(stamp)?;
            self.write_file(&restored)?;
            self.delete_record();
            return Ok(FileChange::Restored);
        }
        let edited = self
            .entry_location()
            .remove_entry(&text, record.made)
            .map_err(|source| self.edit_error(source))?;
        let Some(edited) = edited else { return Ok(FileChange::Unchanged) };
        self.check_writable(stamp)?;
        if record.file && is_bare(self.client.format, &edited) {
            self.remove_file()?;
            for folder in record.folders.iter().rev() {
                // This fails if the folder contains something else by now, which is intended.
                let _ = std::fs::remove_dir(folder);
            }
            self.delete_record();
            return Ok(FileChange::Removed);
        }
        self.write_file(&edited)?;
        self.delete_record();
        Ok(FileChange::Changed)
    }

    /// Returns true if the entry is what we wrote, or starts our own program.
    fn is_ours(&self, entry: &Value, record: &EntryRecord) -> bool {
        record.entry.as_ref() == Some(entry) || self.client.is_own_entry(entry)
    }

    fn entry_location(&self) -> EntryLocation<'_> {
        EntryLocation { format: self.client.format, keys: &self.client.keys, name: self.name }
    }

    fn parse_entry(&self, text: &str) -> Result<Option<Value>, ConfigFileError> {
        self.entry_location().get_entry(text).map_err(|source| self.edit_error(source))
    }

    fn read_file(&self) -> Result<Option<(String, Option<FileStamp>)>, ConfigFileError> {
        if let Ok(target) = self.path.read_link_utf8() {
            return Err(ConfigFileError::Link {
                path: self.path.to_owned(),
                target: target.to_string(),
            });
        }
        let read = match self.in_project()? {
            Some((folder, relative)) => folder
                .find(&relative)
                .map_err(ReadError::from)
                .and_then(|found| Ok((found.read_text(CLIENT_CONFIG_BYTES_MAX)?, found.stamp()))),
            None => fs::read_stamped(self.path, CLIENT_CONFIG_BYTES_MAX),
        };
        match read {
            Ok((text, stamp)) => Ok(Some((text, Some(stamp)))),
            Err(ReadError::NotFound) => Ok(None),
            Err(source) => Err(ConfigFileError::Read { path: self.path.to_owned(), source }),
        }
    }

    /// Checks that the file may be written and has not changed since it was read.
    fn check_writable(&self, stamp: Option<FileStamp>) -> Result<(), ConfigFileError> {
        let path = self.path.to_owned();
        let metadata = std::fs::metadata(self.path).map_err(|source| self.write_error(source))?;
        if metadata.permissions().readonly() {
            return Err(ConfigFileError::ReadOnly { path });
        }
        if FileStamp::of_file(self.path) == stamp {
            Ok(())
        } else {
            Err(ConfigFileError::Changed { path })
        }
    }

    fn write_file(&self, text: &str) -> Result<(), ConfigFileError> {
        let written = match self.in_project()? {
            Some((folder, relative)) => {
                folder.write_atomic(&relative, text.as_bytes()).map_err(io::Error::from)
            }
            None => fs::write_atomic(self.path, text.as_bytes()),
        };
        written.map_err(|source| self.write_error(source))
    }

    fn remove_file(&self) -> Result<(), ConfigFileError> {
        let removed = match self.in_project()? {
            Some((folder, relative)) => folder.remove_file(&relative).map_err(io::Error::from),
            None => std::fs::remove_file(self.path),
        };
        removed.map_err(|source| self.write_error(source))
    }

    /// The project's folder and the path of the file beneath it, without links; `None` for the
    /// user's own file.
    fn in_project(&self) -> Result<Option<(FolderHandle, Utf8PathBuf)>, ConfigFileError> {
        let inner =
            self.project.and_then(|project| Some((project, self.path.strip_prefix(project).ok()?)));
        let Some((project, relative)) = inner else { return Ok(None) };
        let folder = FolderHandle::open(project).map_err(|source| self.write_error(source))?;
        match folder.place(relative) {
            Ok(place) => Ok(Some((folder, place.relative().to_owned()))),
            Err(LocationError::LinkLeaves { link, .. }) => {
                let link = project.join(link);
                let target =
                    link.read_link_utf8().map_or_else(|_| "elsewhere".to_owned(), Into::into);
                Err(ConfigFileError::OutsideProject { path: self.path.to_owned(), link, target })
            }
            Err(other) => Err(self.write_error(other.into())),
        }
    }

    fn write_error(&self, source: io::Error) -> ConfigFileError {
        ConfigFileError::Write { path: self.path.to_owned(), source }
    }

    fn edit_error(&self, source: EntryEditError) -> ConfigFileError {
        ConfigFileError::Edit { path: self.path.to_owned(), source }
    }

    fn missing_folders(&self) -> Vec<Utf8PathBuf> {
        let above = self.path.ancestors().skip(1).take_while(|dir| *dir != "" && !dir.exists());
        let mut missing: Vec<Utf8PathBuf> = above.map(Utf8Path::to_owned).collect();
        missing.reverse();
        missing
    }

    fn new_record(&self) -> EntryRecord {
        let (path, name) = (self.path.to_string(), self.name.to_owned());
        EntryRecord { path, name, ..EntryRecord::default() }
    }

    fn record_file(&self) -> Utf8PathBuf {
        let digest = Sha256::digest(format!("{}\0{}", self.path, self.name));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.memory.join(format!("{name}.json"))
    }

    fn save_record(&self, record: &EntryRecord) -> io::Result<()> {
        fs::write_private(&self.record_file(), &serde_json::to_vec(record)?)
    }

    fn load_record(&self) -> EntryRecord {
        let text = fs::read_text(&self.record_file(), CLIENT_RECORD_BYTES_MAX).ok();
        let record: Option<EntryRecord> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_ours = |record: &EntryRecord| self.path == record.path && self.name == record.name;
        record.filter(is_ours).unwrap_or_default()
    }

    fn delete_record(&self) {
        let _ = std::fs::remove_file(self.record_file());
    }
}

impl ReplacedEntry {
    /// Computes the changed region from the text before and after.
    fn from_texts(entry: Value, before: &str, after: &str) -> Self {
        let at = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        let at = before.floor_char_boundary(at).min(after.floor_char_boundary(at));
        let (was, is) = (&before[at..], &after[at..]);
        let same = was.bytes().rev().zip(is.bytes().rev()).take_while(|(a, b)| a == b).count();
        let (was, is) = (
            &was[..was.ceil_char_boundary(was.len() - same)],
            &is[..is.ceil_char_boundary(is.len() - same)],
        );
        ReplacedEntry { entry, at, was: was.to_owned(), is: is.to_owned() }
    }

    /// Restores the former entry in place of ours: byte for byte, if that part of the file is
    /// unchanged.
    fn restore(
        &self,
        place: &EntryLocation<'_>,
        text: &str,
        made: CreatedObjects,
    ) -> Result<String, EntryEditError> {
        let there = text.get(self.at..).filter(|rest| rest.starts_with(&self.is));
        let moved = || text.find(&self.is).filter(|at| text.rfind(&self.is) == Some(*at));
        for at in there.map(|_| self.at).into_iter().chain(moved()) {
            let restored = format!("{}{}{}", &text[..at], self.was, &text[at + self.is.len()..]);
            if place.get_entry(&restored).is_ok_and(|found| found.as_ref() == Some(&self.entry)) {
                return Ok(restored);
            }
        }
        let without = place.remove_entry(text, made)?;
        let without = without.as_deref().unwrap_or(text);
        let restored = place.add_entry(without, &self.entry)?;
        Ok(restored.map_or_else(|| without.to_owned(), |(restored, _)| restored))
    }
}
