//! The sentences that the project was asked with, end to end.

use repertoire_agent::event::LoadedBy;
use repertoire_agent::{AgentRunStatus, EventKind, RunOptions};
use repertoire_scripted::{ModelScript, ScriptedTurn};
use serde_json::json;

use crate::workspace::{Workspace, in_conversation};

const TENDER: &str = "description: Danish public tender compliance rules and formatting standards
triggers:
  keywords: [danish tender, dansk udbud, offentlig udbud, tender compliance, udbudsbetingelser]
  patterns: ['analyz.*danish.*tender', 'tender.*denmark|danish', 'udbud.*analyse']
  confidence: 0.7";
const ANALYST: &str =
    "description: Evaluates software in tenders\ntools: [read, write, grep, skill]";
const TASK: &str = "Analyze this Danish tender for compliance";

async fn tender(script: ModelScript) -> Workspace {
    let workspace = Workspace::new(script).await;
    workspace
        .skill(
            "danish-tender-guidelines",
            TENDER,
            "Mark facts with [FAKTA], estimates with [ESTIMAT].",
        )
        .skill("sourdough", "description: How to bake bread with a starter", "Feed the starter.")
        .agent("technical-analyst", ANALYST, "You are a technical analyst.");
    workspace
}

fn loaded(workspace: &Workspace) -> Vec<(String, LoadedBy, bool)> {
    let of = |kind| match kind {
        EventKind::SkillLoaded { skill, by, already, .. } => Some((skill, by, already)),
        _ => None,
    };
    workspace.kinds().into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_danish_tender_loads_its_guidelines_without_a_call_of_a_tool() {
    let workspace =
        tender(ModelScript::new().turn(ScriptedTurn::text("[FAKTA] It complies."))).await;
    let report = workspace.system().run("technical-analyst", TASK, RunOptions::default()).await;
    assert_eq!(report.status, AgentRunStatus::Done, "{report:?}");
    assert_eq!(report.skills, ["danish-tender-guidelines"]);
    assert_eq!(report.text, "[FAKTA] It complies.");
    let request = &workspace.requests()[0].body;
    let system = request["system"].as_array().unwrap();
    assert!(system[0]["text"].as_str().unwrap().starts_with("You are a technical analyst."));
    let skill = system[1]["text"].as_str().unwrap();
    assert!(skill.starts_with("## AUTO-LOADED SKILL: danish-tender-guidelines"), "{skill}");
    assert!(skill.contains("[FAKTA]") && skill.contains("automatically loaded"), "{skill}");
    assert_eq!(request["messages"][0]["content"][0]["text"], TASK);
}

#[tokio::test]
async fn a_second_call_in_the_conversation_uses_the_ledger_and_another_conversation_does_not() {
    let script = ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last();
    let workspace = tender(script).await;
    let system = workspace.system();
    system.run("technical-analyst", TASK, in_conversation("one")).await;
    system.run("technical-analyst", TASK, in_conversation("one")).await;
    system.run("technical-analyst", TASK, in_conversation("two")).await;
    let skill = || "danish-tender-guidelines".to_owned();
    let by = LoadedBy::AutoTrigger;
    assert_eq!(
        loaded(&workspace),
        [(skill(), by, false), (skill(), by, true), (skill(), by, false)]
    );
    let second = workspace.requests()[1].body.to_string();
    assert_eq!(second.matches("AUTO-LOADED SKILL").count(), 1, "{second}");
}

#[tokio::test]
async fn the_model_loads_a_skill_itself_and_a_second_time_gets_a_word_instead_of_the_text() {
    let ask = || ScriptedTurn::tool("skill", json!({"name": "danish-tender-guidelines"}));
    let script = ModelScript::new().turn(ask()).turn(ask()).turn(ScriptedTurn::text("Done."));
    let workspace = tender(script).await;
    let report = workspace
        .system()
        .run("technical-analyst", "Help me with this", RunOptions::default())
        .await;
    assert_eq!(report.status, AgentRunStatus::Done, "{report:?}");
    let skill = || "danish-tender-guidelines".to_owned();
    assert_eq!(
        loaded(&workspace),
        [(skill(), LoadedBy::Tool, false), (skill(), LoadedBy::Tool, true)]
    );
    let requests = workspace.requests();
    assert!(requests[1].body.to_string().contains("[ESTIMAT]"));
    assert!(requests[2].body.to_string().contains("already loaded in this conversation"));
}

#[tokio::test]
async fn a_skill_that_is_not_there_is_answered_with_those_that_are() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "danish-tender-guideline"})))
        .turn(ScriptedTurn::text("Done."));
    let workspace = tender(script).await;
    workspace.system().run("technical-analyst", "Help me", RunOptions::default()).await;
    let answer = workspace.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("danish-tender-guidelines"), "{answer}");
}

#[tokio::test]
async fn an_unknown_agent_is_an_error_with_a_suggestion() {
    let workspace = tender(ModelScript::new()).await;
    let report = workspace.system().run("technical-analist", TASK, RunOptions::default()).await;
    let error = report.into_answer().unwrap_err().to_string();
    assert_eq!(error, "there is no agent `technical-analist`; did you mean `technical-analyst`?");
    assert!(workspace.requests().is_empty());
}

#[tokio::test]
async fn edits_of_agents_and_skills_are_live() {
    let script = ModelScript::new().turn(ScriptedTurn::text("Yes.")).repeat_last();
    let workspace = tender(script).await;
    let system = workspace.system();
    system.run("technical-analyst", TASK, RunOptions::default()).await;
    workspace.agent("technical-analyst", ANALYST, "You are a changed analyst.").skill(
        "danish-tender-guidelines",
        TENDER,
        "Another rule altogether.",
    );
    system.run("technical-analyst", TASK, RunOptions::default()).await;
    let request = workspace.requests()[1].body.to_string();
    assert!(request.contains("changed analyst") && request.contains("Another rule"), "{request}");
}
