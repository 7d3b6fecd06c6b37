//! Login codes for web pages, and sessions for codes.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, Nothing, SESSION};
use crate::http::problem::HttpProblem;
use crate::http::token::{CODE_LIFE, SESSION_LIFE, TokenError};

/// A login code to redeem.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct RedeemRequest {
    /// The code.
    code: String,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionJson {
    /// The bearer token.
    token: String,
    /// The lifetime in seconds.
    expires_in_s: u64,
}

/// A login code.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginCodeJson {
    /// The code, which can be used once.
    code: String,
    /// The lifetime in seconds.
    expires_in_s: u64,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let api =
        api.add(Method::POST, SESSION, "daemon", "Exchange a code for a session", redeem_code);
    api.add(Method::POST, "/api/v1/links", "daemon", "Ask for a code that opens a page", issue_code)
}

async fn redeem_code(call: ApiCall<Nothing, Nothing, RedeemRequest>) -> ApiResult<SessionJson> {
    let session =
        call.keys.redeem(&call.body.code, call.serve_state.now_ms()).map_err(token_problem)?;
    match session {
        Some(token) => Ok(SessionJson { token, expires_in_s: SESSION_LIFE.as_secs() }),
        None => Err(HttpProblem::new(
            StatusCode::UNAUTHORIZED,
            "this link was used before, or is too old",
        )
        .hint("`rep serve link` prints another.")),
    }
}

async fn issue_code(call: ApiCall) -> ApiResult<LoginCodeJson> {
    let code = call.keys.issue_code(call.serve_state.now_ms()).map_err(token_problem)?;
    Ok(LoginCodeJson { code, expires_in_s: CODE_LIFE.as_secs() })
}

fn token_problem(error: TokenError) -> HttpProblem {
    HttpProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
