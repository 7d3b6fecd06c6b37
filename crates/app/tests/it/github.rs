//! The driver for GitHub, against a fake one and with real repositories.

use repertoire_github::client::retry::Policy;
use repertoire_github::client::{Client, Settings};
use repertoire_model::Secret;
use repertoire_scripted::github::{GitHubServer, TOKEN};

mod automerge;
mod publish;
mod tasks;
mod tracking;

const BOT: &str = "github-actions[bot]";

fn client(server: &GitHubServer) -> Client {
    let policy = Policy { initial_ms: 1, margin_ms: 0, ..Policy::default() };
    let token = Some(Secret::new(TOKEN));
    let settings = Settings { policy, ..Settings::new(&server.url(), token, "octo", "repo") };
    Client::new(settings).unwrap()
}
