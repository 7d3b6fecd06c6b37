//! `rep new`: creates a skill, agent or workflow that passes lint.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::name::{NAME_CHARS_MAX, normalise_name};
use repertoire_skill::profile::ProfileId;
use repertoire_text::fs;
use repertoire_text::yaml::{YamlStyle, emit_scalar};

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::place_to_write;
use crate::schema::NewSkillJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep new`
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Name of the skill
    name: String,
    /// Description: what the skill does and when to use it
    #[arg(short, long)]
    description: Option<String>,
    /// Create it in this folder instead of the profile's default one
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    dir: Option<Utf8PathBuf>,
    /// Create it in your home folder, for all projects
    #[arg(long)]
    user: bool,
    /// Create an agent instead, in .claude/agents
    #[arg(long)]
    agent: bool,
    /// Create a workflow: a skill with steps, a review and a gate
    #[arg(long, conflicts_with = "agent")]
    workflow: bool,
}

/// A workflow template: two steps of work, a review, and a gate that loops back until it passes.
const WORKFLOW: &str = include_str!("new/workflow.yaml");

pub(crate) fn run(ctx: &CliContext<'_>, args: &NewArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let name = normalise_name(&args.name);
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        let message = match args.name.as_str() {
            "" => "an empty text cannot be a name".to_owned(),
            name => format!("`{name}` cannot be a name"),
        };
        return Err(CliFailure::wrong_usage(message)
            .hint("Use 1 to 64 lower-case letters, digits and single hyphens."));
    }
    let base = if args.user { ctx.config.places().home.clone() } else { ctx.env.here.clone() };
    let folder = match (&args.dir, args.agent) {
        (Some(dir), _) => ctx.env.here.join(dir),
        (None, true) => base.join(".claude/agents"),
        (None, false) => base.join(match ctx.config.values().profile {
            ProfileId::Claude | ProfileId::Openskills => ".claude/skills",
            ProfileId::Gemini => ".gemini/skills",
            ProfileId::Repertoire | ProfileId::Agentskills | ProfileId::Codex => ".agents/skills",
        }),
    };
    let file = if args.agent {
        folder.join(format!("{name}.md"))
    } else {
        folder.join(&name).join("SKILL.md")
    };
    if file.symlink_metadata().is_ok() {
        return Err(CliFailure::negative_answer(format!(
            "{} is there already",
            shorten_path(ctx, &file)
        ))
        .hint("Choose another name, or edit that file."));
    }
    let default = format!("Says here what {name} does. Use when it applies.");
    let description = args.description.as_deref().unwrap_or(&default);
    let text = match (args.agent, args.workflow) {
        (true, _) => agent_template(&name, description),
        (_, true) => workflow_skill(&name, description),
        (false, false) => skill_template(&name, description),
    };
    if args.workflow {
        let steps = file.with_file_name(repertoire_flow::file::FILE);
        write_file(ctx, args, &steps, WORKFLOW)?;
    }
    write_file(ctx, args, &file, &text)?;
    if ui.json {
        ui.print_json(&NewSkillJson { name, path: file.to_string() })?;
        return Ok(CliExit::Done);
    }
    writeln!(ui.out, "{} {}", ui.paint(ui::GOOD, "created"), shorten_path(ctx, &file))?;
    if name != args.name {
        ui.print_note(&format!("`{}` is written `{name}` as a name.", args.name))?;
    }
    let next = if args.workflow {
        format!(
            "Edit workflow.yaml beside it, then `rep workflow check {name}`, `rep trust {name}` if it is to run your tests, and `rep workflow start {name} -p task=…`."
        )
    } else {
        format!("Edit it, then check it with `rep lint {}`.", shorten_path(ctx, &file))
    };
    ui.print_note(&next)?;
    Ok(CliExit::Done)
}

/// Writes a file of the new skill. `--dir` and the user's home may be anywhere, but a path in the
/// project must not lead out of it through links.
fn write_file(
    ctx: &CliContext<'_>,
    args: &NewArgs,
    file: &Utf8Path,
    text: &str,
) -> Result<(), CliFailure> {
    let written = if args.user || args.dir.is_some() {
        fs::write_atomic(file, text.as_bytes())
    } else {
        place_to_write(ctx.config.places().project_dir(), file)?.write_atomic(text.as_bytes())
    };
    written.map_err(|error| CliFailure::cannot_run(format!("{file} cannot be written: {error}")))
}

fn shorten_path(ctx: &CliContext<'_>, path: &Utf8Path) -> String {
    ctx.config.places().shorten_path(path)
}

fn title_of_name(name: &str) -> String {
    let mut words = name.replace('-', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn skill_template(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {}\n---\n\n# {}\n\n\
         ## When to use\n\n- The situation in which this helps, in the words that people use.\n\n\
         ## Steps\n\n1. What to do first.\n2. How to tell that it worked.\n\n\
         ## Output\n\nWhat to hand back, and in which form.\n",
        emit_scalar(description, YamlStyle::Plain),
        title_of_name(name)
    )
}

fn workflow_skill(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {}\n---\n\n# {}\n\n\
         Start it with `rep workflow start {name} --param task=\"…\"`, then do what each step says, and run the command\n\
         that it ends with.\n\n\
         ## When to use\n\n- The situation in which this helps, in the words that people use.\n\n\
         ## Output\n\nWhat there is at the end, and in which form.\n",
        emit_scalar(description, YamlStyle::Plain),
        title_of_name(name)
    )
}

fn agent_template(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {}\ntools: Read, Grep, Glob\n---\n\n\
         You are {name}. Say here what the agent knows, how it works, and what it must not do.\n\n\
         ## Output\n\nWhat to report back, and in which form.\n",
        emit_scalar(description, YamlStyle::Plain)
    )
}
