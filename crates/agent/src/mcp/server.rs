//! A server process: started by a supervisor, with its stderr drained and its messages limited in
//! size.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::{Peer, RoleClient, RunningService};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use super::{McpLimits, Place, ServerConfig};
use repertoire_sandbox::process::{self, ProcessLimits, Spawn, Stdin, Termination, UsageLimits};

const COMPLAINT_BYTES_MAX: usize = 2_000;

/// The variables that every program needs; the rest of the environment is not passed to servers.
const VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The reason why a server is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error("servers behind a URL ({0}) are not supported here; a bridge program is")]
    Url(String),
    #[error(transparent)]
    Start(#[from] process::ProcessError),
    #[error("it did not say what it offers within {} s{complaint}", .after.as_secs())]
    Late { after: Duration, complaint: String },
    #[error("{problem}{complaint}")]
    Protocol { problem: String, complaint: String },
}

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    service: RunningService<RoleClient, ()>,
    offered: Vec<rmcp::model::Tool>,
    process: Process,
    grace: Duration,
}

impl Server {
    /// Starts a server and lists its tools.
    pub(super) async fn start(
        name: &str,
        config: &ServerConfig,
        place: &Place,
    ) -> Result<Self, ServerError> {
        let (program, args, env) = match config {
            ServerConfig::Program { command, args, env } => (command, args, env),
            ServerConfig::Url(url) => return Err(ServerError::Url(url.clone())),
        };
        let mut environment: BTreeMap<String, String> = place
            .environment
            .iter()
            .filter(|(name, _)| VARIABLES.contains(&name.as_str()))
            .cloned()
            .chain(env.clone())
            .collect();
        environment.insert("REPERTOIRE_MCP_SERVER".to_owned(), name.to_owned());
        let spawn = Spawn {
            program: program.clone(),
            args: args.clone(),
            dir: place.dir.clone(),
            environment: environment.into_iter().collect(),
            stdin: Stdin::Text(String::new()),
            limits: ProcessLimits {
                idle: None,
                absolute: Duration::MAX,
                grace: place.limits.grace,
                kept_bytes_max: COMPLAINT_BYTES_MAX,
            },
            termination: Termination::default(),
        };
        let spawn = process::supervised(spawn, UsageLimits::usual().of_agent());
        let (child, group) = process::start(&spawn)?;
        let mut process = Process::of(child, group);
        Self::greet(&mut process, &place.limits).await.map(|(service, offered)| Server {
            service,
            offered,
            process,
            grace: place.limits.grace,
        })
    }

    async fn greet(
        process: &mut Process,
        limits: &McpLimits,
    ) -> Result<(RunningService<RoleClient, ()>, Vec<rmcp::model::Tool>), ServerError> {
        let (Some(output), Some(input)) = (process.child.stdout.take(), process.child.stdin.take())
        else {
            return Err(ServerError::Protocol {
                problem: "it has no pipes".to_owned(),
                complaint: String::new(),
            });
        };
        let output = Bounded { inner: output, line: 0, line_max: limits.message_bytes_max };
        let greeting = async {
            let service = ().serve((output, input)).await.map_err(|error| error.to_string())?;
            let offered = service.list_all_tools().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((service, offered))
        };
        match timeout(limits.start, greeting).await {
            Ok(Ok(greeted)) => Ok(greeted),
            Ok(Err(problem)) => {
                Err(ServerError::Protocol { problem, complaint: process.complaint().await })
            }
            Err(_) => {
                Err(ServerError::Late { after: limits.start, complaint: process.complaint().await })
            }
        }
    }

    /// The handle for sending requests to the server.
    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// The tools that the server offers.
    pub(super) fn offered(&self) -> Vec<rmcp::model::Tool> {
        self.offered.clone()
    }

    /// Stops the server: closes its stdin, and kills it after the grace period.
    pub(super) async fn end(self) {
        let Server { service, mut process, grace, .. } = self;
        let _ = timeout(grace, service.cancel()).await;
        let _ = timeout(grace, process.child.wait()).await;
    }
}

/// A child process with its resources, all of which are released together.
#[derive(Debug)]
struct Process {
    child: Child,
    _group: process::Group,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    drain: Option<tokio::task::JoinHandle<()>>,
}

impl Process {
    fn of(mut child: Child, group: process::Group) -> Self {
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let drain = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(drained(stderr, Arc::clone(&complaints))));
        Process { child, _group: group, complaints, drain }
    }

    /// The end of the server's stderr. Waits briefly, since the pipe of an exited process may not
    /// be drained yet.
    async fn complaint(&mut self) -> String {
        if let Some(drain) = &mut self.drain {
            let _ = timeout(Duration::from_millis(200), drain).await;
        }
        let bytes: Vec<u8> = self
            .complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        let text = super::words::clean(String::from_utf8_lossy(&bytes).trim(), COMPLAINT_BYTES_MAX);
        if text.is_empty() { text } else { format!("; it complained: {text}") }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
    }
}

async fn drained(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[..count]);
        let surplus = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
        kept.drain(..surplus);
    }
}

/// A reader that fails if a line is too long, so that no message can exhaust memory.
struct Bounded<R> {
    inner: R,
    line: usize,
    line_max: usize,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let new = &buf.filled()[before..];
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => new.len() - last - 1,
            None => self.line + new.len(),
        };
        if self.line > self.line_max {
            return Poll::Ready(Err(io::Error::other("a message is too long")));
        }
        Poll::Ready(Ok(()))
    }
}
