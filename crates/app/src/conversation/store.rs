//! Conversations on disk: one folder each, with the conversation, its event log and a lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::conversation::{CONVERSATION_VERSION, Conversation};
use repertoire_model::TokenUsage;
use repertoire_text::fs;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::limits::CONVERSATION_BYTES_MAX;
use repertoire_text::fs::make_private_dir;

/// The version of the file format.
pub const FILE_VERSION: u32 = 1;
const FILE: &str = "conversation.json";
const LOG: &str = "events.jsonl";
const LOCK: &str = "lock";

/// The folder in which conversations are stored.
#[derive(Clone, Debug)]
pub struct ConversationStore {
    dir: Utf8PathBuf,
}

/// The reason a stored conversation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConversationStoreError {
    /// No conversation matches.
    #[error("there is no conversation `{wanted}`")]
    NotFound { wanted: String },
    /// No conversation was started in this project.
    #[error("no conversation was begun in {folder}")]
    NoneIn { folder: Utf8PathBuf },
    /// The start of an id matches more than one conversation.
    #[error("`{wanted}` may be any of {}", matches.join(", "))]
    Ambiguous { wanted: String, matches: Vec<String> },
    /// Another process has the conversation open.
    #[error("conversation {id} is in use by another process{}", pid.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse {
        id: String,
        /// The process id, if known.
        pid: Option<u32>,
    },
    /// The file does not have the expected format.
    #[error("{path} is damaged, and is left as it is: {message}")]
    Damaged { path: Utf8PathBuf, message: String },
    /// The file was written by a later version.
    #[error(
        "{path} was written by a later version of this program (shape {version}, and {FILE_VERSION} is the latest known here)"
    )]
    Newer { path: Utf8PathBuf, version: u32 },
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
}

/// The metadata of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationMetadata {
    /// The version of the file format.
    pub version: u32,
    pub id: String,
    /// The agent it was started with.
    pub agent: String,
    /// The start of the first prompt, as a title.
    pub first: String,
    /// The project it was started in; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The number of prompts.
    pub turns: u32,
    /// The time it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time of the last write, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The cost, as far as prices are known.
    pub cost_usd: f64,
    /// True if part of the usage has no known price.
    #[serde(default)]
    pub cost_is_partial: bool,
    pub usage: TokenUsage,
    /// The run in progress, or the one that was in progress when the process ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_work: Option<UnfinishedRun>,
}

/// A run that has started and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedRun {
    pub prompt: String,
    /// The length of the log when the run started.
    pub log_bytes: u64,
}

/// The file as it is written.
#[derive(Serialize)]
struct WrittenConversationFile<'a> {
    #[serde(flatten)]
    head: &'a ConversationMetadata,
    conversation: &'a Conversation,
}

/// The file as it is read.
#[derive(Deserialize)]
struct ReadConversationFile {
    #[serde(flatten)]
    head: ConversationMetadata,
    conversation: Conversation,
}

/// Only the version, to check whether the rest can be read.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Only the metadata; the messages are skipped.
#[derive(Deserialize)]
struct MetadataOnly {
    #[serde(flatten)]
    head: ConversationMetadata,
    #[serde(rename = "conversation")]
    _conversation: IgnoredAny,
}

/// An entry in the list of conversations.
#[derive(Debug)]
pub enum ConversationListEntry {
    /// A readable conversation.
    Conversation(ConversationMetadata),
    /// An unreadable conversation.
    Broken { id: String, error: ConversationStoreError },
}

/// A conversation that this process has locked.
#[derive(Debug)]
pub struct LockedConversation {
    pub head: ConversationMetadata,
    dir: Utf8PathBuf,
    /// The kernel releases the lock when the process ends, whatever the reason.
    _lock: ConversationLock,
}

impl ConversationStore {
    /// Creates a store in a folder, which need not exist yet.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        ConversationStore { dir: dir.into() }
    }

    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Lists all conversations, the newest first.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. An unreadable conversation is an entry of the list.
    pub fn list(&self) -> Result<Vec<ConversationListEntry>, ConversationStoreError> {
        let ids = self.list_ids()?;
        Ok(ids.into_iter().map(|(_, id)| self.list_entry(id)).collect())
    }

    fn list_entry(&self, id: String) -> ConversationListEntry {
        let path = self.dir.join(&id).join(FILE);
        let read = read_text(&path).and_then(|text| {
            check_version(&path, &text)?;
            parse_json::<MetadataOnly>(&path, &text)
        });
        match read {
            Ok(whole) => ConversationListEntry::Conversation(whole.head),
            Err(error) => ConversationListEntry::Broken { id, error },
        }
    }

    /// Returns the ids of all conversations with the time of their last change, the newest first.
    fn list_ids(&self) -> Result<Vec<(SystemTime, String)>, ConversationStoreError> {
        let entries = match fs::list_entries(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(ConversationStoreError::Io { path: self.dir.clone(), source });
            }
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

    /// Returns the full id for an id, the start of one, or `last`.
    ///
    /// # Errors
    ///
    /// If no conversation matches, or more than one does.
    pub fn resolve_id(&self, wanted: &str) -> Result<String, ConversationStoreError> {
        let ids = self.list_ids()?;
        if wanted == "last" {
            let newest = ids.into_iter().next().map(|(_, id)| id);
            return newest
                .ok_or_else(|| ConversationStoreError::NotFound { wanted: wanted.to_owned() });
        }
        let mut matches: Vec<String> =
            ids.into_iter().map(|(_, id)| id).filter(|id| id.starts_with(wanted)).collect();
        if let Some(exact) = matches.iter().find(|id| *id == wanted) {
            return Ok(exact.clone());
        }
        match matches.len() {
            1 if !wanted.is_empty() => Ok(matches.remove(0)),
            0 | 1 => Err(ConversationStoreError::NotFound { wanted: wanted.to_owned() }),
            _ => {
                matches.truncate(5);
                Err(ConversationStoreError::Ambiguous { wanted: wanted.to_owned(), matches })
            }
        }
    }

    /// Returns the id of the latest conversation of a project. An unreadable one may belong to any
    /// project, so it is returned only if there is no other.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn last_in(&self, folder: &Utf8Path) -> Result<String, ConversationStoreError> {
        let mut unread = None;
        for (_, id) in self.list_ids()? {
            match self.list_entry(id) {
                ConversationListEntry::Conversation(head) if head.folder == folder.as_str() => {
                    return Ok(head.id);
                }
                ConversationListEntry::Conversation(_) => {}
                ConversationListEntry::Broken { id, .. } => {
                    unread.get_or_insert(id);
                }
            }
        }
        unread.ok_or_else(|| ConversationStoreError::NoneIn { folder: folder.to_owned() })
    }

    /// Reads a conversation without locking it.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read.
    pub fn read_conversation(
        &self,
        wanted: &str,
    ) -> Result<(ConversationMetadata, Conversation), ConversationStoreError> {
        let id = self.resolve_id(wanted)?;
        read_file(&self.dir.join(id).join(FILE))
    }

    /// Opens and locks an existing conversation.
    ///
    /// # Errors
    ///
    /// If there is none, another process has it open, or it cannot be read.
    pub fn open_locked(
        &self,
        wanted: &str,
    ) -> Result<(LockedConversation, Conversation), ConversationStoreError> {
        let id = self.resolve_id(wanted)?;
        let dir = self.dir.join(&id);
        let lock = acquire_lock(&dir, &id)?;
        let (head, conversation) = read_file(&dir.join(FILE))?;
        Ok((LockedConversation { head, dir, _lock: lock }, conversation))
    }

    /// Starts a conversation. Only its folder and lock are created yet.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created.
    pub fn begin_conversation(
        &self,
        id: &str,
        agent: &str,
        now_ms: u64,
    ) -> Result<LockedConversation, ConversationStoreError> {
        let dir = self.dir.join(id);
        make_private_dir(&dir)
            .map_err(|source| ConversationStoreError::Io { path: dir.clone(), source })?;
        let lock = acquire_lock(&dir, id)?;
        let head = ConversationMetadata {
            version: FILE_VERSION,
            id: id.to_owned(),
            agent: agent.to_owned(),
            begun_ms: now_ms,
            updated_ms: now_ms,
            ..ConversationMetadata::default()
        };
        Ok(LockedConversation { head, dir, _lock: lock })
    }

    /// Deletes a conversation that is not open.
    ///
    /// # Errors
    ///
    /// If there is none, a process has it open, or a file operation fails.
    pub fn remove(&self, wanted: &str) -> Result<String, ConversationStoreError> {
        let id = self.resolve_id(wanted)?;
        let dir = self.dir.join(&id);
        let _lock = acquire_lock(&dir, &id)?;
        for name in [FILE, LOG, LOCK] {
            match std::fs::remove_file(dir.join(name)) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ConversationStoreError::Io { path: dir.join(name), source });
                }
                _ => {}
            }
        }
        // Fails if the folder contains other files, which are not ours to delete.
        let _ = std::fs::remove_dir(&dir);
        Ok(id)
    }
}

impl LockedConversation {
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Writes the conversation atomically.
    ///
    /// # Errors
    ///
    /// If a file operation fails; the old file stays in place.
    pub fn save(&self, conversation: &Conversation) -> Result<(), ConversationStoreError> {
        write_conversation(&self.dir, &self.head, conversation)
    }

    /// Opens the log for appending. A last line that a crash left incomplete is truncated first.
    ///
    /// # Errors
    ///
    /// If a file operation fails.
    pub fn open_log(&self) -> Result<ConversationLog, ConversationStoreError> {
        let path = self.dir.join(LOG);
        let (file, bytes) = open_log(&path)
            .map_err(|source| ConversationStoreError::Io { path: path.clone(), source })?;
        Ok(ConversationLog { file, bytes })
    }

    /// Returns the complete events of the log from a byte offset on.
    pub fn events_since(&self, log_bytes: u64) -> Vec<repertoire_agent::AgentEvent> {
        events_since(&self.dir.join(LOG), log_bytes)
    }
}

fn open_log(path: &Utf8Path) -> std::io::Result<(File, u64)> {
    let mut file =
        make_private(OpenOptions::new().create(true).read(true).append(true)).open(path)?;
    let bytes = truncate_incomplete_line(&mut file)?;
    Ok((file, bytes))
}

/// The log of a conversation, open for appending.
#[derive(Debug)]
pub struct ConversationLog {
    file: File,
    bytes: u64,
}

impl ConversationLog {
    /// The length of the log when it was opened.
    pub fn initial_bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends an event.
    ///
    /// # Errors
    ///
    /// If a file operation fails.
    pub fn append_event(&mut self, event: &repertoire_agent::AgentEvent) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Writes a conversation's file atomically.
pub(super) fn write_conversation(
    dir: &Utf8Path,
    head: &ConversationMetadata,
    conversation: &Conversation,
) -> Result<(), ConversationStoreError> {
    let path = dir.join(FILE);
    let text = serde_json::to_vec(&WrittenConversationFile { head, conversation })
        .map_err(std::io::Error::from);
    text.and_then(|text| fs::write_atomic(&path, &text))
        .map_err(|source| ConversationStoreError::Io { path: path.clone(), source })
}

fn read_text(path: &Utf8Path) -> Result<String, ConversationStoreError> {
    fs::read_text(path, CONVERSATION_BYTES_MAX).map_err(|error| ConversationStoreError::Damaged {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

fn parse_json<'a, T: Deserialize<'a>>(
    path: &Utf8Path,
    text: &'a str,
) -> Result<T, ConversationStoreError> {
    serde_json::from_str(text).map_err(|error| ConversationStoreError::Damaged {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

fn check_version(path: &Utf8Path, text: &str) -> Result<(), ConversationStoreError> {
    let version = parse_json::<VersionOnly>(path, text)?.version;
    match version {
        FILE_VERSION => Ok(()),
        version if version > FILE_VERSION => {
            Err(ConversationStoreError::Newer { path: path.to_owned(), version })
        }
        version => Err(ConversationStoreError::Damaged {
            path: path.to_owned(),
            message: format!("there is no shape {version}"),
        }),
    }
}

fn read_file(
    path: &Utf8Path,
) -> Result<(ConversationMetadata, Conversation), ConversationStoreError> {
    let text = read_text(path)?;
    check_version(path, &text)?;
    let ReadConversationFile { head, conversation } = parse_json(path, &text)?;
    if conversation.version != CONVERSATION_VERSION {
        let version = conversation.version;
        return Err(ConversationStoreError::Newer { path: path.to_owned(), version });
    }
    Ok((head, conversation))
}

/// An acquired lock. It is released explicitly on drop and not only by closing the file: a child
/// process that is just being started may have inherited the file, and with it the lock, until it
/// calls `exec`.
#[derive(Debug)]
struct ConversationLock(File);

impl Drop for ConversationLock {
    fn drop(&mut self) {
        // If this fails, the kernel releases the lock when the last copy of the file is closed.
        let _ = self.0.unlock();
    }
}

fn acquire_lock(dir: &Utf8Path, id: &str) -> Result<ConversationLock, ConversationStoreError> {
    let path = dir.join(LOCK);
    let failed = |source| ConversationStoreError::Io { path: path.clone(), source };
    let mut file =
        make_private(OpenOptions::new().create(true).read(true).write(true).truncate(false))
            .open(&path)
            .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(32).read_to_string(&mut text);
            return Err(ConversationStoreError::InUse {
                id: id.to_owned(),
                pid: text.trim().parse().ok(),
            });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // The lock itself is held by the kernel; the process id is only for the error message.
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(ConversationLock(file))
}

/// Truncates an incomplete last line, and returns the length of the rest.
fn truncate_incomplete_line(file: &mut File) -> std::io::Result<u64> {
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

fn events_since(path: &Utf8Path, log_bytes: u64) -> Vec<repertoire_agent::AgentEvent> {
    let bytes = read_from(path, log_bytes).unwrap_or_default();
    // Skip incomplete lines, and kinds of events that only a later version knows.
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn read_from(path: &Utf8Path, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(crate::limits::LOG_TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes a new file readable only by its owner, since conversations are confidential.
fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_model::ModelMessage;

    fn store() -> (tempfile::TempDir, ConversationStore) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("conversations");
        (dir, ConversationStore::new(path))
    }

    fn kept(store: &ConversationStore, id: &str) -> LockedConversation {
        let held = store.begin_conversation(id, "default", 7).unwrap();
        let mut conversation = Conversation::new(id);
        conversation.messages.push(ModelMessage::user("hello"));
        held.save(&conversation).unwrap();
        held
    }

    #[test]
    fn a_conversation_is_found_by_the_start_of_its_id_or_as_the_last() {
        let (_keep, store) = store();
        assert!(matches!(store.resolve_id("last"), Err(ConversationStoreError::NotFound { .. })));
        drop(kept(&store, "0199-aa"));
        drop(kept(&store, "0199-ab"));
        assert_eq!(store.resolve_id("0199-aa").unwrap(), "0199-aa");
        assert_eq!(store.resolve_id("last").unwrap(), "0199-ab");
        assert!(matches!(store.resolve_id("0199"), Err(ConversationStoreError::Ambiguous { .. })));
        assert!(matches!(store.resolve_id("02"), Err(ConversationStoreError::NotFound { .. })));
        assert!(matches!(store.resolve_id(""), Err(ConversationStoreError::Ambiguous { .. })));
        assert_eq!(
            store.read_conversation("0199-ab").unwrap().1.messages,
            vec![ModelMessage::user("hello")]
        );
    }

    #[test]
    fn the_last_of_a_project_is_not_that_of_another() {
        let (_keep, store) = store();
        // A file from before the folder was stored.
        drop(kept(&store, "old"));
        for (id, folder) in [("one", "/a"), ("two", "/b")] {
            let mut held = store.begin_conversation(id, "default", 7).unwrap();
            held.head.folder = folder.to_owned();
            held.save(&Conversation::new(id)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(store.last_in(Utf8Path::new("/a")).unwrap(), "one");
        assert_eq!(store.resolve_id("last").unwrap(), "two");
        let none = store.last_in(Utf8Path::new("/c")).unwrap_err();
        assert_eq!(none.to_string(), "no conversation was begun in /c");
        assert_eq!(store.read_conversation("old").unwrap().0.folder, "");
    }

    #[test]
    fn a_conversation_in_use_is_refused_with_the_process() {
        let (_keep, store) = store();
        let held = kept(&store, "one");
        let error = store.open_locked("one").unwrap_err();
        let expected =
            format!("conversation one is in use by another process ({})", std::process::id());
        assert_eq!(error.to_string(), expected);
        assert!(matches!(store.remove("one"), Err(ConversationStoreError::InUse { .. })));
        drop(held);
        assert!(store.open_locked("one").is_ok());
    }

    #[test]
    fn the_lock_of_a_dead_process_is_taken_over() {
        let (_keep, store) = store();
        drop(kept(&store, "one"));
        // The lock file stays behind with a process id in it, but no process holds the lock.
        assert!(store.dir().join("one/lock").exists());
        let (_held, _) = store.open_locked("one").unwrap();
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
            let error = store.open_locked("one").unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
            assert_eq!(fs::read_text(&path, 1000).unwrap(), text);
        }
        assert!(matches!(store.list().unwrap().as_slice(), [ConversationListEntry::Broken { .. }]));
    }

    #[test]
    fn a_torn_last_line_is_taken_off_before_more_is_added() {
        let (_keep, store) = store();
        let held = kept(&store, "one");
        let path = store.dir().join("one/events.jsonl");
        let event = r#"{"v":1,"seq":1,"at_ms":1,"run":"r","agent":"a","depth":0,"type":"warning","message":"m"}"#;
        fs::write_atomic(&path, format!("{event}\n{{\"v\":1,\"se").as_bytes()).unwrap();
        assert_eq!(held.events_since(0).len(), 1);
        let mut log = held.open_log().unwrap();
        log.append_event(&held.events_since(0)[0]).unwrap();
        assert_eq!(fs::read_text(&path, 1000).unwrap(), format!("{event}\n{event}\n"));
        // A log that consists of one incomplete line is empty.
        fs::write_atomic(&path, &[b'x'; 10_000]).unwrap();
        assert_eq!(held.open_log().unwrap().initial_bytes(), 0);
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
                ConversationListEntry::Conversation(head) => head.id,
                ConversationListEntry::Broken { error, .. } => panic!("{error}"),
            })
            .collect();
        assert_eq!(ids, ["a", "b"]);
        store.remove("a").unwrap();
        assert_eq!(store.list().unwrap().len(), 1);
    }
}
