//! A `ServeState` with skills of every kind and a journal, and a daemon that serves it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::Utf8PathBuf;
use repertoire_flow::driver::operations::WorkplaceFactory;
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::run::RunUsage;
use repertoire_journal::{Journal, NewRun, Payload, QueueWorker, RunId, Target};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_select::{SelectionModel, SelectionSettings, SkillSelector};
use repertoire_serve::ServeState;
use repertoire_serve::http::token::AccessKeys;
use repertoire_serve::http::{self, HttpDaemon};
use repertoire_serve::serve_state::{ServeExtras, ServeParts};
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::profile::{ProfileId, SearchDirectories};
use repertoire_skill::skill::Scope;
use repertoire_text::fs::write_atomic;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// The time at which tests begin.
pub(crate) const NOW_MS: u64 = 1_700_000_000_000;

/// A folder with a project and everything that is kept beside it. It is gone when this is dropped.
pub(crate) struct Field {
    _folder: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) clock: Arc<AtomicU64>,
}

impl Field {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::try_from(folder.path().canonicalize().unwrap()).unwrap();
        Field { _folder: folder, root, clock: Arc::new(AtomicU64::new(NOW_MS)) }
    }

    /// One with skills: two good ones, a shadowed one, a broken one, one with files beside it.
    pub(crate) fn with_skills() -> Self {
        let field = Self::new();
        field.write(
            "project/.agents/skills/invoices/SKILL.md",
            "---\nname: invoices\ndescription: Checks invoices against purchase orders. Use when an invoice has to be approved.\nrequires: []\ndependencies: [orders]\n---\nRead the invoice.\n\nSee references/rules.md.\n",
        );
        field.write("project/.agents/skills/invoices/references/rules.md", "Amounts must agree.\n");
        field.write(
            "project/.agents/skills/orders/SKILL.md",
            "---\nname: orders\ndescription: Finds purchase orders in the archive. Use when an order is looked for.\n---\nLook in the archive.\n",
        );
        field.write(
            "home/.agents/skills/orders/SKILL.md",
            "---\nname: orders\ndescription: An older way to find orders.\n---\nAsk somebody.\n",
        );
        field.write(
            "project/.agents/skills/broken/SKILL.md",
            "---\nname: broken\ndescription: [unclosed\nmore: {\n---\nNever seen.\n",
        );
        field
    }

    pub(crate) fn project(&self) -> Utf8PathBuf {
        self.root.join("project")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write_atomic(&self.root.join(path), text.as_bytes()).unwrap();
    }

    pub(crate) async fn serve_state(&self) -> ServeState {
        let places = SearchDirectories {
            home: self.root.join("home"),
            pack: self.root.join("pack"),
            here: self.project(),
        };
        std::fs::create_dir_all(self.project()).unwrap();
        // What is shipped with us would be in the way of counting.
        let mut roots = ProfileId::Repertoire.profile().roots_at(&places);
        roots.retain(|root| root.scope != Scope::Builtin);
        let request = DiscoveryRequest {
            roots: Some(roots),
            ..DiscoveryRequest::new(ProfileId::Repertoire, places)
        };
        let clock = Arc::clone(&self.clock);
        let clock: repertoire_journal::JournalClock =
            Arc::new(move || clock.load(Ordering::SeqCst));
        let target = Target::File(self.root.join("data/journal.db"));
        let parts = ServeParts {
            library: Arc::new(SkillLibrary::open(request)),
            make_selector: Arc::new(|catalog, settings| {
                SkillSelector::from_catalog(catalog, SelectionModel::embedded(), settings)
            }),
            settings: SelectionSettings::default(),
            journal: {
                let clock = Arc::clone(&clock);
                Arc::new(move || {
                    let (target, clock) = (target.clone(), Arc::clone(&clock));
                    Box::pin(async move { Journal::open(&target, clock).await })
                })
            },
            project: self.project(),
            data: self.root.join("data"),
            workplace: workplace(),
            clock,
        };
        ServeState::with_extras(
            parts,
            ServeExtras { person: Some("ada".into()), ..ServeExtras::default() },
        )
    }

    pub(crate) async fn serve(self) -> Served {
        Served::start(self.serve_state().await, self).await
    }
}

/// A place for programs that nothing keeps inside; no test of this crate runs any.
pub(crate) fn workplace() -> WorkplaceFactory {
    Arc::new(|dir| RunWorkplace::new(dir, dir.join(".spill"), Sandbox::None))
}

/// A daemon at work. It stops when this is dropped.
pub(crate) struct Served {
    pub(crate) field: Field,
    pub(crate) serve_state: ServeState,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    client: reqwest::Client,
    stop: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Served {
    pub(crate) async fn start(serve_state: ServeState, field: Field) -> Self {
        // The clients of tests speak no TLS, but cannot be made without somebody who could.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (keys, token) =
            AccessKeys::open_token_file(&field.root.join("data/serve/token")).unwrap();
        let (listener, address) = http::bind_listener(([127, 0, 0, 1], 0).into()).await.unwrap();
        let stop = CancellationToken::new();
        let daemon = HttpDaemon {
            serve_state: serve_state.clone(),
            keys: Arc::new(keys),
            address,
            extension: None,
            rules: http::ClientRules::default(),
        };
        tokio::spawn(http::serve_http(listener, daemon, stop.clone()));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Served { field, serve_state, address, token, client, stop }
    }

    /// A stream of events, as a client of them reads it.
    pub(crate) async fn listen(&self, query: &str, last_id: Option<&str>) -> Listening {
        Listening::open(self.address, &self.token, query, last_id).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A GET with the token.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        let request = self.client.get(self.url(path)).bearer_auth(&self.token);
        Reply::of(request.send().await.unwrap()).await
    }

    /// A POST of JSON with the token.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        let request = self.client.post(self.url(path)).bearer_auth(&self.token).json(body);
        Reply::of(request.send().await.unwrap()).await
    }
}

/// A client of a stream of events.
pub(crate) struct Listening {
    stream: BufReader<TcpStream>,
}

/// An event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Came {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Listening {
    pub(crate) async fn open(
        address: SocketAddr,
        token: &str,
        query: &str,
        last_id: Option<&str>,
    ) -> Self {
        let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        let last = last_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "it ended: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
        Listening { stream }
    }

    /// The next event; nothing when the stream has ended. Lines of chunks and comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Came> {
        let mut came = Came::default();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            match line.split_once(": ") {
                Some(("id", id)) => came.id = Some(id.to_owned()),
                Some(("event", event)) => came.event = event.to_owned(),
                Some(("data", data)) => came.data = serde_json::from_str(data).unwrap(),
                _ if line.is_empty() && !came.event.is_empty() => return Some(came),
                _ if line == "0" => return None,
                _ => {}
            }
        }
    }

    /// The next event of a run, within a time in which it must have come.
    pub(crate) async fn note(&mut self) -> (String, u64) {
        let next = tokio::time::timeout(std::time::Duration::from_secs(20), async {
            loop {
                let came = self.next().await.expect("the stream goes on");
                if came.event == "run" && came.data["type"] == "NOTE" {
                    let number = came.data["data"]["number"].as_u64().unwrap();
                    return (came.id.unwrap(), number);
                }
            }
        });
        next.await.expect("an event in time")
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Reply {
    async fn of(response: reqwest::Response) -> Self {
        let kind = response.headers().get("content-type");
        let kind = kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
        let status = response.status().as_u16();
        Reply { status, kind, text: response.text().await.unwrap() }
    }

    /// The JSON of an answer that is good.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!((self.status, self.kind.as_str()), (200, "application/json"), "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// The problem of an answer that is not.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> Value {
        let found = (self.status, self.kind.as_str());
        assert_eq!(found, (status, "application/problem+json"), "{}", self.text);
        let problem: Value = serde_json::from_str(&self.text).unwrap();
        assert_eq!(problem["status"], status);
        problem
    }
}

/// A field of every item of a page.
#[track_caller]
pub(crate) fn each<'v>(page: &'v Value, field: &str) -> Vec<&'v str> {
    let items = page["items"].as_array().unwrap_or_else(|| panic!("no page: {page}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

/// A run in a journal that somebody works on, step by step.
pub(crate) struct Work {
    journal: Journal,
    pub(crate) lease: repertoire_journal::RunLease,
    pub(crate) run: RunId,
}

impl Work {
    /// Makes a run and takes it.
    pub(crate) async fn begin(journal: &Journal, name: &str, workspace: &str) -> Self {
        let run = journal
            .create(NewRun {
                id: RunId::new(),
                kind: "plan".into(),
                name: name.into(),
                workspace: workspace.into(),
                labels: Default::default(),
                priority: 0,
                limits: Default::default(),
                request: serde_json::json!({ "plan": "PLAN.md" }),
            })
            .await
            .unwrap();
        let worker = QueueWorker {
            name: "w".into(),
            labels: Default::default(),
            kinds: ["plan".to_owned()].into(),
            lease: std::time::Duration::from_secs(3600),
        };
        let claimed = journal.claim_run(&run.id, &worker, &Default::default()).await.unwrap();
        let lease = claimed.unwrap().lease;
        let work = Work { journal: journal.clone(), lease, run: run.id };
        work.add([Payload::RunStarted { worker: "w".into() }]).await;
        work
    }

    pub(crate) async fn add(&self, payloads: impl IntoIterator<Item = Payload>) {
        self.journal.append(&self.lease, payloads.into_iter().collect()).await.unwrap();
    }

    /// A note that says which it is.
    pub(crate) async fn note(&self, number: u64) {
        let data = serde_json::json!({ "number": number });
        self.add([Payload::Note { name: "test".into(), data }]).await;
    }

    /// One step from its start to its end.
    pub(crate) async fn step(&self, number: u32, cost_micro_usd: u64) {
        let task = TaskRef { id: "a".into(), label: "Do a".into() };
        let started = Payload::StepStarted {
            step: number,
            kind: "implementation".into(),
            task: Some(task),
            attempt: 1,
            iteration: number,
            head: None,
            detail: Value::Null,
        };
        let finished = Payload::StepFinished {
            step: number,
            outcome: StepOutcome::Ok,
            reason: None,
            head: None,
            spent: RunUsage { cost_micro_usd, input_tokens: 10, ..RunUsage::default() },
            result: Value::Null,
        };
        self.add([started, finished]).await;
    }
}
