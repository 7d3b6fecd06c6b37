//! Workflows: list, steps and diagrams.

use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, header};
use repertoire_flow::driver::find::{FindError, find_workflow};
use repertoire_flow::driver::json_output::{WorkflowJson, WorkflowRow, rows};
use repertoire_flow::file::LoadedWorkflow;
use repertoire_flow::graph;
use repertoire_flow::workflow::Workflow;
use repertoire_skill::catalog::Catalog;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::skills::skill_not_found;
use super::workflow_runs::run_problem;
use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing, run_blocking};
use crate::http::openapi::ResponseShape;
use crate::http::problem::HttpProblem;

const TAG: &str = "workflows";

/// A filter for workflows.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct WorkflowFilter {
    /// Also list the workflows of sub-agents.
    all: Option<bool>,
}

/// The path of a workflow.
#[derive(Debug, Deserialize, JsonSchema)]
struct WorkflowNamePath {
    /// The name, or `skill/name` for the workflow of a sub-agent (with `%2F` for the slash).
    name: String,
}

/// The requested diagram.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct DiagramQuery {
    /// A run of the workflow, whose current step is highlighted.
    run: Option<String>,
}

/// A workflow with its diagnostics.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowWithDiagnostics {
    /// The workflow.
    #[serde(flatten)]
    shown: WorkflowJson,
    /// The diagnostics.
    diagnostics: Vec<DiagnosticJson>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let unreadable = "It cannot be read, or is a script.";
    api.list("/api/v1/workflows", TAG, "List workflows", list_workflows)
        .add(Method::GET, "/api/v1/workflows/{name}", TAG, "The steps of a workflow", show_workflow)
        .refuses(StatusCode::CONFLICT, unreadable)
        .get_other(
            "/api/v1/workflows/{name}/graph.svg",
            TAG,
            "A workflow as a picture",
            ResponseShape::text("image/svg+xml"),
            show_diagram,
        )
        .refuses(StatusCode::CONFLICT, "It cannot be read, is a script, or the run is of another.")
}

async fn list_workflows(
    call: ApiCall<Nothing, WorkflowFilter>,
) -> ApiResult<ListPage<WorkflowRow>> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let all = call.query.all.unwrap_or(false);
        let mut found: Vec<WorkflowRow> =
            catalog.entries().iter().flat_map(|entry| rows(entry, all)).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        call.paging.cut_page(found.into_iter())
    })
    .await
}

async fn show_workflow(call: ApiCall<WorkflowNamePath>) -> ApiResult<WorkflowWithDiagnostics> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let loaded = load_workflow(&catalog, &call.path.name)?;
        let path = loaded.source.path().to_string();
        let checked = loaded.checked.as_ref();
        let fingerprint = checked.map(|checked| checked.fingerprint().as_str().to_owned());
        let can_run = checked.is_some();
        let diagnostics = loaded.diagnostics.iter().map(DiagnosticJson::from).collect();
        let workflow = require_readable(loaded)?;
        let parameters = workflow.parameters.clone().into_iter().collect();
        let shown = WorkflowJson { workflow, path, fingerprint, can_run, parameters };
        Ok(WorkflowWithDiagnostics { shown, diagnostics })
    })
    .await
}

async fn show_diagram(call: ApiCall<WorkflowNamePath, DiagramQuery>) -> ApiResult<Response> {
    // A run continues with the workflow it was started with, even if the file has changed.
    let run = match &call.query.run {
        Some(wanted) => {
            let runs = call.serve_state.workflow_runs().await.map_err(run_problem)?;
            Some(runs.open_run(wanted).await.map_err(run_problem)?)
        }
        None => None,
    };
    run_blocking(move || {
        let drawn = match &run {
            Some(run) => {
                let (of, asked) = (&run.state.workflow, &call.path.name);
                if of != asked {
                    let detail =
                        format!("run `{}` is one of `{of}`, not of `{asked}`", run.state.run);
                    return Err(HttpProblem::new(StatusCode::CONFLICT, detail)
                        .hint("`GET /api/v1/workflow-runs?workflow=` lists the runs of one."));
                }
                graph::render_svg_at_step(run.workflow.workflow(), Some(&run.state.step))
            }
            None => {
                let catalog = call.serve_state.catalog();
                graph::render_svg(&require_readable(load_workflow(&catalog, &call.path.name)?)?)
            }
        };
        Ok(([(header::CONTENT_TYPE, "image/svg+xml")], drawn).into_response())
    })
    .await
}

fn load_workflow(catalog: &Catalog, name: &str) -> ApiResult<LoadedWorkflow> {
    let found = find_workflow(catalog, name).map_err(|error| match &error {
        FindError::NoSkill(missing) => skill_not_found(missing),
        FindError::Script { .. } => HttpProblem::new(StatusCode::CONFLICT, error.to_string())
            .hint("A script prints its steps as it is run, and has none to show."),
        FindError::NoWorkflow { .. } => HttpProblem::not_found(error.to_string())
            .hint("`GET /api/v1/workflows` lists those that are."),
        FindError::NoSuchWorkflow { has, .. } => {
            HttpProblem::not_found(error.to_string()).hint(format!("There are {}.", has.join(", ")))
        }
    });
    Ok(found?.1)
}

fn require_readable(loaded: LoadedWorkflow) -> ApiResult<Workflow> {
    let name = loaded.name;
    loaded.workflow.ok_or_else(|| {
        let detail = format!("workflow `{name}` cannot be read");
        HttpProblem::new(StatusCode::CONFLICT, detail).hint("`rep workflow check` says why.")
    })
}
