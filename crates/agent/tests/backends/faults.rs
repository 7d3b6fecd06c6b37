//! Programs that pretend to be agent CLIs and go wrong: each ends in bounded time, says how, and leaves nobody behind.

use super::*;
use repertoire_agent::event::AgentRunStatus;

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine","num_turns":1,"session_id":"s1"}"#;

struct Fault {
    finished: BackendResult,
    events: Vec<EventKind>,
    took: Duration,
    mark: String,
}

/// Runs a script as if it were Claude Code. `$MARK` in it is an argument that its processes are found by.
async fn fault(script: &str, change: impl FnOnce(&mut BackendJob)) -> Fault {
    let folder = Folder::new();
    let mark = format!("{}.5", 100_000 + rand_from(&folder.path));
    let program = folder.script("claude", &script.replace("$MARK", &mark));
    let mut job = job(&folder.path);
    change(&mut job);
    let started = Instant::now();
    let claude = chosen(BackendKind::Claude, &program, &[]);
    let (finished, events) = run(claude.as_ref(), &job).await;
    Fault { finished, events, took: started.elapsed(), mark }
}

/// A number that is another one for every folder.
fn rand_from(path: &Utf8Path) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish() % 900_000
}

fn short(job: &mut BackendJob) {
    job.idle = Duration::from_secs(1);
}

impl Fault {
    #[track_caller]
    fn check(&self, status: AgentRunStatus, error: &str, within_s: u64) {
        assert_eq!(self.finished.status, status, "{:?}", self.finished);
        let said = self.finished.error.clone().unwrap_or_default();
        assert!(said.contains(error), "{said}");
        assert!(self.took < Duration::from_secs(within_s), "it took {:?}", self.took);
        assert!(vanishes(&self.mark), "a process is left");
    }
}

#[tokio::test]
async fn one_that_never_answers_is_ended() {
    let fault = fault("sleep $MARK", short).await;
    fault.check(AgentRunStatus::Failed, "claude: it said nothing for too long", 8);
}

#[tokio::test]
async fn one_that_ignores_being_asked_is_killed() {
    let script = "trap '' TERM INT HUP; while :; do sleep $MARK; done";
    let fault = fault(script, short).await;
    fault.check(AgentRunStatus::Failed, "said nothing", 20);
}

#[tokio::test]
async fn one_that_floods_its_output_is_ended_at_the_absolute_limit() {
    let fault = fault("exec yes flood-$MARK", |job| job.absolute = Duration::from_secs(2)).await;
    fault.check(AgentRunStatus::Limited, "took too long", 20);
    let warned = |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.contains("not understood"));
    assert!(fault.events.iter().any(warned));
}

#[tokio::test]
async fn one_that_ends_well_without_a_result_has_failed() {
    let fault = fault("echo oops >&2; exit 0", |_| {}).await;
    fault.check(
        AgentRunStatus::Failed,
        "exited with code 0 without a result; it complained: oops",
        8,
    );
}

#[tokio::test]
async fn one_that_hangs_after_its_result_is_ended_and_the_result_stands() {
    let fault = fault(&format!("echo '{RESULT}'; sleep $MARK"), |_| {}).await;
    fault.check(AgentRunStatus::Done, "", 20);
    assert_eq!(
        (fault.finished.text.as_str(), fault.finished.session.as_deref()),
        ("fine", Some("s1"))
    );
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_open_is_ended_and_the_result_stands() {
    let fault = fault(&format!("sleep $MARK & echo '{RESULT}'; exit 0"), |_| {}).await;
    fault.check(AgentRunStatus::Done, "", 20);
}

#[tokio::test]
async fn one_that_reports_success_and_exits_with_an_error_has_failed() {
    let fault = fault(&format!("echo '{RESULT}'; echo late >&2; exit 1"), |_| {}).await;
    fault.check(
        AgentRunStatus::Failed,
        "reported success, but it exited with code 1; it complained: late",
        8,
    );
}

#[tokio::test]
async fn one_that_reports_success_only_when_it_is_asked_to_end_has_failed() {
    // Claude Code does this: asked to end in the middle of a call, it gives the call up and answers.
    let script =
        format!("late() {{ echo '{RESULT}'; exit 0; }}; trap late INT TERM; sleep $MARK & wait");
    let fault = fault(&script, short).await;
    fault.check(AgentRunStatus::Failed, "it said nothing for too long", 8);
}

#[tokio::test]
async fn one_that_is_stopped_is_ended_with_its_children() {
    let fault = fault("sleep $MARK & sleep $MARK", |job| {
        let cancel = job.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            cancel.cancel();
        });
    })
    .await;
    fault.check(AgentRunStatus::Cancelled, "it was stopped", 8);
}

#[tokio::test]
async fn one_that_is_not_there_says_so() {
    let folder = Folder::new();
    let claude = chosen(BackendKind::Claude, &format!("{}/nobody", folder.path), &[]);
    let (finished, _) = run(claude.as_ref(), &job(&folder.path)).await;
    assert_eq!(finished.status, AgentRunStatus::Failed);
    assert!(finished.error.expect("an error").contains("cannot be started"));
}

#[tokio::test]
async fn a_prompt_of_any_length_arrives_and_the_environment_is_the_jobs_own() {
    let script = r#"n=$(wc -c); printf '{"type":"result","subtype":"success","is_error":false,"result":"%s %s %s","num_turns":1}\n' $n "$ONLY" "${CARGO_MANIFEST_DIR:-none}""#;
    let fault = fault(script, |job| {
        job.prompt = "x".repeat(3_000_000);
        job.environment.push(("ONLY".to_owned(), "mine".to_owned()));
    })
    .await;
    fault.check(AgentRunStatus::Done, "", 8);
    assert_eq!(fault.finished.text, "3000000 mine none");
}
