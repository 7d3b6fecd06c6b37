//! Executing skills and sub-agents by name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use repertoire_agent::RunOptions;
use repertoire_agent::executor::{ExecuteError, SkillExecutor, SubagentContext};
use repertoire_agent::spending::RunLimits;
use repertoire_scripted::{ModelFault, ModelScript, ScriptedTurn};
use serde_json::json;

use crate::workspace::Workspace;

fn task(text: &str) -> SubagentContext {
    SubagentContext::for_task(text)
}

fn executor(workspace: &Workspace) -> SkillExecutor {
    SkillExecutor::new(workspace.system(), RunOptions::default())
}

async fn with_skill(script: ModelScript, frontmatter: &str) -> Workspace {
    let workspace = Workspace::new(script).await;
    workspace.skill("fixer", &format!("description: Mends things\n{frontmatter}"), "Use glue.");
    workspace
}

#[tokio::test]
async fn a_skill_is_executed_with_its_text_and_its_task() {
    let workspace = with_skill(ModelScript::new().turn(ScriptedTurn::text("Mended.")), "").await;
    let result = executor(&workspace).execute("fixer", &task("The cup broke")).await.unwrap();
    assert!(result.success && !result.metadata.cached, "{result:?}");
    assert_eq!(result.output, "Mended.");
    let request = workspace.requests()[0].body.to_string();
    assert!(request.contains("AUTO-LOADED SKILL: fixer") && request.contains("The cup broke"));
}

#[tokio::test]
async fn a_result_is_kept_for_the_same_input_and_for_no_other() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::text("One."))
        .turn(ScriptedTurn::text("Two."))
        .turn(ScriptedTurn::text("Three."));
    let workspace = with_skill(script, "").await;
    let executor = executor(&workspace);
    let first = executor.execute("fixer", &task("a")).await.unwrap();
    let again = executor.execute("fixer", &task("a")).await.unwrap();
    let other = executor.execute("fixer", &task("b")).await.unwrap();
    assert_eq!(
        (first.output.as_str(), again.output.as_str(), other.output.as_str()),
        ("One.", "One.", "Two.")
    );
    assert!(again.metadata.cached && !other.metadata.cached);
    workspace.skill("fixer", "description: Mends things", "Use nails.");
    let changed = executor.execute("fixer", &task("a")).await.unwrap();
    assert_eq!(changed.output, "Three.", "another text is another skill");
    let metrics = executor.metrics()["fixer"];
    assert_eq!((metrics.runs, metrics.cache_hits, metrics.failures), (3, 1, 0));
}

#[tokio::test]
async fn what_may_not_be_kept_is_not() {
    let script =
        ModelScript::new().turn(ScriptedTurn::text("One.")).turn(ScriptedTurn::text("Two."));
    let workspace = with_skill(script, "cacheable: false").await;
    let executor = executor(&workspace);
    executor.execute("fixer", &task("a")).await.unwrap();
    assert_eq!(executor.execute("fixer", &task("a")).await.unwrap().output, "Two.");
}

#[tokio::test]
async fn a_failed_result_is_tried_again_as_often_as_the_skill_says() {
    let failed = || ScriptedTurn::text(r#"{"success": false, "error": "no glue"}"#);
    let script = ModelScript::new().turn(failed()).turn(ScriptedTurn::text("Mended."));
    let workspace = with_skill(script, "max_retries: 1").await;
    let result = executor(&workspace).execute("fixer", &task("a")).await.unwrap();
    assert!(result.success, "{result:?}");
    assert_eq!(result.metadata.retries, 1);

    let workspace =
        with_skill(ModelScript::new().turn(failed()).repeat_last(), "max_retries: 1").await;
    let executor = executor(&workspace);
    let result = executor.execute("fixer", &task("a")).await.unwrap();
    assert_eq!((result.success, result.error.as_deref()), (false, Some("no glue")));
    assert_eq!(workspace.requests().len(), 2);
    assert_eq!(executor.metrics()["fixer"].failures, 1);
}

#[tokio::test]
async fn a_skill_that_takes_too_long_is_ended() {
    let slow =
        ScriptedTurn::text("word ".repeat(400)).with_fault(ModelFault::Slow { ms_per_event: 50 });
    let workspace =
        with_skill(ModelScript::new().turn(slow), "timeout_ms: 1000\nmax_retries: 0").await;
    let begun = Instant::now();
    let result = executor(&workspace).execute("fixer", &task("a")).await.unwrap();
    assert!(!result.success && begun.elapsed() < Duration::from_secs(3));
    assert_eq!(result.error.as_deref(), Some("`fixer` took longer than 1000 ms (`timeout_ms`)"));
}

#[tokio::test]
async fn tools_that_are_required_must_be_there_and_those_that_are_disallowed_are_not_offered() {
    let workspace = with_skill(ModelScript::new(), "required_tools: [read, teleport]").await;
    let error = executor(&workspace).execute("fixer", &task("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "`fixer` requires tools that are not there: teleport");
    assert!(workspace.requests().is_empty());

    let workspace = with_skill(
        ModelScript::new().turn(ScriptedTurn::text("Ok.")),
        "disallowed_tools: [bash, write]",
    )
    .await;
    executor(&workspace).execute("fixer", &task("a")).await.unwrap();
    let tools = workspace.requests()[0].body["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        names.contains(&"read") && !names.contains(&"bash") && !names.contains(&"write"),
        "{names:?}"
    );
}

#[tokio::test]
async fn no_more_than_three_run_at_once_and_an_agent_no_more_than_it_says() {
    let slow =
        || ScriptedTurn::text("a few words here").with_fault(ModelFault::Slow { ms_per_event: 30 });
    let workspace = Workspace::new(ModelScript::new().turn(slow()).repeat_last()).await;
    workspace.skill("fixer", "description: Mends\ncacheable: false", "Glue.");
    workspace.agent(
        "lone",
        "description: Works alone\ntype: subagent\nmax_concurrent: 1\ncacheable: false",
        "Alone.",
    );
    for (name, most) in [("fixer", 3), ("lone", 1)] {
        let executor = Arc::new(executor(&workspace));
        let before = workspace.requests().len();
        let runs: Vec<_> = (0..5)
            .map(|at| {
                let executor = executor.clone();
                tokio::spawn(async move { executor.execute(name, &task(&format!("{at}"))).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = workspace.requests().len() - before;
        assert!(begun <= most, "{name}: {begun} began at once");
        for run in runs {
            assert!(run.await.unwrap().unwrap().success);
        }
        assert_eq!(workspace.requests().len() - before, 5);
    }
}

#[tokio::test]
async fn a_sub_agent_is_found_by_its_name_and_by_what_it_can_do() {
    let workspace =
        Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Found.")).repeat_last()).await;
    workspace.agent(
        "scout",
        "description: Looks\ntype: subagent\ncapabilities: [web_search]",
        "You look.",
    );
    let executor = executor(&workspace);
    assert!(executor.execute("scout", &task("a")).await.unwrap().success);
    assert!(executor.execute_capability("web_search", &task("b")).await.unwrap().success);
    assert!(workspace.requests()[1].body["system"].to_string().contains("You look."));
    let error = executor.execute_capability("cooking", &task("c")).await.unwrap_err();
    assert!(matches!(error, ExecuteError::NoCapability { .. }), "{error}");
}

#[tokio::test]
async fn a_skill_that_forks_runs_in_a_conversation_of_its_own() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "deep", "arguments": "the cellar"})))
        .turn(ScriptedTurn::text("Nothing but dust."))
        .turn(ScriptedTurn::text("It is empty."));
    let workspace = Workspace::new(script).await;
    workspace.skill("deep", "description: Looks closely\ncontext: fork", "Look into $ARGUMENTS.");
    let report =
        workspace.system().run("default", "What is down there?", RunOptions::default()).await;
    assert_eq!(report.text, "It is empty.");
    let requests = workspace.requests();
    let forked = requests[1].body.to_string();
    assert!(
        forked.contains("Look into the cellar.") && !forked.contains("What is down there?"),
        "{forked}"
    );
    assert!(requests[2].body.to_string().contains("Nothing but dust."));
}

#[tokio::test]
async fn a_skill_that_forks_has_no_more_tools_than_who_called_it() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "deep"})))
        .turn(ScriptedTurn::text("I looked."))
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    workspace.skill("deep", "description: Looks closely\ncontext: fork\nagent: strong", "Look.");
    workspace.agent("strong", "description: Does everything", "Be strong.");
    workspace.agent("careful", "description: Only reads\ntools: [read, skill]", "Be careful.");
    workspace.system().run("careful", "Go", RunOptions::default()).await;
    let forked = workspace.requests()[1].body.clone();
    assert!(!forked.to_string().contains("Be strong."), "{forked}");
    let tools = forked["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["skill", "read"]);
}

#[tokio::test]
async fn a_skill_that_is_tried_again_stays_within_one_purse() {
    let failed = ScriptedTurn::text(r#"{"success": false, "error": "no glue"}"#);
    let script = ModelScript::new().turn(failed).repeat_last();
    let workspace = with_skill(script, "max_retries: 3").await;
    let limits = Some(RunLimits { tokens_max: Some(1), ..RunLimits::default() });
    let options = RunOptions { limits, ..RunOptions::default() };
    let executor = SkillExecutor::new(workspace.system(), options);
    let result = executor.execute("fixer", &task("a")).await.unwrap();
    assert!(result.error.unwrap().contains("tokens were used"));
    assert_eq!(workspace.requests().len(), 1);
}
