//! The conformance suite of MCP against the daemon, with the suite's fixtures as an extension. The suite is a program for
//! Node and comes from npm; `.ci/run` installs it, and `REPERTOIRE_CONFORMANCE` names the folder. The suite reports skipped
//! scenarios as successes, so the test counts the checks in its output.

mod fixtures;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Journal, Target};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_select::{SelectionModel, SelectionSettings, SkillSelector};
use repertoire_serve::ServeState;
use repertoire_serve::http::token::AccessKeys;
use repertoire_serve::http::{self, ClientRules, HttpDaemon};
use repertoire_serve::serve_state::ServeParts;
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::profile::{ProfileId, SearchDirectories};
use repertoire_text::clock::{Clock as _, SystemClock};
use repertoire_text::fs::read_text;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::fixtures::ConformanceFixtures;
use crate::workspace::Workspace;

const NEWEST: &str = "2026-07-28";
/// What the suite consists of, below `node_modules`.
const PARTS: [&str; 3] =
    ["node/bin/node", "conformance-0.1/dist/index.js", "conformance-0.2/dist/index.js"];
const HOW: &str = "`npm install` it as .ci/run does, and set REPERTOIRE_CONFORMANCE";

/// A daemon with the fixtures of the suite. It stops when this is dropped.
struct ConformanceDaemon {
    _runtime: tokio::runtime::Runtime,
    url: String,
}

impl ConformanceDaemon {
    fn start(data: &Utf8Path) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let url = runtime.block_on(async {
            let (listener, address) =
                http::bind_listener(([127, 0, 0, 1], 0).into()).await.unwrap();
            let (keys, token) = AccessKeys::open_token_file(&data.join("serve/token")).unwrap();
            let daemon = HttpDaemon {
                serve_state: empty_state(data),
                keys: Arc::new(keys),
                address,
                extension: Some(Arc::new(ConformanceFixtures::new(data))),
                rules: ClientRules::default(),
            };
            let (limits, shutdown) = (daemon.rules.limits, CancellationToken::new());
            let router = with_token(http::build_router(daemon, &shutdown), &token);
            tokio::spawn(http::accept_connections(listener, router, limits, shutdown));
            format!("http://{address}/mcp")
        });
        ConformanceDaemon { _runtime: runtime, url }
    }
}

/// Adds the token to every request, because the suite cannot send one.
fn with_token(router: axum::Router, token: &str) -> axum::Router {
    let token = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    router.layer(from_fn(move |mut request: Request, next: Next| {
        request.headers_mut().insert(header::AUTHORIZATION, token.clone());
        next.run(request)
    }))
}

/// A state without skills and runs.
fn empty_state(data: &Utf8Path) -> ServeState {
    let places = SearchDirectories {
        home: data.join("home"),
        pack: data.join("pack"),
        here: data.to_owned(),
    };
    let nothing = DiscoveryRequest {
        roots: Some(Vec::new()),
        ..DiscoveryRequest::new(ProfileId::Repertoire, places)
    };
    let target = Target::File(data.join("journal.sqlite"));
    ServeState::new(ServeParts {
        library: Arc::new(SkillLibrary::open(nothing)),
        make_selector: Arc::new(|catalog, settings| {
            SkillSelector::from_catalog(catalog, SelectionModel::embedded(), settings)
        }),
        settings: SelectionSettings::default(),
        journal: Arc::new(move || {
            let target = target.clone();
            Box::pin(async move { Journal::open(&target, Arc::new(|| SystemClock.now_ms())).await })
        }),
        project: data.to_owned(),
        data: data.to_owned(),
        workplace: Arc::new(|dir| RunWorkplace::new(dir, dir.join(".spill"), Sandbox::None)),
        clock: Arc::new(|| SystemClock.now_ms()),
    })
}

/// Where the suite is installed; where `CI` is set it has to be.
fn installed() -> Option<Utf8PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where the suite is comes from outside the tests"
    )]
    let (folder, is_ci) =
        (std::env::var("REPERTOIRE_CONFORMANCE"), std::env::var_os("CI").is_some());
    let modules = folder.ok().map(|folder| Utf8Path::new(&folder).join("node_modules"));
    let modules = modules.filter(|modules| PARTS.iter().all(|part| modules.join(part).exists()));
    if modules.is_none() {
        assert!(!is_ci, "MCP is tested by its conformance suite; {HOW}");
        // Past the test harness, which would swallow it.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: the MCP conformance suite is not here; {HOW}");
    }
    modules
}

/// Runs one version of the suite and counts what it has written down, by verdict. What is not good is printed.
fn run(
    ws: &Workspace,
    modules: &Utf8Path,
    version: &str,
    args: &[&str],
) -> BTreeMap<String, usize> {
    let out = ws.path("out").join(version).join(args.join("-"));
    let suite = modules.join(format!("conformance-{version}/dist/index.js"));
    let ran = Command::new(modules.join("node/bin/node"))
        .arg(&suite)
        .arg("server")
        .args(args)
        .args(["-o", out.as_str()])
        .current_dir(ws.path("data"))
        .output()
        .unwrap();
    assert!(out.exists(), "{}", String::from_utf8_lossy(&ran.stderr));
    let mut counts = BTreeMap::new();
    for scenario in std::fs::read_dir(&out).unwrap() {
        let path = Utf8PathBuf::try_from(scenario.unwrap().path().join("checks.json")).unwrap();
        let checks: Value = serde_json::from_str(&read_text(&path, 64 << 20).unwrap()).unwrap();
        for check in checks.as_array().unwrap() {
            let status = check["status"].as_str().unwrap();
            if !matches!(status, "SUCCESS" | "INFO") {
                println!("{status} {}: {}", check["id"], check["errorMessage"]);
            }
            *counts.entry(status.to_owned()).or_default() += 1;
        }
    }
    // What happened on the way is no verdict.
    counts.remove("INFO");
    counts
}

#[test]
fn the_daemon_conforms_to_every_version_of_the_protocol_and_skips_nothing() {
    let Some(modules) = installed() else { return };
    let ws = Workspace::new();
    let daemon = ConformanceDaemon::start(&ws.path("data"));
    let url = daemon.url.as_str();
    let good = |count: usize| BTreeMap::from([("SUCCESS".to_owned(), count)]);
    let all = ["--url", url, "--suite", "all"];
    assert_eq!(run(&ws, &modules, "0.1", &all), good(46));
    for (version, count) in [("2025-11-25", 83), (NEWEST, 153)] {
        let args = [&all[..], &["--spec-version", version]].concat();
        assert_eq!(run(&ws, &modules, "0.2", &args), good(count), "{version}");
    }
    let mut checks = 0;
    for part in ["enumeration", "manifest", "directory"] {
        let scenario = format!("sep-2640-skills-{part}");
        let args = ["--url", url, "--scenario", &scenario, "--spec-version", NEWEST, "--force"];
        let counts = run(&ws, &modules, "0.2", &args);
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["SUCCESS"], "{scenario}");
        checks += counts["SUCCESS"];
    }
    assert_eq!(checks, 45);
}
