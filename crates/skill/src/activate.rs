//! Activation: a skill's body with arguments filled in, cut to a budget and ready for a conversation.
//!
//! Activating a skill runs nothing. A command in a body (`` !`cmd` ``) stays text unless the caller passes a
//! function that runs it *and* the skill is trusted. Anything that did not fit is reported in the text, in
//! the activation and as an event.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::{Code, Diagnostic, Severity, Span, invisible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{Filler, Substituted, Values, takes_arguments};
use crate::catalog::Entry;
use crate::codes;
use crate::limits::{BODY_CHARS_MAX, KEPT_CHARS_MIN, ResourceLimits};
use crate::resources::{self, Resource};
use crate::skill::{Digest, Origin, Skill};
use crate::trust::Trust;

mod cut;
mod references;
mod shell;

pub use cut::{Cut, tokens};
pub(crate) use cut::{Room, fit, fit_of, marker};
pub use references::{Reference, ReferenceState};

/// The maximum size of skill bodies in a conversation. Tokens are estimated, see [`tokens`].
///
/// The budget covers bodies only, not the text that a renderer writes around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The maximum number of characters of one body.
    pub body_chars_max: usize,
    /// The maximum number of tokens of one body.
    pub body_tokens_max: Option<usize>,
    /// The maximum number of characters of all bodies together.
    pub total_chars_max: Option<usize>,
    /// The maximum number of tokens of all bodies together.
    pub total_tokens_max: Option<usize>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            body_chars_max: BODY_CHARS_MAX,
            body_tokens_max: None,
            total_chars_max: None,
            total_tokens_max: None,
        }
    }
}

impl Budget {
    pub(crate) fn body(&self) -> Room {
        Room::new(Some(self.body_chars_max), self.body_tokens_max)
    }

    pub(crate) fn total(&self) -> Room {
        Room::new(self.total_chars_max, self.total_tokens_max)
    }
}

/// Whether an activation lists the skill's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// List the files of the folder.
    #[default]
    Listed,
    /// Do not read the folder.
    Skipped,
}

/// Whether the skill's references become part of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// Leave them out; the agent reads them when it needs them.
    #[default]
    OnDemand,
    /// Append each Markdown file of `references/`, as long as it fits.
    Appended,
}

/// The handling of commands in a body.
#[derive(Clone, Copy, Default)]
pub enum Shell<'a> {
    /// Leave them as text.
    #[default]
    Leave,
    /// Replace them with the output of this function, if the skill is trusted.
    Run(&'a dyn Fn(&str) -> Result<String, String>),
}

impl std::fmt::Debug for Shell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Shell::Leave => "Leave",
            Shell::Run(_) => "Run",
        })
    }
}

/// The options of an activation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The text that was given after the skill's name.
    pub arguments: &'a str,
    pub budget: Budget,
    pub listing: Listing,
    pub references: References,
    pub shell: Shell<'a>,
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
    pub digest: Digest,
    /// The text that was given after the skill's name.
    pub arguments: String,
    /// The instructions with arguments and references filled in, cut if necessary.
    pub body: String,
    /// The files of the skill's folder, by group and path; `None` if they were not requested.
    pub resources: Option<Vec<Resource>>,
    pub origin: Origin,
    /// Decides whether the skill may be given capabilities.
    pub trust: Trust,
    /// The size of the cut; `None` if the body is complete.
    pub cut: Option<Cut>,
    /// The state of each reference; `None` if they were not requested.
    pub references: Option<Vec<Reference>>,
    /// Findings made during activation.
    pub diagnostics: Vec<Diagnostic>,
}

/// The event `SKILLS_TRUNCATED`: a skill did not fit into the budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// The name of the skill.
    pub name: String,
    /// The limit in characters.
    pub max_chars: usize,
}

impl Activation {
    /// Returns the event to record, if the body or a reference was cut or left out.
    pub fn truncated(&self) -> Option<Truncated> {
        let limit = self.cut.map(|cut| cut.limit);
        let limit = limit.or_else(|| self.references.iter().flatten().find_map(Reference::limit));
        limit.map(|max_chars| Truncated { name: self.id.clone(), max_chars })
    }
}

/// A skill that did not fit into the total budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
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
pub struct Activated {
    /// The skills that fit, complete or cut, in the requested order.
    pub activations: Vec<Activation>,
    pub left_out: Vec<LeftOut>,
    /// The events, one for each skill that was cut or left out.
    pub events: Vec<Truncated>,
}

/// Activates one skill.
pub fn activate(entry: &Entry, request: &Request<'_>) -> Activation {
    Prepared::new(entry, request).within(request.budget.body().and(request.budget.total()))
}

/// Activates several skills. They share the total budget in order: each takes what it needs of what is left.
/// A skill that would keep next to nothing is left out.
pub fn activate_all<'e>(
    entries: impl IntoIterator<Item = &'e Entry>,
    request: &Request<'_>,
) -> Activated {
    let mut out = Activated::default();
    let mut total = request.budget.total();
    for entry in entries {
        let prepared = Prepared::new(entry, request);
        if !prepared.is_worth(total) {
            let room = total.limit();
            let path = entry.skill.origin.file.clone();
            out.events.push(Truncated { name: entry.id.clone(), max_chars: room });
            out.left_out.push(LeftOut { id: entry.id.clone(), path, room_chars: room });
            continue;
        }
        let activation = prepared.within(request.budget.body().and(total));
        total = total.minus(&activation.body);
        out.events.extend(activation.truncated());
        out.activations.push(activation);
    }
    out
}

/// A body with everything filled in, before it is cut.
struct Prepared<'a> {
    entry: &'a Entry,
    request: &'a Request<'a>,
    body: String,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Prepared<'a> {
    fn new(entry: &'a Entry, request: &'a Request<'a>) -> Self {
        let mut diagnostics = Vec::new();
        let body = fill_body(entry, request, &mut diagnostics);
        let body = without_invisible(body, &entry.skill.origin.file, &mut diagnostics);
        Prepared { entry, request, body, diagnostics }
    }

    /// Returns true if `room` holds the body, or enough of it to be of use.
    fn is_worth(&self, room: Room) -> bool {
        let total = self.body.chars().count();
        let marker = marker(total, total, &self.entry.skill.origin.file);
        room.holds(&self.body) || room.limit() >= marker.len() + KEPT_CHARS_MIN
    }

    fn within(self, room: Room) -> Activation {
        let Prepared { entry, request, body, mut diagnostics } = self;
        let skill = &*entry.skill;
        let (mut body, cut) = fit(body, room, &skill.origin.file);
        diagnostics.extend(cut.map(|cut| cut_diagnostic(skill, &cut)));
        let listed = list(skill, request, &mut diagnostics);
        let references = match request.references {
            References::OnDemand => None,
            References::Appended => {
                let left = room.minus(&body);
                Some(references::append(skill, request, left, &mut body, &mut diagnostics))
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
fn without_invisible(text: String, file: &Utf8Path, out: &mut Vec<Diagnostic>) -> String {
    let (visible, summary) = invisible::removed(&text);
    if summary.is_empty() {
        return text;
    }
    let message = format!("invisible characters were removed: {summary}");
    out.push(finding(&codes::HIDDEN_TEXT, message).in_file(file).severity(Severity::Warning));
    format!("{}\n\n[removed from this text: {summary}]", visible.trim_end())
}

fn list(
    skill: &Skill,
    request: &Request<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Vec<Resource>> {
    match request.listing {
        Listing::Skipped => None,
        Listing::Listed => {
            let found = resources::list(skill, &request.limits);
            diagnostics.extend(found.diagnostics);
            Some(found.files)
        }
    }
}

fn fill_body(entry: &Entry, request: &Request<'_>, out: &mut Vec<Diagnostic>) -> String {
    let skill = &*entry.skill;
    let body = skill.body().trim_end();
    let values = values(skill, request);
    let mut filler = Filler::new(body, &values);
    let mut text = String::with_capacity(body.len());
    for part in shell::split(body) {
        match part {
            shell::Part::Text(range) => {
                text.push_str(&filler.fill(&body[range.clone()], range.start))
            }
            shell::Part::Command { whole, command } => {
                let asked = &body[command.clone()];
                let filled = filler.fill(asked, command.start);
                let plain = (is_plain(request.arguments) || !takes_arguments(asked, values.names))
                    && (asked.find("${").is_none() || has_plain_places(&values));
                match run(entry, request, &filled, plain) {
                    Ok(output) => text.push_str(output.trim_end()),
                    Err((code, message)) => {
                        out.push(at_body(skill, finding(code, message), &whole));
                        text.push_str(&body[whole.start..command.start]);
                        text.push_str(&filled);
                        text.push_str(&body[command.end..whole.end]);
                    }
                }
            }
        }
    }
    let Substituted { text, missing, limited } = filler.finish(text);
    for missing in missing {
        let message = format!("the argument `{}` was not given, so it is empty", missing.name);
        out.push(at_body(skill, finding(&codes::ARGUMENT_MISSING, message), &missing.at));
    }
    if limited {
        let code = &codes::ARGUMENT_LIMIT;
        out.push(finding(code, "the arguments are too long").in_file(&skill.origin.file));
    }
    text
}

fn values<'a>(skill: &'a Skill, request: &Request<'a>) -> Values<'a> {
    let plugin_root = skill.origin.plugin.as_ref().and_then(|_| skill.origin.root.parent());
    Values {
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
fn has_plain_places(values: &Values<'_>) -> bool {
    let folders = [values.skill_dir, values.project_dir, values.plugin_root];
    folders.into_iter().flatten().all(|dir| has_plain_chars(dir.as_str()))
        && values.session_id.is_none_or(has_plain_chars)
}

fn has_plain_chars(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "_-./:@%+=,".contains(c))
}

fn run(
    entry: &Entry,
    request: &Request<'_>,
    command: &str,
    plain: bool,
) -> Result<String, (&'static Code, String)> {
    let Shell::Run(runner) = request.shell else {
        return Err(not_run(command, "commands are not allowed here"));
    };
    if entry.trust != Trust::Trusted {
        return Err(not_run(command, "the skill is not trusted"));
    }
    if !plain {
        return Err(not_run(
            command,
            "the arguments or paths hold options or characters that mean something to a shell",
        ));
    }
    runner(command.trim_end()).map_err(|error| {
        let message = format!("`{}` failed: {}", first_line(command), first_line(&error));
        (&codes::SHELL_FAILED, message)
    })
}

fn not_run(command: &str, why: &str) -> (&'static Code, String) {
    (&codes::SHELL_NOT_RUN, format!("`{}` was not run: {why}", first_line(command)))
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("")
}

fn finding(code: &'static Code, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, message).help(code.remedy)
}

/// Points a finding at a range of the body.
fn at_body(skill: &Skill, finding: Diagnostic, at: &std::ops::Range<usize>) -> Diagnostic {
    let whole = skill.body.slice(skill.source.text());
    let start = skill.body.start as usize + whole.len() - skill.body().len();
    finding.at(&skill.source, Span::new(start + at.start, start + at.end))
}

fn cut_diagnostic(skill: &Skill, cut: &Cut) -> Diagnostic {
    let message = format!("{} of {} characters fit the budget", cut.kept_chars, cut.total_chars);
    finding(&codes::BODY_CUT, message).in_file(&skill.origin.file)
}

#[cfg(test)]
#[path = "activate/activate_tests.rs"]
mod tests;
