//! Workflows as data: steps, outcomes and gates that an engine enforces.
//!
//! A [`Workflow`] is a graph of steps, read from a `workflow.yaml` by [`mod@file`] or built in Rust from the same
//! types. Only a checked workflow ([`CheckedWorkflow`]) can run. A run is a value, [`WorkflowRunState`]: [`start`] creates it, and
//! [`advance_run`] computes the state that follows from a report. The instructions for an agent at each point are a
//! [`StepView`], which [`render`] turns into XML, text or JSON.
//!
//! Everything but [`driver`] is a function over values: no clock, no process, no model, and no disk access except reading
//! a skill's folder. [`driver`] stores runs and runs the commands of declared checks.
//!
//! # Example
//!
//! A workflow of three steps, from its start through its gate to its end:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use repertoire_flow::engine::{EngineAction, EngineInput};
//! use repertoire_flow::state::{WorkflowRunId, WorkflowRunState, WorkflowRunStatus};
//! use repertoire_flow::step::{StepAddressing, build_view};
//! use repertoire_flow::workflow::{
//!     Decide, FORMAT, Gate, ItemSeverity, ReverifyMode, StepDef, Workflow, WorkflowOutcome,
//!     WorkflowParameter,
//! };
//! use repertoire_flow::{CheckedWorkflow, advance_run, items, render, start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut gate = StepDef::new("gate", "Gate")
//!     .next([(WorkflowOutcome::Ok, "end"), (WorkflowOutcome::Fail, "write")]);
//! gate.decide = Decide::Gate(Gate {
//!     name: "Release notes".into(),
//!     reviews: vec!["review".into()],
//!     banner: Some("Review the notes as if another author had written them.".into()),
//!     stop: Some("Nothing is published before this gate is passed.".into()),
//!     schedule: vec![ItemSeverity::Could, ItemSeverity::Must],
//!     reverify: Some(ReverifyMode::Fresh),
//!     ..Gate::default()
//! });
//! let version = WorkflowParameter { required: true, ..WorkflowParameter::default() };
//! let workflow = Workflow {
//!     format: FORMAT,
//!     name: "release-notes".into(),
//!     parameters: [("version".to_owned(), version)].into_iter().collect(),
//!     steps: vec![
//!         StepDef::new("write", "Write the notes")
//!             .action("Write the release notes of {{ version }}.")
//!             .next("review"),
//!         StepDef::new("review", "Review the notes")
//!             .action("Make an item of every change; then check that the notes name it.")
//!             .next("gate"),
//!         gate,
//!     ],
//!     ..Workflow::default()
//! };
//!
//! // A workflow with a mistake is refused here, with all findings.
//! let flow = CheckedWorkflow::new(workflow)?;
//! let given = BTreeMap::from([("version".to_owned(), "1.2".to_owned())]);
//! let mut run = start(&flow, WorkflowRunId::new("notes-1"), &given)?;
//!
//! // The instructions for an agent at this point.
//! let text = render::render_text(&build_view(&flow, &run, &StepAddressing::Run)?);
//! assert!(text.contains("Write the release notes of 1.2."));
//!
//! let record = |run: &WorkflowRunState, text: &str| -> Result<_, Box<dyn std::error::Error>> {
//!     let (items, checks) = (items::parse_items(text)?, Vec::new());
//!     let input = EngineInput::about_now(EngineAction::Record { gate: None, items, checks });
//!     Ok(advance_run(&flow, run, &input)?)
//! };
//! run = advance_run(&flow, &run, &EngineInput::leave_with("ok"))?;
//! run = record(&run, r#"{"id": "C1", "check": "--json is named", "severity": "MUST"}"#)?;
//! run = advance_run(&flow, &run, &EngineInput::leave_with("ok"))?;
//!
//! // The item has no verdict yet, so the gate does not let the run pass, whatever is reported.
//! assert!(advance_run(&flow, &run, &EngineInput::leave_with("ok")).is_err());
//!
//! // The item fails, and the run goes back to the step that repairs.
//! run = record(&run, "C1=FAIL: --json is not named")?;
//! run = advance_run(&flow, &run, &EngineInput::leave_step())?;
//! assert_eq!((run.step.as_str(), run.review_iteration(&"gate".into())), ("write", 2));
//!
//! // In the second iteration every item is open again; this time it passes.
//! run = advance_run(&flow, &run, &EngineInput::leave_with("ok"))?;
//! run = record(&run, "C1=PASS")?;
//! run = advance_run(&flow, &run, &EngineInput::leave_with("ok"))?;
//! run = advance_run(&flow, &run, &EngineInput::leave_step())?;
//! assert_eq!(run.status, WorkflowRunStatus::Done);
//! # Ok(())
//! # }
//! ```

pub mod check;
pub mod check_command;
pub mod codes;
pub mod driver;
pub mod engine;
pub mod external;
pub mod file;
pub mod graph;
pub mod items;
pub mod limits;
pub mod render;
pub mod state;
pub mod step;
pub mod template;
pub mod workflow;

pub use check::CheckedWorkflow;
pub use engine::{EngineInput, advance_run, start};
pub use state::{WorkflowRunId, WorkflowRunState};
pub use step::{StepView, build_view};
pub use workflow::Workflow;
