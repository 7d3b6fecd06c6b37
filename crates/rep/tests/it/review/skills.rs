//! Who looks, and what skills tell them.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::Value;

use super::{REVIEW, changed, commit, lay, record, texts};
use crate::workspace::Workspace;

/// The block of a prompt that skills speak in.
fn skill_instructions(question: &Value) -> Option<&str> {
    let prompt = question["prompt"].as_str().unwrap();
    let (_, rest) = prompt.split_once("```yaml\nskill_instructions:\n")?;
    Some(rest.split_once("```").unwrap().0)
}

fn questions(ws: &Workspace, args: &str) -> Value {
    record(ws, &format!("review --dry-run {args}"))
}

#[test]
fn a_dry_run_prints_what_every_agent_would_be_told() {
    let ws = changed();
    let deep = questions(&ws, "--depth deep");
    let planned: Vec<(&str, u64)> = deep["planned"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| (phase["phase"].as_str().unwrap(), phase["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(planned[..3], [("thorough", 9), ("gaps", 5), ("synthesis", 5)]);
    let all = deep["questions"].as_array().unwrap();
    assert_eq!(all.len(), 14, "pairs are known when there are findings");
    let told: BTreeMap<(&str, &str), Option<&str>> = all
        .iter()
        .map(|one| {
            (
                (one["phase"].as_str().unwrap(), one["agent"].as_str().unwrap()),
                skill_instructions(one),
            )
        })
        .collect();
    for ((phase, agent), block) in &told {
        if *phase == "gaps" {
            assert_eq!(told[&("thorough", *agent)], *block, "{agent} is told the same");
        }
    }
    let security = told[&("gaps", "security-agent")].unwrap();
    for part in [
        "focus_areas:",
        "checklist:",
        "auto_validate:",
        "hardcoded_password",
        "false_positive_rules:",
    ] {
        assert!(security.contains(part), "{security}");
    }
    let without = questions(&ws, "--depth deep --no-skills");
    for one in without["questions"].as_array().unwrap() {
        assert!(
            !one["prompt"].as_str().unwrap().contains("skill_instructions"),
            "{}",
            one["agent"]
        );
    }

    let ran = ws.rep("review --depth deep --dry-run");
    assert_eq!((ran.code, ran.stdout.matches("━━ ").count()), (0, 14));
    assert_eq!(ran.stdout.matches("as the operator:").count(), 14);
    assert_snapshot!(ran.stderr, @"
    ! the change touches `AGENTS.md`; this review goes by what was there before
    thorough: 9 calls
    gaps: 5 calls (they are told what was found before)
    synthesis: 5 calls at most (pairs of categories that both have findings)
    validation: a call for each file with findings, and one for insights
    ");
    // Nothing is asked and nothing kept.
    assert_eq!(ws.rep("review list").stdout, "");
}

#[test]
fn a_skill_that_is_not_there_costs_no_other_one() {
    let ws = changed();
    let line = format!("{REVIEW} --skills reviewing-security,nope");
    let ran = ws.rep(&line);
    assert_eq!(ran.code, 1, "{ran}");
    let warnings = ran.stdout.lines().take_while(|line| !line.is_empty());
    let told = ran.stderr.lines().take_while(|line| !line.starts_with("quick"));
    assert_snapshot!(warnings.chain(told).collect::<Vec<_>>().join("\n"), @"
    warning: the skill `nope` could not be resolved and was skipped: skill `nope` not found
    warning: the change touches `AGENTS.md`; this review goes by what was there before
    ! skill `nope` not found; going on with the others
        searched [TMP]/data/skills
    ");
    let none = ws.rep("review --dry-run --skills nope");
    assert_eq!(none.code, 2, "{none}");
    assert!(none.stderr.contains("none of the skills is there: nope"), "{none}");
    let record = record(&ws, &line);
    assert_eq!(texts(&record["skills"], "name"), ["reviewing-security"]);
    let missing = &record["unresolved_skills"][0];
    assert_eq!(missing["source"], "nope");
    assert!(!missing["searched"].as_array().unwrap().is_empty(), "{missing}");
    let markdown = ws.rep("review show --format markdown").stdout;
    assert!(markdown.contains("nope"), "{markdown}");
}

#[test]
fn a_pattern_of_an_untrusted_skill_proves_nothing() {
    let ws = changed();
    lay(&ws, "before");
    ws.write(
        "project/.claude/skills/reviewing-house/SKILL.md",
        "---\nname: reviewing-house\ndescription: Rules of the house. Use when code is reviewed.\n---\n\n# House rules\n\n\
         ## Categories Checked\n\n**Loops (Major):**\n\n- A query in a loop.\n\n\
         ## Auto-Validated Patterns\n\n| Pattern | Regex | Description | Severity |\n|---|---|---|---|\n\
         | `loop_query` | `for order in orders` | A query runs in a loop | Major |\n",
    );
    commit(&ws, "a skill");
    lay(&ws, "after");
    let line = "review --patterns-only --skills reviewing-house --fail-on suggestion";
    let ran = ws.rep(line);
    assert_eq!(ran.code, 2, "patterns that prove nothing say nothing of a change: {ran}");
    assert!(ran.stderr.contains("there is no pattern to run"), "{ran}");
    let both = record(&ws, &line.replace("reviewing-house", "usual,reviewing-house"));
    assert!(
        texts(&both["findings"], "title").iter().all(|title| *title != "A query runs in a loop")
    );
    assert!(both["warnings"].to_string().contains("`reviewing-house` is not trusted"), "{both:#}");

    assert_eq!(ws.rep("trust reviewing-house").code, 0);
    let ran = ws.rep(&format!("--json {line}"));
    let trusted: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, 1, "{trusted:#}");
    assert_eq!(trusted["findings"][0]["pattern"], "loop_query");
    assert_eq!(trusted["findings"][0]["validation"]["verdict"], "pattern");
}

#[test]
fn what_a_review_takes_from_a_skill_can_be_seen() {
    let ws = changed();
    let yaml = ws.rep("review skills reviewing-bugs");
    assert_eq!(yaml.code, 0, "{yaml}");
    let json = record(&ws, "review skills reviewing-bugs,reviewing-security");
    let skills = &json["resolved_skills"];
    assert_eq!(texts(skills, "name"), ["reviewing-bugs", "reviewing-security"]);
    assert_eq!(skills[0]["primary_agent"], "bug-detection-agent");
    let area = skills[0]["focus_areas"][0]["name"].as_str().unwrap();
    assert!(yaml.stdout.starts_with("resolved_skills:\n") && yaml.stdout.contains(area), "{yaml}");
    let none = ws.rep("review skills nope");
    assert_eq!(none.code, 1, "{none}");
}

const AGENT: &str = "\
subject: code
agents:
  - name: money-agent
    category: money
    title: Money
    thorough: fast
    quick: fast
    validator: fast
    instructions: Look at sums.
";

#[test]
fn an_agent_of_ones_own_is_asked() {
    let ws = changed();
    ws.write("home/.config/repertoire/review/money.yaml", AGENT);
    ws.write("mine.yaml", AGENT.replace("money", "time").replace("Money", "Time"));
    let record = record(&ws, &format!("{REVIEW} --lineup ../mine.yaml"));
    let asked = texts(&record["calls"], "agent");
    assert!(asked.contains(&"money-agent") && asked.contains(&"time-agent"), "{asked:?}");
    assert!(texts(&record["categories"], "title").contains(&"Money"));
    let told = ws.rep("review --dry-run --lineup ../mine.yaml").stdout;
    assert!(told.contains("# Review: Time") && told.contains("Look at sums."), "{told}");

    ws.write(
        "home/.config/repertoire/review/money.yaml",
        AGENT.replace("quick: fast", "quick: slow"),
    );
    let broken = ws.rep(REVIEW);
    assert_eq!(broken.code, 2, "{broken}");
    assert_snapshot!(broken.stderr, @"error: [TMP]/home/.config/repertoire/review/money.yaml:7: `slow` is no word for `quick`; known are strong, fast");
}
