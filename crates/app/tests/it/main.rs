//! Conversations that are kept, against a scripted model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod analyse;
mod checks;
mod git;
mod github;
mod github_attacks;
mod github_base;
mod github_events;
mod github_modes;
mod memory;
mod plan;
mod plan_asked;
mod plan_attacks;
mod plan_improve;
mod recover;
mod repo;
mod review;
mod review_report;
mod review_scope;
mod verify;
mod worktree;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire::{ConversationDriver, ConversationStore, ConversationStoreError};
use repertoire_agent::backend::{
    Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use repertoire_agent::event::EventEmitter;
use repertoire_agent::{AgentRunStatus, RunOptions, System};
use repertoire_model::{ApiSecret, ModelEndpoint, ModelEndpoints};
use repertoire_scripted::{ModelFault, ModelScript, ScriptedServer, ScriptedTurn};

struct Place {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
}

impl Place {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let skill = "---\nname: tenders\ndescription: Rules for tenders. Use when a tender is analysed.\n\
                     triggers:\n  keywords: [danish tender]\n---\n\nMind the deadline.\n";
        let path = dir.join("skills/tenders/SKILL.md");
        repertoire_text::fs::write_atomic(&path, skill.as_bytes()).unwrap();
        Place { _keep: keep, dir }
    }

    /// A driver as another process would make it: nothing is shared but the disk.
    fn driver(&self, server: &ScriptedServer) -> ConversationDriver {
        let endpoint = ModelEndpoint { base_url: server.url(), key: Some(ApiSecret::new("k")) };
        let builder = System::builder()
            .skills_from(self.dir.join("skills"))
            .work_dir(&self.dir)
            .endpoints(ModelEndpoints { anthropic: Some(endpoint), ..ModelEndpoints::default() });
        ConversationDriver::new(builder, ConversationStore::new(self.dir.join("kept"))).unwrap()
    }
}

fn resuming(id: &str) -> RunOptions {
    RunOptions { conversation: Some(id.to_owned()), ..RunOptions::default() }
}

#[tokio::test]
async fn a_conversation_that_is_taken_up_has_its_ledger() {
    let place = Place::new();
    let script =
        ModelScript::new().turn(ScriptedTurn::text("One.")).turn(ScriptedTurn::text("Two."));
    let server = ScriptedServer::start(script).await;
    let first = place.driver(&server);
    let said = "analyse this danish tender";
    let report = first.send_prompt("default", said, RunOptions::default()).await.unwrap();
    assert_eq!(
        (report.status, report.skills.as_slice()),
        (AgentRunStatus::Done, &["tenders".to_owned()][..])
    );

    let second = place.driver(&server);
    let mut talk = second.resume_conversation("last").unwrap();
    assert_eq!((talk.head().turns, talk.head().first.as_str()), (1, said));
    assert!(talk.interrupted().is_none());
    talk.send_prompt("default", "the danish tender again", RunOptions::default()).await.unwrap();
    assert!(talk.used_skills().skills.is_empty(), "it was there already");
    assert_eq!(talk.head().turns, 2);
    let asked = server.requests()[1].body.to_string();
    assert_eq!(asked.matches("Mind the deadline.").count(), 1);
    assert!(asked.contains("One."));
}

#[tokio::test]
async fn nobody_takes_up_what_somebody_else_has() {
    let place = Place::new();
    let server = ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("One."))).await;
    let driver = place.driver(&server);
    let mut talk = driver.begin_conversation("default").unwrap();
    talk.send_prompt("default", "hello", RunOptions::default()).await.unwrap();
    let other = place.driver(&server);
    let refused = other.send_prompt("default", "hello", resuming(talk.id())).await;
    assert!(matches!(refused, Err(ConversationStoreError::InUse { .. })));
    drop(talk);
    assert!(other.resume_conversation("last").is_ok());
}

#[tokio::test]
async fn a_run_that_fails_is_kept_and_can_be_gone_on_with() {
    let place = Place::new();
    let fault = ModelFault::status(400, "{\"error\":{\"message\":\"no\"}}");
    let server = ScriptedServer::start(
        ModelScript::new().turn(ScriptedTurn::fail(fault)).turn(ScriptedTurn::text("Now.")),
    )
    .await;
    let driver = place.driver(&server);
    let report =
        driver.send_prompt("default", "number seven", RunOptions::default()).await.unwrap();
    assert_eq!(report.status, AgentRunStatus::Failed);
    let report = driver.send_prompt("default", "again", resuming("last")).await.unwrap();
    assert_eq!(report.text, "Now.");
    assert!(server.requests()[1].body.to_string().contains("number seven"));
}

#[tokio::test]
async fn a_run_that_was_dropped_goes_on_from_where_the_model_was_asked() {
    let place = Place::new();
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", serde_json::json!({"name": "tenders"})))
        .turn(ScriptedTurn::fail(ModelFault::StallBeforeHeaders))
        .turn(ScriptedTurn::text("Again."));
    let server = ScriptedServer::start(script).await;
    let driver = place.driver(&server);
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
    let second = place.driver(&server);
    let mut talk = second.resume_conversation("last").unwrap();
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
}

#[tokio::test]
async fn what_was_done_since_the_model_was_asked_is_told_from_the_log() {
    let place = Place::new();
    let server = ScriptedServer::start(
        ModelScript::new().turn(ScriptedTurn::text("One.")).turn(ScriptedTurn::text("Two.")),
    )
    .await;
    let driver = place.driver(&server);
    let report =
        driver.send_prompt("default", "number seven", RunOptions::default()).await.unwrap();
    // As a process leaves it that ends while a tool is at work.
    let dir = place.dir.join("kept").join(&report.conversation);
    let file = dir.join("conversation.json");
    let text = repertoire_text::fs::read_text(&file, 1 << 20).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(&text).unwrap();
    let log = dir.join("events.jsonl");
    let events = repertoire_text::fs::read_text(&log, 1 << 20).unwrap();
    kept["at_work"] = serde_json::json!({"prompt": "delete it", "log_bytes": events.len()});
    repertoire_text::fs::write_atomic(&file, kept.to_string().as_bytes()).unwrap();
    let event = |seq: u64, rest: &str| {
        format!(
            "{{\"v\":1,\"seq\":{seq},\"at_ms\":1,\"run\":\"r\",\"agent\":\"default\",\"depth\":0,{rest}}}\n"
        )
    };
    let call = r#""type":"model_call","model":"m","iteration":1,"attempt":1"#;
    let tool = r#""type":"tool_call","id":"1","tool":"bash","subject":"rm it","arguments":{}"#;
    let torn = r#"{"v":1,"seq":3,"at_"#;
    let added = format!("{events}{}{}{torn}", event(1, call), event(2, tool));
    repertoire_text::fs::write_atomic(&log, added.as_bytes()).unwrap();

    let report = driver.send_prompt("default", "go on", resuming("last")).await.unwrap();
    assert_eq!(report.text, "Two.");
    let asked = server.requests()[1].last_user_text();
    assert_eq!(
        asked,
        "[The last run was interrupted before it ended. The request was:\ndelete it\n You had called, with effects \
         that may remain:\nbash rm it]\n\ngo on"
    );
    let events = repertoire_text::fs::read_text(&log, 1 << 20).unwrap();
    assert!(events.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[tokio::test]
async fn what_somebody_elses_agent_was_asked_is_known_after_a_crash() {
    let place = Place::new();
    let server = ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("One."))).await;
    let first = place.driver(&server);
    let options = RunOptions { backend: Some(Arc::new(Silent)), ..RunOptions::default() };
    let sending = first.send_prompt("default", "number seven", options);
    let ended = tokio::time::timeout(std::time::Duration::from_millis(200), sending).await;
    assert!(ended.is_err(), "it never answers");
    let talk = place.driver(&server).resume_conversation("last").unwrap();
    assert_eq!(talk.interrupted().unwrap().prompt, "number seven");
}

/// Somebody else's agent that never answers.
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
