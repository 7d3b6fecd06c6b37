//! The Skills extension: what is listed is what is read.

use repertoire_skill::skill::ContentDigest;
use serde_json::{Value, json};

use super::wire::Wire;
use crate::serve_state::Field;

/// Every skill, page by page.
async fn all(wire: &mut Wire) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = wire.ok("skills/list", json!({ "cursor": cursor })).await;
        assert_eq!(
            (page["resultType"].as_str(), page["cacheScope"].as_str(), page["ttlMs"].is_u64()),
            (Some("complete"), Some("private"), true)
        );
        all.extend(page["skills"].as_array().unwrap().iter().cloned());
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => return all,
        }
    }
}

/// The bytes of a file, as a host reads them.
async fn bytes(wire: &mut Wire, uri: &str) -> Vec<u8> {
    use base64::Engine as _;
    let read = wire.ok("resources/read", json!({ "uri": uri })).await;
    let content = &read["contents"][0];
    assert_eq!(content["uri"], uri);
    match content["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => base64::engine::general_purpose::STANDARD
            .decode(content["blob"].as_str().unwrap())
            .unwrap(),
    }
}

/// Does what the extension asks of a host: reads every file that is listed and compares size and digest.
async fn verify(wire: &mut Wire, skill: &Value) {
    for file in skill["resources"].as_array().unwrap() {
        let bytes = bytes(wire, file["uri"].as_str().unwrap()).await;
        assert_eq!(file["size"], bytes.len(), "{file}");
        assert_eq!(file["digest"], ContentDigest::hash_bytes(&bytes).to_string(), "{file}");
    }
    let got = wire.ok("skills/get", json!({ "uri": skill["uri"] })).await;
    assert_eq!(got["skill"], *skill);
}

fn uris(skills: &[Value]) -> Vec<&str> {
    skills.iter().map(|skill| skill["uri"].as_str().unwrap()).collect()
}

fn put(field: &Field, folder: &str, name: &str) {
    let text = format!("---\nname: {name}\ndescription: Does it.\n---\nBody.\n");
    field.write(&format!("project/.agents/skills/{folder}/SKILL.md"), &text);
}

#[tokio::test]
async fn the_server_says_what_it_can_do() {
    let field = Field::with_skills();
    let wire = Wire::to(field.serve_state().await).await;
    let capabilities = &wire.server["capabilities"];
    assert_eq!(
        capabilities["extensions"]["io.modelcontextprotocol/skills"],
        json!({ "directoryRead": true })
    );
    assert_eq!(capabilities["resources"], json!({ "listChanged": true }));
    assert_eq!(capabilities["prompts"], json!({ "listChanged": true }));
    assert!(wire.server["instructions"].as_str().unwrap().contains("skill_search"));
}

#[tokio::test]
async fn every_file_that_is_listed_is_read_with_its_size_and_digest() {
    let field = Field::with_skills();
    field.write("project/.agents/skills/invoices/assets/ä b#1?.md", "odd\r\nname\n");
    let picture = field.root.join("project/.agents/skills/invoices/assets/x.png");
    repertoire_text::fs::write_atomic(&picture, &[0x89, b'P', 0, 0xff]).unwrap();
    let mut wire = Wire::to(field.serve_state().await).await;
    let skills = all(&mut wire).await;
    assert_eq!(uris(&skills), ["skill://invoices/SKILL.md", "skill://orders/SKILL.md"]);
    assert_eq!(
        skills[0]["frontmatter"],
        json!({
            "name": "invoices",
            "description": "Checks invoices against purchase orders. Use when an invoice has to be approved.",
            "requires": [],
            "dependencies": ["orders"],
        })
    );
    assert_eq!(skills[0]["resources"].as_array().unwrap().len(), 4);
    for skill in &skills {
        verify(&mut wire, skill).await;
    }
}

#[tokio::test]
async fn a_file_that_changes_is_listed_with_its_new_digest() {
    let field = Field::with_skills();
    let mut wire = Wire::to(field.serve_state().await).await;
    let before = all(&mut wire).await;
    // Of the same length: only the stamp tells.
    field.write("project/.agents/skills/invoices/references/rules.md", "Amounts may differ.\n");
    let after = all(&mut wire).await;
    assert_ne!(before[0]["resources"], after[0]["resources"]);
    verify(&mut wire, &after[0]).await;
}

#[tokio::test]
async fn a_name_that_breaks_the_rule_is_corrected_and_says_so() {
    let field = Field::new();
    for (folder, name) in [
        ("a", "My Skill"),
        ("b", "my-skill"),
        ("c", "MY_SKILL"),
        ("d", "日本語"),
        ("e", "\"../../etc\""),
        ("f", "42"),
    ] {
        put(&field, folder, name);
    }
    let mut wire = Wire::to(field.serve_state().await).await;
    let skills = all(&mut wire).await;
    for skill in &skills {
        verify(&mut wire, skill).await;
        let name = skill["frontmatter"]["name"].as_str().unwrap();
        assert_eq!(skill["uri"], format!("skill://{name}/SKILL.md"));
        let text =
            String::from_utf8(bytes(&mut wire, skill["uri"].as_str().unwrap()).await).unwrap();
        assert!(text.ends_with("---\nBody.\n"), "{text}");
    }
    let told: Vec<(&str, &Value)> = skills
        .iter()
        .map(|skill| {
            let frontmatter = &skill["frontmatter"];
            let name = frontmatter["name"].as_str().unwrap();
            (name, &frontmatter["metadata"]["repertoire-original-name"])
        })
        .collect();
    let none = Value::Null;
    // In this catalog the first of a name has it, and the later ones are shadowed.
    assert_eq!(
        told,
        [
            ("42", &none),
            ("d", &json!("日本語")),
            ("etc", &json!("../../etc")),
            ("my-skill", &json!("My Skill")),
        ]
    );
    // A number is not text, so it was put in quotes.
    assert_eq!(skills[0]["frontmatter"]["metadata"]["repertoire-mended"], "name");
}

#[tokio::test]
async fn a_skill_beyond_the_limits_is_left_out_and_the_page_says_so() {
    let field = Field::with_skills();
    put(&field, "many", "many");
    for number in 0..512 {
        field.write(&format!("project/.agents/skills/many/f{number}"), "x");
    }
    let mut wire = Wire::to(field.serve_state().await).await;
    let page = wire.ok("skills/list", json!({})).await;
    assert_eq!(page["skills"].as_array().unwrap().len(), 2);
    let left_out = &page["_meta"]["dev.repertoire/left-out"][0];
    assert_eq!(left_out["uri"], "skill://many/SKILL.md");
    assert!(left_out["reason"].as_str().unwrap().contains("512 files"), "{left_out}");
    let (code, message) =
        wire.refused("skills/get", json!({ "uri": "skill://many/SKILL.md" })).await;
    assert!(code == -32602 && message.contains("512 files"), "{message}");
    // One file less, and it is served.
    std::fs::remove_file(field.root.join("project/.agents/skills/many/f0")).unwrap();
    assert_eq!(all(&mut wire).await.len(), 3);
}

#[tokio::test]
async fn a_skill_for_people_alone_is_not_listed_but_answered_for() {
    let field = Field::with_skills();
    field.write(
        "project/.agents/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nGo.\n",
    );
    let mut wire = Wire::to(field.serve_state().await).await;
    assert_eq!(all(&mut wire).await.len(), 2);
    let got = wire.ok("skills/get", json!({ "uri": "skill://deploy/SKILL.md" })).await;
    assert_eq!(got["skill"]["frontmatter"]["name"], "deploy");
}

#[tokio::test]
async fn a_folder_is_read_level_by_level() {
    let field = Field::with_skills();
    field.write("project/.agents/skills/invoices/references/deep/er/x.txt", "x");
    let mut wire = Wire::to(field.serve_state().await).await;
    let mut children = async |uri: &str| {
        let page = wire.ok("resources/directory/read", json!({ "uri": uri })).await;
        let rows = page["resources"].as_array().unwrap().iter();
        rows.map(|row| {
            format!("{} {}", row["uri"].as_str().unwrap(), row["mimeType"].as_str().unwrap())
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        children("skill://invoices").await,
        ["skill://invoices/SKILL.md text/markdown", "skill://invoices/references inode/directory"]
    );
    assert_eq!(
        children("skill://invoices/references/").await,
        [
            "skill://invoices/references/deep inode/directory",
            "skill://invoices/references/rules.md text/markdown"
        ]
    );
    assert_eq!(
        children("skill://invoices/references/deep/er").await,
        ["skill://invoices/references/deep/er/x.txt text/plain"]
    );
    for uri in ["skill://invoices/SKILL.md", "skill://invoices/no", "skill://no", "skill://", "x"] {
        let (code, _) = wire.refused("resources/directory/read", json!({ "uri": uri })).await;
        assert_eq!(code, -32602, "{uri}");
    }
}

#[tokio::test]
async fn pages_have_every_skill_once() {
    let field = Field::new();
    for number in 0..120 {
        put(&field, &format!("s{number}"), &format!("s{number}"));
    }
    let mut wire = Wire::to(field.serve_state().await).await;
    let skills = all(&mut wire).await;
    let mut found = uris(&skills);
    found.sort_unstable();
    found.dedup();
    assert_eq!((skills.len(), found.len()), (120, 120));
}
