//! Reads a `workflow.yaml` into a [`Workflow`], with diagnostics that point into the file and with the texts it
//! injects. A skill's folder holds its workflow, and under `workflows/` those of its sub-agents.

use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::name::nearest_name;
use repertoire_skill::skill::Skill;
use repertoire_skill::{pack, resources};
use repertoire_text::fs::ReadError;
use repertoire_text::yaml::{self, YamlNode};
use repertoire_text::{Diagnostic, Source, Span};
use serde::Deserialize;

use crate::check::{
    CheckedWorkflow, FieldPath, FieldPathSegment, WorkflowFinding, is_name, sort_and_cap,
};
use crate::codes;
use crate::limits::{FILE_BYTES_MAX, INJECTED_BYTES_MAX, RESOURCE_BYTES_MAX};
use crate::workflow::{StepBlock, StepDef, SubagentBrief, Workflow};

mod deserialize;

#[cfg(test)]
mod tests;

/// The file that makes a skill a workflow.
pub const FILE: &str = "workflow.yaml";
/// The folder with the workflows of sub-agents.
pub const FOLDER: &str = "workflows";

/// Limits on the YAML of a workflow.
const YAML: yaml::Limits = yaml::Limits { depth_max: 32, nodes_max: 20_000, repairs_max: 0 };

/// A workflow, as far as it could be read, with its diagnostics.
#[derive(Clone, Debug)]
pub struct LoadedWorkflow {
    /// The skill's name, or `skill/name` for a workflow under `workflows/`.
    pub name: String,
    pub source: Source,
    /// Set if the file has the shape of a workflow.
    pub workflow: Option<Workflow>,
    /// Set if the workflow can run.
    pub checked: Option<CheckedWorkflow>,
    /// In the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// A text that a workflow injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedText<'a> {
    /// A file in the skill's folder.
    Resource(&'a str),
    /// The name of a convention.
    Convention(&'a str),
}

/// The context of a workflow file.
pub struct WorkflowContext<'a> {
    pub name: &'a str,
    /// The description to use if the file has none.
    pub description: &'a str,
    /// The name of the skill, and the names of its workflows under `workflows/`.
    pub siblings: (&'a str, &'a [String]),
    /// Reads an injected text, or returns the reason why it cannot be read.
    pub read: &'a dyn Fn(InjectedText<'_>) -> Result<String, String>,
}

/// Returns true if the skill has a workflow file, readable or not.
pub fn is_workflow(skill: &Skill) -> bool {
    skill.origin.is_folder() && !matches!(read_skill_file(skill, FILE), Err(ReadError::NotFound))
}

/// Loads all workflows of a skill: its own first, then those of its sub-agents by name. Returns nothing if there is no
/// `workflow.yaml`. A file that cannot be read becomes a workflow with a diagnostic.
pub fn load_workflows(skill: &Skill) -> Vec<LoadedWorkflow> {
    if !is_workflow(skill) {
        return Vec::new();
    }
    let siblings = list_siblings(skill);
    let read = |wanted: InjectedText<'_>| read_injected_text(skill, wanted);
    let load = |name: &str, description: &str, file: &str| {
        let path = skill.origin.dir().join(file);
        let around =
            WorkflowContext { name, description, siblings: (&skill.name, &siblings), read: &read };
        match read_skill_file(skill, file) {
            Ok(text) => read_source(Source::new(path, text), &around),
            Err(error) => LoadedWorkflow {
                name: name.to_owned(),
                diagnostics: vec![error.to_diagnostic(&path)],
                source: Source::new(path, String::new()),
                workflow: None,
                checked: None,
            },
        }
    };
    let mut all = vec![load(&skill.name, &skill.description, FILE)];
    for name in &siblings {
        all.push(load(&format!("{}/{name}", skill.name), "", &format!("{FOLDER}/{name}.yaml")));
    }
    all
}

/// Reads one workflow file.
pub fn read_source(source: Source, around: &WorkflowContext<'_>) -> LoadedWorkflow {
    let (workflow, checked, diagnostics) = read_workflow(&source, around);
    LoadedWorkflow { name: around.name.to_owned(), source, workflow, checked, diagnostics }
}

/// Returns the JSON Schema of the file, for editors.
pub fn workflow_schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Workflow);
    schema.insert("title".to_owned(), "A workflow of Repertoire (workflow.yaml)".into());
    schema
}

fn read_workflow(
    source: &Source,
    around: &WorkflowContext<'_>,
) -> (Option<Workflow>, Option<CheckedWorkflow>, Vec<Diagnostic>) {
    let text = source.text();
    if text.len() as u64 > FILE_BYTES_MAX {
        let message = format!("it has {} bytes, and {FILE_BYTES_MAX} is the limit", text.len());
        let found = Diagnostic::new(&codes::WORKFLOW_UNREADABLE, message);
        return (None, None, vec![found.at(source, Span::new(0, 0))]);
    }
    let node = match yaml::parse(text, Span::new(0, text.len()), &YAML) {
        Ok(node) => node,
        Err(error) => {
            let found = Diagnostic::new(error.code, error.message.clone()).at(source, error.span);
            return (None, None, vec![found.help(yaml_help(source, &error))]);
        }
    };
    let mut workflow = match parse_shape(&node) {
        Ok(workflow) => workflow,
        Err(errors) => {
            let found = errors.into_iter().map(|error| {
                let code = &codes::WORKFLOW_UNREADABLE;
                Diagnostic::new(code, error.message)
                    .at(source, error.span.unwrap_or(node.span))
                    .help(code.remedy)
            });
            return (None, None, sort_diagnostics(found.collect()));
        }
    };
    let mut findings = complete_workflow(&mut workflow, around);
    let checked = match CheckedWorkflow::with_warnings(workflow.clone()) {
        Ok((checked, warnings)) => {
            // A workflow with an unreadable resource must not run, even if the checker accepts the rest.
            let is_whole = !findings.iter().any(WorkflowFinding::is_error);
            findings.extend(warnings);
            is_whole.then_some(checked)
        }
        Err(rejected) => {
            findings.extend(rejected.findings);
            None
        }
    };
    let diagnostics =
        sort_and_cap(findings).iter().map(|found| to_diagnostic(source, &node, found)).collect();
    (Some(workflow), checked, sort_diagnostics(diagnostics))
}

/// The help for a YAML error: an unquoted template looks like a mapping to YAML.
fn yaml_help(source: &Source, error: &yaml::YamlError) -> String {
    let text = source.text();
    let at = text.floor_char_boundary(error.span.range().start);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    if line.contains("{{") {
        format!("{} If `{{{{ … }}}}` is meant as text, quote it.", error.code.remedy)
    } else {
        error.code.remedy.to_owned()
    }
}

fn sort_diagnostics(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    diagnostics
}

/// Returns the workflow, or one error for its header fields and one for each invalid step.
fn parse_shape(node: &YamlNode) -> Result<Workflow, Vec<deserialize::WorkflowYamlError>> {
    let Some(mapping) = node.as_mapping() else {
        let message =
            format!("a workflow is a mapping of fields, and this is {}", node.shape_name());
        return Err(vec![deserialize::WorkflowYamlError { message, span: Some(node.span) }]);
    };
    let mut errors = Vec::new();
    let mut head = node.clone();
    let mut steps = Vec::new();
    if let yaml::Value::Mapping(mapping) = &mut head.value
        && let Some(entry) = mapping.entries.iter_mut().find(|entry| entry.key == "steps")
        && let yaml::Value::Sequence(items, _) = &mut entry.value.value
    {
        items.clear();
    }
    let items = mapping.get("steps").and_then(YamlNode::as_sequence).unwrap_or_default();
    for item in items {
        match StepDef::deserialize(deserialize::NodeDeserializer(item)) {
            Ok(step) => steps.push(step),
            Err(error) => errors.push(error),
        }
    }
    match Workflow::deserialize(deserialize::NodeDeserializer(&head)) {
        Ok(workflow) if errors.is_empty() => Ok(Workflow { steps, ..workflow }),
        Ok(_) => Err(errors),
        Err(error) => {
            errors.insert(0, error);
            Err(errors)
        }
    }
}

/// Fills in what the file leaves to its context: name, description, injected texts, full names of sub-workflows.
fn complete_workflow(
    workflow: &mut Workflow,
    around: &WorkflowContext<'_>,
) -> Vec<WorkflowFinding> {
    let mut findings = Vec::new();
    if workflow.name.is_empty() {
        workflow.name = around.name.to_owned();
    }
    if workflow.description.is_empty() {
        workflow.description = around.description.to_owned();
    }
    let mut budget = InjectionBudget { left: INJECTED_BYTES_MAX };
    for (name, resource) in &mut workflow.resources {
        let place = FieldPath::default().key("resources").key(name.as_str());
        match (&resource.file, &resource.text) {
            (_, Some(_)) => {}
            (Some(file), None) => match budget.read_within(around, InjectedText::Resource(file)) {
                Ok(text) => resource.text = Some(text),
                Err(why) => findings.push(unreadable_finding(file, &why, place.key("file"))),
            },
            (None, None) => {
                let message = format!("resource `{name}` has neither `file` nor `text`");
                findings.push(WorkflowFinding::new(&codes::RESOURCE_UNREADABLE, message, place));
            }
        }
    }
    let (owner, siblings) = around.siblings;
    let mut conventions = Vec::new();
    for (at, step) in workflow.steps.iter_mut().enumerate() {
        for (number, block) in step.actions.iter_mut().enumerate() {
            match block {
                StepBlock::Convention(name) => {
                    conventions
                        .push((name.clone(), FieldPath::for_step(at).key("actions").index(number)));
                }
                StepBlock::Dispatch(dispatch) => {
                    let place = FieldPath::for_step(at).key("actions").index(number);
                    for brief in dispatch.briefs_mut() {
                        findings.extend(qualify_workflow_name(brief, owner, siblings, &place));
                    }
                }
                _ => {}
            }
        }
    }
    for (name, place) in conventions {
        if workflow.conventions.contains_key(&name) {
            continue;
        }
        match budget.read_within(around, InjectedText::Convention(&name)) {
            Ok(text) => {
                workflow.conventions.insert(name, text);
            }
            Err(why) => {
                findings.push(unreadable_finding(&format!("convention {name}"), &why, place));
                // Insert an empty text, so that the missing convention is reported once.
                workflow.conventions.insert(name, String::new());
            }
        }
    }
    findings
}

fn unreadable_finding(what: &str, why: &str, place: FieldPath) -> WorkflowFinding {
    WorkflowFinding::new(
        &codes::RESOURCE_UNREADABLE,
        format!("`{what}` cannot be read: {why}"),
        place,
    )
}

/// The number of bytes that may still be injected.
struct InjectionBudget {
    left: usize,
}

impl InjectionBudget {
    fn read_within(
        &mut self,
        around: &WorkflowContext<'_>,
        wanted: InjectedText<'_>,
    ) -> Result<String, String> {
        let text = (around.read)(wanted)?;
        self.left = self.left.checked_sub(text.len()).ok_or_else(|| {
            format!("all that is injected has more than {INJECTED_BYTES_MAX} bytes")
        })?;
        Ok(text)
    }
}

/// Gives a sub-workflow of the same skill its full name. Any other name refers to another skill, unless it looks like
/// a typo.
fn qualify_workflow_name(
    brief: &mut SubagentBrief,
    owner: &str,
    siblings: &[String],
    place: &FieldPath,
) -> Option<WorkflowFinding> {
    let name = brief.workflow.as_mut()?;
    if siblings.contains(name) {
        *name = format!("{owner}/{name}");
        return None;
    }
    let local = name.strip_prefix(owner).and_then(|rest| rest.strip_prefix('/'));
    if local.is_some_and(|local| siblings.iter().any(|sibling| sibling == local)) {
        return None;
    }
    let near = nearest_name(local.unwrap_or(name), siblings.iter().map(String::as_str));
    let hint = near.map(|near| format!("; is `{near}` meant?"));
    if local.is_none() && hint.is_none() {
        return None;
    }
    let message = format!("there is no workflow `{name}`{}", hint.unwrap_or_default());
    Some(WorkflowFinding::new(&codes::UNKNOWN_REFERENCE, message, place.clone()))
}

fn to_diagnostic(source: &Source, node: &YamlNode, found: &WorkflowFinding) -> Diagnostic {
    let (node, span) = find_node(node, &found.place);
    let name = found.name.as_deref().and_then(|name| find_name_span(source.text(), node, name));
    let said = Diagnostic::new(found.code, found.message.clone()).at(source, name.unwrap_or(span));
    match &found.help {
        Some(help) => said.help(help.clone()),
        None => said.help(found.code.remedy),
    }
}

/// Finds the first use of a name in the texts below a node, if it is spelled out there.
fn find_name_span(text: &str, node: &YamlNode, name: &str) -> Option<Span> {
    let below = |node: &YamlNode| find_name_span(text, node, name);
    match &node.value {
        yaml::Value::Sequence(items, _) => items.iter().find_map(below),
        yaml::Value::Mapping(mapping) => {
            mapping.entries.iter().find_map(|entry| below(&entry.value))
        }
        yaml::Value::Scalar(_) => {
            let range = node.span.range();
            let start = range.start + find_name(text.get(range)?, name)?;
            Some(Span::new(start, start + name.len()))
        }
    }
}

/// Finds the offset at which a text, as written in the file, uses a name. Outside of template tags the name is an
/// ordinary word; a condition has no tags.
fn find_name(written: &str, name: &str) -> Option<usize> {
    let last =
        |before: &str, marks: [&str; 2]| marks.map(|mark| before.rfind(mark)).into_iter().max();
    let has_tags = written.contains("{{") || written.contains("{%");
    let is_use = |at: &usize| {
        let (before, after) = (&written[..*at], &written[at + name.len()..]);
        let is_whole =
            !before.ends_with(|c| is_word_char(c) || c == '.') && !after.starts_with(is_word_char);
        is_whole && (!has_tags || last(before, ["{{", "{%"]) > last(before, ["}}", "%}"]))
    };
    written.match_indices(name).map(|(at, _)| at).find(is_use)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the node and span of a place, or of its closest existing ancestor.
fn find_node<'a>(node: &'a YamlNode, place: &FieldPath) -> (&'a YamlNode, Span) {
    let (mut node, mut span) = (node, node.span);
    for part in &place.0 {
        let found = match part {
            FieldPathSegment::Key(key) => node.as_mapping().and_then(|mapping| {
                mapping.entries.iter().find(|entry| entry.key == *key).map(|entry| {
                    let is_scalar = entry.value.as_str().is_some() && !entry.value.is_null();
                    (&entry.value, if is_scalar { entry.value.span } else { entry.key_span })
                })
            }),
            FieldPathSegment::Index(at) => {
                node.as_sequence().and_then(|items| items.get(*at)).map(|item| (item, item.span))
            }
        };
        let Some((below, at)) = found else { return (node, span) };
        (node, span) = (below, at);
    }
    (node, span)
}

fn resource_limits(bytes_max: u64) -> ResourceLimits {
    ResourceLimits { bytes_max, ..ResourceLimits::default() }
}

fn read_skill_file(skill: &Skill, file: &str) -> Result<String, ReadError> {
    resources::read_resource(skill, file.into(), &resource_limits(FILE_BYTES_MAX))
}

fn read_injected_text(skill: &Skill, wanted: InjectedText<'_>) -> Result<String, String> {
    let limits = resource_limits(RESOURCE_BYTES_MAX);
    match wanted {
        InjectedText::Resource(file) => {
            resources::read_resource(skill, file.into(), &limits).map_err(|error| error.to_string())
        }
        InjectedText::Convention(name) if !is_name(name) => {
            Err("a convention is named like a step".to_owned())
        }
        InjectedText::Convention(name) => {
            let file = format!("conventions/{name}.md");
            match resources::read_resource(skill, file.as_str().into(), &limits) {
                Ok(text) => Ok(text),
                Err(error) => pack::read_pack_file(&file)
                    .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                    .ok_or_else(|| error.to_string()),
            }
        }
    }
}

fn list_siblings(skill: &Skill) -> Vec<String> {
    let mut names: Vec<String> = resources::list_resources(skill, &ResourceLimits::default())
        .files
        .iter()
        .filter(|file| file.path.parent().is_some_and(|dir| dir == FOLDER))
        .filter(|file| file.path.extension() == Some("yaml"))
        .filter_map(|file| file.path.file_stem().map(str::to_owned))
        .collect();
    names.sort();
    names
}
