//! What a run may do: rules, questions, and what skills change about it.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use repertoire_agent::backend::{Backend, Finished, Freedom, Holds, Job, Keeps, Rules};
use repertoire_agent::event::Events;
use repertoire_agent::permission::{Answer, Asker, Mode, Permissions, Question};
use repertoire_agent::{EventKind, Report, RunOptions};
use repertoire_scripted::{Script, Turn};
use serde_json::json;

use crate::workspace::Workspace;

fn writing() -> Script {
    let write = || Turn::tool("write", json!({"path": "new.txt", "content": "hello"}));
    Script::new().turn(write()).turn(write()).turn(Turn::text("Done."))
}

async fn run(workspace: &Workspace, options: RunOptions) -> Report {
    workspace.system().run("default", "Write it", options).await
}

fn permissions(permissions: Permissions) -> RunOptions {
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

impl Asker for Person {
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
    let mut rules = Permissions::default();
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
    let mut rules = Permissions::new(Mode::ReadOnly);
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
    let script = Script::new()
        .turn(Turn::tool("skill", json!({"name": "scribe"})))
        .turn(Turn::tool("write", json!({"path": "new.txt", "content": "hello"})))
        .turn(Turn::text("Done."));
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
    let script = Script::new()
        .turn(Turn::tool("delegate", json!({"agent": "default", "task": "Write it"})))
        .turn(Turn::tool("write", json!({"path": "new.txt", "content": "hello"})))
        .turn(Turn::text("I could not."))
        .turn(Turn::text("Done."));
    let workspace = Workspace::new(script).await;
    run(&workspace, permissions(Permissions::new(Mode::ReadOnly))).await;
    assert!(!is_written(&workspace));
}

/// Somebody else's agent that does nothing but remember what it was asked.
struct Other {
    holds: Holds,
    asked: Mutex<Vec<Job>>,
}

impl Backend for Other {
    fn name(&self) -> &str {
        "other"
    }

    fn holds(&self) -> Holds {
        self.holds
    }

    fn run<'a>(&'a self, job: &'a Job, _events: &'a Events) -> BoxFuture<'a, Finished> {
        self.asked.lock().unwrap().push(job.clone());
        Box::pin(async {
            Finished {
                status: repertoire_agent::Status::Done,
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

async fn handed_over(rules: Rules, permissions: Permissions) -> (Report, Vec<Job>, Workspace) {
    let keeps = match rules {
        Rules::All => Keeps::EveryEffect,
        Rules::Freedom => Keeps::ToolsOnly,
        Rules::Nothing => Keeps::Nothing,
    };
    let workspace = Workspace::new(Script::new()).await;
    let other = Arc::new(Other {
        holds: Holds { rules, effects: keeps, sandbox: false, service: None },
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
        (Mode::Default, Freedom::ReadOnly),
        (Mode::ReadOnly, Freedom::ReadOnly),
        (Mode::AcceptEdits, Freedom::Workspace),
        (Mode::Full, Freedom::Full),
    ] {
        let (_, asked, _) = handed_over(Rules::Freedom, Permissions::new(mode)).await;
        assert_eq!(asked[0].freedom, freedom, "{mode:?}");
    }
}

#[tokio::test]
async fn rules_that_somebody_elses_agent_cannot_keep_keep_it_from_running() {
    let mut rules = Permissions::new(Mode::Full);
    rules.deny.push("bash(rm:*)".parse().unwrap());
    for keeps in [Rules::Freedom, Rules::Nothing] {
        let (report, asked, _) = handed_over(keeps, rules.clone()).await;
        assert!(asked.is_empty());
        let error = report.into_answer().unwrap_err().to_string();
        assert!(error.starts_with("other: it cannot be held to rules that deny"), "{error}");
    }
    let (_, asked, _) = handed_over(Rules::All, rules).await;
    assert_eq!(asked[0].told.denied, ["bash(rm:*)"]);
    let (report, asked, _) = handed_over(Rules::Nothing, Permissions::new(Mode::ReadOnly)).await;
    assert!(asked.is_empty() && report.error.is_some());
}

#[tokio::test]
async fn what_somebody_elses_agent_lacks_is_told() {
    let (_, _, workspace) = handed_over(Rules::Freedom, Permissions::new(Mode::Full)).await;
    let told = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::Degraded { message, .. } => Some(message),
        _ => None,
    });
    assert_eq!(told.as_deref(), Some("other runs its commands without our sandbox."));
}

#[tokio::test]
async fn a_rule_also_denies_what_touches_nothing() {
    let script = Script::new()
        .turn(Turn::tool("delegate", json!({"agent": "default", "task": "Write it"})))
        .turn(Turn::text("Done."));
    let workspace = Workspace::new(script).await;
    let mut rules = Permissions::default();
    rules.deny.push("Task".parse().unwrap());
    let report = run(&workspace, permissions(rules)).await;
    assert_eq!(report.denials.len(), 1);
    assert_eq!(report.denials[0].tool, "delegate");
}
