//! Reads one file into a [`Skill`]: strict in what it reports, lenient in what it accepts.
//!
//! Loading never fails. A skill without a description, or with YAML that cannot be repaired, is not loaded,
//! and a diagnostic says why. Everything else is loaded with its diagnostics.

use std::collections::HashSet;
use std::sync::OnceLock;

use repertoire_text::invisible;
use repertoire_text::yaml::{self, YamlMapping, YamlRepair};
use repertoire_text::{
    Diagnostic, DiagnosticFix, Limits, Source, Span, SpanEdit, codes as text_codes, frontmatter,
};

use crate::codes;
use crate::dialect::{self, known_fields};
use crate::limits::{DESCRIPTION_CHARS_MAX, NAME_BYTES_MAX};
use crate::name;
use crate::skill::{
    ClaudeFields, ExecutionSettings, InvocationContext, Skill, SkillKind, SkillOrigin,
    SkillPriority, SkillTriggers, SpecFields,
};

mod fields;

use fields::FrontmatterFields;

/// How a missing description is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingDescription {
    /// Do not load the skill.
    #[default]
    Skip,
    /// Use the first paragraph of the body, as Claude Code does.
    FirstParagraph,
}

/// A skill, if it could be loaded, and the findings about it.
#[derive(Clone, Debug)]
pub struct SkillLoadResult {
    pub skill: Option<Skill>,
    /// The findings, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a text that was found at `origin`.
///
/// ```
/// use repertoire_skill::{load::load_skill, skill::SkillOrigin};
/// use repertoire_text::{Limits, Source};
///
/// let text = "---\nname: pdf\ndescription: Fills forms. Use when a PDF has fields.\n---\nBody.\n";
/// let loaded = load_skill(Source::new("pdf/SKILL.md", text), SkillOrigin::from_file("pdf/SKILL.md"), &Limits::default());
/// assert_eq!(loaded.skill.unwrap().body(), "Body.\n");
/// assert!(loaded.diagnostics.is_empty());
/// ```
pub fn load_skill(source: Source, origin: SkillOrigin, limits: &Limits) -> SkillLoadResult {
    load_skill_with(source, origin, limits, MissingDescription::Skip)
}

/// Like [`load_skill`], with a choice of how a missing description is handled.
pub fn load_skill_with(
    source: Source,
    origin: SkillOrigin,
    limits: &Limits,
    missing: MissingDescription,
) -> SkillLoadResult {
    let mut diagnostics = Vec::new();
    let skill = read_skill(&source, origin, limits, missing, &mut diagnostics);
    SkillLoadResult { skill, diagnostics }
}

fn read_skill(
    source: &Source,
    origin: SkillOrigin,
    limits: &Limits,
    missing: MissingDescription,
    out: &mut Vec<Diagnostic>,
) -> Option<Skill> {
    let text = source.text();
    if text.starts_with(frontmatter::BOM) {
        let fix = DiagnosticFix {
            title: "remove the byte order mark".to_owned(),
            edits: vec![SpanEdit {
                span: Span::new(0, frontmatter::BOM.len()),
                text: String::new(),
            }],
        };
        let message = "the file starts with a byte order mark";
        out.push(
            Diagnostic::new(&text_codes::BYTE_ORDER_MARK, message).in_file(source.path()).fix(fix),
        );
    }
    let parts = match frontmatter::split(text, limits.frontmatter_bytes_max) {
        Ok(parts) => parts,
        Err(frontmatter::FrontmatterError::Missing)
            if missing == MissingDescription::FirstParagraph =>
        {
            frontmatter::FrontmatterParts { yaml: Span::new(0, 0), body: Span::new(0, text.len()) }
        }
        Err(error) => {
            out.push(frontmatter_diagnostic(source, &error));
            return None;
        }
    };
    let mapping = read_mapping(source, parts.yaml, limits, out)?;
    let mut fields = FrontmatterFields::new(source, &mapping, out);
    let name_original = fields.read_text("name");
    let description = fields.read_text("description").filter(|text| !text.trim().is_empty());
    let record = TypedFields::read_fields(&mut fields);
    let description = description.or_else(|| match missing {
        MissingDescription::Skip => None,
        MissingDescription::FirstParagraph => {
            first_paragraph(&invisible::removed(parts.body.slice(text)).0)
        }
    });
    let Some(description) = description else {
        out.push(missing_description_diagnostic(source, &mapping, parts.yaml));
        return None;
    };
    let name_original = name_original
        .filter(|name| name.len() <= NAME_BYTES_MAX && !name::normalise_name(name).is_empty());
    if name_original.is_none() {
        out.push(missing_name_diagnostic(source, &mapping, parts.yaml, origin.stem()));
    }
    let name_original = name_original.unwrap_or_else(|| origin.stem().to_owned());
    let dialect = dialect::detect_dialect(
        origin.file.file_name().unwrap_or(""),
        origin.dir().file_name(),
        mapping.entries.iter().map(|entry| entry.key.as_str()),
        mapping.get("type").and_then(yaml::YamlNode::as_str),
    );
    Some(Skill {
        name: name::normalise_name(&name_original),
        name_original,
        description: description.trim().to_owned(),
        dialect,
        origin,
        kind: record.kind,
        version: record.version,
        author: record.author,
        tags: record.tags,
        capabilities: record.capabilities,
        triggers: record.triggers,
        execution: record.execution,
        spec: record.spec,
        claude: record.claude,
        frontmatter: mapping,
        source: source.clone(),
        yaml: parts.yaml,
        body: parts.body,
        digest: OnceLock::new(),
    })
}

fn read_mapping(
    source: &Source,
    span: Span,
    limits: &Limits,
    out: &mut Vec<Diagnostic>,
) -> Option<YamlMapping> {
    static MARGIN: OnceLock<Vec<&'static str>> = OnceLock::new();
    let margin = MARGIN.get_or_init(|| known_fields().collect());
    match yaml::parse_or_repair(source.text(), span, &limits.yaml, margin) {
        Err(error) => {
            let help = error.code.remedy;
            out.push(Diagnostic::new(error.code, error.message).at(source, error.span).help(help));
            None
        }
        Ok(repaired) => {
            out.extend(repaired.repairs.iter().map(|repair| repair_diagnostic(source, repair)));
            match repaired.node.value {
                yaml::Value::Mapping(mapping) => Some(mapping),
                _ if repaired.node.is_null() => {
                    Some(YamlMapping { entries: Vec::new(), flow: yaml::YamlFlow::Block })
                }
                _ => {
                    let code = &text_codes::FRONTMATTER_NOT_MAPPING;
                    let message = format!(
                        "the frontmatter is {}, not fields with values",
                        repaired.node.shape_name()
                    );
                    let found = Diagnostic::new(code, message).at(source, repaired.node.span);
                    out.push(found.help(code.remedy));
                    None
                }
            }
        }
    }
}

fn repair_diagnostic(source: &Source, repair: &YamlRepair) -> Diagnostic {
    let (message, title) = match repair.code.id {
        "RS030" => ("the value is not valid YAML as written", "it was read as if quoted"),
        "RS031" => ("the line is indented with a tab", "it was read as if indented with spaces"),
        _ => ("the line is indented where it cannot belong", "it was read as if written like this"),
    };
    let edit = SpanEdit { span: repair.line, text: repair.corrected.clone() };
    Diagnostic::new(repair.code, message)
        .at(source, repair.line)
        .help(repair.code.remedy)
        .fix(DiagnosticFix { title: title.to_owned(), edits: vec![edit] })
}

fn frontmatter_diagnostic(source: &Source, error: &frontmatter::FrontmatterError) -> Diagnostic {
    let code = match error {
        frontmatter::FrontmatterError::Missing => &text_codes::NO_FRONTMATTER,
        frontmatter::FrontmatterError::NotClosed => &text_codes::FRONTMATTER_NOT_CLOSED,
        frontmatter::FrontmatterError::TooLarge { .. } => &text_codes::FRONTMATTER_TOO_LARGE,
    };
    let first_line = source.text().lines().next().map_or(0, str::len);
    Diagnostic::new(code, error.to_string()).at(source, Span::new(0, first_line)).help(code.remedy)
}

/// Returns the span to report for a missing field: its own key if it is present but empty.
fn span_of_field(mapping: &YamlMapping, yaml: Span, key: &str) -> Span {
    mapping
        .entries
        .iter()
        .find(|entry| entry.key == key)
        .map_or(Span { start: yaml.start, end: yaml.start }, |entry| entry.key_span)
}

fn missing_description_diagnostic(
    source: &Source,
    mapping: &YamlMapping,
    yaml: Span,
) -> Diagnostic {
    let code = &codes::DESCRIPTION_MISSING;
    let message = match mapping.get("description") {
        None => "the skill has no `description`".to_owned(),
        Some(node) if node.as_str().is_some() => "the `description` is empty".to_owned(),
        Some(node) => format!("the `description` is {}, not text", node.shape_name()),
    };
    Diagnostic::new(code, message)
        .at(source, span_of_field(mapping, yaml, "description"))
        .help(code.remedy)
}

fn missing_name_diagnostic(
    source: &Source,
    mapping: &YamlMapping,
    yaml: Span,
    stem: &str,
) -> Diagnostic {
    let given = mapping.get("name").and_then(yaml::YamlNode::as_str).map_or(0, str::len);
    let message = match given {
        0..=NAME_BYTES_MAX => format!("the skill has no `name`; `{stem}` is used"),
        _ => format!(
            "the `name` has {given} bytes, and the limit is {NAME_BYTES_MAX}; `{stem}` is used"
        ),
    };
    Diagnostic::new(&codes::NAME_MISSING, message)
        .at(source, span_of_field(mapping, yaml, "name"))
        .help(format!("add `name: {}`", name::normalise_name(stem)))
}

/// Returns the first paragraph of Markdown that is not a heading, as one line. A long one ends in `…`.
fn first_paragraph(body: &str) -> Option<String> {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    let lines = body.lines().map(str::trim);
    let paragraph = lines.skip_while(|line| !is_text(line)).take_while(is_text);
    let mut out = String::new();
    for word in paragraph.flat_map(str::split_whitespace) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        // The number of characters never exceeds the number of bytes.
        if out.len() >= DESCRIPTION_CHARS_MAX
            && let Some((at, _)) = out.char_indices().nth(DESCRIPTION_CHARS_MAX - 1)
        {
            out.truncate(at);
            out.push('…');
            break;
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The typed fields besides name and description.
struct TypedFields {
    kind: SkillKind,
    version: Option<semver::Version>,
    author: Option<String>,
    tags: Vec<String>,
    capabilities: Vec<String>,
    triggers: SkillTriggers,
    execution: ExecutionSettings,
    spec: SpecFields,
    claude: ClaudeFields,
}

impl TypedFields {
    fn read_fields(fields: &mut FrontmatterFields<'_>) -> Self {
        TypedFields {
            kind: fields.read_text("type").map(|word| kind_of(&word)).unwrap_or_default(),
            version: fields.read_version("version"),
            author: fields.read_text("author"),
            tags: fields.read_words("tags"),
            capabilities: fields.read_words("capabilities"),
            triggers: read_triggers(fields),
            execution: read_execution(fields),
            spec: SpecFields {
                license: fields.read_text("license"),
                compatibility: fields.read_text("compatibility"),
                allowed_tools: read_tools(fields, &["allowed-tools", "tools"]),
            },
            claude: read_claude(fields),
        }
    }
}

fn kind_of(word: &str) -> SkillKind {
    match word {
        "custom" => SkillKind::Custom,
        "self-improvement" => SkillKind::SelfImprovement,
        "mode" => SkillKind::Mode,
        "subagent" => SkillKind::Subagent,
        other => SkillKind::Other(other.to_owned()),
    }
}

fn read_tools(fields: &mut FrontmatterFields<'_>, keys: &[&str]) -> Vec<String> {
    let mut tools: Vec<String> = keys.iter().flat_map(|key| fields.read_tools(key)).collect();
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert(tool.clone()));
    tools
}

fn read_triggers(fields: &mut FrontmatterFields<'_>) -> SkillTriggers {
    let mut triggers = fields.read_triggers("triggers");
    triggers.paths.extend(fields.read_words("paths"));
    triggers
}

fn read_execution(fields: &mut FrontmatterFields<'_>) -> ExecutionSettings {
    let defaults = ExecutionSettings::default();
    ExecutionSettings {
        required_tools: read_tools(fields, &["required_tools"]),
        disallowed_tools: read_tools(
            fields,
            &["disallowed_tools", "disallowed-tools", "disallowedTools"],
        ),
        dependencies: fields.read_dependencies("dependencies"),
        cacheable: fields.read_flag("cacheable").unwrap_or(defaults.cacheable),
        max_retries: fields.read_number("max_retries").unwrap_or(defaults.max_retries),
        timeout_ms: fields.read_number("timeout_ms").unwrap_or(defaults.timeout_ms),
        priority: fields
            .read_choice(
                "priority",
                &[
                    ("low", SkillPriority::Low),
                    ("medium", SkillPriority::Medium),
                    ("high", SkillPriority::High),
                ],
            )
            .unwrap_or(defaults.priority),
        max_concurrent: fields.read_number("max_concurrent"),
    }
}

fn read_claude(fields: &mut FrontmatterFields<'_>) -> ClaudeFields {
    ClaudeFields {
        when_to_use: fields.read_text("when_to_use"),
        arguments: fields.read_tools("arguments"),
        argument_hint: fields.read_loose_text("argument-hint"),
        disable_model_invocation: fields.read_flag("disable-model-invocation").unwrap_or(false),
        hidden_from_user: !fields.read_flag("user-invocable").unwrap_or(true),
        model: fields.read_text("model"),
        effort: fields.read_text("effort"),
        context: fields
            .read_choice(
                "context",
                &[("fork", InvocationContext::Fork), ("inline", InvocationContext::Inline)],
            )
            .unwrap_or_default(),
        agent: fields.read_text("agent"),
        shell: fields.read_text("shell"),
    }
}

#[cfg(test)]
#[path = "load/load_tests.rs"]
mod tests;
