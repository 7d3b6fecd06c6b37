//! Recovery, with real git, real files and real commands: what helps is kept, and all else is taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use repertoire_checks::declared::{
    CheckDefinition, CheckEvent, CheckRunResult, CheckRunVerdict, run_checks,
};
use repertoire_checks::error::{ErrorCategory, ParsedError, ReportingTool};
use repertoire_checks::memory::{FailureMemory, FixState, TriedFixes};
use repertoire_checks::recover::{
    FailureClass, RecoverError, RecoverEvent, RecoverRequest, RecoverResult, RecoverRules,
    RecoverState, RecoverStrategy, learn_fix, recover_failures,
};
use repertoire_checks::signature::compute_signature;
use repertoire_git::repo::{GitObjectId, TreeId};
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{
    ClaimRules, FailureFix, FixOutcome, FixRemedy, Journal, KnownFailure, KnownFix, MemoryLesson,
    NewRun, Payload, QueueWorker, RunId, Target,
};
use repertoire_sandbox::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

use crate::repo::{Repo, read, write};

const SCOPE: &str = "github.com/somebody/something";
const NOW: u64 = 1_800_000_000_000;

/// A repository with a change, programs of its own, and a journal.
struct Bench {
    repo: Repo,
    base: GitObjectId,
    journal: Journal,
    checks: Vec<CheckDefinition>,
    rules: RecoverRules,
    cancel: CancellationToken,
}

impl Bench {
    /// `c.py` and `d.py` are part of the change, `a.txt` and `tests/t.py` are not.
    async fn new() -> Bench {
        let repo = Repo::new();
        repo.file("tests/t.py", "assert 1\n");
        repo.file(".gitignore", "ignored/\nnode_modules/\n.env\n");
        let base = repo.commit("tests");
        repo.file("c.py", "x = BAD\n");
        repo.file("d.py", "y = 1\n");
        repo.commit("the change");
        // Left by a check, and known to nobody.
        repo.file("left.txt", "left\n");
        let ticks = AtomicU64::new(NOW);
        let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
        let file = Target::File(repo.base.join("journal.db"));
        let journal = Journal::open(&file, clock).await.unwrap();
        let rules = RecoverRules { network: true, ..RecoverRules::default() };
        let cancel = CancellationToken::new();
        let mut bench = Bench { repo, base, journal, checks: Vec::new(), rules, cancel };
        bench.checks = vec![complains("lint", "c.py", "BAD", "format: ruff would change it")];
        bench
    }

    /// A program that the workplace finds.
    fn program(&self, name: &str, script: &str) {
        let path = self.repo.base.join("bin").join(name);
        write(&path, &format!("#!/bin/sh\nset -e\n{script}\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }

    fn workplace(&self) -> RunWorkplace {
        let mut place = crate::checks::workplace(&self.repo.dir, &self.repo.base);
        for (name, value) in &mut place.environment {
            if name == "PATH" {
                *value = format!("{}:{value}", self.repo.base.join("bin"));
            }
        }
        place
    }

    async fn verdict(&self) -> CheckRunVerdict {
        let cancel = CancellationToken::new();
        run_checks(&self.checks, &self.workplace(), &cancel, &|_| {}, 1).await.unwrap()
    }

    async fn recover(&self) -> Result<RecoverResult, RecoverError> {
        self.recover_and(&|_| {}, TriedFixes::new()).await
    }

    async fn recover_and(
        &self,
        on_event: &(dyn Fn(RecoverEvent) + Sync),
        tried: TriedFixes,
    ) -> Result<RecoverResult, RecoverError> {
        let verdict = self.verdict().await;
        recover_failures(RecoverRequest {
            git: &self.repo.engine(),
            workplace: &self.workplace(),
            checks: &self.checks,
            verdict: &verdict,
            analyse: &analyse,
            memory: &FailureMemory::new(self.journal.clone(), SCOPE),
            rules: &self.rules,
            tried,
            base: &self.base,
            declared: &self.base,
            cancel: &self.cancel,
            on_event,
            clock: &|| NOW,
            jitter: 1.0,
        })
        .await
    }

    async fn tree(&self) -> (GitObjectId, TreeId, String) {
        let git = self.repo.engine();
        let status = self.repo.git(&["status", "--porcelain"]);
        (git.head_commit().await.unwrap(), git.tree_of_work().await.unwrap(), status)
    }

    /// What a run records.
    async fn record(&self, payloads: Vec<Payload>) {
        let new = NewRun {
            id: RunId::new(),
            kind: "plan".into(),
            name: "r".into(),
            workspace: "/r".into(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: serde_json::Value::Null,
        };
        self.journal.create(new).await.unwrap();
        let worker = QueueWorker {
            name: "w".into(),
            labels: Default::default(),
            kinds: ["plan".to_owned()].into(),
            lease: Duration::from_secs(60),
        };
        let claimed = self.journal.claim(&worker, &ClaimRules::default()).await.unwrap().unwrap();
        self.journal.append(&claimed.lease, payloads).await.unwrap();
        let done = Payload::RunCompleted { summary: "done".into(), head: None };
        self.journal.append(&claimed.lease, vec![done]).await.unwrap();
    }

    /// A fix that has worked before.
    async fn knows(&self, signature: &str, remedy: FixRemedy) {
        let seen = Payload::FailureSeen {
            scope: SCOPE.into(),
            signature: signature.into(),
            category: "build".into(),
            code: None,
            tool: "generic".into(),
            example: "known".into(),
        };
        let fix = FailureFix { remedy, preconditions: Vec::new(), origin: FixOrigin::Learnt };
        let (scope, signature) = (SCOPE.to_owned(), signature.to_owned());
        let (outcome, reason) = (FixOutcome::Worked, "it helped".to_owned());
        self.record(vec![seen, Payload::FixTried { scope, signature, fix, outcome, reason }]).await;
    }

    async fn fix(&self, signature: &str) -> KnownFix {
        self.journal.list_fixes(SCOPE, signature).await.unwrap().remove(0)
    }
}

/// A check that fails with these words while the text is in the file.
fn complains(name: &str, file: &str, text: &str, words: &str) -> CheckDefinition {
    let command = format!("if grep -q '{text}' '{file}'; then echo 'error: {words}'; exit 1; fi");
    CheckDefinition::new(name, command)
}

/// One error for each line that says so: its first word is the kind, and what comes after an `@` the file.
fn analyse(result: &CheckRunResult) -> Vec<ParsedError> {
    let lines = result.output.lines().filter_map(|line| line.strip_prefix("error: "));
    let error = |line: &str| {
        let (kind, message) = line.split_once(": ").unwrap_or(("build", line));
        let category = match kind {
            "format" => ErrorCategory::Format,
            "dependency" => ErrorCategory::Dependency,
            "network" => ErrorCategory::Network,
            "environment" => ErrorCategory::Environment,
            _ => ErrorCategory::Build,
        };
        let (message, file) = message.split_once(" @").unwrap_or((message, ""));
        let file = (!file.is_empty()).then(|| file.to_owned());
        ParsedError { file, ..ParsedError::new(ReportingTool::Generic, category, message) }
    };
    lines.map(error).collect()
}

fn name_of(category: ErrorCategory, message: &str) -> String {
    compute_signature(&ParsedError::new(ReportingTool::Generic, category, message)).to_string()
}

fn words(text: &str) -> FixRemedy {
    FixRemedy::Command(text.split(' ').map(str::to_owned).collect())
}

fn outcomes(recovered: &RecoverResult) -> Vec<(RecoverStrategy, FixOutcome)> {
    recovered.attempts.iter().map(|attempt| (attempt.strategy, attempt.outcome)).collect()
}

#[track_caller]
fn last_reason(recovered: &RecoverResult) -> &str {
    &recovered.attempts.last().unwrap().reason
}

#[tokio::test]
async fn a_linter_mends_the_files_of_the_change() {
    let bench = Bench::new().await;
    bench.program("ruff", "test \"$1 $2 $3 $4\" = 'format -- c.py d.py'; sed -i s/BAD/GOOD/ c.py");
    let recovered = bench.recover().await.unwrap();
    assert_eq!(recovered.state, RecoverState::Green, "{:?}", recovered.attempts);
    let attempt = &recovered.attempts[0];
    assert_eq!(
        (attempt.strategy, attempt.class),
        (RecoverStrategy::LinterFix, FailureClass::Mechanical)
    );
    assert_eq!(attempt.changed, ["c.py"]);
    assert_eq!(read(&bench.repo.dir.join("c.py")), "x = GOOD\n");
    assert_eq!(read(&bench.repo.dir.join("left.txt")), "left\n");
    // The backup has everything as it was, what git does not know included.
    let backup = attempt.backup.clone().unwrap();
    assert_eq!(bench.repo.git(&["show", &format!("{backup}:c.py")]), "x = BAD");
    assert_eq!(bench.repo.git(&["show", &format!("{backup}:left.txt")]), "left");
    let names: Vec<_> = recovered.payloads.iter().map(Payload::name).collect();
    assert_eq!(names, ["FAILURE_SEEN", "FIX_TRIED"]);
}

/// A linter that does this to the files is taken back.
async fn linter_is_taken_back(script: &str, why: &str) {
    let bench = Bench::new().await;
    bench.program("ruff", script);
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert!(matches!(recovered.state, RecoverState::Red { .. }), "{script}");
    assert_eq!(
        outcomes(&recovered),
        [(RecoverStrategy::LinterFix, FixOutcome::Failed)],
        "{script}"
    );
    assert!(last_reason(&recovered).contains(why), "{script}: {}", last_reason(&recovered));
    assert_eq!(bench.tree().await, before, "{script}");
    let Payload::FixTried { outcome, .. } = &recovered.payloads[1] else { panic!() };
    assert_eq!(*outcome, FixOutcome::Failed);
}

#[tokio::test]
async fn a_linter_that_does_not_help_or_does_too_much_is_taken_back() {
    for (script, why) in [
        ("sed -i 's/x/xx/' c.py", "still there"),
        ("true", "changed nothing"),
        ("sed -i s/BAD/GOOD/ c.py; echo two >> a.txt", "`a.txt`, which is not part of the change"),
        ("sed -i s/BAD/GOOD/ c.py; echo new > new.py", "`new.py`, which is not part"),
        ("seq 300 > c.py", "301 lines"),
        ("rm tests/t.py; sed -i s/BAD/GOOD/ c.py", "the test `tests/t.py` is gone"),
        ("rm d.py left.txt; sed -i s/BAD/GOOD/ c.py", "is gone"),
        ("printf 'x = GOOD  # noqa\\n' > c.py", "switches a check off"),
        ("rm c.py; ln -s /etc/passwd c.py; chmod +x d.py; mkdir -p n/m; echo > n/m/o", ""),
        ("echo oops >&2; exit 3", "exit code 3: oops"),
    ] {
        linter_is_taken_back(script, why).await;
    }
}

#[tokio::test]
async fn what_is_declared_is_installed_only_if_the_network_may_be_used() {
    let mut bench = Bench::new().await;
    bench.repo.file("package.json", "{\"dependencies\":{\"left-pad\":\"1\"}}\n");
    bench.repo.file("package-lock.json", "{}\n");
    let declared = bench.repo.commit("manifest");
    let command = "test -e node_modules/left-pad || { echo \"error: dependency: Cannot find module 'left-pad'\"; exit 1; }";
    bench.checks = vec![CheckDefinition::new("test", command)];
    bench.program("npm", "test \"$*\" = 'ci --ignore-scripts'; mkdir -p node_modules/left-pad");
    // What the change itself declares may be a trap.
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), []);
    bench.base = declared;
    bench.repo.file("package-lock.json", "{\"more\":1}\n");
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [], "the lock file is not as it was");
    bench.repo.file("package-lock.json", "{}\n");
    bench.rules.network = false;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), []);
    bench.rules.network = true;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(recovered.state, RecoverState::Green, "{:?}", recovered.attempts);
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::InstallDependency, FixOutcome::Worked)]);
    // One that writes to the manifest is taken back.
    std::fs::remove_dir_all(bench.repo.dir.join("node_modules")).unwrap();
    bench.program("npm", "echo '{}' > package.json; mkdir -p node_modules/left-pad");
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::InstallDependency, FixOutcome::Failed)]);
    assert_eq!(bench.tree().await, before);
}

/// The planted failure: `c.py` is broken, and only an agent knows the remedy at first.
async fn planted() -> (Bench, String) {
    let mut bench = Bench::new().await;
    bench.checks = vec![
        complains("build", "c.py", "BAD", "build: BAD is not defined"),
        CheckDefinition::new("other", "true"),
    ];
    (bench, name_of(ErrorCategory::Build, "BAD is not defined"))
}

#[tokio::test]
async fn a_failure_is_mended_by_what_helped_the_first_time_and_a_fix_that_fails_is_trusted_less() {
    let (mut bench, name) = planted().await;
    // The first time nothing is known: an agent mends it, and that is learnt.
    let first = bench.recover().await.unwrap();
    assert!(matches!(first.state, RecoverState::Red { .. }) && first.attempts.is_empty());
    bench.record(first.payloads).await;
    let before = analyse(&bench.verdict().await.results[0]);
    let before = before.iter().map(|error| compute_signature(error).to_string()).collect();
    bench.repo.file("c.py", "x = GOOD\n");
    assert!(bench.verdict().await.green);
    let diff = bench.repo.git(&["diff", "--", "c.py"]);
    let learnt = learn_fix(&before, &Default::default(), &diff).unwrap();
    assert_eq!(learnt.signature, name);
    let (signature, fix) = (learnt.signature, learnt.fix);
    let (scope, reason) = (SCOPE.to_owned(), "the checks are green".to_owned());
    let tried = Payload::FixTried { scope, signature, fix, outcome: FixOutcome::Worked, reason };
    bench.record(vec![tried]).await;
    // The second time it is mended without an agent.
    bench.repo.file("c.py", "x = BAD\n");
    let second = bench.recover().await.unwrap();
    assert_eq!(second.state, RecoverState::Green, "{:?}", second.attempts);
    assert_eq!(outcomes(&second), [(RecoverStrategy::LearnedFix, FixOutcome::Worked)]);
    assert_eq!(read(&bench.repo.dir.join("c.py")), "x = GOOD\n");
    bench.record(second.payloads).await;
    let known = bench.fix(&name).await;
    assert_eq!((known.worked, (known.confidence * 100.0).round() as u32), (2, 76));
    assert_eq!(bench.journal.find_failure(SCOPE, &name).await.unwrap().unwrap().seen, 2);
    // What helped then breaks something else now: it is taken back, and loses confidence each time.
    bench.checks[1] = complains("other", "c.py", "GOOD", "build: GOOD is not wanted any more");
    bench.repo.file("c.py", "x = BAD\n");
    let mut confidences = Vec::new();
    for _ in 0..3 {
        let before = bench.tree().await;
        let again = bench.recover().await.unwrap();
        assert!(matches!(again.state, RecoverState::Red { .. }));
        assert_eq!(bench.tree().await, before);
        confidences.push((again.attempts.len(), again.advice.offers.len()));
        bench.record(again.payloads).await;
    }
    let known = bench.fix(&name).await;
    assert_eq!((known.worked, known.failed, known.tried), (2, 3, 5));
    assert_eq!((known.confidence * 100.0).round() as u32, 26);
    // After the first of them it is only suggested, and still tried once in each run.
    assert_eq!(confidences, [(1, 0), (1, 0), (1, 0)]);
    let memory = FailureMemory::new(bench.journal.clone(), SCOPE);
    assert_eq!(memory.state_of(&known, NOW).0, FixState::Suggested);
    assert_eq!(bench.journal.replay_memory(SCOPE).await.unwrap(), []);
}

#[tokio::test]
async fn a_learned_command_that_does_more_than_it_should_is_taken_back() {
    for (script, why) in [
        (
            "sed -i s/BAD/GOOD/ c.py; git -c user.name=x -c user.email=x commit -qam x",
            "moved what is checked out",
        ),
        ("sed -i s/BAD/GOOD/ c.py; echo 1 > tests/t.py", "asks for less"),
        ("sed -i s/BAD/GOOD/ c.py; mkdir -p .github; echo x > .github/ci.yml", ".github"),
        ("sed -i s/BAD/GOOD/ c.py; echo x > AGENTS.md", "AGENTS.md"),
        ("sed -i s/BAD/GOOD/ c.py; echo x > Makefile", "says what is checked"),
        ("exit 7", "exit code 7"),
        ("sed -i s/BAD/WORSE/ c.py", "something new came"),
    ] {
        let (mut bench, name) = planted().await;
        let worse = complains("worse", "c.py", "WORSE", "build: WORSE is worse");
        bench.checks.push(worse);
        bench.program("gofmt", script);
        bench.knows(&name, words("gofmt -w now")).await;
        let before = bench.tree().await;
        let recovered = bench.recover().await.unwrap();
        assert_eq!(
            outcomes(&recovered),
            [(RecoverStrategy::LearnedFix, FixOutcome::Failed)],
            "{script}"
        );
        assert!(last_reason(&recovered).contains(why), "{script}: {}", last_reason(&recovered));
        assert_eq!(bench.tree().await, before, "{script}");
        bench.record(recovered.payloads).await;
        assert_eq!((bench.fix(&name).await.confidence * 100.0).round() as u32, 46, "{script}");
    }
}

#[tokio::test]
async fn a_learned_patch_that_does_not_fit_is_not_applied_and_what_may_not_be_automatic_is_not_tried()
 {
    let (bench, name) = planted().await;
    let patch = |path: &str, old: &str| {
        let text = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+x = GOOD\n"
        );
        FixRemedy::Patch(text)
    };
    bench.knows(&name, patch("tests/t.py", "assert 1")).await;
    bench.knows(&name, words("./bin/mend")).await;
    bench.knows(&name, FixRemedy::Advice("define it".into())).await;
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), []);
    assert_eq!(recovered.advice.offers.len(), 3);
    // A patch for another file with the same failure.
    bench.knows(&name, patch("c.py", "x = ELSE")).await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), []);
    assert_eq!(recovered.advice.offers.len(), 4, "an agent may still learn from it");
    assert_eq!(bench.tree().await, before);
    bench.record(recovered.payloads).await;
    let fixes = bench.journal.list_fixes(SCOPE, &name).await.unwrap();
    assert!(fixes.iter().all(|fix| (fix.confidence * 100.0).round() as u32 == 65), "{fixes:?}");
}

/// What somebody else has verified, and nobody here.
async fn imported(bench: &Bench, name: &str, remedy: FixRemedy) {
    let fix = FailureFix { remedy, preconditions: Vec::new(), origin: FixOrigin::Learnt };
    let failure = KnownFailure {
        scope: SCOPE.into(),
        signature: name.into(),
        category: "build".into(),
        code: None,
        tool: "generic".into(),
        example: "known".into(),
        seen: 1,
        first_ms: 1,
        last_ms: 1,
    };
    let lesson = MemoryLesson { failure, fixes: vec![KnownFix::new(fix, 1)] };
    bench.journal.store_lessons(SCOPE, vec![lesson]).await.unwrap();
}

#[tokio::test]
async fn what_is_only_suggested_is_tried_once_in_a_run_and_trusted_when_it_has_worked() {
    let (bench, name) = planted().await;
    let memory = FailureMemory::new(bench.journal.clone(), SCOPE);
    bench.program("gofmt", "test -e ignored/ready; sed -i s/BAD/GOOD/ c.py");
    imported(&bench, &name, words("gofmt -w now")).await;
    assert_eq!(memory.state_of(&bench.fix(&name).await, NOW).0, FixState::Suggested);
    let first = bench.recover().await.unwrap();
    assert_eq!(outcomes(&first), [(RecoverStrategy::LearnedFix, FixOutcome::Failed)]);
    let again = bench.recover_and(&|_| {}, first.tried).await.unwrap();
    assert_eq!(outcomes(&again), [], "once in a run");
    bench.repo.file("ignored/ready", "");
    let second = bench.recover().await.unwrap();
    assert_eq!(outcomes(&second), [(RecoverStrategy::LearnedFix, FixOutcome::Worked)]);
    bench.record(second.payloads).await;
    assert_eq!(memory.state_of(&bench.fix(&name).await, NOW).0, FixState::Automatic);
}

#[tokio::test]
async fn a_fix_after_which_its_own_check_hangs_has_failed() {
    let (mut bench, name) = planted().await;
    let hang = "if grep -q HANG c.py; then sleep 60; fi; grep -q BAD c.py || exit 0; \
        echo 'error: build: BAD is not defined'; exit 1";
    let timeout = Duration::from_millis(500);
    bench.checks[0] = CheckDefinition { timeout, ..CheckDefinition::new("build", hang) };
    bench.program("gofmt", "sed -i s/BAD/HANG/ c.py");
    bench.knows(&name, words("gofmt -w now")).await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Failed)]);
    assert!(last_reason(&recovered).contains("come to an end"), "{}", last_reason(&recovered));
}

#[tokio::test]
async fn a_fix_that_breaks_another_file_in_the_same_words_has_failed() {
    let mut bench = Bench::new().await;
    // Both files are broken in the same words, and so is a third one once the first is mended.
    let words_of = "for f in c.py d.py e.py; do \
        if grep -q BAD $f 2>/dev/null; then echo \"error: build: it is wrong @$f\"; red=1; fi; done; exit ${red:-0}";
    bench.checks = vec![CheckDefinition::new("build", words_of)];
    bench.repo.file("d.py", "y = BAD\n");
    let name = name_of(ErrorCategory::Build, "it is wrong");
    bench.knows(&name, words("gofmt -w now")).await;
    bench.program("gofmt", "sed -i s/BAD/GOOD/ c.py; echo BAD > e.py");
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Failed)]);
    assert!(last_reason(&recovered).contains("something new came"), "{}", last_reason(&recovered));
    assert_eq!(bench.tree().await, before);
    // What mends one of two and breaks nothing is a step forward.
    bench.program("gofmt", "sed -i s/BAD/GOOD/ c.py");
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered)[0], (RecoverStrategy::LearnedFix, FixOutcome::Worked));
    assert_eq!(read(&bench.repo.dir.join("c.py")), "x = GOOD\n");
}

#[tokio::test]
async fn a_rollback_leaves_what_was_ignored_before_and_finds_what_was_hidden() {
    for script in [
        // Nothing is ignored any more: what was there before is nobody's to remove.
        "echo > .gitignore",
        "rm .gitignore",
        // What the attempt made is hidden from git.
        "echo new.txt >> .gitignore; echo new > new.txt",
        "mkdir -p sub; echo new.txt > sub/.gitignore; echo new > sub/new.txt",
    ] {
        let (bench, name) = planted().await;
        bench.repo.file(".env", "SECRET=1\n");
        bench.repo.file("node_modules/left-pad/index.js", "pad\n");
        bench.program("gofmt", script);
        bench.knows(&name, words("gofmt -w now")).await;
        let before = bench.tree().await;
        let recovered = bench.recover().await.unwrap();
        assert_eq!(
            outcomes(&recovered),
            [(RecoverStrategy::LearnedFix, FixOutcome::Failed)],
            "{script}"
        );
        assert_eq!(bench.tree().await, before, "{script}");
        assert_eq!(read(&bench.repo.dir.join(".env")), "SECRET=1\n", "{script}");
        assert_eq!(read(&bench.repo.dir.join("node_modules/left-pad/index.js")), "pad\n");
        assert!(!bench.repo.dir.join("new.txt").exists(), "{script}");
        assert!(!bench.repo.dir.join("sub/new.txt").exists(), "{script}");
    }
}

#[tokio::test]
async fn a_linter_is_one_fix_whatever_files_it_is_given_and_no_learned_one() {
    let bench = Bench::new().await;
    let name = name_of(ErrorCategory::Format, "ruff would change it");
    bench.program("ruff", "sed -i s/BAD/GOOD/ c.py");
    let first = bench.recover().await.unwrap();
    assert_eq!(first.state, RecoverState::Green);
    bench.record(first.payloads).await;
    // Another change, and this time the linter does not help.
    bench.repo.file("c.py", "x = BAD\n");
    bench.repo.file("other.py", "z = 1\n");
    bench.program("ruff", "true");
    let second = bench.recover().await.unwrap();
    assert_eq!(outcomes(&second), [(RecoverStrategy::LinterFix, FixOutcome::Failed)]);
    assert_eq!(second.advice.offers, []);
    bench.record(second.payloads).await;
    let fixes = bench.journal.list_fixes(SCOPE, &name).await.unwrap();
    assert_eq!((fixes.len(), fixes[0].fix.remedy.to_text().as_str()), (1, "ruff format --"));
}

#[tokio::test]
async fn checks_that_could_not_be_run_say_nothing_of_a_fix() {
    let (bench, name) = planted().await;
    bench.program("gofmt", "sed -i s/BAD/GOOD/ c.py");
    bench.knows(&name, words("gofmt -w now")).await;
    let before = bench.tree().await;
    // Somebody stops it while the checks run again.
    let stop = |event| {
        if matches!(event, RecoverEvent::Check(CheckEvent::Started { .. })) {
            bench.cancel.cancel();
        }
    };
    let recovered = bench.recover_and(&stop, TriedFixes::new()).await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Unknown)]);
    assert_eq!(bench.tree().await, before);
    bench.record(recovered.payloads).await;
    let known = bench.fix(&name).await;
    assert_eq!((known.tried, (known.confidence * 100.0).round() as u32), (1, 65));
}

#[tokio::test]
async fn nothing_is_recorded_before_the_checks_have_spoken() {
    let (bench, name) = planted().await;
    bench.program("gofmt", "sed -i s/BAD/GOOD/ c.py");
    bench.knows(&name, words("gofmt -w now")).await;
    let told = std::sync::Mutex::new(Vec::new());
    let hear = |event| {
        let word = match event {
            RecoverEvent::Trying { .. } => "trying",
            RecoverEvent::Check(CheckEvent::Ended(_)) => "checked",
            RecoverEvent::Tried(_) => "tried",
            _ => return,
        };
        told.lock().unwrap().push(word);
    };
    let recovered = bench.recover_and(&hear, TriedFixes::new()).await.unwrap();
    // The red check first, then all of them.
    assert_eq!(*told.lock().unwrap(), ["trying", "checked", "checked", "checked", "tried"]);
    assert_eq!(bench.fix(&name).await.tried, 1, "the memory itself was not touched");
    let Payload::FixTried { outcome, .. } = &recovered.payloads[1] else { panic!() };
    assert_eq!(*outcome, FixOutcome::Worked);
}

#[tokio::test]
async fn what_passes_by_itself_is_waited_for_or_put_off() {
    let mut bench = Bench::new().await;
    let command = "n=$(cat ignored/n 2>/dev/null || echo 0); mkdir -p ignored; echo $((n+1)) > ignored/n; \
        test $n -ge 2 || { echo 'error: network: HTTP 429, retry after 1 ms'; exit 1; }";
    bench.checks = vec![CheckDefinition::new("test", command)];
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(recovered.state, RecoverState::Green, "{:?}", recovered.attempts);
    let waits = [
        (RecoverStrategy::WaitForLimit, FixOutcome::Failed),
        (RecoverStrategy::WaitForLimit, FixOutcome::Worked),
    ];
    assert_eq!(outcomes(&recovered), waits);
    assert_eq!((recovered.payloads.len(), bench.tree().await), (0, before));
    let command = "echo 'error: network: HTTP 429, retry after 2 hours'; exit 1";
    bench.checks = vec![CheckDefinition::new("test", command)];
    let recovered = bench.recover().await.unwrap();
    let RecoverState::Deferred { until_ms, .. } = recovered.state else { panic!("{recovered:?}") };
    assert_eq!((until_ms, recovered.attempts.len()), (NOW + 7_200_000, 0));
    // Nobody waits for years because some text says so.
    let command = "echo 'error: network: HTTP 429, retry after 9999999 hours'; exit 1";
    bench.checks = vec![CheckDefinition::new("test", command)];
    let recovered = bench.recover().await.unwrap();
    let RecoverState::Permanent { reason } = recovered.state else { panic!("{recovered:?}") };
    assert!(reason.contains("9999999 h"), "{reason}");
}

#[tokio::test]
async fn what_is_refused_is_not_tried_again() {
    let mut bench = Bench::new().await;
    let command = "echo 'error: environment: Permission denied (os error 13)'; exit 1";
    bench.checks.push(CheckDefinition::new("test", command));
    bench.program("ruff", "sed -i s/BAD/GOOD/ c.py");
    let recovered = bench.recover().await.unwrap();
    let RecoverState::Permanent { reason } = &recovered.state else { panic!("{recovered:?}") };
    assert!(reason.contains("Permission denied"), "{reason}");
    // The other failure was mended first: only what is left is a person's.
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LinterFix, FixOutcome::Worked)]);
    assert_eq!(read(&bench.repo.dir.join("c.py")), "x = GOOD\n");
}

#[tokio::test]
async fn a_fix_is_kept_although_another_failure_was_hidden_behind_the_first() {
    let mut bench = Bench::new().await;
    let mut hidden = complains("build", "d.py", "y", "build: y is not defined");
    hidden.depends_on = vec!["lint".to_owned()];
    bench.checks.push(hidden);
    bench.program("ruff", "sed -i s/BAD/GOOD/ c.py");
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LinterFix, FixOutcome::Worked)]);
    assert!(matches!(recovered.state, RecoverState::Red { .. }));
    assert_eq!(read(&bench.repo.dir.join("c.py")), "x = GOOD\n");
}

#[tokio::test]
async fn what_cannot_be_taken_back_stops_everything_and_keeps_the_backup() {
    let (bench, name) = planted().await;
    bench.program("gofmt", "git checkout -qb elsewhere");
    bench.knows(&name, words("gofmt -w now")).await;
    let error = bench.recover().await.unwrap_err();
    let RecoverError::NotRolledBack { backup, .. } = error else { panic!("{error}") };
    let kept =
        bench.repo.git(&["for-each-ref", "--format=%(objectname)", "refs/repertoire/backup"]);
    assert_eq!(kept.trim(), backup);
}

#[tokio::test]
async fn after_two_fixes_without_effect_the_cause_is_probably_another_one() {
    let (bench, name) = planted().await;
    bench.program("gofmt", "true");
    for word in ["one", "two", "three"] {
        bench.knows(&name, words(&format!("gofmt -w {word}"))).await;
    }
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Failed); 2]);
    assert_eq!(recovered.advice.offers.len(), 1);
    assert_eq!(recovered.advice.withheld.len(), 2);
}

#[tokio::test]
async fn a_fix_that_makes_tests_vanish_has_failed() {
    let (mut bench, name) = planted().await;
    // A runner that runs what the file names.
    let command = "if grep -q BAD c.py; then echo 'error: build: BAD is not defined'; echo '1 failed, 3 passed in 0.1s'; exit 1; fi; \
        if grep -q NONE c.py; then echo 'no tests ran in 0.01s'; else echo '4 passed in 0.1s'; fi";
    bench.checks[0] = CheckDefinition::new("test", command);
    bench.program("gofmt", "sed -i s/BAD/NONE/ c.py");
    bench.knows(&name, words("gofmt -w now")).await;
    let before = bench.tree().await;
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Failed)]);
    assert!(last_reason(&recovered).contains("odd"), "{}", last_reason(&recovered));
    assert_eq!(bench.tree().await, before);
    bench.program("gofmt", "sed -i s/BAD/GOOD/ c.py");
    let recovered = bench.recover().await.unwrap();
    assert_eq!(outcomes(&recovered), [(RecoverStrategy::LearnedFix, FixOutcome::Worked)]);
}
