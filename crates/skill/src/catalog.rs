//! The catalog: an immutable snapshot of discovery, including skills that were shadowed, broken or skipped.

use std::collections::HashMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{Glob, GlobBuilder};
use repertoire_text::Diagnostic;

use crate::codes;
use crate::dependencies::{self, KnownSkills, NearestNameCache};
use crate::discover::{DiscoveryRequest, RootState};
use crate::name;
use crate::profile::{CollisionRule, NamingRule, Profile, Root, SearchDirectories};
use crate::skill::{Scope, Skill, SkillKind};
use crate::trust::TrustLevel;

/// A skill under the id that the profile gives it.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// The name to request it by, `plugin:name` for a plugin's skill.
    pub id: String,
    pub skill: Arc<Skill>,
    /// Decides whether the skill may be given capabilities.
    pub trust: TrustLevel,
}

impl CatalogEntry {
    /// Returns true if this is the same file with the same text, id and trust.
    pub(crate) fn is_same(&self, other: &CatalogEntry) -> bool {
        let same_skill =
            || self.skill.origin == other.skill.origin && self.skill.text() == other.skill.text();
        self.id == other.id
            && self.trust == other.trust
            && (Arc::ptr_eq(&self.skill, &other.skill) || same_skill())
    }
}

/// A skill that is shadowed by another one of the same name.
#[derive(Clone, Debug)]
pub struct ShadowedSkill {
    /// The skill that lost.
    pub entry: CatalogEntry,
    /// The file of the skill that won.
    pub by: Utf8PathBuf,
}

/// A file that should have been a skill but could not be loaded.
#[derive(Clone, Debug)]
pub struct BrokenSkill {
    pub path: Utf8PathBuf,
    /// The scope of the root that contains the file.
    pub scope: Scope,
    /// The error that kept it out.
    pub reason: Diagnostic,
}

/// The result of scanning one root.
#[derive(Clone, Debug)]
pub struct RootReport {
    pub root: Root,
    pub state: RootState,
    /// The number of files that may be skills.
    pub found: usize,
}

/// An immutable snapshot of the discovered skills.
#[derive(Clone, Debug)]
pub struct Catalog {
    profile: &'static Profile,
    places: SearchDirectories,
    entries: Vec<CatalogEntry>,
    shadowed: Vec<ShadowedSkill>,
    broken: Vec<BrokenSkill>,
    diagnostics: Vec<Diagnostic>,
    roots: Vec<RootReport>,
    generation: u64,
}

/// A reference that does not identify a single skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("skill `{reference}` not found")]
pub struct SkillNotFound {
    /// The reference as it was given.
    pub reference: String,
    /// The places that were searched, for display.
    pub searched: Vec<String>,
    /// The name that was probably meant.
    pub nearest: Option<String>,
    /// The files of the candidates, if the name is ambiguous.
    pub ambiguous: Vec<String>,
}

impl Catalog {
    /// The skills in use, sorted by id.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Skills that lost their name to another.
    pub fn shadowed(&self) -> &[ShadowedSkill] {
        &self.shadowed
    }

    /// Files that could not be loaded.
    pub fn broken(&self) -> &[BrokenSkill] {
        &self.broken
    }

    /// All findings, sorted by file and position.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The scanned roots, in order.
    pub fn roots(&self) -> &[RootReport] {
        &self.roots
    }

    /// The profile that was used for discovery.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// The directories that discovery started from.
    pub fn places(&self) -> &SearchDirectories {
        &self.places
    }

    /// The number of the snapshot: each reload increases it.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn with_generation(self, generation: u64) -> Self {
        Catalog { generation, ..self }
    }

    /// Returns true if another snapshot holds the same skills in the same state.
    pub fn has_same_content(&self, other: &Catalog) -> bool {
        let same_entries = self.entries.len() == other.entries.len()
            && self.shadowed.len() == other.shadowed.len()
            && self
                .all_entries()
                .zip(other.all_entries())
                .all(|(mine, theirs)| mine.is_same(theirs));
        let mine = self.roots.iter().map(|report| (&report.root, report.state));
        let theirs = other.roots.iter().map(|report| (&report.root, report.state));
        same_entries && mine.eq(theirs) && have_same_findings(&self.diagnostics, &other.diagnostics)
    }

    /// Iterates over the skills in use, then over the shadowed ones.
    pub(crate) fn all_entries(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.iter().chain(self.shadowed.iter().map(|shadowed| &shadowed.entry))
    }

    /// Returns the findings about one file.
    pub(crate) fn findings_in(&self, file: &Utf8Path) -> &[Diagnostic] {
        // Diagnostics are ordered by `Diagnostic::sort_key`, which compares paths as text.
        let path = |found: &Diagnostic| found.path.as_ref().map(|path| path.to_string());
        let file = Some(file.to_string());
        let start = self.diagnostics.partition_point(|found| path(found) < file);
        let end = self.diagnostics.partition_point(|found| path(found) <= file);
        &self.diagnostics[start..end]
    }

    /// Returns the skill with an id, if exactly one has it.
    pub fn get(&self, id: &str) -> Option<&CatalogEntry> {
        let mut found = self.entries_named(id).iter().filter(|entry| !entry.skill.is_agent());
        match (found.next(), found.next()) {
            (Some(entry), None) => Some(entry),
            _ => None,
        }
    }

    /// Returns the agent with an id.
    pub fn get_agent(&self, id: &str) -> Option<&CatalogEntry> {
        self.entries_named(id).iter().find(|entry| entry.skill.is_agent())
    }

    fn entries_named(&self, id: &str) -> &[CatalogEntry] {
        let start = self.entries.partition_point(|entry| entry.id.as_str() < id);
        let end = self.entries.partition_point(|entry| entry.id.as_str() <= id);
        &self.entries[start..end]
    }

    /// Iterates over the skills of a kind.
    pub fn by_kind<'a>(&'a self, kind: &'a SkillKind) -> impl Iterator<Item = &'a CatalogEntry> {
        self.entries.iter().filter(move |entry| entry.skill.kind == *kind)
    }

    /// Iterates over the skills that declare an event as a trigger.
    pub fn by_event<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a CatalogEntry> {
        let hit =
            move |entry: &&CatalogEntry| entry.skill.triggers.events.iter().any(|e| e == event);
        self.entries.iter().filter(hit)
    }

    /// Iterates over the skills with a tag, ignoring case.
    pub fn by_tag<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a CatalogEntry> {
        let hit = move |entry: &&CatalogEntry| {
            entry.skill.tags.iter().any(|t| t.eq_ignore_ascii_case(tag))
        };
        self.entries.iter().filter(hit)
    }

    /// Iterates over the entries with a capability.
    pub fn by_capability<'a>(
        &'a self,
        capability: &'a str,
    ) -> impl Iterator<Item = &'a CatalogEntry> {
        let hit =
            move |entry: &&CatalogEntry| entry.skill.capabilities.iter().any(|c| c == capability);
        self.entries.iter().filter(hit)
    }

    /// Iterates over the skills with a path trigger that matches a path.
    pub fn by_path<'a>(&'a self, path: &'a Utf8Path) -> impl Iterator<Item = &'a CatalogEntry> {
        self.entries.iter().filter(move |entry| {
            entry.skill.triggers.paths.iter().any(|glob| glob_matches(glob, path))
        })
    }

    /// Finds a skill by `name` or `plugin:name`.
    ///
    /// An exact match comes first, then the name in any spelling, then a plugin's skill of that name if only
    /// one plugin has it.
    pub fn resolve(&self, reference: &str) -> Result<&CatalogEntry, SkillNotFound> {
        let reference = reference.trim();
        if let Some(entry) = self.get(reference).or_else(|| self.get_agent(reference)) {
            return Ok(entry);
        }
        let spelled = |entry: &&CatalogEntry| is_same_name(&entry.id, reference);
        let loose: Vec<&CatalogEntry> = self.entries.iter().filter(spelled).collect();
        let bare = || -> Vec<&CatalogEntry> {
            let wanted = name::normalise_name(reference);
            self.entries.iter().filter(|entry| entry.skill.name == wanted).collect()
        };
        let found = if loose.is_empty() && !reference.contains(':') { bare() } else { loose };
        match found.as_slice() {
            [entry] => Ok(entry),
            several => Err(self.describe_not_found(reference, several)),
        }
    }

    /// Resolves several references. The ones that are not found do not affect the others.
    pub fn resolve_all<'a>(
        &'a self,
        references: impl IntoIterator<Item = &'a str>,
    ) -> (Vec<&'a CatalogEntry>, Vec<SkillNotFound>) {
        let mut found: Vec<&CatalogEntry> = Vec::new();
        let mut missing = Vec::new();
        for reference in references {
            match self.resolve(reference) {
                Ok(entry) if found.iter().any(|known| std::ptr::eq(*known, entry)) => {}
                Ok(entry) => found.push(entry),
                Err(error) => missing.push(error),
            }
        }
        (found, missing)
    }

    fn describe_not_found(&self, reference: &str, several: &[&CatalogEntry]) -> SkillNotFound {
        let searched = match reference.split_once(':') {
            Some((plugin, skill)) => {
                let cache = self.places.home.join(".claude/plugins/cache");
                vec![format!("{cache}/**/{plugin}/*/skills/{skill}/SKILL.md")]
            }
            None => self
                .roots
                .iter()
                .filter(|report| report.state == RootState::Searched || report.root.named)
                .map(|report| self.places.shorten_path(&report.root.dir))
                .collect(),
        };
        SkillNotFound {
            reference: reference.to_owned(),
            searched,
            nearest: name::nearest_name(
                reference,
                self.entries.iter().map(|entry| entry.id.as_str()),
            )
            .map(str::to_owned),
            ambiguous: several
                .iter()
                .map(|entry| self.places.shorten_path(&entry.skill.origin.file))
                .collect(),
        }
    }
}

/// Returns true if two lists hold the same findings.
pub(crate) fn have_same_findings(mine: &[Diagnostic], theirs: &[Diagnostic]) -> bool {
    mine.iter().map(Diagnostic::sort_key).eq(theirs.iter().map(Diagnostic::sort_key))
}

fn is_same_name(id: &str, reference: &str) -> bool {
    match (id.split_once(':'), reference.split_once(':')) {
        (Some((plugin, skill)), Some((wanted_plugin, wanted_skill))) => {
            is_same_name(plugin, wanted_plugin) && is_same_name(skill, wanted_skill)
        }
        (None, None) => name::normalise_name(id) == name::normalise_name(reference),
        _ => false,
    }
}

/// Returns true if a glob of a skill matches a path.
pub fn glob_matches(glob: &str, path: &Utf8Path) -> bool {
    compile_glob(glob).is_ok_and(|compiled| compiled.compile_matcher().is_match(path))
}

/// Compiles a glob of a skill. `*` does not match a slash; a glob without a slash matches at any depth.
pub fn compile_glob(glob: &str) -> Result<Glob, globset::Error> {
    let anywhere = format!("**/{glob}");
    let glob = if glob.contains('/') { glob } else { &anywhere };
    GlobBuilder::new(glob).literal_separator(true).build()
}

/// Builds a catalog from files that are added in the order of the roots.
pub(crate) struct CatalogBuilder<'a> {
    request: &'a DiscoveryRequest,
    names: HashMap<(bool, String), usize>,
    entries: Vec<CatalogEntry>,
    losers: Vec<ShadowedCandidate>,
    broken: Vec<BrokenSkill>,
    diagnostics: Vec<Diagnostic>,
    roots: Vec<RootReport>,
}

/// A skill whose name is taken by an earlier or a trusted one.
struct ShadowedCandidate {
    entry: CatalogEntry,
    /// The index of the entry that has the name.
    winner: usize,
    /// True if this skill came first, but a trusted one took its name.
    kept_out: bool,
}

impl<'a> CatalogBuilder<'a> {
    pub(crate) fn new(request: &'a DiscoveryRequest) -> Self {
        CatalogBuilder {
            request,
            names: HashMap::new(),
            entries: Vec::new(),
            losers: Vec::new(),
            broken: Vec::new(),
            diagnostics: Vec::new(),
            roots: Vec::new(),
        }
    }

    pub(crate) fn add_diagnostic(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(crate) fn add_root(&mut self, report: RootReport) {
        self.roots.push(report);
    }

    pub(crate) fn add_file(
        &mut self,
        path: &Utf8Path,
        scope: Scope,
        skill: Option<Arc<Skill>>,
        diagnostics: &[Diagnostic],
    ) {
        self.diagnostics.extend_from_slice(diagnostics);
        match skill {
            Some(skill) => self.add_skill(skill),
            None => {
                if let Some(reason) = diagnostics.iter().find(|found| found.is_error()) {
                    let reason = reason.clone();
                    self.broken.push(BrokenSkill { path: path.to_owned(), scope, reason });
                }
            }
        }
    }

    fn add_skill(&mut self, skill: Arc<Skill>) {
        let trust = self.request.lock.trust_in_skill(&skill, &self.request.limits.resources);
        let bare = match self.request.profile.naming {
            NamingRule::Field => skill.name.clone(),
            NamingRule::Folder => skill.origin.stem().to_owned(),
        };
        let id = match &skill.origin.plugin {
            Some(plugin) => format!("{}:{bare}", plugin.name),
            None => bare,
        };
        let key = (skill.is_agent(), id.clone());
        let new = CatalogEntry { id, skill, trust };
        let collision = self.request.profile.collision;
        let Some(&at) = self.names.get(&key).filter(|_| collision != CollisionRule::KeepAll) else {
            self.names.insert(key, self.entries.len());
            self.entries.push(new);
            return;
        };
        let replaces = collision == CollisionRule::TrustedThenFirst
            && new.trust == TrustLevel::Trusted
            && self.entries[at].trust != TrustLevel::Trusted;
        let loser = if replaces { std::mem::replace(&mut self.entries[at], new) } else { new };
        self.losers.push(ShadowedCandidate { entry: loser, winner: at, kept_out: replaces });
    }

    pub(crate) fn finish(self, neighbours: &mut NearestNameCache) -> Catalog {
        let CatalogBuilder {
            request, mut entries, losers, mut broken, mut diagnostics, roots, ..
        } = self;
        // The winners are only final now, because a trusted skill may have replaced an earlier one.
        let mut shadowed = Vec::with_capacity(losers.len());
        for loser in losers {
            let winner = &entries[loser.winner];
            diagnostics.push(shadow_diagnostic(&loser.entry, winner, loser.kept_out, request));
            shadowed
                .push(ShadowedSkill { by: winner.skill.origin.file.clone(), entry: loser.entry });
        }
        entries.sort_by(|a, b| entry_order(a).cmp(&entry_order(b)));
        shadowed.sort_by(|a, b| entry_order(&a.entry).cmp(&entry_order(&b.entry)));
        broken.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
        diagnostics.extend(dependencies::check_dependencies_cached(
            &entries,
            &KnownSkills::from_entries(&entries),
            neighbours,
        ));
        diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        Catalog {
            profile: request.profile,
            places: request.places.clone(),
            entries,
            shadowed,
            broken,
            diagnostics,
            roots,
            generation: 1,
        }
    }
}

fn entry_order(entry: &CatalogEntry) -> (&str, bool, &str) {
    (&entry.id, entry.skill.is_agent(), entry.skill.origin.file.as_str())
}

fn shadow_diagnostic(
    loser: &CatalogEntry,
    winner: &CatalogEntry,
    kept_out: bool,
    request: &DiscoveryRequest,
) -> Diagnostic {
    let by = request.places.shorten_path(&winner.skill.origin.file);
    let same = loser.skill.text() == winner.skill.text();
    let (code, message) = match (kept_out, same) {
        (true, _) => (
            &codes::UNTRUSTED_SHADOW,
            format!("`{}` is not trusted, so it does not replace the one in {by}", loser.id),
        ),
        (false, true) => (&codes::SHADOWED, format!("`{}` is a copy of the one in {by}", loser.id)),
        (false, false) => {
            (&codes::SHADOWED, format!("`{}` is shadowed by the one in {by}", loser.id))
        }
    };
    let severity = if same { repertoire_text::Severity::Info } else { code.severity };
    Diagnostic::new(code, message)
        .in_file(&loser.skill.origin.file)
        .help(code.remedy)
        .severity(severity)
}
