//! Finds credentials that a checkout left in the configuration of its repository.
//!
//! `actions/checkout` stores the token there unless told otherwise, in newer versions in a separate
//! file, and every worktree of the repository shares that configuration: an agent could read the
//! token, and its git would push with it. So a run does not start while such credentials exist.

use std::sync::LazyLock;

use regex::Regex;

use repertoire_git::repo::{GitClient, GitError};

/// A setting that grants access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistedCredential {
    /// The key of the setting, with credentials redacted.
    pub key: String,
    pub file: String,
}

/// Returns the credentials in the repository's own configuration, including files it includes. The
/// user's configuration is out of the reach of agents, so it is not checked.
///
/// # Errors
///
/// If git cannot be run.
pub async fn find_persisted(git: &GitClient) -> Result<Vec<PersistedCredential>, GitError> {
    let listed = git.configuration_with_files().await?;
    Ok(parse_settings(&String::from_utf8_lossy(&listed)))
}

/// Parses the list of settings: scope, file, and the key with its value on the next line, each
/// terminated by a NUL.
fn parse_settings(listed: &str) -> Vec<PersistedCredential> {
    let fields: Vec<&str> = listed.split('\0').collect();
    let settings =
        fields.chunks_exact(3).filter(|fields| matches!(fields[0], "local" | "worktree"));
    let persisted = settings.filter_map(|fields| {
        let (key, value) = fields[2].split_once('\n').unwrap_or((fields[2], ""));
        grants_access(key, value).then(|| PersistedCredential {
            key: USER_INFO.replace_all(key, "$1***@").into_owned(),
            file: fields[1].trim_start_matches("file:").to_owned(),
        })
    });
    persisted.collect()
}

/// Returns true if a setting grants access. git prints sections and the last part of a key in lower
/// case. An empty value resets earlier ones.
fn grants_access(key: &str, value: &str) -> bool {
    let is = |section: &str, name: &str| key.starts_with(section) && key.ends_with(name);
    let kept = is("http.", ".extraheader") || is("credential.", ".helper");
    kept && !value.trim().is_empty() || USER_INFO.is_match(key) || USER_INFO.is_match(value)
}

/// Matches a user name or password in a URL. The user of an `ssh` URL is not a secret.
static USER_INFO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(https?://)[^/\s@]+@")
        .expect("the patterns of this program are written right")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scope: &str, key: &str, value: &str, expect: &[&str]) {
        let listed = format!("{scope}\0file:.git/config\0{key}\n{value}\0");
        let keys: Vec<String> =
            parse_settings(&listed).into_iter().map(|found| found.key).collect();
        assert_eq!(keys, expect, "{key}");
    }

    #[test]
    fn what_lets_somebody_in_is_found_and_not_told() {
        let header = "http.https://github.com/.extraheader";
        check("local", header, "AUTHORIZATION: basic eC1h", &[header]);
        check("worktree", "http.extraheader", "x: y", &["http.extraheader"]);
        check("local", "credential.helper", "store --file=/t", &["credential.helper"]);
        check(
            "local",
            "remote.origin.url",
            "https://x:hidden@github.com/o/r",
            &["remote.origin.url"],
        );
        check(
            "local",
            "url.https://hidden@github.com/.insteadof",
            "https://github.com/",
            &["url.https://***@github.com/.insteadof"],
        );
    }

    #[test]
    fn an_ordinary_checkout_has_none() {
        check("local", "remote.origin.url", "https://github.com/o/r", &[]);
        check("local", "remote.origin.url", "ssh://git@github.com/o/r", &[]);
        check("local", "http.https://github.com/.extraheader", "", &[]);
        check("local", "credential.helper", "", &[]);
        check("local", "user.email", "a@b.example", &[]);
        check("global", "credential.helper", "store", &[]);
    }
}
