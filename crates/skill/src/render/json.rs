//! A skill for programs: everything that is known of it, with a published schema. Every field is always
//! there; what a skill does not have is `null` or empty.

use std::collections::BTreeMap;

use repertoire_text::{Position, yaml};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::Entry;
use crate::resources::Resource;
use crate::skill::{Context, Dialect, Digest, Execution, Plugin, Priority, Scope, Skill, Triggers};
use crate::trust::Trust;

/// Everything known of a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillJson {
    /// The name to ask for.
    pub id: String,
    /// The normalised name.
    pub name: String,
    /// The name as written.
    pub original_name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The file it was read from.
    pub path: String,
    /// The root below which it was found.
    pub root: String,
    /// Where the root belongs.
    pub scope: Scope,
    /// The plugin that it came with.
    pub plugin: Option<Plugin>,
    /// Whether it may be given capabilities.
    pub trust: Trust,
    /// The family of the file.
    pub dialect: Dialect,
    /// The digest of the file.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// What it is for.
    pub kind: String,
    /// Its version.
    pub version: Option<String>,
    /// Its author.
    pub author: Option<String>,
    /// Its licence.
    pub license: Option<String>,
    /// Requirements on the environment.
    pub compatibility: Option<String>,
    /// The `metadata` field, as it was written.
    pub metadata: Option<Value>,
    /// Words to search by.
    pub tags: Vec<String>,
    /// What a sub-agent can do.
    pub capabilities: Vec<String>,
    /// What makes it apply.
    pub triggers: Triggers,
    /// Tools.
    pub tools: ToolsJson,
    /// Skills that it needs, as `name` or `name@requirement`.
    pub dependencies: Vec<String>,
    /// How it is executed.
    pub execution: ExecutionJson,
    /// Fields of Claude Code.
    pub claude: ClaudeJson,
    /// Fields that no dialect knows, in the order of the file.
    pub unknown_fields: serde_json::Map<String, Value>,
    /// Where each field of the frontmatter stands in the file.
    pub fields: BTreeMap<String, PlaceJson>,
    /// Characters of the body.
    pub body_chars: usize,
    /// The files beside it; `null` if they were not asked for.
    pub resources: Option<Vec<Resource>>,
}

/// The tools that a skill speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsJson {
    /// May be used without asking.
    pub allowed: Vec<String>,
    /// Must be there.
    pub required: Vec<String>,
    /// Must not be used.
    pub disallowed: Vec<String>,
}

/// How a skill is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionJson {
    /// Whether a result may be reused.
    pub cacheable: bool,
    /// How often a failure is tried again.
    pub max_retries: u32,
    /// How long one execution may take.
    pub timeout_ms: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// How many executions may run at once.
    pub max_concurrent: Option<u32>,
}

/// Fields of Claude Code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaudeJson {
    /// More on when to use it.
    pub when_to_use: Option<String>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// What to show the user about arguments.
    pub argument_hint: Option<String>,
    /// Whether the model must not choose it by itself.
    pub disable_model_invocation: bool,
    /// Whether the user is offered it.
    pub user_invocable: bool,
    /// The model to use.
    pub model: Option<String>,
    /// How hard to think.
    pub effort: Option<String>,
    /// Where to run.
    pub context: Context,
    /// The sub-agent to run in.
    pub agent: Option<String>,
    /// Hooks, as they were written.
    pub hooks: Option<Value>,
    /// The shell for commands.
    pub shell: Option<String>,
}

/// A place in a file; both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceJson {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl SkillJson {
    /// A skill of a catalog, with its resources if they were listed.
    pub fn new(entry: &Entry, resources: Option<&[Resource]>) -> Self {
        let skill = &*entry.skill;
        SkillJson {
            id: entry.id.clone(),
            name: skill.name.clone(),
            original_name: skill.name_original.clone(),
            description: skill.description.clone(),
            path: skill.origin.file.to_string(),
            root: skill.origin.root.to_string(),
            scope: skill.origin.scope,
            plugin: skill.origin.plugin.clone(),
            trust: entry.trust,
            dialect: skill.dialect,
            digest: skill.digest(),
            kind: skill.kind.as_str().to_owned(),
            version: skill.version.as_ref().map(ToString::to_string),
            author: skill.author.clone(),
            license: skill.spec.license.clone(),
            compatibility: skill.spec.compatibility.clone(),
            metadata: skill.metadata().map(yaml::Node::to_json),
            tags: skill.tags.clone(),
            capabilities: skill.capabilities.clone(),
            triggers: skill.triggers.clone(),
            tools: tools(skill),
            dependencies: skill.execution.dependencies.iter().map(ToString::to_string).collect(),
            execution: ExecutionJson::from(&skill.execution),
            claude: ClaudeJson::from(skill),
            unknown_fields: unknown_fields(skill),
            fields: fields(skill),
            body_chars: skill.body().chars().count(),
            resources: resources.map(<[Resource]>::to_vec),
        }
    }
}

fn tools(skill: &Skill) -> ToolsJson {
    ToolsJson {
        allowed: skill.spec.allowed_tools.clone(),
        required: skill.execution.required_tools.clone(),
        disallowed: skill.execution.disallowed_tools.clone(),
    }
}

fn unknown_fields(skill: &Skill) -> serde_json::Map<String, Value> {
    skill.unknown_fields().map(|field| (field.key.clone(), field.value.to_json())).collect()
}

fn fields(skill: &Skill) -> BTreeMap<String, PlaceJson> {
    let place = |field: &yaml::Entry| {
        let Position { line, column } =
            Position::of(skill.source.text(), field.key_span.start as usize);
        (field.key.clone(), PlaceJson { line, column })
    };
    skill.frontmatter.entries.iter().map(place).collect()
}

impl From<&Execution> for ExecutionJson {
    fn from(execution: &Execution) -> Self {
        ExecutionJson {
            cacheable: execution.cacheable,
            max_retries: execution.max_retries,
            timeout_ms: execution.timeout_ms,
            priority: execution.priority,
            max_concurrent: execution.max_concurrent,
        }
    }
}

impl From<&Skill> for ClaudeJson {
    fn from(skill: &Skill) -> Self {
        let claude = &skill.claude;
        ClaudeJson {
            when_to_use: claude.when_to_use.clone(),
            arguments: claude.arguments.clone(),
            argument_hint: claude.argument_hint.clone(),
            disable_model_invocation: claude.disable_model_invocation,
            user_invocable: !claude.hidden_from_user,
            model: claude.model.clone(),
            effort: claude.effort.clone(),
            context: claude.context,
            agent: claude.agent.clone(),
            hooks: skill.hooks().map(yaml::Node::to_json),
            shell: claude.shell.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, resource};

    const FIELDS: &str = "zeta: {b: 1, a: [x]}\nversion: 1.2.0\ntags: [forms]\n\
        dependencies: [base@^1.2]\narguments: file\ntriggers:\n  keywords: [form]\nalpha: yes\n";

    #[test]
    fn everything_known_of_a_skill_is_there() {
        let found = SkillJson::new(&entry("pdf", FIELDS, "Fill it."), Some(&[resource("a.md")]));
        insta::assert_snapshot!(serde_json::to_string_pretty(&found).unwrap(), @r#"
        {
          "id": "pdf",
          "name": "pdf",
          "original_name": "pdf",
          "description": "Does pdf. Use when asked for pdf.",
          "path": "/skills/pdf/SKILL.md",
          "root": "/skills/pdf",
          "scope": "extra",
          "plugin": null,
          "trust": "trusted",
          "dialect": "claude",
          "digest": "sha256:b8c60f58bf8776cc316279121ab7338c94f3e08d1904ffdf89625c3eecbfc56b",
          "kind": "custom",
          "version": "1.2.0",
          "author": null,
          "license": null,
          "compatibility": null,
          "metadata": null,
          "tags": [
            "forms"
          ],
          "capabilities": [],
          "triggers": {
            "keywords": [
              "form"
            ]
          },
          "tools": {
            "allowed": [],
            "required": [],
            "disallowed": []
          },
          "dependencies": [
            "base@^1.2"
          ],
          "execution": {
            "cacheable": true,
            "max_retries": 3,
            "timeout_ms": 30000,
            "priority": "medium",
            "max_concurrent": null
          },
          "claude": {
            "when_to_use": null,
            "arguments": [
              "file"
            ],
            "argument_hint": null,
            "disable_model_invocation": false,
            "user_invocable": true,
            "model": null,
            "effort": null,
            "context": "inline",
            "agent": null,
            "hooks": null,
            "shell": null
          },
          "unknown_fields": {
            "zeta": {
              "b": 1,
              "a": [
                "x"
              ]
            },
            "alpha": "yes"
          },
          "fields": {
            "alpha": {
              "line": 11,
              "column": 1
            },
            "arguments": {
              "line": 8,
              "column": 1
            },
            "dependencies": {
              "line": 7,
              "column": 1
            },
            "description": {
              "line": 3,
              "column": 1
            },
            "name": {
              "line": 2,
              "column": 1
            },
            "tags": {
              "line": 6,
              "column": 1
            },
            "triggers": {
              "line": 9,
              "column": 1
            },
            "version": {
              "line": 5,
              "column": 1
            },
            "zeta": {
              "line": 4,
              "column": 1
            }
          },
          "body_chars": 8,
          "resources": [
            {
              "group": "other",
              "path": "a.md",
              "bytes": 1
            }
          ]
        }
        "#);
    }

    #[test]
    fn it_reads_back_as_it_was_written() {
        let found = SkillJson::new(&entry("pdf", FIELDS, "Fill it."), None);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<SkillJson>(&text).unwrap(), found);
    }

    #[test]
    fn its_schema_names_every_field() {
        let schema = schemars::schema_for!(SkillJson);
        let value = serde_json::to_value(SkillJson::new(&entry("pdf", "", "x"), None)).unwrap();
        for key in value.as_object().unwrap().keys() {
            assert!(schema.as_value()["properties"].get(key).is_some(), "{key}");
        }
    }
}
