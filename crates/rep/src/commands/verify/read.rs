//! `rep verify --read`: analyses the output of a command that has already run.

use std::io::Read as _;

use camino::Utf8Path;
use repertoire_checks::analyse::{OutputAnalysis, analyse_output, find_errors};
use repertoire_checks::limits::ANALYSED_BYTES_MAX;
use repertoire_checks::signature::compute_signature;
use repertoire_checks::verify::{analysis_text, project_file};
use repertoire_review::report::Styles;

use super::{VerifyArgs, VerifyFormat};
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::verify::VerifyReadJson;
use crate::ui::{TerminalUi, format_thousands};

/// Maximum number of bytes read. The analysis itself keeps only the two ends of longer output.
const BYTES_MAX: u64 = 16 * ANALYSED_BYTES_MAX as u64;

pub(super) fn run(
    ctx: &CliContext<'_>,
    args: &VerifyArgs,
    file: &Utf8Path,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if args.format == Some(VerifyFormat::Html) {
        return Err(CliFailure::wrong_usage("`--read` is printed as text or as JSON")
            .hint("A page is made of checks that were run, by `rep verify -o FILE.html`."));
    }
    let output = read_output(ctx, file, ui)?;
    let project = ctx.project_dir(None);
    let read = |file: &str| project_file(&project, file);
    let analysis = match args.exit_code {
        Some(code) => analyse_output(&output, Some(code), &read),
        None => find_errors(&output, &read),
    };
    let exit = if analysis.errors.is_empty() { CliExit::Done } else { CliExit::No };
    print_analysis(args, file, analysis, ui)?;
    Ok(exit)
}

fn print_analysis(
    args: &VerifyArgs,
    file: &Utf8Path,
    analysis: OutputAnalysis,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    if ui.json || args.format == Some(VerifyFormat::Json) {
        let signatures = analysis.errors.iter().map(compute_signature).collect();
        let (file, exit_code) = (file.to_string(), args.exit_code);
        ui.print_json(&VerifyReadJson { file, exit_code, analysis, signatures })?;
        return Ok(());
    }
    let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
    ui.out.write_all(analysis_text(&analysis, &styles).as_bytes())?;
    Ok(())
}

/// Reads the output to analyse, which may contain any bytes. Prints a note if it is longer than
/// [`BYTES_MAX`].
fn read_output(
    ctx: &CliContext<'_>,
    file: &Utf8Path,
    ui: &mut TerminalUi<'_>,
) -> Result<String, CliFailure> {
    let cannot =
        |error: std::io::Error| CliFailure::wrong_usage(format!("`--read {file}`: {error}"));
    let mut bytes = Vec::new();
    let read = match file.as_str() {
        "-" => std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes),
        _ => {
            let opened = std::fs::File::open(ctx.typed_path(file)).map_err(cannot)?;
            opened.take(BYTES_MAX + 1).read_to_end(&mut bytes)
        }
    };
    read.map_err(cannot)?;
    if bytes.len() as u64 > BYTES_MAX {
        bytes.pop();
        ui.print_note(&format!(
            "only the first {} bytes were analysed; pass the last part of the output, for example with `tail -c`",
            format_thousands(BYTES_MAX)
        ))?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
