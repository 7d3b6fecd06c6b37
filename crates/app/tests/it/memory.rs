//! What the memory offers, what it holds back, and how it is carried elsewhere.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::error::{ErrorCategory, ParsedError, ReportingTool};
use repertoire_checks::memory::{
    ExchangeError, FailureMemory, FixState, MemoryImportTrust, TriedFixes, parse_memory_file,
    scope_of,
};
use repertoire_checks::signature::compute_signature;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{
    FailureFix, FixRemedy, Journal, KnownFailure, KnownFix, MemoryLesson, Target,
};

use crate::repo::{Repo, write};

const NOW: u64 = 1_800_000_000_000;

struct Bench {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
    memory: FailureMemory,
}

impl Bench {
    async fn new() -> Bench {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().to_owned();
        write(&dir.join("Cargo.lock"), "");
        let file = Target::File(dir.join("journal.db"));
        let journal = Journal::open(&file, Arc::new(|| NOW)).await.unwrap();
        Bench { _keep: keep, dir, memory: FailureMemory::new(journal, "here") }
    }

    async fn knows(&self, error: &ParsedError, fixes: Vec<KnownFix>) {
        let failure = KnownFailure {
            scope: String::new(),
            signature: compute_signature(error).to_string(),
            category: error.category.as_str().into(),
            code: None,
            tool: "cargo".into(),
            example: error.message.clone(),
            seen: fixes.len() as u64,
            first_ms: 1,
            last_ms: 2,
        };
        let lesson = MemoryLesson { failure, fixes };
        self.memory.journal().store_lessons("here", vec![lesson]).await.unwrap();
    }

    async fn look_up(&self, error: &ParsedError) -> repertoire_checks::memory::FixAdvice {
        let errors = [error.clone(), error.clone()];
        self.memory.look_up(&errors, &self.dir, &TriedFixes::new(), NOW).await.unwrap()
    }
}

fn error(message: &str) -> ParsedError {
    ParsedError::new(ReportingTool::Cargo, ErrorCategory::Build, message)
}

fn known(words: &str, confidence: f64, condition: &str) -> KnownFix {
    let remedy = FixRemedy::Command(words.split(' ').map(str::to_owned).collect());
    let preconditions = vec![format!("exists {condition}")];
    let fix = FailureFix { remedy, preconditions, origin: FixOrigin::Learnt };
    let (worked, failed) = if confidence > 0.5 { (2, 0) } else { (1, 4) };
    KnownFix {
        confidence,
        worked,
        failed,
        tried: worked + failed,
        last_worked_ms: Some(NOW - 1),
        ..KnownFix::new(fix, 1)
    }
}

#[tokio::test]
async fn the_most_trusted_is_offered_first_and_what_is_held_back_says_why() {
    let bench = Bench::new().await;
    let error = error("linking with `cc` failed");
    let fixes = vec![
        known("cargo update -p a", 0.4, "Cargo.lock"),
        known("cargo update -p b", 0.76, "Cargo.lock"),
        known("cargo update -p c", 0.16, "Cargo.lock"),
        known("cargo update -p d", 0.9, "uv.lock"),
        known("cargo update -p e", 0.8, "Cargo.lock"),
    ];
    let tried = fixes[4].id.clone();
    bench.knows(&error, fixes).await;
    let tried: TriedFixes = [(compute_signature(&error).to_string(), tried)].into();
    let advice =
        bench.memory.look_up(std::slice::from_ref(&error), &bench.dir, &tried, NOW).await.unwrap();
    let offers: Vec<_> =
        advice.offers.iter().map(|offer| (offer.fix.fix.remedy.to_text(), offer.state)).collect();
    let expected = [
        ("cargo update -p b".to_owned(), FixState::Automatic),
        ("cargo update -p a".to_owned(), FixState::Suggested),
    ];
    assert_eq!(offers, expected);
    let mut why: Vec<_> = advice.withheld.iter().map(|held| held.reason.as_str()).collect();
    why.sort_unstable();
    let expected =
        ["`uv.lock` does not exist", "it failed 4 of 5 times", "it was tried in this run"];
    assert_eq!(why, expected);
    // Another tool says the same words: that is a hint, and no more.
    let other = ParsedError { source: ReportingTool::Tsc, ..error };
    let advice = bench.look_up(&other).await;
    assert!(advice.offers.iter().all(|offer| offer.state == FixState::Suggested));
}

#[tokio::test]
async fn what_is_alike_is_a_suggestion_and_what_is_new_is_said_to_be() {
    let bench = Bench::new().await;
    let fix = known("cargo update -p a", 0.9, "Cargo.lock");
    for number in 0..5 {
        let extra = "very ".repeat(number);
        let message = format!("could not resolve the {extra}odd version of package `a` here");
        bench.knows(&error(&message), vec![fix.clone()]).await;
    }
    let near = error("could not resolve some version of package `b` here");
    let advice = bench.look_up(&near).await;
    assert_eq!((advice.offers.len(), advice.unknown.len()), (3, 1));
    for offer in &advice.offers {
        assert_eq!(offer.state, FixState::Suggested);
        assert!(offer.similarity.is_some_and(|likeness| (0.5..1.0).contains(&likeness)));
    }
    let advice = bench.look_up(&error("segmentation fault")).await;
    assert_eq!((advice.offers.len(), advice.unknown.len()), (0, 1));
}

#[tokio::test]
async fn a_memory_is_carried_elsewhere_and_believed_as_far_as_somebody_says() {
    let bench = Bench::new().await;
    let (often, seldom) = (error("often"), error("seldom"));
    bench.knows(&seldom, vec![known("cargo update -p a", 0.76, "Cargo.lock")]).await;
    let fixes = vec![
        known("cargo update -p b", 0.76, "Cargo.lock"),
        known("cargo update -p c", 0.3, "Cargo.lock"),
    ];
    bench.knows(&often, fixes).await;
    let file = bench.memory.export().await.unwrap();
    let text = serde_json::to_string(&file).unwrap();
    let examples: Vec<_> =
        file.failures.iter().map(|entry| entry.failure.example.as_str()).collect();
    assert_eq!(examples, ["often", "seldom"]);
    assert_eq!(file.failures[0].helped.as_deref(), Some("command: cargo update -p b"));
    for (trust, state, tried) in [
        (MemoryImportTrust::Nothing, FixState::Suggested, 0),
        (MemoryImportTrust::Records, FixState::Automatic, 2),
    ] {
        let there = Bench::new().await;
        let taken = there.memory.import(parse_memory_file(&text).unwrap(), trust).await.unwrap();
        assert_eq!((taken.failures, taken.fixes, taken.left_out.len()), (2, 3, 0));
        let advice = there.look_up(&often).await;
        assert_eq!((advice.offers[0].state, advice.offers[0].fix.tried), (state, tried));
        // Once more changes nothing.
        let before = there.memory.export().await.unwrap();
        there.memory.import(parse_memory_file(&text).unwrap(), trust).await.unwrap();
        assert_eq!(there.memory.export().await.unwrap(), before);
    }
}

#[tokio::test]
async fn a_failure_that_is_in_a_file_twice_is_one_failure_with_the_fixes_of_both() {
    let bench = Bench::new().await;
    bench.knows(&error("often"), vec![known("cargo update -p b", 0.76, "Cargo.lock")]).await;
    let mut file = bench.memory.export().await.unwrap();
    let mut second = file.failures[0].clone();
    second.fixes.push(known("cargo update -p c", 0.76, "Cargo.lock"));
    file.failures.push(second);
    let there = Bench::new().await;
    let taken = there.memory.import(file, MemoryImportTrust::Records).await.unwrap();
    assert_eq!((taken.failures, taken.fixes), (1, 2));
    assert_eq!(there.memory.export().await.unwrap().failures[0].fixes.len(), 2);
}

#[tokio::test]
async fn a_file_that_is_odd_or_harmful_is_left_out_or_refused() {
    let bench = Bench::new().await;
    bench.knows(&error("often"), vec![known("cargo update -p b", 0.76, "Cargo.lock")]).await;
    let mut file = bench.memory.export().await.unwrap();
    let harmful = FixRemedy::Command(["bash", "-c", "true"].map(str::to_owned).to_vec());
    file.failures[0].fixes[0].fix.remedy = harmful;
    let mut odd = file.failures[0].clone();
    odd.failure.signature = "../../etc".into();
    file.failures.push(odd);
    let there = Bench::new().await;
    let taken = there.memory.import(file.clone(), MemoryImportTrust::Records).await.unwrap();
    assert_eq!((taken.failures, taken.fixes, taken.left_out.len()), (1, 0, 2));
    for (text, version) in [("{", false), ("{\"version\":1}", false), ("{\"version\":9}", true)] {
        let error = parse_memory_file(text).unwrap_err();
        assert_eq!(matches!(error, ExchangeError::Version { found: 9 }), version, "{error}");
    }
}

#[tokio::test]
async fn a_repository_is_known_by_its_origin_or_by_its_place() {
    let repo = Repo::new();
    let git = repo.engine();
    assert_eq!(scope_of(&git).await.unwrap(), format!("path:{}", repo.dir.join(".git")));
    repo.git(&["remote", "add", "origin", "https://me:secret@github.com/Some/Thing.git"]);
    assert_eq!(scope_of(&git).await.unwrap(), "github.com/some/thing");
}
