//! A house with skills of every kind and a journal, and a daemon that serves it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::Utf8PathBuf;
use repertoire_agent::sandbox::Sandbox;
use repertoire_agent::workplace::Workplace;
use repertoire_drive::workflow::desk::MakeWorkplace;
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::run::Spent;
use repertoire_journal::{Journal, NewRun, Payload, RunId, Target, Worker};
use repertoire_select::{Model, Selector, Settings};
use repertoire_serve::House;
use repertoire_serve::house::Parts;
use repertoire_serve::http::token::Keys;
use repertoire_serve::http::{self, Daemon};
use repertoire_skill::discover::Request;
use repertoire_skill::library::Library;
use repertoire_skill::profile::{Places, ProfileId};
use repertoire_skill::skill::Scope;
use repertoire_text::fs::write_atomic;
use serde_json::Value;
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

    pub(crate) async fn house(&self) -> House {
        let places = Places {
            home: self.root.join("home"),
            pack: self.root.join("pack"),
            here: self.project(),
        };
        std::fs::create_dir_all(self.project()).unwrap();
        // What is shipped with us would be in the way of counting.
        let mut roots = ProfileId::Repertoire.profile().roots_at(&places);
        roots.retain(|root| root.scope != Scope::Builtin);
        let request = Request { roots: Some(roots), ..Request::new(ProfileId::Repertoire, places) };
        let clock = Arc::clone(&self.clock);
        let clock: repertoire_journal::Clock = Arc::new(move || clock.load(Ordering::SeqCst));
        let target = Target::File(self.root.join("data/journal.db"));
        House::new(Parts {
            library: Arc::new(Library::open(request)),
            make_selector: Arc::new(|catalog, settings| {
                Selector::of(catalog, Model::embedded(), settings)
            }),
            settings: Settings::default(),
            journal: Journal::open(&target, Arc::clone(&clock)).await.unwrap(),
            project: self.project(),
            data: self.root.join("data"),
            workplace: workplace(),
            clock,
        })
    }

    pub(crate) async fn serve(self) -> Served {
        Served::start(self.house().await, self).await
    }
}

/// A place for programs that nothing keeps inside; no test of this crate runs any.
pub(crate) fn workplace() -> MakeWorkplace {
    Arc::new(|dir| Workplace::new(dir, dir.join(".spill"), Sandbox::None))
}

/// A daemon at work. It stops when this is dropped.
pub(crate) struct Served {
    pub(crate) field: Field,
    pub(crate) house: House,
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
    pub(crate) async fn start(house: House, field: Field) -> Self {
        // The clients of tests speak no TLS, but cannot be made without somebody who could.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (keys, token) = Keys::open(&field.root.join("data/serve/token")).unwrap();
        let (listener, address) = http::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let stop = CancellationToken::new();
        let daemon = Daemon {
            house: house.clone(),
            keys: Arc::new(keys),
            address,
            conformance: false,
            rules: http::Rules::default(),
        };
        tokio::spawn(http::serve(listener, daemon, stop.clone()));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Served { field, house, address, token, client, stop }
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
