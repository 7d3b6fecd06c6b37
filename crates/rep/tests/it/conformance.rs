//! The conformance suite of MCP against the real daemon. It is a program for Node and comes from npm; `.ci/run` installs it,
//! and `REPERTOIRE_CONFORMANCE` names the folder. The suite calls a scenario that it skipped a success, so what it has
//! written down is counted here.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::read_text;
use serde_json::Value;

use crate::workspace::Workspace;

const NEWEST: &str = "2026-07-28";
/// What the suite consists of, below `node_modules`.
const PARTS: [&str; 3] =
    ["node/bin/node", "conformance-0.1/dist/index.js", "conformance-0.2/dist/index.js"];
const HOW: &str = "`npm install` it as .ci/run does, and set REPERTOIRE_CONFORMANCE";

/// A daemon with the fixtures of the suite. It stops when this is dropped.
struct Daemon {
    child: Child,
    url: String,
}

impl Daemon {
    fn start(ws: &Workspace) -> Self {
        let mut command = ws.command(&["serve", "--port", "0", "--conformance"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let link = BufReader::new(child.stdout.take().unwrap()).lines().next();
        let link = link.expect("the daemon says where it is").unwrap();
        let (address, _) = link.split_once("/#").expect("it is a link");
        Daemon { child, url: format!("{address}/mcp") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let daemon = Daemon::start(&ws);
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
