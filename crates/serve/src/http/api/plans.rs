//! The plans of the project: tasks, progress and problems.

use camino::{Utf8Path, Utf8PathBuf};
use http::StatusCode;
use repertoire_plan::document::json::PlanStatusJson;
use repertoire_plan::document::{TaskChoice, check_plan, parse_plan_bytes, select_task};
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_plan::locations;
use repertoire_skill::catalog::Catalog;
use repertoire_text::fs::{self, ReadError};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing, run_blocking};
use crate::http::problem::HttpProblem;

/// A filter for plans.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct PlanFilter {
    /// Only the plan in this file, a path below the project; all plans found by default.
    path: Option<String>,
}

/// A plan with its diagnostics.
#[derive(Debug, Serialize, JsonSchema)]
struct PlanWithDiagnostics {
    /// The progress of the plan.
    #[serde(flatten)]
    status: PlanStatusJson,
    /// The problems of the plan.
    diagnostics: Vec<DiagnosticJson>,
    /// The reason why the file cannot be read, if so; all other fields are empty then.
    broken: Option<String>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.list("/api/v1/plans", "plans", "The plans of the project, with their tasks", list_plans)
        .refuses(StatusCode::NOT_FOUND, "There is no such file below the project.")
        .refuses(StatusCode::CONFLICT, "The file is too large.")
}

async fn list_plans(
    call: ApiCall<Nothing, PlanFilter>,
) -> ApiResult<ListPage<PlanWithDiagnostics>> {
    run_blocking(move || {
        let (project, catalog) = (call.serve_state.project(), call.serve_state.catalog());
        if let Some(path) = call.query.path {
            let plan = read_plan(project, Utf8Path::new(&path), &catalog)
                .map_err(|why| read_problem(&path, why))?;
            return call.paging.cut_page(std::iter::once(plan));
        }
        let page = call.paging.cut_page(locations::find_plans(project).into_iter())?;
        let row = |path: &Utf8PathBuf| {
            read_plan(project, path, &catalog).unwrap_or_else(|why| broken_plan(path, &why))
        };
        Ok(ListPage {
            items: page.items.iter().map(row).collect(),
            next: page.next,
            total: page.total,
        })
    })
    .await
}

fn read_problem(path: &str, why: ReadError) -> HttpProblem {
    let detail = format!("`{path}` cannot be read: {why}");
    match why {
        ReadError::TooLarge { .. } => HttpProblem::new(StatusCode::CONFLICT, detail),
        _ => HttpProblem::not_found(detail)
            .hint("`path` is a file below the project, such as `PLAN.md`."),
    }
}

/// An entry for an unreadable plan, so that it does not hide the others.
fn broken_plan(path: &Utf8Path, why: &ReadError) -> PlanWithDiagnostics {
    let status = PlanStatusJson::from_plan(&parse_plan_bytes(&[], path), None, 0);
    PlanWithDiagnostics { status, diagnostics: Vec::new(), broken: Some(why.to_string()) }
}

fn read_plan(
    project: &Utf8Path,
    path: &Utf8Path,
    catalog: &Catalog,
) -> Result<PlanWithDiagnostics, ReadError> {
    let bytes = fs::read_bytes_beneath(project, path, PLAN_BYTES_MAX as u64)?;
    let plan = parse_plan_bytes(&bytes, path);
    let known = |name: &str| catalog.resolve(name).is_ok();
    let beside = project.join(path.parent().unwrap_or(Utf8Path::new("")));
    let exists = |named: &str| {
        let named = Utf8Path::new(named);
        fs::is_beneath(named) && (beside.join(named).is_file() || project.join(named).is_file())
    };
    let found = check_plan(&plan, &known, &exists);
    let next = match select_task(&plan) {
        TaskChoice::Task(id) if plan.fallback.is_none() => Some(id),
        _ => None,
    };
    let errors = found.iter().filter(|found| found.is_error()).count();
    Ok(PlanWithDiagnostics {
        status: PlanStatusJson::from_plan(&plan, next, errors),
        diagnostics: found.iter().map(DiagnosticJson::from).collect(),
        broken: None,
    })
}
