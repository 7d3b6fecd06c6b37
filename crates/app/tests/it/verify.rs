//! Verification with real processes, and its reports.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::declared::{
    CheckDefinition, CheckOptions, CheckStatus, dependency_levels, run_checks,
};
use repertoire_checks::verify::{
    CheckOutcome, SuspicionKind, VerificationMode, VerificationReport, VerificationVerdict,
    VerifyOptions, render_html, render_text, run_verification,
};
use repertoire_review::report::Styles;
use tokio_util::sync::CancellationToken;

use crate::checks::workplace;
use crate::repo::Repo;

fn after(name: &str, command: &str, depends_on: &[&str]) -> CheckDefinition {
    let depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
    CheckDefinition { depends_on, ..CheckDefinition::new(name, command) }
}

async fn verified(
    repo: &Repo,
    checks: &[CheckDefinition],
    options: VerifyOptions<'_>,
) -> VerificationReport {
    let cancel = CancellationToken::new();
    let place = workplace(&repo.dir, &repo.base);
    run_verification(checks, &place, options, &cancel, &|_| {}).await.unwrap()
}

async fn full(repo: &Repo, checks: &[CheckDefinition]) -> VerificationReport {
    verified(repo, checks, VerifyOptions::default()).await
}

fn outcomes(verification: &VerificationReport) -> Vec<CheckOutcome> {
    verification.checks.iter().map(|check| check.result).collect()
}

#[test]
fn levels_follow_what_checks_depend_on() {
    let checks = [
        after("c", "x", &["b", "a"]),
        after("b", "x", &["a"]),
        after("a", "x", &[]),
        after("d", "x", &["a"]),
    ];
    assert_eq!(dependency_levels(&checks), [2, 1, 0, 1]);
    assert_eq!(dependency_levels(&[]), Vec::<usize>::new());
    assert_eq!(dependency_levels(&[after("a", "x", &["a"])]), [0]);
}

#[tokio::test]
async fn with_fail_fast_nothing_is_begun_after_the_first_red() {
    let repo = Repo::new();
    let place = workplace(&repo.dir, &repo.base);
    let cancel = CancellationToken::new();
    let soft = CheckDefinition { critical: false, ..CheckDefinition::new("soft", "exit 1") };
    let checks = [
        soft,
        CheckDefinition::new("fine", "true"),
        CheckDefinition::new("red", "exit 1"),
        CheckDefinition::new("late", "touch late"),
        after("on", "true", &["red"]),
    ];
    let options = CheckOptions { parallel: 1, fail_fast: true };
    let ran = run_checks(&checks, &place, &cancel, &|_| {}, options).await.unwrap();
    let status: Vec<CheckStatus> = ran.results.into_iter().map(|result| result.status).collect();
    let skipped = |why: &str| CheckStatus::Skipped(why.to_owned());
    let expected = [
        CheckStatus::Failed,
        CheckStatus::Passed,
        CheckStatus::Failed,
        skipped("`red` is red, and the first red ends it"),
        skipped("`red` did not pass"),
    ];
    assert_eq!(status, expected);
    assert!(!repo.dir.join("late").exists());
}

#[tokio::test]
async fn the_verdict_comes_from_what_is_recorded() {
    let repo = Repo::new();
    let (pass, fail) = (CheckDefinition::new("a", "true"), CheckDefinition::new("b", "exit 3"));
    let soft = CheckDefinition { critical: false, ..fail.clone() };
    let missing = CheckDefinition::new("b", "no-such-program-at-all");
    for (checks, verdict) in [
        (vec![], VerificationVerdict::NotVerifiable),
        (vec![pass.clone()], VerificationVerdict::Passed),
        (vec![pass.clone(), fail], VerificationVerdict::Failed),
        (vec![pass.clone(), soft], VerificationVerdict::Passed),
        (vec![pass, missing], VerificationVerdict::Inconclusive),
    ] {
        assert_eq!(full(&repo, &checks).await.verdict, verdict, "{checks:?}");
    }
}

#[tokio::test]
async fn a_failure_is_analysed_with_the_lines_around_it_and_compared_with_before() {
    let repo = Repo::new();
    repo.file("src/app.c", "int main(void)\n{\n  return x;\n}\n");
    let commit = repo.commit("second");
    let says = |text: &str| format!("echo \"$PWD/src/app.c:3:10: error: {text}\"; exit 1");
    let before = full(&repo, &[CheckDefinition::new("build", says("'x' undeclared"))]).await;
    assert_eq!(before.state.commit.as_deref(), Some(commit.as_str()));
    assert_eq!((before.state.clean, before.mode), (Some(true), VerificationMode::Full));
    let error = &before.checks[0].analysis.errors[0];
    assert_eq!(error.location().as_deref(), Some("src/app.c:3:10"));
    assert_eq!(error.context[2], "> 3 |   return x;");
    assert_eq!(before.checks[0].signatures.len(), 1);

    let again = CheckDefinition::new("build", says("'y' undeclared"));
    let options = VerifyOptions { before: Some(&before), ..VerifyOptions::default() };
    let same = verified(&repo, &[again], options).await.compared.unwrap();
    assert_eq!((same.new.len(), same.remaining.len(), same.gone.len()), (0, 1, 0));
    let other = CheckDefinition::new("build", says("something else entirely"));
    let other = verified(&repo, &[other], options).await.compared.unwrap();
    assert_eq!((other.new.len(), other.remaining.len(), other.gone.len()), (1, 0, 1));
    // What was not run may still be wrong.
    let blocked = [CheckDefinition::new("first", "exit 1"), after("build", "true", &["first"])];
    let blocked = verified(&repo, &blocked, options).await.compared.unwrap();
    assert_eq!((blocked.new.len(), blocked.gone.len()), (1, 0));
}

#[tokio::test]
async fn two_checks_that_fail_without_a_word_are_two_failures() {
    let repo = Repo::new();
    let checks = [
        CheckDefinition::new("there", "test -f no-such-file"),
        CheckDefinition::new("same", "grep -q x a.txt"),
    ];
    let one = full(&repo, &checks).await;
    let errors: Vec<_> = one.errors().collect();
    assert_eq!(errors[0].1.message, errors[1].1.message);
    assert_ne!(errors[0].2, errors[1].2);
    let again = full(&repo, &checks).await;
    assert_eq!(again.errors().next().map(|error| error.2), Some(errors[0].2));
}

#[tokio::test]
async fn a_pass_that_is_none_is_told_and_does_not_count() {
    let repo = Repo::new();
    let ran = |tests: u64| {
        let command =
            format!("echo 'test result: ok. {tests} passed; 0 failed; 0 ignored; 0 measured'");
        CheckDefinition::new("test", command)
    };
    let kinds = |verification: &VerificationReport| {
        verification.suspicions.iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    let before = full(&repo, &[ran(100)]).await;
    assert_eq!((before.verdict, kinds(&before)), (VerificationVerdict::Passed, vec![]));
    let options = VerifyOptions { before: Some(&before), ..VerifyOptions::default() };
    let fewer = verified(&repo, &[ran(20)], options).await;
    assert_eq!(fewer.verdict, VerificationVerdict::Inconclusive);
    assert_eq!(kinds(&fewer), [SuspicionKind::ChangedCheck, SuspicionKind::FewerTests]);
    for (command, kind) in [
        ("false || true", SuspicionKind::SwallowedStatus),
        ("echo '=== no tests ran in 0.01s ==='", SuspicionKind::NoTests),
        ("echo '1 failed, 2 passed in 0.01s'", SuspicionKind::HiddenFailure),
        ("echo two > a.txt", SuspicionKind::ChangedState),
    ] {
        let verification = full(&repo, &[CheckDefinition::new("odd", command)]).await;
        assert_eq!(kinds(&verification), [kind], "{command}");
        assert_eq!(verification.verdict, VerificationVerdict::Inconclusive);
    }
}

#[tokio::test]
async fn a_check_that_changes_files_is_seen_although_others_were_changed_before() {
    let repo = Repo::new();
    repo.file("a.txt", "in work\n");
    let quiet = full(&repo, &[CheckDefinition::new("quiet", "cat a.txt")]).await;
    assert_eq!((quiet.verdict, quiet.state.clean), (VerificationVerdict::Passed, Some(false)));
    for command in ["echo more >> a.txt", "echo new > left.txt"] {
        let loud = full(&repo, &[CheckDefinition::new("loud", command)]).await;
        let kinds: Vec<SuspicionKind> = loud.suspicions.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [SuspicionKind::ChangedState], "{command}");
        assert_eq!(loud.verdict, VerificationVerdict::Inconclusive);
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_long_output_is_found() {
    let repo = Repo::new();
    let noise =
        |lines: u32| format!("for n in $(seq {lines}); do echo \"{}\"; done", "noise ".repeat(16));
    let says = "echo 'a.c:1:2: error: planted'";
    let command = format!("{}; {says}; {}; exit 1", noise(300), noise(1_700));
    let long = full(&repo, &[CheckDefinition::new("build", command)]).await;
    let check = &long.checks[0];
    assert!(check.output_bytes > 150_000 && check.output.len() < 70_000, "{}", check.output_bytes);
    assert!(!check.output.contains("planted") && check.output.contains("bytes left out"));
    let messages: Vec<&str> =
        check.analysis.errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!((messages, check.analysis.truncated), (vec!["planted"], false));
    // More than can be analysed is told, and what is not seen is not gone.
    let endless = format!(
        "{says}; head -c 5000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; {says}2; exit 1"
    );
    let before =
        full(&repo, &[CheckDefinition::new("build", format!("{says}; {says}3; exit 1"))]).await;
    let options = VerifyOptions { before: Some(&before), ..VerifyOptions::default() };
    let cut = verified(&repo, &[CheckDefinition::new("build", endless)], options).await;
    assert!(cut.checks[0].analysis.truncated);
    let compared = cut.compared.unwrap();
    assert_eq!(compared.gone, []);
}

#[tokio::test]
async fn nothing_outside_the_project_is_read_for_an_error() {
    let repo = Repo::new();
    repertoire_text::fs::write_atomic(&repo.base.join("secret.c"), b"one\ntwo\n").unwrap();
    let says = format!(
        "echo '../secret.c:1:1: error: a'; echo '{}/secret.c:2:1: error: b'; exit 1",
        repo.base
    );
    let verification = full(&repo, &[CheckDefinition::new("build", says)]).await;
    let errors = &verification.checks[0].analysis.errors;
    assert!(errors.len() == 2 && errors.iter().all(|error| error.context.is_empty()), "{errors:?}");
}

/// A verification that has everything in it.
async fn eventful() -> VerificationReport {
    let repo = Repo::new();
    repo.file("src/lib.rs", "fn a() {}\nfn b() -> i32 {\n    \"x\"\n}\n");
    repo.commit("second");
    let output = folder().join("rust/rustc-types.txt");
    let hostile = "echo '</pre><script>alert(1)</script> & \"x\"'; echo 'a.c:1:2: error: <img src=x onerror=alert(2)>'; exit 1";
    let checks = [
        CheckDefinition::new("fmt", "true"),
        CheckDefinition::new("build", format!("cat {output}; exit 101")),
        CheckDefinition::new("<b>odd</b>", hostile),
        after("test", "true", &["build"]),
        CheckDefinition::new("audit", "no-such-program-at-all"),
        CheckDefinition {
            critical: false,
            ..CheckDefinition::new("spelling", "echo 'teh'; exit 1")
        },
    ];
    full(&repo, &checks).await
}

fn folder() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../checks/tests/it/analyse")
}

#[tokio::test]
async fn the_text_has_a_line_a_check_and_ends_with_the_verdict() {
    let verification = eventful().await;
    let report = render_text(&verification, &Styles::plain());
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines[0].starts_with("PASS fmt") && lines[1].starts_with("FAIL build"), "{report}");
    assert!(report.contains("SKIP test") && report.contains("`build` did not pass"), "{report}");
    assert!(report.contains("???? audit") && report.contains("a command is not there"), "{report}");
    assert!(report.contains("src/lib.rs:16:12  E0609  no field `retries`"), "{report}");
    assert_eq!(lines.last(), Some(&"failed"));
}

#[tokio::test]
async fn the_page_is_well_formed_and_nothing_in_it_is_markup_of_a_tool() {
    let page = render_html(&eventful().await);
    let (_, xml) = page.split_once('\n').unwrap();
    let mut reader = quick_xml::Reader::from_str(xml);
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(start) => {
                let name = start.name();
                let name: &str = name.as_ref();
                assert!(!["script", "img", "b"].contains(&name), "{name}");
            }
            _ => {}
        }
    }
    assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("&lt;b&gt;odd&lt;/b&gt;"));
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");
}

#[tokio::test]
async fn a_verification_is_written_and_read_back_as_it_was() {
    let verification = eventful().await;
    let json = serde_json::to_string(&verification).unwrap();
    assert_eq!(serde_json::from_str::<VerificationReport>(&json).unwrap(), verification);
    assert_eq!(outcomes(&verification)[4], CheckOutcome::CouldNotRun);
}
