//! `rep read`: prints skills for an agent to read, by default in the format of OpenSkills.

use repertoire_skill::activate::{self, Activation, ActivationBudget, ReferenceMode};
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::openskills;
use repertoire_skill::render::message::{SkillMessageRole, render_auto_loaded};
use repertoire_skill::render::skill_content::skill_content;
use repertoire_skill::render::tool_result::tool_result;
use repertoire_skill::resources;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{fs, invisible, terminal};

use crate::cli::CliContext;
use crate::commands::{is_compat, resolve_skills};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{ActivationJson, ReadJson};
use crate::ui::TerminalUi;

/// Arguments of `rep read`
#[derive(Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// Names of skills, also as `plugin:skill`, separated by spaces or commas
    #[arg(required_unless_present = "compat")]
    names: Vec<String>,
    /// Output form: whole files as OpenSkills prints them, or activated within the budget
    #[arg(long = "as", value_enum, default_value = "openskills", value_name = "FORM")]
    form: ReadForm,
    /// Arguments for `$ARGUMENTS`, `$1` and named ones (not with `--as openskills`)
    #[arg(long = "args", value_name = "TEXT", default_value = "", hide_default_value = true)]
    arguments: String,
    /// Maximum number of characters of a body (not with `--as openskills`)
    #[arg(long, value_name = "N")]
    max_chars: Option<usize>,
    /// Print this file of the skill's folder instead
    #[arg(long, value_name = "PATH")]
    resource: Option<camino::Utf8PathBuf>,
    /// With `--profile openskills`: reproduce the output of OpenSkills exactly
    #[arg(long)]
    compat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReadForm {
    /// The whole file, as OpenSkills prints it
    Openskills,
    /// The body in `<skill_content>`, as in the Agent Skills client guide
    SkillContent,
    /// The result of a `skill` tool
    ToolResult,
    /// The message of an auto-loaded skill
    Message,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ReadArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let names = openskills::split_names(&args.names);
    if is_compat(ctx, args.compat)? {
        if args.names.is_empty() {
            write!(ui.err, "{}", openskills::MISSING_ARGUMENT)?;
            return Ok(CliExit::No);
        }
        return read_compat(ctx, &names, ui);
    }
    if names.is_empty() {
        return Err(
            CliFailure::wrong_usage("no skill is named").hint("`rep list` shows every skill.")
        );
    }
    if args.form == ReadForm::Openskills && (args.max_chars.is_some() || !args.arguments.is_empty())
    {
        let message =
            "`--max-chars` and `--args` go with an activated skill, not with a whole file";
        return Err(CliFailure::wrong_usage(message)
            .hint("Add `--as skill-content`, `tool-result` or `message`."));
    }
    let catalog = ctx.load_catalog()?;
    // Print nothing unless all skills are found: a partial answer misleads an agent.
    let entries = resolve_skills(catalog, &names)?;
    if let Some(path) = &args.resource {
        return read_resource(ctx, &entries, path, ui);
    }
    if args.form != ReadForm::Openskills {
        return print_activated(ctx, args, &entries, ui);
    }
    if ui.json {
        let skills: Vec<ReadJson> =
            entries.iter().map(|entry| ReadJson::from_entry(entry)).collect();
        ui.print_json(&skills)?;
        return Ok(CliExit::Done);
    }
    for entry in entries {
        let skill = &entry.skill;
        let (text, removed) = invisible::removed(skill.text());
        let block = openskills::read_block(&entry.id, skill.origin.dir().as_str(), &text);
        write!(ui.out, "{block}")?;
        ui.note_removed(&format!("`{}`", entry.id), &removed)?;
    }
    Ok(CliExit::Done)
}

/// Prints skills as they enter a conversation: arguments substituted, cut to the budget, wrapped.
fn print_activated(
    ctx: &CliContext<'_>,
    args: &ReadArgs,
    entries: &[&CatalogEntry],
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let body_chars_max =
        args.max_chars.unwrap_or_else(|| ctx.config.values().skills_max_body_chars);
    let references = if ctx.config.values().skills_load_references {
        ReferenceMode::Appended
    } else {
        ReferenceMode::OnDemand
    };
    let request = activate::ActivationRequest {
        arguments: &args.arguments,
        budget: ActivationBudget { body_chars_max, ..ActivationBudget::default() },
        references,
        project_dir: Some(ctx.config.places().project_dir()),
        ..activate::ActivationRequest::default()
    };
    let activations: Vec<Activation> =
        entries.iter().map(|entry| activate::activate_skill(entry, &request)).collect();
    if ui.json {
        let all: Vec<ActivationJson> =
            activations.iter().map(|activation| activation_json(activation, args.form)).collect();
        ui.print_json(&all)?;
        return Ok(CliExit::Done);
    }
    for activation in &activations {
        let (role, text) = render_activation(activation, args.form);
        if let Some(role) = role {
            writeln!(ui.out, "[{}]", role.as_str())?;
        }
        writeln!(ui.out, "{}", text.trim_end())?;
        for found in &activation.diagnostics {
            write!(
                ui.err,
                "{}",
                terminal::render_diagnostic(found, None, terminal::TerminalColour::Never)
            )?;
        }
    }
    Ok(CliExit::Done)
}

fn render_activation(
    activation: &Activation,
    form: ReadForm,
) -> (Option<SkillMessageRole>, String) {
    match form {
        ReadForm::SkillContent => (None, skill_content(activation)),
        ReadForm::ToolResult => (None, tool_result(activation)),
        ReadForm::Message | ReadForm::Openskills => {
            let message = render_auto_loaded(activation, "asked for by name");
            (Some(message.role), message.text)
        }
    }
}

fn activation_json(activation: &Activation, form: ReadForm) -> ActivationJson {
    let (role, text) = render_activation(activation, form);
    ActivationJson {
        name: activation.id.clone(),
        digest: activation.digest.to_string(),
        trust: activation.trust,
        role,
        text,
        cut: activation.truncation_event().is_some(),
        diagnostics: activation.diagnostics.iter().map(DiagnosticJson::from).collect(),
    }
}

fn read_resource(
    ctx: &CliContext<'_>,
    entries: &[&CatalogEntry],
    path: &camino::Utf8Path,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let limits = ctx.config.discovery_request()?.limits.resources;
    for entry in entries {
        let text =
            resources::read_resource(&entry.skill, path, &limits).map_err(|error| match error {
                fs::ReadError::NotFound => {
                    CliFailure::negative_answer(format!("`{}` has no file `{path}`", entry.id))
                        .hint(format!("`rep show {}` lists its files.", entry.id))
                }
                error => CliFailure::negative_answer(format!(
                    "`{path}` of `{}` was not read: {error}",
                    entry.id
                )),
            })?;
        let (text, removed) = invisible::removed(&text);
        write!(ui.out, "{text}")?;
        ui.note_removed(&format!("`{path}` of `{}`", entry.id), &removed)?;
    }
    Ok(CliExit::Done)
}

fn read_compat(ctx: &CliContext<'_>, names: &[String], ui: &mut TerminalUi<'_>) -> CliResult {
    if names.is_empty() {
        write!(ui.err, "{}", openskills::NO_NAMES)?;
        return Ok(CliExit::No);
    }
    let places = ctx.config.places();
    let find = |name: &String| openskills::find(name, &places.here, &places.home);
    let missing: Vec<&String> = names.iter().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        write!(ui.err, "{}", openskills::not_found(&missing))?;
        return Ok(CliExit::No);
    }
    for found in names.iter().filter_map(find) {
        let content = found.read_content().map_err(|error| {
            CliFailure::cannot_run(format!("{} cannot be read: {error}", found.file))
        })?;
        write!(ui.out, "{}", openskills::read_block(&found.name, found.dir.as_str(), &content))?;
        ui.note_printed(&format!("`{}`", found.name), &content)?;
    }
    Ok(CliExit::Done)
}
