//! Declared checks, with real processes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::declared::{
    CheckDefinition, CheckError, CheckEvent, CheckRunVerdict, CheckStatus, failure_notes,
    run_checks,
};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

use crate::repo::{environment, read};

struct Bench {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir(dir.join("work")).unwrap();
        Bench { _keep: keep, dir }
    }

    fn workplace(&self) -> RunWorkplace {
        workplace(&self.dir.join("work"), &self.dir)
    }

    async fn run(&self, checks: &[CheckDefinition]) -> CheckRunVerdict {
        let cancel = CancellationToken::new();
        run_checks(checks, &self.workplace(), &cancel, &|_| {}, 4).await.unwrap()
    }

    async fn one(
        &self,
        check: CheckDefinition,
    ) -> (CheckRunVerdict, repertoire_checks::declared::CheckRunResult) {
        let verdict = self.run(&[check]).await;
        let result = verdict.results[0].clone();
        (verdict, result)
    }
}

pub(crate) fn workplace(dir: &Utf8Path, base: &Utf8Path) -> RunWorkplace {
    let mut workplace = RunWorkplace::new(dir, base.join("spill"), Sandbox::None);
    workplace.environment = environment(base);
    workplace
}

fn after(name: &str, command: &str, depends_on: &[&str]) -> CheckDefinition {
    let depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
    CheckDefinition { depends_on, ..CheckDefinition::new(name, command) }
}

#[test]
fn checks_are_read_strictly_and_with_times_as_people_write_them() {
    #[derive(serde::Deserialize)]
    struct File {
        check: Vec<CheckDefinition>,
    }
    let text = "[[check]]\nname = 'test'\ncommand = 'cargo test'\ntimeout = '90s'\nretries = 1\n\
                [[check]]\nname = 'lint'\ncommand = 'x'\ntimeout = 5\ncritical = false\n\
                depends_on = ['test']\nnetwork = true\nenv = { A = 'b' }\n\
                [[check]]\nname = 'usual'\ncommand = 'x'\n";
    let file: File = toml::from_str(text).unwrap();
    let [test, lint, usual] = file.check.as_slice() else { panic!() };
    assert_eq!((test.timeout, test.retries, test.critical), (Duration::from_secs(90), 1, true));
    assert_eq!((lint.timeout, lint.critical, lint.network), (Duration::from_secs(5), false, true));
    assert_eq!(*usual, CheckDefinition::new("usual", "x"));

    let json = serde_json::to_string(lint).unwrap();
    assert!(json.contains("\"timeout\":\"5s\""), "{json}");
    assert_eq!(serde_json::from_str::<CheckDefinition>(&json).unwrap(), *lint);
    for (text, message) in [
        ("name = 'a'\ncommand = 'x'\ntimout = '1s'\n", "unknown field `timout`"),
        ("name = 'a'\ncommand = 'x'\ntimeout = 'soon'\n", "`soon` is no time"),
        ("name = 'a'\n", "missing field `command`"),
    ] {
        let error = toml::from_str::<CheckDefinition>(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[tokio::test]
async fn exit_codes_decide_and_only_critical_ones_count() {
    let bench = Bench::new();
    let (verdict, passed) = bench.one(CheckDefinition::new("a", "echo fine; echo too >&2")).await;
    assert!(verdict.green);
    assert_eq!((passed.status, passed.exit_code), (CheckStatus::Passed, Some(0)));
    assert_eq!((passed.output.as_str(), passed.bytes_total), ("fine\ntoo", 9));
    assert_eq!((passed.attempts, passed.flaky), (1, false));

    let failing = CheckDefinition::new("a", "echo no; exit 3");
    let (verdict, failed) = bench.one(failing.clone()).await;
    assert!(!verdict.green);
    assert_eq!((failed.status, failed.exit_code), (CheckStatus::Failed, Some(3)));
    let (verdict, _) = bench.one(CheckDefinition { critical: false, ..failing }).await;
    assert!(verdict.green && failure_notes(&verdict).contains("need not pass"));

    let (_, killed) = bench.one(CheckDefinition::new("a", "kill -9 $$")).await;
    assert_eq!((killed.status, killed.exit_code), (CheckStatus::Failed, None));
    let (_, missing) = bench.one(CheckDefinition::new("a", "no-such-program")).await;
    assert_eq!(missing.exit_code, Some(127));
    assert!(missing.output.contains("no-such-program"), "{}", missing.output);
    // A syntax error is told with the line of the command, not of what we put around it.
    let (_, wrong) = bench.one(CheckDefinition::new("a", "true\nif")).await;
    assert!(wrong.output.contains("line 3") || wrong.output.contains("line 2"), "{}", wrong.output);
}

#[tokio::test]
async fn what_depends_on_a_failure_is_skipped_and_not_green() {
    let bench = Bench::new();
    let checks = [
        after("deploy", "touch deployed", &["test"]),
        after("test", "touch tested", &["build"]),
        after("build", "false", &[]),
        after("lint", "true", &[]),
    ];
    let verdict = bench.run(&checks).await;
    let statuses: Vec<_> = verdict.results.iter().map(|result| &result.status).collect();
    let skipped = |why: &str| CheckStatus::Skipped(format!("`{why}` did not pass"));
    assert_eq!(
        statuses,
        [&skipped("test"), &skipped("build"), &CheckStatus::Failed, &CheckStatus::Passed]
    );
    assert!(!verdict.green && !bench.dir.join("work/tested").exists());

    // Also if the failure itself need not matter.
    let optional = CheckDefinition { critical: false, ..CheckDefinition::new("build", "false") };
    assert!(!bench.run(&[optional, after("test", "true", &["build"])]).await.green);
}

#[tokio::test]
async fn order_follows_dependencies_and_independent_checks_run_at_once() {
    let bench = Bench::new();
    let checks = [
        after("last", "echo last >> log", &["a", "b"]),
        // Each waits for the other one to have begun: alone it would run out of time.
        after("a", "touch a; until [ -e b ]; do sleep 0.02; done; echo a >> log", &["first"]),
        after("b", "touch b; until [ -e a ]; do sleep 0.02; done; echo b >> log", &["first"]),
        after("first", "echo first >> log", &[]),
    ];
    let verdict = bench.run(&checks).await;
    assert!(verdict.green, "{}", failure_notes(&verdict));
    let log = read(&bench.dir.join("work/log"));
    assert!(log.starts_with("first\n") && log.ends_with("last\n"), "{log}");
}

#[tokio::test]
async fn no_more_run_at_once_than_is_allowed() {
    let bench = Bench::new();
    let checks: Vec<CheckDefinition> =
        (0..4).map(|n| CheckDefinition::new(format!("c{n}"), "sleep 0.05")).collect();
    let (now, most) = (Mutex::new(0), Mutex::new(0));
    let count = |event: CheckEvent| {
        let mut now = now.lock().unwrap();
        match event {
            CheckEvent::Started { .. } => *now += 1,
            CheckEvent::Ended(_) => *now -= 1,
        }
        let mut most = most.lock().unwrap();
        *most = (*most).max(*now);
    };
    let cancel = CancellationToken::new();
    for (parallel, expected) in [(0, 1), (1, 1), (3, 3)] {
        *most.lock().unwrap() = 0;
        run_checks(&checks, &bench.workplace(), &cancel, &count, parallel).await.unwrap();
        assert_eq!(*most.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn a_hundred_megabytes_neither_block_nor_stay() {
    let bench = Bench::new();
    let line = "a line of output that is longer than such lines are ".repeat(10);
    let command = format!(
        "echo begin; yes '{line}' | head -c 60000000; echo; echo 'error[E0308]: mismatched types'; \
         yes '{line}' | head -c 40000000 >&2; echo; echo end; exit 1"
    );
    let (_, result) = bench.one(CheckDefinition::new("loud", command)).await;
    assert_eq!(result.exit_code, Some(1));
    assert!(result.bytes_total > 100_000_000);
    assert!(result.output.len() < 70_000);
    assert!(result.output.starts_with("begin\n") && result.output.ends_with("\nend"));
    assert!(result.output.contains("bytes left out"));
    assert_eq!(result.telling, ["error[E0308]: mismatched types"]);
    let told = failure_notes(&CheckRunVerdict { results: vec![result], green: false });
    assert!(told.contains("error[E0308]") && told.len() < 20_000);
}

#[tokio::test]
async fn a_timeout_ends_grandchildren_that_hold_the_output() {
    let bench = Bench::new();
    let command = "(trap '' TERM; sleep 30; touch late) & echo begun; sleep 30";
    let check = CheckDefinition {
        timeout: Duration::from_millis(300),
        ..CheckDefinition::new("slow", command)
    };
    let started = Instant::now();
    let (verdict, result) = bench.one(check).await;
    assert_eq!((result.status, result.exit_code), (CheckStatus::TimedOut, None));
    assert_eq!(result.output, "begun");
    assert!(!verdict.green && started.elapsed() < Duration::from_secs(20));
    assert!(failure_notes(&verdict).contains("it took too long"));

    // One that ends by itself does not wait for what it left behind.
    let (_, result) = bench.one(CheckDefinition::new("left", "sleep 30 & echo done")).await;
    assert_eq!((result.status, result.output.as_str()), (CheckStatus::Passed, "done"));
    assert!(started.elapsed() < Duration::from_secs(25));
}

#[tokio::test]
async fn a_pass_after_a_failure_is_flaky() {
    let bench = Bench::new();
    let command = "echo x >> tries; [ $(wc -l < tries) -ge 3 ]";
    let (verdict, result) =
        bench.one(CheckDefinition { retries: 5, ..CheckDefinition::new("a", command) }).await;
    assert!(verdict.green && result.flaky);
    assert_eq!(result.attempts, 3);
    let (verdict, result) =
        bench.one(CheckDefinition { retries: 2, ..CheckDefinition::new("a", "exit 9") }).await;
    assert_eq!((verdict.green, result.attempts, result.flaky), (false, 3, false));
    assert!(failure_notes(&verdict).contains("exit code 9, 3 attempts"));
}

#[tokio::test]
async fn stopping_ends_what_runs_and_skips_the_rest() {
    let bench = Bench::new();
    let cancel = CancellationToken::new();
    let stop = |event: CheckEvent| {
        if matches!(event, CheckEvent::Started { .. }) {
            cancel.cancel();
        }
    };
    let checks = [
        CheckDefinition { retries: 3, ..CheckDefinition::new("a", "sleep 30") },
        after("b", "true", &["a"]),
    ];
    let started = Instant::now();
    let verdict = run_checks(&checks, &bench.workplace(), &cancel, &stop, 1).await.unwrap();
    let stopped = CheckStatus::Skipped("the run was stopped".to_owned());
    assert!(verdict.results.iter().all(|result| result.status == stopped), "{verdict:?}");
    assert!(!verdict.green && started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_check_has_its_environment_no_input_and_leaves_protected_paths_alone() {
    let bench = Bench::new();
    let mut check = CheckDefinition::new("env", "echo \"$APP_WORD\"; pwd; read x || echo no input");
    check.env.insert("APP_WORD".into(), "a b".into());
    let (_, result) = bench.one(check).await;
    assert_eq!(result.output, format!("a b\n{}\nno input", bench.dir.join("work")));

    let (_, result) = bench.one(CheckDefinition::new("bad", "echo x > AGENTS.md")).await;
    assert!(result.output.contains("the protected path `AGENTS.md` was made"), "{}", result.output);
    assert!(!bench.dir.join("work/AGENTS.md").exists());
}

#[tokio::test]
async fn nothing_runs_if_the_checks_make_no_sense() {
    let bench = Bench::new();
    let checks = [CheckDefinition::new("a", "touch ran"), after("b", "x", &["c"])];
    let cancel = CancellationToken::new();
    let error = run_checks(&checks, &bench.workplace(), &cancel, &|_| {}, 1).await.unwrap_err();
    assert!(matches!(error, CheckError::Unknown { .. }));
    assert!(!bench.dir.join("work/ran").exists());
    assert!(bench.run(&[]).await.green);
}
