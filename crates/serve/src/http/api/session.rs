//! Login codes for web pages, and sessions for codes.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Nothing, SESSION};
use crate::http::problem::Problem;
use crate::http::token::{CODE_LIFE, SESSION_LIFE, TokenError};

/// A login code to redeem.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Redeem {
    /// The code.
    code: String,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
struct Session {
    /// The bearer token.
    token: String,
    /// The lifetime in seconds.
    expires_in_s: u64,
}

/// A login code.
#[derive(Debug, Serialize, JsonSchema)]
struct Code {
    /// The code, which can be used once.
    code: String,
    /// The lifetime in seconds.
    expires_in_s: u64,
}

pub(super) fn add(api: Api) -> Api {
    let api = api.add(Method::POST, SESSION, "daemon", "Exchange a code for a session", redeem);
    api.add(Method::POST, "/api/v1/links", "daemon", "Ask for a code that opens a page", lend)
}

async fn redeem(call: Call<Nothing, Nothing, Redeem>) -> Answer<Session> {
    let session = call.keys.redeem(&call.body.code, call.house.now_ms()).map_err(no_random)?;
    match session {
        Some(token) => Ok(Session { token, expires_in_s: SESSION_LIFE.as_secs() }),
        None => {
            Err(Problem::new(StatusCode::UNAUTHORIZED, "this link was used before, or is too old")
                .hint("`rep serve link` prints another."))
        }
    }
}

async fn lend(call: Call) -> Answer<Code> {
    let code = call.keys.lend_code(call.house.now_ms()).map_err(no_random)?;
    Ok(Code { code, expires_in_s: CODE_LIFE.as_secs() })
}

fn no_random(error: TokenError) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
