//! What lasts over turns, runs, sub-agents and backends, and what does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_agent::backend::{Backend, BackendJob, BackendResult};
use repertoire_agent::event::EventEmitter;
use repertoire_agent::executor::{SkillExecutor, SubagentContext};
use repertoire_agent::run::AgentRun;
use repertoire_agent::spending::RunLimits;
use repertoire_agent::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};
use repertoire_agent::{AgentRunStatus, EventKind, RunOptions, System};
use repertoire_model::{TokenUsage, ToolSpec};
use repertoire_scripted::{ModelFault, ModelScript, ScriptedToolUse, ScriptedTurn};
use repertoire_text::clock::Clock;
use serde_json::{Value, json};

use crate::workspace::{Workspace, config, in_conversation};

fn delegated(agent: &str) -> ScriptedToolUse {
    ScriptedToolUse::new("delegate", json!({"agent": agent, "task": "Count the beans"}))
}

fn within_seconds(seconds: u64) -> RunOptions {
    let duration_max = Duration::from_secs(seconds);
    let limits = RunLimits { duration_max, ..RunLimits::default() };
    RunOptions { limits: Some(limits), ..RunOptions::default() }
}

#[tokio::test]
async fn an_agent_of_which_one_may_work_can_delegate_to_itself() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tools(vec![delegated("counter")]))
        .turn(ScriptedTurn::text("There are 7 beans."))
        .turn(ScriptedTurn::text("Seven."));
    let workspace = Workspace::new(script).await;
    workspace.agent("counter", "description: Counts\nmax_concurrent: 1", "You count.");
    let report = workspace.system().run("counter", "Go", within_seconds(5)).await;
    assert_eq!(
        (report.status, report.text.as_str()),
        (AgentRunStatus::Done, "Seven."),
        "{report:?}"
    );
}

#[tokio::test]
async fn waiting_for_a_conversation_that_is_in_use_can_be_stopped() {
    let slow =
        ScriptedTurn::text("word ".repeat(400)).with_fault(ModelFault::Slow { ms_per_event: 50 });
    let workspace = Workspace::new(ModelScript::new().turn(slow)).await;
    let system = workspace.system();
    let (first, second) = (in_conversation("c"), in_conversation("c"));
    let (stop_first, stop_second) = (first.cancel.clone(), second.cancel.clone());
    let busy = tokio::spawn({
        let system = system.clone();
        async move { system.run("default", "Go", first).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop_second.cancel();
    let waiting = system.run("default", "And I?", second);
    let report = tokio::time::timeout(Duration::from_secs(2), waiting).await.unwrap();
    assert_eq!(report.status, AgentRunStatus::Cancelled);
    stop_first.cancel();
    busy.await.unwrap();
}

#[tokio::test]
async fn sub_agents_that_work_at_once_each_report_what_they_used_themselves() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tools(vec![delegated("default"), delegated("default")]))
        .turn(ScriptedTurn::text("One.").with_fault(ModelFault::Slow { ms_per_event: 20 }))
        .turn(ScriptedTurn::text("Two.").with_fault(ModelFault::Slow { ms_per_event: 20 }))
        .turn(ScriptedTurn::text("Three."));
    let workspace = Workspace::new(script).await;
    workspace.system().run("default", "Go", RunOptions::default()).await;
    let used = |kind| match kind {
        EventKind::RunFinished { usage, .. } => Some(usage.total()),
        _ => None,
    };
    let used: Vec<u64> = workspace.kinds().into_iter().filter_map(used).collect();
    assert_eq!(used, [120, 120, 480]);
}

#[tokio::test]
async fn a_sub_agent_without_a_model_takes_the_one_that_was_asked_for() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tools(vec![delegated("plain"), delegated("choosy")]))
        .turn(ScriptedTurn::text("Seven."))
        .repeat_last();
    let workspace = Workspace::new(script).await;
    workspace.agent("plain", "description: Counts", "You count.").agent(
        "choosy",
        "description: Counts\nmodel: openai/gpt-5-mini",
        "You count.",
    );
    let model = Some("compat/llama3".parse().unwrap());
    workspace.system().run("default", "Go", RunOptions { model, ..RunOptions::default() }).await;
    let requests = workspace.requests();
    let mut models: Vec<&str> =
        requests[1..3].iter().filter_map(|request| request.body["model"].as_str()).collect();
    models.sort_unstable();
    assert_eq!(models, ["gpt-5-mini", "llama3"]);
}

#[tokio::test]
async fn tools_are_described_the_same_as_long_as_a_conversation_lasts() {
    let workspace =
        Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last()).await;
    workspace.skill("invoices", "description: Writes invoices for customers", "Round up.").skill(
        "sourdough",
        "description: How to bake bread with a starter",
        "Feed it.",
    );
    let system = workspace.system();
    system.run("default", "Write invoices for customers", in_conversation("c")).await;
    system.run("default", "How do I bake bread with a starter?", in_conversation("c")).await;
    let requests = workspace.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
}

#[tokio::test]
async fn what_was_said_before_a_limit_is_in_the_report() {
    let turn = ScriptedTurn::text("So far: three.").and_tool("list", json!({}));
    let workspace = Workspace::new(ModelScript::new().turn(turn).repeat_last()).await;
    let limits = Some(RunLimits { iterations_max: 1, ..RunLimits::default() });
    let options = RunOptions { limits, ..RunOptions::default() };
    let report = workspace.system().run("default", "Go", options).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Limited, "So far: three."));
}

#[tokio::test]
async fn a_call_that_is_stopped_has_a_result_all_the_same() {
    let workspace =
        Workspace::new(ModelScript::new().turn(ScriptedTurn::tool("nap", json!({})))).await;
    let system = workspace.builder().config(config()).tool(Arc::new(Nap)).build().unwrap();
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let report = system.run("default", "Go", options).await;
    assert_eq!(report.status, AgentRunStatus::Cancelled);
    let kinds = workspace.kinds();
    let result = kinds.iter().position(
        |kind| matches!(kind, EventKind::ToolResult { tool, is_error: true, .. } if tool == "nap"),
    );
    let end = kinds.iter().position(|kind| matches!(kind, EventKind::RunFinished { .. }));
    assert!(result.is_some() && result < end, "{kinds:?}");
}

#[tokio::test]
async fn an_answer_that_is_stopped_is_paid_for_as_far_as_it_came() {
    let slow =
        ScriptedTurn::text("word ".repeat(400)).with_fault(ModelFault::Slow { ms_per_event: 50 });
    let workspace = Workspace::new(ModelScript::new().turn(slow)).await;
    let options = RunOptions::default();
    let cancel = options.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let report = workspace.system().run("default", "Go", options).await;
    assert_eq!((report.status, report.usage.input_tokens), (AgentRunStatus::Cancelled, 100));
    assert!(report.cost_usd.unwrap() > 0.0);
}

#[tokio::test]
async fn who_waits_for_a_service_that_is_being_tried_is_not_given_up() {
    let broken = || ScriptedTurn::fail(ModelFault::status(500, "{}"));
    let slow =
        ScriptedTurn::text("word ".repeat(160)).with_fault(ModelFault::Slow { ms_per_event: 50 });
    let mut script = ModelScript::new();
    for _ in 0..5 {
        script = script.turn(broken());
    }
    let workspace =
        Workspace::new(script.turn(slow).turn(ScriptedTurn::text("Yes.")).repeat_last()).await;
    let now = Arc::new(Later(AtomicU64::new(1_000_000)));
    let system = workspace.builder().config(config()).clock(now.clone()).build().unwrap();
    for _ in 0..2 {
        let report = system.run("default", "Go", RunOptions::default()).await;
        assert_eq!(report.status, AgentRunStatus::Failed);
    }
    now.0.fetch_add(61_000, Ordering::Relaxed);
    let trying = tokio::spawn({
        let system = system.clone();
        async move { system.run("default", "Go", RunOptions::default()).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let waiting = system.run("default", "Go", RunOptions::default()).await;
    assert_eq!(
        (waiting.status, waiting.text.as_str()),
        (AgentRunStatus::Done, "Yes."),
        "{waiting:?}"
    );
    assert_eq!(trying.await.unwrap().status, AgentRunStatus::Done);
}

/// A clock that is set by hand.
struct Later(AtomicU64);

impl Clock for Later {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_skill_that_works_apart_is_left_to_the_model_unless_it_is_named() {
    let workspace =
        Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last()).await;
    let card =
        "description: Audits ledgers\ncontext: fork\ntriggers:\n  keywords: [audit the ledgers]";
    workspace.skill("auditor", card, "Mind the pennies.");
    let system = workspace.system();
    system.run("default", "Please audit the ledgers", RunOptions::default()).await;
    let skills = vec!["auditor".to_owned()];
    system.run("default", "Go", RunOptions { skills, ..RunOptions::default() }).await;
    let has = |at: usize| workspace.requests()[at].body.to_string().contains("Mind the pennies.");
    assert_eq!((has(0), has(1)), (false, true));
    assert!(workspace.kinds().iter().any(
        |kind| matches!(kind, EventKind::SkillsSelected { picks, .. } if picks[0].strategy == "trigger")
    ));
}

#[tokio::test]
async fn a_skill_that_changed_is_put_back_as_it_is_now() {
    let mut script = ModelScript::new().turn(ScriptedTurn::text("Yes."));
    for _ in 0..8 {
        script = script.turn(
            ScriptedTurn::tool("nap", json!({"letters": 28_000})).and_text("x".repeat(9_000)),
        );
    }
    let script = script.turn(ScriptedTurn::text("Done.")).repeat_last().aside("A summary.");
    let workspace = Workspace::new(script).await;
    workspace.skill("invoices", "description: Rules", "Round up.");
    let system = small(&workspace, 16_000);
    let with = || RunOptions { skills: vec!["invoices".to_owned()], ..in_conversation("c") };
    system.run("default", "Go", with()).await;
    workspace.skill("invoices", "description: Rules", "Round down.");
    system.run("default", "Go on", with()).await;
    let compacted =
        |kind: &EventKind| matches!(kind, EventKind::Compacted { messages, .. } if *messages > 0);
    assert!(workspace.kinds().iter().any(compacted), "the conversation was long");
    let requests = workspace.requests();
    let last = requests.last().unwrap().body["messages"].to_string();
    assert!(last.contains("Round down."), "the skill as it is now");
    assert!(last.contains("Go on"), "what was asked last");
}

#[tokio::test]
async fn a_task_that_fills_the_model_is_not_summarised_on_every_turn() {
    let mut script = ModelScript::new();
    for _ in 0..6 {
        script = script.turn(ScriptedTurn::tool("nap", json!({"letters": 10})));
    }
    let workspace =
        Workspace::new(script.turn(ScriptedTurn::text("Done.")).aside("A summary.")).await;
    let system = small(&workspace, 2_000);
    let report = system.run("default", "word ".repeat(24_000), RunOptions::default()).await;
    assert_eq!(report.text, "Done.");
    assert_eq!(workspace.requests().len(), 7, "there is nothing to win");
}

/// A system whose model reads little, with no skills but those that are named.
fn small(workspace: &Workspace, context_tokens: u64) -> System {
    let mut config = config();
    config.model = "compat/small".parse().unwrap();
    config.auto_trigger.enabled = false;
    let mut prices = repertoire_model::prices::ModelPrices::builtin();
    let table = format!(
        "[\"compat/small\"]\ncontext_tokens = {context_tokens}\noutput_tokens_max = 1000\ninput_usd = 0.0\noutput_usd = 0.0\n"
    );
    prices.extend(&table.parse().unwrap()).unwrap();
    let builder = workspace.builder().config(config).prices(prices);
    builder.tool(Arc::new(Nap)).build().unwrap()
}

#[tokio::test]
async fn an_agent_that_was_edited_speaks_with_its_new_words_in_an_old_conversation() {
    let workspace =
        Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last()).await;
    workspace.agent("clerk", "description: Writes", "Be long.");
    workspace.agent("judge", "description: Judges", "Be fair.");
    let system = workspace.system();
    system.run("clerk", "Go", in_conversation("c")).await;
    workspace.agent("clerk", "description: Writes", "Be brief.");
    system.run("clerk", "Go on", in_conversation("c")).await;
    system.run("judge", "And?", in_conversation("c")).await;
    let prompts: Vec<String> =
        workspace.requests().iter().map(|request| request.body["system"].to_string()).collect();
    assert!(prompts[0].contains("Be long."), "{}", prompts[0]);
    assert!(prompts[1].contains("Be brief.") && !prompts[1].contains("Be long."), "{}", prompts[1]);
    assert!(prompts[2].contains("Be fair.") && !prompts[2].contains("Be brief."), "{}", prompts[2]);
}

#[tokio::test]
async fn a_skill_that_there_is_no_room_for_after_compaction_can_be_loaded_again() {
    let mut script = ModelScript::new();
    for number in 0..8 {
        script = script.turn(ScriptedTurn::tool("skill", json!({"name": format!("s{number}")})));
    }
    for _ in 0..8 {
        script = script.turn(ScriptedTurn::tool("nap", json!({"letters": 28_000})));
    }
    let script = script
        .turn(ScriptedTurn::tool("skill", json!({"name": "s0"})))
        .turn(ScriptedTurn::text("Done."))
        .repeat_last()
        .aside("A summary.");
    let workspace = Workspace::new(script).await;
    for number in 0..8 {
        let body = format!("Rule {number}: {}", "be kind ".repeat(2_400));
        workspace.skill(&format!("s{number}"), "description: Rules", &body);
    }
    let system = small(&workspace, 40_000);
    system.run("default", "Learn the rules", RunOptions::default()).await;
    let left_out = workspace.kinds().into_iter().any(
        |kind| matches!(kind, EventKind::SkillFailed { skill, message } if skill == "s0" && message.contains("room")),
    );
    assert!(left_out, "the oldest does not fit");
    let requests = workspace.requests();
    let last = requests.last().unwrap().body["messages"].to_string();
    assert!(last.contains("Rule 0: be kind"), "its text comes again");
}

#[tokio::test]
async fn the_tools_that_a_skill_forbids_are_also_kept_from_an_agent_that_it_names() {
    let workspace = Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Yes."))).await;
    workspace.agent("clerk", "description: Writes\ntools: [read, list]", "You write.").skill(
        "careful",
        "description: Takes care\nagent: clerk\ndisallowed_tools: [list]",
        "Take care.",
    );
    let executor = SkillExecutor::new(workspace.system(), RunOptions::default());
    executor.execute("careful", &SubagentContext::for_task("Go")).await.unwrap();
    let body = &workspace.requests()[0].body;
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["read"]);
    assert!(body["system"].to_string().contains("You write."));
}

#[tokio::test]
async fn a_session_goes_on_where_it_is_and_nowhere_else() {
    let workspace = Workspace::new(ModelScript::new().turn(ScriptedTurn::text("From here."))).await;
    workspace.agent("clerk", "description: Writes", "Be brief.");
    let system = workspace.system();
    let (one, other) = (Arc::new(Elsewhere::new("one")), Arc::new(Elsewhere::new("other")));
    let at = |backend: &Arc<Elsewhere>| RunOptions {
        backend: Some(backend.clone()),
        ..in_conversation("c")
    };
    system.run("clerk", "First", at(&one)).await;
    system.run("clerk", "Second", at(&one)).await;
    system.run("clerk", "Third", at(&other)).await;
    system.run("clerk", "Fourth", in_conversation("c")).await;
    system.run("clerk", "Fifth", at(&other)).await;
    let jobs = one.jobs.lock().unwrap();
    assert_eq!((jobs[1].session.as_deref(), jobs[1].prompt.as_str()), (Some("one-1"), "Second"));
    assert!(jobs[1].system.contains("Be brief."), "programs forget the operator's words");
    let jobs = other.jobs.lock().unwrap();
    assert_eq!(jobs[0].session, None, "the other knows nothing of it");
    assert!(jobs[0].prompt.contains("First") && jobs[0].prompt.contains("Third"));
    assert_eq!(jobs[1].session, None, "it has not heard what was said here");
    assert!(jobs[1].prompt.contains("From here.") && jobs[1].prompt.contains("Fifth"));
}

/// Somebody else's agent, which remembers what it was asked.
struct Elsewhere {
    name: &'static str,
    jobs: Mutex<Vec<BackendJob>>,
}

impl Elsewhere {
    fn new(name: &'static str) -> Self {
        Elsewhere { name, jobs: Mutex::default() }
    }
}

impl Backend for Elsewhere {
    fn name(&self) -> &str {
        self.name
    }

    fn enforcement(&self) -> repertoire_agent::backend::BackendEnforcement {
        let rules = repertoire_agent::backend::RuleEnforcement::All;
        let effects = repertoire_agent::backend::EffectEnforcement::EveryEffect;
        repertoire_agent::backend::BackendEnforcement {
            rules,
            effects,
            sandbox: true,
            service: None,
        }
    }

    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        _events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        self.jobs.lock().unwrap().push(job.clone());
        Box::pin(std::future::ready(BackendResult {
            status: AgentRunStatus::Done,
            text: "From there.".to_owned(),
            structured: None,
            error: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            iterations: 1,
            denials: Vec::new(),
            session: Some(format!("{}-1", self.name)),
            resets_at_ms: None,
        }))
    }
}

/// Answers with letters, or not at all.
struct Nap;

impl Tool for Nap {
    fn name(&self) -> &str {
        "nap"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        let parameters = json!({"type": "object", "properties": {"letters": {"type": "integer"}}});
        ToolSpec { name: "nap".into(), description: "Naps.".into(), parameters }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::None
    }

    fn subject(&self, _arguments: &Value) -> String {
        String::new()
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match call.arguments["letters"].as_u64() {
                Some(letters) => ToolOutput::ok("z".repeat(usize::try_from(letters).unwrap())),
                None => std::future::pending().await,
            }
        })
    }
}
