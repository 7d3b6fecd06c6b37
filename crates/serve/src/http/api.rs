//! The API: a table of endpoints, each with the types of what goes in and comes out. The router and the OpenAPI document are
//! made of the same table, so that neither can say what the other does not.

mod health;
mod session;
mod skills;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::openapi::{self, Operation};
use super::problem::Problem;
use super::token::Keys;
use crate::house::House;

/// Where a page exchanges its code for a session; the one address of the API that needs no token.
pub const SESSION: &str = "/api/v1/session";

/// The most items of one page, and how many there are if nobody says.
pub const PAGE_MAX: usize = 500;
/// How many items a page has if nobody says.
pub const PAGE_USUAL: usize = 50;

/// No parameters, no query or no body.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub struct Nothing {}

/// What an endpoint is asked.
pub struct Call<P = Nothing, Q = Nothing, B = Nothing> {
    /// What is served.
    pub house: House,
    /// Who may come in.
    pub keys: Arc<Keys>,
    /// The parameters of the path.
    pub path: P,
    /// The query.
    pub query: Q,
    /// The body.
    pub body: B,
}

/// What an endpoint answers.
pub type Answer<R> = Result<R, Problem>;

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page<T> {
    /// The items, in their order.
    pub items: Vec<T>,
    /// What to ask for as `cursor` to get the next page; none on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many there are in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// Which page of a list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Paging {
    /// Where to go on: `next` of the page before.
    pub cursor: Option<String>,
    /// How many items at most.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<usize>,
}

impl Paging {
    /// How many items are wanted.
    ///
    /// # Errors
    ///
    /// When that is none, or too many.
    pub fn limit(&self) -> Answer<usize> {
        match self.limit {
            None => Ok(PAGE_USUAL),
            Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(Problem::bad_request(format!("`limit` is 1 to {PAGE_MAX}"))),
        }
    }

    /// Cuts the page out of a list that is at hand as a whole. The cursor is a position, so a list that changes meanwhile may
    /// show an item twice or not at all.
    ///
    /// # Errors
    ///
    /// When the cursor is none of ours.
    pub fn cut<T>(&self, all: impl ExactSizeIterator<Item = T>) -> Answer<Page<T>> {
        let limit = self.limit()?;
        let start = match &self.cursor {
            None => 0,
            Some(text) => text
                .parse()
                .map_err(|_| Problem::bad_request("`cursor` is none that was given out"))?,
        };
        let total = all.len();
        let items: Vec<T> = all.skip(start).take(limit).collect();
        let end = start.saturating_add(items.len());
        let next = (end < total && !items.is_empty()).then(|| end.to_string());
        Ok(Page { items, next, total: Some(total) })
    }
}

/// All endpoints.
pub fn all(house: &House, keys: &Arc<Keys>) -> Api {
    let api = Api::new(house.clone(), Arc::clone(keys));
    let api = health::add(api);
    let api = session::add(api);
    skills::add(api)
}

/// Endpoints as they are added.
pub struct Api {
    house: House,
    keys: Arc<Keys>,
    router: Router,
    operations: Vec<Operation>,
}

type BoxedResponse = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Api {
    fn new(house: House, keys: Arc<Keys>) -> Self {
        Api { house, keys, router: Router::new(), operations: Vec::new() }
    }

    /// Adds an endpoint. `tag` is the group it is listed under, `summary` what it does in a line.
    #[must_use]
    pub fn add<P, Q, B, R, F, Fut>(
        mut self,
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
        F: Fn(Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer<R>> + Send,
    {
        let operation = Operation::new::<P, Q, B, R>(&method, path, tag, summary);
        let takes_body = operation.takes_body();
        self.operations.push(operation);
        let (house, keys) = (self.house.clone(), Arc::clone(&self.keys));
        let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
        let serve = move |request: Request| -> BoxedResponse {
            let (house, keys, handler) = (house.clone(), Arc::clone(&keys), handler.clone());
            Box::pin(async move {
                let answered = async {
                    let (path, query, body) = parts::<P, Q, B>(request, takes_body).await?;
                    handler(Call { house, keys, path, query, body }).await
                };
                match answered.await {
                    Ok(answer) => axum::Json(answer).into_response(),
                    Err(problem) => problem.into_response(),
                }
            })
        };
        self.router = self.router.route(path, on(filter, serve));
        self
    }

    /// The router, with the document that describes it.
    pub fn into_router(self) -> Router {
        let document = Arc::new(openapi::document(&self.operations));
        self.router.route(
            "/api/v1/openapi.json",
            axum::routing::get(move || {
                let document = Arc::clone(&document);
                async move { axum::Json(document.as_ref().clone()) }
            }),
        )
    }

    /// The OpenAPI document.
    pub fn document(&self) -> serde_json::Value {
        openapi::document(&self.operations)
    }
}

async fn parts<P, Q, B>(request: Request, takes_body: bool) -> Result<(P, Q, B), Problem>
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + 'static,
    B: DeserializeOwned + Default + 'static,
{
    let (mut head, body) = request.into_parts();
    let path =
        Path::<P>::from_request_parts(&mut head, &()).await.map_err(|error| match error {
            PathRejection::FailedToDeserializePathParams(error) => {
                Problem::bad_request(error.body_text())
            }
            error => Problem::bad_request(error.body_text()),
        })?;
    let query = Query::<Q>::from_request_parts(&mut head, &())
        .await
        .map_err(|error: QueryRejection| Problem::bad_request(error.body_text()))?;
    if !takes_body {
        return Ok((path.0, query.0, B::default()));
    }
    let request = Request::from_parts(head, body);
    let body = <axum::Json<B> as axum::extract::FromRequest<()>>::from_request(request, &())
        .await
        .map_err(|error: JsonRejection| {
            let status = match error.status() {
                StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
                status => status,
            };
            Problem::new(status, error.body_text())
        })?;
    Ok((path.0, query.0, body.0))
}
