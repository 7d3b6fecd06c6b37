//! A repository on a fake GitHub, a checkout of it, and a model that says what the test wants.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_scripted::github::{FakeGitHub, GitHubServer, TOKEN};
use repertoire_scripted::{ModelScript, RecordedRequest, ScriptedServer};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::workspace::{Ran, Workspace};

/// The account that the bot writes as.
pub(crate) const BOT: &str = "github-actions[bot]";

pub(crate) struct Stage {
    pub(crate) ws: Workspace,
    pub(crate) github: GitHubServer,
    pub(crate) model: ScriptedServer,
    // The servers live in it.
    _runtime: Runtime,
}

impl Stage {
    /// `files` are on the base branch; `github` has what the test needs besides the repository.
    pub(crate) fn new(
        files: &[(&str, &str)],
        github: impl FnOnce(FakeGitHub) -> FakeGitHub,
        script: ModelScript,
    ) -> Stage {
        Stage::scripted(files, github, |_| script)
    }

    /// The same with a model that knows where everything is.
    pub(crate) fn scripted(
        files: &[(&str, &str)],
        github: impl FnOnce(FakeGitHub) -> FakeGitHub,
        script: impl FnOnce(&Workspace) -> ModelScript,
    ) -> Stage {
        let mut ws = Workspace::with_shipped_pack();
        std::fs::remove_dir_all(ws.path("project/.git")).unwrap();
        git(&ws.path("project"), &["init", "--quiet", "-b", "main"]);
        ws.write("project/README.md", "A house.\n");
        files.iter().for_each(|(path, text)| ws.write(&format!("project/{path}"), text));
        commit(&ws.path("project"), "the beginning");
        let bare = ws.path("remote.git");
        git(
            &ws.path(""),
            &["clone", "--quiet", "--bare", ws.path("project").as_str(), bare.as_str()],
        );
        git(&ws.path("project"), &["remote", "add", "origin", bare.as_str()]);
        git(&ws.path("project"), &["fetch", "--quiet", "origin"]);
        let runtime = Runtime::new().unwrap();
        let fake = FakeGitHub::new("octo", "repo")
            .token_of(BOT)
            .collaborator("ada", "write")
            .collaborator("rita", "read")
            .git_dir(bare.as_str());
        let script = script(&ws);
        let (github, model) = runtime
            .block_on(async { (github(fake).start().await, ScriptedServer::start(script).await) });
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", "octo/repo"),
            ("GITHUB_API_URL", &github.url()),
            ("GITHUB_SERVER_URL", &github.url()),
            ("GITHUB_TOKEN", TOKEN),
            ("GITHUB_RUN_ID", "4711"),
            ("GITHUB_OUTPUT", ws.path("output.txt").as_str()),
            ("GITHUB_STEP_SUMMARY", ws.path("summary.md").as_str()),
            ("RUNNER_TEMP", ws.path("data").as_str()),
            ("ANTHROPIC_API_KEY", "sk-ant-a-key-of-nobody"),
            ("ANTHROPIC_BASE_URL", &model.url()),
        ] {
            ws.set(name, value);
        }
        Stage { ws, github, model, _runtime: runtime }
    }

    /// Lets `rep github run` handle an event.
    pub(crate) fn handle(&self, name: &str, event: &Value, more: &[&str]) -> Ran {
        self.ws.write("event.json", event.to_string());
        let file = self.ws.path("event.json");
        let args = ["github", "run", "--event", file.as_str(), "--event-name", name];
        self.ws.rep_with(&[&args[..], more].concat())
    }

    /// An output of the step.
    pub(crate) fn output(&self, name: &str) -> String {
        let text = self.ws.text("output.txt");
        let mut lines = text.lines();
        let mut found = String::new();
        while let Some(line) = lines.next() {
            let Some((known, word)) = line.split_once("<<") else { continue };
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != word).collect();
            if known == name {
                found = value.join("\n");
            }
        }
        found
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.ws.path("project"), args)
    }

    /// Changes a file of the base branch, here and on the service.
    pub(crate) fn base(&self, path: &str, text: &str) {
        self.ws.write(&format!("project/{path}"), text);
        commit(&self.ws.path("project"), "a change of the base");
        self.git(&["push", "--quiet", "origin", "main"]);
        self.git(&["fetch", "--quiet", "origin"]);
    }

    /// A branch of the repository on the service, with these files changed. It stays checked out, as it does in a workflow: what
    /// we stand in is the stranger's.
    pub(crate) fn branch(&self, name: &str, files: &[(&str, &str)]) -> String {
        self.git(&["checkout", "--quiet", "-b", name]);
        files.iter().for_each(|(path, text)| self.ws.write(&format!("project/{path}"), text));
        commit(&self.ws.path("project"), "a change");
        self.git(&["push", "--quiet", "origin", name]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Lets programs of agents run in walls, where this machine has any; says whether it has.
    pub(crate) fn with_walls(&mut self) -> bool {
        self.ws.set("REPERTOIRE_SANDBOX", "auto");
        let doctor: Value = serde_json::from_str(&self.ws.rep("--json doctor").stdout).unwrap();
        let has_walls = doctor["running"]["sandbox_is_enforced"] == true;
        if !has_walls {
            // Then nothing is run at all.
            self.ws.set("REPERTOIRE_SANDBOX", "off");
        }
        has_walls
    }

    /// What agents called, step after step, and whether it was done.
    pub(crate) fn calls(&self) -> Vec<Called> {
        let runs = self.ws.path("data/runs");
        if !runs.exists() {
            return Vec::new();
        }
        let logs = self.ws.files("data/runs").into_iter().flat_map(|run| self.ws.files(&run));
        let logs = logs.filter(|file| file.ends_with(".jsonl"));
        logs.flat_map(|log| called(&self.ws.text(&log))).collect()
    }

    /// What the model was asked, everything in one text.
    pub(crate) fn asked(&self) -> String {
        let all = self.model.requests();
        all.iter().map(|request: &RecordedRequest| request.body.to_string()).collect()
    }

    /// Branches on the service.
    pub(crate) fn branches(&self) -> Vec<String> {
        let all = git(&self.ws.path("remote.git"), &["branch", "--format=%(refname:short)"]);
        all.lines().map(str::to_owned).collect()
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Called {
    pub(crate) tool: String,
    /// The arguments, as the model wrote them.
    pub(crate) arguments: String,
    /// Whether it was done; `false` if it was refused, unknown or failed.
    pub(crate) is_done: bool,
}

/// The calls in a log of an agent's events, each with its answer.
fn called(log: &str) -> Vec<Called> {
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: &Value| {
        let mut answers = events.iter().filter(|event| event["type"] == "tool_result");
        answers.find(|event| event["id"] == *id).is_some_and(|event| event["is_error"] == false)
    };
    let calls = events.iter().filter(|event| event["type"] == "tool_call");
    calls
        .map(|event| Called {
            tool: event["tool"].as_str().unwrap().to_owned(),
            arguments: event["arguments"].to_string(),
            is_done: answer(&event["id"]),
        })
        .collect()
}

/// Counts who comes by. It stands where a model is told to send things.
pub(crate) struct Listener {
    pub(crate) url: String,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    pub(crate) fn start() -> Listener {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", socket.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        std::thread::spawn(move || {
            for _ in socket.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Listener { url, connections }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) fn git(dir: &Utf8Path, args: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.test"])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

pub(crate) fn commit(dir: &Utf8Path, message: &str) {
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "-m", message]);
}

/// Somebody.
pub(crate) fn account(login: &str) -> Value {
    let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
    json!({ "login": login, "type": kind, "id": 1 })
}

fn repository() -> Value {
    json!({ "name": "repo", "full_name": "octo/repo", "default_branch": "main", "owner": account("octo") })
}

/// An issue as events have it.
pub(crate) fn issue(number: u64, title: &str, body: &str, author: &str) -> Value {
    json!({
        "number": number, "title": title, "body": body, "state": "open", "user": account(author),
        "labels": [], "assignees": [],
    })
}

/// Somebody wrote below an issue.
pub(crate) fn comment(issue: Value, text: &str, author: &str) -> Value {
    json!({
        "action": "created", "issue": issue, "repository": repository(), "sender": account(author),
        "comment": { "id": 9001, "body": text, "user": account(author) },
    })
}

/// Something happened to an issue.
pub(crate) fn on_issue(action: &str, issue: Value, sender: &str) -> Value {
    json!({ "action": action, "issue": issue, "repository": repository(), "sender": account(sender) })
}

/// Somebody started the workflow by hand.
pub(crate) fn dispatch(prompt: Option<&str>, sender: &str) -> Value {
    let inputs = prompt.map_or(Value::Null, |prompt| json!({ "prompt": prompt }));
    json!({ "inputs": inputs, "repository": repository(), "sender": account(sender), "ref": "refs/heads/main" })
}

/// A folder that a test may look into.
pub(crate) fn worktree(stage: &Stage) -> Utf8PathBuf {
    stage.ws.path("data/worktrees")
}
