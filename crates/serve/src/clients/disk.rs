//! Configuration files of others on the disk: read within limits, written whole or not at all, and remembered, so that what was
//! made for our entry can go with it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, Folder, PlaceError, ReadError, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Client;
use super::edit::{EditError, Made, Place, is_bare};
use crate::limits::{CONFIG_BYTES_MAX, RECORD_BYTES_MAX};

/// Why a file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It says something that cannot be changed.
    #[error("{path}: {source}")]
    Edit {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        source: EditError,
    },
    /// The entry is somebody else's.
    #[error("the entry `{name}` of {path} is not ours: {found}")]
    Foreign {
        /// The file.
        path: Utf8PathBuf,
        /// The name of the entry.
        name: String,
        /// What it is.
        found: Box<Value>,
    },
    /// It is a link.
    #[error("{path} is a link to {target}, which may belong to others as well")]
    Link {
        /// The file.
        path: Utf8PathBuf,
        /// Where it leads.
        target: String,
    },
    /// It is behind a link that leads out of the project.
    #[error("{path} is outside of the project: {link} is a symbolic link to {target}")]
    OutsideProject {
        /// The file.
        path: Utf8PathBuf,
        /// The link.
        link: Utf8PathBuf,
        /// The path that it leads to.
        target: String,
    },
    /// It was made read-only.
    #[error("{path} is read-only")]
    ReadOnly {
        /// The file.
        path: Utf8PathBuf,
    },
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        source: ReadError,
    },
    /// Somebody else has changed it just now.
    #[error("{path} was changed by somebody else just now")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    /// It cannot be written.
    #[error("{path} cannot be written: {source}")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// There was none, and now there is.
    Made,
    /// It has the entry now, or has it no more.
    Changed,
    /// It was as it should be.
    Unchanged,
    /// It was made for the entry, and is gone with it.
    Removed,
    /// It has the entry again that ours had replaced.
    Restored,
}

/// Whose entry a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is none of that name.
    Nothing,
    /// Ours.
    Ours(Value),
    /// Somebody else's, under the same name.
    Foreign(Value),
}

/// A configuration file, and the folder where we remember what we did to it.
pub struct Config<'a> {
    /// The file.
    pub path: &'a Utf8Path,
    /// Whose file it is.
    pub client: &'a Client,
    /// The name of the entry.
    pub name: &'a str,
    /// What we remember.
    pub memory: &'a Utf8Path,
    /// The project that the file belongs to: it is not read or written through a link that leads out of it. `None` for
    /// a user's own file.
    pub project: Option<&'a Utf8Path>,
}

/// What was made for an entry.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    path: String,
    name: String,
    #[serde(default)]
    file: bool,
    /// Folders that were made, the outermost first.
    #[serde(default)]
    folders: Vec<Utf8PathBuf>,
    made: Made,
    /// What was written.
    #[serde(default)]
    entry: Option<Value>,
    /// What was there before.
    #[serde(default)]
    former: Option<Former>,
}

/// An entry that ours has replaced. It may hold secrets, as the file itself does.
#[derive(Debug, Serialize, Deserialize)]
struct Former {
    entry: Value,
    /// Where the file was changed, and what stood and stands there: it goes back as it was written.
    at: usize,
    was: String,
    is: String,
}

impl Config<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn get(&self) -> Result<Option<Value>, FileError> {
        match self.read()? {
            None => Ok(None),
            Some((text, _)) => self.get_of(&text),
        }
    }

    /// The entry, and whose it is.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn find(&self) -> Result<Found, FileError> {
        Ok(match self.get()? {
            None => Found::Nothing,
            Some(entry) if self.is_ours(&entry, &self.recall()) => Found::Ours(entry),
            Some(entry) => Found::Foreign(entry),
        })
    }

    /// Puts the entry in.
    ///
    /// # Errors
    ///
    /// [`FileError`]; then the file is as it was.
    pub fn set(&self, entry: &Value) -> Result<Done, FileError> {
        let record = Record { entry: Some(entry.clone()), ..self.record() };
        let Some((text, stamp)) = self.read()? else {
            let text = super::edit::whole(self.client.format, &self.client.keys, self.name, entry);
            let made = Made { objects: self.client.keys.len() + 1, opened: false };
            let record = Record { file: true, folders: self.missing_folders(), made, ..record };
            self.write(&text)?;
            // What is not remembered is not taken away later: an empty list stays, which does no harm.
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

    /// Puts the entry in the place of another one of that name, which [`Config::remove`] gives back.
    ///
    /// # Errors
    ///
    /// [`FileError`]; then the file is as it was.
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
        // What cannot be remembered could not be given back.
        self.remember(&record)
            .map_err(|source| FileError::Write { path: self.record_file(), source })?;
        self.write(&edited)?;
        Ok(Done::Changed)
    }

    /// Takes our entry out, and puts back what it has replaced.
    ///
    /// # Errors
    ///
    /// [`FileError`], also for an entry that is not ours; then the file is as it was.
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
                // One that holds something else by now stays.
                let _ = std::fs::remove_dir(folder);
            }
            self.forget();
            return Ok(Done::Removed);
        }
        self.write(&edited)?;
        self.forget();
        Ok(Done::Changed)
    }

    /// An entry is ours if it is what we have written, or starts what we would.
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

    /// Whether the file may be written, and is still the one that was read.
    fn writable(&self, stamp: Option<Stamp>) -> Result<(), FileError> {
        let path = self.path.to_owned();
        let metadata = std::fs::metadata(self.path).map_err(|source| self.unwritten(source))?;
        if metadata.permissions().readonly() {
            return Err(FileError::ReadOnly { path });
        }
        match Stamp::of(self.path) == stamp {
            true => Ok(()),
            false => Err(FileError::Changed { path }),
        }
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

    /// The project's folder and the place of the file beneath it, without links; `None` for a user's own file.
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
    /// What a file had, from its text before and after.
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

    /// A text with the former entry in the place of ours: as it was written, where that part of the file is still as it was.
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
