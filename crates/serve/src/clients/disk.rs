//! Configuration files of other programs on disk: read within limits, written atomically, with a
//! record of our changes so that everything created for our entry can be removed with it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, Folder, PlaceError, ReadError, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Client;
use super::edit::{EditError, Made, Place, is_bare};
use crate::limits::{CONFIG_BYTES_MAX, RECORD_BYTES_MAX};

/// The reason why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: {source}")]
    Edit { path: Utf8PathBuf, source: EditError },
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
pub enum Done {
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
pub enum Found {
    Nothing,
    Ours(Value),
    /// Another program's entry with the same name.
    Foreign(Value),
}

/// A configuration file, and the folder with the records of our changes.
pub struct Config<'a> {
    pub path: &'a Utf8Path,
    /// The client to which the file belongs.
    pub client: &'a Client,
    /// The name of the entry.
    pub name: &'a str,
    /// The folder with the records.
    pub memory: &'a Utf8Path,
    /// The project of the file: it is not read or written through a link that leads out of it.
    /// `None` for the user's own file.
    pub project: Option<&'a Utf8Path>,
}

/// A record of what was created for an entry.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    path: String,
    name: String,
    #[serde(default)]
    file: bool,
    /// Folders that were created, the outermost first.
    #[serde(default)]
    folders: Vec<Utf8PathBuf>,
    made: Made,
    /// The entry as we wrote it.
    #[serde(default)]
    entry: Option<Value>,
    /// The entry that ours replaced.
    #[serde(default)]
    former: Option<Former>,
}

/// An entry that ours replaced. May contain secrets, like the file itself.
#[derive(Debug, Serialize, Deserialize)]
struct Former {
    entry: Value,
    /// The position of the change, and the text there before and after it, for restoring the exact
    /// bytes.
    at: usize,
    was: String,
    is: String,
}

impl Config<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or parsed.
    pub fn get(&self) -> Result<Option<Value>, FileError> {
        match self.read()? {
            None => Ok(None),
            Some((text, _)) => self.get_of(&text),
        }
    }

    /// The entry and its owner.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or parsed.
    pub fn find(&self) -> Result<Found, FileError> {
        Ok(match self.get()? {
            None => Found::Nothing,
            Some(entry) if self.is_ours(&entry, &self.recall()) => Found::Ours(entry),
            Some(entry) => Found::Foreign(entry),
        })
    }

    /// Adds the entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be changed; it is unchanged then.
    pub fn set(&self, entry: &Value) -> Result<Done, FileError> {
        let record = Record { entry: Some(entry.clone()), ..self.record() };
        let Some((text, stamp)) = self.read()? else {
            let text = super::edit::whole(self.client.format, &self.client.keys, self.name, entry);
            let made = Made { objects: self.client.keys.len() + 1, opened: false };
            let record = Record { file: true, folders: self.missing_folders(), made, ..record };
            self.write(&text)?;
            // Without a record, the empty objects stay behind when the entry is removed, which does
            // no harm.
            let _ = self.remember(&record);
            return Ok(Done::Made);
        };
        let edited = self.place().set(&text, entry).map_err(|source| self.edit(source))?;
        let Some((edited, made)) = edited else { return Ok(Done::Unchanged) };
        self.writable(stamp)?;
        self.write(&edited)?;
        let _ = self.remember(&Record { made, ..record });
        Ok(Done::Changed)
    }

    /// Replaces another entry of that name; [`Config::remove`] restores it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be changed; it is unchanged then.
    pub fn replace(&self, entry: &Value) -> Result<Done, FileError> {
        match self.find()? {
            Found::Nothing => self.set(entry),
            Found::Ours(found) | Found::Foreign(found) if found == *entry => Ok(Done::Unchanged),
            Found::Ours(_) => {
                self.remove()?;
                self.replace(entry)
            }
            Found::Foreign(found) => self.swap(found, entry),
        }
    }

    fn swap(&self, found: Value, entry: &Value) -> Result<Done, FileError> {
        let Some((text, stamp)) = self.read()? else { return self.set(entry) };
        let edit = |source| self.edit(source);
        let without = self.place().remove(&text, Made::default()).map_err(edit)?;
        let without = without.as_deref().unwrap_or(&text);
        let Some((edited, made)) = self.place().set(without, entry).map_err(edit)? else {
            return Ok(Done::Unchanged);
        };
        self.writable(stamp)?;
        let former = Some(Former::of(found, &text, &edited));
        let record = Record { made, entry: Some(entry.clone()), former, ..self.record() };
        // Write the record first: without it, the entry could not be restored.
        self.remember(&record)
            .map_err(|source| FileError::Write { path: self.record_file(), source })?;
        self.write(&edited)?;
        Ok(Done::Changed)
    }

    /// Removes our entry, and restores the one that it replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry is not ours or the file cannot be changed; it is unchanged
    /// then.
    pub fn remove(&self) -> Result<Done, FileError> {
        let Some((text, stamp)) = self.read()? else { return Ok(Done::Unchanged) };
        let record = self.recall();
        let Some(found) = self.get_of(&text)? else { return Ok(Done::Unchanged) };
        if !self.is_ours(&found, &record) {
            let (path, name) = (self.path.to_owned(), self.name.to_owned());
            return Err(FileError::Foreign { path, name, found: Box::new(found) });
        }
        if let Some(former) = &record.former {
            let restored = former.restore(&self.place(), &text, record.made);
            let restored = restored.map_err(|source| self.edit(source))?;
            self.writable(stamp)?;
            self.write(&restored)?;
            self.forget();
            return Ok(Done::Restored);
        }
        let edited = self.place().remove(&text, record.made).map_err(|source| self.edit(source))?;
        let Some(edited) = edited else { return Ok(Done::Unchanged) };
        self.writable(stamp)?;
        if record.file && is_bare(self.client.format, &edited) {
            self.remove_file()?;
            for folder in record.folders.iter().rev() {
                // This fails if the folder contains something else by now, which is intended.
                let _ = std::fs::remove_dir(folder);
            }
            self.forget();
            return Ok(Done::Removed);
        }
        self.write(&edited)?;
        self.forget();
        Ok(Done::Changed)
    }

    /// Returns true if the entry is what we wrote, or starts our own program.
    fn is_ours(&self, entry: &Value, record: &Record) -> bool {
        record.entry.as_ref() == Some(entry) || self.client.starts_us(entry)
    }

    fn place(&self) -> Place<'_> {
        Place { format: self.client.format, keys: &self.client.keys, name: self.name }
    }

    fn get_of(&self, text: &str) -> Result<Option<Value>, FileError> {
        self.place().get(text).map_err(|source| self.edit(source))
    }

    fn read(&self) -> Result<Option<(String, Option<Stamp>)>, FileError> {
        if let Ok(target) = self.path.read_link_utf8() {
            return Err(FileError::Link { path: self.path.to_owned(), target: target.to_string() });
        }
        let read = match self.in_project()? {
            Some((folder, relative)) => folder
                .find(&relative)
                .map_err(ReadError::from)
                .and_then(|found| Ok((found.read_text(CONFIG_BYTES_MAX)?, found.stamp()))),
            None => fs::read_stamped(self.path, CONFIG_BYTES_MAX),
        };
        match read {
            Ok((text, stamp)) => Ok(Some((text, Some(stamp)))),
            Err(ReadError::NotFound) => Ok(None),
            Err(source) => Err(FileError::Read { path: self.path.to_owned(), source }),
        }
    }

    /// Checks that the file may be written and has not changed since it was read.
    fn writable(&self, stamp: Option<Stamp>) -> Result<(), FileError> {
        let path = self.path.to_owned();
        let metadata = std::fs::metadata(self.path).map_err(|source| self.unwritten(source))?;
        if metadata.permissions().readonly() {
            return Err(FileError::ReadOnly { path });
        }
        if Stamp::of(self.path) == stamp { Ok(()) } else { Err(FileError::Changed { path }) }
    }

    fn write(&self, text: &str) -> Result<(), FileError> {
        let written = match self.in_project()? {
            Some((folder, relative)) => {
                folder.write_atomic(&relative, text.as_bytes()).map_err(io::Error::from)
            }
            None => fs::write_atomic(self.path, text.as_bytes()),
        };
        written.map_err(|source| self.unwritten(source))
    }

    fn remove_file(&self) -> Result<(), FileError> {
        let removed = match self.in_project()? {
            Some((folder, relative)) => folder.remove_file(&relative).map_err(io::Error::from),
            None => std::fs::remove_file(self.path),
        };
        removed.map_err(|source| self.unwritten(source))
    }

    /// The project's folder and the path of the file beneath it, without links; `None` for the
    /// user's own file.
    fn in_project(&self) -> Result<Option<(Folder, Utf8PathBuf)>, FileError> {
        let inner =
            self.project.and_then(|project| Some((project, self.path.strip_prefix(project).ok()?)));
        let Some((project, relative)) = inner else { return Ok(None) };
        let folder = Folder::open(project).map_err(|source| self.unwritten(source))?;
        match folder.place(relative) {
            Ok(place) => Ok(Some((folder, place.relative().to_owned()))),
            Err(PlaceError::LinkLeaves { link, .. }) => {
                let link = project.join(link);
                let target =
                    link.read_link_utf8().map_or_else(|_| "elsewhere".to_owned(), Into::into);
                Err(FileError::OutsideProject { path: self.path.to_owned(), link, target })
            }
            Err(other) => Err(self.unwritten(other.into())),
        }
    }

    fn unwritten(&self, source: io::Error) -> FileError {
        FileError::Write { path: self.path.to_owned(), source }
    }

    fn edit(&self, source: EditError) -> FileError {
        FileError::Edit { path: self.path.to_owned(), source }
    }

    fn missing_folders(&self) -> Vec<Utf8PathBuf> {
        let above = self.path.ancestors().skip(1).take_while(|dir| *dir != "" && !dir.exists());
        let mut missing: Vec<Utf8PathBuf> = above.map(Utf8Path::to_owned).collect();
        missing.reverse();
        missing
    }

    fn record(&self) -> Record {
        let (path, name) = (self.path.to_string(), self.name.to_owned());
        Record { path, name, ..Record::default() }
    }

    fn record_file(&self) -> Utf8PathBuf {
        let digest = Sha256::digest(format!("{}\0{}", self.path, self.name));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.memory.join(format!("{name}.json"))
    }

    fn remember(&self, record: &Record) -> io::Result<()> {
        fs::write_private(&self.record_file(), &serde_json::to_vec(record)?)
    }

    fn recall(&self) -> Record {
        let text = fs::read_text(&self.record_file(), RECORD_BYTES_MAX).ok();
        let record: Option<Record> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_ours = |record: &Record| self.path == record.path && self.name == record.name;
        record.filter(is_ours).unwrap_or_default()
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(self.record_file());
    }
}

impl Former {
    /// Computes the changed region from the text before and after.
    fn of(entry: Value, before: &str, after: &str) -> Self {
        let at = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        let at = before.floor_char_boundary(at).min(after.floor_char_boundary(at));
        let (was, is) = (&before[at..], &after[at..]);
        let same = was.bytes().rev().zip(is.bytes().rev()).take_while(|(a, b)| a == b).count();
        let (was, is) = (
            &was[..was.ceil_char_boundary(was.len() - same)],
            &is[..is.ceil_char_boundary(is.len() - same)],
        );
        Former { entry, at, was: was.to_owned(), is: is.to_owned() }
    }

    /// Restores the former entry in place of ours: byte for byte, if that part of the file is
    /// unchanged.
    fn restore(&self, place: &Place<'_>, text: &str, made: Made) -> Result<String, EditError> {
        let there = text.get(self.at..).filter(|rest| rest.starts_with(&self.is));
        let moved = || text.find(&self.is).filter(|at| text.rfind(&self.is) == Some(*at));
        for at in there.map(|_| self.at).into_iter().chain(moved()) {
            let restored = format!("{}{}{}", &text[..at], self.was, &text[at + self.is.len()..]);
            if place.get(&restored).is_ok_and(|found| found.as_ref() == Some(&self.entry)) {
                return Ok(restored);
            }
        }
        let without = place.remove(text, made)?;
        let without = without.as_deref().unwrap_or(text);
        let restored = place.set(without, &self.entry)?;
        Ok(restored.map_or_else(|| without.to_owned(), |(restored, _)| restored))
    }
}
