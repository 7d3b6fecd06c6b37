//! Removes secrets from the environment of a process that handles outsiders' text.
//!
//! The initial environment of a process is readable for all programs of the same user while it
//! runs. `rep github run` therefore re-executes itself without secrets in the environment, and
//! passes them through a pipe.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use repertoire_text::secrets::is_secret_variable;

/// The variable that names the pipe. A process that has it does not re-execute itself again.
const PIPE: &str = "REPERTOIRE_HANDED_OVER";
/// Maximum size of all secrets. A pipe buffers more than this, so writing does not block.
const BYTES_MAX: usize = 32 * 1024;

/// Reads the secrets from the pipe, if the process was re-executed.
pub(super) fn take_secrets(vars: &mut BTreeMap<String, String>) {
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

/// Replaces the process by the same program with the same arguments, without secrets in its
/// environment. Returns if there are no secrets, or if it is not possible.
#[cfg(unix)]
pub fn become_without_secrets_in_environment() {
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
    // Returns only on failure. The sandbox still keeps programs from reading our environment.
    let _ = again.exec();
}

/// Does nothing: re-executing is implemented on Unix only.
#[cfg(not(unix))]
pub fn become_without_secrets_in_environment() {}
