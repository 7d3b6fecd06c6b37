use super::*;

struct Place {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
}

fn place() -> Place {
    let keep = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
    Place { _keep: keep, dir }
}

impl Place {
    fn folder(&self, path: &str) -> Utf8PathBuf {
        let folder = self.dir.join(path);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn file(&self, path: &str, text: &str) {
        crate::fs::write_atomic(&self.dir.join(path), text.as_bytes()).unwrap();
    }

    fn repository(&self, git_dir: &str) {
        self.folder(&format!("{git_dir}/objects"));
        self.folder(&format!("{git_dir}/refs"));
        self.file(&format!("{git_dir}/HEAD"), "ref: refs/heads/main\n");
    }

    fn top(&self, here: &str) -> Option<String> {
        let here = self.folder(here);
        let found = find_work_tree(&here, &self.dir.join("home"))?;
        Some(found.strip_prefix(&self.dir).unwrap().to_string())
    }
}

#[test]
fn an_empty_git_folder_makes_no_project() {
    let place = place();
    place.folder(".git");
    place.repository("a/.git");
    place.folder("a/b/.git");
    assert_eq!(place.top("a/b/c"), Some("a".to_owned()));
    assert_eq!(place.top("d"), None);
}

#[test]
fn every_part_of_a_repository_has_to_be_there() {
    for missing in ["HEAD", "objects", "refs"] {
        let place = place();
        place.repository("a/.git");
        let part = place.dir.join("a/.git").join(missing);
        if part.is_dir() { std::fs::remove_dir(&part) } else { std::fs::remove_file(&part) }
            .unwrap();
        assert_eq!(place.top("a"), None, "{missing}");
    }
    for (head, is_one) in
        [("ref: refs/heads/x", true), ("ref: elsewhere", false), ("nonsense", false)]
    {
        let place = place();
        place.repository("a/.git");
        place.file("a/.git/HEAD", head);
        assert_eq!(place.top("a").is_some(), is_one, "{head}");
    }
}

#[test]
fn a_linked_work_tree_leads_to_its_repository() {
    let place = place();
    place.repository("main/.git");
    place.file("main/.git/worktrees/w/HEAD", &"0".repeat(40));
    place.file("main/.git/worktrees/w/commondir", "../..\n");
    place.file("main/.git/worktrees/w/gitdir", "../../../../w/.git\n");
    place.file("w/.git", "gitdir: ../main/.git/worktrees/w\n");
    let RepositorySearch::Found(found) = search_repository(&place.folder("w/src"), &place.dir)
    else {
        panic!()
    };
    assert_eq!(found.top, place.dir.join("w"));
    assert_eq!(found.git_dir, place.dir.join("main/.git/worktrees/w"));
    assert_eq!(found.common_dir, place.dir.join("main/.git"));
}

#[test]
fn a_git_file_that_leads_nowhere_ends_the_search() {
    let place = place();
    place.repository(".git");
    place.file("a/.git", "gitdir: ../gone\n");
    let found = search_repository(&place.folder("a/b"), &place.dir);
    assert_eq!(
        found,
        RepositorySearch::Refused {
            top: place.dir.join("a"),
            reason: RepositoryRefusal::BrokenLink
        }
    );
}

#[test]
#[cfg(unix)]
fn a_repository_of_another_user_is_refused_unless_it_is_listed_as_safe() {
    let place = place();
    place.repository("a/.git");
    let nobody_here = RepositoryOwners {
        user_ids: vec![4_000_000],
        configurations: vec![place.dir.join("config")],
        home: place.dir.clone(),
    };
    let here = place.folder("a/b");
    let refused = RepositorySearch::Refused {
        top: place.dir.join("a"),
        reason: RepositoryRefusal::OtherOwner,
    };
    assert_eq!(search_repository_with(&here, &nobody_here), refused);
    place.file("config", &format!("[safe]\n\tdirectory = {}\n", place.dir.join("a")));
    assert!(matches!(search_repository_with(&here, &nobody_here), RepositorySearch::Found(_)));
}

/// An unpacked archive whose `.git` leads to another repository of the user, and a legitimate one beside it.
#[test]
#[cfg(unix)]
fn a_git_folder_of_another_work_tree_is_refused_unless_it_is_listed_as_safe() {
    let place = place();
    place.repository("private/.git");
    place.file("private/.git/config", "[core]\n\tbare = false\n");
    place.file("file/.git", "gitdir: ../private/.git\n");
    place.folder("link");
    std::os::unix::fs::symlink("../private/.git", place.dir.join("link/.git")).unwrap();
    place.repository("common/.git");
    place.file("common/.git/commondir", "../../private/.git\n");
    // A worktree of the private repository belongs to another folder.
    place.file("private/.git/worktrees/w/HEAD", &"0".repeat(40));
    place.file("private/.git/worktrees/w/commondir", "../..\n");
    place.file("private/.git/worktrees/w/gitdir", "../../../../w/.git\n");
    place.file("worktree/.git", "gitdir: ../private/.git/worktrees/w\n");
    // Submodules name their work tree, bare repositories have none.
    place.repository("private/.git/modules/sub");
    place.file("private/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
    place.file("module/.git", "gitdir: ../private/.git/modules/sub\n");
    place.repository("bare.git");
    place.file("bare.git/config", "[core]\n\tbare = true\n");
    place.file("bare/.git", "gitdir: ../bare.git\n");
    let owners = RepositoryOwners {
        configurations: vec![place.dir.join("home/config")],
        ..RepositoryOwners::of_process(&place.dir)
    };
    for name in ["file", "link", "common", "worktree", "module", "bare"] {
        let here = place.folder(&format!("{name}/inner"));
        let top = place.dir.join(name);
        let refused = RepositorySearch::Refused {
            top: top.clone(),
            reason: RepositoryRefusal::OtherWorkTree,
        };
        assert_eq!(search_repository_with(&here, &owners), refused, "{name}");
        place.file("home/config", &format!("[safe]\n\tdirectory = {top}\n"));
        assert!(
            matches!(search_repository_with(&here, &owners), RepositorySearch::Found(_)),
            "{name}"
        );
        place.file("home/config", "");
    }
}

#[test]
fn a_submodule_and_a_git_folder_kept_apart_are_found() {
    let place = place();
    place.repository("super/.git/modules/sub");
    place.file("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
    place.file("super/sub/.git", "gitdir: ../.git/modules/sub\n");
    place.repository("apart.git");
    place.file("apart.git/config", "[core]\n\tbare = false\n");
    place.file("apart/.git", "gitdir: ../apart.git\n");
    for name in ["super/sub", "apart"] {
        assert_eq!(place.top(name), Some(name.to_owned()));
    }
}
