//! `rep setup --check`: checks that a client is set up and can reach the server. The command is
//! started only if it is this program, since a project's file can come from anyone.

use super::clients::probe::{ServerInfo, ServerProbe};
use serde_json::Value;

use super::{ClientSetupCommand, is_same_file, own_program};
use crate::async_runtime::build_runtime;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::serve::SetupCheckJson;
use crate::ui::{self, TerminalUi, format_count};

/// The tool that the server must offer.
const LOADS: &str = "skill";

pub(super) fn run(one: &ClientSetupCommand<'_>, ui: &mut TerminalUi<'_>) -> CliResult {
    match examine_entry(one) {
        Ok((line, probed)) => {
            if ui.json {
                ui.print_json(&SetupCheckJson {
                    ok: true,
                    server: Some(probed.name),
                    version: Some(probed.version),
                    tools: Some(probed.tools),
                    ..base_json(one)
                })?;
                return Ok(CliExit::Done);
            }
            writeln!(ui.out, "{} {}: {line}", ui.paint(ui::GOOD, "✓"), one.client.name)?;
            writeln!(
                ui.out,
                "{} it answers as {} {}, with {}",
                ui.paint(ui::GOOD, "✓"),
                probed.name,
                probed.version,
                format_count(probed.tools.len(), "tool")
            )?;
            Ok(CliExit::Done)
        }
        Err(failure) if ui.json => {
            ui.print_json(&SetupCheckJson { problem: Some(failure.message), ..base_json(one) })?;
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
    }
}

/// The fields that are the same for every result.
fn base_json(one: &ClientSetupCommand<'_>) -> SetupCheckJson {
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

fn examine_entry(one: &ClientSetupCommand<'_>) -> Result<(String, ServerInfo), CliFailure> {
    let found = one.config.get_entry().map_err(|error| one.file_failure(error))?;
    let entry = found.ok_or_else(|| {
        let scope = if one.scope == one.client.scope { "" } else { one.scope_flag() };
        CliFailure::negative_answer(format!(
            "{} has no entry called `{}`",
            one.short_path(),
            one.args.name
        ))
        .hint(format!("`rep setup {}{scope}` adds it.", one.client.id))
    })?;
    if entry.get("enabled") == Some(&Value::Bool(false))
        || entry.get("disabled") == Some(&Value::Bool(true))
    {
        return Err(CliFailure::negative_answer(format!(
            "the entry in {} is switched off",
            one.short_path()
        )));
    }
    let (program, args) = one.client.parse_command(&entry).ok_or_else(|| {
        hint_replace(
            one,
            CliFailure::negative_answer(format!(
                "the entry in {} names no command: {entry}",
                one.short_path()
            )),
        )
    })?;
    let path = this_program(one, &program, &args)?;
    let folder = one.ctx.project_dir(None);
    let probe =
        ServerProbe { program: &path, args: &args, folder: &folder, vars: &one.ctx.env.vars };
    let probed = build_runtime()?.block_on(probe.ask()).map_err(|error| {
        CliFailure::negative_answer(error.to_string()).hint("`rep doctor` may know why.")
    })?;
    if !probed.tools.iter().any(|tool| tool == LOADS) {
        return Err(CliFailure::negative_answer(format!(
            "`{program}` has no tool `{LOADS}`: it is another server, or another version"
        )));
    }
    let command = std::iter::once(program.as_str()).chain(args.iter().map(String::as_str));
    let command: Vec<&str> = command.collect();
    Ok((format!("{} names `{}`", one.short_path(), command.join(" ")), probed))
}

/// Returns the program that a client would start. Fails unless it is this program with the argument
/// `mcp`, so that it is safe to start.
fn this_program(
    one: &ClientSetupCommand<'_>,
    program: &str,
    args: &[String],
) -> Result<String, CliFailure> {
    let found = if program.contains('/') {
        Some(one.ctx.project_dir(None).join(program))
    } else {
        one.ctx.env.find_program(program)
    };
    let found = found.filter(|path| path.is_file()).ok_or_else(|| {
        hint_replace(
            one,
            CliFailure::negative_answer(format!(
                "`{program}`, which {} names, is not there",
                one.short_path()
            )),
        )
        .hint("A program that is named without a folder has to be on PATH.")
    })?;
    let is_ours = own_program().is_some_and(|own| is_same_file(&own, &found));
    if !is_ours || args != ["mcp"] {
        let command = format!("{program} {}", args.join(" "));
        return Err(hint_replace(
            one,
            CliFailure::negative_answer(format!(
                "{} names `{}`, which is not this program, so it was not started",
                one.short_path(),
                command.trim()
            )),
        ));
    }
    Ok(found.to_string())
}

fn hint_replace(one: &ClientSetupCommand<'_>, failure: CliFailure) -> CliFailure {
    failure.hint(format!("`rep setup {} --replace` writes the entry anew.", one.client.id))
}
