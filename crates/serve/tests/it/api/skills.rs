//! Skills, what is wrong with them, what clients make of them, and which a task is given.

use serde_json::json;

use crate::serve_state::{Field, each};

#[tokio::test]
async fn a_list_shows_what_is_used_what_lost_and_what_broke() {
    let served = Field::with_skills().serve().await;
    let page = served.get("/api/v1/skills").await.ok();
    assert_eq!(each(&page, "name"), ["invoices", "orders", "orders", "broken"]);
    assert_eq!(each(&page, "state"), ["used", "used", "shadowed", "broken"]);
    assert_eq!(page["total"], 4);
    assert!(page["items"][2]["shadowed_by"].as_str().unwrap().contains("/home/"), "{page}");
    assert!(page["items"][3]["reason"]["code"].as_str().unwrap().starts_with("RS"), "{page}");
    let page = served.get("/api/v1/skills?state=shadowed&scope=project").await.ok();
    assert_eq!(each(&page, "name"), ["orders"]);
    let page = served.get("/api/v1/skills?state=used&kind=agent").await.ok();
    assert_eq!(page["total"], 0);
}

#[tokio::test]
async fn pages_follow_each_other_and_end() {
    let served = Field::with_skills().serve().await;
    let first = served.get("/api/v1/skills?limit=3").await.ok();
    assert_eq!((each(&first, "name").len(), &first["next"]), (3, &json!("3")));
    let second = served.get("/api/v1/skills?limit=3&cursor=3").await.ok();
    assert_eq!(each(&second, "name"), ["broken"]);
    assert!(second.get("next").is_none(), "{second}");
    let beyond = served.get("/api/v1/skills?cursor=999").await.ok();
    assert_eq!(beyond["items"], json!([]));
}

#[tokio::test]
async fn a_search_ranks_with_scores_and_reasons_and_finds_what_is_half_typed() {
    let served = Field::with_skills().serve().await;
    let page = served.get("/api/v1/skills?q=approve%20this%20invoice").await.ok();
    assert_eq!(page["items"][0]["name"], "invoices", "{page}");
    let found = &page["items"][0]["found"];
    assert!(found["score"].as_f64().unwrap() > 0.3, "{found}");
    assert!(found["why"][0].as_str().unwrap().contains("invoice"), "{found}");
    assert_eq!(found["reasons"].as_array().unwrap().len(), found["why"].as_array().unwrap().len());
    let page = served.get("/api/v1/skills?q=ord").await.ok();
    assert_eq!(each(&page, "name")[..2], ["orders", "orders"], "{page}");
    let page = served.get("/api/v1/skills?q=brok").await.ok();
    assert_eq!(each(&page, "state"), ["broken"]);
    let page = served.get("/api/v1/skills?q=zzzz").await.ok();
    assert_eq!(page["total"], 0, "{page}");
}

#[tokio::test]
async fn one_skill_is_told_with_all_that_belongs_to_it() {
    let served = Field::with_skills().serve().await;
    let invoices = served.get("/api/v1/skills/invoices").await.ok();
    assert_eq!(invoices["skill"]["id"], "invoices");
    assert_eq!(invoices["skill"]["resources"][0]["path"], "references/rules.md");
    assert!(invoices["frontmatter"].as_str().unwrap().starts_with("name: invoices\n"));
    assert!(invoices["body"].as_str().unwrap().starts_with("Read the invoice."));
    assert_eq!(invoices["needs"][0]["state"], "met");
    let orders = served.get("/api/v1/skills/orders").await.ok();
    assert_eq!(orders["needed_by"], json!(["invoices"]));
    assert_eq!(orders["stands_before"].as_array().unwrap().len(), 1);
    let problem = served.get("/api/v1/skills/invoice").await.refused(404);
    assert!(problem["hint"].as_str().unwrap().contains("`invoices`"), "{problem}");
}

#[tokio::test]
async fn files_beside_a_skill_are_read_and_none_from_elsewhere() {
    let served = Field::with_skills().serve().await;
    let path = "/api/v1/skills/invoices/file?path=";
    let file = served.get(&format!("{path}references/rules.md")).await.ok();
    assert_eq!((&file["content"], &file["bytes"]), (&json!("Amounts must agree.\n"), &json!(20)));
    assert_eq!((&file["encoding"], &file["next"]), (&json!("text"), &json!(null)));
    for wrong in ["../orders/SKILL.md", "/etc/passwd", "references", "none.md", "a%00b", ""] {
        served.get(&format!("{path}{wrong}")).await.refused(404);
    }
}

#[tokio::test]
async fn a_binary_file_is_served_in_parts_and_as_base64() {
    let field = Field::with_skills();
    field.write("project/.agents/skills/invoices/assets/zeros.bin", &"\0".repeat(1_200_000));
    let served = field.serve().await;
    let path = "/api/v1/skills/invoices/file?path=assets/zeros.bin";
    let mut offset = 0;
    for expected in [524_288, 524_288, 1_200_000 - 2 * 524_288_u64] {
        let part = served.get(&format!("{path}&offset={offset}")).await.ok();
        assert_eq!((&part["encoding"], &part["bytes"]), (&json!("base64"), &json!(1_200_000)));
        let content = part["content"].as_str().unwrap();
        assert_eq!(content.len() as u64, expected.div_ceil(3) * 4);
        offset = part["next"].as_u64().unwrap_or(0);
    }
    assert_eq!(offset, 0, "the last part has no next");
}

#[tokio::test]
async fn findings_come_with_their_lines() {
    let served = Field::with_skills().serve().await;
    let page = served.get("/api/v1/diagnostics?severity=error").await.ok();
    let broken = &page["items"][0];
    assert!(broken["path"].as_str().unwrap().ends_with("broken/SKILL.md"), "{broken}");
    let marked = broken["lines"].as_array().unwrap().iter().find(|line| line["is_marked"] == true);
    assert_eq!(marked.unwrap()["number"], broken["line"], "{broken}");
    let code = broken["code"].as_str().unwrap();
    let same = served.get(&format!("/api/v1/diagnostics?code={code}")).await.ok();
    assert!(each(&same, "code").iter().all(|found| *found == code));
    let none = served.get("/api/v1/diagnostics?q=no+such+text").await.ok();
    assert_eq!(none["total"], 0);
}

#[tokio::test]
async fn budgets_tell_what_a_client_would_hide() {
    let field = Field::with_skills();
    for at in 0..30 {
        let text = "x".repeat(600);
        let skill = format!("---\nname: many-{at:02}\ndescription: {text}\n---\nbody\n");
        field.write(&format!("project/.agents/skills/many-{at:02}/SKILL.md"), &skill);
    }
    let served = field.serve().await;
    let all = served.get("/api/v1/budgets").await.ok();
    assert_eq!(each(&all, "agent"), ["claude", "codex", "copilot"]);
    let claude = served.get("/api/v1/budgets?agent=claude").await.ok();
    assert_eq!(each(&claude, "client"), ["Claude Code"]);
    assert!(claude["items"][0]["names_only"].as_u64().unwrap() > 10, "{claude}");
    let hidden = served.get("/api/v1/budgets/copilot/skills?shown=hidden").await.ok();
    assert!(each(&hidden, "name").contains(&"many-29"), "{hidden}");
    let one = served.get("/api/v1/budgets/copilot").await.ok();
    assert_eq!(one["hidden"], hidden["total"]);
    served.get("/api/v1/budgets/eliza").await.refused(404);
}

#[tokio::test]
async fn a_task_is_given_skills_with_reasons_or_none() {
    let served = Field::with_skills().serve().await;
    let task = json!({ "task": "check this invoice against its purchase order", "explain": true });
    let picked = served.post("/api/v1/select", &task).await.ok();
    assert_eq!(picked["picks"][0]["name"], "invoices", "{picked}");
    assert!(picked["picks"][0]["reasons"].as_array().unwrap().len() > 1);
    assert!(picked["explained"][0]["stages"].as_array().unwrap().len() > 5, "{picked}");
    assert_eq!(picked["untrusted"][0], "invoices");
    let none = served.post("/api/v1/select", &json!({ "task": "what's for lunch?" })).await.ok();
    assert_eq!((&none["abstained"], &none["picks"]), (&json!(true), &json!([])));
    let named = json!({ "task": "", "skills": ["orders", "nobody"], "max": 0 });
    let named = served.post("/api/v1/select", &named).await.ok();
    assert_eq!(named["picks"][0]["strategy"], "hint");
    assert_eq!(named["unresolved"][0]["named"], "nobody");
}

#[tokio::test]
async fn the_status_counts() {
    let served = Field::with_skills().serve().await;
    let status = served.get("/api/v1/status").await.ok();
    let skills = json!({ "skills": 2, "agents": 0, "shadowed": 1, "broken": 1 });
    assert_eq!((&status["skills"], &status["profile"]), (&skills, &json!("repertoire")));
    assert!(status["findings"]["errors"].as_u64().unwrap() > 0, "{status}");
}
