use std::collections::BTreeSet;

use super::*;

/// Checks the messages about a text; for YAML errors only the part before our own wording.
#[track_caller]
fn check(text: &str, dir_name: &str, expect: &[&str]) {
    let findings = validate(text, dir_name);
    let messages: Vec<&str> = findings
        .iter()
        .map(|finding| match finding.kind {
            SpecFindingKind::Yaml => finding.message.split_inclusive(": ").next().unwrap(),
            _ => finding.message.as_str(),
        })
        .collect();
    assert_eq!(messages, expect, "{text}");
}

#[track_caller]
fn check_name(name: &str, dir_name: &str, expect: &[&str]) {
    check(&format!("---\nname: {name}\ndescription: d\n---\n"), dir_name, expect);
}

#[test]
fn good_skills_have_no_findings() {
    check("---\nname: x\ndescription: d\n---\nBody", "x", &[]);
    check("---name: x\ndescription: d---", "x", &[]);
    check("---\r\nname: x\r\ndescription: d\r\n---\r\n", "x", &[]);
    check("---\rname: x\rdescription: d\r---\r", "x", &[]);
    check("---\nname: 123\ndescription: true\nlicense:\n---", "123", &[]);
    check("---\nname: x\ndescription: d\nallowed-tools:\n- Read\nmetadata:\n  a: 1\n---", "x", &[]);
}

#[test]
fn the_frontmatter_stands_between_the_first_two_fences() {
    check("# Title", "x", &["SKILL.md must start with YAML frontmatter (---)"]);
    check("\u{feff}---\na: b\n---", "x", &["SKILL.md must start with YAML frontmatter (---)"]);
    check("---\nname: x\n", "x", &["SKILL.md frontmatter not properly closed with ---"]);
    let cut = "---\nname: x\ndescription: a --- b\nlicense: [never read]\n---\n";
    check(cut, "x", &[]);
    check("----\nname: x\n---", "x", &["Invalid YAML in frontmatter: "]);
}

#[test]
fn the_frontmatter_must_be_a_mapping() {
    for frontmatter in ["", "\n\n", "# only a comment\n", "text\n", "- a\n- b\n", "|\n text\n"] {
        let text = format!("---\n{frontmatter}---\n");
        check(&text, "x", &["SKILL.md frontmatter must be a YAML mapping"]);
    }
    check("---\nname: [x]\n---", "x", &["Invalid YAML in frontmatter: "]);
}

#[test]
fn unexpected_fields_are_sorted_and_come_first() {
    let text = "---\nversion: 1\nÄ: 1\nauthor: me\nZ: 1\n---\n";
    let expect = [
        "Unexpected fields in frontmatter: Z, author, version, Ä. Only ['allowed-tools', \
         'compatibility', 'description', 'license', 'metadata', 'name'] are allowed.",
        "Missing required field in frontmatter: name",
        "Missing required field in frontmatter: description",
    ];
    check(text, "x", &expect);
}

#[test]
fn required_fields_must_be_texts() {
    let expect = [
        "Field 'name' must be a non-empty string",
        "Field 'description' must be a non-empty string",
    ];
    check("---\nname:\ndescription: '  '\n---", "x", &expect);
    check("---\nname:\n- a\ndescription:\n  a: b\n---", "x", &expect);
    check("---\nname: \"\\x1c\\u3000\"\ndescription: \"\\t\\n\"\n---", "x", &expect);
    // Two plain scalars have types of their own in YAML 1.1, and strictyaml keeps them.
    check("---\nname: =\ndescription: <<\n---", "x", &expect);
}

#[test]
fn name_rules_accumulate_in_order() {
    let long = "A".repeat(65);
    let expect = [
        format!("Skill name '-{long}--_' exceeds 64 character limit (69 chars)"),
        format!("Skill name '-{long}--_' must be lowercase"),
        "Skill name cannot start or end with a hyphen".to_owned(),
        "Skill name cannot contain consecutive hyphens".to_owned(),
        format!(
            "Skill name '-{long}--_' contains invalid characters. Only letters, digits, and \
             hyphens are allowed."
        ),
        format!("Directory name 'd' must match skill name '-{long}--_'"),
    ];
    check_name(&format!("-{long}--_"), "d", &expect.each_ref().map(String::as_str));
    check_name("x-", "x-", &["Skill name cannot start or end with a hyphen"]);
    check_name(&"é".repeat(64), &"é".repeat(64), &[]);
}

#[test]
fn names_are_compared_as_python_does() {
    check_name("日本語", "日本語", &[]);
    check_name("ﬁle", "file", &[]);
    check_name("file", "ﬁle", &[]);
    check_name("e\u{301}", "é", &[]);
    check_name("x²", "x2", &[]);
    check_name("groß", "groß", &[]);
    check_name("straẞe", "straẞe", &["Skill name 'straẞe' must be lowercase"]);
    let marks = "Skill name 'हिन्दी' contains invalid characters. Only letters, digits, and hyphens \
                 are allowed.";
    check_name("हिन्दी", "हिन्दी", &[marks]);
    check_name("' x '", "x", &[]);
    check_name("x", "y", &["Directory name 'y' must match skill name 'x'"]);
}

#[test]
fn long_texts_are_counted_in_characters() {
    let field = |name: &str, length: usize| {
        let value = "é".repeat(length);
        match name {
            "description" => format!("---\nname: x\ndescription: {value}\n---"),
            _ => format!("---\nname: x\ndescription: d\n{name}: {value}\n---"),
        }
    };
    check(&field("description", 1024), "x", &[]);
    let over = "Description exceeds 1024 character limit (1025 chars)";
    check(&field("description", 1025), "x", &[over]);
    check(&field("compatibility", 500), "x", &[]);
    let over = "Compatibility exceeds 500 character limit (501 chars)";
    check(&field("compatibility", 501), "x", &[over]);
    let list = "---\nname: x\ndescription: d\ncompatibility:\n- a\n---";
    check(list, "x", &["Field 'compatibility' must be a string"]);
    // Spaces count towards the limit, though not against emptiness; so does the final line break of a block.
    let padded = format!("---\nname: x\ndescription: |\n  {}\n---", "d".repeat(1024));
    check(&padded, "x", &["Description exceeds 1024 character limit (1025 chars)"]);
}

#[test]
fn findings_point_at_their_field() {
    let text = "---\r\nname: X\r\ndescription: d\r\nversion: 1\r\n---\r\n";
    let spans: Vec<&str> =
        validate(text, "X").iter().map(|finding| finding.span.unwrap().slice(text)).collect();
    assert_eq!(spans, ["version", "name: X"]);
    let text = "---\nname: x\ndescription: [a]\n---\n";
    assert_eq!(validate(text, "x")[0].span, Some(Span::new(25, 25)));
}

#[test]
fn findings_become_diagnostics_with_codes() {
    let text = "---\nname: X\ndescription: d\n---\n";
    let source = Source::new("X/SKILL.md", text);
    let diagnostic = validate(text, "X")[0].to_diagnostic(&source);
    assert_eq!(diagnostic.code.id, "RS513");
    assert_eq!(diagnostic.message, "Skill name 'X' must be lowercase");
    assert_eq!(diagnostic.position.unwrap().line, 2);
    assert!(diagnostic.is_error() && diagnostic.help.is_some());
    let diagnostic = validate("", "X")[0].to_diagnostic(&source);
    assert_eq!((diagnostic.code.id, diagnostic.span), ("RS505", None));
}

#[test]
fn codes_are_in_order_and_used_once() {
    let ids: Vec<&str> = codes::ALL.iter().map(|code| code.id).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids, unique.into_iter().collect::<Vec<_>>());
}

mod paths {
    use super::*;

    struct Folder {
        _guard: tempfile::TempDir,
        path: Utf8PathBuf,
    }

    /// Creates a folder `x` with one file in it.
    fn folder(file_name: &str, contents: &[u8]) -> Folder {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().join("x")).unwrap();
        fs::write_atomic(&path.join(file_name), contents).unwrap();
        Folder { _guard: guard, path }
    }

    #[track_caller]
    fn check_path(path: &Utf8Path, expect: &[&str]) {
        let findings = validate_path(path);
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expect);
    }

    const GOOD: &[u8] = b"---\nname: x\ndescription: d\n---\n";

    #[test]
    fn a_folder_or_its_file_can_be_named() {
        let skill = folder("SKILL.md", GOOD);
        check_path(&skill.path, &[]);
        check_path(&skill.path.join("SKILL.md"), &[]);
        check_path(&skill.path.join("."), &[]);
    }

    #[test]
    fn the_lower_case_file_counts_if_there_is_no_other() {
        let skill = folder("skill.md", GOOD);
        check_path(&skill.path, &[]);
        check_path(&skill.path.join("skill.md"), &[]);
    }

    #[test]
    fn missing_things_are_told_apart() {
        let skill = folder("README.md", b"");
        check_path(&skill.path, &["Missing required file: SKILL.md"]);
        let file = skill.path.join("README.md");
        check_path(&file, &[&format!("Not a directory: {file}")]);
        let none = skill.path.join("none");
        check_path(&none, &[&format!("Path does not exist: {none}")]);
        check_path(Utf8Path::new("./no//where/"), &["Path does not exist: no/where"]);
    }

    #[test]
    fn a_file_that_is_not_utf8_is_one_finding() {
        let skill = folder("SKILL.md", b"---\nname: x\ndescription: caf\xe9\n---\n");
        let expect = "SKILL.md cannot be read: the file is not UTF-8: byte 28 is wrong";
        check_path(&skill.path, &[expect]);
        assert_eq!(validate_path(&skill.path)[0].kind, SpecFindingKind::Unreadable);
    }

    #[test]
    fn paths_are_shown_as_python_shows_them() {
        for (path, shown) in
            [(".", "."), ("./a/", "a"), ("a//b/./c", "a/b/c"), ("/", "/"), ("../a", "../a")]
        {
            assert_eq!(shown_path(Utf8Path::new(path)), shown);
        }
    }
}
