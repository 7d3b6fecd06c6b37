//! Where plans are, if nobody says.

use camino::{Utf8Path, Utf8PathBuf};

/// Files that are a plan by their name, in the order in which they are looked for.
pub const NAMES: [&str; 4] = ["PLAN.md", "plan.md", "TASKS.md", "tasks.md"];
/// Folders whose folders may each have a `tasks.md`.
pub const FOLDERS: [&str; 2] = ["specs", "openspec/changes"];
/// Most folders that are looked into.
const FOLDERS_MAX: usize = 1_000;

/// The folders of a folder that have a `tasks.md`, sorted. Finished changes are archived, and no plans.
pub fn tasks_below(dir: &Utf8Path) -> Vec<String> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let names = entries.take(FOLDERS_MAX).flatten().map(|entry| entry.file_name().to_owned());
    let mut names: Vec<String> = names
        .filter(|name| name != "archive" && dir.join(name).join("tasks.md").is_file())
        .collect();
    names.sort();
    names
}

/// All plans of a project, as paths below it, in the order in which they are looked for.
pub fn all(project: &Utf8Path) -> Vec<Utf8PathBuf> {
    let named = NAMES.iter().map(Utf8PathBuf::from).filter(|path| project.join(path).is_file());
    let in_folders = FOLDERS.iter().flat_map(|folder| {
        let names = tasks_below(&project.join(folder));
        names.into_iter().map(move |name| Utf8PathBuf::from(format!("{folder}/{name}/tasks.md")))
    });
    named.chain(in_folders).collect()
}
