//! Runs of workflows: their state, the verdicts of their gates, and decisions of people.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use repertoire_flow::StepView;
use repertoire_flow::driver::desk::{DeskError, Standing};
use repertoire_flow::driver::shown::{GateJson, RunRow, StatusJson, gate_in_question};
use repertoire_flow::driver::{Listed, Run, RunError, ScriptRun};
use repertoire_flow::engine::{Choice, verdict};
use repertoire_flow::state::{Review, Status, Waiting};
use repertoire_flow::step::{Addressing, view};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Answer, Api, Call, Nothing, Page, blocking};
use crate::house::House;
use crate::http::problem::Problem;

const TAG: &str = "workflows";

/// An entry of the list of runs; the run's folder may be unreadable.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// The run.
    #[serde(flatten)]
    row: RunRow,
    /// The reason why the run cannot be read, if so; all other fields are empty then.
    broken: Option<String>,
}

/// A filter for runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Only runs in this state.
    state: Option<WhichState>,
    /// Only runs of this workflow.
    workflow: Option<String>,
    /// Only runs of the project that is served.
    here: Option<bool>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WhichState {
    /// Waiting for an agent.
    Active,
    /// Waiting for a person.
    Waiting,
    /// Complete.
    Done,
    /// Ended by a person.
    Aborted,
    /// The run's folder cannot be read.
    Broken,
}

impl WhichState {
    fn as_str(self) -> &'static str {
        match self {
            WhichState::Active => "active",
            WhichState::Waiting => "waiting",
            WhichState::Done => "done",
            WhichState::Aborted => "aborted",
            WhichState::Broken => "broken",
        }
    }
}

/// The path of a run.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunPath {
    /// The id of the run, or a prefix of it.
    id: String,
}

/// The state of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    /// The stored status.
    #[serde(flatten)]
    status: StatusJson,
    /// The current step, as an agent sees it; null if one of its templates cannot be rendered.
    view: Option<StepView>,
    /// The current verdict of the relevant gate; null if the workflow has none.
    gate: Option<GateJson>,
    /// The choices of a person, if the run waits for one.
    choices: Vec<String>,
}

/// A person's decision.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decide {
    /// One of the `choices` of the run.
    choice: String,
    /// The reason, for the record.
    #[serde(default)]
    note: Option<String>,
}

/// A person's answers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answers {
    /// The answers, by question id.
    answers: BTreeMap<String, String>,
}

pub(super) fn add(api: Api) -> Api {
    let no = "It makes no sense for the run as it is, or the run cannot be read.";
    api.list("/api/v1/workflow-runs", TAG, "List runs of workflows, the latest first", list)
        .add(Method::GET, "/api/v1/workflow-runs/{id}", TAG, "Where a run is", show)
        .refuses(StatusCode::CONFLICT, no)
        .add(
            Method::POST,
            "/api/v1/workflow-runs/{id}/choice",
            TAG,
            "Decide how a run that has stopped goes on",
            choose,
        )
        .refuses(StatusCode::CONFLICT, no)
        .add(
            Method::POST,
            "/api/v1/workflow-runs/{id}/answers",
            TAG,
            "Answer what an agent has asked",
            answer,
        )
        .refuses(StatusCode::CONFLICT, no)
}

async fn list(call: Call<Nothing, Which>) -> Answer<Page<Row>> {
    blocking(move || {
        let project = call.house.project().to_string();
        let wants = |row: &Row| {
            call.query.state.is_none_or(|state| row.row.state == state.as_str())
                && call.query.workflow.as_ref().is_none_or(|name| row.row.workflow == *name)
                && (!call.query.here.unwrap_or(false) || row.row.folder == project)
        };
        let all = call.house.workflows().list().map_err(failed)?;
        let rows: Vec<Row> = all.iter().map(row).filter(|row| wants(row)).collect();
        call.paging.cut(rows.into_iter())
    })
    .await
}

fn row(listed: &Listed) -> Row {
    match listed {
        Listed::Run { head, state } => Row { row: RunRow::new(head, state), broken: None },
        Listed::Script(run) => Row { row: RunRow::of_script(run), broken: None },
        Listed::Broken { id, error } => {
            let row = RunRow {
                run: id.clone(),
                workflow: String::new(),
                state: "broken",
                step: String::new(),
                turn: 0,
                waiting_for: None,
                folder: String::new(),
                parent: None,
                begun_ms: 0,
                updated_ms: 0,
            };
            Row { row, broken: Some(error.to_string()) }
        }
    }
}

async fn show(call: Call<RunPath>) -> Answer<Shown> {
    blocking(move || standing(&call.house, &call.path.id)).await
}

async fn choose(call: Call<RunPath, Nothing, Decide>) -> Answer<Shown> {
    let Decide { choice, note } = call.body;
    let id = resolve(&call.house, &call.path.id)?;
    let cancel = CancellationToken::new();
    let note = note.unwrap_or_default();
    // Spawn a task, so that a client that disconnects does not abort a script half way.
    let house = call.house.clone();
    let run = id.clone();
    let decided = tokio::spawn(async move {
        house.desk().choose(&run, &choice, &note, &cancel).await.map_err(refused)
    });
    let decided = decided.await.map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("it was not decided: {error}"))
    });
    decided??;
    blocking(move || standing(&call.house, &id)).await
}

async fn answer(call: Call<RunPath, Nothing, Answers>) -> Answer<Shown> {
    blocking(move || {
        let id = resolve(&call.house, &call.path.id)?;
        if call.house.workflows().is_script(&id).map_err(failed)? {
            let detail = "a script asks no questions that can be answered here";
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let answered = call.house.desk().answer(&id, call.body.answers);
        match answered.map_err(refused)? {
            Standing::Workflow(run) => Ok(of_workflow(&run)),
            Standing::Script(run) => Ok(of_script(&run)),
        }
    })
    .await
}

fn resolve(house: &House, wanted: &str) -> Answer<String> {
    house.workflows().resolve(wanted).map_err(failed)
}

fn standing(house: &House, wanted: &str) -> Answer<Shown> {
    let runs = house.workflows();
    if runs.is_script(wanted).map_err(failed)? {
        Ok(of_script(&runs.open_script(wanted).map_err(failed)?))
    } else {
        Ok(of_workflow(&runs.open(wanted).map_err(failed)?))
    }
}

fn of_workflow(run: &Run) -> Shown {
    let none = Review::default();
    let gate = gate_in_question(run).map(|(step, gate)| {
        let review = run.state.reviews.get(&step.id).unwrap_or(&none);
        GateJson::new(run, &step.id, gate, review, &verdict(gate, review))
    });
    let choices = match &run.state.status {
        // Questions have to be answered; no choice is offered.
        Status::Waiting(Waiting::Questions { .. }) => Vec::new(),
        Status::Waiting(waiting) => Choice::possible(&run.workflow, waiting),
        _ => Vec::new(),
    };
    Shown {
        status: StatusJson::of(run),
        view: view(&run.workflow, &run.state, &Addressing::Run).ok(),
        gate,
        choices: choices.iter().map(ToString::to_string).collect(),
    }
}

/// The state of a script run. Scripts have a state of their own, of which only the position maps to a workflow's.
fn of_script(run: &ScriptRun) -> Shown {
    let is_waiting = run.status() == "waiting";
    let row = RunRow::of_script(run);
    let message = row.waiting_for.clone().unwrap_or_default();
    let status = StatusJson {
        status: match run.status() {
            "waiting" => Status::Waiting(Waiting::Error { message }),
            "done" => Status::Done,
            "aborted" => Status::Aborted,
            _ => Status::Active,
        },
        run: row,
        parameters: BTreeMap::new(),
        visits: BTreeMap::new(),
        outputs: BTreeMap::new(),
        reviews: BTreeMap::new(),
        decisions: Vec::new(),
        history: Vec::new(),
        fingerprint: String::new(),
    };
    let choices = if is_waiting { vec!["continue".to_owned(), "abort".to_owned()] } else { vec![] };
    Shown { status, view: Some(run.view()), gate: None, choices }
}

/// Maps an error of the run store to a problem.
pub(super) fn failed(error: RunError) -> Problem {
    let status = match &error {
        RunError::NotFound { .. } => StatusCode::NOT_FOUND,
        RunError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    };
    let problem = Problem::new(status, error.to_string());
    match error {
        RunError::NotFound { .. } | RunError::Ambiguous { .. } => {
            problem.hint("`GET /api/v1/workflow-runs` lists them.")
        }
        RunError::InUse { .. } => problem.hint("Try again in a moment."),
        RunError::Refused(_) => problem.hint("The run itself says what can be done."),
        _ => problem,
    }
}

fn refused(error: DeskError) -> Problem {
    match error {
        DeskError::Run(error) => failed(error),
        DeskError::NoChoice { .. } => Problem::new(StatusCode::CONFLICT, error.to_string())
            .hint("The run itself says what can be chosen."),
        error => Problem::new(StatusCode::CONFLICT, error.to_string()),
    }
}
