//! `rep setup --check`: checks that a client is set up and can reach the server. The command is
//! started only if it is this program, since a project's file can come from anyone.

use repertoire_serve::clients::probe::{Probe, Probed};
use serde_json::Value;

use super::{One, is_same_file, own_program};
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::serve::SetupCheckJson;
use crate::ui::{self, Ui, count};

/// The tool that the server must offer.
const LOADS: &str = "skill";

pub(super) fn run(one: &One<'_>, ui: &mut Ui<'_>) -> Outcome {
    match examine(one) {
        Ok((line, probed)) => {
            if ui.json {
                ui.print_json(&SetupCheckJson {
                    ok: true,
                    server: Some(probed.name),
                    version: Some(probed.version),
                    tools: Some(probed.tools),
                    ..blank(one)
                })?;
                return Ok(Exit::Done);
            }
            writeln!(ui.out, "{} {}: {line}", ui.paint(ui::GOOD, "✓"), one.client.name)?;
            writeln!(
                ui.out,
                "{} it answers as {} {}, with {}",
                ui.paint(ui::GOOD, "✓"),
                probed.name,
                probed.version,
                count(probed.tools.len(), "tool")
            )?;
            Ok(Exit::Done)
        }
        Err(failure) if ui.json => {
            ui.print_json(&SetupCheckJson { problem: Some(failure.message), ..blank(one) })?;
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
    }
}

/// The fields that are the same for every result.
fn blank(one: &One<'_>) -> SetupCheckJson {
    SetupCheckJson {
        client: one.client.id.clone(),
        scope: one.scope,
        file: one.config.path.to_string(),
        ok: false,
        problem: None,
        server: None,
        version: None,
        tools: None,
    }
}

fn examine(one: &One<'_>) -> Result<(String, Probed), Failure> {
    let found = one.config.get().map_err(|error| one.failure(error))?;
    let entry = found.ok_or_else(|| {
        let scope = if one.scope == one.client.scope { "" } else { one.scope_flag() };
        Failure::no(format!("{} has no entry called `{}`", one.short(), one.args.name))
            .hint(format!("`rep setup {}{scope}` adds it.", one.client.id))
    })?;
    if entry.get("enabled") == Some(&Value::Bool(false))
        || entry.get("disabled") == Some(&Value::Bool(true))
    {
        return Err(Failure::no(format!("the entry in {} is switched off", one.short())));
    }
    let (program, args) = one.client.command_of(&entry).ok_or_else(|| {
        again(one, Failure::no(format!("the entry in {} names no command: {entry}", one.short())))
    })?;
    let path = this_program(one, &program, &args)?;
    let folder = one.ctx.project_dir(None);
    let probe = Probe { program: &path, args: &args, folder: &folder, vars: &one.ctx.env.vars };
    let probed = runtime()?
        .block_on(probe.ask())
        .map_err(|error| Failure::no(error.to_string()).hint("`rep doctor` may know why."))?;
    if !probed.tools.iter().any(|tool| tool == LOADS) {
        return Err(Failure::no(format!(
            "`{program}` has no tool `{LOADS}`: it is another server, or another version"
        )));
    }
    let command = std::iter::once(program.as_str()).chain(args.iter().map(String::as_str));
    let command: Vec<&str> = command.collect();
    Ok((format!("{} names `{}`", one.short(), command.join(" ")), probed))
}

/// Returns the program that a client would start. Fails unless it is this program with the argument
/// `mcp`, so that it is safe to start.
fn this_program(one: &One<'_>, program: &str, args: &[String]) -> Result<String, Failure> {
    let found = if program.contains('/') {
        Some(one.ctx.project_dir(None).join(program))
    } else {
        one.ctx.env.program(program)
    };
    let found = found.filter(|path| path.is_file()).ok_or_else(|| {
        again(one, Failure::no(format!("`{program}`, which {} names, is not there", one.short())))
            .hint("A program that is named without a folder has to be on PATH.")
    })?;
    let is_ours = own_program().is_some_and(|own| is_same_file(&own, &found));
    if !is_ours || args != ["mcp"] {
        let command = format!("{program} {}", args.join(" "));
        return Err(again(
            one,
            Failure::no(format!(
                "{} names `{}`, which is not this program, so it was not started",
                one.short(),
                command.trim()
            )),
        ));
    }
    Ok(found.to_string())
}

fn again(one: &One<'_>, failure: Failure) -> Failure {
    failure.hint(format!("`rep setup {} --replace` writes the entry anew.", one.client.id))
}
