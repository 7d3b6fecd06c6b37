//! What the tests share: workflows from text, and runs that are easy to push on.

use std::collections::BTreeMap;

use repertoire_flow::Checked;
use repertoire_flow::engine::{
    Action, CheckRecord, Choice, Input, ItemRecord, Refusal, Report, next, start,
};
use repertoire_flow::file::{Loaded, Surroundings, read_source};
use repertoire_flow::state::{CheckResult, ItemStatus, Proof, RunId, State, Status, UserQuestion};
use repertoire_flow::workflow::{Confidence, Severity};
use repertoire_text::Source;

/// Reads a workflow from text, with no files around it.
pub(crate) fn read(yaml: &str) -> Loaded {
    let around = Surroundings {
        name: "test",
        description: "",
        siblings: ("test", &[]),
        read: &|_| Err("there is no such file".to_owned()),
    };
    read_source(Source::new("workflow.yaml", yaml.to_owned()), &around)
}

/// A workflow that can run.
#[track_caller]
pub(crate) fn checked(yaml: &str) -> Checked {
    let loaded = read(yaml);
    let said: Vec<String> = loaded.diagnostics.iter().map(|found| found.message.clone()).collect();
    loaded.checked.unwrap_or_else(|| panic!("this cannot run: {said:#?}"))
}

/// A run that is pushed on.
pub(crate) struct Run {
    pub(crate) flow: Checked,
    pub(crate) state: State,
}

impl Run {
    #[track_caller]
    pub(crate) fn of(yaml: &str) -> Self {
        Run::with(yaml, &[])
    }

    #[track_caller]
    pub(crate) fn with(yaml: &str, given: &[(&str, &str)]) -> Self {
        let flow = checked(yaml);
        let state = start(&flow, RunId::new("run-1"), &map(given)).expect("it starts");
        Run { flow, state }
    }

    /// Reports something that is accepted.
    #[track_caller]
    pub(crate) fn says(&mut self, input: &Input) -> &mut Self {
        self.state = next(&self.flow, &self.state, input)
            .unwrap_or_else(|refusal| panic!("refused at `{}`: {refusal}", self.state.step));
        self
    }

    /// Reports something that is refused, and gives the words.
    #[track_caller]
    pub(crate) fn refuses(&self, input: &Input) -> String {
        let refusal: Refusal = next(&self.flow, &self.state, input).expect_err("this is refused");
        refusal.to_string()
    }

    #[track_caller]
    pub(crate) fn done(&mut self) -> &mut Self {
        self.says(&Input::done())
    }

    #[track_caller]
    pub(crate) fn leaves(&mut self, outcome: &str) -> &mut Self {
        self.says(&Input::leave(outcome))
    }

    #[track_caller]
    pub(crate) fn chooses(&mut self, choice: Choice) -> &mut Self {
        self.says(&choose(choice))
    }

    /// Where the run is: the step, and who is waited for.
    pub(crate) fn at(&self) -> String {
        match &self.state.status {
            Status::Active => self.state.step.to_string(),
            Status::Waiting(waiting) => format!("{}: {waiting}", self.state.step),
            Status::Done => "done".to_owned(),
            Status::Aborted => "aborted".to_owned(),
        }
    }

    /// The way so far, as `step outcome` pairs.
    pub(crate) fn way(&self) -> String {
        let word = |outcome: Option<&repertoire_flow::workflow::Outcome>| {
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

pub(crate) fn about(at: u32, input: Input) -> Input {
    Input { at: Some(at), ..input }
}

pub(crate) fn report(report: Report) -> Input {
    Input::now(Action::Leave(report))
}

pub(crate) fn sure(confidence: Confidence) -> Input {
    report(Report { confidence: Some(confidence), ..Report::default() })
}

pub(crate) fn facts(facts: &[(&str, &str)]) -> Input {
    report(Report { facts: map(facts), ..Report::default() })
}

pub(crate) fn sets(set: &[(&str, &str)]) -> Input {
    report(Report { set: map(set), ..Report::default() })
}

pub(crate) fn output(text: &str) -> Input {
    report(Report { output: Some(text.to_owned()), ..Report::default() })
}

pub(crate) fn error(message: &str) -> Input {
    Input::now(Action::Error { message: message.to_owned() })
}

pub(crate) fn choose(choice: Choice) -> Input {
    Input::now(Action::Choose { choice, note: "so it is".to_owned() })
}

pub(crate) fn item(id: &str, severity: Severity, status: ItemStatus) -> ItemRecord {
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

pub(crate) fn record(items: Vec<ItemRecord>) -> Input {
    Input::now(Action::Record { gate: None, items, checks: Vec::new() })
}

pub(crate) fn check(name: &str, status: ItemStatus, proof: Proof) -> Input {
    let result = CheckResult { status, proof, note: String::new() };
    let checks = vec![CheckRecord { name: name.to_owned(), result }];
    Input::now(Action::Record { gate: None, items: Vec::new(), checks })
}

pub(crate) fn ran(command: &str, code: i32) -> Proof {
    Proof::Run { command: command.to_owned(), exit_code: Some(code) }
}

pub(crate) fn question(id: &str, options: usize) -> UserQuestion {
    UserQuestion {
        id: id.to_owned(),
        ask: format!("What about {id}?"),
        options: (0..options).map(|at| format!("option {at}")).collect(),
    }
}

pub(crate) fn ask(questions: Vec<UserQuestion>) -> Input {
    Input::now(Action::Ask { questions })
}

pub(crate) fn answer(answers: &[(&str, &str)]) -> Input {
    Input::now(Action::Answer { answers: map(answers) })
}
