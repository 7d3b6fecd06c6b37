//! A summary of what is served.

use http::Method;
use repertoire_skill::catalog::Catalog;
use repertoire_skill::render::list::{ListSummary, RootJson};
use repertoire_skill::trust::TrustLevel;
use repertoire_text::Severity;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiBuilder, ApiCall, ApiResult};

/// A summary of what is served.
#[derive(Debug, Serialize, JsonSchema)]
struct DaemonStatusJson {
    /// The version of Repertoire.
    version: &'static str,
    /// The folder that is served.
    project: String,
    /// The same path, with `~` for the home directory.
    project_short: String,
    /// The active profile.
    profile: String,
    /// The generation of the catalog, incremented on every reload.
    generation: u64,
    /// Counts of skills.
    skills: ListSummary,
    /// The number of skills that are not trusted, or have changed since they were.
    untrusted: usize,
    /// Counts of findings.
    findings: FindingCounts,
    /// The roots that skills come from, in order.
    roots: Vec<RootJson>,
    /// The time of the daemon, in milliseconds since 1970.
    now_ms: u64,
}

/// Counts of findings.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct FindingCounts {
    /// Violations of rules that others rely on.
    errors: usize,
    /// Things that work but may surprise.
    warnings: usize,
    /// Notes.
    infos: usize,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.add(Method::GET, "/api/v1/status", "daemon", "What is served, in numbers", show_status)
}

async fn show_status(call: ApiCall) -> ApiResult<DaemonStatusJson> {
    let catalog = call.serve_state.catalog();
    let project = call.serve_state.project();
    let untrusted =
        |entry: &&repertoire_skill::catalog::CatalogEntry| entry.trust != TrustLevel::Trusted;
    Ok(DaemonStatusJson {
        version: env!("CARGO_PKG_VERSION"),
        project: project.to_string(),
        project_short: catalog.places().shorten_path(project),
        profile: catalog.profile().id.as_str().to_owned(),
        generation: catalog.generation(),
        skills: ListSummary::from_catalog(&catalog),
        untrusted: catalog.entries().iter().filter(untrusted).count(),
        findings: count_findings(&catalog),
        roots: catalog.roots().iter().map(RootJson::from_report).collect(),
        now_ms: call.serve_state.now_ms(),
    })
}

fn count_findings(catalog: &Catalog) -> FindingCounts {
    let mut out = FindingCounts::default();
    for found in catalog.diagnostics() {
        match found.severity {
            Severity::Error => out.errors += 1,
            Severity::Warning => out.warnings += 1,
            Severity::Info => out.infos += 1,
        }
    }
    out
}
