//! The same over HTTP, behind the guard.

use serde_json::{Value, json};

use crate::serve_state::{Field, Served};

const META: &str = "io.modelcontextprotocol";

async fn post(served: &Served, method: &str, params: Value, token: Option<&str>) -> (u16, Value) {
    let mut params = params;
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientInfo"): { "name": "test", "version": "1" },
        format!("{META}/clientCapabilities"): {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .post(served.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .json(&body);
    if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
        request = request.header("mcp-name", name);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    (status, serde_json::from_str(data.unwrap_or(&text)).unwrap_or(Value::Null))
}

#[tokio::test]
async fn skills_are_served_to_whoever_has_the_token() {
    let served = Field::with_skills().serve().await;
    let (status, _) = post(&served, "skills/list", json!({}), None).await;
    assert_eq!(status, 401);
    let token = served.token.clone();
    let (status, answer) = post(&served, "skills/list", json!({}), Some(&token)).await;
    assert_eq!(status, 200, "{answer}");
    let skills = answer["result"]["skills"].as_array().unwrap();
    assert_eq!(skills[1]["uri"], "skill://orders/SKILL.md");
    let call = json!({ "name": "skill", "arguments": { "name": "orders" } });
    let (_, answer) = post(&served, "tools/call", call, Some(&token)).await;
    assert_eq!(answer["result"]["structuredContent"]["name"], "orders", "{answer}");
    let read = json!({ "uri": "skill://invoices/../../secret" });
    let (_, answer) = post(&served, "resources/read", read, Some(&token)).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // The fixtures of the conformance suite are not served.
    let call = json!({ "name": "test_simple_text", "arguments": {} });
    let (_, answer) = post(&served, "tools/call", call, Some(&token)).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}
