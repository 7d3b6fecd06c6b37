//! `scripted-model`: the scripted server by hand, for trying programs without a model.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use repertoire_scripted::{Script, Server, limits};

const USAGE: &str = "usage: scripted-model --script FILE.json [--port N]";

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
    let options = Options::of(std::env::args().skip(1))?;
    let script = read(&options.script).map_err(|error| format!("{}: {error}", options.script))?;
    let started = Server::start_on(options.port, script).await;
    let server = started.map_err(|error| format!("port {}: {error}", options.port))?;
    writeln!(io::stdout(), "{}", server.url()).map_err(|error| error.to_string())?;
    tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
}

struct Options {
    port: u16,
    script: String,
}

impl Options {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut port, mut script) = (0, None);
        while let Some(word) = words.next() {
            let value = words.next().ok_or(USAGE)?;
            match word.as_str() {
                "--port" => {
                    port =
                        value.parse().map_err(|_| format!("`{value}` is not a port; {USAGE}"))?;
                }
                "--script" => script = Some(value),
                _ => return Err(format!("`{word}` is not an option; {USAGE}")),
            }
        }
        Ok(Options { port, script: script.ok_or(USAGE)? })
    }
}

fn read(path: &str) -> Result<Script, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let mut limited = file.take(limits::SCRIPT_BYTES_MAX);
    limited.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Script::from_json(&text).map_err(|error| error.to_string())
}
