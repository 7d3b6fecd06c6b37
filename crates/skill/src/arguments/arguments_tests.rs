use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(body: &str, arguments: &str, expect: &str) {
    let names = ["issue".to_owned(), "branch".to_owned(), "branch-name".to_owned()];
    let values = PlaceholderValues {
        arguments,
        names: &names,
        skill_dir: Some("/skills/pdf".into()),
        session_id: Some("s1"),
        ..PlaceholderValues::default()
    };
    assert_eq!(substitute_arguments(body, &values).text, expect);
}

#[test]
fn the_whole_text_is_put_in_as_given() {
    check("Do $ARGUMENTS now", "a 'b c'", "Do a 'b c' now");
    check("Do $ARGUMENTS now", "", "Do  now");
}

#[test]
fn indexes_count_from_zero_and_numbers_too_once_zero_is_used() {
    check("$ARGUMENTS[1]-$ARGUMENTS[0]", "a b", "b-a");
    check("$0 from $1 to $2", "Bar React Vue", "Bar from React to Vue");
    check("$ARGUMENTS[0] then $1", "a b", "a then b");
}

#[test]
fn numbers_count_from_one_where_zero_is_not_used() {
    check("$1 and $2", "a b", "a and b");
}

#[test]
fn a_missing_index_stays_as_written() {
    check(
        "$1 $2 $ARGUMENTS[7] $99999999999999999999999",
        "a",
        "a $2 $ARGUMENTS[7] $99999999999999999999999",
    );
}

#[test]
fn names_are_filled_by_order_and_the_longest_name_wins() {
    check("#$issue on $branch, $branch-name", "7 main x", "#7 on main, x");
    check("$issues $issue_x $issue[0]", "", "$issues $issue_x $issue[0]");
}

#[test]
fn a_missing_name_becomes_nothing_and_is_reported_once() {
    let names = ["issue".to_owned()];
    let found = substitute_arguments(
        "a $issue b $issue",
        &PlaceholderValues { names: &names, ..PlaceholderValues::default() },
    );
    assert_eq!(found.text, "a  b ");
    assert_eq!(found.missing, [MissingArgument { name: "issue".into(), at: 2..8 }]);
}

#[test]
fn known_places_are_put_in_and_unknown_ones_stay() {
    check("${CLAUDE_SKILL_DIR}/x ${CLAUDE_SESSION_ID}", "", "/skills/pdf/x s1");
    check("${CLAUDE_PROJECT_DIR} ${HOME} $HOME ${", "", "${CLAUDE_PROJECT_DIR} ${HOME} $HOME ${");
}

#[test]
fn a_backslash_keeps_a_placeholder_and_nothing_else() {
    check(
        r"costs \$1, \$ARGUMENTS, \$x, \${CLAUDE_SKILL_DIR}",
        "",
        r"costs $1, $ARGUMENTS, \$x, ${CLAUDE_SKILL_DIR}",
    );
    check(r"\\$1", "a", r"\\a");
}

#[test]
fn arguments_that_no_placeholder_takes_are_appended() {
    check("Fix it.\n", "42", "Fix it.\n\nARGUMENTS: 42");
    check("$1", "a b", "a\n\nARGUMENTS: a b");
    check("$issue", "a", "a");
    check(r"\$ARGUMENTS", "a", "$ARGUMENTS\n\nARGUMENTS: a");
    check("", "a", "ARGUMENTS: a");
    check("Fix it.", "  ", "Fix it.");
}

#[test]
fn what_was_put_in_is_not_looked_at_again() {
    check("$1 $2", "'$2' $1", "$2 $1");
    check("$ARGUMENTS", "$ARGUMENTS[0] \\$1", "$ARGUMENTS[0] \\$1");
}

#[test]
fn words_are_split_as_a_shell_does() {
    assert_eq!(
        split_arguments(r#"a "b \"c\" d" 'e f'g h\ i ''"#),
        ["a", "b \"c\" d", "e fg", "h i", ""]
    );
    assert_eq!(split_arguments(r#""a\n" it's"#), ["\"a\\n\"", "it's"]);
    assert!(split_arguments(" \t").is_empty());
}

#[test]
fn arguments_cannot_make_a_body_grow_without_bound() {
    let body = "$ARGUMENTS ".repeat(10_000);
    let given = "x".repeat(10_000);
    let found = substitute_arguments(
        &body,
        &PlaceholderValues { arguments: &given, ..PlaceholderValues::default() },
    );
    assert!(found.limited);
    assert!(found.text.len() <= body.len() + ARGUMENT_BYTES_MAX);
}

proptest! {
    #[test]
    fn substitution_never_panics(
        body in r"([\\$]|\$ARGUMENTS|\[|\]|[0-9]|name|\$\{CLAUDE_SKILL_DIR|\}|ø|.){0,40}",
        arguments in r#"(['"\\ $]|[a-cø]|.){0,20}"#,
    ) {
        let names = ["name".to_owned(), String::new(), "ø".to_owned()];
        let values = PlaceholderValues { arguments: &arguments, names: &names, ..PlaceholderValues::default() };
        substitute_arguments(&body, &values);
    }

    #[test]
    fn a_body_without_dollars_is_kept(body in "[^$]{0,60}", arguments in "[a-z ]{0,9}") {
        let values = PlaceholderValues { arguments: &arguments, ..PlaceholderValues::default() };
        let found = substitute_arguments(&body, &values);
        prop_assert!(found.text.starts_with(body.trim_end()));
    }
}
