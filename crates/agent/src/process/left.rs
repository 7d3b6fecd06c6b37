//! Processes that somebody started who is gone: whoever was killed could not end them.

use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal, kill_process};

/// How often it is looked for more of them: one that is being killed may have started another.
const PASSES_MAX: usize = 50;
/// How long they have to vanish before the next look.
const PASS_WAIT: Duration = Duration::from_millis(10);
/// Most of an environment that is read.
#[cfg(target_os = "linux")]
const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Ends all processes whose environment has a variable of this name with a value that `is_left` knows, wherever they have
/// moved to meanwhile, and says how many there were. Only Linux shows the environment of others; elsewhere nothing is done.
///
/// It waits for them to end, so a runtime calls it where waiting is allowed.
pub fn end_left(name: &str, is_left: impl Fn(&str) -> bool) -> usize {
    let mut ended = std::collections::BTreeSet::new();
    for _ in 0..PASSES_MAX {
        let found = find(name, &is_left);
        if found.is_empty() {
            break;
        }
        for id in found {
            kill(id);
            ended.insert(id);
        }
        std::thread::sleep(PASS_WAIT);
    }
    ended.len()
}

#[cfg(target_os = "linux")]
fn find(name: &str, is_left: &impl Fn(&str) -> bool) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    ids.filter(|id: &i32| *id != own && variable(*id, name).is_some_and(|value| is_left(&value)))
        .collect()
}

/// The value that a process was started with; one that has ended has none.
#[cfg(target_os = "linux")]
fn variable(id: i32, name: &str) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(format!("/proc/{id}/environ")).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let mut entries = bytes.split(|byte| *byte == 0);
    entries.find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

#[cfg(target_os = "linux")]
fn kill(id: i32) {
    if let Some(id) = Pid::from_raw(id) {
        // It may have ended by itself.
        let _ = kill_process(id, Signal::KILL);
    }
}

#[cfg(not(target_os = "linux"))]
fn find(_name: &str, _is_left: &impl Fn(&str) -> bool) -> Vec<i32> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn kill(_id: i32) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper(value: &str) -> Child {
        Command::new("sleep")
            .arg("600")
            .env("REPERTOIRE_TEST_LEFT", value)
            .spawn()
            .expect("there is a sleep")
    }

    #[test]
    fn only_those_that_are_meant_are_ended() {
        let mark = format!("left-{}", std::process::id());
        let (mut left, mut other) = (sleeper(&mark), sleeper(&format!("{mark}-not")));
        assert_eq!(end_left("REPERTOIRE_TEST_LEFT", |value| value == mark), 1);
        assert!(!left.wait().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(end_left("REPERTOIRE_TEST_LEFT", |value| value.starts_with(&mark)), 0);
    }
}
