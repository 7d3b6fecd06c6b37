//! The model server: listens on localhost only, and stops on drop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::connection;
use crate::limits::REQUESTS_MAX;
use crate::recorded_request::RecordedRequest;
use crate::script::{ModelScript, ScriptedTurn};

/// A running server.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    task: AbortHandle,
}

impl ScriptedServer {
    /// Starts a server on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot listen on 127.0.0.1.
    pub async fn start(script: ModelScript) -> Self {
        ScriptedServer::start_on(0, script).await.expect("a free port on 127.0.0.1")
    }

    /// Starts a server on a port.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, such as a port in use.
    pub async fn start_on(port: u16, script: ModelScript) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let progress = ScriptedTurnProgress { script, used: 0, requests: Vec::new() };
        let state = Arc::new(ServerState {
            progress: Mutex::new(progress),
            connections: AtomicUsize::new(0),
        });
        let task = tokio::spawn(accept_connections(listener, Arc::clone(&state))).abort_handle();
        Ok(ScriptedServer { address, state, task })
    }

    /// The base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.lock_progress().requests.clone()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections. They are aborted with this task.
async fn accept_connections(listener: TcpListener, state: Arc<ServerState>) {
    let mut connections = JoinSet::new();
    loop {
        // Errors of connections are ignored: tests make clients disconnect.
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            state.connections.fetch_add(1, Ordering::Relaxed);
            connections.spawn(connection::serve_client(stream, Arc::clone(&state)));
        }
    }
}

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct ServerState {
    progress: Mutex<ScriptedTurnProgress>,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct ScriptedTurnProgress {
    script: ModelScript,
    used: usize,
    requests: Vec<RecordedRequest>,
}

impl ServerState {
    fn lock_progress(&self) -> MutexGuard<'_, ScriptedTurnProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request, and returns the turn that answers it, with its number.
    pub(crate) fn next_turn(&self, request: &RecordedRequest) -> Option<(ScriptedTurn, usize)> {
        let (turn, number) = {
            let mut progress = self.lock_progress();
            if progress.requests.len() >= REQUESTS_MAX {
                progress.requests.remove(0);
            }
            progress.requests.push(request.clone());
            if let Some(aside) = progress.script.aside.clone().filter(|_| !request.has_tools()) {
                return Some((ScriptedTurn::text(aside), progress.used));
            }
            let used = progress.used;
            progress.used += 1;
            progress.script.turn_for(request, used)?
        };
        // Outside of the lock: the function may query the server.
        match &turn.respond {
            Some(respond) => Some((respond(request), number)),
            None => Some((turn, number)),
        }
    }
}
