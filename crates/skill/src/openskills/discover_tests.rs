use repertoire_text::fs::write_atomic;

use super::*;

struct Tree {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
    project: Utf8PathBuf,
    home: Utf8PathBuf,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        for (path, text) in files {
            write_atomic(&root.join(path), text.as_bytes()).unwrap();
        }
        Tree { project: root.join("proj"), home: root.join("home"), root, _keep: dir }
    }

    fn all(&self) -> String {
        let line = |found: &OpenSkillsSkill| {
            assert_eq!(found.file, found.dir.join("SKILL.md"));
            let dir = found.dir.strip_prefix(&self.root).unwrap();
            format!("{} {:?} {dir}: {}\n", found.name, found.location, found.description)
        };
        find_all_skills(&self.project, &self.home).iter().map(line).collect()
    }

    fn find(&self, name: &str) -> Option<String> {
        let found = find(name, &self.project, &self.home)?;
        assert_eq!(found.name, name);
        Some(found.dir.strip_prefix(&self.root).unwrap().to_string())
    }
}

#[test]
fn descriptions_are_read_as_its_regex_reads_them() {
    #[track_caller]
    fn check(content: &str, expect: &str) {
        assert_eq!(extract_description(content), expect);
    }
    check("---\nname: a\ndescription: Plain text. \n---\n", "Plain text.");
    check("---\r\ndescription: CRLF\r\n---\r\n", "CRLF");
    check("---\ndescription: >-\n  Folded\n---\n", ">-");
    check("---\ndescription: \"Say \\\"go\\\" $&\"\n---\n", "\"Say \\\"go\\\" $&\"");
    check("---\ndescription:\n\n  On the next line.\n---\n", "On the next line.");
    check("---\ndescription:\n---\nBody\n", "---");
    check("---\nname: a\n---\nText\ndescription: from the body\n", "from the body");
    check("---\n description: indented\nmy-description: other\n---\n", "");
    check("\u{feff}description: after a mark\n", "");
    check("a\u{2028}description: x\u{2029}y", "x");
    check("description:\u{feff}\u{a0}x\u{85}y\u{feff}\n", "x\u{85}y");
    check("description:nospace", "nospace");
    check("description: \n \n", "");
    check("description:", "");
    check("", "");
}

#[test]
fn roots_are_searched_in_turn_and_the_first_name_wins() {
    let tree = Tree::new(&[
        ("proj/.claude/skills/b/SKILL.md", "description: shadowed\n"),
        ("proj/.claude/skills/a b.é/SKILL.md", "description: odd name\n"),
        ("proj/.claude/skills/lower/skill.md", "description: wrong case\n"),
        ("proj/.claude/skills/group/nested/SKILL.md", "description: too deep\n"),
        ("proj/.claude/skills/SKILL.md", "description: in the root\n"),
        ("proj/.agent/skills/z/SKILL.md", "no description\n"),
        ("proj/.agents/skills/other/SKILL.md", "description: not a root\n"),
        ("home/.agent/skills/b/SKILL.md", "description: wins\n"),
        ("home/.claude/skills/Z/SKILL.md", "description: case matters\n"),
    ]);
    insta::assert_snapshot!(tree.all(), @r"
    z Project proj/.agent/skills/z: 
    b Global home/.agent/skills/b: wins
    a b.é Project proj/.claude/skills/a b.é: odd name
    Z Global home/.claude/skills/Z: case matters
    ");
}

#[test]
fn in_the_home_folder_everything_is_of_the_project() {
    let tree = Tree::new(&[("home/.claude/skills/a/SKILL.md", "description: a\n")]);
    let found = find_all_skills(&tree.home, &tree.home);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].location, SkillLocation::Project);
    assert_eq!(find_all_skills(&tree.root, &tree.home)[0].location, SkillLocation::Project);
}

#[test]
fn missing_roots_hold_no_skills_and_a_file_is_reported() {
    let tree = Tree::new(&[("proj/.agent/skills", "a file\n")]);
    let (skills, diagnostics) = scan_skills(&tree.project, &tree.home);
    assert!(skills.is_empty());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].path, Some(tree.project.join(".agent/skills")));
    assert_eq!(tree.find("a"), None);
}

#[test]
fn names_are_paths_that_stay_in_the_roots() {
    let tree = Tree::new(&[
        ("proj/.agent/skills/pdf/SKILL.md", "p"),
        ("proj/.claude/skills/group/nested/SKILL.md", "n"),
        ("home/.claude/skills/pdf/SKILL.md", "shadowed"),
        ("home/.claude/skills/zed/SKILL.md", "z"),
        ("home/.agent/skills/SKILL.md", "r"),
        ("proj/secret/SKILL.md", "s"),
        ("secret/SKILL.md", "s"),
    ]);
    let check = |name: &str, expect: Option<&str>| {
        assert_eq!(tree.find(name).as_deref(), expect, "{name}");
    };
    check("pdf", Some("proj/.agent/skills/pdf"));
    check("zed", Some("home/.claude/skills/zed"));
    check("group/nested", Some("proj/.claude/skills/group/nested"));
    check("./group//x/../nested", Some("proj/.claude/skills/group/nested"));
    check("../../.agent/skills/pdf", Some("proj/.agent/skills/pdf"));
    check("../skills/./pdf", Some("proj/.agent/skills/pdf"));
    check(".", Some("home/.agent/skills"));
    check("nested", None);
    check("group", None);
    check("../../secret", None);
    check("../../../secret", None);
    check("pdf/../../../../secret", None);
    check("nul\0", None);
    check(tree.root.join("secret").as_str(), None);
    let slash = find("pdf/", &tree.project, &tree.home).unwrap();
    assert!(slash.dir.as_str().ends_with("/pdf/"));
}

#[test]
fn content_is_whole_and_lossy() {
    let tree = Tree::new(&[("proj/.agent/skills/a/SKILL.md", "")]);
    let file = tree.project.join(".agent/skills/a/SKILL.md");
    write_atomic(&file, b"\xef\xbb\xbfdescription: x\r\ndescription: caf\xe9\n").unwrap();
    let found = find("a", &tree.project, &tree.home).unwrap();
    assert_eq!(found.description, "caf\u{fffd}");
    assert_eq!(
        found.read_content().unwrap(),
        "\u{feff}description: x\r\ndescription: caf\u{fffd}\n"
    );
    assert_eq!(found.to_entry().name, "a");
}

#[cfg(unix)]
#[test]
fn linked_folders_are_followed_and_linked_files_stay_inside() {
    use std::os::unix::fs::symlink;
    let tree = Tree::new(&[
        ("elsewhere/one/SKILL.md", "description: one\n"),
        ("proj/.agent/skills/inner/docs/real.md", "description: inner\n"),
        ("proj/.agent/skills/outer/notes.md", ""),
        ("proj/.agent/skills/big/SKILL.md", ""),
        ("secret", "description: secret\n"),
    ]);
    let skills = tree.project.join(".agent/skills");
    symlink("../../../elsewhere/one", skills.join("linked")).unwrap();
    symlink("nowhere", skills.join("broken")).unwrap();
    symlink("../../../secret", skills.join("no-folder")).unwrap();
    symlink("docs/real.md", skills.join("inner/SKILL.md")).unwrap();
    symlink(tree.root.join("secret"), skills.join("outer/SKILL.md")).unwrap();
    std::fs::create_dir_all(skills.join("folder/SKILL.md")).unwrap();
    let big = std::fs::File::create(skills.join("big/SKILL.md")).unwrap();
    big.set_len(3 << 20).unwrap();

    insta::assert_snapshot!(tree.all(), @r"
    inner Project proj/.agent/skills/inner: inner
    linked Project proj/.agent/skills/linked: one
    ");
    assert_eq!(tree.find("outer"), None);
    let messages: Vec<_> = scan_skills(&tree.project, &tree.home).1;
    let messages: Vec<_> = messages.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    the file has 3145728 bytes; the limit is 2097152
    this is a folder, not a regular file
    a symbolic link leads out of the folder
    ");
}
