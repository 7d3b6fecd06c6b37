//! Default locations of plan files.

use camino::{Utf8Path, Utf8PathBuf};

/// File names of plans, in search order.
pub const NAMES: [&str; 4] = ["PLAN.md", "plan.md", "TASKS.md", "tasks.md"];
/// Folders whose subfolders may each contain a `tasks.md`.
pub const FOLDERS: [&str; 2] = ["specs", "openspec/changes"];
/// Maximum number of subfolders that are searched.
const FOLDERS_MAX: usize = 1_000;

/// The subfolders that contain a `tasks.md`, sorted. Skips `archive`, which holds finished changes.
pub fn tasks_below(dir: &Utf8Path) -> Vec<String> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let names = entries.take(FOLDERS_MAX).flatten().map(|entry| entry.file_name().to_owned());
    let mut names: Vec<String> = names
        .filter(|name| name != "archive" && dir.join(name).join("tasks.md").is_file())
        .collect();
    names.sort();
    names
}

/// All plans of a project, as relative paths in search order.
pub fn find_plans(project: &Utf8Path) -> Vec<Utf8PathBuf> {
    let named = NAMES.iter().map(Utf8PathBuf::from).filter(|path| project.join(path).is_file());
    let in_folders = FOLDERS.iter().flat_map(|folder| {
        let names = tasks_below(&project.join(folder));
        names.into_iter().map(move |name| Utf8PathBuf::from(format!("{folder}/{name}/tasks.md")))
    });
    named.chain(in_folders).collect()
}
