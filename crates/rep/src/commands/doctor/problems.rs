//! The problems that `rep doctor` finds: mistakes in the configuration, in checks and in the
//! sandbox settings, missing consent, and errors in skills.

use repertoire_checks::declared;
use repertoire_skill::catalog::Catalog;
use repertoire_text::Severity;

use crate::cli::Ctx;
use crate::commands::lint;
use crate::consent::CHECK_KEYS;
use crate::failure::Failure;

/// Maximum number of skill files with errors named in the message.
const NAMED_FILES_MAX: usize = 5;

/// A problem, described in one line.
pub(super) struct Problem {
    pub(super) text: String,
    /// True if commands fail because of it, false for a warning.
    pub(super) is_error: bool,
}

impl Problem {
    fn error(text: impl Into<String>) -> Self {
        Problem { text: text.into(), is_error: true }
    }

    fn warning(text: impl Into<String>) -> Self {
        Problem { text: text.into(), is_error: false }
    }
}

/// Finds all problems. `settings` are the mistakes found while reading the configuration.
pub(super) fn find(
    ctx: &Ctx<'_>,
    settings: &[Failure],
    catalog: &Catalog,
) -> Result<Vec<Problem>, Failure> {
    let mut found: Vec<Problem> =
        settings.iter().map(|failure| Problem::error(&failure.message)).collect();
    found.extend(check_checks(ctx).err().map(|failure| Problem::error(failure.message)));
    found.extend(ctx.sandbox().err().map(|failure| Problem::error(failure.message)));
    let config = &ctx.config;
    if config.is_set("sandbox_requires") && config.text("sandbox") != Some("require") {
        let origin = config.origin("sandbox_requires");
        found.push(Problem::warning(format!(
            "{origin}: `sandbox_requires` has no effect without `sandbox = \"require\"`"
        )));
    }
    found.extend(missing_consent(ctx));
    found.extend(skills_with_errors(ctx, catalog)?);
    Ok(found)
}

fn check_checks(ctx: &Ctx<'_>) -> Result<(), Failure> {
    let ctx = ctx.with_proposal_in_force();
    let mut all = Vec::new();
    for name in CHECK_KEYS {
        all.extend(ctx.checks(name)?);
    }
    declared::validate(&all).map_err(|error| Failure::usage(error.to_string()))
}

fn missing_consent(ctx: &Ctx<'_>) -> Option<Problem> {
    match ctx.standing(ctx.config.proposal()?) {
        Ok(standing) if standing.by.is_some() => None,
        Ok(_) => Some(Problem::warning(
            "settings of this project start programs and wait for your consent: `rep trust --project`",
        )),
        Err(failure) => Some(Problem::error(failure.message)),
    }
}

/// Reports the skills in which lint finds errors, except those that the catalog already reports.
fn skills_with_errors(ctx: &Ctx<'_>, catalog: &Catalog) -> Result<Option<Problem>, Failure> {
    let is_reported = |path| {
        let mut errors =
            catalog.diagnostics().iter().filter(|found| found.severity == Severity::Error);
        errors.any(|found| found.path.as_ref() == Some(path))
    };
    let mut files: Vec<String> = lint::files_with_errors(ctx)?
        .iter()
        .filter(|path| !is_reported(path))
        .map(|path| ctx.config.places().shorten(path))
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let more = files.len().saturating_sub(NAMED_FILES_MAX);
    files.truncate(NAMED_FILES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!("errors in {}{more}: `rep lint` shows them", files.join(", "));
    Ok(Some(Problem::error(text)))
}
