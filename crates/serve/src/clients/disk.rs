//! Configuration files of others on the disk: read within limits, written whole or not at all, and remembered, so that what was
//! made for our entry can go with it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::edit::{EditError, Made, Place, is_bare};
use crate::limits::{CONFIG_BYTES_MAX, SMALL_FILE_BYTES_MAX};

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
    /// It is a link.
    #[error("{path} is a link to {target}, which may belong to others as well")]
    Link {
        /// The file.
        path: Utf8PathBuf,
        /// Where it leads.
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
}

/// A configuration file, and the folder where we remember what we did to it.
pub struct Config<'a> {
    /// The file.
    pub path: &'a Utf8Path,
    /// Where in it.
    pub place: Place<'a>,
    /// What we remember.
    pub memory: &'a Utf8Path,
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
            Some((text, _)) => self.place.get(&text).map_err(|source| self.edit(source)),
        }
    }

    /// Puts the entry in.
    ///
    /// # Errors
    ///
    /// [`FileError`]; then the file is as it was.
    pub fn set(&self, entry: &Value) -> Result<Done, FileError> {
        let Some((text, stamp)) = self.read()? else {
            let text =
                super::edit::whole(self.place.format, self.place.keys, self.place.name, entry);
            let made = Made { objects: self.place.keys.len() + 1, opened: false };
            let record =
                Record { file: true, folders: self.missing_folders(), made, ..self.record() };
            self.write(&text)?;
            self.remember(&record);
            return Ok(Done::Made);
        };
        let edited = self.place.set(&text, entry).map_err(|source| self.edit(source))?;
        let Some((edited, made)) = edited else { return Ok(Done::Unchanged) };
        self.writable(stamp)?;
        self.write(&edited)?;
        self.remember(&Record { made, ..self.record() });
        Ok(Done::Changed)
    }

    /// Takes the entry out.
    ///
    /// # Errors
    ///
    /// [`FileError`]; then the file is as it was.
    pub fn remove(&self) -> Result<Done, FileError> {
        let Some((text, stamp)) = self.read()? else { return Ok(Done::Unchanged) };
        let record = self.recall();
        let edited = self.place.remove(&text, record.made).map_err(|source| self.edit(source))?;
        let Some(edited) = edited else { return Ok(Done::Unchanged) };
        self.writable(stamp)?;
        if record.file && is_bare(self.place.format, &edited) {
            std::fs::remove_file(self.path).map_err(|source| self.unwritten(source))?;
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

    fn read(&self) -> Result<Option<(String, Option<Stamp>)>, FileError> {
        if let Ok(target) = self.path.read_link_utf8() {
            return Err(FileError::Link { path: self.path.to_owned(), target: target.to_string() });
        }
        match fs::read_stamped(self.path, CONFIG_BYTES_MAX) {
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
        fs::write_atomic(self.path, text.as_bytes()).map_err(|source| self.unwritten(source))
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
        let (path, name) = (self.path.to_string(), self.place.name.to_owned());
        Record { path, name, ..Record::default() }
    }

    fn record_file(&self) -> Utf8PathBuf {
        let digest = Sha256::digest(format!("{}\0{}", self.path, self.place.name));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.memory.join(format!("{name}.json"))
    }

    /// What is not remembered is not taken away later: an empty list stays, which does no harm.
    fn remember(&self, record: &Record) {
        if let Ok(text) = serde_json::to_vec(record) {
            let _ = fs::write_atomic(&self.record_file(), &text);
        }
    }

    fn recall(&self) -> Record {
        let text = fs::read_text(&self.record_file(), SMALL_FILE_BYTES_MAX).ok();
        let record: Option<Record> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_ours = |record: &Record| self.path == record.path && self.place.name == record.name;
        record.filter(is_ours).unwrap_or_default()
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(self.record_file());
    }
}
