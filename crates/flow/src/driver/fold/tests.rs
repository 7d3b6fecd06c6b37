use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use repertoire_journal::event::EVENT_VERSION;
use repertoire_journal::{Journal, RunId, RunKind, Target};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::Source;
use serde_json::{Value, json};

use super::*;
use crate::driver::events::{ScriptReport, TurnReport, WorkflowRunPhase};
use crate::driver::{
    NewWorkflowRun, ScriptDecision, ScriptEnvironment, ScriptError, WorkflowRunStore,
};
use crate::engine::{EngineAction, EngineInput};
use crate::external::{ProgressError, StepNumbering, StepScript, parse_output};
use crate::file::{WorkflowContext, read_source};
use crate::state::{WorkflowRunId, WorkflowRunState};
use crate::step::StepView;

const LOOP: &str = "\
parameters: { topic: { required: true } }
steps:
  - id: work
    title: Work
    actions: ['About {{ topic }}.']
    loop: { max: 2 }
    outcomes: { ok: enough, iterate: more }
    next: { ok: end, iterate: work }
";

const RUN: &str = "loop-1";

fn loop_workflow() -> CheckedWorkflow {
    let context = WorkflowContext {
        name: "loop",
        description: "",
        siblings: ("loop", &[]),
        read: &|_| Err("there is no such file".to_owned()),
    };
    read_source(Source::new("workflow.yaml", LOOP.to_owned()), &context).checked.unwrap()
}

fn request() -> WorkflowRunRequest {
    let parameters = BTreeMap::from([("topic".to_owned(), "cheese".to_owned())]);
    WorkflowRunRequest { parameters, parent: Some("other".to_owned()), trusted: true }
}

fn number_events(payloads: Vec<Payload>) -> Vec<Event> {
    let numbered = payloads.into_iter().zip(1..);
    numbered
        .map(|(payload, seq)| {
            let run = RunId::known(RUN);
            Event { v: EVENT_VERSION, run, seq, at_ms: 1_000 + seq, payload }
        })
        .collect()
}

fn created(name: &str) -> Payload {
    Payload::RunCreated {
        kind: RunKind::Workflow.as_str().to_owned(),
        name: name.to_owned(),
        workspace: "/project".to_owned(),
        labels: Default::default(),
        priority: 0,
        limits: Default::default(),
        request: json!(request()),
        attended: true,
    }
}

/// The events of a run that was started and then got these inputs, and the state that the engine
/// has reached.
fn record_run(inputs: &[EngineInput]) -> (Vec<Payload>, WorkflowRunState) {
    let workflow = loop_workflow();
    let id = WorkflowRunId::new(RUN);
    let mut state = engine::start(&workflow, id, &request().parameters).unwrap();
    let start = WorkflowRunEvent::Start {
        version: STATE_VERSION,
        fingerprint: workflow.fingerprint().clone(),
        workflow: String::from_utf8(workflow.freeze()).unwrap(),
    };
    let reached = ReachedState::from_state(&state).unwrap();
    let mut payloads = vec![created("loop"), start.into_payload(&reached)];
    for input in inputs {
        state = engine::advance_run(&workflow, &state, input).unwrap();
        let reached = ReachedState::from_state(&state).unwrap();
        let event = WorkflowRunEvent::Input { input: input.clone() };
        payloads.push(event.into_payload(&reached));
    }
    (payloads, state)
}

fn fold_workflow(payloads: Vec<Payload>) -> Result<StoredWorkflowRun, WorkflowRunError> {
    match fold_run(RUN, number_events(payloads))? {
        AnyWorkflowRun::Workflow(run) => Ok(*run),
        AnyWorkflowRun::Script(_) => panic!("it is a workflow"),
    }
}

/// The data of the event with this index.
fn data_of(payloads: &mut [Payload], at: usize) -> &mut Value {
    match &mut payloads[at] {
        Payload::KindEvent { data, .. } => data,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_refused(payloads: Vec<Payload>, expected: &str) {
    let said = fold_workflow(payloads).expect_err("it is refused").to_string();
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_replay_of_the_events_leads_to_the_state_that_the_engine_had_reached() {
    let inputs = [
        EngineInput { at: Some(1), ..EngineInput::leave_with("iterate") },
        EngineInput::about_now(EngineAction::Error { message: "no \u{0} luck".to_owned() }),
    ];
    for count in 0..=inputs.len() {
        let (mut payloads, state) = record_run(&inputs[..count]);
        // Events of all runs change nothing here.
        payloads.push(Payload::RunWaiting { reason: "r".to_owned(), choices: Vec::new() });
        let seq = payloads.len() as u64;
        // Through text, as in the journal.
        let stored = serde_json::to_string(&payloads).unwrap();
        let run = fold_workflow(serde_json::from_str(&stored).unwrap()).unwrap();
        assert_eq!((run.state, run.seq), (state, seq));
        let head = WorkflowRunMetadata {
            begun_ms: 1_001,
            updated_ms: 1_000 + seq,
            folder: "/project".into(),
            parent: Some("other".to_owned()),
            trusted: true,
        };
        assert_eq!(run.head, head);
    }
}

#[test]
fn events_that_lead_elsewhere_here_are_of_another_version() {
    let (payloads, _) = record_run(&[EngineInput::leave_with("iterate")]);
    let mut other_digest = payloads.clone();
    data_of(&mut other_digest, 2)["reached"]["digest"] = json!("sha256:0");
    check_refused(
        other_digest,
        "another version of this program: its events lead to another state",
    );
    let mut other_input = payloads.clone();
    data_of(&mut other_input, 2)["input"]["action"]["leave"]["outcome"] = json!("ok");
    check_refused(other_input, "its events lead to another state");
    let mut refused_input = payloads.clone();
    data_of(&mut refused_input, 2)["input"]["at"] = json!(7);
    check_refused(refused_input, "another version of this program: event 3: ");
    let mut newer = payloads.clone();
    data_of(&mut newer, 1)["version"] = json!(99);
    check_refused(newer, "later version of this program (shape 99");
    let mut unknown = payloads;
    unknown.push(Payload::KindEvent { name: "rewind".to_owned(), data: json!({}) });
    check_refused(unknown, "its event 4, `rewind`, is not known here");
}

#[test]
fn a_run_of_another_version_goes_on_if_its_events_lead_to_the_same_step() {
    let (mut payloads, state) = record_run(&[EngineInput::leave_with("iterate")]);
    let reached = &mut data_of(&mut payloads, 2)["reached"];
    // The state of that version has other fields.
    reached["digest"] = json!("sha256:0");
    reached["program"] = json!("0.0.1");
    assert_eq!(fold_workflow(payloads.clone()).unwrap().state, state);
    data_of(&mut payloads, 2)["reached"]["step"] = json!("elsewhere");
    check_refused(payloads, "its events lead to another state");
}

#[test]
fn an_event_of_a_later_version_is_no_damage() {
    let (payloads, _) = record_run(&[EngineInput::leave_with("iterate")]);
    let refusal_of = |payload: Payload| {
        let mut events = number_events(payloads.clone());
        events[2].payload = payload;
        events[2].v = EVENT_VERSION + 1;
        fold_run(RUN, events).expect_err("it is refused")
    };
    let note = Payload::Note { name: "unknown:LATER".to_owned(), data: Value::Null };
    let input = Payload::KindEvent { name: "input".to_owned(), data: json!({ "input": 1 }) };
    for payload in [note, input] {
        let refusal = refusal_of(payload);
        assert!(matches!(refusal, WorkflowRunError::OtherVersion { .. }), "{refusal}");
    }
}

#[test]
fn events_that_cannot_be_read_or_cannot_follow_are_damage() {
    let (payloads, _) = record_run(&[EngineInput::leave_with("iterate")]);
    let mut changed = payloads.clone();
    let frozen = data_of(&mut changed, 1)["workflow"].as_str().unwrap().replace("About", "Around");
    data_of(&mut changed, 1)["workflow"] = json!(frozen);
    check_refused(changed, "is not the workflow that the run was started with");
    let mut unreadable = payloads.clone();
    *data_of(&mut unreadable, 2) = json!({ "input": 1 });
    check_refused(unreadable, "run loop-1 is damaged, and is left as it is: event 3: ");
    let mut note = payloads.clone();
    note[2] = Payload::Note { name: "unknown:KIND_EVENT".to_owned(), data: Value::Null };
    check_refused(note, "event 3: it cannot be read");
    let mut twice = payloads.clone();
    twice.push(payloads[1].clone());
    check_refused(twice, "event 4: it cannot follow the events before it");
    check_refused(payloads[..1].to_vec(), "the run was never started");
    check_refused(payloads[1..].to_vec(), "event 1: it does not create the run");
}

fn show_step(number: usize, next: &str) -> StepView {
    let text = format!(
        "<step_header script=\"old\" step=\"{number}\" total=\"2\">Step</step_header>\n\
         <current_action>\nWork\n</current_action>\n{next}"
    );
    parse_output(&text, StepNumbering::FromOne).unwrap()
}

fn start_script() -> ScriptRun {
    let script = StepScript {
        argv: ["python3", "scripts/old.py"].map(str::to_owned).to_vec(),
        working_dir: None,
        total: Some(2),
        numbering: StepNumbering::FromOne,
        step_option: "--step".to_owned(),
        arguments: Vec::new(),
    };
    let next = "<invoke_after>\npython3 scripts/old.py --step 2 --total-steps 2\n</invoke_after>";
    let head = WorkflowRunMetadata::default();
    let (workflow, shown) = ("old".to_owned(), show_step(1, next));
    ScriptRun::new(RUN, workflow, head, "/skills/old".into(), script, shown)
}

fn leave_script_step(turn: u32, shown: Option<StepView>) -> WorkflowRunEvent {
    let report = TurnReport { turn, report: ScriptReport::default() };
    WorkflowRunEvent::ScriptStep { report, shown }
}

#[test]
fn a_script_is_replayed_from_what_it_has_printed() {
    let mut run = start_script();
    let start = run.record_event(run.start_event()).unwrap().payload;
    let mut payloads = vec![created("old"), start];
    for event in [leave_script_step(1, Some(show_step(2, ""))), leave_script_step(2, None)] {
        run = run.apply_event(&event).unwrap();
        payloads.push(run.record_event(event).unwrap().payload);
    }
    assert_eq!(run.status(), "done");
    let stored = serde_json::to_string(&payloads).unwrap();
    let folded = fold_run(RUN, number_events(serde_json::from_str(&stored).unwrap())).unwrap();
    let AnyWorkflowRun::Script(folded) = folded else { panic!("it is a script") };
    assert_eq!(folded.reached_state().unwrap(), run.reached_state().unwrap());
    assert_eq!((folded.status(), folded.seq, folded.view().turn), ("done", 4, 2));
    *data_of(&mut payloads, 2)["shown"].get_mut("step").unwrap() = json!(1);
    let said = fold_run(RUN, number_events(payloads)).expect_err("it is refused").to_string();
    assert!(said.contains("another version of this program"), "{said}");
}

#[test]
fn a_script_that_is_over_is_neither_aborted_nor_continued_nor_left() {
    let abort = WorkflowRunEvent::ScriptAbort {};
    let step = leave_script_step(1, Some(show_step(2, "")));
    let aborted = start_script().apply_event(&abort).unwrap();
    assert_eq!(aborted.status(), "aborted");
    let left = aborted.apply_event(&step);
    assert!(matches!(left, Err(ScriptError::Progress(ProgressError::NotActive))));
    let resumed = aborted.apply_event(&WorkflowRunEvent::ScriptResume { shown: None });
    assert!(matches!(resumed, Err(ScriptError::NotWaiting)));
    let last = start_script().apply_event(&step).unwrap();
    let done = last.apply_event(&leave_script_step(2, None)).unwrap();
    assert_eq!(done.status(), "done");
    assert!(matches!(done.apply_event(&abort), Err(ScriptError::NotWaiting)));
}

#[test]
fn the_journal_is_told_of_every_change_of_the_status_and_of_nothing_else() {
    let waiting = |reason: &str| WorkflowRunPhase::Waiting {
        reason: reason.to_owned(),
        choices: vec!["abort".to_owned()],
    };
    let name = |before: &WorkflowRunPhase, after: &WorkflowRunPhase| {
        after.change_event(before).map(|payload| payload.name())
    };
    let active = &WorkflowRunPhase::Active;
    assert_eq!(name(active, active), None);
    assert_eq!(name(&waiting("a"), &waiting("a")), None);
    assert_eq!(name(&waiting("a"), &waiting("b")), Some("RUN_WAITING"));
    assert_eq!(name(&waiting("a"), active), Some("RUN_RESUMED"));
    assert_eq!(name(active, &WorkflowRunPhase::Done), Some("RUN_COMPLETED"));
    assert_eq!(name(&waiting("a"), &WorkflowRunPhase::Aborted), Some("RUN_CANCELLED"));
}

/// A script run in a journal that waits for a decision at turn 2, after a step without an outcome.
async fn waiting_script(dir: &Utf8Path) -> WorkflowRunStore {
    let target = Target::File(dir.join("journal.sqlite"));
    let journal = Journal::open(&target, Arc::new(|| 1_000)).await.unwrap();
    let store = WorkflowRunStore::new(journal, dir.join("runs"));
    let unrouted =
        "<invoke_after>\npython3 scripts/old.py --step 3 --total-steps 2\n</invoke_after>";
    let mut run = start_script();
    let begin = NewWorkflowRun { id: RUN.to_owned(), folder: dir.to_owned(), request: request() };
    let event = run.record_event(run.start_event()).unwrap();
    let mut seq = store.create_run(&begin, "old", event).await.unwrap().seq;
    for event in [leave_script_step(1, Some(show_step(2, unrouted))), leave_script_step(2, None)] {
        run = run.apply_event(&event).unwrap();
        let event = run.record_event(event).unwrap();
        let row = store.append_event(&run.run, seq, &WorkflowRunPhase::Active, event).await;
        seq = row.unwrap().unwrap().seq;
    }
    assert_eq!((run.status(), run.turn()), ("waiting", 2));
    store
}

#[tokio::test]
async fn a_decision_about_another_turn_of_a_script_is_refused_and_one_that_comes_twice_counts_once()
{
    let keep = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(keep.path()).unwrap();
    let (workplace, cancel) = (RunWorkplace::new(dir, dir, Sandbox::None), Default::default());
    let stage = ScriptEnvironment { workplace: &workplace, cancel: &cancel };
    for (decision, status) in
        [(ScriptDecision::Continue, "done"), (ScriptDecision::Abort, "aborted")]
    {
        let dir = dir.join(status);
        std::fs::create_dir(&dir).unwrap();
        let store = waiting_script(&dir).await;
        let id = WorkflowRunId::new(RUN);
        for at in [1, 3] {
            let refused = store.decide_script(&id, at, decision, stage).await;
            assert!(
                matches!(refused, Err(ScriptError::OtherTurn { at: turn, now: 2 }) if turn == at),
                "{refused:?}"
            );
        }
        let waiting = store.open_script(RUN).await.unwrap();
        assert_eq!(waiting.status(), "waiting");
        let decided = store.decide_script(&id, 2, decision, stage).await.unwrap();
        assert_eq!(decided.status(), status);
        let again = store.decide_script(&id, 2, decision, stage).await.unwrap();
        assert_eq!((again.status(), again.seq), (status, decided.seq));
    }
}
