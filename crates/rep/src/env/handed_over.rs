//! Secrets out of the environment of a process that works on other people's text.
//!
//! The system shows the environment that a program was started with to every program of the same user, for as long as it
//! runs. `rep github run` therefore starts itself anew without its secrets there, and hands them over through a pipe.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use repertoire_text::secrets::is_secret_variable;

/// Names the pipe. A process that has it does not start itself once more.
const PIPE: &str = "REPERTOIRE_HANDED_OVER";
/// The maximum size of all secrets: a pipe takes more than this before somebody reads it.
const BYTES_MAX: usize = 32 * 1024;

/// Takes over secrets that the process before this one handed over.
pub(super) fn take(vars: &mut BTreeMap<String, String>) {
    let Some(path) = vars.remove(PIPE) else { return };
    if !path.starts_with("/dev/fd/") {
        return;
    }
    let mut text = String::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|file| file.take(BYTES_MAX as u64).read_to_string(&mut text));
    let secrets: Option<BTreeMap<String, String>> =
        read.ok().and_then(|_| serde_json::from_str(&text).ok());
    vars.extend(secrets.unwrap_or_default());
}

/// Becomes the same program with the same arguments and no secrets in its environment. Returns if there are none, or if that
/// is not possible here.
#[cfg(unix)]
pub(crate) fn become_without_secrets_in_environment() {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;

    if std::env::vars_os().any(|(name, _)| name == PIPE) {
        return;
    }
    let secrets: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| is_secret_variable(name) && !value.is_empty())
        .collect();
    let text = serde_json::to_string(&secrets).unwrap_or_default();
    let (Ok(program), false) = (std::env::current_exe(), secrets.is_empty()) else { return };
    let Ok((reader, mut writer)) = std::io::pipe() else { return };
    let kept_open = rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty());
    if text.len() > BYTES_MAX || kept_open.is_err() || writer.write_all(text.as_bytes()).is_err() {
        return;
    }
    let mut again = std::process::Command::new(program);
    again.args(std::env::args_os().skip(1));
    for name in secrets.keys() {
        again.env_remove(name);
    }
    again.env(PIPE, format!("/dev/fd/{}", reader.as_raw_fd()));
    // Only comes back if it failed. The walls still keep programs from reading our environment.
    let _ = again.exec();
}

/// Nothing is known of other systems.
#[cfg(not(unix))]
pub(crate) fn become_without_secrets_in_environment() {}
