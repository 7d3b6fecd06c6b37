//! Something between the journal and PostgreSQL that loses a commit, or the answer to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

/// What is lost, with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Loss {
    /// The commit never arrives.
    Request = 1,
    /// It arrives, and its answer does not.
    Answer = 2,
    /// It arrives, and the connection is lost before the server has carried it out.
    Wait = 3,
}

/// What happens to connections.
#[derive(Default)]
struct Losses {
    /// The next loss; 0 for none.
    armed: AtomicU8,
    lost: AtomicU32,
    /// True if connections are refused and cut after the next loss.
    outage_follows: AtomicBool,
    is_down: AtomicBool,
}

impl Losses {
    /// Records a loss. The connection must still be open, so that no client comes back before the outage.
    fn add(&self) {
        self.lost.fetch_add(1, Ordering::SeqCst);
        self.is_down.store(self.outage_follows.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// Stops with its test.
pub(crate) struct Proxy {
    port: u16,
    losses: Arc<Losses>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(socket: &Path) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (socket, losses) = (socket.to_owned(), Arc::new(Losses::default()));
        let shared = losses.clone();
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if !shared.is_down.load(Ordering::SeqCst) {
                    tokio::spawn(pass(client, socket.clone(), shared.clone()));
                }
            }
        });
        Proxy { port, losses, task }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://rep@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Loses the next commit.
    pub(crate) fn lose(&self, loss: Loss) {
        self.losses.armed.store(loss as u8, Ordering::SeqCst);
    }

    /// Loses the next commit, and has no connections until [`Proxy::end_outage`].
    pub(crate) fn lose_and_stay_down(&self, loss: Loss) {
        self.losses.outage_follows.store(true, Ordering::SeqCst);
        self.lose(loss);
    }

    pub(crate) fn end_outage(&self) {
        self.losses.outage_follows.store(false, Ordering::SeqCst);
        self.losses.is_down.store(false, Ordering::SeqCst);
    }

    /// How many were lost.
    pub(crate) fn lost(&self) -> u32 {
        self.losses.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, socket: PathBuf, losses: Arc<Losses>) {
    let mut server = UnixStream::connect(&socket).await.unwrap();
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                if losses.is_down.load(Ordering::SeqCst) { return }
                let is_commit = asked[..length].windows(6).any(|word| word == b"COMMIT");
                let loss = if is_commit { losses.armed.swap(0, Ordering::SeqCst) } else { 0 };
                if loss == Loss::Request as u8 {
                    return losses.add();
                }
                if server.write_all(&asked[..length]).await.is_err() { return }
                if loss == Loss::Wait as u8 {
                    return losses.add();
                }
                if loss == Loss::Answer as u8 {
                    let _ = server.read(&mut answered).await;
                    return losses.add();
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    }
}
