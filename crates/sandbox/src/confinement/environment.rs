//! The part of the environment that is passed on to programs.

use repertoire_text::secrets::is_secret_variable;

/// Keeps the variables that programs need, without any that look like a secret.
///
/// `HOME` is kept because tool chains are located through it; inside the sandbox, programs see a private home instead.
pub fn scrub_environment(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let mut kept: Vec<_> = environment
        .into_iter()
        .filter(|(name, _)| is_needed(name) && !is_secret_variable(name))
        .collect();
    kept.sort();
    kept
}

fn is_needed(name: &str) -> bool {
    NEEDED.contains(&name) || name.starts_with("LC_")
}

const NEEDED: &[&str] = &[
    "CARGO_HOME",
    "CARGO_TERM_COLOR",
    "CI",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOGNAME",
    "NO_COLOR",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_and_secrets_go() {
        let names = [
            "PATH",
            "LC_ALL",
            "HOME",
            "TERM",
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "LC_SECRET",
            "LC_api_key",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "AWS_PROFILE",
            "MY_THING",
        ];
        let environment = names.map(|name| (name.to_owned(), "x".to_owned()));
        let kept: Vec<_> =
            scrub_environment(environment).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["HOME", "LC_ALL", "PATH", "TERM"]);
    }
}
