//! Supervision of real children: each of them misbehaves in its own way.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use repertoire_sandbox::process::{
    OutputFlow, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec, ProcessStopReason,
    TerminationSettings, run,
};
use tokio_util::sync::CancellationToken;

const GRACE: Duration = Duration::from_millis(300);

fn shell(script: &str) -> ProcessSpec {
    ProcessSpec {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        dir: Utf8PathBuf::from("/"),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        stdin: ProcessInput::Closed,
        limits: ProcessLimits {
            idle: None,
            absolute: Duration::from_secs(30),
            grace: GRACE,
            kept_bytes_max: 64 * 1024,
        },
        termination: TerminationSettings::default(),
    }
}

async fn ended(spawn: &ProcessSpec) -> ProcessResult {
    run(spawn, &CancellationToken::new(), &mut |_| OutputFlow::Continue).await.expect("starts")
}

/// How many processes have this argument; a killed one takes a moment to vanish.
fn alive(mark: &str) -> usize {
    let count = || {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes.filter(|entry| has_argument(&entry.path().join("cmdline"), mark)).count()
    };
    let deadline = Instant::now() + Duration::from_secs(2);
    while count() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    count()
}

fn has_argument(cmdline: &std::path::Path, mark: &str) -> bool {
    use std::io::Read;
    let mut text = Vec::new();
    let read = std::fs::File::open(cmdline).and_then(|mut file| file.read_to_end(&mut text));
    read.is_ok() && text.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
}

fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

#[tokio::test]
async fn output_errors_and_exit_code_are_told() {
    let mut lines = Vec::new();
    let spawn = shell("echo one; echo two; echo wrong >&2; printf three; exit 7");
    let ended = run(&spawn, &CancellationToken::new(), &mut |line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        OutputFlow::Continue
    })
    .await
    .expect("starts");
    assert_eq!(lines, ["one", "two", "three"]);
    assert_eq!((ended.code, ended.signal, ended.stopped), (Some(7), None, None));
    assert_eq!(ended.stdout.bytes, b"one\ntwo\nthree");
    assert_eq!(ended.stderr.bytes, b"wrong\n");
}

#[tokio::test]
async fn the_environment_is_the_given_one_and_no_other() {
    let mut spawn = shell("/usr/bin/env");
    spawn.environment = vec![("ONLY".to_owned(), "this".to_owned())];
    let text = String::from_utf8(ended(&spawn).await.stdout.bytes).expect("UTF-8");
    let own = ["ONLY=", "PWD=", "SHLVL=", "_=", "OLDPWD="];
    assert!(text.contains("ONLY=this\n"), "{text}");
    assert!(text.lines().all(|line| own.iter().any(|name| line.starts_with(name))), "{text}");
}

#[tokio::test]
async fn nothing_is_there_to_read() {
    let ended = ended(&shell("cat; echo end")).await;
    assert_eq!(ended.stdout.bytes, b"end\n");
}

#[tokio::test]
async fn a_text_larger_than_the_pipe_is_read_whole() {
    let mut spawn = shell("cat");
    spawn.stdin = ProcessInput::Text("0123456789".repeat(100_000));
    spawn.limits.kept_bytes_max = 2_000_000;
    let ended = ended(&spawn).await;
    assert_eq!(ended.stdout.total, 1_000_000);
    assert!(ended.stdout.bytes.ends_with(b"0123456789"));
}

#[tokio::test]
async fn a_child_that_never_reads_its_text_is_not_waited_for() {
    let mut spawn = shell("echo done");
    spawn.stdin = ProcessInput::Text("x".repeat(1_000_000));
    let ended = ended(&spawn).await;
    assert_eq!((ended.code, ended.stopped), (Some(0), None));
    assert_eq!(ended.stdout.bytes, b"done\n");
    assert!(ended.duration < Duration::from_secs(5), "{:?}", ended.duration);
}

#[tokio::test]
async fn silence_ends_a_process() {
    let mark = mark("silent");
    let mut spawn = shell(&format!("echo start; exec sh -c 'sleep 300; :' {mark}"));
    spawn.limits.idle = Some(Duration::from_millis(300));
    let ended = ended(&spawn).await;
    assert_eq!((ended.code, ended.stopped), (None, Some(ProcessStopReason::Idle)));
    assert_eq!(ended.signal, Some(15));
    assert_eq!(ended.stdout.bytes, b"start\n");
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_process_that_speaks_on_either_stream_is_not_silent() {
    let mut spawn = shell("for i in 1 2 3 4; do sleep 0.2; echo $i >&2; sleep 0.2; echo $i; done");
    spawn.limits.idle = Some(Duration::from_millis(1_000));
    assert_eq!(ended(&spawn).await.stopped, None);
}

#[tokio::test]
async fn a_process_that_ignores_the_request_is_killed_with_its_children() {
    let mark = mark("stubborn");
    let script = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' {mark} & while :; do sleep 0.05; done"
    );
    let mut spawn = shell(&script);
    spawn.limits.absolute = Duration::from_millis(300);
    let ended = ended(&spawn).await;
    assert_eq!((ended.signal, ended.stopped), (Some(9), Some(ProcessStopReason::Absolute)));
    assert!(ended.duration < Duration::from_secs(3), "{:?}", ended.duration);
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_process_may_tidy_up_when_asked_to_end() {
    let mut spawn = shell("trap 'echo tidy; exit 3' TERM; while :; do sleep 0.02; done");
    spawn.limits.absolute = Duration::from_millis(300);
    spawn.limits.grace = Duration::from_secs(5);
    let ended = ended(&spawn).await;
    assert_eq!((ended.code, ended.stopped), (Some(3), Some(ProcessStopReason::Absolute)));
    assert_eq!(ended.stdout.bytes, b"tidy\n");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_costs_no_more_than_the_grace_time() {
    let mark = mark("holder");
    let ended = ended(&shell(&format!("sh -c 'sleep 300; :' {mark} & echo bye; exit 4"))).await;
    assert_eq!((ended.code, ended.stopped), (Some(4), None));
    assert_eq!(ended.stdout.bytes, b"bye\n");
    assert!(ended.duration >= GRACE && ended.duration < GRACE * 8, "{:?}", ended.duration);
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_grandchild_in_the_background_does_not_survive_either() {
    let mark = mark("quiet");
    let script = format!("sh -c 'sleep 300; :' {mark} >/dev/null 2>&1 & exit 0");
    assert_eq!(ended(&shell(&script)).await.code, Some(0));
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn one_that_left_the_group_delays_nobody() {
    let spawn = shell("setsid sh -c 'sleep 2; :' & echo bye");
    let ended = ended(&spawn).await;
    assert_eq!((ended.code, ended.stopped), (Some(0), None));
    assert!(ended.duration < Duration::from_millis(1_900), "{:?}", ended.duration);
}

#[tokio::test]
async fn a_hundred_megabytes_are_counted_and_not_kept() {
    let before = resident_kib();
    let spawn =
        shell("head -c 50000000 /dev/zero; yes | head -c 50000000; yes | head -c 9000000 >&2");
    let mut longest = 0;
    let ended = run(&spawn, &CancellationToken::new(), &mut |line| {
        longest = longest.max(line.len());
        OutputFlow::Continue
    })
    .await
    .expect("starts");
    assert_eq!((ended.stdout.total, ended.stderr.total), (100_000_000, 9_000_000));
    assert_eq!(ended.stdout.bytes.len(), 64 * 1024);
    assert!(longest <= 8 * 1024 * 1024, "{longest}");
    assert!(ended.duration < Duration::from_secs(20), "{:?}", ended.duration);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
}

fn resident_kib() -> u64 {
    use std::io::Read;
    let mut text = String::new();
    let mut file = std::fs::File::open("/proc/self/status").expect("/proc");
    file.read_to_string(&mut text).expect("readable");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::test]
async fn endless_output_ends_on_time() {
    let mut spawn = shell("yes");
    spawn.limits.absolute = Duration::from_millis(500);
    let ended = ended(&spawn).await;
    assert_eq!(ended.stopped, Some(ProcessStopReason::Absolute));
    assert!(ended.duration < Duration::from_secs(2), "{:?}", ended.duration);
}

#[tokio::test]
async fn a_cancelled_process_ends() {
    let mark = mark("cancelled");
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let spawn = shell(&format!("echo up; exec sh -c 'sleep 300; :' {mark}"));
    let ended = run(&spawn, &cancel, &mut |_| {
        later.cancel();
        OutputFlow::Continue
    })
    .await
    .expect("starts");
    assert_eq!((ended.signal, ended.stopped), (Some(15), Some(ProcessStopReason::Cancelled)));
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_dropped_run_kills_the_group() {
    let mark = mark("dropped");
    let spawn = shell(&format!("trap '' TERM; sh -c 'sleep 300; :' {mark} & sleep 300; wait"));
    let cancel = CancellationToken::new();
    let mut on_line = |_: &[u8]| OutputFlow::Continue;
    let running = run(&spawn, &cancel, &mut on_line);
    assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn one_that_stays_after_its_result_is_ended() {
    let spawn = shell("echo result; sleep 300");
    let ended = run(&spawn, &CancellationToken::new(), &mut |_| OutputFlow::Finished)
        .await
        .expect("starts");
    assert_eq!((ended.signal, ended.stopped), (Some(15), Some(ProcessStopReason::AfterResult)));
    assert!(ended.duration >= GRACE, "{:?}", ended.duration);
}

#[tokio::test]
async fn one_that_ends_after_its_result_keeps_its_exit_code() {
    let spawn = shell("echo result; sleep 0.05; exit 5");
    let ended = run(&spawn, &CancellationToken::new(), &mut |_| OutputFlow::Finished)
        .await
        .expect("starts");
    assert_eq!((ended.code, ended.stopped), (Some(5), None));
}

#[tokio::test]
async fn a_missing_program_and_a_missing_folder_are_told_apart() {
    let mut spawn = shell("true");
    spawn.program = "no-such-program".to_owned();
    let cancel = CancellationToken::new();
    let error =
        run(&spawn, &cancel, &mut |_| OutputFlow::Continue).await.expect_err("is not there");
    assert_eq!(
        error.to_string(),
        "`no-such-program` cannot be started: it is in none of the folders of PATH"
    );
    spawn.dir = Utf8PathBuf::from("/no/such/folder");
    let error =
        run(&spawn, &cancel, &mut |_| OutputFlow::Continue).await.expect_err("is not there");
    assert!(error.to_string().contains("there is no folder `/no/such/folder`"), "{error}");
}
