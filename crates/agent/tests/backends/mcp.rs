//! MCP servers that are shell scripts.

use std::collections::BTreeMap;

use super::*;
use repertoire_agent::System;
use repertoire_agent::mcp::{McpEnvironment, McpLimits, McpServerConfig, McpServers};
use repertoire_agent::run::AgentRun;
use repertoire_agent::tool::{ToolAccess, ToolInvocation, ToolOutput};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use serde_json::{Value, json};

/// A server that answers each request by its method, with the id that it came with.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"demo","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '"result":{"tools":[{"name":"math.add","description":"Adds\u200b numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}},"annotations":{"readOnlyHint":true,"openWorldHint":false}},{"name":"math add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"hang","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"hang"'*) sleep 100 ;;
    *'"name":"fail"'*) say '"result":{"content":[{"type":"text","text":"no"}],"isError":true}' ;;
    *'"method":"tools/call"'*) say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"env=$GIVEN secret=${SECRET:-none}\"},{\"type\":\"image\",\"data\":\"AA==\",\"mimeType\":\"image/png\"}]}" ;;
    *'"id":'*) say '"error":{"code":-32601,"message":"unknown"}' ;;
  esac
done
"#;

fn place(dir: &Utf8Path) -> McpEnvironment {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    McpEnvironment {
        dir: dir.to_owned(),
        environment: vec![
            variable("PATH", "/usr/local/bin:/usr/bin:/bin"),
            variable("SECRET", "x"),
        ],
        limits: McpLimits {
            start: Duration::from_secs(5),
            call: Duration::from_secs(1),
            grace: Duration::from_millis(300),
            ..McpLimits::default()
        },
    }
}

fn program(command: &str, args: &[&str]) -> McpServerConfig {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let env = BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]);
    McpServerConfig::Program { command: command.to_owned(), args, env }
}

fn a_run(dir: &Utf8Path) -> AgentRun {
    let (events, _) = kept();
    let workplace = RunWorkplace::new(dir, dir.join("spill"), Sandbox::default());
    let system = System::builder().work_dir(dir).build().expect("a system");
    AgentRun::new(system, workplace, events)
}

#[tokio::test]
async fn the_tools_of_a_server_are_named_cleaned_and_called() {
    let folder = Folder::new();
    let script = folder.script("server-of-tools", SERVER);
    let configs = BTreeMap::from([("de mo".to_owned(), program(&script, &[]))]);
    let (events, told) = kept();
    let servers = McpServers::connect(&configs, &place(&folder.path), &events).await;
    assert_eq!(*told.lock().expect("a list"), Vec::<EventKind>::new());
    let tools = servers.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["de_mo_math_add", "de_mo_math_add_2", "de_mo_hang", "de_mo_fail"]);
    let run = a_run(&folder.path);
    assert_eq!(tools[0].spec(&run).description, "Adds numbers");
    assert_eq!(
        (tools[0].access(&Value::Null), tools[1].access(&Value::Null)),
        (ToolAccess::Read, ToolAccess::Network)
    );
    assert_eq!(tools[2].access(&Value::Null), ToolAccess::Execute);
    let asked = json!({"description": "harmless", "sql": "DROP"});
    assert_eq!(tools[0].subject(&asked), r#"{"description":"harmless","sql":"DROP"}"#);
    let arguments = json!({"a": 1});
    let call = || ToolInvocation { id: "c", arguments: &arguments, run: &run };
    assert_eq!(
        tools[0].call(call()).await,
        ToolOutput::ok("env=yes secret=none\n[an image, image/png]")
    );
    assert_eq!(tools[3].call(call()).await, ToolOutput::error("no"));
    let hung = tools[2].call(call()).await;
    assert!(hung.is_error && hung.text.contains("did not answer within 1 s"), "{}", hung.text);
    servers.close().await;
    assert!(vanishes(&script));
    let gone = tools[0].call(call()).await;
    assert!(gone.is_error, "{}", gone.text);
}

#[tokio::test]
async fn a_server_cannot_take_the_name_of_a_tool_of_ours() {
    let folder = Folder::new();
    let script = folder.script("server-of-names", &SERVER.replace("math.add", "Tests"));
    let configs = BTreeMap::from([("run".to_owned(), program(&script, &[]))]);
    let (events, _) = kept();
    let servers = McpServers::connect(&configs, &place(&folder.path), &events).await;
    assert_eq!(servers.tools()[0].name(), "run_Tests_2");
}

#[tokio::test]
async fn servers_that_do_not_start_are_warnings_and_the_others_are_there() {
    let folder = Folder::new();
    let good = folder.script("server-good", SERVER);
    let silent = folder.script("server-silent", "sleep 100");
    let broken = folder.script("server-broken", "echo 'no key is set' >&2; exit 1");
    let noisy = folder.script("server-noisy", "exec tr '\\0' x </dev/zero");
    let configs = BTreeMap::from([
        ("absent".to_owned(), program("/nowhere/server", &[])),
        ("broken".to_owned(), program(&broken, &[])),
        ("good".to_owned(), program(&good, &[])),
        ("noisy".to_owned(), program(&noisy, &[])),
        ("remote".to_owned(), McpServerConfig::Url("https://example.org/mcp".to_owned())),
        ("silent".to_owned(), program(&silent, &[])),
    ]);
    let (events, told) = kept();
    let started = Instant::now();
    let servers = McpServers::connect(&configs, &place(&folder.path), &events).await;
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(servers.tools().len(), 4);
    let told = told.lock().expect("a list").clone();
    let words: Vec<String> = told
        .iter()
        .map(|kind| match kind {
            EventKind::Warning { message } => message.clone(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(words.len(), 5, "{words:?}");
    for (word, expected) in
        words.iter().zip(["cannot be started", "no key is set", "`noisy`", "a URL", "within 5 s"])
    {
        assert!(word.contains(expected), "{word}");
    }
    assert!(vanishes("server-silent") && vanishes("server-noisy"));
    drop(servers);
    assert!(vanishes(&good));
}

#[test]
fn configurations_are_read_and_wrong_ones_say_what_is_wrong() {
    let read =
        |value: Value| McpServerConfig::from_json("s", &value).map_err(|error| error.to_string());
    let plain =
        read(json!({"command": "x", "args": ["a"], "env": {"GIVEN": "yes"}, "type": "stdio"}));
    assert_eq!(plain, Ok(program("x", &["a"])));
    assert_eq!(read(json!({"url": "http://x"})), Ok(McpServerConfig::Url("http://x".to_owned())));
    for (value, problem) in [
        (json!({}), "neither a `command` nor a `url`"),
        (json!({"command": 1}), "a `command` that is no text"),
        (json!({"command": "x", "args": "a"}), "`args` that are no list of texts"),
        (json!({"command": "x", "env": {"A": 1}}), "an `env` that is no mapping of texts"),
    ] {
        assert_eq!(read(value), Err(format!("the MCP server `s` has {problem}")));
    }
}
