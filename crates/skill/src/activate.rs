//! Activation: a skill's body with arguments filled in, cut to a budget and ready for a conversation.
//!
//! Activating a skill runs nothing. A command in a body (`` !`cmd` ``) stays text unless the caller passes a
//! function that runs it *and* the skill is trusted. Anything that did not fit is reported in the text, in
//! the activation and as an event.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::{Diagnostic, DiagnosticCode, Severity, Span, invisible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{PlaceholderFiller, PlaceholderValues, SubstitutedBody, takes_arguments};
use crate::catalog::CatalogEntry;
use crate::codes;
use crate::limits::{BODY_CHARS_MAX, KEPT_CHARS_MIN, ResourceLimits};
use crate::resources::{self, ResourceFile};
use crate::skill::{ContentDigest, Skill, SkillOrigin};
use crate::trust::TrustLevel;

mod cut;
mod references;
mod shell;

pub(crate) use cut::{TextBudget, fit_partial_text, fit_text, render_marker};
pub use cut::{TextCut, estimate_tokens};
pub use references::{ReferenceState, SkillReference};

/// The maximum size of skill bodies in a conversation. Tokens are estimated, see [`estimate_tokens`].
///
/// The budget covers bodies only, not the text that a renderer writes around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivationBudget {
    /// The maximum number of characters of one body.
    pub body_chars_max: usize,
    /// The maximum number of tokens of one body.
    pub body_tokens_max: Option<usize>,
    /// The maximum number of characters of all bodies together.
    pub total_chars_max: Option<usize>,
    /// The maximum number of tokens of all bodies together.
    pub total_tokens_max: Option<usize>,
}

impl Default for ActivationBudget {
    fn default() -> Self {
        ActivationBudget {
            body_chars_max: BODY_CHARS_MAX,
            body_tokens_max: None,
            total_chars_max: None,
            total_tokens_max: None,
        }
    }
}

impl ActivationBudget {
    pub(crate) fn body_room(&self) -> TextBudget {
        TextBudget::new(Some(self.body_chars_max), self.body_tokens_max)
    }

    pub(crate) fn total_room(&self) -> TextBudget {
        TextBudget::new(self.total_chars_max, self.total_tokens_max)
    }
}

/// Whether an activation lists the skill's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceListingMode {
    /// List the files of the folder.
    #[default]
    Listed,
    /// Do not read the folder.
    Skipped,
}

/// Whether the skill's references become part of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceMode {
    /// Leave them out; the agent reads them when it needs them.
    #[default]
    OnDemand,
    /// Append each Markdown file of `references/`, as long as it fits.
    Appended,
}

/// The handling of commands in a body.
#[derive(Clone, Copy, Default)]
pub enum ShellCommandMode<'a> {
    /// Leave them as text.
    #[default]
    Leave,
    /// Replace them with the output of this function, if the skill is trusted.
    Run(&'a dyn Fn(&str) -> Result<String, String>),
}

impl std::fmt::Debug for ShellCommandMode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ShellCommandMode::Leave => "Leave",
            ShellCommandMode::Run(_) => "Run",
        })
    }
}

/// The options of an activation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActivationRequest<'a> {
    /// The text that was given after the skill's name.
    pub arguments: &'a str,
    pub budget: ActivationBudget,
    pub listing: ResourceListingMode,
    pub references: ReferenceMode,
    pub shell: ShellCommandMode<'a>,
    /// The value of `${CLAUDE_PROJECT_DIR}`.
    pub project_dir: Option<&'a camino::Utf8Path>,
    /// The value of `${CLAUDE_SESSION_ID}`.
    pub session_id: Option<&'a str>,
    /// Limits on the skill's folder.
    pub limits: ResourceLimits,
}

/// A skill put into a conversation.
#[derive(Clone, Debug)]
pub struct Activation {
    /// The name of the skill in the catalog, with its plugin.
    pub id: String,
    /// The skill's own name.
    pub name: String,
    pub description: String,
    /// The digest of the skill's file.
    pub digest: ContentDigest,
    /// The text that was given after the skill's name.
    pub arguments: String,
    /// The instructions with arguments and references filled in, cut if necessary.
    pub body: String,
    /// The files of the skill's folder, by group and path; `None` if they were not requested.
    pub resources: Option<Vec<ResourceFile>>,
    pub origin: SkillOrigin,
    /// Decides whether the skill may be given capabilities.
    pub trust: TrustLevel,
    /// The size of the cut; `None` if the body is complete.
    pub cut: Option<TextCut>,
    /// The state of each reference; `None` if they were not requested.
    pub references: Option<Vec<SkillReference>>,
    /// Findings made during activation.
    pub diagnostics: Vec<Diagnostic>,
}

/// The event `SKILLS_TRUNCATED`: a skill did not fit into the budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TruncationEvent {
    /// The name of the skill.
    pub name: String,
    /// The limit in characters.
    pub max_chars: usize,
}

impl Activation {
    /// Returns the event to record, if the body or a reference was cut or left out.
    pub fn truncation_event(&self) -> Option<TruncationEvent> {
        let limit = self.cut.map(|cut| cut.limit);
        let limit =
            limit.or_else(|| self.references.iter().flatten().find_map(SkillReference::char_limit));
        limit.map(|max_chars| TruncationEvent { name: self.id.clone(), max_chars })
    }
}

/// A skill that did not fit into the total budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedSkill {
    /// The name of the skill in the catalog.
    pub id: String,
    /// The file of the skill, from which it can still be read.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The number of characters that were left.
    pub room_chars: usize,
}

/// Several skills activated within one budget.
#[derive(Clone, Debug, Default)]
pub struct ActivationBatch {
    /// The skills that fit, complete or cut, in the requested order.
    pub activations: Vec<Activation>,
    pub left_out: Vec<OmittedSkill>,
    /// The events, one for each skill that was cut or left out.
    pub events: Vec<TruncationEvent>,
}

/// Activates one skill.
pub fn activate_skill(entry: &CatalogEntry, request: &ActivationRequest<'_>) -> Activation {
    PreparedBody::new(entry, request)
        .fit_within(request.budget.body_room().tighten_by(request.budget.total_room()))
}

/// Activates several skills. They share the total budget in order: each takes what it needs of what is left.
/// A skill that would keep next to nothing is left out.
pub fn activate_skills<'e>(
    entries: impl IntoIterator<Item = &'e CatalogEntry>,
    request: &ActivationRequest<'_>,
) -> ActivationBatch {
    let mut out = ActivationBatch::default();
    let mut total = request.budget.total_room();
    for entry in entries {
        let prepared = PreparedBody::new(entry, request);
        if !prepared.is_worth_keeping(total) {
            let room = total.char_limit();
            let path = entry.skill.origin.file.clone();
            out.events.push(TruncationEvent { name: entry.id.clone(), max_chars: room });
            out.left_out.push(OmittedSkill { id: entry.id.clone(), path, room_chars: room });
            continue;
        }
        let activation = prepared.fit_within(request.budget.body_room().tighten_by(total));
        total = total.subtract_text(&activation.body);
        out.events.extend(activation.truncation_event());
        out.activations.push(activation);
    }
    out
}

/// A body with everything filled in, before it is cut.
struct PreparedBody<'a> {
    entry: &'a CatalogEntry,
    request: &'a ActivationRequest<'a>,
    body: String,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> PreparedBody<'a> {
    fn new(entry: &'a CatalogEntry, request: &'a ActivationRequest<'a>) -> Self {
        let mut diagnostics = Vec::new();
        let body = fill_body(entry, request, &mut diagnostics);
        let body = remove_invisible(body, &entry.skill.origin.file, &mut diagnostics);
        PreparedBody { entry, request, body, diagnostics }
    }

    /// Returns true if `room` holds the body, or enough of it to be of use.
    fn is_worth_keeping(&self, room: TextBudget) -> bool {
        let total = self.body.chars().count();
        let marker = render_marker(total, total, &self.entry.skill.origin.file);
        room.can_hold(&self.body) || room.char_limit() >= marker.len() + KEPT_CHARS_MIN
    }

    fn fit_within(self, room: TextBudget) -> Activation {
        let PreparedBody { entry, request, body, mut diagnostics } = self;
        let skill = &*entry.skill;
        let (mut body, cut) = fit_text(body, room, &skill.origin.file);
        diagnostics.extend(cut.map(|cut| body_cut_diagnostic(skill, &cut)));
        let listed = list_resources(skill, request, &mut diagnostics);
        let references = match request.references {
            ReferenceMode::OnDemand => None,
            ReferenceMode::Appended => {
                let left = room.subtract_text(&body);
                Some(references::append_references(
                    skill,
                    request,
                    left,
                    &mut body,
                    &mut diagnostics,
                ))
            }
        };
        Activation {
            id: entry.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            digest: skill.digest(),
            arguments: request.arguments.to_owned(),
            body,
            resources: listed,
            origin: skill.origin.clone(),
            trust: entry.trust,
            cut,
            references,
            diagnostics,
        }
    }
}

/// Removes invisible characters from text for a model, and reports them in the text and as a diagnostic.
fn remove_invisible(text: String, file: &Utf8Path, out: &mut Vec<Diagnostic>) -> String {
    let (visible, summary) = invisible::removed(&text);
    if summary.is_empty() {
        return text;
    }
    let message = format!("invisible characters were removed: {summary}");
    out.push(make_finding(&codes::HIDDEN_TEXT, message).in_file(file).severity(Severity::Warning));
    format!("{}\n\n[removed from this text: {summary}]", visible.trim_end())
}

fn list_resources(
    skill: &Skill,
    request: &ActivationRequest<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Vec<ResourceFile>> {
    match request.listing {
        ResourceListingMode::Skipped => None,
        ResourceListingMode::Listed => {
            let found = resources::list_resources(skill, &request.limits);
            diagnostics.extend(found.diagnostics);
            Some(found.files)
        }
    }
}

fn fill_body(
    entry: &CatalogEntry,
    request: &ActivationRequest<'_>,
    out: &mut Vec<Diagnostic>,
) -> String {
    let skill = &*entry.skill;
    let body = skill.body().trim_end();
    let values = placeholder_values(skill, request);
    let mut filler = PlaceholderFiller::new(body, &values);
    let mut text = String::with_capacity(body.len());
    for part in shell::split_body(body) {
        match part {
            shell::BodyPart::Text(range) => {
                text.push_str(&filler.fill_part(&body[range.clone()], range.start))
            }
            shell::BodyPart::Command { whole, command } => {
                let asked = &body[command.clone()];
                let filled = filler.fill_part(asked, command.start);
                let plain = (is_plain(request.arguments) || !takes_arguments(asked, values.names))
                    && (asked.find("${").is_none() || has_plain_paths(&values));
                match run_command(entry, request, &filled, plain) {
                    Ok(output) => text.push_str(output.trim_end()),
                    Err((code, message)) => {
                        out.push(locate_in_body(skill, make_finding(code, message), &whole));
                        text.push_str(&body[whole.start..command.start]);
                        text.push_str(&filled);
                        text.push_str(&body[command.end..whole.end]);
                    }
                }
            }
        }
    }
    let SubstitutedBody { text, missing, limited } = filler.finish(text);
    for missing in missing {
        let message = format!("the argument `{}` was not given, so it is empty", missing.name);
        out.push(locate_in_body(
            skill,
            make_finding(&codes::ARGUMENT_MISSING, message),
            &missing.at,
        ));
    }
    if limited {
        let code = &codes::ARGUMENT_LIMIT;
        out.push(make_finding(code, "the arguments are too long").in_file(&skill.origin.file));
    }
    text
}

fn placeholder_values<'a>(
    skill: &'a Skill,
    request: &ActivationRequest<'a>,
) -> PlaceholderValues<'a> {
    let plugin_root = skill.origin.plugin.as_ref().and_then(|_| skill.origin.root.parent());
    PlaceholderValues {
        arguments: request.arguments,
        names: &skill.claude.arguments,
        skill_dir: Some(skill.origin.dir()),
        project_dir: request.project_dir,
        session_id: request.session_id,
        plugin_root,
    }
}

/// Returns true if a shell can only read the arguments as words, and a program not as options. Commands are
/// not run with other arguments: the skill's author is trusted, but the author of the arguments is not.
fn is_plain(arguments: &str) -> bool {
    arguments.chars().all(|c| c.is_alphanumeric() || " _-./:@%+=,".contains(c))
        && !arguments.split(' ').any(|word| word.starts_with('-'))
}

/// Returns true if the folders and the session id that a command may refer to contain no shell
/// metacharacters. Folder names may come from an untrusted source.
fn has_plain_paths(values: &PlaceholderValues<'_>) -> bool {
    let folders = [values.skill_dir, values.project_dir, values.plugin_root];
    folders.into_iter().flatten().all(|dir| has_plain_chars(dir.as_str()))
        && values.session_id.is_none_or(has_plain_chars)
}

fn has_plain_chars(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "_-./:@%+=,".contains(c))
}

fn run_command(
    entry: &CatalogEntry,
    request: &ActivationRequest<'_>,
    command: &str,
    plain: bool,
) -> Result<String, (&'static DiagnosticCode, String)> {
    let ShellCommandMode::Run(runner) = request.shell else {
        return Err(not_run_finding(command, "commands are not allowed here"));
    };
    if entry.trust != TrustLevel::Trusted {
        return Err(not_run_finding(command, "the skill is not trusted"));
    }
    if !plain {
        return Err(not_run_finding(
            command,
            "the arguments or paths hold options or characters that mean something to a shell",
        ));
    }
    runner(command.trim_end()).map_err(|error| {
        let message = format!("`{}` failed: {}", first_line(command), first_line(&error));
        (&codes::SHELL_FAILED, message)
    })
}

fn not_run_finding(command: &str, why: &str) -> (&'static DiagnosticCode, String) {
    (&codes::SHELL_NOT_RUN, format!("`{}` was not run: {why}", first_line(command)))
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("")
}

fn make_finding(code: &'static DiagnosticCode, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, message).help(code.remedy)
}

/// Points a finding at a range of the body.
fn locate_in_body(skill: &Skill, finding: Diagnostic, at: &std::ops::Range<usize>) -> Diagnostic {
    let whole = skill.body.slice(skill.source.text());
    let start = skill.body.start as usize + whole.len() - skill.body().len();
    finding.at(&skill.source, Span::new(start + at.start, start + at.end))
}

fn body_cut_diagnostic(skill: &Skill, cut: &TextCut) -> Diagnostic {
    let message = format!("{} of {} characters fit the budget", cut.kept_chars, cut.total_chars);
    make_finding(&codes::BODY_CUT, message).in_file(&skill.origin.file)
}

#[cfg(test)]
#[path = "activate/activate_tests.rs"]
mod tests;
