//! Commands from people to runs.

use http::{Method, StatusCode};
use repertoire::runs::{DeliveredJson, MergeError, events_of, merge_run as take_over};
use repertoire_git::worktree::RunWorktrees;
use repertoire_journal::run::Limits;
use repertoire_journal::{Command, Payload, Run, RunStatus};
use repertoire_plan::{PlanDeliveryMode, PlanState};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::{ApiBuilder, ApiCall, ApiResult, EmptyBody, Nothing, whole};
use super::{RunIdPath, TAG, find_run, journal_problem};
use crate::http::problem::HttpProblem;
use crate::serve_state::ServeState;

/// New limits of a run; limits that are not given stay as they are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeRequest {
    /// The maximum cost of the whole run, in US dollars.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    max_cost_usd: Option<f64>,
    /// The maximum number of tokens of the whole run.
    #[serde(default, deserialize_with = "whole")]
    max_tokens: Option<u64>,
    /// The maximum working time of the whole run, in milliseconds.
    #[serde(default, deserialize_with = "whole")]
    max_time_ms: Option<u64>,
}

/// The tasks to retry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryRequest {
    /// Only these tasks; all failed tasks by default.
    #[serde(default)]
    tasks: Vec<String>,
}

/// A note for the next prompt.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SteerRequest {
    /// The text the next prompt begins with.
    #[schemars(regex(pattern = r"\S"))]
    note: String,
}

/// The way to merge the changes of a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MergeRequest {
    /// The strategy; `merge` by default.
    #[serde(default)]
    how: MergeStrategy,
    /// Merge although the run is not completed: the work is unverified then.
    #[serde(default)]
    force: bool,
}

/// A merge strategy.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MergeStrategy {
    /// Keep the commits.
    #[default]
    Merge,
    /// Squash into one commit.
    Squash,
    /// Put the changes on a branch of their own.
    Branch,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let no = "It makes no sense for the run as it is.";
    let post = Method::POST;
    api.add(post.clone(), "/api/v1/runs/{id}/pause", TAG, "Pause after this step", pause_run)
        .refuses(StatusCode::CONFLICT, no)
        .add(post.clone(), "/api/v1/runs/{id}/resume", TAG, "Let a run go on", resume_run)
        .refuses(StatusCode::CONFLICT, no)
        .add(post.clone(), "/api/v1/runs/{id}/cancel", TAG, "End a run", cancel_run)
        .refuses(StatusCode::CONFLICT, no)
        .add(post.clone(), "/api/v1/runs/{id}/retry", TAG, "Try again what failed", retry_run)
        .refuses(StatusCode::CONFLICT, no)
        .add(post.clone(), "/api/v1/runs/{id}/steer", TAG, "Say something to a run", steer_run)
        .refuses(StatusCode::CONFLICT, no)
        .add(post, "/api/v1/runs/{id}/merge", TAG, "Take over what a run changed", merge_run)
        .refuses(StatusCode::CONFLICT, "It cannot be taken over as it is.")
}

async fn pause_run(call: ApiCall<RunIdPath, Nothing, EmptyBody>) -> ApiResult<Run> {
    send_command(
        &call.serve_state,
        &call.path,
        Command::Pause { by: call.serve_state.order_origin() },
    )
    .await
}

async fn cancel_run(call: ApiCall<RunIdPath, Nothing, EmptyBody>) -> ApiResult<Run> {
    send_command(
        &call.serve_state,
        &call.path,
        Command::Cancel { by: call.serve_state.order_origin() },
    )
    .await
}

async fn steer_run(call: ApiCall<RunIdPath, Nothing, SteerRequest>) -> ApiResult<Run> {
    let note = call.body.note;
    if note.chars().all(is_blank) {
        return Err(HttpProblem::bad_request("there is nothing to say")
            .hint("`note` is what the next prompt begins with."));
    }
    send_command(
        &call.serve_state,
        &call.path,
        Command::Steer { by: call.serve_state.order_origin(), note },
    )
    .await
}

async fn resume_run(call: ApiCall<RunIdPath, Nothing, ResumeRequest>) -> ApiResult<Run> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let ResumeRequest { max_cost_usd, max_tokens, max_time_ms } = call.body;
    if max_cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(HttpProblem::bad_request("`max_cost_usd` is a number from 0"));
    }
    let said = Limits { cost_usd: max_cost_usd, tokens: max_tokens, time_ms: max_time_ms };
    let limits = Limits {
        cost_usd: said.cost_usd.or(run.limits.cost_usd),
        tokens: said.tokens.or(run.limits.tokens),
        time_ms: said.time_ms.or(run.limits.time_ms),
    };
    // The journal refuses to resume a completed run, with a better reason.
    if let Some(word) = used_up_limit(&run, &limits).filter(|_| run.status != RunStatus::Completed)
    {
        let detail = format!("the run would stop again at once: it has used its {word}");
        return Err(HttpProblem::new(StatusCode::CONFLICT, detail)
            .hint("Send a higher `max_cost_usd`, `max_tokens` or `max_time_ms`."));
    }
    let limits = (said != Limits::default()).then_some(limits);
    send_command(
        &call.serve_state,
        &call.path,
        Command::Resume { by: call.serve_state.order_origin(), limits },
    )
    .await
}

async fn retry_run(call: ApiCall<RunIdPath, Nothing, RetryRequest>) -> ApiResult<Run> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let tasks = call.body.tasks;
    let events = events_of(call.serve_state.journal().await.map_err(journal_problem)?, &run.id)
        .await
        .map_err(journal_problem)?;
    let state = PlanState::replay(&events);
    // An unknown task would otherwise be ignored silently.
    if let Some(unknown) = tasks.iter().find(|id| !state.tasks.contains_key(*id)) {
        let detail = format!("run {} has no task `{unknown}`", run.id.short());
        return Err(HttpProblem::new(StatusCode::CONFLICT, detail)
            .hint("The plan of the run names its tasks."));
    }
    send_command(
        &call.serve_state,
        &call.path,
        Command::Retry { by: call.serve_state.order_origin(), tasks },
    )
    .await
}

async fn merge_run(call: ApiCall<RunIdPath, Nothing, MergeRequest>) -> ApiResult<DeliveredJson> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let git = call.serve_state.git_in(run.workspace.as_str().into());
    let worktrees = RunWorktrees::new(git.clone(), call.serve_state.worktrees_dir());
    let ending = match call.body.how {
        MergeStrategy::Merge => PlanDeliveryMode::Merge,
        MergeStrategy::Squash => PlanDeliveryMode::Squash,
        MergeStrategy::Branch => PlanDeliveryMode::Branch,
    };
    let journal = call.serve_state.journal().await.map_err(journal_problem)?;
    let merged = take_over(journal, &run, &worktrees, &git, ending, call.body.force).await;
    let merged = merged.map_err(merge_problem)?;
    match merged.delivered {
        Payload::Delivered { strategy, branch, commit } => {
            Ok(DeliveredJson { strategy, branch, commit })
        }
        _ => Err(HttpProblem::new(StatusCode::CONFLICT, "there was nothing to take over")),
    }
}

fn merge_problem(error: MergeError) -> HttpProblem {
    let problem = HttpProblem::new(StatusCode::CONFLICT, error.to_string());
    match error {
        MergeError::Running { .. } => problem.hint("Pause it first."),
        MergeError::NotVouched { .. } => {
            problem.hint("Look at what it changed; `force` takes it all the same.")
        }
        MergeError::Refused { dir, .. } => problem.hint(format!("The work is in {dir}.")),
        MergeError::Journal(error) => journal_problem(error),
        MergeError::Gone { .. } | MergeError::Place(_) => problem,
    }
}

/// Matches what `\S` in the OpenAPI document excludes: some regex engines count the separators U+001C to U+001F as
/// whitespace, and Rust does not.
fn is_blank(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

async fn send_command(
    serve_state: &ServeState,
    path: &RunIdPath,
    command: Command,
) -> ApiResult<Run> {
    let run = find_run(serve_state, path).await?;
    serve_state
        .journal()
        .await
        .map_err(journal_problem)?
        .order(&run.id, command)
        .await
        .map_err(journal_problem)
}

fn used_up_limit(run: &Run, limits: &Limits) -> Option<&'static str> {
    let spent = &run.spent;
    match () {
        () if limits.cost_usd.is_some_and(|max| spent.cost_usd() >= max) => Some("dollars"),
        () if limits.tokens.is_some_and(|max| spent.total_tokens() >= max) => Some("tokens"),
        () if limits.time_ms.is_some_and(|max| spent.time_ms >= max) => Some("time"),
        () => None,
    }
}
