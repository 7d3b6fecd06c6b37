//! Conversations on disk: a folder each, with the conversation, the log of its events and a lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::conversation::{CONVERSATION_VERSION, Conversation};
use repertoire_model::Usage;
use repertoire_text::fs;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use repertoire_text::fs::make_private_dir;
use crate::limits::CONVERSATION_BYTES_MAX;

/// The version of the file's shape.
pub const FILE_VERSION: u32 = 1;
const FILE: &str = "conversation.json";
const LOG: &str = "events.jsonl";
const LOCK: &str = "lock";

/// Where conversations are kept.
#[derive(Clone, Debug)]
pub struct Store {
    dir: Utf8PathBuf,
}

/// What went wrong with a conversation on disk.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such conversation.
    #[error("there is no conversation `{wanted}`")]
    NotFound {
        /// What was asked for.
        wanted: String,
    },
    /// Nothing was begun in this project.
    #[error("no conversation was begun in {folder}")]
    NoneIn {
        /// The project.
        folder: Utf8PathBuf,
    },
    /// The start of an id fits more than one.
    #[error("`{wanted}` may be any of {}", matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// What it may be.
        matches: Vec<String>,
    },
    /// Another process has it.
    #[error("conversation {id} is in use by another process{}", pid.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse {
        /// The conversation.
        id: String,
        /// The process, as far as it is known.
        pid: Option<u32>,
    },
    /// The file is not what we write.
    #[error("{path} is damaged, and is left as it is: {message}")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The file is of a later version.
    #[error(
        "{path} was written by a later version of this program (shape {version}, and {FILE_VERSION} is the latest known here)"
    )]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// Its version.
        version: u32,
    },
    /// The disk is in the way.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What is known of a conversation besides what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the file's shape.
    pub version: u32,
    /// The id.
    pub id: String,
    /// The agent that it was begun with.
    pub agent: String,
    /// The start of the first prompt.
    pub first: String,
    /// The project that it was begun in; empty if nobody knows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// How often the user spoke.
    pub turns: u32,
    /// When it was begun, in milliseconds since 1970.
    pub begun_ms: u64,
    /// When it was written last.
    pub updated_ms: u64,
    /// What it has cost, as far as prices are known.
    pub cost_usd: f64,
    /// Whether some price was not known.
    #[serde(default)]
    pub cost_is_partial: bool,
    /// What it has used.
    pub usage: Usage,
    /// The run that is at work, or was when the process ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_work: Option<AtWork>,
}

/// A run that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtWork {
    /// What the user said.
    pub prompt: String,
    /// How long the log was when it began.
    pub log_bytes: u64,
}

/// The whole file, as it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    head: &'a Head,
    conversation: &'a Conversation,
}

/// The whole file, as it is read.
#[derive(Deserialize)]
struct ReadBack {
    #[serde(flatten)]
    head: Head,
    conversation: Conversation,
}

/// The version alone, which says whether the rest can be read.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// The head, with the rest passed over.
#[derive(Deserialize)]
struct HeadOnly {
    #[serde(flatten)]
    head: Head,
    #[serde(rename = "conversation")]
    _conversation: IgnoredAny,
}

/// One line of a list.
#[derive(Debug)]
pub enum Listed {
    /// A conversation.
    Conversation(Head),
    /// One that cannot be read.
    Broken {
        /// Its id.
        id: String,
        /// Why.
        error: StoreError,
    },
}

/// A conversation that this process has for itself.
#[derive(Debug)]
pub struct Held {
    /// What is known of it.
    pub head: Head,
    dir: Utf8PathBuf,
    /// The lock ends with the process, however that ends.
    _lock: Lock,
}

impl Store {
    /// Conversations in a folder, which need not be there yet.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        Store { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// All conversations, the newest first.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read. One conversation that cannot be read is a line of the list.
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let ids = self.ids()?;
        Ok(ids.into_iter().map(|(_, id)| self.listed(id)).collect())
    }

    fn listed(&self, id: String) -> Listed {
        let path = self.dir.join(&id).join(FILE);
        let read = text_of(&path).and_then(|text| {
            check_version(&path, &text)?;
            parsed::<HeadOnly>(&path, &text)
        });
        match read {
            Ok(whole) => Listed::Conversation(whole.head),
            Err(error) => Listed::Broken { id, error },
        }
    }

    /// The ids of all conversations with the time of their last change, the newest first.
    fn ids(&self) -> Result<Vec<(SystemTime, String)>, StoreError> {
        let entries = match fs::entries(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(StoreError::Io { path: self.dir.clone(), source }),
        };
        let named = entries.filter_map(|entry| entry.ok()?.name.into_string().ok());
        let mut ids: Vec<(SystemTime, String)> = named
            .filter_map(|id| {
                let changed = self.dir.join(&id).join(FILE).metadata().ok()?.modified().ok()?;
                Some((changed, id))
            })
            .collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// The id that is meant: an id, the start of one, or `last`.
    ///
    /// # Errors
    ///
    /// When none is meant, or more than one.
    pub fn find(&self, wanted: &str) -> Result<String, StoreError> {
        let ids = self.ids()?;
        if wanted == "last" {
            let newest = ids.into_iter().next().map(|(_, id)| id);
            return newest.ok_or_else(|| StoreError::NotFound { wanted: wanted.to_owned() });
        }
        let mut matches: Vec<String> =
            ids.into_iter().map(|(_, id)| id).filter(|id| id.starts_with(wanted)).collect();
        if let Some(exact) = matches.iter().find(|id| *id == wanted) {
            return Ok(exact.clone());
        }
        match matches.len() {
            1 if !wanted.is_empty() => Ok(matches.remove(0)),
            0 | 1 => Err(StoreError::NotFound { wanted: wanted.to_owned() }),
            _ => {
                matches.truncate(5);
                Err(StoreError::Ambiguous { wanted: wanted.to_owned(), matches })
            }
        }
    }

    /// The id of the last conversation that was begun in a project. One that cannot be read may be of any project, so it
    /// is meant only where there is no other.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn last_in(&self, folder: &Utf8Path) -> Result<String, StoreError> {
        let mut unread = None;
        for (_, id) in self.ids()? {
            match self.listed(id) {
                Listed::Conversation(head) if head.folder == folder.as_str() => return Ok(head.id),
                Listed::Conversation(_) => {}
                Listed::Broken { id, .. } => {
                    unread.get_or_insert(id);
                }
            }
        }
        unread.ok_or_else(|| StoreError::NoneIn { folder: folder.to_owned() })
    }

    /// Reads a conversation without taking it.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn load(&self, wanted: &str) -> Result<(Head, Conversation), StoreError> {
        let id = self.find(wanted)?;
        read(&self.dir.join(id).join(FILE))
    }

    /// Takes a conversation that is there.
    ///
    /// # Errors
    ///
    /// When there is none, somebody else has it, or it cannot be read.
    pub fn open(&self, wanted: &str) -> Result<(Held, Conversation), StoreError> {
        let id = self.find(wanted)?;
        let dir = self.dir.join(&id);
        let lock = locked(&dir, &id)?;
        let (head, conversation) = read(&dir.join(FILE))?;
        Ok((Held { head, dir, _lock: lock }, conversation))
    }

    /// Begins a conversation. Nothing but its folder is written yet.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made.
    pub fn begin(&self, id: &str, agent: &str, now_ms: u64) -> Result<Held, StoreError> {
        let dir = self.dir.join(id);
        make_private_dir(&dir).map_err(|source| StoreError::Io { path: dir.clone(), source })?;
        let lock = locked(&dir, id)?;
        let head = Head {
            version: FILE_VERSION,
            id: id.to_owned(),
            agent: agent.to_owned(),
            begun_ms: now_ms,
            updated_ms: now_ms,
            ..Head::default()
        };
        Ok(Held { head, dir, _lock: lock })
    }

    /// Removes a conversation that nobody uses.
    ///
    /// # Errors
    ///
    /// When there is none, somebody has it, or the disk is in the way.
    pub fn remove(&self, wanted: &str) -> Result<String, StoreError> {
        let id = self.find(wanted)?;
        let dir = self.dir.join(&id);
        let _lock = locked(&dir, &id)?;
        for name in [FILE, LOG, LOCK] {
            match std::fs::remove_file(dir.join(name)) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { path: dir.join(name), source });
                }
                _ => {}
            }
        }
        // What else is in there is not ours.
        let _ = std::fs::remove_dir(&dir);
        Ok(id)
    }
}

impl Held {
    /// The folder.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Writes the conversation in one step.
    ///
    /// # Errors
    ///
    /// When the disk is in the way; what was there stays.
    pub fn save(&self, conversation: &Conversation) -> Result<(), StoreError> {
        write(&self.dir, &self.head, conversation)
    }

    /// Opens the log to add to it. A last line that a crash has torn is taken off first.
    ///
    /// # Errors
    ///
    /// When the disk is in the way.
    pub fn log(&self) -> Result<Log, StoreError> {
        let path = self.dir.join(LOG);
        let opened = || -> std::io::Result<(File, u64)> {
            let mut file =
                private(OpenOptions::new().create(true).read(true).append(true)).open(&path)?;
            let bytes = mend_end(&mut file)?;
            Ok((file, bytes))
        };
        let (file, bytes) =
            opened().map_err(|source| StoreError::Io { path: path.clone(), source })?;
        Ok(Log { file, bytes })
    }

    /// The log's lines from a place on, as far as they are whole.
    pub fn events_since(&self, log_bytes: u64) -> Vec<repertoire_agent::Event> {
        events_since(&self.dir.join(LOG), log_bytes)
    }
}

/// The log of a conversation, open for adding.
#[derive(Debug)]
pub struct Log {
    file: File,
    bytes: u64,
}

impl Log {
    /// How long it was when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// When the disk is in the way.
    pub fn add(&mut self, event: &repertoire_agent::Event) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Writes a conversation's file in one step.
pub(super) fn write(
    dir: &Utf8Path,
    head: &Head,
    conversation: &Conversation,
) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let write = || {
        let text = serde_json::to_vec(&Written { head, conversation })?;
        fs::write_atomic(&path, &text)
    };
    write().map_err(|source| StoreError::Io { path: path.clone(), source })
}

fn text_of(path: &Utf8Path) -> Result<String, StoreError> {
    fs::read_text(path, CONVERSATION_BYTES_MAX)
        .map_err(|error| StoreError::Damaged { path: path.to_owned(), message: error.to_string() })
}

fn parsed<'a, T: Deserialize<'a>>(path: &Utf8Path, text: &'a str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { path: path.to_owned(), message: error.to_string() })
}

fn check_version(path: &Utf8Path, text: &str) -> Result<(), StoreError> {
    let version = parsed::<VersionOnly>(path, text)?.version;
    match version {
        FILE_VERSION => Ok(()),
        version if version > FILE_VERSION => {
            Err(StoreError::Newer { path: path.to_owned(), version })
        }
        version => Err(StoreError::Damaged {
            path: path.to_owned(),
            message: format!("there is no shape {version}"),
        }),
    }
}

fn read(path: &Utf8Path) -> Result<(Head, Conversation), StoreError> {
    let text = text_of(path)?;
    check_version(path, &text)?;
    let ReadBack { head, conversation } = parsed(path, &text)?;
    if conversation.version != CONVERSATION_VERSION {
        let version = conversation.version;
        return Err(StoreError::Newer { path: path.to_owned(), version });
    }
    Ok((head, conversation))
}

/// A lock that goes with its owner. A program that is started at that moment may still hold the file, and with it the lock,
/// until it has become itself: so the lock is given up, and not only the file closed.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The kernel gives it up in any case, only later.
        let _ = self.0.unlock();
    }
}

fn locked(dir: &Utf8Path, id: &str) -> Result<Lock, StoreError> {
    let path = dir.join(LOCK);
    let failed = |source| StoreError::Io { path: path.clone(), source };
    let mut file = private(OpenOptions::new().create(true).read(true).write(true).truncate(false))
        .open(&path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(32).read_to_string(&mut text);
            return Err(StoreError::InUse { id: id.to_owned(), pid: text.trim().parse().ok() });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // The kernel holds the lock; the number is only for people.
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(Lock(file))
}

/// Takes off what stands after the last line break, and says how long the rest is.
fn mend_end(file: &mut File) -> std::io::Result<u64> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut block = [0_u8; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            end = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    if end < length {
        file.set_len(end)?;
    }
    Ok(end)
}

fn events_since(path: &Utf8Path, log_bytes: u64) -> Vec<repertoire_agent::Event> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(log_bytes))?;
        let mut bytes = Vec::new();
        file.take(crate::limits::LOG_TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    // A torn line and a kind that a later version knows are passed over alike.
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// What was said is nobody else's business.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_model::Message;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("conversations");
        (dir, Store::new(path))
    }

    fn kept(store: &Store, id: &str) -> Held {
        let held = store.begin(id, "default", 7).unwrap();
        let mut conversation = Conversation::new(id);
        conversation.messages.push(Message::user("hello"));
        held.save(&conversation).unwrap();
        held
    }

    #[test]
    fn a_conversation_is_found_by_the_start_of_its_id_or_as_the_last() {
        let (_keep, store) = store();
        assert!(matches!(store.find("last"), Err(StoreError::NotFound { .. })));
        drop(kept(&store, "0199-aa"));
        drop(kept(&store, "0199-ab"));
        assert_eq!(store.find("0199-aa").unwrap(), "0199-aa");
        assert_eq!(store.find("last").unwrap(), "0199-ab");
        assert!(matches!(store.find("0199"), Err(StoreError::Ambiguous { .. })));
        assert!(matches!(store.find("02"), Err(StoreError::NotFound { .. })));
        assert!(matches!(store.find(""), Err(StoreError::Ambiguous { .. })));
        assert_eq!(store.load("0199-ab").unwrap().1.messages, vec![Message::user("hello")]);
    }

    #[test]
    fn the_last_of_a_project_is_not_that_of_another() {
        let (_keep, store) = store();
        // Written before folders were kept.
        drop(kept(&store, "old"));
        for (id, folder) in [("one", "/a"), ("two", "/b")] {
            let mut held = store.begin(id, "default", 7).unwrap();
            held.head.folder = folder.to_owned();
            held.save(&Conversation::new(id)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(store.last_in(Utf8Path::new("/a")).unwrap(), "one");
        assert_eq!(store.find("last").unwrap(), "two");
        let none = store.last_in(Utf8Path::new("/c")).unwrap_err();
        assert_eq!(none.to_string(), "no conversation was begun in /c");
        assert_eq!(store.load("old").unwrap().0.folder, "");
    }

    #[test]
    fn a_conversation_in_use_is_refused_with_the_process() {
        let (_keep, store) = store();
        let held = kept(&store, "one");
        let error = store.open("one").unwrap_err();
        let expected =
            format!("conversation one is in use by another process ({})", std::process::id());
        assert_eq!(error.to_string(), expected);
        assert!(matches!(store.remove("one"), Err(StoreError::InUse { .. })));
        drop(held);
        assert!(store.open("one").is_ok());
    }

    #[test]
    fn the_lock_of_a_dead_process_is_taken_over() {
        let (_keep, store) = store();
        drop(kept(&store, "one"));
        // The file stays behind with a number in it; nobody holds it.
        assert!(store.dir().join("one/lock").exists());
        let (_held, _) = store.open("one").unwrap();
    }

    #[test]
    fn a_damaged_file_is_an_error_and_is_left_as_it_is() {
        let (_keep, store) = store();
        drop(kept(&store, "one"));
        let path = store.dir().join("one/conversation.json");
        for (text, message) in [
            ("{\"version\": 1, \"id\"", "is damaged, and is left as it is: EOF"),
            ("{\"version\": 9}", "later version"),
            ("{\"version\": 0}", "there is no shape 0"),
            ("{\"version\": 1}", "missing field"),
        ] {
            fs::write_atomic(&path, text.as_bytes()).unwrap();
            let error = store.open("one").unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
            assert_eq!(fs::read_text(&path, 1000).unwrap(), text);
        }
        assert!(matches!(store.list().unwrap().as_slice(), [Listed::Broken { .. }]));
    }

    #[test]
    fn a_torn_last_line_is_taken_off_before_more_is_added() {
        let (_keep, store) = store();
        let held = kept(&store, "one");
        let path = store.dir().join("one/events.jsonl");
        let event = r#"{"v":1,"seq":1,"at_ms":1,"run":"r","agent":"a","depth":0,"type":"warning","message":"m"}"#;
        fs::write_atomic(&path, format!("{event}\n{{\"v\":1,\"se").as_bytes()).unwrap();
        assert_eq!(held.events_since(0).len(), 1);
        let mut log = held.log().unwrap();
        log.add(&held.events_since(0)[0]).unwrap();
        assert_eq!(fs::read_text(&path, 1000).unwrap(), format!("{event}\n{event}\n"));
        // A log that is nothing but a torn line is empty.
        fs::write_atomic(&path, &[b'x'; 10_000]).unwrap();
        assert_eq!(held.log().unwrap().bytes(), 0);
    }

    #[test]
    fn a_list_has_the_newest_first() {
        let (_keep, store) = store();
        drop(kept(&store, "b"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(kept(&store, "a"));
        let ids: Vec<String> = store
            .list()
            .unwrap()
            .into_iter()
            .map(|line| match line {
                Listed::Conversation(head) => head.id,
                Listed::Broken { error, .. } => panic!("{error}"),
            })
            .collect();
        assert_eq!(ids, ["a", "b"]);
        store.remove("a").unwrap();
        assert_eq!(store.list().unwrap().len(), 1);
    }
}
