//! The plans of the project: tasks, progress and problems.

use camino::{Utf8Path, Utf8PathBuf};
use http::StatusCode;
use repertoire_plan::document::json::PlanStatusJson;
use repertoire_plan::document::{Choice, check, parse_bytes, select_task};
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_plan::places;
use repertoire_skill::catalog::Catalog;
use repertoire_text::fs::{self, ReadError};
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Nothing, Page, blocking};
use crate::http::problem::Problem;

/// A filter for plans.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Only the plan in this file, a path below the project; all plans found by default.
    path: Option<String>,
}

/// A plan with its diagnostics.
#[derive(Debug, Serialize, JsonSchema)]
struct PlanJson {
    /// The progress of the plan.
    #[serde(flatten)]
    status: PlanStatusJson,
    /// The problems of the plan.
    diagnostics: Vec<DiagnosticJson>,
    /// The reason why the file cannot be read, if so; all other fields are empty then.
    broken: Option<String>,
}

pub(super) fn add(api: Api) -> Api {
    api.list("/api/v1/plans", "plans", "The plans of the project, with their tasks", list)
        .refuses(StatusCode::NOT_FOUND, "There is no such file below the project.")
        .refuses(StatusCode::CONFLICT, "The file is too large.")
}

async fn list(call: Call<Nothing, Which>) -> Answer<Page<PlanJson>> {
    blocking(move || {
        let (project, catalog) = (call.house.project(), call.house.catalog());
        if let Some(path) = call.query.path {
            let plan =
                read(project, Utf8Path::new(&path), &catalog).map_err(|why| no(&path, why))?;
            return call.paging.cut(std::iter::once(plan));
        }
        let page = call.paging.cut(places::all(project).into_iter())?;
        let row = |path: &Utf8PathBuf| {
            read(project, path, &catalog).unwrap_or_else(|why| broken(path, &why))
        };
        Ok(Page { items: page.items.iter().map(row).collect(), next: page.next, total: page.total })
    })
    .await
}

fn no(path: &str, why: ReadError) -> Problem {
    let detail = format!("`{path}` cannot be read: {why}");
    match why {
        ReadError::TooLarge { .. } => Problem::new(StatusCode::CONFLICT, detail),
        _ => Problem::not_found(detail)
            .hint("`path` is a file below the project, such as `PLAN.md`."),
    }
}

/// An entry for an unreadable plan, so that it does not hide the others.
fn broken(path: &Utf8Path, why: &ReadError) -> PlanJson {
    let status = PlanStatusJson::of(&parse_bytes(&[], path), None, 0);
    PlanJson { status, diagnostics: Vec::new(), broken: Some(why.to_string()) }
}

fn read(project: &Utf8Path, path: &Utf8Path, catalog: &Catalog) -> Result<PlanJson, ReadError> {
    let bytes = fs::read_bytes_beneath(project, path, PLAN_BYTES_MAX as u64)?;
    let plan = parse_bytes(&bytes, path);
    let known = |name: &str| catalog.resolve(name).is_ok();
    let beside = project.join(path.parent().unwrap_or(Utf8Path::new("")));
    let exists = |named: &str| {
        let named = Utf8Path::new(named);
        fs::is_beneath(named) && (beside.join(named).is_file() || project.join(named).is_file())
    };
    let found = check(&plan, &known, &exists);
    let next = match select_task(&plan) {
        Choice::Task(id) if plan.fallback.is_none() => Some(id),
        _ => None,
    };
    let errors = found.iter().filter(|found| found.is_error()).count();
    Ok(PlanJson {
        status: PlanStatusJson::of(&plan, next, errors),
        diagnostics: found.iter().map(DiagnosticJson::from).collect(),
        broken: None,
    })
}
