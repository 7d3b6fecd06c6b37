//! The normalised record that every dialect is read into.
//!
//! Known fields have types and defaults here. The frontmatter itself is kept beside them, so that fields that
//! no dialect knows are preserved, in order, and can be served back.

use std::fmt;
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::yaml::{YamlEntry, YamlMapping, YamlNode};
use repertoire_text::{SharedText, Source, Span};
use schemars::JsonSchema;
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::dialect;

/// The family of files that a skill was read from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// A folder with a `SKILL.md` that keeps to the Agent Skills fields.
    AgentSkills,
    /// A `SKILL.md` that uses fields of Claude Code.
    Claude,
    /// A single `*.md` file.
    Flat,
    /// A single `*.md` file that defines a sub-agent.
    SubAgent,
}

/// The owner of a root.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Shipped with Repertoire.
    Builtin,
    /// The user's home directory.
    User,
    /// The project.
    Project,
    /// A plugin in the cache.
    Plugin,
    /// Named on the command line or in the configuration.
    Extra,
}

impl Scope {
    /// The name of the scope as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Builtin => "builtin",
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Plugin => "plugin",
            Scope::Extra => "extra",
        }
    }
}

/// The plugin that a skill came with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PluginInfo {
    /// The name of the plugin, the part before the colon in `plugin:skill`.
    pub name: String,
    /// The version folder that it was found in.
    pub version: String,
}

/// The location where a skill was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillOrigin {
    pub file: Utf8PathBuf,
    /// The root below which it was found.
    pub root: Utf8PathBuf,
    pub scope: Scope,
    /// The plugin, for plugin roots.
    pub plugin: Option<PluginInfo>,
}

impl SkillOrigin {
    /// Creates an origin outside any root, for a file that was named directly.
    pub fn from_file(file: impl Into<Utf8PathBuf>) -> Self {
        let file = file.into();
        let root = file.parent().map(Utf8Path::to_owned).unwrap_or_default();
        SkillOrigin { file, root, scope: Scope::Extra, plugin: None }
    }

    /// Returns true if the skill has a folder of its own, whose other files are its resources.
    pub fn is_folder(&self) -> bool {
        self.file.file_name().is_some_and(dialect::is_skill_file)
    }

    /// The folder that relative paths in the skill refer to.
    pub fn dir(&self) -> &Utf8Path {
        self.file.parent().unwrap_or(Utf8Path::new("."))
    }

    /// The name of the folder, or of the file without its extension.
    pub fn stem(&self) -> &str {
        let stem = if self.is_folder() { self.dir().file_name() } else { self.file.file_stem() };
        stem.unwrap_or("")
    }
}

/// The kind of a skill, from the `type` field.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SkillKind {
    /// Instructions, the usual case.
    #[default]
    Custom,
    /// Helps an agent to learn from its own failures.
    SelfImprovement,
    /// Decides how an event is handled.
    Mode,
    /// An agent that others delegate to.
    Subagent,
    /// Any other word in the field.
    Other(String),
}

impl SkillKind {
    /// The word as written in frontmatter.
    pub fn as_str(&self) -> &str {
        match self {
            SkillKind::Custom => "custom",
            SkillKind::SelfImprovement => "self-improvement",
            SkillKind::Mode => "mode",
            SkillKind::Subagent => "subagent",
            SkillKind::Other(word) => word,
        }
    }
}

/// The priority of a skill among several that match.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SkillPriority {
    /// After others.
    Low,
    /// The default.
    #[default]
    Medium,
    /// Before others.
    High,
}

/// Fields of the Agent Skills specification, besides name and description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecFields {
    pub license: Option<String>,
    /// Requirements on the environment.
    pub compatibility: Option<String>,
    /// Tools that may be used without asking.
    pub allowed_tools: Vec<String>,
}

/// Whether a skill runs in the conversation or in a sub-agent of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InvocationContext {
    /// In the conversation.
    #[default]
    Inline,
    /// In a fresh sub-agent.
    Fork,
}

/// Fields of Claude Code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaudeFields {
    /// More on when to use the skill.
    pub when_to_use: Option<String>,
    /// The names of positional arguments.
    pub arguments: Vec<String>,
    /// The hint shown to the user about arguments.
    pub argument_hint: Option<String>,
    /// True if the model must not choose the skill by itself.
    pub disable_model_invocation: bool,
    /// True if the skill must not be offered to the user (`user-invocable: false`).
    pub hidden_from_user: bool,
    pub model: Option<String>,
    /// The reasoning effort.
    pub effort: Option<String>,
    pub context: InvocationContext,
    /// The sub-agent to run in, with `context: fork`.
    pub agent: Option<String>,
    /// The shell for commands.
    pub shell: Option<String>,
}

/// The triggers that select a skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillTriggers {
    /// Phrases in the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Regular expressions matched against the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Names of events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Globs matched against the paths that the task touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Phrases that rule the skill out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// The minimum score for this skill, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// A skill that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SkillDependency {
    /// The normalised name.
    pub name: String,
    /// The accepted versions; any, if `None`.
    pub requirement: Option<VersionReq>,
}

impl fmt::Display for SkillDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.requirement {
            Some(requirement) => write!(f, "{}@{requirement}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The execution settings of a skill, with the defaults of the flat dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSettings {
    /// Tools that must be available.
    pub required_tools: Vec<String>,
    /// Tools that must not be used.
    pub disallowed_tools: Vec<String>,
    /// Skills that must be available.
    pub dependencies: Vec<SkillDependency>,
    /// True if a result may be reused.
    pub cacheable: bool,
    /// The maximum number of retries after a failure.
    pub max_retries: u32,
    /// The timeout of one execution, in milliseconds.
    pub timeout_ms: u64,
    pub priority: SkillPriority,
    /// The maximum number of concurrent executions; unlimited if `None`.
    pub max_concurrent: Option<u32>,
}

impl Default for ExecutionSettings {
    fn default() -> Self {
        ExecutionSettings {
            required_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            dependencies: Vec::new(),
            cacheable: true,
            max_retries: 3,
            timeout_ms: 30_000,
            priority: SkillPriority::Medium,
            max_concurrent: None,
        }
    }
}

/// The SHA-256 of a file or of a set of files, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Computes the digest of some bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        ContentDigest(Sha256::digest(bytes).into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for ContentDigest {
    fn from(bytes: [u8; 32]) -> Self {
        ContentDigest(bytes)
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ContentDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for ContentDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let hex = text.strip_prefix("sha256:").ok_or(InvalidDigest)?;
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(InvalidDigest);
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).map_err(|_| InvalidDigest)?;
        }
        Ok(ContentDigest(bytes))
    }
}

/// The error for a text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits")]
pub struct InvalidDigest;

/// The normalised record of a skill.
#[derive(Clone, Debug)]
pub struct Skill {
    /// The normalised name.
    pub name: String,
    /// The name as written, or the name of the folder if there is none.
    pub name_original: String,
    /// The description: what the skill does and when to use it.
    pub description: String,
    pub dialect: Dialect,
    pub origin: SkillOrigin,
    pub kind: SkillKind,
    /// `None` if it is missing or not a semantic version.
    pub version: Option<Version>,
    pub author: Option<String>,
    /// Tags to search by.
    pub tags: Vec<String>,
    /// The capabilities of a sub-agent.
    pub capabilities: Vec<String>,
    pub triggers: SkillTriggers,
    pub execution: ExecutionSettings,
    /// Fields of the Agent Skills specification.
    pub spec: SpecFields,
    /// Fields of Claude Code.
    pub claude: ClaudeFields,
    /// The frontmatter as it was read, every field in order.
    pub frontmatter: YamlMapping,
    /// The whole file.
    pub source: Source,
    /// The span of the frontmatter's YAML in the source.
    pub yaml: Span,
    /// The span of the body in the source.
    pub body: Span,
    pub(crate) digest: OnceLock<ContentDigest>,
}

impl Skill {
    /// The instructions, without the frontmatter and the blank lines after it.
    pub fn body(&self) -> &str {
        self.body.slice(self.source.text()).trim_start_matches(['\n', '\r'])
    }

    /// The text of the whole file.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The digest of the file, computed once.
    pub fn digest(&self) -> ContentDigest {
        *self.digest.get_or_init(|| ContentDigest::hash_bytes(self.text().as_bytes()))
    }

    /// The text of the whole file, shared.
    pub fn shared_text(&self) -> SharedText {
        self.source.shared_text()
    }

    /// The `metadata` field as it was written, with any content.
    pub fn metadata(&self) -> Option<&YamlNode> {
        self.frontmatter.get("metadata").filter(|node| !node.is_null())
    }

    /// The `hooks` field as it was written. Hooks request a capability and never run merely because a skill
    /// is loaded.
    pub fn hooks(&self) -> Option<&YamlNode> {
        self.frontmatter.get("hooks").filter(|node| !node.is_null())
    }

    /// Iterates over fields that have no effect in a file of this dialect, in file order.
    pub fn unknown_fields(&self) -> impl Iterator<Item = &YamlEntry> {
        let is_known = |key: &str| dialect::fields_of(self.dialect).any(|known| known == key);
        self.frontmatter.entries.iter().filter(move |entry| !is_known(&entry.key))
    }

    /// Returns true for an agent rather than instructions for one. Agents are a separate namespace.
    pub fn is_agent(&self) -> bool {
        self.dialect == Dialect::SubAgent
    }

    /// Returns true if a model may choose the skill. Agents and modes are chosen by the engine.
    pub fn is_offered(&self) -> bool {
        !self.claude.disable_model_invocation && !self.is_agent() && self.kind != SkillKind::Mode
    }

    /// Returns `plugin:name` for a plugin's skill, the name alone for any other.
    pub fn qualified_name(&self) -> String {
        match &self.origin.plugin {
            Some(plugin) => format!("{}:{}", plugin.name, self.name),
            None => self.name.clone(),
        }
    }
}
