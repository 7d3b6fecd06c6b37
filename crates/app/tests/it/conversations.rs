//! Conversations that are recorded, against a scripted model, on both stores.

use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire::conversation::{ConversationListEntry, ConversationMetadata, ConversationStore};
use repertoire::plan_setup::journal_clock;
use repertoire::{ConversationDriver, ConversationStoreError};
use repertoire_agent::backend::{
    Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use repertoire_agent::event::EventEmitter;
use repertoire_agent::{AgentRunStatus, RunOptions, System};
use repertoire_journal::event::StepOutcome;
use repertoire_journal::{Journal, Payload, Run, RunId, RunStatus, Target};
use repertoire_model::{ApiSecret, ModelEndpoint, ModelEndpoints, ModelService};
use repertoire_scripted::{ModelFault, ModelScript, ScriptedServer, ScriptedTurn};
use serde_json::{Value, json};

use crate::server::Server;

/// A folder with a skill, and a journal.
struct Office {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
    target: Target,
}

impl Office {
    /// With a journal in a file of its own.
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let skill = "---\nname: tenders\ndescription: Rules for tenders. Use when a tender is analysed.\n\
                     triggers:\n  keywords: [danish tender]\n---\n\nMind the deadline.\n";
        let path = dir.join("skills/tenders/SKILL.md");
        repertoire_text::fs::write_atomic(&path, skill.as_bytes()).unwrap();
        let target = Target::File(dir.join("data/journal.sqlite"));
        Office { _keep: keep, dir, target }
    }

    /// With a journal in PostgreSQL that all tests share: each has a project of its own.
    fn on_postgres() -> Option<Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        let server = SERVER.get_or_init(|| Server::start(&["fsync=off"])).as_ref()?;
        Some(Office { target: Target::Url(server.url("postgres")), ..Office::new() })
    }

    fn store(&self) -> ConversationStore {
        ConversationStore::open_later(self.target.clone(), journal_clock(), self.dir.join("runs"))
    }

    /// A driver as another process would make it: nothing is shared but the disk.
    fn driver(&self, server: &ScriptedServer) -> ConversationDriver {
        let endpoint = ModelEndpoint { base_url: server.url(), key: Some(ApiSecret::new("k")) };
        let builder = System::builder()
            .skills_from(self.dir.join("skills"))
            .work_dir(&self.dir)
            .endpoints(ModelEndpoints::default().with(ModelService::Anthropic, endpoint));
        ConversationDriver::new(builder, self.store()).unwrap().in_folder(&self.dir)
    }

    async fn journal(&self) -> Journal {
        Journal::open(&self.target, journal_clock()).await.unwrap()
    }

    async fn run(&self, id: &str) -> Run {
        self.journal().await.run(&RunId::known(id)).await.unwrap().unwrap()
    }

    /// Appends events as another process would.
    async fn append(&self, id: &str, payloads: Vec<Payload>) {
        let run = self.run(id).await;
        self.journal().await.append_attended(&run.id, run.seq, payloads).await.unwrap();
    }
}

macro_rules! on_both_stores {
    ($($name:ident,)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Office::new()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(office) = super::Office::on_postgres() {
                    super::$name(office).await;
                }
            })*
        }
    };
}

on_both_stores! {
    a_conversation_that_is_taken_up_has_its_ledger,
    nobody_takes_up_what_somebody_else_has,
    a_run_that_fails_is_kept_and_can_be_gone_on_with,
    a_run_that_was_dropped_goes_on_from_where_the_model_was_asked,
    what_was_done_since_the_model_was_asked_is_told_from_the_events,
    what_somebody_elses_agent_was_asked_is_known_after_a_crash,
    a_conversation_is_a_run_with_a_step_for_each_turn,
    a_process_on_another_host_that_goes_on_is_noticed_and_the_answer_is_there,
    a_damaged_conversation_is_named_and_left,
    one_of_a_later_version_is_refused_and_an_earlier_one_is_not_called_later,
    a_conversation_is_found_by_a_part_of_its_id_or_as_the_last,
    a_removed_conversation_leaves_nothing,
}

fn resuming(id: &str) -> RunOptions {
    RunOptions { conversation: Some(id.to_owned()), ..RunOptions::default() }
}

async fn says(texts: &[&str]) -> ScriptedServer {
    let script = texts
        .iter()
        .fold(ModelScript::new(), |script, text| script.turn(ScriptedTurn::text(*text)));
    ScriptedServer::start(script).await
}

async fn a_conversation_that_is_taken_up_has_its_ledger(office: Office) {
    let server = says(&["One.", "Two."]).await;
    let first = office.driver(&server);
    let said = "analyse this danish tender";
    let report = first.send_prompt("default", said, RunOptions::default()).await.unwrap();
    assert_eq!(
        (report.status, report.skills.as_slice()),
        (AgentRunStatus::Done, &["tenders".to_owned()][..])
    );

    let second = office.driver(&server);
    let mut talk = second.resume_conversation("last").await.unwrap();
    assert_eq!((talk.head().turns, talk.head().first.as_str()), (1, said));
    assert!(talk.interrupted().is_none());
    talk.send_prompt("default", "the danish tender again", RunOptions::default()).await.unwrap();
    assert!(talk.used_skills().skills.is_empty(), "it was there already");
    assert_eq!(talk.head().turns, 2);
    let asked = server.requests()[1].body.to_string();
    assert_eq!(asked.matches("Mind the deadline.").count(), 1);
    assert!(asked.contains("One."));
}

async fn nobody_takes_up_what_somebody_else_has(office: Office) {
    let server = says(&["One."]).await;
    let driver = office.driver(&server);
    let mut talk = driver.begin_conversation("default");
    talk.send_prompt("default", "hello", RunOptions::default()).await.unwrap();
    let other = office.driver(&server);
    let refused = other.send_prompt("default", "hello", resuming(talk.id())).await.unwrap_err();
    let expected =
        format!("conversation {} is in use by another process ({})", talk.id(), std::process::id());
    assert_eq!(refused.to_string(), expected);
    let removed = office.store().remove(talk.id()).await;
    assert!(matches!(removed, Err(ConversationStoreError::InUse { .. })));
    drop(talk);
    assert!(other.resume_conversation("last").await.is_ok());
}

async fn a_run_that_fails_is_kept_and_can_be_gone_on_with(office: Office) {
    let fault = ModelFault::status(400, "{\"error\":{\"message\":\"no\"}}");
    let server = ScriptedServer::start(
        ModelScript::new().turn(ScriptedTurn::fail(fault)).turn(ScriptedTurn::text("Now.")),
    )
    .await;
    let driver = office.driver(&server);
    let report =
        driver.send_prompt("default", "number seven", RunOptions::default()).await.unwrap();
    assert_eq!(report.status, AgentRunStatus::Failed);
    assert_eq!(office.run(&report.conversation).await.status, RunStatus::Failed);
    let report = driver.send_prompt("default", "again", resuming("last")).await.unwrap();
    assert_eq!(report.text, "Now.");
    assert!(server.requests()[1].body.to_string().contains("number seven"));
    assert_eq!(office.run(&report.conversation).await.status, RunStatus::Completed);
}

async fn a_run_that_was_dropped_goes_on_from_where_the_model_was_asked(office: Office) {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "tenders"})))
        .turn(ScriptedTurn::fail(ModelFault::StallBeforeHeaders))
        .turn(ScriptedTurn::text("Again."));
    let server = ScriptedServer::start(script).await;
    let driver = office.driver(&server);
    let sending = driver.send_prompt("default", "number seven", RunOptions::default());
    let asked_twice = async {
        while server.requests().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = sending => panic!("the model does not answer"),
        () = asked_twice => {}
    }
    driver.finish_writing().await;
    let second = office.driver(&server);
    let mut talk = second.resume_conversation("last").await.unwrap();
    assert!(talk.head().at_work);
    let before = talk.interrupted().unwrap();
    assert_eq!((before.prompt.as_str(), before.prompt_is_kept), ("number seven", true));
    assert_eq!(before.resume_note(), None, "the conversation says it all");
    let report = talk.send_prompt("default", "go on", RunOptions::default()).await.unwrap();
    assert_eq!(
        (report.text.as_str(), report.skills.as_slice()),
        ("Again.", &["tenders".to_owned()][..])
    );
    let asked = server.requests().last().unwrap().body.to_string();
    assert!(asked.contains("number seven") && asked.contains("Mind the deadline."), "{asked}");
    let id = RunId::known(talk.id());
    let steps = office.journal().await.steps(&id).await.unwrap();
    let outcomes: Vec<_> = steps.iter().map(|step| step.outcome).collect();
    assert_eq!(outcomes, [None, Some(StepOutcome::Ok)]);
}

/// The events of a turn that was killed while a tool was at work.
fn killed_turn() -> Vec<Payload> {
    let agent_event = |seq: u64, rest: Value| {
        let mut data = json!({
            "v": 1, "seq": seq, "at_ms": 1, "run": "r", "agent": "default", "depth": 0
        });
        data.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Payload::KindEvent { name: "agent_event".into(), data }
    };
    vec![
        Payload::RunResumed { by: "user".into(), limits: None },
        Payload::StepStarted {
            step: 2,
            kind: "turn".into(),
            task: None,
            attempt: 1,
            iteration: 2,
            head: None,
            detail: Value::Null,
        },
        Payload::KindEvent { name: "turn_started".into(), data: json!({ "prompt": "delete it" }) },
        agent_event(1, json!({"type": "model_call", "model": "m", "iteration": 1, "attempt": 1})),
        agent_event(2, json!({"type": "of_a_later_version"})),
        agent_event(
            3,
            json!({"type": "tool_call", "id": "1", "tool": "bash", "subject": "rm it", "arguments": {}}),
        ),
    ]
}

async fn what_was_done_since_the_model_was_asked_is_told_from_the_events(office: Office) {
    let server = says(&["One.", "Two."]).await;
    let driver = office.driver(&server);
    let report =
        driver.send_prompt("default", "number seven", RunOptions::default()).await.unwrap();
    office.append(&report.conversation, killed_turn()).await;

    let report = driver.send_prompt("default", "go on", resuming("last")).await.unwrap();
    assert_eq!(report.text, "Two.");
    let asked = server.requests()[1].last_user_text();
    assert_eq!(
        asked,
        "[The last run was interrupted before it ended. The request was:\ndelete it\n You had called, with effects \
         that may remain:\nbash rm it]\n\ngo on"
    );
    let replayed = office.journal().await.replay_run(&RunId::known(&report.conversation)).await;
    assert_eq!(replayed.unwrap().differences, []);
}

async fn what_somebody_elses_agent_was_asked_is_known_after_a_crash(office: Office) {
    let server = says(&["One."]).await;
    let first = office.driver(&server);
    let options = RunOptions { backend: Some(Arc::new(Silent)), ..RunOptions::default() };
    let sending = first.send_prompt("default", "number seven", options);
    let ended = tokio::time::timeout(std::time::Duration::from_millis(200), sending).await;
    assert!(ended.is_err(), "it never answers");
    first.finish_writing().await;
    let talk = office.driver(&server).resume_conversation("last").await.unwrap();
    assert_eq!(talk.interrupted().unwrap().prompt, "number seven");
}

async fn a_conversation_is_a_run_with_a_step_for_each_turn(office: Office) {
    let server = says(&["\nOne.\nMore.", "Two."]).await;
    let driver = office.driver(&server);
    let mut talk = driver.begin_conversation("default");
    assert!(!office.dir.join("runs").exists(), "nothing is recorded yet");
    for prompt in ["first words", "second words"] {
        talk.send_prompt("default", prompt, RunOptions::default()).await.unwrap();
    }
    let run = office.run(talk.id()).await;
    assert_eq!(
        (run.kind.as_str(), run.name.as_str(), run.workspace.as_str(), run.attended),
        ("conversation", "first words", office.dir.as_str(), true)
    );
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Completed, Some("Two.")));
    assert_eq!((run.steps, run.request["agent"].as_str()), (2, Some("default")));
    let usage = talk.usage();
    assert_eq!(run.spent.output_tokens, usage.output_tokens);
    assert_eq!(run.spent.cost_usd(), talk.head().cost_usd);
    assert!(usage.output_tokens > 0 && !run.spent.unpriced);
    let journal = office.journal().await;
    let events = journal.events(&run.id, 0, 0).await.unwrap();
    let first = events.iter().find_map(|event| match &event.payload {
        Payload::RunCompleted { summary, .. } => Some(summary.as_str()),
        _ => None,
    });
    assert_eq!(first, Some("One."));
    let saved = |payload: &Payload| match payload {
        Payload::KindEvent { name, data } if name == "saved" => {
            Some(data["messages"].as_array().unwrap().len())
        }
        _ => None,
    };
    let messages: usize = events.iter().filter_map(|event| saved(&event.payload)).sum();
    let (head, conversation) = office.store().read_conversation(talk.id()).await.unwrap();
    assert_eq!(messages, conversation.messages.len(), "each message is recorded once");
    assert_eq!(
        head,
        ConversationMetadata {
            updated_ms: head.updated_ms,
            begun_ms: head.begun_ms,
            ..talk.head().clone()
        }
    );
    assert_eq!(journal.replay_run(&run.id).await.unwrap().differences, []);
}

async fn a_process_on_another_host_that_goes_on_is_noticed_and_the_answer_is_there(office: Office) {
    let server = says(&["One.", "Two."]).await;
    let driver = office.driver(&server);
    let mut talk = driver.begin_conversation("default");
    talk.send_prompt("default", "hello", RunOptions::default()).await.unwrap();
    // The lock is on this machine only.
    office.append(talk.id(), killed_turn()).await;
    let error = talk.send_prompt("default", "again", RunOptions::default()).await.unwrap_err();
    let expected = format!(
        "the conversation could not be saved: another process has continued conversation {} in the meantime",
        talk.id()
    );
    assert_eq!(error.to_string(), expected);
    let ConversationStoreError::NotSaved { report, .. } = error else { panic!("{error}") };
    assert_eq!(report.text, "Two.");
    let id = talk.id().to_owned();
    drop(talk);
    let talk = driver.resume_conversation(&id).await.unwrap();
    assert_eq!(talk.interrupted().unwrap().prompt, "delete it");
}

async fn a_damaged_conversation_is_named_and_left(office: Office) {
    let server = says(&["One."]).await;
    let driver = office.driver(&server);
    let id = driver.send_prompt("default", "hi", RunOptions::default()).await.unwrap().conversation;
    let saved = json!({ "kept": 99, "messages": [] });
    let wrong = Payload::KindEvent { name: "saved".into(), data: saved };
    let resumed = Payload::RunResumed { by: "user".into(), limits: None };
    office.append(&id, vec![resumed, wrong]).await;
    let before = office.run(&id).await;
    let error = driver.send_prompt("default", "go on", resuming(&id)).await.unwrap_err();
    let expected = format!(
        "conversation {id} is damaged, and is left as it is: event {}: it keeps 99 messages, and there are 3",
        before.seq
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(office.run(&id).await, before);
    assert_eq!(office.store().remove(&id).await.unwrap().as_str(), id);
}

async fn one_of_a_later_version_is_refused_and_an_earlier_one_is_not_called_later(office: Office) {
    let server = says(&[]).await;
    for (version, message) in [
        (
            2,
            "was written by a later version of this program (version 2, and 1 is the latest known here)",
        ),
        (0, "is damaged, and is left as it is: there is no version 0"),
    ] {
        let id = RunId::new();
        let new = repertoire_journal::NewRun {
            id: id.clone(),
            kind: "conversation".into(),
            name: "n".into(),
            workspace: office.dir.to_string(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: json!({ "version": version, "agent": "default" }),
        };
        office.journal().await.create_attended(new, Vec::new()).await.unwrap();
        let refused = office.driver(&server).resume_conversation(id.as_str()).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("conversation {id} {message}"));
        let listed = office.store().list().await.unwrap();
        let broken = listed.iter().find_map(|entry| match entry {
            ConversationListEntry::Broken { id: broken, error } if broken == id.as_str() => {
                Some(error.to_string())
            }
            _ => None,
        });
        assert_eq!(broken, Some(refused.to_string()));
    }
}

async fn a_conversation_is_found_by_a_part_of_its_id_or_as_the_last(office: Office) {
    let server = says(&["One.", "Two.", "Three."]).await;
    let driver = office.driver(&server);
    let missing = driver.resume_conversation("last").await.unwrap_err();
    assert_eq!(missing.to_string(), format!("no conversation was begun in {}", office.dir));
    let missing = driver.resume_conversation("0123").await.unwrap_err();
    assert_eq!(missing.to_string(), "there is no conversation `0123`");
    let mut ids = Vec::new();
    for prompt in ["one", "two"] {
        let report = driver.send_prompt("default", prompt, RunOptions::default()).await.unwrap();
        ids.push(report.conversation);
    }
    let store = office.store();
    for id in &ids {
        assert_eq!(store.resolve_id(id).await.unwrap().as_str(), id);
        assert_eq!(store.resolve_id(&id[..id.len() - 1]).await.unwrap().as_str(), id);
        assert_eq!(store.resolve_id(&id[id.len() - 8..]).await.unwrap().as_str(), id);
    }
    assert!(matches!(store.resolve_id("0").await, Err(ConversationStoreError::Ambiguous { .. })));
    assert!(matches!(store.resolve_id("").await, Err(ConversationStoreError::Ambiguous { .. })));
    assert_eq!(store.last_in(&office.dir).await.unwrap().as_str(), ids[1]);
    // The last is the one that was gone on with last.
    driver.send_prompt("default", "more", resuming(&ids[0])).await.unwrap();
    assert_eq!(store.last_in(&office.dir).await.unwrap().as_str(), ids[0]);
    let listed = store.list().await.unwrap();
    let listed = listed.iter().filter_map(|entry| match entry {
        ConversationListEntry::Conversation(head) => Some(head.id.as_str()),
        ConversationListEntry::Broken { .. } => None,
    });
    let own: Vec<&str> = listed.filter(|id| ids.iter().any(|own| own == id)).collect();
    assert_eq!(own, [ids[0].as_str(), ids[1].as_str()]);
}

async fn a_removed_conversation_leaves_nothing(office: Office) {
    let server = says(&["One."]).await;
    let driver = office.driver(&server);
    let id = driver.send_prompt("default", "hi", RunOptions::default()).await.unwrap().conversation;
    assert!(office.dir.join("runs").join(&id).exists());
    office.store().remove(&id).await.unwrap();
    assert!(!office.dir.join("runs").join(&id).exists());
    assert_eq!(office.journal().await.run(&RunId::known(&id)).await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_is_there_although_the_journal_is_no_database() {
    let office = Office::new();
    let file = office.dir.join("data/journal.sqlite");
    repertoire_text::fs::write_atomic(&file, &[b'x'; 4096]).unwrap();
    let server = says(&["One."]).await;
    let sent = office.driver(&server).send_prompt("default", "hi", RunOptions::default()).await;
    let Err(ConversationStoreError::NotSaved { report, source }) = sent else { panic!("{sent:?}") };
    assert_eq!(report.text, "One.");
    assert!(source.to_string().contains("is damaged"), "{source}");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 4096, "it is left as it is");
}

#[tokio::test]
async fn what_could_not_be_saved_is_saved_with_the_next_turn() {
    let office = Office::new();
    // A file in the place of the journal's folder.
    let folder = office.dir.join("data");
    repertoire_text::fs::write_atomic(&folder, b"in the way").unwrap();
    let server = says(&["One.", "Two."]).await;
    let driver = office.driver(&server);
    let mut talk = driver.begin_conversation("default");
    let sent = talk.send_prompt("default", "first", RunOptions::default()).await;
    assert!(matches!(sent, Err(ConversationStoreError::NotSaved { .. })), "{sent:?}");
    std::fs::remove_file(&folder).unwrap();
    talk.send_prompt("default", "second", RunOptions::default()).await.unwrap();
    let (head, conversation) = office.store().read_conversation(talk.id()).await.unwrap();
    assert_eq!((head.turns, head.first.as_str()), (2, "first"));
    let texts = conversation.message_texts().join("\n");
    assert!(["first", "One.", "second", "Two."].iter().all(|said| texts.contains(said)), "{texts}");
}

/// An external agent that never answers.
struct Silent;

impl Backend for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn enforcement(&self) -> BackendEnforcement {
        BackendEnforcement {
            rules: RuleEnforcement::All,
            effects: EffectEnforcement::EveryEffect,
            sandbox: true,
            service: None,
        }
    }

    fn run<'a>(
        &'a self,
        _job: &'a BackendJob,
        _events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        Box::pin(std::future::pending())
    }
}
