//! What strangers send: nothing of it gets out of a skill's folder, and nothing of it ends the session.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::wire::Wire;
use crate::serve_state::Field;

#[tokio::test]
async fn no_address_leads_out_of_a_skill() {
    let field = Field::with_skills();
    field.write("secret.txt", "secret");
    field.write("project/.agents/skills/invoices/.git/config", "secret");
    let dir = field.root.join("project/.agents/skills/invoices");
    symlink("/etc/passwd", dir.join("passwd")).unwrap();
    symlink(field.root.join("secret.txt"), dir.join("out.md")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    symlink(".git/config", dir.join("git.md")).unwrap();
    let mut wire = Wire::to(field.serve_state().await).await;
    for rest in [
        "../../etc/passwd",
        "../orders/SKILL.md",
        "%2e%2e/orders/SKILL.md",
        "..%2forders%2fSKILL.md",
        "references/../../orders/SKILL.md",
        "references%2frules.md",
        "passwd",
        "out.md",
        "up/orders/SKILL.md",
        "git.md",
        ".git/config",
        "/etc/passwd",
        "SKILL.md/",
        "SKILL.md?x",
        "skill.md",
        "",
        "references",
        "%00",
        "\u{202e}",
    ] {
        let uri = format!("skill://invoices/{rest}");
        let answer = wire.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
        let complaint =
            wire.complaint("skill_resource", json!({ "skill": "invoices", "path": rest })).await;
        assert!(!complaint.contains("secret") && !complaint.contains("root:"), "{complaint}");
    }
    let listed = wire.ok("skills/get", json!({ "uri": "skill://invoices/SKILL.md" })).await;
    assert_eq!(listed["skill"]["resources"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn wrong_types_and_made_up_cursors_are_refused() {
    let field = Field::with_skills();
    let mut wire = Wire::to(field.serve_state().await).await;
    for (method, params) in [
        ("skills/list", json!({ "cursor": "made up" })),
        ("skills/list", json!({ "cursor": 7 })),
        ("skills/list", json!({ "cursor": "x".repeat(100_000) })),
        ("skills/get", json!({})),
        ("skills/get", json!({ "uri": ["skill://invoices/SKILL.md"] })),
        ("skills/get", json!({ "uri": "skill://invoices" })),
        ("skills/get", json!({ "uri": "x".repeat(100_000) })),
        ("resources/directory/read", json!({ "uri": "skill://invoices", "cursor": "AAAA" })),
        ("resources/list", json!({ "cursor": "made up" })),
        ("prompts/list", json!({ "cursor": "made up" })),
        ("prompts/get", json!({ "name": "no such prompt" })),
        ("prompts/get", json!({ "name": "invoices", "arguments": { "nothing": "x" } })),
        ("prompts/get", json!({ "name": "invoices", "arguments": { "arguments": 1 } })),
        ("tools/call", json!({ "name": "no such tool" })),
    ] {
        let (code, message) = wire.refused(method, params.clone()).await;
        assert_eq!(code, -32602, "{method} {params}: {message}");
    }
    assert_eq!(wire.refused("skills/nothing", json!({})).await.0, -32601);
    wire.ok("ping", json!({})).await;
}

#[tokio::test]
async fn tools_complain_of_what_does_not_fit_and_say_what_to_do() {
    let field = Field::with_skills();
    let mut wire = Wire::to(field.serve_state().await).await;
    for (tool, arguments, says) in [
        ("skill", json!({}), "missing field `name`"),
        ("skill", json!({ "name": 7 }), "invalid type"),
        ("skill", json!({ "name": "invoices", "more": 1 }), "unknown field"),
        ("skill", json!({ "name": "invoces" }), "Did you mean 'invoices'?"),
        ("skill", json!({ "name": "x\u{0}\n".repeat(50_000) }), "not found"),
        ("skill", json!({ "name": "invoices", "arguments": "x".repeat(70_000) }), "at most 65536"),
        ("skill_search", json!({ "task": " " }), "Describe the work"),
        ("skill_search", json!({ "task": "x".repeat(70_000) }), "Say it shorter"),
        (
            "skill_resource",
            json!({ "skill": "invoices", "path": "no.md" }),
            "`references/rules.md`",
        ),
        ("skill_resource", json!({ "skill": "orders", "path": "no.md" }), "no other files"),
        ("workflow_start", json!({ "workflow": "nothing" }), "not found"),
        ("workflow_step", json!({ "run": "nothing" }), "workflow_start"),
        ("workflow_step", json!({ "run": "x", "confidence": "very" }), "exploring, low"),
        ("workflow_step", json!({ "run": "x", "outcome": "ok", "error": "no" }), "`error` alone"),
        ("workflow_record", json!({ "run": "nothing" }), "nothing to record"),
        ("review_finding", json!({ "form": "../../x", "finding": {} }), "no open form"),
        ("plan_verdict", json!({ "form": "x", "verdict": 1 }), "do not fit"),
    ] {
        let complaint = wire.complaint(tool, arguments.clone()).await;
        assert!(complaint.contains(says), "{tool}: {complaint}");
        assert!(complaint.len() < 400_000, "{tool}");
    }
}

/// Far more than anybody has: every one is listed once, and the first page does not wait for the rest.
#[tokio::test]
async fn ten_thousand_skills_are_listed_page_by_page() {
    let field = Field::new();
    let root = field.root.join("project/.agents/skills");
    for number in 0..10_000 {
        let dir = root.join(format!("s{number:05}"));
        std::fs::create_dir_all(&dir).unwrap();
        let text = format!("---\nname: s{number:05}\ndescription: Does {number}.\n---\nBody.\n");
        let mut file = std::fs::File::create(dir.join("SKILL.md")).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }
    let mut wire = Wire::to(field.serve_state().await).await;
    let mut found = Vec::new();
    let mut cursor = serde_json::Value::Null;
    loop {
        let page = wire.ok("skills/list", json!({ "cursor": cursor })).await;
        let skills = page["skills"].as_array().unwrap();
        found.extend(skills.iter().map(|skill| skill["uri"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    let expected: Vec<String> =
        (0..10_000).map(|number| format!("skill://s{number:05}/SKILL.md")).collect();
    assert_eq!(found, expected);
}
