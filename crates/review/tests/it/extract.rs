//! Review skills from the disk, from hostile hands and from chance.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use repertoire_review::extract::{
    FocusArea, PriorityFiles, ReviewExtraction, ReviewKind, ReviewMethodology, ReviewPattern,
    ReviewSeverity, ReviewSkill, extract_review_skill, extract_review_skill_with, to_yaml,
};
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::{PluginInfo, Scope, Skill, SkillOrigin};
use repertoire_text::fs::write_atomic;
use repertoire_text::{Limits, Source, Span, yaml};

fn skill_at(file: &str, origin: SkillOrigin, name: &str, body: &str) -> Skill {
    let text = format!("---\nname: {name}\ndescription: Reviews. Use when asked.\n---\n{body}");
    load_skill(Source::new(file, text), origin, &Limits::default()).skill.unwrap()
}

fn skill(name: &str, body: &str) -> Skill {
    let file = format!("/nowhere/{name}/SKILL.md");
    skill_at(&file, SkillOrigin::from_file(file.as_str()), name, body)
}

fn read_back(text: &str) -> Vec<ReviewSkill> {
    let limits = yaml::Limits { nodes_max: usize::MAX, ..yaml::Limits::default() };
    let node = yaml::parse(text, Span::new(0, text.len()), &limits).unwrap();
    let skills = node.as_mapping().unwrap().get("resolved_skills").unwrap().to_json();
    serde_json::from_value(skills).unwrap()
}

/// A plugin on a disk, with a skill that points to shared files.
struct OnDisk {
    _keep: tempfile::TempDir,
    plugin: Utf8PathBuf,
}

impl OnDisk {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        OnDisk { _keep: keep, plugin: dir.join("market/review/1.0.0") }
    }

    fn write(&self, path: &str, text: &str) {
        write_atomic(&self.plugin.join(path), text.as_bytes()).unwrap();
    }

    fn extract(&self, plugin: Option<PluginInfo>, body: &str) -> ReviewExtraction {
        let file = self.plugin.join("skills/reviewing-bugs/SKILL.md");
        let root = self.plugin.join("skills");
        let origin = SkillOrigin { file: file.clone(), root, scope: Scope::Plugin, plugin };
        let skill = skill_at(file.as_str(), origin, "reviewing-bugs", body);
        write_atomic(&file, skill.text().as_bytes()).unwrap();
        extract_review_skill(&skill, "review:reviewing-bugs")
    }
}

fn plugin() -> Option<PluginInfo> {
    Some(PluginInfo { name: "review".to_owned(), version: "1.0.0".to_owned() })
}

fn codes(found: &ReviewExtraction) -> Vec<&str> {
    found.diagnostics.iter().map(|found| found.code.id).collect()
}

const TABLE: &str = "| Pattern | Regex |\n|---|---|\n| `one_bug` | `x = y` |\n";

#[test]
fn shared_files_are_read_from_the_skill_its_root_and_its_plugin() {
    for (path, pointer) in [
        ("skills/reviewing-bugs/references/rules.md", "references/rules.md"),
        ("skills/shared/rules.md", "../shared/rules.md"),
        ("shared/rules.md", "../../shared/rules.md"),
        ("shared/rules.md", "${CLAUDE_PLUGIN_ROOT}/shared/rules.md"),
    ] {
        let disk = OnDisk::new();
        disk.write(path, TABLE);
        let found = disk.extract(plugin(), &format!("## Auto-Validated\n\nSee `{pointer}`.\n"));
        assert_eq!(codes(&found), [""; 0], "{pointer}");
        assert_eq!(found.skill.auto_validated_patterns[0].id, "one_bug", "{pointer}");
    }
}

#[test]
fn nothing_outside_is_read() {
    let disk = OnDisk::new();
    disk.write("../../secret.md", TABLE);
    disk.write("shared/rules.md", TABLE);
    let check = |plugin: Option<PluginInfo>, pointer: &str| {
        let found = disk.extract(plugin, &format!("## Auto-Validated\n\nSee `{pointer}`.\n"));
        assert_eq!(codes(&found), ["RS414", "RS410"], "{pointer}");
        assert!(found.skill.auto_validated_patterns.is_empty(), "{pointer}");
    };
    check(plugin(), "../../../../secret.md");
    check(plugin(), "${CLAUDE_PLUGIN_ROOT}/../../secret.md");
    check(plugin(), "references/../../../../../secret.md");
    check(plugin(), disk.plugin.join("shared/rules.md").as_str());
    // Without a plugin, the root is as far as it goes.
    check(None, "../../shared/rules.md");
}

#[test]
#[cfg(unix)]
fn a_link_that_leaves_is_not_followed() {
    let disk = OnDisk::new();
    disk.write("../../secret.md", TABLE);
    disk.write("skills/shared/other.md", "");
    let link = disk.plugin.join("skills/shared/rules.md");
    std::os::unix::fs::symlink("../../../../../secret.md", link).unwrap();
    let found = disk.extract(plugin(), "## Auto-Validated\n\nSee `../shared/rules.md`.\n");
    assert_eq!(codes(&found), ["RS414", "RS410"]);
}

#[test]
fn a_shared_file_over_the_limit_is_not_read() {
    let disk = OnDisk::new();
    disk.write("skills/shared/rules.md", &"x".repeat(600 * 1024));
    let found = disk.extract(plugin(), "## Auto-Validated\n\nSee `../shared/rules.md`.\n");
    assert_eq!(codes(&found), ["RS413", "RS410"]);
}

/// Whatever is given, it ends soon and gives little.
#[test]
fn hostile_texts_cost_no_more_than_they_are_long() {
    let rows: String =
        (0..2_000).map(|at| format!("| p_{at} | `a{{1,999}}{{1,999}}` |\n")).collect();
    let deep: String =
        (0..1_000).map(|at| format!("{}- **a (Critical):**\n", " ".repeat(at * 2))).collect();
    let bodies = [
        format!("## Auto-Validated\n\n| ID | Regex |\n|-|-|\n{rows}"),
        format!("## Auto-Validated\n\n{}", "| a | `b` |\n".repeat(50_000)),
        format!("## A (Critical)\n{}", "- b\n".repeat(100_000)),
        "## A (Critical)\n- b\n".repeat(20_000),
        "**A (Critical):**\n- b\n\n".repeat(20_000),
        "- **A (Critical):** b\n".repeat(20_000),
        deep,
        "> ".repeat(50_000),
        "- ".repeat(50_000),
        format!(
            "## False positives\n{}",
            (0..100_000).map(|at| format!("- {at}\n")).collect::<String>()
        ),
        format!(
            "## Priority files\n{}",
            (0..50_000).map(|at| format!("- `{at}.rs`\n")).collect::<String>()
        ),
        format!(
            "## Auto-Validated\n\n{}",
            (0..50_000).map(|at| format!("`{at}.md` ")).collect::<String>()
        ),
        format!("## Steps\n{}", (0..100_000).map(|at| format!("1. {at}?\n")).collect::<String>()),
        format!("## A {}", "(Critical".repeat(50_000)),
        format!("**{}**", "(Critical) ".repeat(50_000)),
        "## Mindset\n".to_owned() + &"- word word word\n".repeat(50_000),
    ];
    for body in bodies {
        for name in ["reviewing-bugs", "thinking"] {
            let started = Instant::now();
            let found = extract_review_skill(&skill(name, &body), name);
            let start: String = body.chars().take(40).collect();
            assert!(started.elapsed() < Duration::from_secs(60), "{name} {start:?}");
            assert!(found.diagnostics.len() <= 66, "{name} {start:?}");
            assert!(to_yaml(&[found.skill]).len() < 4 * 1024 * 1024, "{name} {start:?}");
        }
    }
}

/// Pieces of Markdown that mean something here.
fn piece() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "## Focus Areas\n",
        "### A (Critical):\n",
        "**B (Major):**\n",
        "**C** (minor): d\n",
        "- e\n",
        "  - f:\n",
        "    - g\n",
        "1. h?\n",
        "## Auto-Validated\n",
        "## False Positives\n",
        "## Priority Files\n",
        "| ID | Regex | Files |\n|-|-|-|\n",
        "| a | `x\\|y` | Rust |\n",
        "| `b` | (é\\|\u{1b} | *.ts |\n",
        "`../shared/rules.md#a`\n",
        "[x](#focus-areas)\n",
        "## Mindset\n",
        "## Steps\n",
        "### Phase 1: i\n",
        "## Questions\n",
        "Is it? Yes.\n",
        "```\n",
        "> ",
        "\n",
        "<div>\n",
        "\t",
        "* * *\n",
        "- **/é/**\n",
        "- [ ] j (Major)\n",
        "**k:** l\n",
        "(",
        "[",
        "`",
        "**",
        "\r\n",
        "\u{feff}",
        "ẞ (CRITICAL)\n===\n",
        "&amp;",
        "\\|",
    ]);
    prop_oneof![4 => words.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => "[-*#|>`() \n\t:?0-9a-c\\\\]{0,12}"]
}

fn check_spans(
    found: &ReviewExtraction,
    sources: &[(&Utf8Path, &str)],
) -> Result<(), TestCaseError> {
    for finding in &found.diagnostics {
        let Some(span) = finding.span else { continue };
        let path = finding.path.as_deref();
        let (_, text) = sources.iter().find(|(known, _)| Some(*known) == path).unwrap();
        prop_assert!(text.get(span.range()).is_some(), "{finding:?}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_can_be_read_and_its_yaml_reads_back(
        body in prop::collection::vec(piece(), 0..30),
        shared in prop::collection::vec(piece(), 0..12),
        name in prop::sample::select(vec!["reviewing-bugs", "reviewing-documentation", "thinking"]),
    ) {
        let file = "/plugins/p/1/skills/x/SKILL.md";
        let origin = SkillOrigin {
            file: file.into(), root: "/plugins/p/1/skills".into(), scope: Scope::Plugin, plugin: plugin(),
        };
        let skill = skill_at(file, origin, name, &body.concat());
        let shared = shared.concat();
        let found = extract_review_skill_with(&skill, name, &|_| Ok(shared.clone()));
        let rules = Utf8Path::new("/plugins/p/1/skills/shared/rules.md");
        check_spans(&found, &[(Utf8Path::new(file), skill.text()), (rules, &shared)])?;
        let skills = vec![found.skill];
        prop_assert_eq!(read_back(&to_yaml(&skills)), skills);
    }

    #[test]
    fn yaml_reads_back_as_it_was(skills in prop::collection::vec(any_skill(), 0..4)) {
        prop_assert_eq!(read_back(&to_yaml(&skills)), skills);
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "[a-c:#'\"\\\\,\\[\\]{}&*!|>%@`? \n\t-]{0,20}",
        Just("null".to_owned()),
        Just("1.0".to_owned())
    ]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..4)
}

fn severity() -> impl Strategy<Value = Option<ReviewSeverity>> {
    prop::option::of(prop::sample::select(ReviewSeverity::ALL.to_vec()))
}

fn area() -> impl Strategy<Value = FocusArea> {
    (text(), severity(), texts()).prop_map(|(name, severity, checks)| FocusArea {
        name,
        severity,
        checks,
    })
}

fn pattern() -> impl Strategy<Value = ReviewPattern> {
    let some = || prop::option::of(text());
    (text(), some(), text(), severity(), texts(), some()).prop_map(
        |(id, pattern, description, severity, files, unusable)| ReviewPattern {
            id,
            pattern,
            description,
            severity,
            files,
            unusable,
        },
    )
}

fn methodology() -> impl Strategy<Value = ReviewMethodology> {
    (text(), text(), texts(), texts()).prop_map(|(approach, mindset, steps, questions)| {
        ReviewMethodology { approach, mindset, steps, questions }
    })
}

fn any_skill() -> impl Strategy<Value = ReviewSkill> {
    let kind = prop::sample::select(vec![
        ReviewKind::Review,
        ReviewKind::Methodology,
        ReviewKind::Command,
    ]);
    let files = texts().prop_map(|patterns| PriorityFiles { patterns });
    let head = (text(), text(), kind, prop::option::of(text()));
    let areas = prop::collection::vec(area(), 0..3);
    let patterns = prop::collection::vec(pattern(), 0..3);
    let tail = (areas, patterns, texts(), prop::option::of(files), prop::option::of(methodology()));
    (head, tail).prop_map(|((name, source, kind, primary_agent), tail)| ReviewSkill {
        name,
        source,
        kind,
        primary_agent,
        focus_areas: tail.0,
        auto_validated_patterns: tail.1,
        false_positive_rules: tail.2,
        priority_files: tail.3,
        methodology: tail.4,
    })
}
