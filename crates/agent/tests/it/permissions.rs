//! What a run may do: rules, questions, and what skills change about it.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use repertoire_agent::backend::{
    AgentFreedom, Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement,
    RuleEnforcement,
};
use repertoire_agent::event::EventEmitter;
use repertoire_agent::permission::{
    Answer, PermissionAsker, PermissionMode, Question, RunPermissions,
};
use repertoire_agent::{EventKind, RunOptions, RunReport};
use repertoire_scripted::{ModelScript, ScriptedTurn};
use serde_json::json;

use crate::workspace::Workspace;

fn writing() -> ModelScript {
    let write = || ScriptedTurn::tool("write", json!({"path": "new.txt", "content": "hello"}));
    ModelScript::new().turn(write()).turn(write()).turn(ScriptedTurn::text("Done."))
}

async fn run(workspace: &Workspace, options: RunOptions) -> RunReport {
    workspace.system().run("default", "Write it", options).await
}

fn permissions(permissions: RunPermissions) -> RunOptions {
    RunOptions { permissions: Some(permissions), ..RunOptions::default() }
}

fn is_written(workspace: &Workspace) -> bool {
    workspace.here.join("work/new.txt").exists()
}

/// Answers with what it was given, and counts.
struct Person {
    answer: Answer,
    asked: Mutex<Vec<Question>>,
}

impl PermissionAsker for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.asked.lock().unwrap().push(question.clone());
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn without_a_person_nothing_is_written_and_the_denial_says_how_to_allow_it() {
    let workspace = Workspace::new(writing()).await;
    let report = run(&workspace, RunOptions::default()).await;
    assert!(!is_written(&workspace));
    assert_eq!(report.denials.len(), 2);
    assert_eq!(
        (report.denials[0].tool.as_str(), report.denials[0].subject.as_str()),
        ("write", "new.txt")
    );
    let denied = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::Denied { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(denied.unwrap().contains("`write(new.txt)` with `--allow`"));
}

#[tokio::test]
async fn a_rule_allows_and_another_denies_all_the_same() {
    let workspace = Workspace::new(writing()).await;
    let mut rules = RunPermissions::default();
    rules.allow.push("write(*.txt)".parse().unwrap());
    run(&workspace, permissions(rules.clone())).await;
    assert!(is_written(&workspace));

    let workspace = Workspace::new(writing()).await;
    rules.deny.push("write(new*)".parse().unwrap());
    run(&workspace, permissions(rules)).await;
    assert!(!is_written(&workspace));
}

#[tokio::test]
async fn a_read_only_run_writes_nothing_whatever_the_rules_say() {
    let workspace = Workspace::new(writing()).await;
    let mut rules = RunPermissions::new(PermissionMode::ReadOnly);
    rules.allow.push("*".parse().unwrap());
    let report = run(&workspace, permissions(rules)).await;
    assert!(!is_written(&workspace) && report.denials.len() == 2);
}

#[tokio::test]
async fn a_person_is_asked_once_if_the_answer_is_always() {
    for (answer, times, written) in [
        (Answer::Yes, 2, true),
        (Answer::Always, 1, true),
        (Answer::No("not today".to_owned()), 2, false),
    ] {
        let workspace = Workspace::new(writing()).await;
        let person = Arc::new(Person { answer, asked: Mutex::default() });
        let options = RunOptions { asker: Some(person.clone()), ..RunOptions::default() };
        run(&workspace, options).await;
        assert_eq!(person.asked.lock().unwrap().len(), times);
        assert_eq!(is_written(&workspace), written);
    }
}

#[tokio::test]
async fn a_trusted_skill_may_use_the_tools_that_it_names() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "scribe"})))
        .turn(ScriptedTurn::tool("write", json!({"path": "new.txt", "content": "hello"})))
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    workspace.skill(
        "scribe",
        "description: Writes things down\nallowed-tools: Write(*.txt)",
        "Write.",
    );
    run(&workspace, RunOptions::default()).await;
    assert!(is_written(&workspace));
}

#[tokio::test]
async fn a_sub_agent_may_do_no_more_than_the_one_that_sent_it() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "default", "task": "Write it"})))
        .turn(ScriptedTurn::tool("write", json!({"path": "new.txt", "content": "hello"})))
        .turn(ScriptedTurn::text("I could not."))
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    run(&workspace, permissions(RunPermissions::new(PermissionMode::ReadOnly))).await;
    assert!(!is_written(&workspace));
}

/// Somebody else's agent that does nothing but remember what it was asked.
struct Other {
    holds: BackendEnforcement,
    asked: Mutex<Vec<BackendJob>>,
}

impl Backend for Other {
    fn name(&self) -> &str {
        "other"
    }

    fn enforcement(&self) -> BackendEnforcement {
        self.holds
    }

    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        _events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        self.asked.lock().unwrap().push(job.clone());
        Box::pin(async {
            BackendResult {
                status: repertoire_agent::AgentRunStatus::Done,
                text: "Done.".to_owned(),
                structured: None,
                error: None,
                usage: Default::default(),
                cost_usd: None,
                iterations: 1,
                denials: Vec::new(),
                session: None,
                resets_at_ms: None,
            }
        })
    }
}

async fn handed_over(
    rules: RuleEnforcement,
    permissions: RunPermissions,
) -> (RunReport, Vec<BackendJob>, Workspace) {
    let keeps = match rules {
        RuleEnforcement::All => EffectEnforcement::EveryEffect,
        RuleEnforcement::Freedom => EffectEnforcement::ToolsOnly,
        RuleEnforcement::Nothing => EffectEnforcement::Nothing,
    };
    let workspace = Workspace::new(ModelScript::new()).await;
    let other = Arc::new(Other {
        holds: BackendEnforcement { rules, effects: keeps, sandbox: false, service: None },
        asked: Mutex::default(),
    });
    let options = RunOptions {
        permissions: Some(permissions),
        backend: Some(other.clone()),
        ..RunOptions::default()
    };
    let report = run(&workspace, options).await;
    let asked = std::mem::take(&mut *other.asked.lock().unwrap());
    (report, asked, workspace)
}

#[tokio::test]
async fn somebody_elses_agent_is_as_free_as_the_run() {
    for (mode, freedom) in [
        (PermissionMode::Default, AgentFreedom::ReadOnly),
        (PermissionMode::ReadOnly, AgentFreedom::ReadOnly),
        (PermissionMode::AcceptEdits, AgentFreedom::Workspace),
        (PermissionMode::Full, AgentFreedom::Full),
    ] {
        let (_, asked, _) = handed_over(RuleEnforcement::Freedom, RunPermissions::new(mode)).await;
        assert_eq!(asked[0].freedom, freedom, "{mode:?}");
    }
}

#[tokio::test]
async fn rules_that_somebody_elses_agent_cannot_keep_keep_it_from_running() {
    let mut rules = RunPermissions::new(PermissionMode::Full);
    rules.deny.push("bash(rm:*)".parse().unwrap());
    for keeps in [RuleEnforcement::Freedom, RuleEnforcement::Nothing] {
        let (report, asked, _) = handed_over(keeps, rules.clone()).await;
        assert!(asked.is_empty());
        let error = report.into_answer().unwrap_err().to_string();
        assert!(error.starts_with("other: it cannot be held to rules that deny"), "{error}");
    }
    let (_, asked, _) = handed_over(RuleEnforcement::All, rules).await;
    assert_eq!(asked[0].told.denied, ["bash(rm:*)"]);
    let (report, asked, _) =
        handed_over(RuleEnforcement::Nothing, RunPermissions::new(PermissionMode::ReadOnly)).await;
    assert!(asked.is_empty() && report.error.is_some());
}

#[tokio::test]
async fn what_somebody_elses_agent_lacks_is_told() {
    let (_, _, workspace) =
        handed_over(RuleEnforcement::Freedom, RunPermissions::new(PermissionMode::Full)).await;
    let told = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::Degraded { message, .. } => Some(message),
        _ => None,
    });
    assert_eq!(told.as_deref(), Some("other runs its commands without our sandbox."));
}

#[tokio::test]
async fn a_rule_also_denies_what_touches_nothing() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "default", "task": "Write it"})))
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    let mut rules = RunPermissions::default();
    rules.deny.push("Task".parse().unwrap());
    let report = run(&workspace, permissions(rules)).await;
    assert_eq!(report.denials.len(), 1);
    assert_eq!(report.denials[0].tool, "delegate");
}
