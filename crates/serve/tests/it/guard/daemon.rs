//! A daemon of its own on a free port, and requests that are written to its socket byte by byte.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Journal, Target};
use repertoire_select::{SelectionModel, SelectionSettings, SkillDocument, SkillSelector};
use repertoire_serve::ServeState;
use repertoire_serve::http::token::AccessKeys;
use repertoire_serve::http::{self, ClientRules};
use repertoire_serve::serve_state::ServeParts;
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::profile::{ProfileId, SearchDirectories};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A word that no answer to a stranger may hold.
pub(crate) const SECRET_SKILL: &str = "quarterly-numbers";
/// Longer than any answer takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A daemon that runs.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) keys: Arc<AccessKeys>,
    pub(crate) dir: Utf8PathBuf,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: Option<JoinHandle<std::io::Result<()>>>,
    clock: Arc<AtomicU64>,
    _keep: tempfile::TempDir,
}

/// An answer as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) whole: String,
}

impl Answer {
    fn of(bytes: &[u8]) -> Self {
        let whole = String::from_utf8_lossy(bytes).into_owned();
        let status = whole.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, whole }
    }

    /// The value of a header, as it was written.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (head, _) = self.whole.split_once("\r\n\r\n")?;
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn body(&self) -> &str {
        self.whole.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.body()).unwrap()
    }
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::start_with(ClientRules::default()).await
    }

    pub(crate) async fn start_with(rules: ClientRules) -> Self {
        Self::start_at(IpAddr::from([127, 0, 0, 1]), rules).await
    }

    pub(crate) async fn start_at(ip: IpAddr, rules: ClientRules) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let serve_state = serve_state(&dir, &clock).await;
        let (keys, token) = AccessKeys::open_token_file(&dir.join("data/serve/token")).unwrap();
        let keys = Arc::new(keys);
        let (listener, address) = http::bind_listener(SocketAddr::new(ip, 0)).await.unwrap();
        let shutdown = CancellationToken::new();
        let daemon = http::HttpDaemon {
            serve_state,
            keys: Arc::clone(&keys),
            address,
            extension: None,
            rules,
        };
        let task = Some(tokio::spawn(http::serve_http(listener, daemon, shutdown.clone())));
        Served { address, token, keys, dir, shutdown, task, clock, _keep: keep }
    }

    /// Moves the clock on.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Fills in what only this daemon knows, and lines as they go over the wire. It is the only request of its connection.
    pub(crate) fn fill(&self, request: &str) -> Vec<u8> {
        let text = request
            .replacen('\n', "\nConnection: close\n", 1)
            .replace("{at}", &self.address.to_string())
            .replace("{port}", &self.address.port().to_string())
            .replace("{token}", &self.token);
        text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads all that comes back. The request has to end the connection, or be refused.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        // Whoever is refused early may find the door closed while still writing.
        let _ = stream.write_all(bytes).await;
        Answer::of(&read_all(&mut stream).await)
    }

    pub(crate) async fn ask(&self, request: &str) -> Answer {
        self.send(&self.fill(request)).await
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut part).await {
            bytes.extend_from_slice(&part[..read]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer ends");
    bytes
}

async fn serve_state(dir: &Utf8Path, clock: &Arc<AtomicU64>) -> ServeState {
    let skill = format!(
        "---\nname: {SECRET_SKILL}\ndescription: Adds up the quarter. Use when asked for numbers.\n---\n\nAdd.\n"
    );
    let path = dir.join("project/.claude/skills").join(SECRET_SKILL).join("SKILL.md");
    repertoire_text::fs::write_atomic(&path, skill.as_bytes()).unwrap();
    let here = dir.join("project");
    let places =
        SearchDirectories { home: dir.join("home"), pack: dir.join("pack"), here: here.clone() };
    let clock = Arc::clone(clock);
    let clock: repertoire_serve::serve_state::ServeClock =
        Arc::new(move || clock.load(Ordering::Relaxed));
    let journal = Target::File(dir.join("data/journal.db"));
    ServeState::new(ServeParts {
        library: Arc::new(SkillLibrary::open(DiscoveryRequest::new(ProfileId::Repertoire, places))),
        make_selector: Arc::new(|catalog, settings| {
            SkillSelector::new(
                &SkillDocument::from_catalog(catalog),
                SelectionModel::embedded(),
                settings,
                None,
            )
        }),
        settings: SelectionSettings::default(),
        journal: {
            let clock = Arc::clone(&clock);
            Arc::new(move || {
                let (target, clock) = (journal.clone(), Arc::clone(&clock));
                Box::pin(async move { Journal::open(&target, clock).await })
            })
        },
        project: here,
        data: dir.join("data"),
        workplace: crate::serve_state::workplace(),
        clock,
    })
}
