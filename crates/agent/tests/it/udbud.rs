//! The agents and skills of `examples/udbud`, as they are shipped.

use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use futures_util::future::BoxFuture;
use repertoire_agent::definition::AgentDefinition;
use repertoire_agent::event::LoadedBy;
use repertoire_agent::middleware::{
    AgentTurn as Moment, MiddlewareNext, TurnError, TurnMiddleware,
};
use repertoire_agent::{AgentEvent, AgentRunStatus, EventKind, RunOptions, System};
use repertoire_model::{ResponseFormat, ThinkingMode};
use repertoire_scripted::{ModelScript, ScriptedTurn};
use repertoire_skill::limits::SkillLimits;
use repertoire_skill::lint::{LintRequest, LintRuleSet, lint_paths};
use serde_json::{Value, json};

use crate::workspace::{Workspace, config};

const AGENTS: [&str; 4] =
    ["requirements-extractor", "risk-assessor", "technical-analyst", "tender-coordinator"];
const GUIDELINES: &str = "danish-tender-guidelines";

fn shipped(part: &str) -> Utf8PathBuf {
    let crate_dir = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crate_dir.join("../../examples/udbud").join(part).canonicalize_utf8().unwrap()
}

/// A workspace whose system has the shipped folders besides its own.
async fn udbud(script: ModelScript) -> (Workspace, System) {
    let workspace = Workspace::new(script).await;
    let system = system(&workspace);
    (workspace, system)
}

fn system(workspace: &Workspace) -> System {
    let builder = workspace.builder().agents_from(shipped("agents"));
    builder.skills_from(shipped("skills")).config(config()).build().unwrap()
}

fn loaded(kinds: Vec<EventKind>) -> Vec<(String, LoadedBy)> {
    let of = |kind| match kind {
        EventKind::SkillLoaded { skill, by, already: false, .. } => Some((skill, by)),
        _ => None,
    };
    kinds.into_iter().filter_map(of).collect()
}

/// The skills that a task loads, and the first request that was sent.
async fn on_first_turn(agent: &str, task: &str) -> (Vec<String>, Value) {
    let (workspace, system) = udbud(ModelScript::new().turn(ScriptedTurn::text("Done."))).await;
    let report = system.run(agent, task, RunOptions::default()).await;
    assert_eq!(report.status, AgentRunStatus::Done, "{report:?}");
    let calls = workspace
        .kinds()
        .into_iter()
        .filter(|kind| matches!(kind, EventKind::ToolCall { .. } | EventKind::SkillFailed { .. }));
    assert_eq!(calls.count(), 0);
    let loaded = loaded(workspace.kinds());
    assert!(loaded.iter().all(|(_, by)| *by == LoadedBy::AutoTrigger), "{loaded:?}");
    let names = loaded.into_iter().map(|(skill, _)| skill).collect();
    (names, workspace.requests()[0].body.clone())
}

#[test]
fn every_shipped_file_passes_lint_without_a_note() {
    let report = lint_paths(&LintRequest {
        paths: &[shipped("skills"), shipped("agents")],
        rules: LintRuleSet::Repertoire,
        limits: SkillLimits::default(),
        links_beneath: &|_| None,
        environment: &|| panic!("no shipped file depends on another one"),
        comparison: None,
        companions: None,
    });
    let findings: Vec<String> = report
        .files
        .iter()
        .flat_map(|file| &file.diagnostics)
        .map(|found| format!("{} {}", found.code.id, found.message))
        .collect();
    assert_eq!(findings, [""; 0]);
    assert_eq!(report.files.len(), 9);
}

#[tokio::test]
async fn every_shipped_agent_can_be_run() {
    let (_workspace, system) = udbud(ModelScript::new()).await;
    let catalog = system.catalog();
    assert!(catalog.diagnostics().is_empty(), "{:?}", catalog.diagnostics());
    let mut names = system.agent_names();
    names.retain(|name| name != "default");
    assert_eq!(names, AGENTS);
    let read = |name: &str| AgentDefinition::from_entry(catalog.get_agent(name).unwrap()).unwrap();
    for name in AGENTS {
        let agent = read(name);
        assert!(agent.tools.has("skill"), "{name}");
        assert!(agent.skills.is_empty(), "{name} loads skills when they are needed");
        assert!(agent.max_iterations.is_some(), "{name}");
        assert!(agent.prompt.contains("AUTO-LOADED SKILL"), "{name} says where skills come from");
    }
    assert!(matches!(read("requirements-extractor").format, ResponseFormat::Schema { .. }));
    assert_eq!(read("risk-assessor").thinking, ThinkingMode::Budget(4000));
    let coordinator = read("tender-coordinator");
    assert!(coordinator.tools.has("delegate"));
    for tool in ["read", "grep", "bash"] {
        assert!(!coordinator.tools.has(tool), "the coordinator must not have `{tool}`");
    }
}

#[tokio::test]
async fn a_danish_tender_loads_its_guidelines_first_and_right_after_the_prompt() {
    for task in ["Analyze this Danish tender for compliance", "Analyze Danish tender document"] {
        let (skills, request) = on_first_turn("technical-analyst", task).await;
        assert_eq!(skills, [GUIDELINES], "{task}");
        let text = |at: usize| request["system"][at]["text"].as_str().unwrap_or_default();
        assert!(text(0).starts_with("You are a technical analyst."), "{}", text(0));
        assert!(text(1).starts_with(&format!("## AUTO-LOADED SKILL: {GUIDELINES}")), "{}", text(1));
        assert!(text(1).contains("[FAKTA]") && text(1).contains("trigger phrase"), "{}", text(1));
        assert!(text(1).contains("references/marker-system.md"), "{}", text(1));
        assert_eq!(request["messages"][0]["content"][0]["text"], task);
    }
}

#[tokio::test]
async fn a_task_of_two_kinds_loads_two_skills_in_the_order_of_their_rank() {
    let task = "Analyze this Danish tender for compliance and estimate the effort in person-days";
    let (workspace, system) = udbud(ModelScript::new().turn(ScriptedTurn::text("Done."))).await;
    system.run("technical-analyst", task, RunOptions::default()).await;
    let picks = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::SkillsSelected { picks, .. } => Some(picks),
        _ => None,
    });
    let picks = picks.expect("a selection was made");
    assert!(picks.windows(2).all(|pair| pair[0].score >= pair[1].score), "{picks:?}");
    let names: Vec<&str> = picks.iter().map(|pick| pick.skill.as_str()).collect();
    assert!(names.contains(&GUIDELINES) && names.contains(&"complexity-calculator"), "{names:?}");
    let request = &workspace.requests()[0].body;
    for (at, name) in names.iter().enumerate() {
        let text = request["system"][at + 1]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("## AUTO-LOADED SKILL: {name}")), "{text}");
    }
}

#[tokio::test]
async fn each_kind_of_question_loads_its_skill() {
    for (agent, task, skill) in [
        ("technical-analyst", "How complex is the data migration?", "complexity-calculator"),
        ("technical-analyst", "Estimate the effort of K-06", "complexity-calculator"),
        ("technical-analyst", "Review the system architecture on offer", "architecture-analyzer"),
        ("requirements-extractor", "Extract the requirements of bilag 2", "requirements-register"),
        ("risk-assessor", "Which risks does the contract hold?", "tender-risk-matrix"),
    ] {
        // The answer of the extractor has to fit its schema, so only what is sent counts here.
        let (_workspace, system) = udbud(ModelScript::new()).await;
        let preview = system.preview(agent, task, RunOptions::default()).await.unwrap();
        let body = preview.body.to_string();
        assert!(body.contains(&format!("AUTO-LOADED SKILL: {skill}")), "{task}: {body}");
    }
}

#[tokio::test]
async fn an_unrelated_sentence_loads_nothing() {
    for task in ["Water the tomatoes before noon", "What is the capital of Portugal?", "Hello"] {
        let (skills, request) = on_first_turn("technical-analyst", task).await;
        assert_eq!(skills, [""; 0], "{task}");
        assert!(!request["system"].to_string().contains("AUTO-LOADED SKILL:"), "{task}");
    }
}

#[tokio::test]
async fn the_coordinator_delegates_and_the_analyst_sees_nothing_but_its_task() {
    const SECRET: &str = "our ceiling is nine million";
    let task = "Analyze this Danish tender for compliance: udbudsbetingelser.md";
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "technical-analyst", "task": task})))
        .turn(ScriptedTurn::text("[FAKTA] Tilbudsfristen er den 3. marts (afsnit 3)."))
        .turn(ScriptedTurn::text("Bid, if K-02 can be met."));
    let (workspace, system) = udbud(script).await;
    let asked = format!("Go through the tender in this folder. Keep to yourself that {SECRET}.");
    let report = system.run("tender-coordinator", asked, RunOptions::default()).await;
    assert_eq!((report.status, report.iterations), (AgentRunStatus::Done, 2), "{report:?}");
    assert_eq!(report.text, "Bid, if K-02 can be met.");

    let [first, child, last] = &workspace.requests()[..] else { panic!("three requests") };
    let tools = first.body["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "delegate"), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool["name"] == "read"), "{tools:?}");

    let system_of_child = child.body["system"].to_string();
    assert!(system_of_child.contains("You are a technical analyst."), "{system_of_child}");
    assert!(system_of_child.contains(&format!("AUTO-LOADED SKILL: {GUIDELINES}")));
    assert_eq!(child.body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(child.body["messages"][0]["content"][0]["text"], task);
    let all_of_child = child.body.to_string();
    assert!(!all_of_child.contains(SECRET) && !all_of_child.contains("You lead the work"));

    let answers = last.body["messages"].to_string();
    assert!(answers.contains("Tilbudsfristen"), "{answers}");
    assert!(!last.body["system"].to_string().contains("AUTO-LOADED SKILL:"), "skills stay there");
    let delegated = workspace
        .kinds()
        .into_iter()
        .any(|kind| matches!(kind, EventKind::Delegated { to, .. } if to == "technical-analyst"));
    assert!(delegated);
}

#[tokio::test]
async fn the_extractor_answers_in_the_shape_of_its_schema_or_is_asked_again() {
    let register = json!({
        "document": "bilag-2-kravspecifikation.md",
        "requirements": [{
            "id": "K-04", "class": "UKLAR", "minimum": true, "place": "A",
            "wording": "Leverandøren bør være certificeret efter ISO 27001.",
            "note": "bør, under the heading Mindstekrav",
        }],
        "unread": [],
    });
    let mut wrong = register.clone();
    wrong["requirements"][0]["class"] = json!("MÅSKE");
    let script = ModelScript::new()
        .turn(ScriptedTurn::text(wrong.to_string()))
        .turn(ScriptedTurn::text(register.to_string()));
    let (workspace, system) = udbud(script).await;
    let task = "Extract the requirements";
    let report = system.run("requirements-extractor", task, RunOptions::default()).await;
    assert_eq!(report.status, AgentRunStatus::Done, "{report:?}");
    assert_eq!(report.structured, Some(register));
    assert_eq!(workspace.requests().len(), 2);
}

#[tokio::test]
async fn a_static_list_of_skills_is_still_read_and_reported_as_pinned() {
    let (workspace, _) =
        udbud(ModelScript::new().turn(ScriptedTurn::text("Done.")).repeat_last()).await;
    let frontmatter = format!("description: As before\nskills: [{GUIDELINES}, no-such-skill]");
    workspace.agent("old-analyst", &frontmatter, "You are an analyst of the old kind.");
    let report =
        system(&workspace).run("old-analyst", "Water the tomatoes", RunOptions::default()).await;
    assert_eq!(report.skills, [GUIDELINES]);
    assert_eq!(loaded(workspace.kinds()), [(GUIDELINES.to_owned(), LoadedBy::Pin)]);
    let request = workspace.requests()[0].body["system"].to_string();
    assert!(request.contains("pinned by agent old-analyst"), "{request}");
    let missing = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::SkillFailed { skill, message } => Some((skill, message)),
        _ => None,
    });
    let (skill, message) = missing.expect("the missing skill is told");
    assert_eq!(skill, "no-such-skill");
    assert!(message.starts_with("agent old-analyst pins it, and it is not there"), "{message}");
}

#[tokio::test]
async fn a_pinned_skill_that_the_task_needs_as_well_is_there_once() {
    let (workspace, _) = udbud(ModelScript::new().turn(ScriptedTurn::text("Done."))).await;
    let frontmatter = format!("description: As before\nskills: [{GUIDELINES}]");
    workspace.agent("old-analyst", &frontmatter, "You are an analyst of the old kind.");
    let task = "Analyze this Danish tender for compliance";
    system(&workspace).run("old-analyst", task, RunOptions::default()).await;
    let request = workspace.requests()[0].body.to_string();
    assert_eq!(request.matches("AUTO-LOADED SKILL:").count(), 1, "{request}");
}

#[tokio::test]
async fn what_happens_to_a_sub_agent_is_told_with_its_name_and_depth() {
    let task = "Analyze this Danish tender for compliance";
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "technical-analyst", "task": task})))
        .turn(ScriptedTurn::text("Fine."))
        .turn(ScriptedTurn::text("Bid."));
    let workspace = Workspace::new(script).await;
    let events = Arc::new(Mutex::new(Vec::<AgentEvent>::new()));
    let seen = events.clone();
    let options = RunOptions {
        on_event: Some(Arc::new(move |event| seen.lock().unwrap().push(event.clone()))),
        ..RunOptions::default()
    };
    system(&workspace).run("tender-coordinator", "Begin", options).await;
    let events = events.lock().unwrap();
    let event = events
        .iter()
        .find(|event| matches!(&event.kind, EventKind::SkillLoaded { skill, .. } if skill == GUIDELINES))
        .expect("the analyst had the guidelines");
    assert_eq!((event.agent.as_str(), event.depth), ("technical-analyst", 1));
}

/// What a link of one's own saw before the model was called, and after.
#[derive(Default)]
struct Watch {
    seen: Mutex<Vec<(usize, bool)>>,
}

impl TurnMiddleware for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut Moment,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            let before = turn.messages().len();
            next.run(turn).await?;
            self.seen.lock().unwrap().push((before, turn.response.is_some()));
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_link_of_ones_own_sees_the_turn_as_it_is_sent_and_what_came_back() {
    let workspace = Workspace::new(ModelScript::new().turn(ScriptedTurn::text("Done."))).await;
    let watch = Arc::new(Watch::default());
    let builder = workspace.builder().agents_from(shipped("agents")).middleware(watch.clone());
    let system = builder.skills_from(shipped("skills")).config(config()).build().unwrap();
    let task = "Analyze this Danish tender for compliance";
    system.run("technical-analyst", task, RunOptions::default()).await;
    // The prompt, the skill and the task are there; the answer comes after.
    assert_eq!(*watch.seen.lock().unwrap(), [(3, true)]);
}
