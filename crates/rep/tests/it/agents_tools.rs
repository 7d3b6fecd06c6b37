//! `rep agents`, `rep agents --tools`, `rep run --skill` and `rep chat`.

use insta::assert_snapshot;
use repertoire_scripted::{ModelScript, ScriptedTurn};
use serde_json::json;

use crate::talking::{Model, tidy, with_input};
use crate::workspace::Workspace;

fn agency() -> Workspace {
    let ws = Workspace::new();
    ws.write(
        "home/.claude/agents/analyst.md",
        "---\nname: analyst\ndescription: Analyses tenders.\nmodel: sonnet\ntools: [read, skill]\n\
         skills: [first-aid, gone]\ncapabilities: [analysis]\n---\nYou analyse.\n",
    );
    ws.write(
        "home/.claude/agents/wild.md",
        "---\nname: wild\ndescription: Cannot be run.\ntemperature: 9\n---\nDo.\n",
    );
    ws
}

#[test]
fn agents_are_listed_with_what_sets_them_apart() {
    assert_snapshot!(agency().rep("agents"), @"
    analyst (user · anthropic/claude-sonnet-4-5 · read, skill · pins first-aid, gone)
      Analyses tenders.
    default (every tool)
      Works in the project with every tool there is.
    ✗ wild (user · every tool)
      `temperature` must be from 0 to 2, and is 9
      Cannot be run.
    [exit 0]
    ");
    let list = agency().json("--json agents", "agents.json");
    let names: Vec<&str> = list["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["analyst", "default", "wild"]);
}

#[test]
fn one_agent_is_shown_with_its_problems() {
    assert_snapshot!(agency().rep("agents analyst"), @"
    analyst
      Analyses tenders.

      file       ~/.claude/agents/analyst.md
      trust      trusted
      model      anthropic/claude-sonnet-4-5
      tools      read, skill
      skills     first-aid, gone
      thinking   no
      turns      as configured
      can do     analysis

    skill `gone` is pinned, and is not there
    [exit 0]
    ");
    let ran = agency().rep("agents wild");
    assert!(
        ran.code == 1 && ran.stdout.contains("cannot run: `temperature` must be from 0 to 2"),
        "{ran}"
    );
    let ran = agency().rep("agents analist");
    assert!(ran.code == 1 && ran.stderr.contains("Did you mean `analyst`?"), "{ran}");
}

#[test]
fn tools_say_what_they_do_and_who_has_them() {
    let ws = agency();
    let all = ws.json("--json tools", "tools.json");
    let tools = all["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["available"] == true && tool["about"] != ""), "{all}");
    let own = ws.rep("agents --tools --agent analyst");
    assert!(own.stdout.contains("✓ skill ") && own.stdout.contains("✗ delegate"), "{own}");
    assert!(own.stdout.contains("`tools` of analyst does not name it"), "{own}");
    assert_eq!(ws.rep("agents --tools --agent nobody").code, 3);
}

#[test]
fn a_skill_is_executed_and_its_result_told() {
    let mut ws = agency();
    let model = Model::start(
        &mut ws,
        ModelScript::new().turn(ScriptedTurn::text("Bandaged.")).repeat_last(),
    );
    let ran = ws.rep("exec first-aid a cut finger");
    assert_snapshot!(tidy(&ran), @"
    Bandaged.
    [stderr]
    + first-aid                 1.00  named as `first-aid`
    $0.0002 · 100 tokens in, 20 out · 1 turn · [TIME]
    [exit 0]
    ");
    assert!(model.requests()[0].body.to_string().contains("a cut finger"));
    let result = ws.json("--json exec --capability analysis look", "exec.json");
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("Bandaged.")));
    assert_eq!(result["metadata"]["cached"], false);
    for (line, message) in [
        ("exec first-ait x", "Did you mean `first-aid`?"),
        ("exec --capability flying x", "no agent has the capability `flying`"),
    ] {
        let ran = ws.rep(line);
        assert!(ran.code == 3 && ran.stderr.contains(message), "{line}: {ran}");
    }
    let ran = ws.rep("exec first-aid x --context gone.json");
    assert!(ran.code == 2 && ran.stderr.contains("cannot be read"), "{ran}");
}

#[test]
fn a_skill_that_says_no_is_a_no() {
    let mut ws = agency();
    let answer = "{\"success\": false, \"error\": \"no bandage\"}";
    let _model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text(answer)).repeat_last());
    ws.skill_with("pack/first-aid", "name: first-aid\ndescription: Built in.\nmax_retries: 0\n");
    let ran = ws.rep("exec first-aid x");
    assert!(ran.code == 1 && ran.stderr.contains("error: no bandage"), "{ran}");
}

#[test]
fn a_chat_goes_on_line_by_line() {
    let mut ws = agency();
    let script =
        ModelScript::new().turn(ScriptedTurn::text("Hello.")).turn(ScriptedTurn::text("Bandaged."));
    let model = Model::start(&mut ws, script);
    let input = "hi \\\nthere\n/first-aid my finger\n/cost\n/nothing\n/exit\nnever said\n";
    let ran = with_input(&ws, &["chat", "--no-auto"], input);
    assert_snapshot!(tidy(&ran), @"
    Hello.
    Bandaged.
    [stderr]
    default on anthropic/claude-haiku-4-5. /help says what can be typed.
    + first-aid                 1.00  named as `first-aid`
    $0.0004 · 200 tokens in, 40 out
    There is no command and no skill /nothing. /help helps.
    rep chat --resume [ID] goes on here
    [exit 0]
    ");
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].last_user_text(), "hi \nthere");
    let second = requests[1].body.to_string();
    assert!(
        second.contains("Hello.") && second.contains("my finger") && second.contains("AUTO-LOADED"),
        "{second}"
    );
}

#[test]
fn a_chat_can_be_taken_up_and_survives_a_failure() {
    let mut ws = agency();
    let fault =
        repertoire_scripted::ModelFault::status(400, "{\"error\":{\"message\":\"not today\"}}");
    let script = ModelScript::new()
        .turn(ScriptedTurn::fail(fault))
        .turn(ScriptedTurn::text("Now."))
        .repeat_last();
    let model = Model::start(&mut ws, script);
    let ran = with_input(&ws, &["chat", "--no-auto"], "one\ntwo\n");
    assert!(
        ran.code == 0 && ran.stderr.contains("not today") && ran.stdout.contains("Now."),
        "{ran}"
    );
    let ran = with_input(&ws, &["chat", "--no-auto", "--resume"], "three");
    assert_eq!(ran.code, 0, "{ran}");
    let last = model.requests().last().unwrap().body.to_string();
    assert!(last.contains("two") && last.contains("Now.") && last.contains("three"), "{last}");
}

#[test]
fn a_broken_agent_is_named_with_what_is_wrong() {
    let ws = agency();
    ws.write("home/.claude/agents/b8.md", "---\nname: b8\n---\nNo description.\n");
    let ran = ws.rep("run -a b8 hi");
    assert!(ran.code == 3 && ran.stderr.contains("`b8` is broken: "), "{ran}");
    assert!(ran.stderr.contains("[RS") && ran.stderr.contains("agents/b8.md"), "{ran}");
    let ran = ws.rep("agents");
    assert!(ran.stdout.contains("✗ b8 (user)"), "{ran}");
    let ran = ws.rep("agents b8");
    assert!(ran.code == 1 && ran.stdout.contains("cannot run: "), "{ran}");
}

#[test]
fn tools_that_an_agent_names_in_vain_are_told() {
    let ws = agency();
    for (name, tools) in [("half", "[read, Frobnicate]"), ("none", "[Frobnicate]")] {
        let head = format!("---\nname: {name}\ndescription: Does.\ntools: {tools}\n---\nDo.\n");
        ws.write(&format!("home/.claude/agents/{name}.md"), &head);
    }
    let ran = ws.rep("agents half");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("tool `Frobnicate` is named, and is not there"), "{ran}");
    let ran = ws.rep("agents none");
    assert!(ran.code == 1 && ran.stdout.contains("cannot run: it names no tool"), "{ran}");
}

#[test]
fn without_a_key_each_command_says_what_helps_there() {
    let ws = agency();
    let ran = ws.rep("exec nosuch");
    assert!(ran.code == 3 && ran.stderr.contains("nosuch") && !ran.stderr.contains("key"), "{ran}");
    let ran = ws.rep("chat");
    assert!(ran.code == 3 && !ran.stderr.contains("--dry-run"), "{ran}");
}
