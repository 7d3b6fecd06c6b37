//! Requests that make no sense get a reason, and never a 500.

use serde_json::json;

use crate::serve_state::Field;

#[tokio::test]
async fn wrong_parameters_are_named() {
    let served = Field::with_skills().serve().await;
    for (path, word) in [
        ("/api/v1/skills?limit=0", "limit"),
        ("/api/v1/skills?limit=501", "limit"),
        ("/api/v1/skills?limit=many", "limit"),
        ("/api/v1/skills?cursor=-1", "cursor"),
        ("/api/v1/skills?cursor=99999999999999999999", "cursor"),
        ("/api/v1/skills?q=a&q=b", "duplicate"),
        ("/api/v1/skills?scoop=user", "scoop"),
        ("/api/v1/skills?scope=moon", "moon"),
        ("/api/v1/skills/invoices?x=", "parameter `x`"),
        ("/api/v1/skills/%ff", "UTF-8"),
        ("/api/v1/status?a", "parameter `a`"),
        ("/api/v1/skills/invoices/file", "path"),
    ] {
        let problem = served.get(path).await.refused(400);
        assert!(problem["detail"].as_str().unwrap().contains(word), "{path}: {problem}");
    }
    let problem = served.get("/api/v1/skills?scoop=user").await.refused(400);
    assert!(problem["hint"].as_str().unwrap().contains("scope"), "{problem}");
}

#[tokio::test]
async fn wrong_bodies_are_named() {
    let served = Field::with_skills().serve().await;
    for (body, word) in [
        (json!({}), "task"),
        (json!({ "task": 1 }), "string"),
        (json!({ "task": "a", "tusk": 1 }), "tusk"),
        (json!({ "task": "a", "max": 51 }), "max"),
        (json!({ "task": "a", "threshold": 1.5 }), "threshold"),
        (json!([]), "no JSON object"),
        (json!({ "task": "a", "max": 1.5 }), "whole number"),
    ] {
        for path in ["/api/v1/select", "/api/v1/prompt"] {
            let problem = served.post(path, &body).await.refused(400);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(word), "{path} {body}: {problem}");
        }
    }
}

#[tokio::test]
async fn methods_that_an_address_does_not_know_are_a_problem_too() {
    let served = Field::with_skills().serve().await;
    served.post("/api/v1/skills", &json!({})).await.refused(405);
    served.get("/api/v1/nothing").await.refused(404);
}

#[tokio::test]
async fn the_document_describes_what_is_there() {
    let served = Field::with_skills().serve().await;
    let document = served.get("/api/v1/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let list = &document["paths"]["/api/v1/skills"]["get"];
    let names: Vec<&str> = list["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| {
            assert!(parameter["description"].is_string(), "{parameter}");
            parameter["name"].as_str().unwrap()
        })
        .collect();
    assert!(["q", "scope", "state", "cursor", "limit"].iter().all(|name| names.contains(name)));
    assert!(list["responses"]["401"].is_object() && list["responses"]["404"].is_null(), "{list}");
    assert!(document["paths"]["/healthz"]["get"]["responses"]["401"].is_null());
    assert!(list["responses"]["503"].is_object() && list["responses"]["408"].is_null(), "{list}");
    let select = &document["paths"]["/api/v1/select"]["post"];
    assert!(select["responses"]["408"].is_object(), "{select}");
    let itself = &document["paths"]["/api/v1/openapi.json"]["get"];
    assert!(itself["responses"]["200"].is_object(), "{itself}");
    served.get("/api/v1/openapi.json?x=1").await.refused(400);
}

#[tokio::test]
async fn the_document_allows_what_the_server_takes() {
    let served = Field::with_skills().serve().await;
    let document = served.get("/api/v1/openapi.json").await.ok();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["SteerRequest"]["properties"]["note"]["pattern"], r"\S");
    let list = &document["paths"]["/api/v1/budgets"]["get"]["parameters"];
    let agent = list.as_array().unwrap().iter().find(|one| one["name"] == "agent").unwrap();
    assert_eq!(agent["schema"]["enum"], json!(["claude", "codex", "copilot"]), "{agent}");
    served.get("/api/v1/budgets?agent=eliza").await.refused(400);
}
