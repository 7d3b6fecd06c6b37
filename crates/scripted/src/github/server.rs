//! The fake GitHub's HTTP server: listens on localhost only, and stops on drop.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::fault::FaultKind;
use super::reply::{Ask, Reply, decoded};
use super::state::State;
use super::{git, routes};
use crate::http::{Connection, Request};
use crate::limits::REQUESTS_MAX;

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The `authorization` header.
    pub authorization: Option<String>,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; null if it is not JSON.
    pub body: Value,
    /// The status of the response; `None` if none was sent.
    pub status: Option<u16>,
}

impl Call {
    /// The method and the path.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A running fake GitHub.
#[derive(Debug)]
pub struct GitHubServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    origin: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    calls: Vec<Call>,
    log: Option<std::fs::File>,
}

impl GitHubServer {
    /// Starts on a port (0 for a free one). If `log` is given, calls are also written to it, one
    /// JSON object per line.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, such as a port in use.
    pub async fn start_on(port: u16, state: State, log: Option<std::fs::File>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let inner = Mutex::new(Inner { state, calls: Vec::new(), log });
        let shared = Arc::new(Shared { origin: format!("http://{address}"), inner });
        let task = tokio::spawn(listen(listener, Arc::clone(&shared))).abort_handle();
        Ok(GitHubServer { address, shared, task })
    }

    /// The base URL, without a path: the value for `GITHUB_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The clone URL of the repository, if one on disk is served.
    pub fn git_url(&self) -> String {
        let inner = self.shared.inner();
        format!("{}/{}/{}.git", self.shared.origin, inner.state.owner, inner.state.name)
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.inner().calls.clone()
    }

    /// The methods and paths of the calls that change something.
    pub fn writes(&self) -> Vec<String> {
        self.calls().iter().filter(|call| !is_query(call)).map(Call::line).collect()
    }

    /// The current state.
    pub fn state(&self) -> State {
        self.shared.inner().state.clone()
    }

    /// Changes the state, as if another user had done so.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.inner().state);
    }

    /// The texts of the comments on an issue or pull request.
    pub fn comments(&self, number: u64) -> Vec<String> {
        let state = self.state();
        let comments = state.issues.get(&number).map(|issue| issue.comments.clone());
        comments.unwrap_or_default().into_iter().map(|comment| comment.body).collect()
    }

    /// The labels of an issue or pull request.
    pub fn labels(&self, number: u64) -> Vec<String> {
        let state = self.state();
        state.issues.get(&number).map(|issue| issue.labels.clone()).unwrap_or_default()
    }
}

/// Returns true if a call changes nothing. Fetching with git and GraphQL queries use POST.
fn is_query(call: &Call) -> bool {
    call.method == "GET" || call.path == "/graphql" || call.path.ends_with("/git-upload-pack")
}

impl Drop for GitHubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, Arc::clone(&shared)));
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.request().await? {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let at = {
            let inner = shared.inner();
            let within = git::path_within(path, &inner.state.owner, &inner.state.name);
            within.map(str::to_owned).zip(inner.state.git_dir.clone())
        };
        let outcome = match at {
            Some((within, dir)) => with_git(&shared, &request, &dir, &within, query).await?,
            None => {
                let incoming = Incoming { request: &request, path, query, origin: &shared.origin };
                shared.inner().answer(&incoming)
            }
        };
        match outcome {
            Outcome::Reply(reply, body) => {
                send(&mut connection, reply, &body).await?;
            }
            Outcome::Close => break,
            Outcome::Hang => std::future::pending().await,
        }
    }
    Ok(())
}

/// A call, before it is parsed.
struct Incoming<'a> {
    request: &'a Request,
    path: &'a str,
    query: &'a str,
    origin: &'a str,
}

/// The outcome of a call.
enum Outcome {
    Reply(Reply, Vec<u8>),
    Close,
    Hang,
}

impl Outcome {
    fn of(mut reply: Reply) -> Self {
        let body = std::mem::take(&mut reply.body).into_bytes();
        Outcome::Reply(reply, body)
    }
}

async fn send(to: &mut Connection, reply: Reply, body: &[u8]) -> io::Result<()> {
    let mut headers = vec![("content-length", body.len().to_string())];
    headers.extend(reply.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
    to.head(reply.status, &headers).await?;
    to.raw(body).await
}

async fn with_git(
    shared: &Shared,
    request: &Request,
    dir: &str,
    within: &str,
    query: &str,
) -> io::Result<Outcome> {
    let writes = git::is_write(within, query);
    let let_in = shared.inner().state.lets_in(request);
    if let_in == Some(false) || (writes && let_in.is_none()) {
        shared.inner().record(request, Some(401));
        let mut refusal = Reply::refusal(401, "Bad credentials");
        let challenge = "Basic realm=\"GitHub\"".to_owned();
        refusal.headers.push(("www-authenticate".to_owned(), challenge));
        return Ok(Outcome::of(refusal));
    }
    let (reply, body) = git::answer(dir, within, query, request).await?;
    shared.inner().record(request, Some(reply.status));
    Ok(Outcome::Reply(reply, body))
}

impl State {
    /// Returns whether the token is correct; `None` if there is none.
    fn lets_in(&self, request: &Request) -> Option<bool> {
        let sent = request.headers.get("authorization")?;
        let (kind, rest) = sent.split_once(' ')?;
        let basic = super::basic(&format!("x-access-token:{}", self.token));
        Some(match kind.to_ascii_lowercase().as_str() {
            "bearer" | "token" => rest == self.token,
            "basic" => rest == basic,
            _ => false,
        })
    }
}

impl Inner {
    fn record(&mut self, request: &Request, status: Option<u16>) {
        let call = Call {
            method: request.method.clone(),
            path: request.path.clone(),
            authorization: request.headers.get("authorization").cloned(),
            headers: request.headers.clone(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            status,
        };
        if let Some(log) = &mut self.log {
            let line = serde_json::to_string(&call).unwrap_or_default();
            let _ = writeln!(log, "{line}");
        }
        if self.calls.len() >= REQUESTS_MAX {
            self.calls.remove(0);
        }
        self.calls.push(call);
    }

    fn answer(&mut self, incoming: &Incoming<'_>) -> Outcome {
        let request = incoming.request;
        let strikes = |fault: &mut super::fault::Fault| {
            fault.strikes(&request.method, &request.path).then(|| fault.kind.clone())
        };
        let outcome = match self.state.faults.iter_mut().find_map(strikes) {
            None => Outcome::of(self.reply(incoming)),
            Some(kind) => self.failing(kind, incoming),
        };
        let status = match &outcome {
            Outcome::Reply(reply, _) => Some(reply.status),
            Outcome::Close | Outcome::Hang => None,
        };
        self.record(request, status);
        outcome
    }

    fn failing(&mut self, kind: FaultKind, incoming: &Incoming<'_>) -> Outcome {
        match kind {
            FaultKind::Status { status, headers, message } => {
                let mut refusal = Reply::refusal(status, &message);
                refusal.headers.extend(headers);
                Outcome::of(refusal)
            }
            FaultKind::Headers { headers } => {
                let mut reply = self.reply(incoming);
                reply.headers.extend(headers);
                Outcome::of(reply)
            }
            FaultKind::LostAnswer => {
                self.reply(incoming);
                Outcome::Close
            }
            FaultKind::HangAfter => {
                self.reply(incoming);
                Outcome::Hang
            }
            FaultKind::Dropped => Outcome::Close,
            FaultKind::Hang => Outcome::Hang,
            FaultKind::Malformed => {
                let mut reply = Reply::json(200, &Value::Null);
                reply.body = "{\"number\": 3, \"title\": ".to_owned();
                Outcome::of(reply)
            }
            FaultKind::Huge { bytes } => {
                let mut reply = Reply::json(200, &Value::Null);
                reply.body = format!("\"{}\"", "x".repeat(bytes));
                Outcome::of(reply)
            }
        }
    }

    fn reply(&mut self, incoming: &Incoming<'_>) -> Reply {
        let Incoming { request, path, query, origin } = *incoming;
        let body = if request.body.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_slice(&request.body)
        };
        let Ok(body) = body else { return routes::not_json() };
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let ask = Ask {
            method: &request.method,
            parts: path.split('/').filter(|part| !part.is_empty()).map(decoded).collect(),
            query: pairs.map(|(key, value)| (decoded(key), decoded(value))).collect(),
            body,
            accept: request.headers.get("accept").map(String::as_str).unwrap_or_default(),
            origin,
            path,
        };
        match self.state.lets_in(request) {
            Some(false) => Reply::refusal(401, "Bad credentials"),
            None if !routes::is_public(&ask) => Reply::refusal(401, "Requires authentication"),
            _ => routes::answer(&mut self.state, &ask),
        }
    }
}
