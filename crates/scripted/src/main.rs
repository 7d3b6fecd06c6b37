//! `scripted-model`: runs the scripted server or the fake GitHub manually, for trying programs
//! without a model.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use repertoire_scripted::github::{FakeGitHubState, GitHubServer};
use repertoire_scripted::{ModelScript, ScriptedServer, limits};

const USAGE: &str = "usage: scripted-model --script FILE.json [--port N]\n       \
                     scripted-model --github STATE.json [--port N] [--log CALLS.jsonl]";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "scripted-model: {message}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let options = ServerOptions::parse(std::env::args().skip(1))?;
    let taken = |error: io::Error| format!("port {}: {error}", options.port);
    // Each server lives until the program ends.
    match &options.what {
        ServerChoice::Script(path) => {
            let script = ModelScript::from_json(&read_file(path)?)
                .map_err(|error| format!("{path}: {error}"))?;
            let server = ScriptedServer::start_on(options.port, script).await.map_err(taken)?;
            wait_until_stopped(&server.url()).await
        }
        ServerChoice::GitHub(path) => {
            let state: FakeGitHubState = serde_json::from_str(&read_file(path)?)
                .map_err(|error| format!("{path}: {error}"))?;
            let log = options.log.as_deref().map(create_file).transpose()?;
            let server = GitHubServer::start_on(options.port, state, log).await.map_err(taken)?;
            wait_until_stopped(&server.url()).await
        }
    }
}

async fn wait_until_stopped(url: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{url}").map_err(|error| error.to_string())?;
    tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
}

enum ServerChoice {
    Script(String),
    GitHub(String),
}

struct ServerOptions {
    port: u16,
    what: ServerChoice,
    log: Option<String>,
}

impl ServerOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut port, mut what, mut log) = (0, None, None);
        while let Some(word) = words.next() {
            let value = words.next().ok_or(USAGE)?;
            match word.as_str() {
                "--port" => {
                    port =
                        value.parse().map_err(|_| format!("`{value}` is not a port; {USAGE}"))?;
                }
                "--script" => what = Some(ServerChoice::Script(value)),
                "--github" => what = Some(ServerChoice::GitHub(value)),
                "--log" => log = Some(value),
                _ => return Err(format!("`{word}` is not an option; {USAGE}")),
            }
        }
        Ok(ServerOptions { port, what: what.ok_or(USAGE)?, log })
    }
}

fn create_file(path: &str) -> Result<File, String> {
    File::create(path).map_err(|error| format!("{path}: {error}"))
}

fn read_file(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let mut text = String::new();
    let mut limited = file.take(limits::SCRIPT_BYTES_MAX);
    limited.read_to_string(&mut text).map_err(|error| format!("{path}: {error}"))?;
    Ok(text)
}
