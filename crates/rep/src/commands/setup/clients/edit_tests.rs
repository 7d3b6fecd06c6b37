//! Configuration files of others: our entry goes in, and comes out without a trace.

use super::config_file::{ClientConfigFile, ConfigFileError, EntryOwner, FileChange};
use super::entry_edit::{CreatedObjects, EntryEditError, EntryLocation};
use super::{ConfigFormat, McpClient, find_client, known_clients};
use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use serde_json::{Value, json};

const NAME: &str = "repertoire";

fn entry(client: &McpClient) -> Value {
    client.build_entry("rep", &["mcp".to_owned()])
}

fn place(client: &McpClient) -> EntryLocation<'_> {
    EntryLocation { format: client.format, keys: &client.keys, name: NAME }
}

/// Sets, checks what it looks like, and takes it back.
#[track_caller]
fn check(id: &str, before: &str, expect: &str) {
    let client = find_client(id).unwrap();
    let (after, made) = place(client).add_entry(before, &entry(client)).unwrap().unwrap();
    assert_eq!(after, expect);
    assert_eq!(place(client).get_entry(&after).unwrap(), Some(entry(client)));
    assert_eq!(place(client).add_entry(&after, &entry(client)).unwrap(), None);
    assert_eq!(place(client).remove_entry(&after, made).unwrap().as_deref(), Some(before));
}

#[test]
fn an_entry_goes_first_among_others_in_their_style() {
    check(
        "cursor",
        "{\n    // mine\n    \"mcpServers\": {\n        \"a\": { \"command\": \"x\" }, // about a\n    },\n    \"z\": [1,  2]\n}\n",
        "{\n    // mine\n    \"mcpServers\": {\n        \"repertoire\": {\n            \"command\": \"rep\",\n            \"args\": [\"mcp\"]\n        },\n        \"a\": { \"command\": \"x\" }, // about a\n    },\n    \"z\": [1,  2]\n}\n",
    );
    check(
        "cursor",
        "{\"a\":1}",
        "{\"mcpServers\":{\"repertoire\":{\"command\":\"rep\",\"args\":[\"mcp\"]}},\"a\":1}",
    );
    check(
        "vscode",
        "{\r\n\t\"inputs\": []\r\n}",
        "{\r\n\t\"servers\": {\r\n\t\t\"repertoire\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"rep\",\r\n\t\t\t\"args\": [\"mcp\"]\r\n\t\t}\r\n\t},\r\n\t\"inputs\": []\r\n}",
    );
}

#[test]
fn empty_braces_are_opened_and_closed_again() {
    check(
        "opencode",
        "{\n  \"mcp\": {},\n  \"x\": 1\n}\n",
        "{\n  \"mcp\": {\n    \"repertoire\": {\n      \"type\": \"local\",\n      \"command\": [\"rep\", \"mcp\"],\n      \"enabled\": true\n    }\n  },\n  \"x\": 1\n}\n",
    );
    let whole = "{\"mcp\":{\"repertoire\":{\"type\":\"local\",\"command\":[\"rep\",\"mcp\"],\"enabled\":true}}";
    check("opencode", "{}", &format!("{whole}}}"));
    check("opencode", "{ }", &format!("{whole} }}"));
}

#[test]
fn comments_stay_with_what_they_are_about() {
    check(
        "gemini",
        "// top\n{ // settings\n  /* one */ \"a\": 1, // a\n  \"mcpServers\": { // servers\n    // none yet\n  }\n}\n// end",
        "// top\n{ // settings\n  /* one */ \"a\": 1, // a\n  \"mcpServers\": { // servers\n    \"repertoire\": {\n      \"command\": \"rep\",\n      \"args\": [\"mcp\"]\n    }\n    // none yet\n  }\n}\n// end",
    );
}

#[test]
fn a_byte_order_mark_and_a_blank_file_are_kept() {
    check(
        "cursor",
        "\u{feff}{\"a\":1}",
        "\u{feff}{\"mcpServers\":{\"repertoire\":{\"command\":\"rep\",\"args\":[\"mcp\"]}},\"a\":1}",
    );
    check(
        "cursor",
        "\n",
        "{\n  \"mcpServers\": {\n    \"repertoire\": {\n      \"command\": \"rep\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
    );
}

#[test]
fn a_table_goes_to_the_end() {
    let table = "[mcp_servers.repertoire]\ncommand = \"rep\"\nargs = [\"mcp\"]";
    check("codex", "", &format!("{table}\n"));
    check("codex", "a = 1\n", &format!("a = 1\n\n{table}\n"));
    check("codex", "a = 1", &format!("a = 1\n{table}"));
    check("codex", "\n", &format!("\n\n{table}\n"));
    check(
        "codex",
        "# hi\r\n[x]\r\ny = 2 # z\r\n",
        &format!("# hi\n[x]\ny = 2 # z\n\n{table}\n").replace('\n', "\r\n"),
    );
    check(
        "codex",
        "[mcp_servers.a]\ncommand = \"x\"\n",
        &format!("[mcp_servers.a]\ncommand = \"x\"\n\n{table}\n"),
    );
    check(
        "codex",
        "s = \"\"\"\n[mcp_servers.repertoire]\n\"\"\"\n",
        &format!("s = \"\"\"\n[mcp_servers.repertoire]\n\"\"\"\n\n{table}\n"),
    );
}

#[test]
fn a_table_is_taken_out_from_between_others() {
    let client = find_client("codex").unwrap();
    let text = "a = 1\n\n[mcp_servers.repertoire]\ncommand = \"rep\"\nargs = [\n  \"mcp\", # x\n]\n\n[mcp_servers.repertoire.env]\nX = \"1\"\n\n[other]\nb = 2\n";
    let left = place(client).remove_entry(text, CreatedObjects::default()).unwrap();
    assert_eq!(left.as_deref(), Some("a = 1\n\n[other]\nb = 2\n"));
    let close = "a = 1\n[mcp_servers.repertoire]\ncommand = \"rep\"\n[other]\n";
    let left = place(client).remove_entry(close, CreatedObjects::default()).unwrap();
    assert_eq!(left.as_deref(), Some("a = 1\n[other]\n"));
}

#[test]
fn an_entry_that_was_moved_is_still_taken_out_alone() {
    let client = find_client("cursor").unwrap();
    let check = |text: &str, expect: &str| {
        let left = place(client).remove_entry(text, CreatedObjects::default()).unwrap();
        assert_eq!(left.as_deref(), Some(expect), "{text}");
    };
    check("{\"mcpServers\": {\"a\": 1, \"repertoire\": 2}}", "{\"mcpServers\": {\"a\": 1}}");
    check(
        "{\"mcpServers\": {\"a\": 1, \"repertoire\": 2, \"b\": 3}}",
        "{\"mcpServers\": {\"a\": 1, \"b\": 3}}",
    );
    check(
        "{\"mcpServers\": {\n  \"a\": 1, // x\n  \"repertoire\": 2\n}}",
        "{\"mcpServers\": {\n  \"a\": 1 // x\n}}",
    );
    check(
        "{\"mcpServers\": {\n  // c\n  \"repertoire\": 2, \"b\": 3}}",
        "{\"mcpServers\": {\n  // c\n   \"b\": 3}}",
    );
    check("{\"mcpServers\": {\n  \"repertoire\": 2\n}}", "{\"mcpServers\": {\n}}");
    assert_eq!(
        place(client).remove_entry("{\"mcpServers\": {}}", CreatedObjects::default()).unwrap(),
        None
    );
}

#[test]
fn what_cannot_be_edited_is_named() {
    let check = |id: &str, text: &str, expect: &str| {
        let client = find_client(id).unwrap();
        let error = place(client).add_entry(text, &entry(client)).unwrap_err();
        assert_eq!(error.to_string(), expect, "{text}");
    };
    check("claude", "{", "this is not JSON: Unterminated object on line 1 column 1");
    check("claude", "// x\n{}", "this is not JSON: Comments are not allowed on line 1 column 1");
    check("claude", "[]", "the file is a list, not an object");
    check("claude", "{\"mcpServers\": []}", "`mcpServers` is a list, not an object");
    check("claude", "{\"mcpServers\": null}", "`mcpServers` is null, not an object");
    check("claude", "{\"mcpServers\": {}, \"mcpServers\": {}}", "`mcpServers` is there twice");
    check(
        "claude",
        "{\"mcpServers\": {\"repertoire\": 1}}",
        "there is another entry called `repertoire`: 1",
    );
    check("cursor", "// only this", "this is not JSON: there is nothing but comments");
    check(
        "codex",
        "a = ",
        "this is not TOML: string values must be quoted, expected literal string on line 1",
    );
    check("codex", "mcp_servers = []", "`mcp_servers` is a list, not an object");
    check(
        "codex",
        "mcp_servers = { a = 1 }",
        "`mcp_servers.repertoire` is written in a form that cannot be changed without touching the rest",
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let client = find_client("cursor").unwrap();
    let error = place(client).add_entry(&format!("{{\"a\":{deep}}}"), &entry(client)).unwrap_err();
    assert!(matches!(error, EntryEditError::Syntax { .. }), "{error}");
}

/// A file in a folder of its own, and a memory.
fn on_disk(
    client: &McpClient,
    before: Option<&str>,
) -> (tempfile::TempDir, Utf8PathBuf, Utf8PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(keep.path()).unwrap().to_owned();
    let path = dir.join("home/.x").join(if client.format == ConfigFormat::Toml {
        "c.toml"
    } else {
        "c.json"
    });
    if let Some(before) = before {
        repertoire_text::fs::write_atomic(&path, before.as_bytes()).unwrap();
    }
    (keep, path, dir.join("memory"))
}

#[test]
fn a_file_that_was_made_goes_with_its_folders_and_one_that_was_there_stays() {
    for client in known_clients() {
        let (_keep, path, memory) = on_disk(client, None);
        let config =
            ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
        assert_eq!(config.add_entry(&entry(client)).unwrap(), FileChange::Made, "{}", client.id);
        assert_eq!(config.add_entry(&entry(client)).unwrap(), FileChange::Unchanged);
        assert_eq!(config.remove_entry().unwrap(), FileChange::Removed);
        assert!(!path.parent().unwrap().parent().unwrap().exists(), "{path}");
        assert_eq!(config.remove_entry().unwrap(), FileChange::Unchanged);

        for before in ["", if client.format == ConfigFormat::Toml { "x = 1\n" } else { "{}" }] {
            let (_keep, path, memory) = on_disk(client, Some(before));
            let config = ClientConfigFile {
                path: &path,
                client,
                name: NAME,
                memory: &memory,
                project: None,
            };
            assert_eq!(
                config.add_entry(&entry(client)).unwrap(),
                FileChange::Changed,
                "{}",
                client.id
            );
            assert_eq!(config.remove_entry().unwrap(), FileChange::Changed);
            assert_eq!(repertoire_text::fs::read_text(&path, 99).unwrap(), before);
        }
    }
}

#[test]
fn a_made_file_that_somebody_wrote_into_stays_with_what_they_wrote() {
    let client = find_client("claude").unwrap();
    let (_keep, path, memory) = on_disk(client, None);
    let config =
        ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
    config.add_entry(&entry(client)).unwrap();
    let text = repertoire_text::fs::read_text(&path, 999).unwrap();
    let text = text.replacen('{', "{\n  \"theirs\": 1,", 1);
    repertoire_text::fs::write_atomic(&path, text.as_bytes()).unwrap();
    assert_eq!(config.remove_entry().unwrap(), FileChange::Changed);
    let left: Value =
        serde_json::from_str(&repertoire_text::fs::read_text(&path, 999).unwrap()).unwrap();
    assert_eq!(left, json!({ "theirs": 1 }));
}

/// An entry of somebody else's by our name, as people write it, in the form of a client.
fn foreign(client: &McpClient) -> String {
    match client.id.as_str() {
        "codex" => "a = 1\n\n[mcp_servers.docs]\ncommand = 'd'\n\n[mcp_servers.repertoire] # mine\ncommand = 'x'\nwait = 1.5\n\n[mcp_servers.repertoire.env]\nKEY = \"é\"\n\n[z]\nb = 2\n".to_owned(),
        _ => {
            let keys = &client.keys[0];
            format!("{{\n   \"a\": 1,\n   \"{keys}\": {{\"docs\": {{\"command\": \"d\"}}, \"repertoire\":  {{\"command\": \"é\", \"args\": [\"mcp\"],\n \"env\": {{\"KEY\": \"rep\"}}}}\n}},\n\"z\": 2}}")
        }
    }
}

#[test]
fn an_entry_of_somebody_else_is_not_taken_out() {
    for client in known_clients() {
        let before = foreign(client);
        let (_keep, path, memory) = on_disk(client, Some(&before));
        let config =
            ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
        assert!(matches!(config.find_owner().unwrap(), EntryOwner::Foreign(_)), "{}", client.id);
        let error = config.remove_entry().unwrap_err();
        assert!(matches!(error, ConfigFileError::Foreign { .. }), "{error}");
        let docs =
            ClientConfigFile { path: &path, client, name: "docs", memory: &memory, project: None };
        assert!(matches!(docs.remove_entry().unwrap_err(), ConfigFileError::Foreign { .. }));
        assert_eq!(repertoire_text::fs::read_text(&path, 999).unwrap(), before);
    }
}

#[test]
fn an_entry_that_was_replaced_comes_back_as_it_was_written() {
    for client in known_clients() {
        let before = foreign(client);
        let (_keep, path, memory) = on_disk(client, Some(&before));
        let config =
            ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
        assert_eq!(
            config.replace_entry(&entry(client)).unwrap(),
            FileChange::Changed,
            "{}",
            client.id
        );
        assert_eq!(config.find_owner().unwrap(), EntryOwner::Ours(entry(client)));
        // Replaced again by another of ours, the first one is still remembered.
        let other = client.build_entry("wrapped", &["mcp".to_owned()]);
        assert_eq!(config.replace_entry(&other).unwrap(), FileChange::Changed);
        assert_eq!(config.find_owner().unwrap(), EntryOwner::Ours(other));
        assert_eq!(config.remove_entry().unwrap(), FileChange::Restored);
        assert_eq!(repertoire_text::fs::read_text(&path, 999).unwrap(), before, "{}", client.id);
        assert!(matches!(config.remove_entry().unwrap_err(), ConfigFileError::Foreign { .. }));
    }
}

#[test]
fn an_entry_that_was_replaced_comes_back_into_a_file_that_has_changed() {
    for client in known_clients() {
        let before = foreign(client);
        let (_keep, path, memory) = on_disk(client, Some(&before));
        let config =
            ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
        let former = config.get_entry().unwrap();
        config.replace_entry(&entry(client)).unwrap();
        let text = repertoire_text::fs::read_text(&path, 999).unwrap();
        // In front of it, and within what had been moved.
        let text = match client.format {
            ConfigFormat::Toml => format!("# new\n{}", text.replace("'d'", "'dd'")),
            _ => text.replace("\"a\": 1", "\"a\": 111").replace("\"d\"", "\"dd\""),
        };
        repertoire_text::fs::write_atomic(&path, text.as_bytes()).unwrap();
        assert_eq!(config.remove_entry().unwrap(), FileChange::Restored, "{}", client.id);
        assert_eq!(config.get_entry().unwrap(), former);
        let docs =
            ClientConfigFile { path: &path, client, name: "docs", memory: &memory, project: None };
        assert!(docs.get_entry().unwrap().unwrap().to_string().contains("dd"), "{}", client.id);
    }
}

#[test]
fn an_entry_by_hand_that_starts_us_is_ours_and_one_that_was_changed_since_is_not() {
    let client = find_client("claude").unwrap();
    let text =
        "{\"mcpServers\": {\"repertoire\": {\"command\": \"/opt/rep\", \"args\": [\"mcp\"]}}}";
    let (_keep, path, memory) = on_disk(client, Some(text));
    let config =
        ClientConfigFile { path: &path, client, name: NAME, memory: &memory, project: None };
    assert_eq!(config.remove_entry().unwrap(), FileChange::Changed);
    config.add_entry(&client.build_entry("wrapped", &["mcp".to_owned()])).unwrap();
    let text = repertoire_text::fs::read_text(&path, 999).unwrap().replace("wrapped", "theirs");
    repertoire_text::fs::write_atomic(&path, text.as_bytes()).unwrap();
    assert!(matches!(config.remove_entry().unwrap_err(), ConfigFileError::Foreign { .. }));
}

#[test]
fn links_read_only_files_and_huge_ones_stay_untouched() {
    use std::os::unix::fs::PermissionsExt as _;
    let client = find_client("claude").unwrap();
    let refused = |path: &Utf8Path, memory: &Utf8Path| {
        let config = ClientConfigFile { path, client, name: NAME, memory, project: None };
        config.add_entry(&entry(client)).unwrap_err().to_string()
    };
    let (_keep, path, memory) = on_disk(client, Some("{}"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(refused(&path, &memory), format!("{path} is read-only"));
    let link = path.with_file_name("link.json");
    std::os::unix::fs::symlink("c.json", &link).unwrap();
    assert_eq!(
        refused(&link, &memory),
        format!("{link} is a link to c.json, which may belong to others as well")
    );
    assert_eq!(repertoire_text::fs::read_text(&path, 99).unwrap(), "{}");

    let (_keep, path, memory) =
        on_disk(client, Some(&format!("{{\"a\":\"{}\"}}", "x".repeat(10 << 20))));
    assert_eq!(
        refused(&path, &memory),
        format!("{path}: the file has 10485768 bytes; the limit is 8388608")
    );
    let (_keep, path, memory) = on_disk(client, None);
    std::fs::create_dir_all(&path).unwrap();
    assert_eq!(refused(&path, &memory), format!("{path}: this is a folder, not a regular file"));
}

/// JSON with blanks, comments and trailing commas wherever they may be; at times with our keys.
fn jsonc() -> impl Strategy<Value = String> {
    let blank = prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just(" // c, {\n".to_owned()),
        1 => Just("/* } \" */".to_owned()),
        1 => Just("\n// own line\n    ".to_owned()),
    ];
    let key = prop_oneof![
        3 => Just("mcpServers".to_owned()),
        1 => Just("servers".to_owned()),
        3 => "[a-z]{1,3}",
        1 => Just("\\\" \\u0041 é".to_owned()),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.50e+3".to_owned()),
        Just("\"a // b \\\" }\"".to_owned()),
        Just("true".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
    ];
    let inner = leaf.prop_recursive(4, 24, 4, {
        let (blank, key) = (blank.clone(), key.clone());
        move |inner| object_or_list(blank.clone(), key.clone(), inner)
    });
    (blank.clone(), object(blank.clone(), key, inner), blank)
        .prop_map(|(a, b, c)| format!("{a}{b}{c}"))
}

fn object_or_list(
    blank: impl Strategy<Value = String> + Clone + 'static,
    key: impl Strategy<Value = String> + Clone + 'static,
    inner: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = String> {
    let list = (blank.clone(), prop::collection::vec((inner.clone(), blank.clone()), 0..3))
        .prop_map(|(first, items)| {
            let items: Vec<String> =
                items.into_iter().map(|(item, blank)| format!("{item}{blank}")).collect();
            format!("[{first}{}]", items.join(","))
        });
    prop_oneof![3 => object(blank, key, inner).boxed(), 1 => list.boxed()]
}

fn object(
    blank: impl Strategy<Value = String> + Clone + 'static,
    key: impl Strategy<Value = String> + Clone + 'static,
    inner: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = String> {
    let b = blank.clone();
    let property =
        (key, b.clone(), b.clone(), inner, b.clone()).prop_map(|(key, one, two, value, three)| {
            (key.clone(), format!("\"{key}\"{one}:{two}{value}{three}"))
        });
    (blank.clone(), prop::collection::vec(property, 0..4), any::<bool>(), blank).prop_map(
        |(first, mut properties, trailing, last)| {
            let mut seen = std::collections::BTreeSet::new();
            properties.retain(|(key, _)| seen.insert(key.clone()));
            let properties: Vec<String> = properties.into_iter().map(|(_, text)| text).collect();
            let comma = if trailing && !properties.is_empty() { "," } else { "" };
            format!("{{{first}{}{comma}{last}}}", properties.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn setting_and_removing_gives_the_bytes_from_before(before in jsonc()) {
        let client = find_client("cursor").unwrap();
        match place(client).add_entry(&before, &entry(client)) {
            Ok(Some((after, made))) => {
                prop_assert_eq!(place(client).get_entry(&after).unwrap(), Some(entry(client)));
                // All that was there is still there, in one or two pieces.
                let start = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
                let end = before.bytes().rev().zip(after.bytes().rev()).take_while(|(a, b)| a == b).count();
                prop_assert!(start + end >= before.len(), "{before:?} {after:?}");
                prop_assert_eq!(place(client).remove_entry(&after, made).unwrap(), Some(before));
            }
            Ok(None) => prop_assert!(false, "it cannot be there already"),
            Err(error) => prop_assert!(matches!(error, EntryEditError::NotAnObject { .. }), "{error}: {before}"),
        }
    }

    #[test]
    fn setting_and_removing_a_table_gives_the_bytes_from_before(
        lines in prop::collection::vec(prop_oneof![
            Just("# [mcp_servers.repertoire]"), Just(""), Just("  "), Just("k = 'v' # c"), Just("[t]"),
            Just("[mcp_servers.other]"), Just("[mcp_servers]"), Just("l = [\n 1, # x\n]"), Just("s = \"\"\"\n[x]\n\"\"\""), Just("a.b = 1"),
            Just("[[aot]]"),
        ], 0..6),
        newline in prop_oneof![Just("\n"), Just("\r\n")],
        ends in any::<bool>(),
    ) {
        let client = find_client("codex").unwrap();
        let mut before = lines.join("\n");
        if ends && !before.is_empty() {
            before.push('\n');
        }
        let before = before.replace('\n', newline);
        match place(client).add_entry(&before, &entry(client)) {
            Ok(Some((after, made))) => {
                prop_assert!(after.starts_with(&before));
                prop_assert_eq!(place(client).remove_entry(&after, made).unwrap(), Some(before));
            }
            // Keys that are there twice.
            Err(EntryEditError::Syntax { .. }) => {}
            other => prop_assert!(false, "{other:?}: {before:?}"),
        }
    }
}
