use proptest::prelude::*;

use super::super::{OpenSkillsEntry, SkillLocation, render_block};
use super::*;

const BLOCK: &str = "<skills_system priority=\"1\">\n<!-- SKILLS_TABLE_START -->\nnew\n\
                     <!-- SKILLS_TABLE_END -->\n</skills_system>";

fn compat(existing: Option<&str>, block: &str) -> UpdatedSkillsFile {
    update_block(existing, "AGENTS", block, OpenSkillsStyle::Compat).unwrap()
}

fn ours(existing: &str) -> Result<UpdatedSkillsFile, MarkerError> {
    update_block(Some(existing), "AGENTS", BLOCK, OpenSkillsStyle::Repertoire)
}

#[track_caller]
fn check_compat(existing: Option<&str>, block: &str, expect: &str, outcome: BlockUpdateOutcome) {
    let updated = compat(existing, block);
    assert_eq!((updated.text.as_str(), updated.outcome), (expect, outcome));
}

#[test]
fn compat_creates_adds_and_replaces() {
    check_compat(None, "B", "# AGENTS\n\nB\n", BlockUpdateOutcome::Created);
    check_compat(Some("text \n\n\u{feff}"), "B", "text\n\nB\n", BlockUpdateOutcome::Added);
    check_compat(Some(""), "B", "\n\nB\n", BlockUpdateOutcome::Added);
    let two = "a<skills_system x\n>1</skills_system>b<skills_system>2</skills_system>";
    check_compat(Some(two), "B", "aBb<skills_system>2</skills_system>", BlockUpdateOutcome::Synced);
    check_compat(
        Some("<skills_system>open"),
        "B",
        "<skills_system>open",
        BlockUpdateOutcome::Synced,
    );
}

#[test]
fn compat_takes_dollars_for_a_template() {
    let old = "a<skills_system>1</skills_system>b";
    check_compat(
        Some(old),
        "[$& $1 $$ $` $']",
        "a[<skills_system>1</skills_system> $1 $ a b]b",
        BlockUpdateOutcome::Synced,
    );
}

#[test]
fn compat_wraps_html_markers_in_themselves() {
    let old = "a\n<!-- SKILLS_TABLE_START -->old<!-- SKILLS_TABLE_END -->\nb";
    let updated = compat(Some(old), BLOCK);
    assert_eq!(updated.outcome, BlockUpdateOutcome::Synced);
    insta::assert_snapshot!(updated.text, @r"
    a
    <!-- SKILLS_TABLE_START -->

    <!-- SKILLS_TABLE_START -->
    new
    <!-- SKILLS_TABLE_END -->

    <!-- SKILLS_TABLE_END -->
    b
    ");
    let open = "<!-- SKILLS_TABLE_START -->open";
    check_compat(Some(open), "B", open, BlockUpdateOutcome::Synced);
}

#[test]
fn ours_adds_after_a_blank_line_and_keeps_what_is_there() {
    #[track_caller]
    fn check(existing: &str, gap: &str) {
        let updated = ours(existing).unwrap();
        assert_eq!(updated.text, format!("{existing}{gap}{BLOCK}\n"));
        assert_eq!(updated.outcome, BlockUpdateOutcome::Added);
    }
    check("", "");
    check("text", "\n\n");
    check("text  \n", "\n");
    check("text\n\n\n", "");
    check("Mind the `<skills_system>` block, up to `</skills_system>`.\n", "\n");
    check("<skills_systems>\n", "\n");
}

#[test]
fn ours_replaces_only_the_block_and_settles() {
    let old = "# A  \n\n<skills_system priority=\"0\">\nold $&\n</skills_system> tail\n\n\n";
    let updated = ours(old).unwrap();
    assert_eq!(updated.text, format!("# A  \n\n{BLOCK} tail\n\n\n"));
    assert_eq!(updated.outcome, BlockUpdateOutcome::Synced);
    let again = ours(&updated.text).unwrap();
    assert_eq!(
        again,
        UpdatedSkillsFile { text: updated.text, outcome: BlockUpdateOutcome::Unchanged }
    );
}

#[test]
fn ours_keeps_inner_markers_without_wrapping_them() {
    let updated = ours("a\n<!-- SKILLS_TABLE_START --><!-- SKILLS_TABLE_END -->\nb").unwrap();
    insta::assert_snapshot!(updated.text, @r"
    a
    <!-- SKILLS_TABLE_START -->
    new
    <!-- SKILLS_TABLE_END -->
    b
    ");
    assert_eq!(ours(&updated.text).unwrap().outcome, BlockUpdateOutcome::Unchanged);
}

#[test]
fn ours_keeps_windows_line_breaks() {
    let added = ours("# A\r\n").unwrap().text;
    assert_eq!(added, format!("# A\r\n\r\n{}\r\n", BLOCK.replace('\n', "\r\n")));
    assert_eq!(ours(&added).unwrap().outcome, BlockUpdateOutcome::Unchanged);
    let replaced = ours("# A\r\n<skills_system>\n</skills_system>\r\n").unwrap().text;
    assert_eq!(replaced, format!("# A\r\n{}\r\n", BLOCK.replace('\n', "\r\n")));
}

#[test]
fn ours_refuses_markers_that_do_not_pair() {
    #[track_caller]
    fn check(existing: &str, expect: &str) {
        assert_eq!(ours(existing).unwrap_err().to_string(), expect);
    }
    check(
        "a\n<skills_system>\n",
        "`<skills_system` on line 2 is never closed by `</skills_system>`",
    );
    check("</skills_system>", "`</skills_system>` on line 1 has no `<skills_system` before it");
    check(
        "</skills_system>\n<skills_system>",
        "`</skills_system>` on line 1 has no `<skills_system` before it",
    );
    check(
        "</skills_system>\n<skills_system>\n</skills_system>",
        "`</skills_system>` on line 1 has no `<skills_system` before it",
    );
    check(
        "<skills_system>\n</skills_system>\n\n</skills_system>",
        "`</skills_system>` on line 4 has no `<skills_system` before it",
    );
    check(
        &format!("{BLOCK}\n{BLOCK}\n"),
        "there is more than one block: `<skills_system` on line 1 and on line 6",
    );
    check(
        "<!-- SKILLS_TABLE_START -->",
        "`<!-- SKILLS_TABLE_START -->` on line 1 is never closed by `<!-- SKILLS_TABLE_END -->`",
    );
}

#[test]
fn ours_refuses_what_the_dollar_bug_left_behind() {
    let first = compat(None, "<skills_system>\n$&\n</skills_system>");
    let corrupt = compat(Some(&first.text), "<skills_system>\n$&\n</skills_system>");
    assert!(matches!(ours(&corrupt.text), Err(MarkerError::Several { .. })));
}

fn any_block() -> impl Strategy<Value = String> {
    let text =
        "[a-z$&`'<>/\\r\\n é]{0,12}|</skills_system>|<!-- SKILLS_TABLE_END -->|<skills_system";
    proptest::collection::vec((text, text), 0..4).prop_map(|skills| {
        let entries: Vec<OpenSkillsEntry<'_>> = skills
            .iter()
            .map(|(name, description)| OpenSkillsEntry {
                name,
                description,
                location: SkillLocation::Project,
            })
            .collect();
        render_block(&entries, OpenSkillsStyle::Repertoire)
    })
}

/// Generates text with markers, so that files with none, one and many blocks occur.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z$&`<> é]{0,8}",
        4 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("<skills_system priority=\"1\">".to_owned()),
        1 => Just(SYSTEM_END.to_owned()),
        1 => Just(TABLE_START.to_owned()),
        1 => Just(TABLE_END.to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn put(existing: &str, block: &str) -> Result<UpdatedSkillsFile, MarkerError> {
    update_block(Some(existing), "A", block, OpenSkillsStyle::Repertoire)
}

proptest! {
    #[test]
    fn ours_is_idempotent_on_any_file_it_accepts(text in any_text(), block in any_block()) {
        if let Ok(once) = put(&text, &block) {
            let twice = put(&once.text, &block).unwrap();
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert_eq!(twice.outcome, BlockUpdateOutcome::Unchanged);
            prop_assert_eq!(once.outcome == BlockUpdateOutcome::Unchanged, once.text == text);
        }
    }

    #[test]
    fn ours_keeps_every_byte_outside_the_block(
        before in "[a-z$&`<> é\r\n]{0,40}",
        after in "[a-z$&`<> é\r\n]{0,40}",
        old in any_block(),
        new in any_block(),
    ) {
        let added = put(&before, &old).unwrap().text;
        prop_assert!(added.starts_with(&before));
        let file = format!("{added}{after}");
        let replaced = put(&file, &new).unwrap().text;
        let start = added.find(SYSTEM_START).unwrap();
        prop_assert_eq!(&replaced[..start], &file[..start]);
        let end = file.find(SYSTEM_END).unwrap();
        prop_assert!(replaced.ends_with(&file[end..]));
        let middle = &replaced[start..replaced.len() - (file.len() - end) + SYSTEM_END.len()];
        prop_assert_eq!(middle.replace("\r\n", "\n"), new);
    }

    #[test]
    fn compat_never_panics(text in any_text(), block in any_text()) {
        let _ = compat(Some(&text), &block);
    }
}
