//! Finds and reads labelled queries, in the files that were named or in the folders of the skills.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_select::eval::labels::{
    self, LabelFile, LabelPosition, LabelProblem, LabelledQuery,
};
use repertoire_select::limits::LABELS_BYTES_MAX;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::name::normalise_name;
use repertoire_text::fs::{self, EntryKind, ReadError};

use crate::cli::CliContext;
use crate::failure::CliFailure;

/// Folders inside a skill that hold labelled queries.
const FOLDERS: [&str; 2] = ["evals", "eval"];
/// Files in a skill's folder that hold labelled queries.
const FILES: [&str; 4] = ["evals.json", "evals.jsonl", "trigger-evals.json", "eval_queries.json"];
/// Maximum number of entries of a folder that are examined.
const ENTRIES_MAX: usize = 1_000;

/// The queries that were read, and the problems with the rest.
#[derive(Debug, Default)]
pub(super) struct EvalQueryFiles {
    pub(super) queries: Vec<LabelledQuery>,
    pub(super) files: Vec<String>,
    /// JSON files in a skill's folder that hold no labelled queries.
    pub(super) not_labelled: Vec<String>,
    pub(super) problems: Vec<LabelProblem>,
    /// Number of queries that name an unknown skill.
    pub(super) unknown_skill: usize,
}

/// Reads queries from the files named on the command line.
pub(super) fn read_named_files(
    ctx: &CliContext<'_>,
    catalog: &Catalog,
    paths: &[Utf8PathBuf],
) -> Result<EvalQueryFiles, CliFailure> {
    let mut found = EvalQueryFiles::default();
    for path in paths {
        let typed = ctx.typed_path(path);
        let text = fs::read_text(&typed, LABELS_BYTES_MAX).map_err(|error| match error {
            ReadError::NotFound => CliFailure::wrong_usage(format!("there is no `{path}`"))
                .hint("Name files of labelled queries, or none to use those beside the skills."),
            error => CliFailure::cannot_run(format!("{path} cannot be read: {error}")),
        })?;
        let entry = find_owner(catalog, &typed);
        let labels = labels::parse_labels(&LabelFile { path, text: &text, skill: entry_id(entry) });
        found.add_file(path.as_str(), labels, catalog, entry);
    }
    Ok(found)
}

/// Reads queries from the folders of skills, in catalog order.
pub(super) fn read_beside_skills(
    ctx: &CliContext<'_>,
    catalog: &Catalog,
    in_full: bool,
) -> EvalQueryFiles {
    let mut found = EvalQueryFiles::default();
    let folders = catalog.entries().iter().filter(|entry| entry.skill.origin.is_folder());
    for entry in folders {
        let dir = entry.skill.origin.dir();
        for file in candidate_files(dir) {
            let full = dir.join(&file);
            let path = if in_full { full } else { ctx.config.places().shorten_path(&full).into() };
            match fs::read_text_beneath(dir, &file, LABELS_BYTES_MAX) {
                Ok(text) => {
                    let file = LabelFile { path: &path, text: &text, skill: Some(&entry.id) };
                    let labels = labels::parse_labels(&file);
                    if labels.is_labelled {
                        found.add_file(path.as_str(), labels, catalog, Some(entry));
                    } else {
                        found.not_labelled.push(path.into_string());
                    }
                }
                Err(error) => found.problems.push(LabelProblem {
                    place: LabelPosition { file: path, line: 1 },
                    message: error.to_string(),
                    help: error.to_diagnostic(&file).help.unwrap_or_default().into(),
                }),
            }
        }
    }
    found
}

impl EvalQueryFiles {
    fn add_file(
        &mut self,
        path: &str,
        labels: labels::QueryLabels,
        catalog: &Catalog,
        beside: Option<&CatalogEntry>,
    ) {
        let resolve = |name: &str| match beside {
            // A file in a skill's own folder means that skill, even if another one has the same
            // name.
            Some(entry) if name == entry.id || normalise_name(name) == entry.skill.name => {
                Some(entry.id.clone())
            }
            _ => catalog.resolve(name).ok().map(|entry| entry.id.clone()),
        };
        let (queries, unknown) = labels::resolve_names(labels.queries, resolve);
        self.files.push(path.to_owned());
        self.queries.extend(queries);
        self.unknown_skill += unknown.len();
        let mut problems = [labels.problems, unknown].concat();
        problems.sort_by_key(|problem| problem.place.line);
        self.problems.extend(problems);
    }
}

fn entry_id(entry: Option<&CatalogEntry>) -> Option<&str> {
    entry.map(|entry| entry.id.as_str())
}

/// Returns the skill whose folder contains a file, the innermost if there are several.
fn find_owner<'a>(catalog: &'a Catalog, file: &Utf8Path) -> Option<&'a CatalogEntry> {
    let real = file.canonicalize_utf8().ok()?;
    let around = |entry: &&CatalogEntry| {
        let origin = &entry.skill.origin;
        let dir = || origin.dir().canonicalize_utf8().ok();
        // Compare folder names first: it avoids canonicalising the folder of every skill.
        let named = origin.dir().file_name();
        origin.is_folder()
            && real.ancestors().skip(1).any(|part| part.file_name() == named)
            && dir().is_some_and(|dir| real.starts_with(dir))
    };
    catalog
        .entries()
        .iter()
        .filter(around)
        .max_by_key(|entry| entry.skill.origin.dir().as_str().len())
}

/// Returns the files of a skill's folder that may hold queries, sorted. Linked folders are not
/// entered.
fn candidate_files(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut out = Vec::new();
    for (name, kind) in entry_names(dir) {
        if kind == EntryKind::Folder && FOLDERS.contains(&name.as_str()) {
            let inside = entry_names(&dir.join(&name)).into_iter();
            let files = inside.filter(|(_, kind)| is_file(*kind)).map(|(file, _)| file);
            let json = files.filter(|file| file.ends_with(".json") || file.ends_with(".jsonl"));
            out.extend(json.map(|file| Utf8Path::new(&name).join(file)));
        } else if is_file(kind)
            && (FILES.contains(&name.as_str()) || name.ends_with(".evals.jsonl"))
        {
            out.push(name.into());
        }
    }
    out
}

fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::File | EntryKind::Link)
}

/// Returns the names in a folder, sorted. Empty if it cannot be listed, as for a skill in memory.
fn entry_names(dir: &Utf8Path) -> Vec<(String, EntryKind)> {
    let Ok(entries) = fs::list_entries(dir) else { return Vec::new() };
    let mut names: Vec<(String, EntryKind)> = entries
        .take(ENTRIES_MAX)
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| Some((entry.name.into_string().ok()?, entry.kind)))
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    names
}
