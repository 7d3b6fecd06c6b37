//! Removing runs with their folders.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{
    Journal, JournalError, NewRun, Payload, Run, RunFolder, RunFolderError, RunId, RunKind,
    RunRemovalError,
};

use super::{Place, completed, new_run};

/// A folder of runs.
struct RunsFolder {
    _folder: tempfile::TempDir,
    path: Utf8PathBuf,
}

impl RunsFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("runs");
        RunsFolder { _folder: folder, path }
    }

    /// Creates the folder of a run, with a file.
    fn add(&self, id: &RunId) -> RunFolder {
        let folder = RunFolder::new(&self.path, id);
        drop(folder.acquire_lock().unwrap());
        fs::File::create(folder.path().join("report.md")).unwrap();
        folder
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

async fn conversation(journal: &Journal) -> Run {
    let kind = RunKind::Conversation.as_str().into();
    let new = NewRun { kind, ..new_run("talk") };
    journal.create_attended(new, vec![completed()]).await.unwrap()
}

pub(crate) async fn a_run_that_was_continued_is_not_removed(place: Place) {
    let (journal, runs) = (place.open().await, RunsFolder::new());
    let run = conversation(&journal).await;
    let folder = runs.add(&run.id);
    let again = Payload::RunResumed { by: "me".into(), limits: None };
    let continued = journal.append_attended(&run.id, run.seq, vec![again]).await.unwrap();
    let refused = journal.remove_run(&runs.path, &run).await;
    let Err(RunRemovalError::Journal(JournalError::Conflict { found: 3, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(journal.run(&run.id).await.unwrap().as_ref(), Some(&continued));
    assert_eq!(runs.names(), [run.id.as_str()]);
    assert!(folder.path().join("report.md").exists() && !folder.is_locked());
    journal.remove_run(&runs.path, &continued).await.unwrap();
    assert_eq!((journal.run(&run.id).await.unwrap(), runs.names()), (None, Vec::new()));
}

pub(crate) async fn a_run_in_use_is_not_removed(place: Place) {
    let (journal, runs) = (place.open().await, RunsFolder::new());
    let run = conversation(&journal).await;
    let lock = runs.add(&run.id).acquire_lock().unwrap();
    for refused in [
        journal.remove_run(&runs.path, &run).await,
        journal.remove_damaged_run(&runs.path, &run.id).await,
    ] {
        let Err(RunRemovalError::Folder(RunFolderError::InUse { .. })) = refused else {
            panic!("{refused:?}")
        };
    }
    assert_eq!(journal.run(&run.id).await.unwrap(), Some(run.clone()));
    assert_eq!(runs.names(), [run.id.as_str()]);
    drop(lock);
    journal.remove_run(&runs.path, &run).await.unwrap();
}

/// A process was killed after it had marked the folder, before or after it deleted the events.
pub(crate) async fn an_interrupted_removal_is_completed(place: Place) {
    let (journal, runs) = (place.open().await, RunsFolder::new());
    let stays = conversation(&journal).await.id;
    let (gone, locked, empty) = (RunId::new(), RunId::new(), RunId::new());
    let mark =
        |id: &RunId| drop(fs::File::create(runs.path.join(format!(".removed-{id}"))).unwrap());
    for id in [&stays, &gone, &locked] {
        runs.add(id);
        mark(id);
    }
    mark(&empty);
    let lock = RunFolder::new(&runs.path, &locked).acquire_lock().unwrap();
    journal.complete_removals(&runs.path).await.unwrap();
    let mut expected = vec![stays.to_string(), locked.to_string(), format!(".removed-{locked}")];
    expected.sort();
    assert_eq!(runs.names(), expected);
    drop(lock);
    journal.complete_removals(&runs.path).await.unwrap();
    assert_eq!(runs.names(), [stays.as_str()]);
    assert!(runs.path.join(stays.as_str()).join("report.md").exists());
}

pub(crate) async fn a_name_that_is_no_id_removes_no_folder(place: Place) {
    let (journal, runs) = (place.open().await, RunsFolder::new());
    runs.add(&RunId::known("a-run"));
    for name in [".removed-", ".removed-.", ".removed-..", ".removed-.removed-a-run"] {
        fs::File::create(runs.path.join(name)).unwrap();
    }
    journal.complete_removals(&runs.path).await.unwrap();
    for id in ["..", ".", ""] {
        journal.remove_damaged_run(&runs.path, &RunId::known(id)).await.unwrap();
        let new = NewRun { id: RunId::known(id), ..new_run("odd") };
        let refused = journal.create(new).await;
        assert!(matches!(refused, Err(JournalError::Refused { .. })), "{refused:?}");
    }
    assert!(runs.path.join("a-run/report.md").exists());
    journal.complete_removals(&runs.path.join("missing")).await.unwrap();
}
