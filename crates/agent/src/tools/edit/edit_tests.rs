use super::*;
use crate::tools::testing::Bench;

#[tokio::test]
async fn an_edit_answers_with_the_difference() {
    let bench = Bench::new();
    bench.file("a.txt", "one\ntwo\nthree\n");
    let said = bench.ok(&EditTool, json!({"path": "a.txt", "old": "two", "new": "2"})).await;
    insta::assert_snapshot!(said, @r"
    edited `a.txt`
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    ");
    assert_eq!(bench.text("a.txt"), "one\n2\nthree\n");
}

#[tokio::test]
async fn several_places_need_all() {
    let bench = Bench::new();
    bench.file("a.txt", "x\ny\nx\n");
    let said = bench.fails(&EditTool, json!({"path": "a.txt", "old": "x", "new": "z"})).await;
    assert!(said.contains("is there 2 times (lines 1, 3)"), "{said}");
    bench.ok(&EditTool, json!({"path": "a.txt", "old": "x", "new": "z", "all": true})).await;
    assert_eq!(bench.text("a.txt"), "z\ny\nz\n");
}

#[tokio::test]
async fn several_edits_are_all_or_nothing() {
    let bench = Bench::new();
    bench.file("a.txt", "one\ntwo\n");
    let edits = json!([{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]);
    let said = bench.fails(&EditTool, json!({"path": "a.txt", "edits": edits})).await;
    assert!(said.starts_with("`a.txt` is unchanged: edit 2 of 2: `old` is not there"), "{said}");
    assert_eq!(bench.text("a.txt"), "one\ntwo\n");
    let edits = json!([{"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "12"}]);
    bench.ok(&EditTool, json!({"path": "a.txt", "edits": edits})).await;
    assert_eq!(bench.text("a.txt"), "12\n");
}

#[tokio::test]
async fn line_endings_and_the_mark_at_the_start_are_kept() {
    let bench = Bench::new();
    bench.file("a.txt", "\u{feff}one\r\ntwo\r\nthree\r\n");
    bench.ok(&EditTool, json!({"path": "a.txt", "old": "one\ntwo\n", "new": "1\n2\n"})).await;
    assert_eq!(bench.text("a.txt"), "\u{feff}1\r\n2\r\nthree\r\n");
}

#[track_caller]
fn check_near(text: &str, old: &str, expected: &str) {
    let said = nearest_match::explain_mismatch(text, old);
    assert!(said.contains(expected), "{said}");
}

#[test]
fn no_match_names_the_nearest_place() {
    check_near("a\n\tlet x = 1;\nb\n", "    let x = 1;", "line 2 on differs only in white space");
    check_near(
        "fn main() {\n    start();\n    stop();\n}\n",
        "    start();\n    finish();\n",
        "begins at line 2, and differs first at line 3, where the file has `    stop();`",
    );
    check_near("let total = 1;\n", "let totals = 1;", "line 1 is the most alike: `let total = 1;`");
    check_near("abc\n", "something else entirely", "nor anything like it");
    check_near("", "x", "nor anything like it");
    check_near("abc", "\n\n", "nor anything like it");
}

#[tokio::test]
async fn what_makes_no_sense_is_told() {
    let bench = Bench::new();
    bench.file("a.txt", "one\n");
    bench.file("b.bin", b"\xff\xfe");
    for (arguments, expected) in [
        (json!({"path": "a.txt", "old": "", "new": "x"}), "`old` is empty"),
        (json!({"path": "a.txt", "old": "x", "new": "x"}), "are the same"),
        (json!({"path": "a.txt", "old": "x"}), "either `old` and `new`, or `edits`"),
        (json!({"path": "a.txt"}), "either `old` and `new`, or `edits`"),
        (json!({"path": "no", "old": "x", "new": "y"}), "use `write` to make it"),
        (json!({"path": "b.bin", "old": "x", "new": "y"}), "not UTF-8"),
        (json!({"path": ".", "old": "x", "new": "y"}), "outside"),
        (json!({"path": "../a", "old": "x", "new": "y"}), "outside"),
        (json!({"path": "CLAUDE.md", "old": "x", "new": "y"}), "protected"),
    ] {
        let said = bench.fails(&EditTool, arguments).await;
        assert!(said.contains(expected), "{said}");
    }
}
