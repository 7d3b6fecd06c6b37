//! The loop: limits, shapes, delegation, compaction, both protocols.

use std::time::Duration;

use repertoire_agent::spending::RunLimits;
use repertoire_agent::{AgentRunStatus, EventKind, RunOptions};
use repertoire_scripted::{ModelScript, ScriptedTurn, ScriptedUsage};
use serde_json::{Value, json};

use crate::workspace::{Workspace, config, in_conversation};

const CARD: &str = "description: Knows the house rules for invoices";

fn limits(change: impl FnOnce(&mut RunLimits)) -> RunOptions {
    let mut limits = RunLimits::default();
    change(&mut limits);
    RunOptions { limits: Some(limits), ..RunOptions::default() }
}

fn error(report: &repertoire_agent::RunReport) -> String {
    report.error.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn an_agent_that_never_ends_is_ended_by_its_turns() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill_search", json!({"query": "x"})))
        .repeat_last();
    let workspace = Workspace::new(script).await;
    workspace.skill("invoices", CARD, "Round up.");
    let report =
        workspace.system().run("default", "Go", limits(|limits| limits.iterations_max = 4)).await;
    assert_eq!((report.status, workspace.requests().len()), (AgentRunStatus::Limited, 4));
    assert!(error(&report).contains("4 turns"), "{}", error(&report));
}

#[tokio::test]
async fn tokens_and_money_end_a_run_before_the_next_call() {
    let script = || {
        ModelScript::new()
            .turn(ScriptedTurn::tool("skill_search", json!({"query": "x"})))
            .repeat_last()
    };
    let workspace = Workspace::new(script()).await;
    workspace.skill("invoices", CARD, "Round up.");
    let system = workspace.system();
    let report = system.run("default", "Go", limits(|limits| limits.tokens_max = Some(300))).await;
    assert_eq!(report.status, AgentRunStatus::Limited);
    assert!(report.usage.total() >= 300 && report.usage.total() < 500, "{:?}", report.usage);
    let report =
        system.run("default", "Go", limits(|limits| limits.cost_usd_max = Some(0.0005))).await;
    assert_eq!(report.status, AgentRunStatus::Limited, "{report:?}");
    assert!(error(&report).contains("--max-cost"), "{}", error(&report));
    assert!(report.cost_usd.unwrap() < 0.001);
}

#[tokio::test]
async fn a_limit_on_cost_with_a_model_of_unknown_price_is_refused() {
    let workspace = Workspace::new(ModelScript::new()).await;
    let options = RunOptions {
        model: Some("compat/unknown".parse().unwrap()),
        ..limits(|limits| limits.cost_usd_max = Some(1.0))
    };
    let report = workspace.system().run("default", "Go", options).await;
    assert!(error(&report).contains("price of compat/unknown is not known"), "{}", error(&report));
    assert!(workspace.requests().is_empty());
}

#[tokio::test]
async fn time_ends_a_run_in_the_middle_of_an_answer() {
    let slow = ScriptedTurn::text("word ".repeat(400))
        .with_fault(repertoire_scripted::ModelFault::Slow { ms_per_event: 50 });
    let workspace = Workspace::new(ModelScript::new().turn(slow)).await;
    let options = limits(|limits| limits.duration_max = Duration::from_millis(300));
    let begun = std::time::Instant::now();
    let report = workspace.system().run("default", "Go", options).await;
    assert_eq!(report.status, AgentRunStatus::Limited);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_run_that_is_stopped_says_so_and_can_go_on() {
    let slow = ScriptedTurn::text("word ".repeat(400))
        .with_fault(repertoire_scripted::ModelFault::Slow { ms_per_event: 50 });
    let workspace =
        Workspace::new(ModelScript::new().turn(slow).turn(ScriptedTurn::text("Here."))).await;
    let system = workspace.system();
    let options = in_conversation("c");
    let cancel = options.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        cancel.cancel();
    });
    let report = system.run("default", "Go", options).await;
    assert_eq!(report.status, AgentRunStatus::Cancelled);
    let report = system.run("default", "Still there?", in_conversation("c")).await;
    assert_eq!(report.text, "Here.");
}

#[tokio::test]
async fn both_protocols_place_skills_where_they_belong() {
    for model in ["openai/gpt-5-mini", "compat/llama3"] {
        let workspace =
            Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last()).await;
        workspace.skill("invoices", CARD, "Round up.").skill(
            "letters",
            "description: Writes letters",
            "Be kind.",
        );
        let system = workspace.system();
        let options = |id: &str, skill: &str| RunOptions {
            model: Some(model.parse().unwrap()),
            skills: vec![skill.to_owned()],
            ..in_conversation(id)
        };
        system.run("default", "Write", options("c", "invoices")).await;
        system.run("default", "And now", options("c", "letters")).await;
        let requests = workspace.requests();
        let first = requests[0].body["messages"].as_array().unwrap();
        assert_eq!(first.len(), 2, "one system message and the user's: {first:?}");
        assert!(first[0]["content"].as_str().unwrap().contains("AUTO-LOADED SKILL: invoices"));
        let second = requests[1].body["messages"].as_array().unwrap();
        let systems = second.iter().filter(|message| message["role"] == "system").count();
        assert_eq!(systems, 1, "many servers take one system message, at the start: {second:?}");
        assert!(second.last().unwrap().to_string().contains("AUTO-LOADED SKILL: letters"));
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_sent_back_and_then_refused() {
    let schema = "description: Judges\njson_schema: {type: object, required: [ok], properties: {ok: {type: boolean}}}";
    let call = |arguments: Value| ScriptedTurn::tool("structured_output", arguments);
    let script =
        ModelScript::new().turn(call(json!({"ok": "maybe"}))).turn(call(json!({"ok": true})));
    let workspace = Workspace::new(script).await;
    workspace.agent("judge", schema, "Judge.");
    let report = workspace.system().run("judge", "Is it?", RunOptions::default()).await;
    assert_eq!(report.structured, Some(json!({"ok": true})), "{report:?}");

    let workspace =
        Workspace::new(ModelScript::new().turn(call(json!({"ok": 1}))).repeat_last()).await;
    workspace.agent("judge", schema, "Judge.");
    let report = workspace.system().run("judge", "Is it?", RunOptions::default()).await;
    assert_eq!((report.status, workspace.requests().len()), (AgentRunStatus::Failed, 3));
}

#[tokio::test]
async fn a_sub_agent_sees_nothing_but_its_task_and_its_answer_comes_back() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "helper", "task": "Count the beans"})))
        .turn(ScriptedTurn::text("There are 7 beans."))
        .turn(ScriptedTurn::text("Seven."));
    let workspace = Workspace::new(script).await;
    workspace.agent("helper", "description: Counts", "You count.");
    let report = workspace.system().run("default", "A secret wish", RunOptions::default()).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "Seven."));
    let requests = workspace.requests();
    let child = requests[1].body.to_string();
    assert!(child.contains("Count the beans") && child.contains("You count."), "{child}");
    assert!(!child.contains("A secret wish"), "{child}");
    assert!(requests[2].body.to_string().contains("There are 7 beans."));
    assert_eq!(report.usage.total(), 3 * 120, "the child's tokens count");
}

#[tokio::test]
async fn delegation_ends_at_its_depth() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "default", "task": "Go deeper"})))
        .repeat_last();
    let workspace = Workspace::new(script).await;
    let options = limits(|limits| {
        limits.depth_max = 2;
        limits.iterations_max = 2;
    });
    let report = workspace.system().run("default", "Go", options).await;
    assert_eq!(report.status, AgentRunStatus::Limited);
    let deepest = workspace
        .requests()
        .iter()
        .map(|request| {
            let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
            tools.iter().any(|tool| tool["name"] == "delegate")
        })
        .filter(|has| !has)
        .count();
    assert!(deepest > 0, "the deepest agent is not offered the tool");
}

#[tokio::test]
async fn a_long_conversation_is_made_shorter_and_keeps_its_skills() {
    let mut script =
        ModelScript::new().turn(ScriptedTurn::tool("skill", json!({"name": "invoices"})));
    for _ in 0..30 {
        script = script.turn(ScriptedTurn::respond(|request| {
            let input_tokens = request.body.to_string().len() as u64 / 4;
            let usage = ScriptedUsage { input_tokens, ..ScriptedUsage::default() };
            ScriptedTurn::tool("echo", json!({"times": 40_000})).with_usage(usage)
        }));
    }
    let script = script.turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    workspace.skill("invoices", CARD, "Always round up, never down.");
    let mut config = config();
    config.model = "compat/small".parse().unwrap();
    let mut prices = repertoire_model::prices::ModelPrices::builtin();
    let table = "[\"compat/small\"]\ncontext_tokens = 60000\noutput_tokens_max = 1000\ninput_usd = 0.0\noutput_usd = 0.0\ncache_read_usd = 0.0\ncache_write_usd = 0.0\n";
    prices.extend(&table.parse().unwrap()).unwrap();
    let system = workspace
        .builder()
        .config(config)
        .prices(prices)
        .tool(std::sync::Arc::new(Echo))
        .build()
        .unwrap();
    let report = system.run("default", "Send the letters", RunOptions::default()).await;
    assert!(matches!(report.status, AgentRunStatus::Done), "{report:?}");
    let compactions =
        workspace.kinds().into_iter().filter(|kind| matches!(kind, EventKind::Compacted { .. }));
    assert!(compactions.count() > 0);
    let requests = workspace.requests();
    for request in requests.iter().skip(2).filter(|request| !request.body["tools"].is_null()) {
        let text = request.body.to_string();
        assert!(text.len() < 60_000 * 4, "{}", text.len());
        assert!(text.contains("Always round up"), "the skill's text is gone");
        assert!(text.contains("Send the letters"), "the task is gone");
    }
}

/// Answers with as many letters as it is asked for.
struct Echo;

impl repertoire_agent::tool::Tool for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn spec(&self, _run: &repertoire_agent::run::AgentRun) -> repertoire_model::ToolSpec {
        repertoire_model::ToolSpec {
            name: "echo".into(),
            description: "Echoes.".into(),
            parameters: json!({"type": "object", "properties": {"times": {"type": "integer"}}}),
        }
    }

    fn access(&self, _arguments: &Value) -> repertoire_agent::tool::ToolAccess {
        repertoire_agent::tool::ToolAccess::None
    }

    fn subject(&self, _arguments: &Value) -> String {
        "echo".into()
    }

    fn call<'a>(
        &'a self,
        call: repertoire_agent::tool::ToolInvocation<'a>,
    ) -> futures_util::future::BoxFuture<'a, repertoire_agent::tool::ToolOutput> {
        let times = call.arguments["times"].as_u64().unwrap_or_default();
        let text = "x".repeat(usize::try_from(times).unwrap_or_default());
        Box::pin(async move { repertoire_agent::tool::ToolOutput::ok(text) })
    }
}
