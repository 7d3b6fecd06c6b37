//! `rep lint`: verdicts, exit codes, corrections that change nothing else, and the machine formats.

use insta::assert_snapshot;

use crate::workspace::{BODY, Ran, Workspace, keys};

const COLON: &str = "name: colon\ndescription: Reads: things. Use when asked.\n";

/// A file with this frontmatter in `project/s/NAME/SKILL.md`.
fn one(name: &str, fields: &str) -> Workspace {
    let ws = Workspace::new();
    ws.skill_with(&format!("project/s/{name}"), fields);
    ws
}

#[test]
fn a_good_skill_passes() {
    let ws = one("good", "name: good\ndescription: Does good. Use when good is to be done.\n");
    assert_snapshot!(ws.rep("lint s"), @r#"
    ok: 1 file, nothing to complain about
    [exit 0]
    "#);
}

#[test]
fn findings_show_the_line_and_errors_end_with_one() {
    let ws = one("bad", "name: Bad Name\ndescription: Does: bad\nfoo: bar\n");
    assert_snapshot!(ws.rep("lint s"), @r#"
    error[RS101]: `Bad Name` is not a valid name
     --> s/bad/SKILL.md:2:7
      |
    2 | name: Bad Name
      |       ^^^^^^^^
      |
    help: it is known as `bad-name`
      |
    2 - name: Bad Name
    2 + name: bad-name
      |

    warning[RS102]: the folder is called `bad`, but the skill `bad-name`
     --> s/bad/SKILL.md:2:7
      |
    2 | name: Bad Name
      |       ^^^^^^^^
      |
      = help: rename the folder or the skill, so that clients find it by either

    warning[RS030]: the value is not valid YAML as written
     --> s/bad/SKILL.md:3:1
      |
    3 | description: Does: bad
      | ^^^^^^^^^^^^^^^^^^^^^^
      |
    help: it was read as if quoted
      |
    3 - description: Does: bad
    3 + description: "Does: bad"
      |

    1 file: 1 error, 2 warnings (2 can be mended with --fix); 2 notes not shown, see --verbose
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("lint --verbose --format short s"), @r#"
    s/bad/SKILL.md:2:7: error[RS101] `Bad Name` is not a valid name
    s/bad/SKILL.md:2:7: warning[RS102] the folder is called `bad`, but the skill `bad-name`
    s/bad/SKILL.md:3:1: warning[RS030] the value is not valid YAML as written
    s/bad/SKILL.md:3:14: info[RS206] the description does not say when to use the skill
    s/bad/SKILL.md:4:1: info[RS107] the field `foo` is not known
    1 file: 1 error, 2 warnings (2 can be mended with --fix)
    [exit 1]
    "#);
}

#[test]
fn warnings_pass_unless_they_are_to_be_taken_for_errors() {
    let ws = one("colon", COLON);
    assert_eq!(ws.rep("lint s").code, 0);
    assert_eq!(ws.rep("lint --strict s").code, 1);
}

#[test]
fn a_path_that_is_not_there_is_wrong_use() {
    assert_snapshot!(Workspace::new().rep("lint nowhere"), @r#"
    [stderr]
    error: there is no `nowhere`
    hint: Give a skill's folder, its SKILL.md, or a folder of skills.
    [exit 2]
    "#);
}

#[test]
fn a_folder_without_skills_has_nothing_to_check() {
    let ws = Workspace::new();
    ws.write("project/docs/readme.md", "# Just prose\n");
    assert_snapshot!(ws.rep("lint docs"), @r#"
    No skills to check.
    [exit 0]
    "#);
}

#[test]
fn without_paths_everything_that_is_discovered_is_checked_broken_ones_too() {
    let ws = Workspace::new();
    ws.write("project/.claude/skills/draft/SKILL.md", "---\nname: draft\n---\n\nNotes.\n");
    let ran = ws.rep("lint --format short");
    assert_snapshot!(ran, @"
    .claude/skills/draft/SKILL.md:2:1: error[RS103] the skill has no `description`
    2 files: 1 error
    [exit 1]
    ");
}

#[test]
fn lint_needs_no_trust_so_a_damaged_lock_is_in_nobodys_way() {
    let ws = one("colon", COLON);
    ws.write("home/.config/repertoire/repertoire.lock/x", "a folder where the file should be");
    assert_snapshot!(ws.rep("lint s"), @r#"
    warning[RS030]: the value is not valid YAML as written
     --> s/colon/SKILL.md:3:1
      |
    3 | description: Reads: things. Use when asked.
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
    help: it was read as if quoted
      |
    3 - description: Reads: things. Use when asked.
    3 + description: "Reads: things. Use when asked."
      |

    1 file: 1 warning (1 can be mended with --fix)
    [exit 0]
    "#);
}

/// What `--fix` makes of a file; run again it must leave it alone.
#[track_caller]
fn check_fix(name: &str, before: &[u8], after: &[u8]) {
    let ws = Workspace::new();
    let file = format!("project/s/{name}/SKILL.md");
    ws.write(&file, before);
    let first = ws.rep("lint --fix s");
    assert_eq!(ws.text(&file), String::from_utf8_lossy(after), "{first}");
    assert_eq!(first.stdout.contains("fixed s/"), before != after, "{first}");
    let second = ws.rep("lint --fix s");
    assert!(!second.stdout.contains("fixed "), "{second}");
    assert_eq!(ws.bytes(&file), after);
}

#[test]
fn a_correction_changes_its_line_and_nothing_else() {
    let lf = |value: &str| format!("---\nname: a\ndescription: {value}\n---\n\n{BODY}\n");
    let (bad, good) =
        (lf("Reads: things. Use when asked."), lf("\"Reads: things. Use when asked.\""));
    check_fix("a", bad.as_bytes(), good.as_bytes());
    let crlf = |text: &str| text.replace('\n', "\r\n");
    check_fix("a", crlf(&bad).as_bytes(), crlf(&good).as_bytes());
    check_fix("a", bad.trim_end().as_bytes(), good.trim_end().as_bytes());
    check_fix("a", crlf(&bad).trim_end().as_bytes(), crlf(&good).trim_end().as_bytes());
    check_fix("a", format!("\u{feff}{bad}").as_bytes(), good.as_bytes());
    check_fix("a", format!("\u{feff}{good}").as_bytes(), good.as_bytes());
    check_fix("a", good.as_bytes(), good.as_bytes());
}

#[test]
fn several_corrections_in_one_file_are_all_written_at_once() {
    let text = |name: &str, tools: &str, description: &str| {
        format!("---\nname: {name}\n{tools}description: {description}\n---\n\n{BODY}\n")
    };
    check_fix(
        "my-name",
        text("My Name", "license: *mit\n", "Reads: things. Use when: asked.").as_bytes(),
        text("my-name", "license: \"*mit\"\n", "\"Reads: things. Use when: asked.\"").as_bytes(),
    );
    check_fix(
        "my-name",
        text("My: Name", "", "Reads things. Use when asked.").as_bytes(),
        text("my-name", "", "Reads things. Use when asked.").as_bytes(),
    );
}

#[test]
fn what_needs_a_person_is_left() {
    let before = format!("---\nname: a\ndescription: [not, text]\nname: b\n---\n\n{BODY}\n");
    check_fix("a", before.as_bytes(), before.as_bytes());
}

#[test]
fn json_has_the_published_keys_and_one_entry_for_every_file() {
    let ws = one("bad", "name: Bad Name\ndescription: Does bad. Use when bad.\n");
    ws.skill("project/s/good", "good", "Does good. Use when good is to be done.");
    let report = ws.json("--json lint s", "lint.json");
    assert_eq!(keys(&report), ["files", "summary"]);
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    for key in ["path", "name", "diagnostics"] {
        assert!(files.iter().all(|file| keys(file).contains(&key)), "{key}");
    }
    let found = &files[0]["diagnostics"][0];
    for key in ["code", "severity", "message", "line", "column", "help"] {
        assert!(keys(found).contains(&key), "{key}");
    }
    assert_eq!(
        (found["code"].as_str(), found["severity"].as_str()),
        (Some("RS101"), Some("error"))
    );
    assert_eq!((found["line"].as_u64(), found["column"].as_u64()), (Some(2), Some(7)));
    assert_eq!(files[1]["diagnostics"].as_array().unwrap().len(), 0);
}

#[test]
fn sarif_names_every_rule_once_and_places_every_result() {
    let ws = one("bad", "name: Bad Name\ndescription: Does bad. Use when bad.\n");
    let ran = ws.rep("lint --sarif s");
    let sarif: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, 1);
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    let known: Vec<&str> =
        repertoire_cli::codes::all_diagnostic_codes().iter().map(|code| code.id).collect();
    assert_eq!(rules, known);
    assert_snapshot!(serde_json::to_string_pretty(&run["results"][0]).unwrap(), @r#"
    {
      "ruleId": "RS101",
      "level": "error",
      "message": {
        "text": "`Bad Name` is not a valid name. Use lower-case letters, digits and single hyphens"
      },
      "locations": [
        {
          "physicalLocation": {
            "artifactLocation": {
              "uri": "s/bad/SKILL.md"
            },
            "region": {
              "startLine": 2,
              "startColumn": 7
            }
          }
        }
      ]
    }
    "#);
}

#[test]
fn sarif_and_another_format_are_too_many() {
    assert_snapshot!(one("colon", COLON).rep("lint --sarif --format short s"), @r#"
    [stderr]
    error: the argument '--sarif' cannot be used with '--format <FORMAT>'

    Usage: rep lint --sarif <PATHS>...

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn skills_ref_format_is_word_for_word_and_on_its_streams() {
    let ws = one("bad", "name: Bad Name\ndescription: Does bad.\nfoo: bar\n");
    ws.skill("project/s/good", "good", "Does good. Use when good is to be done.");
    let ran = ws.rep("lint --format skills-ref s/good s/bad s/bad/SKILL.md s/none s");
    assert_snapshot!(ran, @r#"
    Valid skill: s/good
    [stderr]
    Validation failed for s/bad:
      - Unexpected fields in frontmatter: foo. Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed.
      - Skill name 'Bad Name' must be lowercase
      - Skill name 'Bad Name' contains invalid characters. Only letters, digits, and hyphens are allowed.
      - Directory name 'bad' must match skill name 'Bad Name'
    Validation failed for s/bad:
      - Unexpected fields in frontmatter: foo. Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed.
      - Skill name 'Bad Name' must be lowercase
      - Skill name 'Bad Name' contains invalid characters. Only letters, digits, and hyphens are allowed.
      - Directory name 'bad' must match skill name 'Bad Name'
    Validation failed for s/none:
      - Path does not exist: s/none
    Validation failed for s:
      - Missing required file: SKILL.md
    [exit 1]
    "#);
}

#[test]
fn the_agentskills_profile_gives_the_verdict_of_skills_ref() {
    #[track_caller]
    fn check(name: &str, fields: &str, expect: &[&str]) {
        let ws = one(name, fields);
        let report = ws.json("--profile agentskills --json lint s", "lint.json");
        let found = report["files"][0]["diagnostics"].as_array().unwrap();
        let codes: Vec<&str> = found.iter().map(|found| found["code"].as_str().unwrap()).collect();
        assert_eq!(codes, expect, "{report:#}");
        let plain = ws.rep(&format!("lint --format skills-ref s/{name}"));
        assert_eq!(plain.code == 0, expect.is_empty(), "{plain}");
    }
    check("good", "name: good\ndescription: Good.\n", &[]);
    check("good", "name: good\ndescription: Good: not.\n", &["RS507"]);
    check("good", "name: good\ndescription: Good.\ntags: [a]\n", &["RS507"]);
    check("good", "name: good\ndescription: Good.\nversion: 1\n", &["RS509"]);
    check("good", "name: good\n", &["RS510"]);
    check("other", "name: good\ndescription: Good.\n", &["RS517"]);
    check("a--b", "name: a--b\ndescription: Good.\n", &["RS515"]);
}

#[test]
fn the_claude_profile_refuses_what_the_upload_refuses() {
    let ws = one("tag", "name: tag\ndescription: Handles <b> tags. Use when asked.\n");
    assert_snapshot!(ws.rep("--profile claude lint --format short s"), @r#"
    s/tag/SKILL.md:3:14: error[RS211] the description holds `<` or `>`
    1 file: 1 error
    [exit 1]
    "#);
}

#[test]
fn every_code_has_an_id_and_a_name_of_its_own() {
    let codes = repertoire_cli::codes::all_diagnostic_codes();
    for (at, code) in codes.iter().enumerate() {
        assert!(codes[at + 1..].iter().all(|other| other.id != code.id), "{}", code.id);
        assert!(codes[at + 1..].iter().all(|other| other.name != code.name), "{}", code.name);
        assert!(code.id.len() == 5 && code.id.starts_with("RS"), "{}", code.id);
        assert!(code.summary.ends_with('.') && code.remedy.ends_with('.'), "{}", code.id);
    }
}

/// Everything that looks like a code in the output of many commands on a bad tree.
#[test]
fn every_code_that_is_printed_is_in_the_table() {
    let ws = Workspace::new();
    let files: [(&str, &[u8]); 9] = [
        (
            "bad/SKILL.md",
            b"---\nname: Bad Name\ndescription: a: b\nfoo: 1\n---\nshort [x](no.md) !`ls`\n",
        ),
        ("latin/SKILL.md", b"---\nname: latin\ndescription: \xe9\n---\n"),
        ("none/SKILL.md", b"# nothing\n"),
        ("open/SKILL.md", b"---\nname: open\n"),
        ("twice/SKILL.md", b"---\nname: twice\nname: twice\ndescription: d\n---\n"),
        ("anchor/SKILL.md", b"---\nname: &a anchor\ndescription: [*a]\n---\n"),
        ("needs/SKILL.md", b"---\nname: needs\ndescription: d\ndependencies: [gone, needs]\n---\n"),
        (
            "fence/SKILL.md",
            b"---\nname: fence\ndescription: d\ntriggers: {patterns: ['(', '.*']}\n---\n```\n",
        ),
        ("empty/SKILL.md", b""),
    ];
    for (path, bytes) in files {
        ws.write(&format!("project/.claude/skills/{path}"), bytes);
    }
    let known: Vec<&str> =
        repertoire_cli::codes::all_diagnostic_codes().iter().map(|code| code.id).collect();
    let mut printed = std::collections::BTreeSet::new();
    for line in [
        "list",
        "lint --verbose",
        "--profile agentskills lint",
        "--json lint",
        "doctor --verbose",
        "show bad",
    ] {
        let ran = ws.rep(line);
        for (at, _) in ran.stdout.match_indices("RS") {
            let code: String =
                ran.stdout[at + 2..].chars().take_while(char::is_ascii_digit).collect();
            if code.len() == 3 {
                printed.insert(format!("RS{code}"));
            }
        }
    }
    assert!(printed.len() > 15, "{printed:?}");
    for code in &printed {
        assert!(known.contains(&code.as_str()), "{code}");
    }
}

#[test]
#[cfg(unix)]
fn fix_writes_nothing_through_a_link() {
    let ws = Workspace::new();
    let bad = "---\nname: o\ndescription: Use when: asked\n---\n\nA body that is long enough to be of use to somebody.\n";
    ws.write("project/elsewhere/o/SKILL.md", bad);
    ws.write("project/s/own/SKILL.md", bad.replace("name: o", "name: own"));
    std::os::unix::fs::symlink(ws.path("project/elsewhere"), ws.path("project/s/linked")).unwrap();
    assert_snapshot!(ws.rep("lint --fix --no-compare --format short s"), @"
    s/linked/o/SKILL.md:3:1: warning[RS030] the value is not valid YAML as written
    fixed s/own/SKILL.md
    2 files: 1 warning
    [exit 0]
    ");
    assert_eq!(ws.text("project/elsewhere/o/SKILL.md"), bad);
}

/// A folder of skills of which two say the same and one says only what others say better.
fn alike() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/s/bills", "bills", "Checks invoices. Use when a bill comes in.");
    ws.skill("project/s/invoices", "invoices", "Checks invoices; use when a bill comes in.");
    ws.skill("project/s/events", "events", "Subscribe to calendar events.");
    let better = "Subscribe to calendar events and stream calendar events.";
    ws.skill("project/s/events-subscribe", "events-subscribe", better);
    ws
}

#[test]
fn skills_that_nothing_tells_apart_and_skills_that_never_come_first_are_found() {
    let ws = alike();
    assert_snapshot!(ws.rep("lint s"), @r#"
    warning[RS600]: it has the same description as `invoices`
     --> s/bills/SKILL.md:3:14
      |
    3 | description: Checks invoices. Use when a bill comes in.
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: Say in each description when to use this skill and not the other, or keep only one of them.

    warning[RS601]: its own words find other skills: `events-subscribe` comes first, as for "Subscribe to calendar events."
     --> s/events/SKILL.md:3:14
      |
    3 | description: Subscribe to calendar events.
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: Say in the description what only this skill does, in the words that people use to ask for it.

    warning[RS600]: it has the same description as `bills`
     --> s/invoices/SKILL.md:3:14
      |
    3 | description: Checks invoices; use when a bill comes in.
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: Say in each description when to use this skill and not the other, or keep only one of them.

    4 files: 3 warnings; 2 notes not shown, see --verbose
    [exit 0]
    "#);
}

#[test]
fn skills_are_compared_only_by_our_own_rules_and_only_if_wanted() {
    let ws = alike();
    let compared = |line: &str| ws.rep(line).stdout.contains("RS60");
    assert!(compared("lint s"));
    assert!(compared("lint --compare s"));
    assert!(!compared("lint --no-compare s"));
    assert!(!compared("lint s/bills"), "one skill has nobody to be compared with");
    for profile in ["agentskills", "openskills", "claude", "codex", "gemini"] {
        assert!(!compared(&format!("--profile {profile} lint s")), "{profile}");
    }
    assert_snapshot!(ws.rep("--profile openskills lint --compare s"), @"
    [stderr]
    error: `--compare` belongs to the rules of the profile `repertoire`
    hint: Other profiles, and `--format skills-ref`, say what another tool would say.
    [exit 2]
    ");
    assert_eq!(ws.rep("lint --compare --format skills-ref s/bills").code, 2);
    assert_eq!(ws.rep("lint --compare --no-compare s").code, 2);
}

#[test]
#[cfg(unix)]
fn the_file_and_a_link_to_it_are_one_skill() {
    let ws = Workspace::new();
    ws.skill("project/s/bills", "bills", "Checks invoices. Use when a bill comes in.");
    std::os::unix::fs::symlink(ws.path("project/s/bills"), ws.path("project/s/a-link")).unwrap();
    let ran = ws.rep("lint --verbose s");
    assert!(!ran.stdout.contains("RS600"), "{ran}");
}

#[test]
fn a_skill_that_is_shadowed_is_not_held_against_the_one_in_its_place() {
    let ws = Workspace::new();
    ws.skill("home/.claude/skills/bills", "bills", "Checks invoices. Use when a bill comes in.");
    ws.skill("project/.claude/skills/bills", "bills", "Checks invoices; use when a bill comes in.");
    let ran = ws.rep("lint");
    assert!(ran.stdout.contains("3 files"), "{ran}");
    assert!(!ran.stdout.contains("RS600"), "{ran}");
    let ran = ws.rep_with(&["lint", ws.path("home").as_str(), ".claude"]);
    assert!(ran.stdout.contains("RS600"), "{ran}");
}

#[test]
fn too_many_skills_are_compared_only_on_request() {
    let ws = Workspace::new();
    for at in 0..501 {
        ws.skill(&format!("project/s/n{at}"), &format!("n{at}"), "Checks invoices when asked.");
    }
    let ran = ws.rep("lint s");
    assert!(!ran.stdout.contains("RS600"), "{}", ran.stderr);
    assert_snapshot!(ran.stderr, @"note: 501 skills are more than 500, so they were not compared with each other; `--compare` does it");
    let ran = ws.rep("lint --compare --format short s");
    assert_eq!(ran.stdout.matches("RS600").count(), 501);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_mode_is_checked_as_one() {
    let ws = Workspace::new();
    ws.write(
        "project/.agents/skills/night-mode/SKILL.md",
        "---\nname: night-mode\ntype: mode\ndescription: Works at night. Use when it is dark.\n\
         triggers: [midnight]\n---\n\n# Night\n\n## System Prompt Template\n\n```text\nYou work for {{moon}}.\n```\n",
    );
    let codes = |ran: &Ran| -> Vec<String> {
        let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let all = found["files"][0]["diagnostics"].as_array().unwrap().iter();
        let mut codes: Vec<String> =
            all.map(|found| found["code"].as_str().unwrap().to_owned()).collect();
        codes.retain(|code| code.starts_with("RS8"));
        codes.sort();
        codes
    };
    let ran = ws.rep("lint --json .agents/skills/night-mode");
    assert_eq!(
        (ran.code, codes(&ran)),
        (1, vec!["RS800".into(), "RS802".into(), "RS803".into(), "RS805".into()])
    );
}
