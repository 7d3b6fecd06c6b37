use proptest::prelude::*;

use super::*;

const IDS: [(&str, &str); 8] = [
    ("acme:deploy", "deploy"),
    ("alpha:lint", "lint"),
    ("beta:lint", "lint"),
    ("lint-all", "lint-all"),
    ("override-checks", "override-checks"),
    ("pdf", "pdf"),
    ("reviewing-security", "reviewing-security"),
    ("日本語", "日本語"),
];

fn hints() -> NameHints {
    let documents: Vec<_> =
        IDS.iter().map(|(id, name)| SkillDocument::new(id, name, "", "")).collect();
    NameHints::new(&documents)
}

/// Formats the skills that are found and, after a bar, the names that are not, each with the nearest known
/// name.
fn answer(task: &Task) -> String {
    let (found, unresolved) = hints().find(task);
    assert!(found.iter().all(|found| found.strength == 1.0));
    let found: Vec<&str> = found.iter().map(|found| IDS[found.skill].0).collect();
    let unresolved: Vec<String> = unresolved
        .iter()
        .map(|wrong| format!("{}→{}", wrong.named, wrong.nearest.as_deref().unwrap_or("")))
        .collect();
    format!("{}|{}", found.join(" "), unresolved.join(" "))
}

#[track_caller]
fn check_text(text: &str, expect: &str) {
    assert_eq!(answer(&Task::new(text)), expect, "{text}");
}

#[track_caller]
fn check_hints(hints: &[&str], expect: &str) {
    let hints = hints.iter().map(|hint| hint.to_string()).collect();
    assert_eq!(answer(&Task { hints, ..Task::default() }), expect);
}

#[test]
fn hints_are_found_in_any_spelling_and_in_order() {
    check_hints(&["PDF", "Reviewing_Security"], "pdf reviewing-security|");
    check_hints(&["lint all, pdf,pdf", "@pdf"], "lint-all pdf|");
    check_hints(&["Acme:Deploy"], "acme:deploy|");
    check_hints(&["deploy"], "acme:deploy|");
    check_hints(&["日本語"], "日本語|");
    check_hints(&["", " , ", "@", "!!!"], "|");
}

#[test]
fn a_hint_that_leads_nowhere_is_reported_once_with_the_nearest_name() {
    check_hints(
        &["pfd", "PFD", "security", "zzzzzz"],
        "|pfd→pdf security→reviewing-security zzzzzz→",
    );
    check_hints(&["other:deploy"], "|other:deploy→acme:deploy");
}

#[test]
fn a_name_that_several_plugins_have_is_not_guessed() {
    check_hints(&["lint", "beta:lint"], "beta:lint|lint→alpha:lint");
    check_text("@lint this", "|@lint→alpha:lint");
}

#[test]
fn mentions_are_found_in_the_text() {
    check_text("Use @pdf, then (@Reviewing-Security).", "pdf reviewing-security|");
    check_text("@pdf: fill it in. @pdf's form", "pdf|");
    check_text("@acme:deploy!", "acme:deploy|");
    check_text("请用@pdf处理", "pdf|");
    check_text("\"@deploy\"", "acme:deploy|");
}

#[test]
fn what_only_looks_like_a_mention_is_not_one() {
    for text in [
        "mail me@pdf.com or a.b@pdf",
        "@Override public void run()",
        "@pdf/reader and @pdf(1) and @pdf@mastodon.social",
        "`@pdf` and ``a ` @pdf``",
        "```\n@pdf\n```",
        "~~~ts\n@pdf\n```\n@pdf\n~~~",
        "```\n@pdf",
        "@ pdf, @@pdf, x@pdf, ./@pdf",
        "@nobody",
        "",
    ] {
        check_text(text, "|");
    }
}

#[test]
fn text_goes_on_after_code() {
    check_text("`code` @pdf and a ` alone @deploy", "pdf acme:deploy|");
    check_text("```\n@lint-all\n```\n@pdf", "pdf|");
    check_text("```inline``` @pdf", "pdf|");
}

#[test]
fn a_line_of_skills_names_them() {
    check_text("Fix it.\nSkills: pdf, `Lint All`, @deploy.\n", "pdf lint-all acme:deploy|");
    check_text("**skills:** [pdf, pdff]", "pdf|pdff→pdf");
    check_text("skills: the many abilities, that we need", "|");
    check_text("My skills: pdf", "|");
}

#[test]
fn a_hint_goes_before_the_text_and_both_count_once() {
    let task = Task { hints: vec!["deploy".to_owned()], ..Task::new("@pdf and @deploy") };
    assert_eq!(answer(&task), "acme:deploy pdf|");
    let (found, _) = hints().find(&task);
    assert_eq!(found[1].reason, SelectionReason::Hint { named: "@pdf".to_owned() });
}

#[test]
fn a_skill_goes_before_an_agent_of_the_same_name() {
    let mut agent = SkillDocument::new("review", "review", "", "");
    agent.is_offered = false;
    let hints = NameHints::new(&[agent, SkillDocument::new("review", "review", "", "")]);
    let (found, unresolved) = hints.find(&Task::new("@review"));
    assert_eq!(found.iter().map(|found| found.skill).collect::<Vec<_>>(), [1]);
    assert_eq!(unresolved, []);
}

#[test]
fn only_so_many_wrong_names_are_reported_and_right_ones_after_them_are_found() {
    let wrong: Vec<String> = (0..40).map(|at| format!("pdfx{at}")).collect();
    let list = format!("{},lint-all", wrong.join(","));
    let hints_only = Task { hints: vec![list.clone()], ..Task::default() };
    for task in [hints_only, Task::new(format!("skills: {list}"))] {
        let (found, unresolved) = hints().find(&task);
        assert_eq!(unresolved.len(), SUGGESTIONS_MAX);
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_mention_that_is_one_slip_away_from_a_skill_is_reported_with_its_name() {
    check_text("@depoly it, @depoly", "|@depoly→acme:deploy");
    check_text("/depoly it", "|/depoly→acme:deploy");
    check_text("@acme:deplo and @lint-al", "|@acme:deplo→acme:deploy @lint-al→lint-all");
    check_text("@Reviewing-Securitty", "|@Reviewing-Securitty→reviewing-security");
    check_text(
        "@eploy @xdeploy @seploy",
        "|@eploy→acme:deploy @xdeploy→acme:deploy @seploy→acme:deploy",
    );
}

#[test]
fn a_mention_that_is_more_than_one_slip_away_or_short_stays_silent() {
    for text in ["@pfd", "@pdff", "@lnit", "@deplyo2", "@employ", "@override", "/deploying it"] {
        check_text(text, "|");
    }
}

#[test]
fn only_so_many_mentions_are_held_against_all_names() {
    let mut text: String = (0..SUGGESTIONS_MAX).map(|at| format!("@person{at} ")).collect();
    text.push_str("@depoly");
    check_text(&text, "|");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\PC|[@`~:,\n]|pdf|skills:){0,40}", hint in "\\PC{0,24}") {
        hints().find(&Task { hints: vec![hint], ..Task::new(text) });
    }
}

#[test]
fn a_command_with_a_slash_names_a_skill_at_the_beginning_only() {
    check_text("/pdf fill in this form", "pdf|");
    check_text("  /acme:deploy", "acme:deploy|");
    check_text("/pdf/readme.md is old", "|");
    check_text("/unknown thing", "|");
    check_text("look at /pdf", "|");
}
