//! A file that changes on disk reaches clients of both protocols.

use serde_json::{Value, json};

use super::wire::Wire;
use crate::serve_state::Field;

const CHANGED: &str =
    "---\nname: invoices\ndescription: Checks invoices in a new way.\n---\nLook again.\n";

#[tokio::test]
async fn an_edit_on_disk_reaches_a_client_of_2025() {
    let field = Field::with_skills();
    let serve_state = field.serve_state().await;
    let _watching = serve_state.watch();
    let mut wire = Wire::to(serve_state).await;
    wire.ok("prompts/list", json!({})).await;
    field.write("project/.agents/skills/invoices/SKILL.md", CHANGED);
    wire.until("notifications/prompts/list_changed").await;
    wire.until("notifications/resources/list_changed").await;
    assert!(!wire.heard.iter().any(|heard| heard == "notifications/tools/list_changed"));
    let listed = wire.ok("resources/list", json!({})).await;
    assert_eq!(listed["resources"][0]["description"], "Checks invoices in a new way.");
    // A new one, too.
    wire.heard.clear();
    field.write(
        "project/.agents/skills/new/SKILL.md",
        "---\nname: new\ndescription: New.\n---\nNew.\n",
    );
    wire.until("notifications/resources/list_changed").await;
    wire.ok("skills/get", json!({ "uri": "skill://new/SKILL.md" })).await;
}

#[tokio::test]
async fn an_edit_on_disk_reaches_a_subscription_of_2026() {
    let field = Field::with_skills();
    let serve_state = field.serve_state().await;
    let _watching = serve_state.watch();
    let mut wire = Wire::silent(serve_state, None);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = wire.ok("server/discover", json!({ "_meta": meta })).await;
    assert_eq!(
        found["capabilities"]["extensions"]["io.modelcontextprotocol/skills"]["directoryRead"],
        true
    );
    let listen = json!({
        "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
        "params": { "_meta": meta, "notifications": { "promptsListChanged": true, "toolsListChanged": true } },
    });
    wire.send(&listen).await;
    let first = wire.hear().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    field.write("project/.agents/skills/invoices/SKILL.md", CHANGED);
    let news: Value = wire.hear().await;
    assert_eq!(news["method"], "notifications/prompts/list_changed", "{news}");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}
