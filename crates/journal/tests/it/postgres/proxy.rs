//! Something between the journal and PostgreSQL that loses a commit, or the answer to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

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

/// Stops with its test.
pub(crate) struct Proxy {
    port: u16,
    armed: Arc<AtomicU8>,
    lost: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(socket: &Path) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (armed, lost) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU32::new(0)));
        let (socket, arm, count) = (socket.to_owned(), armed.clone(), lost.clone());
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, socket.clone(), arm.clone(), count.clone()));
            }
        });
        Proxy { port, armed, lost, task }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://rep@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Loses the next commit.
    pub(crate) fn lose(&self, loss: Loss) {
        self.armed.store(loss as u8, Ordering::SeqCst);
    }

    /// How many were lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, socket: PathBuf, armed: Arc<AtomicU8>, lost: Arc<AtomicU32>) {
    let mut server = UnixStream::connect(&socket).await.unwrap();
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let is_commit = asked[..length].windows(6).any(|word| word == b"COMMIT");
                let loss = if is_commit { armed.swap(0, Ordering::SeqCst) } else { 0 };
                if loss == Loss::Request as u8 {
                    lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if server.write_all(&asked[..length]).await.is_err() { return }
                if loss == Loss::Wait as u8 {
                    lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if loss == Loss::Answer as u8 {
                    let _ = server.read(&mut answered).await;
                    lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    }
}
