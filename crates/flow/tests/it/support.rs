//! What the tests share: workflows from text, and runs that are easy to push on.

use std::collections::BTreeMap;

use repertoire_flow::CheckedWorkflow;
use repertoire_flow::engine::{
    CheckRecord, EngineAction, EngineInput, EngineRefusal, ItemRecord, PersonChoice, StepReport,
    advance_run, start,
};
use repertoire_flow::file::{LoadedWorkflow, WorkflowContext, read_source};
use repertoire_flow::state::{
    CheckProof, GateCheckResult, ItemStatus, UserQuestion, WorkflowRunId, WorkflowRunState,
    WorkflowRunStatus,
};
use repertoire_flow::workflow::{ConfidenceLevel, ItemSeverity};
use repertoire_text::Source;

/// Reads a workflow from text, with no files around it.
pub(crate) fn read(yaml: &str) -> LoadedWorkflow {
    let around = WorkflowContext {
        name: "test",
        description: "",
        siblings: ("test", &[]),
        read: &|_| Err("there is no such file".to_owned()),
    };
    read_source(Source::new("workflow.yaml", yaml.to_owned()), &around)
}

/// A workflow that can run.
#[track_caller]
pub(crate) fn checked(yaml: &str) -> CheckedWorkflow {
    let loaded = read(yaml);
    let said: Vec<String> = loaded.diagnostics.iter().map(|found| found.message.clone()).collect();
    loaded.checked.unwrap_or_else(|| panic!("this cannot run: {said:#?}"))
}

/// A workflow as an earlier version has stored it, whatever the checker says about it now.
pub(crate) fn stored_earlier(yaml: &str) -> CheckedWorkflow {
    let workflow = read(yaml).workflow.expect("it has the shape of a workflow");
    let bytes = serde_json::to_vec(&workflow).expect("it can be written");
    let digest = repertoire_flow::state::WorkflowFingerprint::from_bytes(&bytes);
    CheckedWorkflow::thaw(&bytes, &digest).expect("it can be read")
}

/// A run that is pushed on.
pub(crate) struct Run {
    pub(crate) flow: CheckedWorkflow,
    pub(crate) state: WorkflowRunState,
}

impl Run {
    #[track_caller]
    pub(crate) fn of(yaml: &str) -> Self {
        Run::with(yaml, &[])
    }

    #[track_caller]
    pub(crate) fn with(yaml: &str, given: &[(&str, &str)]) -> Self {
        Run::through(checked(yaml), given)
    }

    pub(crate) fn through(flow: CheckedWorkflow, given: &[(&str, &str)]) -> Self {
        let state = start(&flow, WorkflowRunId::new("run-1"), &map(given)).expect("it starts");
        Run { flow, state }
    }

    /// Reports something that is accepted.
    #[track_caller]
    pub(crate) fn says(&mut self, input: &EngineInput) -> &mut Self {
        self.state = advance_run(&self.flow, &self.state, input)
            .unwrap_or_else(|refusal| panic!("refused at `{}`: {refusal}", self.state.step));
        self
    }

    /// Reports something that is refused, and gives the words.
    #[track_caller]
    pub(crate) fn refuses(&self, input: &EngineInput) -> String {
        let refusal: EngineRefusal =
            advance_run(&self.flow, &self.state, input).expect_err("this is refused");
        refusal.to_string()
    }

    #[track_caller]
    pub(crate) fn done(&mut self) -> &mut Self {
        self.says(&EngineInput::leave_step())
    }

    #[track_caller]
    pub(crate) fn leaves(&mut self, outcome: &str) -> &mut Self {
        self.says(&EngineInput::leave_with(outcome))
    }

    #[track_caller]
    pub(crate) fn chooses(&mut self, choice: PersonChoice) -> &mut Self {
        self.says(&choose(choice))
    }

    /// Where the run is: the step, and who is waited for.
    pub(crate) fn at(&self) -> String {
        match &self.state.status {
            WorkflowRunStatus::Active => self.state.step.to_string(),
            WorkflowRunStatus::Waiting(waiting) => format!("{}: {waiting}", self.state.step),
            WorkflowRunStatus::Done => "done".to_owned(),
            WorkflowRunStatus::Aborted => "aborted".to_owned(),
        }
    }

    /// The way so far, as `step outcome` pairs.
    pub(crate) fn way(&self) -> String {
        let word = |outcome: Option<&repertoire_flow::workflow::WorkflowOutcome>| {
            outcome.map_or("error".to_owned(), ToString::to_string)
        };
        let passages = self.state.history.iter().map(|passage| {
            let limited = if passage.limited { "!" } else { "" };
            format!("{}-{}{limited}", passage.step, word(passage.outcome.as_ref()))
        });
        passages.collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn about(at: u32, input: EngineInput) -> EngineInput {
    EngineInput { at: Some(at), ..input }
}

pub(crate) fn report(report: StepReport) -> EngineInput {
    EngineInput::about_now(EngineAction::Leave(report))
}

pub(crate) fn sure(confidence: ConfidenceLevel) -> EngineInput {
    report(StepReport { confidence: Some(confidence), ..StepReport::default() })
}

pub(crate) fn facts(facts: &[(&str, &str)]) -> EngineInput {
    report(StepReport { facts: map(facts), ..StepReport::default() })
}

pub(crate) fn sets(set: &[(&str, &str)]) -> EngineInput {
    report(StepReport { set: map(set), ..StepReport::default() })
}

pub(crate) fn output(text: &str) -> EngineInput {
    report(StepReport { output: Some(text.to_owned()), ..StepReport::default() })
}

pub(crate) fn error(message: &str) -> EngineInput {
    EngineInput::about_now(EngineAction::Error { message: message.to_owned() })
}

pub(crate) fn choose(choice: PersonChoice) -> EngineInput {
    EngineInput::about_now(EngineAction::Choose { choice, note: "so it is".to_owned() })
}

pub(crate) fn item(id: &str, severity: ItemSeverity, status: ItemStatus) -> ItemRecord {
    ItemRecord {
        id: id.to_owned(),
        check: Some(format!("{id} holds")),
        severity: Some(severity),
        status: Some(status),
        finding: (status == ItemStatus::Fail).then(|| "it does not".to_owned()),
        ..ItemRecord::default()
    }
}

/// A verdict on an item that is there already.
pub(crate) fn judge(id: &str, status: ItemStatus) -> ItemRecord {
    ItemRecord {
        id: id.to_owned(),
        status: Some(status),
        finding: (status == ItemStatus::Fail).then(|| "still not".to_owned()),
        ..ItemRecord::default()
    }
}

pub(crate) fn record(items: Vec<ItemRecord>) -> EngineInput {
    EngineInput::about_now(EngineAction::Record { gate: None, items, checks: Vec::new() })
}

pub(crate) fn check(name: &str, status: ItemStatus, proof: CheckProof) -> EngineInput {
    let result = GateCheckResult { status, proof, note: String::new() };
    let checks = vec![CheckRecord { name: name.to_owned(), result }];
    EngineInput::about_now(EngineAction::Record { gate: None, items: Vec::new(), checks })
}

pub(crate) fn ran(command: &str, code: i32) -> CheckProof {
    CheckProof::Run { command: command.to_owned(), exit_code: Some(code), work: None }
}

pub(crate) fn question(id: &str, options: usize) -> UserQuestion {
    UserQuestion {
        id: id.to_owned(),
        ask: format!("What about {id}?"),
        options: (0..options).map(|at| format!("option {at}")).collect(),
    }
}

pub(crate) fn ask(questions: Vec<UserQuestion>) -> EngineInput {
    EngineInput::about_now(EngineAction::Ask { questions })
}

pub(crate) fn answer(answers: &[(&str, &str)]) -> EngineInput {
    EngineInput::about_now(EngineAction::Answer { answers: map(answers) })
}
