use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Run, Target};
use repertoire_model::{ModelMessage, TokenUsage};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;

/// A journal, and the recorder of a new conversation in it.
struct RecorderBench {
    _keep: tempfile::TempDir,
    runs_dir: Utf8PathBuf,
    journal: Journal,
    recorder: Arc<Mutex<ConversationRecorder>>,
}

const ID: &str = "0191c3a0-0000-7000-8000-000000000001";

impl RecorderBench {
    async fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(keep.path()).unwrap();
        let runs_dir = root.join("runs");
        let target = Target::File(root.join("journal.sqlite"));
        let journal = Journal::open(&target, Arc::new(|| 1_000)).await.unwrap();
        let store = ConversationStore::new(journal.clone(), runs_dir.clone());
        let head = ConversationMetadata { id: ID.to_owned(), ..ConversationMetadata::default() };
        let recorder = Arc::new(Mutex::new(ConversationRecorder::for_new(store, &head)));
        RecorderBench { _keep: keep, runs_dir, journal, recorder }
    }

    /// Makes it impossible to create the folder of a run.
    fn block_folder(&self) {
        repertoire_text::fs::write_atomic(&self.runs_dir, b"in the way").unwrap();
    }

    fn unblock_folder(&self) {
        std::fs::remove_file(&self.runs_dir).unwrap();
    }

    /// Starts a turn, and hands over a checkpoint.
    async fn start_turn(&self) -> (UnboundedSender<TurnRecord>, TurnWriter) {
        let mut recorder = self.recorder.clone().lock_owned().await;
        recorder.begin_turn("title", "prompt");
        let (sender, receiver) = unbounded_channel();
        let writer = tokio::spawn(write_turn(recorder, receiver));
        sender.send(checkpoint("a")).ok().unwrap();
        // On this runtime with one thread, the writer has tried to create the folder after this.
        tokio::task::yield_now().await;
        (sender, writer)
    }

    async fn run(&self) -> Option<Run> {
        self.journal.run(&RunId::known(ID)).await.unwrap()
    }
}

type TurnWriter = JoinHandle<Result<(), ConversationStoreError>>;

fn checkpoint(text: &str) -> TurnRecord {
    let messages = vec![ModelMessage::user(text)];
    TurnRecord::Checkpoint(Conversation { messages, ..Conversation::new(ID) })
}

fn turn_end() -> TurnEnd {
    TurnEnd {
        conversation: Conversation::new(ID),
        event: ConversationEvent::TurnEnded { usage: TokenUsage::default(), cost_usd: Some(0.1) },
        outcome: StepOutcome::Ok,
        reason: None,
        spent: RunUsage::default(),
        status: Payload::RunCompleted { summary: "done".to_owned(), head: None },
    }
}

#[tokio::test]
async fn what_could_not_be_stored_is_tried_again_while_the_turn_goes_on() {
    let bench = RecorderBench::new().await;
    bench.block_folder();
    let mut changes = bench.journal.subscribe_changes();
    let (sender, writer) = bench.start_turn().await;
    bench.unblock_folder();
    while bench.run().await.is_none() {
        assert!(changes.next(Duration::from_secs(60)).await, "without any further record");
    }
    assert_eq!(bench.run().await.unwrap().steps, 1);
    sender.send(TurnRecord::Ended(Box::new(turn_end()))).ok().unwrap();
    writer.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_turn_that_is_dropped_after_a_failure_is_stored_at_last() {
    let bench = RecorderBench::new().await;
    bench.block_folder();
    let (sender, writer) = bench.start_turn().await;
    bench.unblock_folder();
    drop(sender);
    writer.await.unwrap().unwrap();
    assert_eq!(bench.run().await.unwrap().steps, 1);
}

#[tokio::test]
async fn events_whose_answer_was_lost_are_recognised_and_not_stored_twice() {
    let bench = RecorderBench::new().await;
    let mut recorder = bench.recorder.lock().await;
    recorder.begin_turn("title", "prompt");
    // The store has committed the creation, and the connection broke before it could say so.
    let new_run = recorder.new_run.clone().unwrap();
    bench.journal.create_attended(new_run, recorder.pending.clone()).await.unwrap();
    recorder.attempted = recorder.pending.len();
    recorder.add_record(checkpoint("a"));
    recorder.store_pending().await.unwrap();
    let stored = bench.run().await.unwrap().seq;
    assert_eq!((recorder.seq, recorder.pending.len()), (stored, 0));
    // The same for later events.
    recorder.end_turn(turn_end());
    bench.journal.append_attended(&recorder.id, stored, recorder.pending.clone()).await.unwrap();
    recorder.attempted = recorder.pending.len();
    recorder.begin_turn("title", "more");
    recorder.store_pending().await.unwrap();
    assert_eq!(bench.run().await.unwrap().steps, 2);
    // Events of another process are not taken for ours.
    let note = Payload::Note { name: "other".to_owned(), data: Value::Null };
    bench.journal.append_attended(&recorder.id, recorder.seq, vec![note]).await.unwrap();
    recorder.add_record(checkpoint("b"));
    let late = recorder.store_pending().await;
    assert!(matches!(late, Err(ConversationStoreError::Continued { .. })), "{late:?}");
}

#[tokio::test]
async fn a_conversation_of_which_nothing_was_stored_leaves_no_folder_behind() {
    let bench = RecorderBench::new().await;
    let mut recorder = bench.recorder.lock().await;
    recorder.begin_turn("title", "prompt");
    // A run with this id exists, with a folder of its own.
    let taken = NewRun { name: "another".to_owned(), ..recorder.new_run.clone().unwrap() };
    bench.journal.create_attended(taken, Vec::new()).await.unwrap();
    assert!(recorder.store_pending().await.is_err());
    let folder = bench.runs_dir.join(ID);
    assert!(folder.exists(), "its lock is held as long as the conversation is open");
    drop(recorder);
    let RecorderBench { recorder, _keep, .. } = bench;
    drop(recorder);
    assert!(!folder.exists());
}

#[tokio::test]
async fn the_folder_of_another_conversation_stays() {
    let bench = RecorderBench::new().await;
    let folder = bench.runs_dir.join(ID);
    std::fs::create_dir_all(&folder).unwrap();
    let mut recorder = bench.recorder.lock().await;
    recorder.begin_turn("title", "prompt");
    let taken = recorder.new_run.clone().unwrap();
    bench.journal.create_attended(taken, Vec::new()).await.unwrap();
    assert!(recorder.store_pending().await.is_err());
    drop(recorder);
    let RecorderBench { recorder, _keep, .. } = bench;
    drop(recorder);
    assert!(folder.exists());
}
