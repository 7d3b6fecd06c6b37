//! `rep mcp`: the real program on its real streams.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::workspace::Workspace;

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(ws: &Workspace, args: &[&str]) -> Self {
        let mut command = ws.command(&[&["mcp"], args].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Server { child, input, output };
        let client = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        server.send(json!({ "id": 0, "method": "initialize", "params": client }));
        server.until(|message| message["id"] == 0);
        server.send(json!({ "method": "notifications/initialized" }));
        server
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
    }

    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.output.next().expect("the server is still there").unwrap();
            let message = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
        }
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({ "id": id, "method": method, "params": params }));
        self.until(|message| message["id"] == id)["result"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_skill_is_found_loaded_and_followed_on_disk_until_the_client_goes() {
    let ws = Workspace::new();
    let skill = "home/.agents/skills/invoices";
    ws.skill(skill, "invoices", "Checks invoices. Use when an invoice has to be approved.");
    let mut server = Server::start(&ws, &[]);
    let search = json!({ "name": "skill_search", "arguments": { "task": "Approve this invoice" } });
    let found = server.ask(1, "tools/call", search);
    assert_eq!(found["structuredContent"]["picks"][0]["name"], "invoices", "{found}");
    let loaded = server.ask(
        2,
        "tools/call",
        json!({ "name": "skill", "arguments": { "name": "invoices" } }),
    );
    assert_eq!(loaded["structuredContent"]["trust"], "trusted", "{loaded}");
    // It is the user's own, so it speaks for itself.
    assert!(loaded["content"][0]["text"].as_str().unwrap().starts_with("# invoices"), "{loaded}");
    ws.skill(skill, "invoices", "Checks invoices in another way.");
    server.until(|message| message["method"] == "notifications/resources/list_changed");
    let got = server.ask(3, "skills/get", json!({ "uri": "skill://invoices/SKILL.md" }));
    assert_eq!(got["skill"]["frontmatter"]["description"], "Checks invoices in another way.");
    server.input = None;
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_form_that_is_not_there_is_said_before_anything_is_served() {
    let ws = Workspace::new();
    let ran = ws.rep("mcp --form 0123");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("there is no open form `0123`"), "{ran}");
}
