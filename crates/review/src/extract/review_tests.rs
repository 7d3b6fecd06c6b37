//! What is taken from whole skills, in the ways in which people write them.

use insta::assert_snapshot;
use repertoire_text::{Limits, Source};

use super::documented_tests::SECURITY_HEADINGS;
use super::*;
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::{PluginInfo, Scope, SkillOrigin};

const PLUGIN: &str = "/cache/review/1.0.0";

pub(super) fn skill(name: &str, fields: &str, body: &str) -> Skill {
    let text =
        format!("---\nname: {name}\ndescription: Reviews. Use when asked.\n{fields}---\n{body}");
    let file = format!("{PLUGIN}/skills/{name}/SKILL.md");
    let origin = SkillOrigin {
        file: file.as_str().into(),
        root: format!("{PLUGIN}/skills").into(),
        scope: Scope::Plugin,
        plugin: Some(PluginInfo { name: "review".to_owned(), version: "1.0.0".to_owned() }),
    };
    load_skill(Source::new(file, text), origin, &Limits::default())
        .skill
        .expect("it has a description")
}

/// Extracts with shared files that are given by their path below the plugin.
pub(super) fn extract_from(skill: &Skill, shared: &[(&str, &str)]) -> ReviewExtraction {
    let folder = format!("skills/{}", skill.name);
    extract_review_skill_with(skill, &skill.name, &|place| {
        let path = match place.base {
            SharedBase::Skill => format!("{folder}/{}", place.path),
            SharedBase::Root => format!("skills/{}", place.path),
            SharedBase::Plugin => place.path.to_string(),
        };
        let found = shared.iter().find(|(known, _)| *known == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or(ReadError::NotFound)
    })
}

pub(super) fn extracted(name: &str, body: &str) -> ReviewExtraction {
    extract_from(&skill(name, "", body), &[])
}

/// Findings as `code line: message`.
pub(super) fn findings(extracted: &ReviewExtraction) -> Vec<String> {
    let line = |found: &Diagnostic| found.position.map_or(0, |position| position.line);
    let show = |found: &Diagnostic| format!("{} {}: {}", found.code.id, line(found), found.message);
    extracted.diagnostics.iter().map(show).collect()
}

#[track_caller]
fn areas(body: &str, expect: &str) {
    let found = extracted("reviewing-security", body);
    let show = |area: &FocusArea| {
        let severity = area.severity.map_or("-", ReviewSeverity::as_str);
        format!("{} [{severity}] {}", area.name, area.checks.join(" | "))
    };
    let shown: Vec<String> = found.skill.focus_areas.iter().map(show).collect();
    assert_eq!(shown.join("\n"), expect.trim());
}

#[test]
fn areas_are_headings_labels_and_bold_items() {
    areas(
        "## A (Major)\n- one\n- two\n#### B (Minor/Suggestion):\n1. three\n",
        "A [Major] one | two\nB [Minor] three",
    );
    areas("**A** (Critical): first\n- second\n", "A [Critical] first | second");
    areas(
        "- **A (Critical):**\n  - one\n  - two\n- **B** (minor) - alone\n- not a check\n",
        "A [Critical] one | two\nB [Minor] alone",
    );
    areas("## A (Critical)\n\nOnly prose.\n", "A [Critical] Only prose.");
    areas("## A (somewhat)\n- one\n", "");
}

#[test]
fn a_section_of_areas_needs_no_severities() {
    areas("## Additional Focus Areas\n### A\n- one\n**B:**\n- two\n", "A [-] one\nB [-] two");
    areas(
        "## Focus Areas\n- **A**: one\n- **B**\n  - two\n- C (Major):\n  - three\n",
        "A [-] one\nB [-] two\nC [Major] three",
    );
    areas("## Focus Areas\n- one\n- two\n", "Focus Areas [-] one | two");
    areas(
        "## Categories Checked\n### Critical\n**A**\n- one\n### Major issues\n- two\n",
        "A [Critical] one\nMajor issues [Major] two",
    );
}

#[test]
fn a_severity_is_inherited_by_what_stands_below() {
    areas(
        "## All (Critical)\n\n**A:**\n- one\n\n**B (Minor):**\n- two\n\n### C\n- three\n",
        "A [Critical] one\nB [Minor] two\nC [Critical] three",
    );
    areas("# All (Critical)\n## Workflow\n- one\n", "");
    areas("## A (Major)\n**Check for:**\n- one\n\n**Example:**\n- two\n", "A [Major] one");
}

#[test]
fn a_checklist_stands_in_where_no_areas_are_marked() {
    areas("## Review Checklist\n### 1.1 A\n- one\n## Tips\n- two\n", "A [-] one");
    areas("## Review Checklist\n### A\n- one\n## B (Major)\n- two\n", "B [Major] two");
}

#[track_caller]
fn steps(body: &str, expect: &[&str]) {
    let found = extracted("thinking", body).skill.methodology.unwrap_or_default();
    assert_eq!(found.steps, expect, "{body}");
}

#[test]
fn steps_are_numbered_items_or_numbered_titles_or_what_is_in_the_section() {
    steps("## Tips\n1. no\n## The Process\n1. **A:**\n   1. detail\n2. B\n", &["A", "B"]);
    steps("## Process\n### 1. A\n### 2. B\n1. detail\n### 3. C\n", &["A", "B", "C"]);
    steps("### Step 1: A\ntext\n### Step 2\n", &["A", "Step 2"]);
    steps("## Workflow\n### A\n\n**detail:**\n- x\n### B\n", &["A", "B"]);
    steps("## Workflow\n\n**A:**\n- x\n\n**B:**\n- y\n", &["A", "B"]);
    steps("## Workflow\n- A\n- B?\n", &["A"]);
    steps("## When the process fails\n- A\n", &[]);
}

#[test]
fn the_approach_is_no_quotation_and_no_introduction() {
    let approach = |body: &str| extracted("thinking", body).skill.methodology.unwrap().approach;
    assert_eq!(approach("# A\n\n> Read this first.\n\nLook for:\n- x\n\nThink.\n"), "Think.");
    assert_eq!(approach("# A\n\nFirst.\n\n## Approach\n\nThink.\n"), "Think.");
}

#[test]
fn other_sections_hold_no_areas() {
    areas(
        "## False Positives\n**A (Critical):**\n- one\n## Output Format\n### B (Major)\n- two\n",
        "",
    );
    areas("## When to Use\n### A (Critical)\n- one\n## B (Critical)\n- two\n", "B [Critical] two");
}

#[test]
fn nested_bullets_are_put_after_what_introduces_them() {
    areas(
        "## A (Major)\n- Look for:\n  - one\n  - two\n- three\n  - four\n- five:\n",
        "A [Major] Look for: one | Look for: two | three | four | five",
    );
    areas(
        "## A (Major)\n- one\n\n  and more\n\n- [ ] two\n  goes on\n",
        "A [Major] one and more | two goes on",
    );
}

fn patterns_of(table: &str) -> ReviewExtraction {
    extracted("reviewing-security", &format!("## Auto-validated\n\n{table}"))
}

#[track_caller]
fn patterns(table: &str, expect: &str) {
    let found = patterns_of(table);
    let show = |found: &ReviewPattern| {
        let severity = found.severity.map_or("-", ReviewSeverity::as_str);
        let regex = found.pattern.as_deref().unwrap_or("-");
        format!("{} {regex} [{severity}] {:?} {}", found.id, found.files, found.description)
    };
    let shown: Vec<String> = found.skill.auto_validated_patterns.iter().map(show).collect();
    assert_eq!(shown.join("\n"), expect, "{:?}", findings(&found));
}

#[test]
fn columns_are_found_by_their_headers() {
    patterns(
        "| Pattern | Description |\n|-|-|\n| `a_b` | `x = \"..\"` assignments |\n",
        "a_b - [-] [] x = \"..\" assignments",
    );
    patterns(
        "| Name | Pattern | Meaning |\n|-|-|-|\n| a_b | `x\\|y` | Text |\n",
        "a_b x|y [-] [] Text",
    );
    patterns(
        "| Finds | Pattern |\n|-|-|\n| Hardcoded key | `key\\s*=` |\n",
        "hardcoded_key key\\s*= [-] [] Hardcoded key",
    );
    patterns(
        "| ID | Regex | Severity | Language | Description |\n|-|-|-|-|-|\n| `a` | `x` | major | Python, `lib/*.go` | D |\n",
        "a x [Major] [\"**/*.py\", \"lib/*.go\"] D",
    );
    patterns(
        "| Pattern | Regex | Notes |\n|-|-|-|\n| a_b | N/A (detected via a graph) | D |\n",
        "a_b - [-] [] D",
    );
    patterns(
        "**Keys (Critical)**\n\n| Pattern | Regex |\n|-|-|\n| a | `x` |\n",
        "a x [Critical] [] ",
    );
}

#[test]
fn a_pipe_is_written_with_a_backslash_inside_and_outside_of_code() {
    patterns("| ID | Regex |\n|-|-|\n| a | `(x\\|y)` |\n", "a (x|y) [-] [] ");
    patterns("| ID | Regex |\n|-|-|\n| a | (x\\|y)\\.\\*z\\* |\n", "a (x|y)\\.\\*z\\* [-] [] ");
    patterns("| ID | Regex |\n|-|-|\n| a | ``x`\\|y`` |\n", "a x`|y [-] [] ");
}

#[test]
fn expressions_that_cannot_be_used_say_why() {
    let found = patterns_of(
        "| ID | Regex |\n|-|-|\n| a | `x(?!y)` |\n| b | `(x)\\1` |\n| c | `(x` |\n| d | `x*` |\n| e | `\\b` |\n\
         | f | `(x{900}){900}` |\n| c | `y` |\n| g | `y` |\n",
    );
    assert_snapshot!(findings(&found).join("\n"), @"
    RS411 9: the expression of `a` cannot be used: it uses look-around, which has no bound on time
    RS411 10: the expression of `b` cannot be used: it uses back-references, which have no bound on time
    RS411 11: the expression of `c` cannot be used: it is not a regular expression: unclosed group
    RS411 12: the expression of `d` cannot be used: it matches the empty text, and so everything
    RS411 13: the expression of `e` cannot be used: it matches the empty text, and so everything
    RS411 14: the expression of `f` cannot be used: it is too large when compiled
    RS412 15: `c` is there already; the first one counts
    ");
    let usable = found.skill.auto_validated_patterns.iter().filter(|p| p.unusable.is_none());
    assert_eq!(usable.map(|p| p.id.as_str()).collect::<Vec<_>>(), ["g"]);
}

#[test]
fn ids_in_prose_choose_from_a_shared_catalog() {
    let body = "## Auto-Validated Patterns\n\nSee `references/rules.md`.\n\n**Debt patterns:** `hack_comment`, `old_package`\n";
    let skill = skill("reviewing-technical-debt", "", body);
    let rules = "## Technical Debt\n| Pattern | Regex | Description |\n|-|-|-|\n| `hack_comment` | `HACK` | A hack |\n| `other_one` | `x` | D |\n";
    let found =
        extract_from(&skill, &[("skills/reviewing-technical-debt/references/rules.md", rules)]);
    let ids: Vec<(&str, &str)> = found
        .skill
        .auto_validated_patterns
        .iter()
        .map(|found| (found.id.as_str(), found.description.as_str()))
        .collect();
    assert_eq!(ids, [("hack_comment", "A hack"), ("old_package", "")]);
}

#[test]
fn a_pointer_takes_what_is_about_the_skill_or_all_of_it() {
    let check = |name: &str, path: &str, ids: &[&str]| {
        let body = format!("## Auto-Validated Patterns\n\n- [the rules]({path})\n");
        let table = |id: &str| format!("| Pattern | Regex |\n|-|-|\n| {id} | `x` |\n");
        let rules = format!(
            "# Rules for security and bugs\n## Bug patterns\n{}\n## Technical Debt patterns\n{}\n### More\n{}",
            table("bug_one"),
            table("debt_one"),
            table("debt_two"),
        );
        let found = extract_from(&skill(name, "", &body), &[("skills/shared/rules.md", &rules)]);
        let found: Vec<&str> =
            found.skill.auto_validated_patterns.iter().map(|found| found.id.as_str()).collect();
        assert_eq!(found, ids, "{name} {path}");
    };
    check("reviewing-bugs", "../shared/rules.md", &["bug_one"]);
    check("reviewing-technical-debt", "../shared/rules.md", &["debt_one", "debt_two"]);
    check("reviewing-performance", "../shared/rules.md", &["bug_one", "debt_one", "debt_two"]);
    check("reviewing-performance", "../shared/rules.md#bug-patterns", &["bug_one"]);
    check("reviewing-performance", "../shared/rules.md#more", &["debt_two"]);
}

#[test]
fn pointers_that_lead_nowhere_or_outside_are_said_and_the_rest_goes_on() {
    let body = "## Auto-Validated\n\nSee `references/gone.md`, `../../../../secret.md`, `/etc/rules.md` and [more](../shared/rules.md#gone).\n\n\
                | Pattern | Regex |\n|-|-|\n| a | `x` |\n";
    let found = extract_from(
        &skill("reviewing-bugs", "", body),
        &[("skills/shared/rules.md", "# Rules\n")],
    );
    assert_snapshot!(findings(&found).join("\n"), @"
    RS413 7: `../shared/rules.md` has no section `#gone`
    RS413 7: `references/gone.md` cannot be read: there is no such file
    RS414 7: `../../../../secret.md` is outside the skill and its root
    RS414 7: `/etc/rules.md` is outside the skill and its root
    ");
    assert_eq!(found.skill.auto_validated_patterns.len(), 1);
}

#[test]
fn rules_are_bullets_or_sentences_and_not_pointers() {
    let check = |body: &str, rules: &[&str]| {
        assert_eq!(extracted("reviewing-bugs", body).skill.false_positive_rules, rules, "{body}");
    };
    check(
        "## False Positives\n\n**Bug-specific** - do NOT flag:\n- Guards (`x`)\n- In `README.md`\n",
        &["Guards (`x`)", "In `README.md`"],
    );
    check("**Do not flag:**\n1. **Silenced**: with a comment\n", &["Silenced: with a comment"]);
    check("## Do not flag\n- one\n\n**Only flag these when:**\n- two\n", &["one"]);
    check("**False positives:** fixtures and samples\n", &["fixtures and samples"]);
    check("## False positives\n\nAnything in a test.\n", &["Anything in a test."]);
}

#[test]
fn the_kind_follows_the_table_then_the_type_then_the_name() {
    let check = |name: &str, fields: &str, kind: ReviewKind, agent: Option<&str>| {
        let found = extract_review_skill(&skill(name, fields, ""), name).skill;
        assert_eq!((found.kind, found.primary_agent.as_deref()), (kind, agent), "{name} {fields}");
    };
    use ReviewKind::{Command, Methodology, Review};
    check("reviewing-bugs", "", Review, Some("bug-detection-agent"));
    check("reviewing-architecture-principles", "", Review, Some("architecture-agent"));
    check("reviewing-technical-debt", "type: methodology\n", Review, Some("technical-debt-agent"));
    check("reviewing-documentation", "", Command, None);
    check("reviewing-documentation", "type: review\n", Command, None);
    check("reviewing-api-contracts", "", Review, Some("api-contracts-agent"));
    check("reviewing-habits", "type: methodology\n", Methodology, None);
    check("security-review", "type: review\n", Review, Some("security-agent"));
    check("house-rules", "type: review\n", Review, None);
    check("house-rules", "type: command\n", Command, None);
    check("security-review", "", Methodology, None);
}

#[test]
fn each_kind_gets_only_what_is_for_it() {
    let body = format!("{SECURITY_HEADINGS}\n## Steps\n1. Look\n");
    let found = extracted("reviewing-documentation", &body).skill;
    assert!(
        found.focus_areas.is_empty()
            && found.priority_files.is_none()
            && found.methodology.is_none()
    );
    assert_eq!((found.auto_validated_patterns.len(), found.false_positive_rules.len()), (2, 3));
    assert!(extracted("reviewing-security", &body).skill.methodology.is_none());
    let found = extracted("looking", &body).skill;
    assert_eq!(found.methodology.unwrap().steps, ["Look"]);
    assert!(found.focus_areas.is_empty() && found.false_positive_rules.is_empty());
}

#[test]
fn a_review_skill_in_which_nothing_is_found_says_what_was_looked_for() {
    let found = extracted("reviewing-bugs", "# Bugs\n\nLook well.\n");
    assert_snapshot!(findings(&found).join("\n"), @"RS410 0: a review finds nothing in this skill; it looks for a heading or bold label with a severity such as `Injection (Critical)`, `Categories Checked`, `Focus Areas`, `Auto-Validated Patterns`, `False Positives` and `Scope Prioritization`");
}

#[test]
fn what_is_over_a_limit_is_cut_and_said() {
    use super::limits::{
        REVIEW_AREAS_MAX, REVIEW_CHECKS_MAX, REVIEW_PATTERNS_MAX, REVIEW_TEXT_CHARS_MAX,
    };
    let found = extracted(
        "reviewing-bugs",
        &format!("## A (Major)\n{}- {}\n", "- x\n".repeat(9), "é".repeat(600)),
    );
    assert_eq!(found.skill.focus_areas[0].checks[9].chars().count(), REVIEW_TEXT_CHARS_MAX);
    assert_snapshot!(findings(&found).join("\n"), @"RS415 15: this text has more than 500 characters, the limit");
    let found = extracted("reviewing-bugs", &format!("## A (Major)\n{}", "- x\n".repeat(100_000)));
    assert_eq!(found.skill.focus_areas[0].checks.len(), REVIEW_CHECKS_MAX);
    assert_snapshot!(findings(&found).join("\n"), @"RS415 70: there are 100000 checks here; the limit is 64");
    let found = extracted("reviewing-bugs", &"## A (Major)\n- x\n".repeat(50_000));
    assert_eq!(found.skill.focus_areas.len(), REVIEW_AREAS_MAX);
    let rows: String = (0..20_000).map(|at| format!("| p_{at} | `(` |\n")).collect();
    let found = patterns_of(&format!("| ID | Regex |\n|-|-|\n{rows}"));
    assert_eq!(found.skill.auto_validated_patterns.len(), REVIEW_PATTERNS_MAX);
    let last = "RS415 0: 193 more findings about this skill are not shown";
    assert_eq!(findings(&found).last().unwrap(), last);
}

#[test]
fn the_text_after_a_label_is_its_first_check() {
    let body = "## Focus Areas\n\n**XSS (Critical)**: innerHTML\n\n- links\n\n**CSRF (Major)**: look for:\n\n- tokens\n";
    let areas = extracted("reviewing-security", body).skill.focus_areas;
    let checks: Vec<String> = areas.iter().map(|area| area.checks.join(", ")).collect();
    assert_eq!(checks, ["innerHTML, links", "tokens"]);
}

#[test]
fn files_that_come_first_may_stand_in_tables_and_sentences() {
    let check = |body: &str, globs: &[&str]| {
        let body = format!("## A (Major)\n- x\n\n## Priority Files\n\n{body}");
        let found = extracted("reviewing-security", &body);
        assert_eq!(found.skill.priority_files.as_ref().unwrap().patterns, globs, "{body}");
        assert!(found.diagnostics.is_empty(), "{:?}", findings(&found));
    };
    check(
        "| Files | Why |\n|-|-|\n| `**/auth/**` | Keys |\n| **/api/** | Doors |\n",
        &["**/auth/**", "**/api/**"],
    );
    check("1. Files in **/login/**\n2. Then (`src/*.rs`)\n", &["**/login/**", "src/*.rs"]);
    let found =
        extracted("reviewing-security", "## A (Major)\n- x\n\n## Priority Files\n\n- The doors\n");
    assert!(found.skill.priority_files.is_none());
    assert_snapshot!(findings(&found).join("\n"), @"RS417 8: this section names no files that come first");
}

#[test]
fn a_word_that_is_no_severity_is_said() {
    let body = "## Focus Areas\n\n**Injection (Blocker):**\n- SQL\n\n**Tokens (OAuth):**\n- x\n\n## Auto-Validated Patterns\n\n\
                | ID | Regex | Severity |\n|-|-|-|\n| a | `x` | Blocker |\n| b | `y` | - |\n";
    assert_snapshot!(findings(&extracted("reviewing-security", body)).join("\n"), @"
    RS419 17: `Blocker` is no severity, so `a` has none of its own
    RS419 7: `Blocker` is no severity, so `Injection (Blocker)` has none
    ");
}

#[test]
fn a_method_with_parts_for_reviews_says_that_they_are_not_used() {
    let codes = |fields: &str, body: &str| {
        findings(&extract_review_skill(&skill("security-review", fields, body), "x"))
    };
    let body = "Look well.\n\n## Injection (Critical)\n- SQL\n";
    assert_snapshot!(codes("", body).join("\n"), @"RS418 0: its focus areas and patterns are not used: it is taken as a methodology; name it `reviewing-…`, or say `type: review`");
    assert_eq!(codes("type: methodology\n", body), Vec::<String>::new());
    assert_eq!(codes("type: review\n", body), Vec::<String>::new());
    assert_eq!(codes("", "Look well.\n\n## Injection\n- SQL\n"), Vec::<String>::new());
    let table = "Look well.\n\n## Auto-Validated Patterns\n\n| ID | Regex |\n|-|-|\n| a | `x` |\n";
    assert_eq!(codes("", table).len(), 1);
}

#[test]
fn what_holds_at_the_end_is_no_step_where_there_are_others() {
    let steps = |body: &str| extracted("testing", body).skill.methodology.unwrap().steps;
    let last = "## Verification Checklist\n\n- [ ] Every function has a test\n";
    assert_eq!(steps(&format!("Test first.\n\n{last}")), ["Every function has a test"]);
    let stages =
        "## Red-Green\n\n### RED - Write a failing test\n\nx\n\n### GREEN - Make it pass\n\ny\n\n";
    let expect = ["RED - Write a failing test", "GREEN - Make it pass"];
    assert_eq!(steps(&format!("Test first.\n\n{stages}{last}")), expect);
}

#[test]
fn a_question_out_of_a_quotation_has_no_mark_in_front() {
    let body = "Look.\n\n## Questions\n\n\"If I am user A. \"Can I see it? Yes.\"\n";
    let found = extracted("looking", body).skill.methodology.unwrap();
    assert_eq!(found.questions, ["Can I see it?"]);
}
