//! The driver for GitHub, against a fake one and with real repositories.

use repertoire_github::client::retry::CallRetryPolicy;
use repertoire_github::client::{ClientSettings, GitHubClient};
use repertoire_model::ApiSecret;
use repertoire_scripted::github::{GitHubServer, TOKEN};

mod automerge;
mod publish;
mod tasks;
mod tracking;

const BOT: &str = "github-actions[bot]";

fn client(server: &GitHubServer) -> GitHubClient {
    let policy = CallRetryPolicy { initial_ms: 1, margin_ms: 0, ..CallRetryPolicy::default() };
    let token = Some(ApiSecret::new(TOKEN));
    let settings =
        ClientSettings { policy, ..ClientSettings::new(&server.url(), token, "octo", "repo") };
    GitHubClient::new(settings).unwrap()
}
