//! The problems that `rep doctor` finds: mistakes in the configuration, in checks and in the
//! sandbox settings, missing consent, stores of earlier versions, and errors in skills.

use repertoire::config::{KEY, SandboxSetting};
use repertoire::plan_setup::CheckStage;
use repertoire::runs::{describe_older_stores, find_older_stores};
use repertoire_checks::declared;
use repertoire_skill::catalog::Catalog;
use repertoire_text::Severity;

use crate::cli::CliContext;
use crate::commands::lint;
use crate::failure::CliFailure;

/// Maximum number of skill files with errors named in the message.
const NAMED_FILES_MAX: usize = 5;

/// A problem, described in one line.
pub(super) struct DoctorProblem {
    pub(super) text: String,
    /// True if commands fail because of it, false for a warning.
    pub(super) is_error: bool,
}

impl DoctorProblem {
    fn error(text: impl Into<String>) -> Self {
        DoctorProblem { text: text.into(), is_error: true }
    }

    fn warning(text: impl Into<String>) -> Self {
        DoctorProblem { text: text.into(), is_error: false }
    }
}

/// Finds all problems. `settings` are the mistakes found while reading the configuration.
pub(super) fn find_problems(
    ctx: &CliContext<'_>,
    settings: &[CliFailure],
    catalog: &Catalog,
) -> Result<Vec<DoctorProblem>, CliFailure> {
    let mut found: Vec<DoctorProblem> =
        settings.iter().map(|failure| DoctorProblem::error(&failure.message)).collect();
    found.extend(check_checks(ctx).err().map(|failure| DoctorProblem::error(failure.message)));
    found.extend(
        ctx.configured_sandbox().err().map(|failure| DoctorProblem::error(failure.message)),
    );
    let config = &ctx.config;
    if config.values().sandbox_requires.is_some()
        && config.values().sandbox != SandboxSetting::Require
    {
        let origin = config.describe_origin(&KEY.sandbox_requires);
        found.push(DoctorProblem::warning(format!(
            "{origin}: `sandbox_requires` has no effect without `sandbox = \"require\"`"
        )));
    }
    found.extend(missing_consent(ctx));
    let older = find_older_stores(&ctx.env.data_dir());
    let older = describe_older_stores(&older, |dir| config.places().shorten_path(dir));
    found.extend(older.map(DoctorProblem::warning));
    found.extend(skills_with_errors(ctx, catalog)?);
    Ok(found)
}

fn check_checks(ctx: &CliContext<'_>) -> Result<(), CliFailure> {
    let ctx = ctx.with_proposal_in_force();
    let mut all = Vec::new();
    for stage in CheckStage::ALL {
        all.extend(ctx.declared_checks(stage)?);
    }
    declared::validate_checks(&all).map_err(|error| CliFailure::wrong_usage(error.to_string()))
}

fn missing_consent(ctx: &CliContext<'_>) -> Option<DoctorProblem> {
    match ctx.consent_state(ctx.config.pending_proposal()?) {
        Ok(standing) if standing.by.is_some() => None,
        Ok(_) => Some(DoctorProblem::warning(
            "settings of this project start programs and wait for your consent: `rep trust --project`",
        )),
        Err(failure) => Some(DoctorProblem::error(failure.message)),
    }
}

/// Reports the skills in which lint finds errors, except those that the catalog already reports.
fn skills_with_errors(
    ctx: &CliContext<'_>,
    catalog: &Catalog,
) -> Result<Option<DoctorProblem>, CliFailure> {
    let is_reported = |path| {
        let mut errors =
            catalog.diagnostics().iter().filter(|found| found.severity == Severity::Error);
        errors.any(|found| found.path.as_ref() == Some(path))
    };
    let mut files: Vec<String> = lint::files_with_errors(ctx)?
        .iter()
        .filter(|path| !is_reported(path))
        .map(|path| ctx.config.places().shorten_path(path))
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let more = files.len().saturating_sub(NAMED_FILES_MAX);
    files.truncate(NAMED_FILES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!("errors in {}{more}: `rep lint` shows them", files.join(", "));
    Ok(Some(DoctorProblem::error(text)))
}
