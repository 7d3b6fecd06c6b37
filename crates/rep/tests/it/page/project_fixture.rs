//! Projects to look at, and the daemon that serves them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use camino::Utf8Path;
use repertoire_journal::event::{StepOutcome, TaskRef, TaskSeen};
use repertoire_journal::run::{Limits, RunUsage};
use repertoire_journal::{
    ClaimRules, Journal, NewRun, Payload, QueueWorker, RunId, RunLease, Target,
};
use repertoire_text::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::workspace::{BODY, Workspace};

/// `rep serve`, until it is dropped.
pub(crate) struct Served {
    child: Child,
    link: String,
}

impl Served {
    pub(crate) fn start(ws: &Workspace) -> Self {
        Self::start_at(ws, 0)
    }

    pub(crate) fn start_at(ws: &Workspace, port: u16) -> Self {
        let port = port.to_string();
        let mut command = ws.command(&["serve", "--port", &port]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        listen(child.stdout.take().unwrap(), tell.clone());
        listen(child.stderr.take().unwrap(), tell);
        let link = told
            .iter()
            .find_map(|line| {
                line.split_whitespace().find(|word| word.contains("#code=")).map(str::to_owned)
            })
            .expect("`rep serve` ended before it said where it listens");
        Served { child, link }
    }

    /// The link that opens the page, once.
    pub(crate) fn link(&self) -> String {
        self.link.clone()
    }

    /// The same link, after it was used.
    pub(crate) fn used_link(&self) -> String {
        self.link.clone()
    }

    pub(crate) fn origin(&self) -> String {
        self.link.split("#code=").next().unwrap().to_owned()
    }

    pub(crate) fn port(&self) -> u16 {
        let address = self.origin();
        address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The token of the file that only the user can read.
    pub(crate) fn token(&self, ws: &Workspace) -> String {
        ws.text("data/serve/token").trim().to_owned()
    }
}

/// Somebody has to read what it says to the end, or it stops when the pipe is full.
fn listen(from: impl std::io::Read + Send + 'static, tell: std::sync::mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A few skills: one that fits migrations, one that is broken, one with a colon that has to be mended, and two of one name.
pub(crate) fn small_project_fixture() -> Workspace {
    let ws = Workspace::new();
    let project = "project/.claude/skills";
    ws.skill(
        &format!("{project}/sql-review"),
        "sql-review",
        "Reviews SQL migrations for locks on a table, data loss and missing indexes. Use when a migration is added.",
    );
    ws.skill(
        &format!("{project}/pdf-forms"),
        "pdf-forms",
        "Fills in PDF forms. Use when a form has boxes.",
    );
    ws.skill_with(
        &format!("{project}/colon"),
        "name: colon\ndescription: Mends colons. Use when: the build stops at one.\n",
    );
    ws.write(&format!("{project}/draft/SKILL.md"), "---\nname: draft\n---\n\nNotes.\n");
    ws.skill(&format!("{project}/first-aid"), "first-aid", "A stranger's. Use when it is trusted.");
    ws
}

const TASKS: &[&str] = &[
    "Add an index for look-ups by code",
    "Accept a code at the check-out",
    "Send the receipt by mail",
    "Write the notes",
];

/// A journal, and a worker's hand on it.
pub(crate) struct RunWriter {
    runtime: tokio::runtime::Runtime,
    journal: Journal,
    now_ms: Arc<AtomicU64>,
    workspace: String,
}

/// A run that a worker has.
pub(crate) struct LiveRun<'d> {
    writer: &'d RunWriter,
    lease: RunLease,
    pub(crate) id: RunId,
}

impl RunWriter {
    pub(crate) fn open(ws: &Workspace) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let now_ms = Arc::new(AtomicU64::new(SystemClock.now_ms()));
        let shown = now_ms.clone();
        let clock = Arc::new(move || shown.load(Ordering::Relaxed));
        let target = Target::File(ws.path("data/journal.sqlite"));
        let journal = runtime.block_on(Journal::open(&target, clock)).unwrap();
        RunWriter { runtime, journal, now_ms, workspace: ws.path("project").to_string() }
    }

    /// With runs that say they work in another folder.
    pub(crate) fn of_folder(self, workspace: &str) -> Self {
        RunWriter { workspace: workspace.to_owned(), ..self }
    }

    /// Sets the clock of the journal.
    pub(crate) fn ago(&self, ms: u64) {
        self.now_ms.store(SystemClock.now_ms() - ms, Ordering::Relaxed);
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// A run that nobody has taken yet.
    pub(crate) fn queue(&self, name: &str) -> RunId {
        let id = RunId::new();
        let new = NewRun {
            id: id.clone(),
            kind: "plan".into(),
            name: name.into(),
            workspace: self.workspace.clone(),
            labels: Default::default(),
            priority: 0,
            limits: Limits { cost_usd: Some(5.0), tokens: None, time_ms: None },
            request: json!({ "plan": "PLAN.md" }),
        };
        self.runtime.block_on(self.journal.create(new)).unwrap();
        id
    }

    /// A run of four tasks, with its first step under way.
    pub(crate) fn begin(&self, name: &str) -> LiveRun<'_> {
        let id = self.queue(name);
        let who = QueueWorker {
            name: "desk:42".into(),
            labels: Default::default(),
            kinds: ["plan".to_owned()].into(),
            lease: Duration::from_secs(24 * 60 * 60),
        };
        let rules = ClaimRules::default();
        let claim = self.journal.claim_run(&id, &who, &rules);
        let lease = self.runtime.block_on(claim).unwrap().unwrap().lease;
        let run = LiveRun { writer: self, lease, id };
        let seen = |(at, label): (usize, &&str)| TaskSeen {
            task: TaskRef { id: (at + 1).to_string(), label: (*label).to_owned() },
            mark: "open".into(),
        };
        let tasks = TASKS.iter().enumerate().map(seen).collect();
        run.append(vec![
            Payload::RunStarted { worker: "desk:42".into() },
            Payload::PlanRead { digest: "sha256:0".into(), tasks },
        ]);
        run.start_step(1, "implementation");
        run
    }
}

impl LiveRun<'_> {
    pub(crate) fn append(&self, payloads: Vec<Payload>) {
        self.writer.runtime.block_on(self.writer.journal.append(&self.lease, payloads)).unwrap();
    }

    fn task(step: u32) -> TaskRef {
        let at = (step as usize - 1) / 2 % TASKS.len();
        TaskRef { id: (at + 1).to_string(), label: TASKS[at].to_owned() }
    }

    pub(crate) fn start_step(&self, step: u32, kind: &str) {
        self.append(vec![Self::started(step, kind)]);
    }

    pub(crate) fn started(step: u32, kind: &str) -> Payload {
        Payload::StepStarted {
            step,
            kind: kind.into(),
            task: Some(Self::task(step)),
            attempt: 1,
            iteration: step,
            head: None,
            detail: Value::Null,
        }
    }

    pub(crate) fn finish_step(&self, step: u32, reason: &str) {
        self.end_step(step, StepOutcome::Ok, reason, 120_000);
    }

    pub(crate) fn end_step(&self, step: u32, outcome: StepOutcome, reason: &str, micro_usd: u64) {
        self.append(vec![Self::ended(step, outcome, reason, micro_usd)]);
    }

    pub(crate) fn ended(step: u32, outcome: StepOutcome, reason: &str, micro_usd: u64) -> Payload {
        let spent = RunUsage {
            cost_micro_usd: micro_usd,
            unpriced: false,
            input_tokens: micro_usd / 9,
            output_tokens: micro_usd / 80,
            time_ms: 48_000,
        };
        let reason = Some(reason.to_owned());
        Payload::StepFinished { step, outcome, reason, head: None, spent, result: Value::Null }
    }

    pub(crate) fn mark(&self, step: u32, mark: &str, reason: &str) {
        let task = Self::task(step);
        self.append(vec![Payload::TaskMarked { task, mark: mark.into(), reason: reason.into() }]);
    }

    /// As a worker does that was asked to.
    pub(crate) fn pause(&self) {
        self.append(vec![Payload::RunPaused { reason: "asked for on the page".into() }]);
    }
}

fn git(dir: &Utf8Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
    command.args(["-c", "init.defaultBranch=main"]).args(args).current_dir(dir);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn into_repository(ws: &mut Workspace) {
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.set("USER", "ada");
    ws.write("home/.gitconfig", "[user]\n  name = Ada\n  email = ada@example.org\n");
    let project = ws.path("project");
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    git(&project, &["init", "--quiet"]);
}

fn commit(ws: &Workspace, message: &str) {
    let project = ws.path("project");
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", message]);
}

/// A repository with a plan of two tasks, and an agent that does them.
pub(crate) fn repository() -> Workspace {
    let mut ws = Workspace::new();
    into_repository(&mut ws);
    ws.write("project/PLAN.md", "# Letters\n\n- [ ] Write alpha\n- [ ] Write beta\n");
    ws.write(
        "agent.yaml",
        "\
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: You review
  write: alpha.txt
  content: \"alpha\\n\"
- when: \"# Selected task\\n\\nWrite beta\"
  unless: You review
  write: beta.txt
  content: \"beta\\n\"
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done. <promise>COMPLETE</promise>
",
    );
    commit(&ws, "the plan");
    ws
}

const SHOP: &[(&str, &str)] = &[
    (".claude/skills/release-notes/SKILL.md", include_str!("../../../src/demo/release-notes.md")),
    (
        ".claude/skills/release-notes/assets/template.md",
        include_str!("../../../src/demo/template.md"),
    ),
    (".claude/skills/sql-review/SKILL.md", include_str!("../../../src/demo/sql-review.md")),
    (".claude/skills/sql-review/workflow.yaml", include_str!("../../../src/demo/workflow.yaml")),
    (".claude/skills/recovery/SKILL.md", include_str!("../../../src/demo/recovery.md")),
    (".claude/skills/draft/SKILL.md", include_str!("../../../src/demo/draft.md")),
    (".claude/agents/schema-keeper.md", include_str!("../../../src/demo/schema-keeper.md")),
    ("PLAN.md", include_str!("../../../src/demo/plan.md")),
    ("plan-agent.yaml", include_str!("../../../src/demo/plan-agent.yaml")),
    ("refunds.py", include_str!("../../../src/demo/refunds.py")),
    ("reviewers.yaml", include_str!("../../../src/demo/reviewers.yaml")),
];

/// The shop of the demo, with a run, a workflow that was sent back by its gate, and a review; and more skills.
pub(crate) fn project_fixture() -> Workspace {
    let mut ws = Workspace::with_shipped_pack();
    into_repository(&mut ws);
    for (path, text) in SHOP {
        ws.write(&format!("project/{path}"), text);
    }
    for (name, description) in MORE {
        let text =
            format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\n{BODY}\n");
        ws.write(&format!("project/.claude/skills/{name}/SKILL.md"), text);
    }
    commit(&ws, "The shop");
    let done = |ran: crate::workspace::Ran| assert_eq!(ran.code, 0, "{ran}");
    done(ws.rep("workflow start sql-review --id orders-index --param migration=orders.sql"));
    for item in ITEMS {
        done(ws.rep_with(&["workflow", "record", "orders-index", item]));
    }
    stuck(&ws, "orders-lock");
    done(ws.rep("plan run --backend scripted:plan-agent.yaml"));
    ws.write("project/refunds.py", include_str!("../../../src/demo/refunds-changed.py"));
    let reviewed = ws.rep("review --backend scripted:reviewers.yaml");
    assert!(reviewed.code <= 1, "{reviewed}");
    ws
}

/// A run whose gate has failed as often as it may, so that a person has to decide.
fn stuck(ws: &Workspace, id: &str) {
    let start =
        ws.rep(&format!("workflow start sql-review --id {id} --param migration=orders.sql"));
    assert_eq!(start.code, 0, "{start}");
    for _ in 0..20 {
        let status: Value =
            serde_json::from_slice(&ws.raw(&format!("--json workflow status {id}"))).unwrap();
        let run = &status["run"];
        if run["state"] == "waiting" {
            return;
        }
        match run["step"].as_str().unwrap() {
            "gate" => drop(ws.rep(&format!("workflow step {id} --at {}", run["turn"]))),
            "review" => {
                ws.rep_with(&["workflow", "record", id, ITEMS[0]]);
                ws.rep(&format!("workflow step {id} --outcome ok"));
            }
            _ => drop(ws.rep(&format!("workflow step {id} --outcome ok"))),
        }
    }
    panic!("{id} does not wait");
}

const ITEMS: &[&str] = &[
    r#"{"id":"lock","check":"no lock on orders","severity":"MUST","status":"FAIL","finding":"line 3 locks it for as long as the index is built"}"#,
    r#"{"id":"undo","check":"it can be undone","severity":"SHOULD","status":"PASS","finding":"there is a down migration"}"#,
    r#"{"id":"size","check":"the table is small enough","severity":"COULD","status":"TODO"}"#,
];

const MORE: &[(&str, &str)] = &[
    (
        "api-errors",
        "Writes errors of the HTTP API as problem details. Use when an endpoint can fail.",
    ),
    (
        "checkout-flow",
        "Explains the steps of the check-out and their invariants. Use when a change touches the cart.",
    ),
    ("currency", "Rounds and converts amounts of money. Use when prices or refunds are computed."),
    (
        "fixtures",
        "Makes test data for orders and customers. Use when a test needs a filled database.",
    ),
    (
        "incident",
        "Leads through an incident, from the first alarm to the report. Use when the shop is down.",
    ),
    (
        "load-test",
        "Measures how many orders a minute the shop can take. Use when: performance is in question.",
    ),
    (
        "mail-templates",
        "Writes the mails that customers receive. Use when a template is added or changed.",
    ),
    (
        "search-index",
        "Keeps the search index in step with the catalogue. Use when products are not found.",
    ),
    (
        "translations",
        "Adds and checks translations of the shop. Use when a text is shown to customers.",
    ),
    ("vat", "Computes value added tax by country and date. Use when invoices are made."),
];

/// A field of the first row of a list.
pub(crate) fn first(ws: &Workspace, line: &str, list: &str, field: &str) -> String {
    let value: Value = serde_json::from_slice(&ws.raw(line)).unwrap();
    value[list][0][field].as_str().unwrap().to_owned()
}

/// The latest review.
pub(crate) fn review(ws: &Workspace) -> String {
    let value: Value = serde_json::from_slice(&ws.raw("--json review show")).unwrap();
    value["id"].as_str().unwrap().to_owned()
}
