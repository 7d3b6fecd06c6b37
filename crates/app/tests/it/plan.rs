//! Plans that are worked through by a scripted agent in a real repository. What counts is what is in the plan file, in git and in
//! the journal at the end, not what the agent says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::backend::{Backend, CommandBackend, ScriptedBackend};
use repertoire_agent::permission::{PermissionMode, RunPermissions};
use repertoire_agent::{RunOptions, System};
use repertoire_checks::declared::CheckDefinition;
use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Limits, Run, RunStatus};
use repertoire_journal::{
    ClaimRules, Command, Journal, NewRun, Payload, QueueWorker, RunId, Target,
};
use repertoire_plan::{
    KIND, PlanAgentProvider, PlanAgentSetup, PlanDeliveryMode, PlanRequest, PlanRunner, RunFolders,
};
use tokio_util::sync::CancellationToken;

use crate::repo::{Repo, environment, git_in, read, write};

const FIVE: &str = "\
# Five things

- [ ] Write alpha
- [ ] Write beta
- [ ] Write gamma
- [ ] Write delta (P0)
- [ ] Write epsilon (blocked by: \"Write beta\")
- [ ]? Look at it yourself
";

const NAMES: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];

/// An agent that does what its task says, and a reviewer that approves.
pub(crate) fn honest() -> String {
    let mut out = String::new();
    for name in NAMES {
        out.push_str(&format!(
            "- when: \"# Selected task\\n\\nWrite {name}\"\n  unless: You review\n  write: {name}.txt\n  content: \"{name}\\n\"\n"
        ));
    }
    out + APPROVES
}

pub(crate) const APPROVES: &str = "\
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done. <promise>COMPLETE</promise>
";

pub(crate) struct Bench {
    pub(crate) repo: Repo,
    pub(crate) journal: Journal,
    pub(crate) runner: PlanRunner,
    pub(crate) request: PlanRequest,
}

struct TestAgentProvider {
    base: Utf8PathBuf,
}

impl PlanAgentProvider for TestAgentProvider {
    fn agent_setup(&self, workspace: &Utf8Path, _: &PlanRequest) -> Result<PlanAgentSetup, String> {
        let environment = environment(&self.base);
        let system = System::builder()
            .skills_from(self.base.join("skills"))
            .work_dir(workspace)
            .spill_dir(self.base.join("spill"))
            .environment([environment.clone(), vec![("MODEL_KEY".into(), "k".into())]].concat())
            .build()
            .map_err(|error| error.to_string())?;
        let script = self.base.join("agent.sh");
        // An agent that is a program of its own is kept from nothing.
        let (backend, mode): (Arc<dyn Backend>, PermissionMode) = match script.exists() {
            true => (
                Arc::new(CommandBackend::new("bash", vec![script.to_string()])),
                PermissionMode::Full,
            ),
            false => {
                let file = self.base.join("agent.yaml");
                (Arc::new(ScriptedBackend::new(file)), PermissionMode::AcceptEdits)
            }
        };
        let options = RunOptions {
            backend: Some(backend),
            permissions: Some(RunPermissions::new(mode)),
            ..RunOptions::default()
        };
        Ok(PlanAgentSetup { system, implementer: options.clone(), reviewer: options, environment })
    }
}

impl Bench {
    pub(crate) async fn new(plan: &str, agent: &str) -> Self {
        let repo = Repo::new();
        repo.file("PLAN.md", plan);
        repo.commit("the plan");
        write(&repo.base.join("agent.yaml"), agent);
        let skill = "---\nname: spelling\ndescription: How Greek letters are spelt. Use when alpha is written.\n---\nMind the h.\n";
        write(&repo.base.join("skills/spelling/SKILL.md"), skill);
        let clock = Arc::new(|| {
            use repertoire_text::clock::Clock;
            repertoire_text::clock::SystemClock.now_ms()
        });
        let target = Target::File(repo.base.join("data/journal.sqlite"));
        let journal = Journal::open(&target, clock).await.unwrap();
        let places = RunFolders {
            worktrees: repo.base.join("data/worktrees"),
            runs: repo.base.join("data/runs"),
            learnings: repo.base.join("data/learnings"),
        };
        let agent_provider = Arc::new(TestAgentProvider { base: repo.base.clone() });
        let runner =
            PlanRunner { journal: journal.clone(), agent_provider, places, on_agent_event: None };
        let request = PlanRequest { plan: "PLAN.md".into(), ..PlanRequest::default() };
        Bench { repo, journal, runner, request }
    }

    pub(crate) async fn create(&self, limits: Limits) -> RunId {
        let new = NewRun {
            id: RunId::new(),
            kind: KIND.to_owned(),
            name: "five things".to_owned(),
            workspace: self.repo.dir.to_string(),
            labels: BTreeSet::new(),
            priority: 0,
            limits,
            request: serde_json::to_value(&self.request).unwrap(),
        };
        self.journal.create(new).await.unwrap().id
    }

    pub(crate) fn who(&self) -> QueueWorker {
        QueueWorker {
            name: "test".to_owned(),
            labels: BTreeSet::new(),
            kinds: BTreeSet::from([KIND.to_owned()]),
            lease: Duration::from_secs(30),
        }
    }

    pub(crate) async fn drive(&self, id: &RunId) -> Run {
        let claimed =
            self.journal.claim_run(id, &self.who(), &ClaimRules::default()).await.unwrap();
        self.runner.drive_run(claimed.unwrap(), &CancellationToken::new()).await.unwrap()
    }

    /// Waits until a step is under way.
    pub(crate) async fn under_way(&self, id: &RunId) {
        while self.journal.run(id).await.unwrap().unwrap().open_step.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn run(&self) -> Run {
        let id = self.create(Limits::default()).await;
        self.drive(&id).await
    }

    /// The plan as it stands on the branch of a run.
    pub(crate) fn plan_of(&self, run: &Run) -> String {
        let branch = &run.worktree.as_ref().unwrap().branch;
        self.repo.git(&["show", &format!("{branch}:PLAN.md")]) + "\n"
    }

    pub(crate) fn subjects(&self, run: &Run) -> Vec<String> {
        let branch = &run.worktree.as_ref().unwrap().branch;
        let log = self.repo.git(&["log", "--reverse", "--format=%s", &format!("main..{branch}")]);
        let own = |line: &&str| !line.starts_with("plan: ");
        log.lines().filter(own).map(str::to_owned).collect()
    }

    pub(crate) async fn payloads(&self, run: &Run) -> Vec<Payload> {
        let events = self.journal.events(&run.id, 0, 10_000).await.unwrap();
        events.into_iter().map(|event| event.payload).collect()
    }

    pub(crate) async fn steps(&self, run: &Run) -> Vec<String> {
        let steps = self.journal.steps(&run.id).await.unwrap();
        let words = steps.iter().map(|step| {
            let task = step.task.as_ref().map_or("-", |task| task.label.as_str());
            let outcome = match step.outcome {
                Some(StepOutcome::Ok) => "",
                Some(StepOutcome::Failed) => " failed",
                Some(StepOutcome::SentBack) => " sent back",
                Some(StepOutcome::Stopped) => " stopped",
                None => " …",
            };
            format!("{} {task}{outcome}", step.kind)
        });
        words.collect()
    }
}

#[tokio::test]
async fn five_tasks_go_to_complete_in_the_order_of_priority_and_blockers() {
    let mut bench = Bench::new(FIVE, &honest()).await;
    bench.request.checks = vec![CheckDefinition::new("there", "test -f a.txt")];
    bench.request.final_checks = vec![CheckDefinition::new(
        "all",
        "test -f alpha.txt -a -f beta.txt -a -f gamma.txt -a -f delta.txt -a -f epsilon.txt",
    )];
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(bench.plan_of(&run), FIVE.replace("- [ ] ", "- [R] "));
    let subjects = ["Write delta", "Write alpha", "Write beta", "Write gamma", "Write epsilon"];
    assert_eq!(bench.subjects(&run), subjects);
    assert_eq!(bench.repo.git(&["status", "--porcelain"]), "", "the checkout is left alone");
    assert!(!bench.repo.dir.join("alpha.txt").exists());
    assert_eq!(run.steps, 5 * 4 + 1);
    let replayed = bench.journal.replay_run(&run.id).await.unwrap();
    assert!(replayed.differences.is_empty(), "{:?}", replayed.differences);
}

#[tokio::test]
async fn an_agent_that_says_done_at_once_never_completes() {
    // It also ticks everything off, and says that it was reviewed.
    let lie = FIVE.replace("- [ ] ", "- [R] ").replace('\n', "\n    ");
    let agent =
        format!("- unless: You review\n  write: PLAN.md\n  content: |\n    {lie}\n{APPROVES}");
    let bench = Bench::new(FIVE, &agent).await;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert!(run.reason.as_deref().unwrap().starts_with("watchdog:no_progress"), "{:?}", run.reason);
    // Its first task has used up its attempts, and no other is ticked off.
    let failed = "[!] Write delta (P0)\n  - failed: no file was changed";
    assert_eq!(bench.plan_of(&run), FIVE.replace("[ ] Write delta (P0)", failed));
    assert_eq!(bench.subjects(&run), Vec::<String>::new());
    let payloads = bench.payloads(&run).await;
    let count = |name: &str| payloads.iter().filter(|payload| payload.name() == name).count();
    assert_eq!((count("RUN_COMPLETED"), count("WATCHDOG_REWRITE")), (0, 2));
    assert!(count("PLAN_RESTORED") > 0);
}

#[tokio::test]
async fn a_reviewer_that_sends_back_makes_the_task_open_again() {
    let agent = "\
- when: 'Attempt 2 of'
  unless: You review
  write: alpha.txt
  content: \"alpha, better\\n\"
- unless: You review
  when: '# Selected task'
  write: first.txt
  content: \"alpha\\n\"
- when: 'alpha, better'
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- when: You review
  finish: {structured: {verdict: send_back, summary: Not yet., findings: [{problem: it is empty, file: alpha.txt, line: 1}], learning: Write more.}}
";
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", agent).await;
    bench.request.ending = PlanDeliveryMode::Merge;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(
        bench.steps(&run).await,
        [
            "implementation Write alpha",
            "verification Write alpha",
            "review Write alpha sent back",
            "implementation Write alpha",
            "verification Write alpha",
            "review Write alpha",
            "verification Write alpha",
            "verification -",
        ]
    );
    let marks: Vec<String> = bench
        .payloads(&run)
        .await
        .into_iter()
        .filter_map(|payload| match payload {
            Payload::TaskMarked { mark, .. } => Some(mark),
            _ => None,
        })
        .collect();
    assert_eq!(marks, ["implemented", "open", "implemented", "reviewed"]);
    let prompt =
        bench.runner.places.runs.join(run.id.as_str()).join("004-implementation.prompt.md");
    let prompt = read(&prompt);
    assert!(prompt.contains("- it is empty (alpha.txt:1)"), "{prompt}");
    assert!(prompt.contains("# Learnt so far\n\n- Write more."), "{prompt}");
    // It was merged into the branch that it began on.
    assert_eq!(read(&bench.repo.dir.join("PLAN.md")), "# P\n\n- [R] Write alpha\n");
    assert_eq!(read(&bench.repo.dir.join("alpha.txt")), "alpha, better\n");
}

#[tokio::test]
async fn a_red_final_check_keeps_the_run_open_until_it_is_green() {
    let agent = format!(
        "- when: \"# Selected task\\n\\nMake the final checks pass\"\n  unless: You review\n  write: final.txt\n  content: now\n{}",
        honest()
    );
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", &agent).await;
    bench.request.final_checks = vec![CheckDefinition::new("final", "cat final.txt")];
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let steps = bench.steps(&run).await;
    assert_eq!(steps[4..6], ["verification - failed", "implementation Make the final checks pass"]);
    assert_eq!(steps.last().unwrap(), "verification -");
    assert_eq!(bench.subjects(&run), ["Write alpha", "Make the final checks pass"]);

    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", &honest()).await;
    bench.request.final_checks = vec![CheckDefinition::new("final", "cat final.txt")];
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert_eq!(bench.plan_of(&run), "# P\n\n- [R] Write alpha\n");
    assert!(!bench.payloads(&run).await.iter().any(|payload| payload.name() == "RUN_COMPLETED"));
}

#[tokio::test]
async fn skills_are_chosen_for_a_step_and_are_in_its_prompt() {
    let bench = Bench::new("# P\n\n- [ ] Write alpha @spelling @nobody\n", &honest()).await;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let payloads = bench.payloads(&run).await;
    let selected = payloads.iter().find_map(|payload| match payload {
        Payload::SkillsSelected { step_kind, skills, strategy, errors, .. } => {
            Some((step_kind.clone(), skills[0].name.clone(), strategy.clone(), errors.clone()))
        }
        _ => None,
    });
    let (kind, name, strategy, errors) = selected.unwrap();
    assert_eq!(
        (kind.as_str(), name.as_str(), strategy.as_str()),
        ("implementation", "spelling", "hint")
    );
    assert_eq!(errors, ["there is no skill `nobody`"]);
    let prompt =
        bench.runner.places.runs.join(run.id.as_str()).join("001-implementation.prompt.md");
    let prompt = read(&prompt);
    let order = [
        "@PLAN.md",
        "# Instructions",
        "# Selected task",
        "<available_skills>",
        "Reading: spelling",
        "Mind the h.",
    ];
    let places: Vec<usize> = order.iter().map(|words| prompt.find(words).unwrap()).collect();
    assert!(places.is_sorted(), "{prompt}");
}

#[tokio::test]
async fn a_budget_stops_the_run_and_a_larger_one_lets_it_go_on() {
    let agent = honest().replace(
        "text: Done. <promise>COMPLETE</promise>",
        "finish: {text: Done., cost_usd: 0.6, usage: {input_tokens: 10, output_tokens: 5, cache_read_tokens: 0, cache_write_tokens: 0}}",
    );
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n- [ ] Write beta\n", &agent).await;
    let limits = Limits { cost_usd: Some(0.5), ..Limits::default() };
    let id = bench.create(limits).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting);
    assert!(run.reason.as_deref().unwrap().starts_with("budget:cost"), "{:?}", run.reason);
    assert_eq!((run.spent.cost_usd(), run.spent.total_tokens()), (0.6, 15));
    let limits = Some(Limits { cost_usd: Some(5.0), ..Limits::default() });
    bench.journal.order(&id, Command::Resume { by: "me".into(), limits }).await.unwrap();
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_paused_stops_in_the_middle_of_a_step() {
    let slow = format!("- unless: You review\n  wait_ms: 60000\n{}", honest());
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n", &slow).await;
    let id = bench.create(Limits::default()).await;
    let drive = bench.drive(&id);
    let cancel = async {
        bench.under_way(&id).await;
        bench.journal.order(&id, Command::Cancel { by: "me".into() }).await.unwrap();
    };
    let (run, ()) = tokio::join!(drive, cancel);
    assert_eq!(run.status, RunStatus::Cancelled);
    assert_eq!(bench.steps(&run).await, ["implementation Write alpha stopped"]);
}

#[tokio::test]
async fn a_worker_that_is_told_to_stop_gives_its_run_back_and_another_finishes_it() {
    let slow =
        format!("- when: 'Write alpha'\n  unless: You review\n  wait_ms: 1500\n{}", honest());
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n", &slow).await;
    let id = bench.create(Limits::default()).await;
    let shutdown = CancellationToken::new();
    let claimed = bench.journal.claim_run(&id, &bench.who(), &ClaimRules::default()).await.unwrap();
    let stop = async {
        bench.under_way(&id).await;
        shutdown.cancel();
    };
    let (run, ()) = tokio::join!(bench.runner.drive_run(claimed.unwrap(), &shutdown), stop);
    assert_eq!(run.unwrap().status, RunStatus::Queued);
    bench
        .journal
        .order(&id, Command::Steer { by: "me".into(), note: "Be quick.".into() })
        .await
        .unwrap();
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let prompt =
        bench.runner.places.runs.join(run.id.as_str()).join("002-implementation.prompt.md");
    assert!(read(&prompt).contains("# From the person who watches this run\n\n- Be quick."));
}

#[tokio::test]
async fn a_checkout_with_changes_is_not_begun_on_and_says_so() {
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n", &honest()).await;
    bench.repo.file("a.txt", "changed\n");
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Waiting);
    assert!(run.reason.as_deref().unwrap().contains("not committed"), "{:?}", run.reason);
}

#[tokio::test]
async fn a_plan_that_git_does_not_know_is_brought_along() {
    let mut bench = Bench::new("# P\n", &honest()).await;
    bench.repo.file("TODO.md", "- [ ] Write alpha\n");
    bench.request.plan = "TODO.md".into();
    bench.request.allow_dirty = true;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let worktree = Utf8PathBuf::from(&run.worktree.as_ref().unwrap().path);
    assert_eq!(read(&worktree.join("TODO.md")), "- [R] Write alpha\n");
    assert_eq!(git_in(&worktree, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn what_was_tried_for_a_task_that_is_given_up_does_not_make_the_next_one_fail() {
    let agent = "\
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: You review
  write: broken.txt
  content: \"x\\n\"
  append: true
- when: \"# Selected task\\n\\nWrite beta\"
  unless: You review
  write: beta.txt
  content: \"beta\\n\"
"
    .to_owned()
        + APPROVES;
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n- [ ] Write beta\n", &agent).await;
    bench.request.checks = vec![CheckDefinition::new("whole", "test ! -e broken.txt")];
    bench.request.bounds.attempts_max = 2;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert!(run.reason.as_deref().unwrap().contains("\"Write alpha\" is failed"));
    let plan = "# P\n\n- [!] Write alpha\n  - failed: checks are red: whole\n- [R] Write beta\n";
    assert_eq!(bench.plan_of(&run), plan);
    let worktree = Utf8PathBuf::from(&run.worktree.as_ref().unwrap().path);
    assert!(!worktree.join("broken.txt").exists() && worktree.join("beta.txt").exists());
    let subjects = bench.subjects(&run);
    assert!(subjects[2].starts_with("Give up, and take back what was tried"), "{subjects:?}");
    // What was tried is still in the history, and the output of the check is with the run.
    assert_eq!(subjects[..2], ["Write alpha", "Write alpha"]);
    let kept = bench.runner.places.runs.join(run.id.as_str()).join("002-verification.md");
    assert!(read(&kept).contains("test ! -e broken.txt"));
}
