//! A skill as JSON: everything that is known of it, with a published schema. Every field is always present; a
//! missing value is `null` or empty.

use std::collections::BTreeMap;

use repertoire_text::{TextPosition, yaml};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::CatalogEntry;
use crate::resources::ResourceFile;
use crate::skill::{
    ContentDigest, Dialect, ExecutionSettings, InvocationContext, PluginInfo, Scope, Skill,
    SkillPriority, SkillTriggers,
};
use crate::trust::TrustLevel;

/// Everything known of a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillJson {
    /// The name to request it by, `plugin:name` for a plugin's skill.
    pub id: String,
    /// The normalised name.
    pub name: String,
    /// The name as written.
    pub original_name: String,
    /// The description: what the skill does and when to use it.
    pub description: String,
    /// The file that the skill was read from.
    pub path: String,
    /// The root below which it was found.
    pub root: String,
    /// The scope of the root.
    pub scope: Scope,
    /// The plugin that it came with.
    pub plugin: Option<PluginInfo>,
    /// The trust in the skill, which decides whether it may be given capabilities.
    pub trust: TrustLevel,
    /// The dialect of the file.
    pub dialect: Dialect,
    /// The digest of the file.
    #[schemars(with = "String")]
    pub digest: ContentDigest,
    /// The `type` field.
    pub kind: String,
    /// The semantic version.
    pub version: Option<String>,
    /// The author.
    pub author: Option<String>,
    /// The licence.
    pub license: Option<String>,
    /// Requirements on the environment.
    pub compatibility: Option<String>,
    /// The `metadata` field, as it was written.
    pub metadata: Option<Value>,
    /// Tags to search by.
    pub tags: Vec<String>,
    /// The capabilities of a sub-agent.
    pub capabilities: Vec<String>,
    /// The triggers that select the skill.
    pub triggers: SkillTriggers,
    /// The tools that the skill allows, requires and disallows.
    pub tools: SkillToolsJson,
    /// The skills that it depends on, as `name` or `name@requirement`.
    pub dependencies: Vec<String>,
    /// The execution settings.
    pub execution: ExecutionJson,
    /// The fields of Claude Code.
    pub claude: ClaudeJson,
    /// Fields that no dialect knows, in file order.
    pub unknown_fields: serde_json::Map<String, Value>,
    /// The position of each frontmatter field in the file.
    pub fields: BTreeMap<String, FieldPositionJson>,
    /// The number of characters of the body.
    pub body_chars: usize,
    /// The files of the skill's folder; `null` if they were not requested.
    pub resources: Option<Vec<ResourceFile>>,
}

/// The tools that a skill names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillToolsJson {
    /// Tools that may be used without asking.
    pub allowed: Vec<String>,
    /// Tools that must be available.
    pub required: Vec<String>,
    /// Tools that must not be used.
    pub disallowed: Vec<String>,
}

/// The execution settings of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionJson {
    /// True if a result may be reused.
    pub cacheable: bool,
    /// The maximum number of retries after a failure.
    pub max_retries: u32,
    /// The timeout of one execution, in milliseconds.
    pub timeout_ms: u64,
    /// The priority among several skills that match.
    pub priority: SkillPriority,
    /// The maximum number of concurrent executions.
    pub max_concurrent: Option<u32>,
}

/// The fields of Claude Code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaudeJson {
    /// More on when to use the skill.
    pub when_to_use: Option<String>,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// The hint shown to the user about arguments.
    pub argument_hint: Option<String>,
    /// True if the model must not choose the skill by itself.
    pub disable_model_invocation: bool,
    /// True if the skill is offered to the user.
    pub user_invocable: bool,
    /// The model to use.
    pub model: Option<String>,
    /// The reasoning effort.
    pub effort: Option<String>,
    /// Whether the skill runs in the conversation or in a sub-agent.
    pub context: InvocationContext,
    /// The sub-agent to run in.
    pub agent: Option<String>,
    /// The `hooks` field, as it was written.
    pub hooks: Option<Value>,
    /// The shell for commands.
    pub shell: Option<String>,
}

/// A position in a file; both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldPositionJson {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl SkillJson {
    /// Converts an entry of a catalog, with its resources if they were listed.
    pub fn new(entry: &CatalogEntry, resources: Option<&[ResourceFile]>) -> Self {
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
            metadata: skill.metadata().map(yaml::YamlNode::to_json),
            tags: skill.tags.clone(),
            capabilities: skill.capabilities.clone(),
            triggers: skill.triggers.clone(),
            tools: skill_tools(skill),
            dependencies: skill.execution.dependencies.iter().map(ToString::to_string).collect(),
            execution: ExecutionJson::from(&skill.execution),
            claude: ClaudeJson::from(skill),
            unknown_fields: unknown_fields(skill),
            fields: field_positions(skill),
            body_chars: skill.body().chars().count(),
            resources: resources.map(<[ResourceFile]>::to_vec),
        }
    }
}

fn skill_tools(skill: &Skill) -> SkillToolsJson {
    SkillToolsJson {
        allowed: skill.spec.allowed_tools.clone(),
        required: skill.execution.required_tools.clone(),
        disallowed: skill.execution.disallowed_tools.clone(),
    }
}

fn unknown_fields(skill: &Skill) -> serde_json::Map<String, Value> {
    skill.unknown_fields().map(|field| (field.key.clone(), field.value.to_json())).collect()
}

fn field_positions(skill: &Skill) -> BTreeMap<String, FieldPositionJson> {
    let place = |field: &yaml::YamlEntry| {
        let TextPosition { line, column } =
            TextPosition::of_offset(skill.source.text(), field.key_span.start as usize);
        (field.key.clone(), FieldPositionJson { line, column })
    };
    skill.frontmatter.entries.iter().map(place).collect()
}

impl From<&ExecutionSettings> for ExecutionJson {
    fn from(execution: &ExecutionSettings) -> Self {
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
            hooks: skill.hooks().map(yaml::YamlNode::to_json),
            shell: claude.shell.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{make_entry, make_resource};

    const FIELDS: &str = "zeta: {b: 1, a: [x]}\nversion: 1.2.0\ntags: [forms]\n\
        dependencies: [base@^1.2]\narguments: file\ntriggers:\n  keywords: [form]\nalpha: yes\n";

    #[test]
    fn everything_known_of_a_skill_is_there() {
        let found =
            SkillJson::new(&make_entry("pdf", FIELDS, "Fill it."), Some(&[make_resource("a.md")]));
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
        let found = SkillJson::new(&make_entry("pdf", FIELDS, "Fill it."), None);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<SkillJson>(&text).unwrap(), found);
    }

    #[test]
    fn its_schema_names_every_field() {
        let schema = schemars::schema_for!(SkillJson);
        let value =
            serde_json::to_value(SkillJson::new(&make_entry("pdf", "", "x"), None)).unwrap();
        for key in value.as_object().unwrap().keys() {
            assert!(schema.as_value()["properties"].get(key).is_some(), "{key}");
        }
    }
}
