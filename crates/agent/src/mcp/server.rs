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

use super::{McpEnvironment, McpLimits, McpServerConfig};
use repertoire_sandbox::process::{
    self, ProcessInput, ProcessLimits, ProcessSpec, TerminationSettings, UsageLimits,
};

const COMPLAINT_BYTES_MAX: usize = 2_000;

/// The variables that every program needs; the rest of the environment is not passed to servers.
const VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The reason why a server is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum McpServerError {
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
pub(super) struct McpServerProcess {
    service: RunningService<RoleClient, ()>,
    offered: Vec<rmcp::model::Tool>,
    process: SupervisedChild,
    grace: Duration,
}

impl McpServerProcess {
    /// Starts a server and lists its tools.
    pub(super) async fn start(
        name: &str,
        config: &McpServerConfig,
        place: &McpEnvironment,
    ) -> Result<Self, McpServerError> {
        let (program, args, env) = match config {
            McpServerConfig::Program { command, args, env } => (command, args, env),
            McpServerConfig::Url(url) => return Err(McpServerError::Url(url.clone())),
        };
        let mut environment: BTreeMap<String, String> = place
            .environment
            .iter()
            .filter(|(name, _)| VARIABLES.contains(&name.as_str()))
            .cloned()
            .chain(env.clone())
            .collect();
        environment.insert("REPERTOIRE_MCP_SERVER".to_owned(), name.to_owned());
        let spawn = ProcessSpec {
            program: program.clone(),
            args: args.clone(),
            dir: place.dir.clone(),
            environment: environment.into_iter().collect(),
            stdin: ProcessInput::Text(String::new()),
            limits: ProcessLimits {
                idle: None,
                absolute: Duration::MAX,
                grace: place.limits.grace,
                kept_bytes_max: COMPLAINT_BYTES_MAX,
            },
            termination: TerminationSettings::default(),
        };
        let spawn = process::with_supervisor(spawn, UsageLimits::default_limits().of_agent());
        let (child, group) = process::start(&spawn)?;
        let mut process = SupervisedChild::new(child, group);
        Self::initialize(&mut process, &place.limits).await.map(|(service, offered)| {
            McpServerProcess { service, offered, process, grace: place.limits.grace }
        })
    }

    async fn initialize(
        process: &mut SupervisedChild,
        limits: &McpLimits,
    ) -> Result<(RunningService<RoleClient, ()>, Vec<rmcp::model::Tool>), McpServerError> {
        let (Some(output), Some(input)) = (process.child.stdout.take(), process.child.stdin.take())
        else {
            return Err(McpServerError::Protocol {
                problem: "it has no pipes".to_owned(),
                complaint: String::new(),
            });
        };
        let output =
            LineLimitedReader { inner: output, line: 0, line_max: limits.message_bytes_max };
        let greeting = async {
            let service = ().serve((output, input)).await.map_err(|error| error.to_string())?;
            let offered = service.list_all_tools().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((service, offered))
        };
        match timeout(limits.start, greeting).await {
            Ok(Ok(greeted)) => Ok(greeted),
            Ok(Err(problem)) => {
                Err(McpServerError::Protocol { problem, complaint: process.stderr_excerpt().await })
            }
            Err(_) => Err(McpServerError::Late {
                after: limits.start,
                complaint: process.stderr_excerpt().await,
            }),
        }
    }

    /// The handle for sending requests to the server.
    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// The tools that the server offers.
    pub(super) fn offered_tools(&self) -> Vec<rmcp::model::Tool> {
        self.offered.clone()
    }

    /// Stops the server: closes its stdin, and kills it after the grace period.
    pub(super) async fn stop(self) {
        let McpServerProcess { service, mut process, grace, .. } = self;
        let _ = timeout(grace, service.cancel()).await;
        let _ = timeout(grace, process.child.wait()).await;
    }
}

/// A child process with its resources, all of which are released together.
#[derive(Debug)]
struct SupervisedChild {
    child: Child,
    _group: process::SupervisedGroup,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    drain: Option<tokio::task::JoinHandle<()>>,
}

impl SupervisedChild {
    fn new(mut child: Child, group: process::SupervisedGroup) -> Self {
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let drain = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(drain_stderr(stderr, Arc::clone(&complaints))));
        SupervisedChild { child, _group: group, complaints, drain }
    }

    /// The end of the server's stderr. Waits briefly, since the pipe of an exited process may not
    /// be drained yet.
    async fn stderr_excerpt(&mut self) -> String {
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
        let text = super::sanitise::clean_text(
            String::from_utf8_lossy(&bytes).trim(),
            COMPLAINT_BYTES_MAX,
        );
        if text.is_empty() { text } else { format!("; it complained: {text}") }
    }
}

impl Drop for SupervisedChild {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
    }
}

async fn drain_stderr(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[..count]);
        let surplus = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
        kept.drain(..surplus);
    }
}

/// A reader that fails if a line is too long, so that no message can exhaust memory.
struct LineLimitedReader<R> {
    inner: R,
    line: usize,
    line_max: usize,
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimitedReader<R> {
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
