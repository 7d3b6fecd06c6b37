//! Events as GitHub sends them, with names of our own invention.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_github::event::{ActionsEnvironment, GitHubEventContext, read_event};

fn folder() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/events")
}

/// The names of all fixtures.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names.into_iter().map(|name| name.trim_end_matches(".json").to_owned()).collect()
}

/// The text of a fixture.
pub(crate) fn payload(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    repertoire_text::fs::read_text(&path, 1 << 20).unwrap()
}

/// The surroundings of a run on that event.
pub(crate) fn surroundings(name: &str) -> ActionsEnvironment {
    let event = name.split('.').next().unwrap();
    ActionsEnvironment::from_pairs([
        ("GITHUB_EVENT_NAME", event),
        ("GITHUB_REPOSITORY", "brewery/kettle"),
        ("GITHUB_RUN_ID", "991"),
        ("GITHUB_RUN_ATTEMPT", "1"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_ACTOR", ""),
    ])
}

/// A fixture as a value.
#[track_caller]
pub(crate) fn context(name: &str) -> GitHubEventContext {
    read_event(&payload(name), &surroundings(name)).unwrap()
}

/// The same with another text that it brought.
#[track_caller]
pub(crate) fn saying(name: &str, text: &str) -> GitHubEventContext {
    let mut context = context(name);
    context.said.as_mut().expect("an event that brings a text").text = text.to_owned();
    context
}
