//! The API against what its own document says of it, by `schemathesis` from PyPI: no request that the document allows is
//! refused, none that it forbids is accepted, no answer has another shape, and nothing is a 500. `.ci/run` installs it;
//! `REPERTOIRE_SCHEMATHESIS` names the program.

use std::io::Write as _;
use std::process::{Command, Stdio};

use camino::Utf8PathBuf;

use crate::page::project_fixture::{Served, project_fixture};

/// Requests that are made up for each operation. By hand, more of them find more.
const EXAMPLES: &str = "25";
const HOW: &str = "`pip install` it as .ci/run does, and set REPERTOIRE_SCHEMATHESIS";

/// Where the program is; where `CI` is set it has to be.
fn installed() -> Option<Utf8PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where the program is comes from outside the tests"
    )]
    let (named, is_ci) =
        (std::env::var("REPERTOIRE_SCHEMATHESIS").ok(), std::env::var_os("CI").is_some());
    let program = Utf8PathBuf::from(named.unwrap_or_else(|| "schemathesis".to_owned()));
    let asked = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
    if asked.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    assert!(!is_ci, "the API is tested by schemathesis; {HOW}");
    // Past the test harness, which would swallow it.
    let _ = writeln!(std::io::stderr(), "SKIPPED: schemathesis is not here; {HOW}");
    None
}

#[test]
fn the_api_does_what_its_document_says() {
    let Some(program) = installed() else { return };
    let ws = project_fixture();
    let served = Served::start(&ws);
    let ran = Command::new(program)
        .arg("run")
        .arg(format!("{}api/v1/openapi.json", served.origin()))
        .args(["-H", &format!("Authorization: Bearer {}", served.token(&ws))])
        .args(["--checks", "all", "--max-examples", EXAMPLES, "--seed", "1", "--no-color"])
        // A stream of events has no end that could be waited for.
        .args(["--exclude-path", "/api/v1/events"])
        .current_dir(ws.path("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}
