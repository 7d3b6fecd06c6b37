//! `rep verify`: what people see, what programs read, and how it ends.

use std::io::Write as _;
use std::process::Stdio;

use crate::workspace::Workspace;

fn workspace(config: &str) -> Workspace {
    let mut ws = Workspace::new();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.write("project/repertoire.toml", config);
    ws.own_the_project();
    ws.write("project/src/app.c", "int main(void)\n{\n  return x;\n}\n");
    ws
}

const RED: &str = r#"
[plan.checks.format]
command = "true"

[plan.checks.build]
command = "echo 'src/app.c:3:10: error: x undeclared'; exit 1"

[plan.final_checks.test]
command = "true"
depends_on = ["build"]
"#;

/// Times differ from run to run.
fn steady(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" s") {
        let start =
            rest[..at].rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
        let time = start < at && rest[start..at].contains('.');
        out.push_str(if time { &rest[..start] } else { &rest[..at] });
        out.push_str(if time { "[TIME]" } else { " s" });
        rest = &rest[at + 2..];
    }
    format!("{out}{rest}")
}

#[test]
fn a_red_check_is_analysed_and_the_answer_is_no() {
    let ran = workspace(RED).rep("verify --parallel 1");
    insta::assert_snapshot!(steady(&ran.to_string()), @r"
    FAIL build   [TIME], exit code 1
    PASS format  [TIME]
    SKIP test    `build` did not pass

    build: 1 error in 1 group
      type_missing
        src/app.c:3:10  x undeclared
            1 | int main(void)
            2 | {
          > 3 |   return x;
            4 | }

    failed
    [stderr]
      … build
      ✗ build ([TIME])
      - test: `build` did not pass
      … format
      ✓ format ([TIME])
    [exit 1]
    ");
}

#[test]
fn programs_get_the_record_and_its_schema() {
    let ws = workspace(RED);
    let value = ws.json("verify --json", "verify.json");
    assert_eq!(value["verdict"], "failed");
    assert_eq!(value["checks"][0]["analysis"]["errors"][0]["context"][2], "> 3 |   return x;");
    let signature = value["checks"][0]["signatures"][0].as_str().unwrap();
    assert_eq!(signature.len(), 16);
}

#[test]
fn files_are_written_by_their_endings_and_compared_later() {
    let ws = workspace(RED);
    let ran = ws.rep("verify -o before.json -o report.html -o report.txt");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ws.text("project/report.html").starts_with("<!DOCTYPE html>"));
    assert!(ws.text("project/report.txt").ends_with("\nfailed\n"));
    let mended = RED.replace("echo 'src/app.c:3:10: error: x undeclared'; exit 1", "true");
    ws.write("project/repertoire.toml", mended);
    let ran = ws.rep("verify --compare before.json");
    // The check itself is another one, which is no way to pass.
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("0 new, 0 still there, 1 gone"), "{ran}");
    assert!(ran.stdout.contains("its command was `echo"), "{ran}");
}

#[test]
fn without_checks_nothing_is_verified_and_that_is_no_pass() {
    let ws = workspace("");
    let ran = ws.rep("verify");
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran, @r"
    no checks configured
    [stderr]
    hint: Declare checks in `plan.checks` of repertoire.toml, or name one with `--check COMMAND`.
    [exit 3]
    ");
    assert_eq!(ws.rep_with(&["verify", "--check", "true"]).code, 0);
    assert_eq!(
        ws.rep_with(&["verify", "--check", "exit 1", "--check", "true", "--fail-fast"]).code,
        1
    );
    assert_eq!(ws.rep_with(&["verify", "--check", "no-such-program-at-all"]).code, 3);
}

#[test]
fn wrong_use_is_told_before_anything_runs() {
    let ws = workspace("[plan.checks.a]\ncommand = \"touch ran\"\n");
    for line in [
        "verify -o report.doc",
        "verify --compare nothing.json",
        "verify --compare repertoire.toml",
        "verify --exit-code 1",
        "verify --read - --fail-fast",
        "verify --read nothing.txt",
    ] {
        assert_eq!(ws.rep(line).code, 2, "{line}");
    }
    assert!(!ws.path("project/ran").exists());
}

#[test]
fn output_of_a_command_that_has_run_is_analysed() {
    let ws = workspace("");
    let mut command = ws.command(&["verify", "--read", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let said = b"src/app.c:3:10: error: x undeclared\n\xff\xfe\n";
    child.stdin.take().unwrap().write_all(said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r"
    1 error in 1 group
      type_missing
        src/app.c:3:10  x undeclared
            1 | int main(void)
            2 | {
          > 3 |   return x;
            4 | }
    ");
    ws.write("project/log.txt", "0 errors\n");
    assert_eq!(ws.rep("verify --read log.txt").code, 0);
    assert_eq!(ws.rep("verify --read log.txt --exit-code 0").code, 0);
    assert_eq!(ws.rep("verify --read log.txt --exit-code 1").code, 1);
    let value = ws.json("verify --read log.txt --exit-code 2 --json", "verify-read.json");
    assert_eq!(value["analysis"]["errors"][0]["category"], "unknown");
}

#[test]
fn settings_that_no_check_needs_ask_for_no_consent() {
    for config in ["plan.copy = ['.env']\n", "plan.setup = 'npm ci'\n", "[plan.checks]\n"] {
        let mut ws = Workspace::new();
        ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        ws.write("project/repertoire.toml", config);
        let ran = ws.rep("verify --check true");
        assert_eq!(ran.code, 0, "{config}: {ran}");
    }
}
