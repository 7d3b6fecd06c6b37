//! The API: a table of endpoints, each with its input and output types. The router and the OpenAPI document are built
//! from the same table, so they cannot disagree.

mod budgets;
mod costs;
mod diagnostics;
mod events;
mod health;
mod metrics;
mod plans;
mod prompt;
mod reviews;
mod runs;
mod select;
mod session;
mod skills;
mod status;
mod workflow_runs;
mod workflows;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, FromRequestParts as _, Path, Query, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::{HeaderMap, Method, StatusCode, Uri};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::openapi::{self, ApiOperation, ResponseShape};
use super::problem::HttpProblem;
use super::token::AccessKeys;
use crate::serve_state::ServeState;

/// The path where a page exchanges its code for a session; the only path of the API that needs no token.
pub const SESSION: &str = "/api/v1/session";

/// The path of the OpenAPI document.
const DOCUMENT: &str = "/api/v1/openapi.json";

/// The maximum number of items on a page.
pub const PAGE_MAX: usize = 500;
/// The default number of items on a page.
pub const PAGE_USUAL: usize = 50;

/// No path parameters, no query or no body.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub struct Nothing {}

/// An empty object.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyBody {}

/// The parsed request of an endpoint.
pub struct ApiCall<P = Nothing, Q = Nothing, B = Nothing> {
    /// The state that is served.
    pub serve_state: ServeState,
    /// The accepted tokens.
    pub keys: Arc<AccessKeys>,
    /// The parameters of the path.
    pub path: P,
    pub query: Q,
    /// The requested page of a list.
    pub paging: PageQuery,
    pub headers: HeaderMap,
    pub body: B,
}

/// The result of an endpoint.
pub type ApiResult<R> = Result<R, HttpProblem>;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListPage<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// The `cursor` of the next page; none on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The total number of items, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// The requested page of a list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct PageQuery {
    /// The position to continue from: `next` of the previous page.
    #[schemars(regex(pattern = r"^[0-9]{1,15}$"))]
    pub cursor: Option<String>,
    /// The maximum number of items; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<usize>,
}

impl PageQuery {
    /// The number of items requested.
    ///
    /// # Errors
    ///
    /// If the limit is 0 or too high.
    pub fn page_limit(&self) -> ApiResult<usize> {
        match self.limit {
            None => Ok(PAGE_USUAL),
            Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(HttpProblem::bad_request(format!("`limit` is 1 to {PAGE_MAX}"))),
        }
    }

    /// The index at which the page starts.
    ///
    /// # Errors
    ///
    /// If the cursor is invalid.
    pub fn start(&self) -> ApiResult<usize> {
        let Some(text) = &self.cursor else { return Ok(0) };
        let is_number = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
        let start = text.parse().ok().filter(|_| is_number);
        start.ok_or_else(|| {
            HttpProblem::bad_request("`cursor` is none that was given out")
                .hint("Send `next` of the page before, or nothing for the first page.")
        })
    }

    /// Cuts the page out of a complete list. The cursor is a position, so a list that changes in the meantime may show
    /// an item twice or not at all.
    ///
    /// # Errors
    ///
    /// If the cursor or the limit is invalid.
    pub fn cut_page<T>(&self, all: impl ExactSizeIterator<Item = T>) -> ApiResult<ListPage<T>> {
        let limit = self.page_limit()?;
        let start = self.start()?;
        let total = all.len();
        let items: Vec<T> = all.skip(start).take(limit).collect();
        let end = start.saturating_add(items.len());
        let next = (end < total && !items.is_empty()).then(|| end.to_string());
        Ok(ListPage { items, next, total: Some(total) })
    }
}

/// Builds the API with all endpoints.
pub fn build_api(serve_state: &ServeState, keys: &Arc<AccessKeys>) -> ApiBuilder {
    let parts = [
        health::add_endpoints,
        session::add_endpoints,
        status::add_endpoints,
        skills::add_endpoints,
        diagnostics::add_endpoints,
        budgets::add_endpoints,
        select::add_endpoints,
        events::add_endpoints,
        runs::add_endpoints,
        costs::add_endpoints,
        plans::add_endpoints,
        prompt::add_endpoints,
        workflows::add_endpoints,
        workflow_runs::add_endpoints,
        reviews::add_endpoints,
        metrics::add_endpoints,
    ];
    let api = ApiBuilder::new(serve_state.clone(), Arc::clone(keys));
    parts.iter().fold(api, |api, add| add(api)).with_document()
}

/// A set of endpoints, built one by one.
pub struct ApiBuilder {
    serve_state: ServeState,
    keys: Arc<AccessKeys>,
    router: Router,
    operations: Vec<ApiOperation>,
}

type BoxedResponse = Pin<Box<dyn Future<Output = Response> + Send>>;

impl ApiBuilder {
    fn new(serve_state: ServeState, keys: Arc<AccessKeys>) -> Self {
        ApiBuilder { serve_state, keys, router: Router::new(), operations: Vec::new() }
    }

    /// Adds an endpoint. `tag` is the group it is listed under, `summary` describes it in one line.
    #[must_use]
    pub fn add<P, Q, B, R, F, Fut>(
        self,
        method: Method,
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
        handler: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Default + Send + 'static,
        R: Serialize + JsonSchema + 'static,
        F: Fn(ApiCall<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ApiResult<R>> + Send,
    {
        let shape = ResponseShape::json::<R>();
        let operation = ApiOperation::new::<P, Q, B>(&method, path, tag, summary, shape);
        self.add_route(method, operation, move |call| {
            let answered = handler(call);
            async move { answered.await.map(|answer| axum::Json(answer).into_response()) }
        })
    }

    /// Adds an endpoint that returns a page of a list.
    #[must_use]
    pub fn list<P, Q, R, F, Fut>(
        self,
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
        handler: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + 'static,
        F: Fn(ApiCall<P, Q>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ApiResult<R>> + Send,
    {
        let shape = ResponseShape::json::<R>();
        let operation = ApiOperation::new::<P, Q, Nothing>(&Method::GET, path, tag, summary, shape);
        self.add_route(Method::GET, operation.paged(), move |call| {
            let answered = handler(call);
            async move { answered.await.map(|answer| axum::Json(answer).into_response()) }
        })
    }

    /// Adds an endpoint that does not return JSON.
    #[must_use]
    pub fn get_other<P, Q, F, Fut>(
        self,
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
        shape: ResponseShape,
        handler: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ApiCall<P, Q>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ApiResult<Response>> + Send,
    {
        let operation = ApiOperation::new::<P, Q, Nothing>(&Method::GET, path, tag, summary, shape);
        self.add_route(Method::GET, operation, handler)
    }

    /// Documents another status that the last added endpoint may return.
    #[must_use]
    pub fn refuses(mut self, status: StatusCode, when: &'static str) -> Self {
        if let Some(operation) = self.operations.last_mut() {
            operation.add_refusal(status, when);
        }
        self
    }

    fn add_route<P, Q, B, F, Fut>(
        mut self,
        method: Method,
        operation: ApiOperation,
        handler: F,
    ) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        Q: DeserializeOwned + Send + 'static,
        B: DeserializeOwned + Default + Send + 'static,
        F: Fn(ApiCall<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ApiResult<Response>> + Send,
    {
        let (serve_state, keys) = (self.serve_state.clone(), Arc::clone(&self.keys));
        let rules = Arc::new(EndpointRules {
            query: operation.query_names(),
            body: operation.takes_body(),
        });
        let path = operation.path();
        self.operations.push(operation);
        let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
        let serve = move |request: Request| -> BoxedResponse {
            let (serve_state, keys, handler) =
                (serve_state.clone(), Arc::clone(&keys), handler.clone());
            let rules = Arc::clone(&rules);
            Box::pin(async move {
                let answered = async {
                    let call = read_call::<P, Q, B>(request, &rules, serve_state, keys).await?;
                    handler(call).await
                };
                answered.await.unwrap_or_else(IntoResponse::into_response)
            })
        };
        self.router = self.router.route(path, on(filter, serve));
        self
    }

    /// Adds the document that describes all endpoints added before, and itself.
    fn with_document(self) -> Self {
        let document: Arc<OnceLock<serde_json::Value>> = Arc::default();
        let told = Arc::clone(&document);
        let summary = "This document";
        let api = self.add(Method::GET, DOCUMENT, "daemon", summary, move |_: ApiCall| {
            let told = Arc::clone(&told);
            async move {
                let whole = told.get().and_then(serde_json::Value::as_object).cloned();
                Ok(whole.unwrap_or_default())
            }
        });
        document.get_or_init(|| openapi::build_document(&api.operations));
        api
    }

    /// Turns the endpoints into a router.
    pub fn into_router(self) -> Router {
        let count =
            axum::middleware::from_fn_with_state(self.serve_state, super::metrics::count_requests);
        self.router.route_layer(count)
    }
}

/// The query parameters and body an endpoint accepts.
struct EndpointRules {
    query: BTreeSet<String>,
    body: bool,
}

async fn read_call<P, Q, B>(
    request: Request,
    rules: &EndpointRules,
    serve_state: ServeState,
    keys: Arc<AccessKeys>,
) -> ApiResult<ApiCall<P, Q, B>>
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + 'static,
    B: DeserializeOwned + Default + 'static,
{
    let (mut head, body) = request.into_parts();
    let path = Path::<P>::from_request_parts(&mut head, &()).await;
    let path = path.map_err(|error| HttpProblem::bad_request(error.body_text()))?.0;
    refuse_unknown(&head.uri, &rules.query)?;
    let (query, paging) = (parse_query(&head.uri)?, parse_query(&head.uri)?);
    let headers = head.headers.clone();
    let takes_bytes = head.method == Method::POST;
    if takes_bytes {
        super::guard::require_json(&headers)?;
    }
    let bytes = if takes_bytes {
        let read = Bytes::from_request(Request::from_parts(head, body), &()).await;
        read.map_err(|error| HttpProblem::new(error.status(), error.body_text()))?
    } else {
        Bytes::new()
    };
    let body = if rules.body {
        parse_object(&bytes)?
    } else {
        if !bytes.is_empty() {
            parse_object::<EmptyBody>(&bytes)?;
        }
        B::default()
    };
    Ok(ApiCall { serve_state, keys, path, query, paging, headers, body })
}

fn parse_query<Q: DeserializeOwned>(uri: &Uri) -> ApiResult<Q> {
    let read = Query::<Q>::try_from_uri(uri);
    read.map(|query| query.0).map_err(|error| HttpProblem::bad_request(error.body_text()))
}

/// Refuses unknown query parameters: a misspelt filter would otherwise be ignored without notice.
fn refuse_unknown(uri: &Uri, known: &BTreeSet<String>) -> ApiResult<()> {
    let given: Vec<(String, String)> = parse_query(uri)?;
    match given.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let problem = HttpProblem::bad_request(format!("there is no parameter `{name}` here"));
            Err(if known.is_empty() {
                problem
            } else {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                problem.hint(format!("There are: {}.", names.join(", ")))
            })
        }
    }
}

/// Parses a body as one JSON object. Serde would take a list for the values of the object's fields, so lists are
/// refused.
fn parse_object<B: DeserializeOwned>(bytes: &[u8]) -> ApiResult<B> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(HttpProblem::bad_request("the body is no JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        HttpProblem::bad_request(format!("the body is not what is asked for: {error}"))
            .hint("`GET /api/v1/openapi.json` describes it.")
    })
}

/// Deserialises a whole number, including `5.0`, which is the same number in JSON.
pub(crate) fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    use serde::de::Error as _;
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    let exact =
        number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(float));
    let whole = number.as_u64().or(exact.map(|float| float as u64));
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("`{number}` is no whole number from 0")))
}

/// The largest integer up to which every `f64` is exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Runs slow or blocking work on the blocking thread pool.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        // A panic only affects the request that caused it.
        Err(_) => Err(HttpProblem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "this request has met a fault of Repertoire",
        )),
    }
}
