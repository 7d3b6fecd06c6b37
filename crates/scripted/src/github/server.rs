//! The fake GitHub's HTTP server: listens on localhost only, and stops on drop.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::fault::GitHubFaultKind;
use super::reply::{GitHubCall, GitHubReply, percent_decode};
use super::state::FakeGitHubState;
use super::{git, routes};
use crate::http::{HttpConnection, RawRequest};
use crate::limits::REQUESTS_MAX;

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedCall {
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

impl RecordedCall {
    /// The method and the path.
    pub fn request_line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A running fake GitHub.
#[derive(Debug)]
pub struct GitHubServer {
    address: SocketAddr,
    shared: Arc<GitHubShared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct GitHubShared {
    origin: String,
    inner: Mutex<GitHubInner>,
}

#[derive(Debug)]
struct GitHubInner {
    state: FakeGitHubState,
    calls: Vec<RecordedCall>,
    log: Option<std::fs::File>,
}

impl GitHubServer {
    /// Starts on a port (0 for a free one). If `log` is given, calls are also written to it, one
    /// JSON object per line.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, such as a port in use.
    pub async fn start_on(
        port: u16,
        state: FakeGitHubState,
        log: Option<std::fs::File>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let inner = Mutex::new(GitHubInner { state, calls: Vec::new(), log });
        let shared = Arc::new(GitHubShared { origin: format!("http://{address}"), inner });
        let task = tokio::spawn(accept_connections(listener, Arc::clone(&shared))).abort_handle();
        Ok(GitHubServer { address, shared, task })
    }

    /// The base URL, without a path: the value for `GITHUB_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The clone URL of the repository, if one on disk is served.
    pub fn git_url(&self) -> String {
        let inner = self.shared.lock_inner();
        format!("{}/{}/{}.git", self.shared.origin, inner.state.owner, inner.state.name)
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.shared.lock_inner().calls.clone()
    }

    /// The methods and paths of the calls that change something.
    pub fn write_calls(&self) -> Vec<String> {
        self.calls().iter().filter(|call| !is_query(call)).map(RecordedCall::request_line).collect()
    }

    /// The current state.
    pub fn state(&self) -> FakeGitHubState {
        self.shared.lock_inner().state.clone()
    }

    /// Changes the state, as if another user had done so.
    pub fn change_state(&self, change: impl FnOnce(&mut FakeGitHubState)) {
        change(&mut self.shared.lock_inner().state);
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
fn is_query(call: &RecordedCall) -> bool {
    call.method == "GET" || call.path == "/graphql" || call.path.ends_with("/git-upload-pack")
}

impl Drop for GitHubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GitHubShared {
    fn lock_inner(&self) -> MutexGuard<'_, GitHubInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept_connections(listener: TcpListener, shared: Arc<GitHubShared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve_connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<GitHubShared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = HttpConnection::new(stream);
    while let Some(request) = connection.read_request().await? {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let at = {
            let inner = shared.lock_inner();
            let within = git::path_within(path, &inner.state.owner, &inner.state.name);
            within.map(str::to_owned).zip(inner.state.git_dir.clone())
        };
        let outcome = match at {
            Some((within, dir)) => answer_git(&shared, &request, &dir, &within, query).await?,
            None => {
                let incoming =
                    IncomingCall { request: &request, path, query, origin: &shared.origin };
                shared.lock_inner().answer_call(&incoming)
            }
        };
        match outcome {
            GitHubCallOutcome::Reply(reply, body) => {
                send_reply(&mut connection, reply, &body).await?;
            }
            GitHubCallOutcome::Close => break,
            GitHubCallOutcome::Hang => std::future::pending().await,
        }
    }
    Ok(())
}

/// A call, before it is parsed.
struct IncomingCall<'a> {
    request: &'a RawRequest,
    path: &'a str,
    query: &'a str,
    origin: &'a str,
}

/// The outcome of a call.
enum GitHubCallOutcome {
    Reply(GitHubReply, Vec<u8>),
    Close,
    Hang,
}

impl GitHubCallOutcome {
    fn from_reply(mut reply: GitHubReply) -> Self {
        let body = std::mem::take(&mut reply.body).into_bytes();
        GitHubCallOutcome::Reply(reply, body)
    }
}

async fn send_reply(to: &mut HttpConnection, reply: GitHubReply, body: &[u8]) -> io::Result<()> {
    let mut headers = vec![("content-length", body.len().to_string())];
    headers.extend(reply.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
    to.send_head(reply.status, &headers).await?;
    to.send_raw(body).await
}

async fn answer_git(
    shared: &GitHubShared,
    request: &RawRequest,
    dir: &str,
    within: &str,
    query: &str,
) -> io::Result<GitHubCallOutcome> {
    let writes = git::is_write(within, query);
    let let_in = shared.lock_inner().state.authorises(request);
    if let_in == Some(false) || (writes && let_in.is_none()) {
        shared.lock_inner().record_call(request, Some(401));
        let mut refusal = GitHubReply::error(401, "Bad credentials");
        let challenge = "Basic realm=\"GitHub\"".to_owned();
        refusal.headers.push(("www-authenticate".to_owned(), challenge));
        return Ok(GitHubCallOutcome::from_reply(refusal));
    }
    let (reply, body) = git::run_http_backend(dir, within, query, request).await?;
    shared.lock_inner().record_call(request, Some(reply.status));
    Ok(GitHubCallOutcome::Reply(reply, body))
}

impl FakeGitHubState {
    /// Returns whether the token is correct; `None` if there is none.
    fn authorises(&self, request: &RawRequest) -> Option<bool> {
        let sent = request.headers.get("authorization")?;
        let (kind, rest) = sent.split_once(' ')?;
        let basic = super::encode_basic(&format!("x-access-token:{}", self.token));
        Some(match kind.to_ascii_lowercase().as_str() {
            "bearer" | "token" => rest == self.token,
            "basic" => rest == basic,
            _ => false,
        })
    }
}

impl GitHubInner {
    fn record_call(&mut self, request: &RawRequest, status: Option<u16>) {
        let call = RecordedCall {
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

    fn answer_call(&mut self, incoming: &IncomingCall<'_>) -> GitHubCallOutcome {
        let request = incoming.request;
        let strikes = |fault: &mut super::fault::GitHubFault| {
            fault.affects(&request.method, &request.path).then(|| fault.kind.clone())
        };
        let outcome = match self.state.faults.iter_mut().find_map(strikes) {
            None => GitHubCallOutcome::from_reply(self.build_reply(incoming)),
            Some(kind) => self.apply_fault(kind, incoming),
        };
        let status = match &outcome {
            GitHubCallOutcome::Reply(reply, _) => Some(reply.status),
            GitHubCallOutcome::Close | GitHubCallOutcome::Hang => None,
        };
        self.record_call(request, status);
        outcome
    }

    fn apply_fault(
        &mut self,
        kind: GitHubFaultKind,
        incoming: &IncomingCall<'_>,
    ) -> GitHubCallOutcome {
        match kind {
            GitHubFaultKind::Status { status, headers, message } => {
                let mut refusal = GitHubReply::error(status, &message);
                refusal.headers.extend(headers);
                GitHubCallOutcome::from_reply(refusal)
            }
            GitHubFaultKind::Headers { headers } => {
                let mut reply = self.build_reply(incoming);
                reply.headers.extend(headers);
                GitHubCallOutcome::from_reply(reply)
            }
            GitHubFaultKind::LostAnswer => {
                self.build_reply(incoming);
                GitHubCallOutcome::Close
            }
            GitHubFaultKind::HangAfter => {
                self.build_reply(incoming);
                GitHubCallOutcome::Hang
            }
            GitHubFaultKind::Dropped => GitHubCallOutcome::Close,
            GitHubFaultKind::Hang => GitHubCallOutcome::Hang,
            GitHubFaultKind::Malformed => {
                let mut reply = GitHubReply::json(200, &Value::Null);
                reply.body = "{\"number\": 3, \"title\": ".to_owned();
                GitHubCallOutcome::from_reply(reply)
            }
            GitHubFaultKind::Huge { bytes } => {
                let mut reply = GitHubReply::json(200, &Value::Null);
                reply.body = format!("\"{}\"", "x".repeat(bytes));
                GitHubCallOutcome::from_reply(reply)
            }
        }
    }

    fn build_reply(&mut self, incoming: &IncomingCall<'_>) -> GitHubReply {
        let IncomingCall { request, path, query, origin } = *incoming;
        let body = if request.body.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_slice(&request.body)
        };
        let Ok(body) = body else { return routes::not_json() };
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let ask = GitHubCall {
            method: &request.method,
            parts: path.split('/').filter(|part| !part.is_empty()).map(percent_decode).collect(),
            query: pairs.map(|(key, value)| (percent_decode(key), percent_decode(value))).collect(),
            body,
            accept: request.headers.get("accept").map(String::as_str).unwrap_or_default(),
            origin,
            path,
        };
        match self.state.authorises(request) {
            Some(false) => GitHubReply::error(401, "Bad credentials"),
            None if !routes::is_public(&ask) => GitHubReply::error(401, "Requires authentication"),
            _ => routes::answer_call(&mut self.state, &ask),
        }
    }
}
