//! `rep match`: picks with reasons, near misses, silence, and why.

use insta::assert_snapshot;

use crate::workspace::{Ran, Workspace, keys};

/// How long it took is different every time.
fn without_time(ran: Ran) -> String {
    let text = ran.to_string();
    let line = |line: &str| match line.split_once(" in ") {
        Some((before, after)) if after.ends_with(" ms.") => format!("{before} in TIME."),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn office() -> Workspace {
    let ws = Workspace::new();
    ws.skill_with(
        "home/.claude/skills/tenders",
        "name: tenders\ndescription: Rules for public tenders. Use when a tender is analysed.\n\
         triggers:\n  keywords: [danish tender, dansk udbud]\n  patterns: ['bid.*deadline', '(?=x)y']\n  \
         events: [tender_published]\n  paths: ['tenders/**']\n  not: [tender steak]\n",
    );
    ws.skill_with(
        "home/.claude/skills/invoices",
        "name: invoices\ndescription: Checks invoices against purchase orders. Do not use for payroll.\n\
         type: custom\ndependencies: [ledger]\n",
    );
    ws.skill("home/.claude/skills/ledger", "ledger", "Posts entries to the general ledger.");
    ws.skill_with(
        "home/.claude/skills/wipe",
        "name: wipe\ndescription: Wipes the staging database.\ndisable-model-invocation: true\n",
    );
    ws
}

fn names(ws: &Workspace, command: &str) -> Vec<String> {
    let found = ws.json(command, "match.json");
    let picks = found["picks"].as_array().unwrap();
    picks.iter().map(|pick| pick["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn picks_come_with_reasons_and_with_what_they_need() {
    let ran = office().rep("match check these invoices against our purchase orders");
    assert_snapshot!(without_time(ran), @r#"
    ██████████  0.98  invoices (match)
                      "invoices" in name, description; "orders", "against", "purchase" in description;
                      "check" in description, body; meaning 0.80 close
    ██████████  0.98  ledger (need)
                      needed by `invoices`

    2 of 5 skills picked in TIME.
    [exit 0]
    "#);
}

#[test]
fn silence_when_nothing_fits() {
    assert_snapshot!(without_time(office().rep("match how tall is a giraffe?")), @"
    No skill fits: the best, first-aid, reaches 0.00, and 0.60 is asked.

    None of 5 skills picked in TIME.
    [exit 0]
    ");
}

#[test]
fn a_trigger_decides() {
    let ws = office();
    for command in [
        "--json match look at this danish tender",
        "--json match DANSK  UDBUD",
        "--json match the bid has a deadline",
        "--json match --event tender_published",
        "--json match see here --path tenders/2026/a.pdf",
    ] {
        assert_eq!(names(&ws, command), ["tenders"], "{command}");
    }
    let found = ws.json("--json match look at this danish tender", "match.json");
    assert_eq!(found["strategy"], "trigger");
    assert!(names(&ws, "--json match a danish tender steak").is_empty());
}

#[test]
fn a_hint_is_taken_whatever_the_task_says() {
    let ws = office();
    assert_eq!(names(&ws, "--json match hello @ledger"), ["ledger"]);
    assert_eq!(names(&ws, "--json match --skills wipe,tenders hello"), ["wipe", "tenders"]);
    assert!(names(&ws, "--json match wipe the staging database").is_empty(), "only by name");
    let ran = ws.rep("match --skills ledgr hello");
    assert_snapshot!(without_time(ran), @"
    No skill fits: the best, first-aid, reaches 0.03, and 0.60 is asked.

    None of 5 skills picked in TIME.
    [stderr]
    warning: there is no skill `ledgr`; did you mean `ledger`?
    [exit 0]
    ");
}

#[test]
fn why_a_skill_is_picked_or_not_is_told_stage_by_stage() {
    let ws = office();
    assert_snapshot!(ws.rep("match look at this danish tender --why tenders"), @r#"
    tenders is picked: it reaches 0.99, and 0.60 is asked.
    Its triggers make it 0.85 likely.
    By words and meaning it comes 1st, which makes it 0.93 likely.
    Words of the task that it has nowhere: "look".
    Its trigger `(?=x)y` cannot be used: the pattern does not compile: look-around, including look-ahead
    and look-behind, is not supported.

    tenders 0.99
      hints     nothing
      events    nothing
      paths     nothing
      phrases   0.85 trigger phrase "danish tender"
      patterns  nothing
      words     31.95 "tender" in name, description; "danish" in description
      meaning   0.63  close in meaning
      context   nothing
      negatives nothing
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("match run the payroll --why invoices"), @r#"
    invoices is not picked, with 0.00: under the threshold of 0.60.
    By words and meaning it comes 4th, which makes it 0.00 likely.
    Words of the task that it has nowhere: "payroll", "run".

    invoices 0.00
      hints     nothing
      events    nothing
      paths     nothing
      phrases   nothing
      patterns  nothing
      words     nothing
      meaning   0.06
      context   nothing
      negatives -0.68 not for "payroll", by its description
    [exit 0]
    "#);
    let why = ws.json("--json match hello --why wipe", "why.json");
    assert_eq!(why["picked"], false);
}

#[test]
fn stages_can_be_switched_off_and_seen_alone() {
    let ws = office();
    assert!(names(&ws, "--json match the bid has a deadline --only words").is_empty());
    assert_eq!(names(&ws, "--json match dansk udbud --only phrases"), ["tenders"]);
    assert!(names(&ws, "--json match /wipe it --without hints").is_empty());
    assert_snapshot!(ws.rep("match hello --only wrods"), @"
    [stderr]
    error: invalid value 'wrods' for '--only <STAGES>': there is no such stage; the stages are hints, events, paths, phrases, patterns, words, meaning, context, negatives, needs

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn configuration_sets_threshold_number_and_whether_to_pick_at_all() {
    let ws = office();
    let task = "match check these invoices against our purchase orders";
    ws.write("project/repertoire.toml", "[auto_trigger]\nconfidence_threshold = 1\n");
    assert!(names(&ws, &format!("--json {task}")).is_empty());
    ws.write("project/repertoire.toml", "[auto_trigger]\nenabled = false\n");
    let found = ws.json(&format!("--json {task}"), "match.json");
    assert_eq!(found["near_misses"][0]["lacked"]["kind"], "enabled");
    ws.write("project/repertoire.toml", "[auto_trigger]\nconfidence_threshold = 1.5\n");
    assert_snapshot!(ws.rep(task), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:2: `auto_trigger.confidence_threshold` is 1.5, but should be a number from 0 to 1
    [exit 2]
    ");
}

#[test]
fn json_has_the_promised_shape() {
    let ws = office();
    let found = ws.json("--json match how tall is a giraffe?", "match.json");
    assert_eq!(found["abstained"], true);
    assert_eq!(found["picks"], serde_json::json!([]));
    assert!(found["took_us"].is_u64());
    let found = ws.json("--json match check these invoices against purchase orders", "match.json");
    assert_eq!(keys(&found["picks"][0]), ["name", "score", "strategy", "reasons"]);
    assert_eq!(found["picks"][1]["strategy"], "need");
}

#[test]
fn an_index_is_kept_and_a_damaged_one_is_made_anew() {
    let ws = office();
    let task = "--json match check these invoices against our purchase orders";
    let first = names(&ws, task);
    let kept = ws.files("home/.cache/repertoire/index");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(names(&ws, task), first);
    ws.write(&kept[0], b"not an index");
    assert_eq!(names(&ws, task), first);
    assert!(ws.bytes(&kept[0]).len() > 1000, "it was written anew");
    ws.skill(
        "home/.claude/skills/giraffes",
        "giraffes",
        "How tall a giraffe is, and other animals.",
    );
    assert_eq!(names(&ws, "--json match how tall is a giraffe?"), ["giraffes"]);
}

#[test]
fn a_skill_that_must_be_named_stands_in_nobodys_way_and_comes_along_with_nobody() {
    let ws = Workspace::new();
    let about = "Reconciles bank statements with the books.";
    ws.skill("home/.claude/skills/ledger", "ledger", about);
    ws.skill_with(
        "home/.claude/skills/shadow",
        &format!("name: shadow\ndescription: {about} {about}\ndisable-model-invocation: true\n"),
    );
    assert_eq!(names(&ws, "--json match reconcile this bank statement"), ["ledger"]);
    ws.skill_with(
        "home/.claude/skills/greeter",
        "name: greeter\ndescription: Says hello.\ntype: custom\ntriggers: {keywords: [good evening]}\n\
         dependencies: [shadow]\n",
    );
    assert_eq!(names(&ws, "--json match good evening"), ["greeter"]);
    assert_eq!(names(&ws, "--json match @greeter"), ["greeter", "shadow"]);
}

#[test]
fn hints_keep_their_order_and_take_nobodys_room() {
    let ws = office();
    let task = "check these invoices against our purchase orders";
    assert_eq!(names(&ws, "--json match --skills tenders,ledger hello"), ["tenders", "ledger"]);
    assert_eq!(names(&ws, "--json match --skills ledger,tenders hello"), ["ledger", "tenders"]);
    let both = names(&ws, &format!("--json match {task} --skills tenders --max 1"));
    assert_eq!(both, ["tenders", "invoices", "ledger"]);
}

#[test]
fn a_folder_that_was_renamed_is_known_by_its_new_name() {
    let ws = Workspace::new();
    let fields = "description: Keeps the books.\n";
    ws.skill_with("home/.claude/skills/quarterly-zebra", fields);
    assert_eq!(names(&ws, "--json match quarterly zebra"), ["quarterly-zebra"]);
    std::fs::rename(
        ws.path("home/.claude/skills/quarterly-zebra"),
        ws.path("home/.claude/skills/giraffe-budget"),
    )
    .unwrap();
    assert!(names(&ws, "--json match quarterly zebra").is_empty());
    assert_eq!(names(&ws, "--json match giraffe budget"), ["giraffe-budget"]);
}

#[test]
fn brands_are_found_in_any_spelling() {
    let ws = Workspace::new();
    ws.skill("home/.claude/skills/api", "api", "Designs GraphQL schemas. Do not use for MongoDB.");
    assert_eq!(names(&ws, "--json match design a graphql schema"), ["api"]);
    assert_eq!(names(&ws, "--json match design a GraphQL schema"), ["api"]);
    let why = ws.json("--json match design a mongodb schema --why api", "why.json");
    assert_eq!(why["picked"], false, "{why}");
}

#[test]
fn paths_are_those_of_the_folder_that_one_stands_in() {
    let ws = office();
    ws.write("project/tenders/note.txt", "");
    assert_eq!(names(&ws, "--json -C tenders match --path note.txt"), ["tenders"]);
    assert_eq!(names(&ws, "--json -C tenders match --path ../tenders/./note.txt"), ["tenders"]);
}

#[test]
fn what_is_picked_and_not_trusted_is_marked() {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/birds", "birds", "Counts birds in the garden.");
    let ran = ws.rep("match count the birds in the garden");
    assert!(ran.stdout.contains("birds (match) untrusted"), "{ran}");
    let coloured = ws.rep("--color always match count the birds --why birds").stdout;
    assert!(!coloured.contains("\\u{1b}"), "escapes are not shown as text: {coloured}");
}

#[test]
fn a_task_from_standard_input_may_be_long_and_odd() {
    let ws = office();
    let mut command = assert_cmd::Command::from_std(ws.command(&["--json", "match", "-"]));
    let text = format!("check invoices against purchase orders {}", "é".repeat(500_000));
    let output = command.write_stdin(text).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_was_said_and_used_before_tips_the_scales_a_little() {
    let ws = office();
    let birds = "Birds in the garden. ".repeat(300);
    let books = "Check invoices and orders. ".repeat(200);
    ws.write("project/said.txt", format!("{birds}{books}"));
    let task = "--json match invoices --why invoices";
    let score = |line: &str| ws.json(line, "why.json")["score"].as_f64().unwrap();
    let plain = score(task);
    assert!(score(&format!("{task} --used invoices,invoices")) > plain);
    let said = score(&format!("{task} --conversation said.txt"));
    assert!(said > plain, "its end is read: {said} {plain}");
}
