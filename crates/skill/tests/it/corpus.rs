//! Files as people have them, broken in every place: cut off at every byte, and with single bytes changed.

use repertoire_skill::load::{MissingDescription, load_skill_with};
use repertoire_skill::pack;
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::diagnostic::apply_edits;
use repertoire_text::{Limits, Source};

const FILES: &[&str] = &[
    "---\nname: pdf-processing\ndescription: Extract text from PDFs, fill forms. Use when the user mentions PDFs or forms.\nlicense: Apache-2.0\nmetadata:\n  author: example-org\n  version: \"1.0\"\n---\n\n# PDF processing\n\nRun `scripts/extract.py`.\n\n```python\nimport pypdf\n```\n",
    "---\nname: deploy\ndescription: |\n  Deploys the service.\n\n  Use when releasing: staging first, then production.\nallowed-tools: Bash(git log:*), Read, Grep\nargument-hint: [env] [tag]\ndisable-model-invocation: true\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check.sh\n---\nDeploy $ARGUMENTS.\n",
    "---\nname: Error Analyzer\ntype: self-improvement\nversion: 1.2.0\nauthor: team\ndescription: Finds the cause of an error.\ntriggers:\n  - error_detected\n  - tests_failed\nrequired_tools: [read_file, grep]\ndependencies:\n  - failure-memory@^1.2\ncacheable: true\nmax_retries: 3\ntimeout_ms: 30000\npriority: high\ntags: [errors, analysis]\n---\n\n## Steps\n\n1. Read the log.\n",
    "---\nname: researcher\ntype: subagent\ndescription: Searches the web.\ncapabilities:\n  - web_search\nmax_concurrent: 2\n---\nYou research.\n",
    "---\nname: code-reviewer\ndescription: Reviews code. Use proactively: after every change.\ntools: Read, Grep, Glob\nmodel: sonnet\ncolor: blue\n---\n\nYou are a senior reviewer.\n",
    "---\nname: danish\ndescription: Søger udbud på TED og udbud.dk – brug ved ordrestyring, lån & leasing.\ntriggers:\n  keywords: [udbud, \"offentligt indkøb\", rammeaftale]\n  patterns: ['\\budbud(s|et)?\\b', '(?i)tender']\n  confidence: 0.7\n---\nÆØÅ 日本語 👩‍💻\n",
    "---\r\nname: windows\r\ndescription: Written on Windows.\r\nallowed-tools:\r\n- Read\r\n- Write\r\n---\r\n\r\nBody.\r\n",
    "\u{feff}---\nname: bom\ndescription: >-\n  Folded text that\n  goes on.\n---\nBody\n",
    "---\nname: emphasis\ndescription: *Always* use this skill: it's the best!\nwhen_to_use: !important\nlicense: `MIT`\n---\nBody.\n",
    "---\nname: tabs\ndescription: d\nmetadata:\n\tauthor: me\n\ttags: a, b\n---\nBody.\n",
    "---\nname: misplaced\ndescription: d\ntriggers:\n  - a\n  tags:\n  - b\n  capabilities: c\n---\nBody.\n",
    "---\nname: quotes\ndescription: 'It''s \"quoted\" \\ text'\nx: {a: [1, 2.5, null], \"b\": ~, c: {d: !!str e}}\n---\n\n---\n\nRule above.\n",
];

/// Loads a text, and asserts what holds for any: a reason if it is refused, and places that exist.
#[track_caller]
fn check(text: &str) {
    for (path, missing) in [
        ("a/SKILL.md", MissingDescription::Skip),
        ("agents/a.md", MissingDescription::FirstParagraph),
    ] {
        let source = Source::new(path, text);
        let loaded =
            load_skill_with(source, SkillOrigin::from_file(path), &Limits::default(), missing);
        for found in &loaded.diagnostics {
            let place = found.span.unwrap_or_default();
            assert!(text.get(place.range()).is_some(), "{found:?} in {text:?}");
            apply_edits(text, found.fix.iter().flat_map(|fix| &fix.edits));
        }
        match loaded.skill {
            Some(skill) => assert!(text.ends_with(skill.body()), "{text:?}"),
            None => assert!(loaded.diagnostics.iter().any(|f| f.is_error()), "{text:?}"),
        }
    }
}

fn pack_texts() -> Vec<Vec<u8>> {
    pack::list_pack_files()
        .iter()
        .filter_map(|path| pack::read_pack_file(path))
        .map(|bytes| bytes.into_owned())
        .collect()
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_or_refused_with_a_reason() {
    for file in FILES {
        let bytes = file.as_bytes();
        (0..=bytes.len()).for_each(|end| check(&String::from_utf8_lossy(&bytes[..end])));
    }
    for bytes in pack_texts() {
        let ends = (0..bytes.len().min(800)).chain((800..bytes.len()).step_by(97));
        ends.for_each(|end| check(&String::from_utf8_lossy(&bytes[..end])));
    }
}

#[test]
fn a_file_with_any_byte_changed_is_read_or_refused_with_a_reason() {
    const BYTES: &[u8] = b"\0\t\n\r \"'#&*!|>%@`-:[]{},?\\~a0\x80\xc3\xff";
    for file in FILES {
        let mut bytes = file.as_bytes().to_vec();
        for at in 0..bytes.len() {
            let before = bytes[at];
            // A third of the bytes at each place, so that each byte comes up every third place.
            for byte in BYTES.iter().skip(at % 3).step_by(3) {
                bytes[at] = *byte;
                check(&String::from_utf8_lossy(&bytes));
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn a_file_with_any_line_missing_twice_or_moved_is_read_or_refused_with_a_reason() {
    for file in FILES {
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        for at in 0..lines.len() {
            let (before, after) = lines.split_at(at);
            check(&[before, &after[1..]].concat().concat());
            check(&[before, &after[..1], after].concat().concat());
            check(&[&after[..1], before, &after[1..]].concat().concat());
        }
    }
}
