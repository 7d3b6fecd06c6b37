//! The model server: listens on localhost only, and stops on drop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::connection;
use crate::limits::REQUESTS_MAX;
use crate::recorded::Recorded;
use crate::script::{Script, Turn};

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    task: AbortHandle,
}

impl Server {
    /// Starts a server on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot listen on 127.0.0.1.
    pub async fn start(script: Script) -> Self {
        Server::start_on(0, script).await.expect("a free port on 127.0.0.1")
    }

    /// Starts a server on a port.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, such as a port in use.
    pub async fn start_on(port: u16, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let progress = Progress { script, used: 0, requests: Vec::new() };
        let state =
            Arc::new(State { progress: Mutex::new(progress), connections: AtomicUsize::new(0) });
        let task = tokio::spawn(listen(listener, Arc::clone(&state))).abort_handle();
        Ok(Server { address, state, task })
    }

    /// The base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.progress().requests.clone()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections. They are aborted with this task.
async fn listen(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        // Errors of connections are ignored: tests make clients disconnect.
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            state.connections.fetch_add(1, Ordering::Relaxed);
            connections.spawn(connection::serve(stream, Arc::clone(&state)));
        }
    }
}

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct State {
    progress: Mutex<Progress>,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct Progress {
    script: Script,
    used: usize,
    requests: Vec<Recorded>,
}

impl State {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request, and returns the turn that answers it, with its number.
    pub(crate) fn next(&self, request: &Recorded) -> Option<(Turn, usize)> {
        let (turn, number) = {
            let mut progress = self.progress();
            if progress.requests.len() >= REQUESTS_MAX {
                progress.requests.remove(0);
            }
            progress.requests.push(request.clone());
            if let Some(aside) = progress.script.aside.clone().filter(|_| !request.has_tools()) {
                return Some((Turn::text(aside), progress.used));
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
