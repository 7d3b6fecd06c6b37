//! Resolves pointers from a section to a shared file: `references/patterns.md`, `../shared/rules.md#security`,
//! `${CLAUDE_PLUGIN_ROOT}/shared/rules.md`.
//!
//! Paths are resolved without looking at the disk, and never lead out of the skill's folder, its root and its plugin.
//! Pointers within a shared file are not followed.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use repertoire_text::{Source, Span, frontmatter};

use super::limits::{REVIEW_POINTERS_MAX, REVIEW_SHARED_BYTES_MAX};
use crate::codes;
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::pack;
use repertoire_skill::resources;
use repertoire_skill::skill::{Scope, Skill};

use super::collect::ReviewDiagnostics;
use super::document::{DocumentBlock, DocumentBlockKind, MarkdownDocument};
use super::inline::{InlineMarkdown, normalise_words};
use super::sections::names_subject;

/// The folder that the path of a shared file is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedBase {
    /// The skill's own folder.
    Skill,
    /// The root in which the skill was found.
    Root,
    /// The folder of the skill's plugin.
    Plugin,
}

/// The location of a shared file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFileLocation {
    pub base: SharedBase,
    /// The path, without `..`.
    pub path: Utf8PathBuf,
}

impl SharedFileLocation {
    fn file_path(&self, skill: &Skill) -> Utf8PathBuf {
        dir_of(skill, self.base).join(&self.path)
    }
}

/// Reads a shared file from disk, or from the built-in pack if the skill is not on disk.
pub fn read_shared(skill: &Skill, place: &SharedFileLocation) -> Result<String, ReadError> {
    let origin = &skill.origin;
    let limits = ResourceLimits { bytes_max: REVIEW_SHARED_BYTES_MAX, ..ResourceLimits::default() };
    if place.base == SharedBase::Skill && origin.is_folder() {
        return resources::read_resource(skill, &place.path, &limits);
    }
    if place.base == SharedBase::Root && origin.scope == Scope::Builtin && !origin.file.exists() {
        let bytes = pack::read_pack_file(place.path.as_str()).ok_or(ReadError::NotFound)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    fs::read_text_beneath(dir_of(skill, place.base), &place.path, limits.bytes_max)
}

fn dir_of(skill: &Skill, base: SharedBase) -> &Utf8Path {
    let origin = &skill.origin;
    match base {
        SharedBase::Skill => origin.dir(),
        SharedBase::Root => &origin.root,
        // The root of a plugin's skills is the folder `skills` of the plugin.
        SharedBase::Plugin => origin.root.parent().unwrap_or(&origin.root),
    }
}

/// A pointer: the path as it is written, and the anchor after `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedFilePointer {
    pub(super) path: String,
    pub(super) anchor: Option<String>,
    pub(super) span: Span,
}

/// Finds the pointers of a section. In list items, code counts only if the path has a folder, since items often mention
/// a file in passing.
pub(super) fn find_pointers(blocks: &[&DocumentBlock]) -> Vec<SharedFilePointer> {
    let mut out: Vec<SharedFilePointer> = Vec::new();
    for block in blocks {
        for target in block_targets(block) {
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor.to_owned())),
                None => (target, None),
            };
            let pointer = SharedFilePointer { path: path.to_owned(), anchor, span: block.span };
            let is_same =
                |known: &SharedFilePointer| known.path == path && known.anchor == pointer.anchor;
            if out.len() <= REVIEW_POINTERS_MAX && !out.iter().any(is_same) {
                out.push(pointer);
            }
        }
    }
    out
}

/// The paths that a block points to.
pub(super) fn block_targets(block: &DocumentBlock) -> Vec<&str> {
    match &block.kind {
        DocumentBlockKind::Paragraph(inline) => inline_targets(inline, |_| true),
        DocumentBlockKind::Item(item) => inline_targets(&item.lead, |code| code.contains('/')),
        DocumentBlockKind::Title | DocumentBlockKind::Table(_) => Vec::new(),
    }
}

fn inline_targets(inline: &InlineMarkdown, counts: impl Fn(&str) -> bool) -> Vec<&str> {
    let links = inline.links.iter().map(String::as_str).filter(|link| is_file_target(link));
    let codes =
        inline.code_texts().map(str::trim).filter(|code| is_file_target(code) && counts(code));
    links.chain(codes).collect()
}

fn is_file_target(target: &str) -> bool {
    let path = target.split('#').next().unwrap_or("");
    if path.is_empty() {
        return target.len() > 1;
    }
    let is_markdown = [".md", ".markdown"].iter().any(|ending| path.ends_with(ending));
    is_markdown
        && !path.contains("://")
        && !path.contains(['*', '\0'])
        && !path.contains(char::is_whitespace)
}

/// Resolves a path without looking at the disk. Returns `None` if it leads outside.
pub(super) fn resolve_pointer(skill: &Skill, path: &str) -> Option<SharedFileLocation> {
    let origin = &skill.origin;
    let has_plugin = origin.plugin.is_some() && origin.root.parent().is_some();
    let variable = |name: &str| path.strip_prefix(name).map(|rest| rest.trim_start_matches('/'));
    if let Some(rest) = variable("${CLAUDE_PLUGIN_ROOT}") {
        let base = if has_plugin { SharedBase::Plugin } else { SharedBase::Root };
        return place_below(base, Utf8Path::new(""), rest);
    }
    if let Some(rest) = variable("${CLAUDE_SKILL_DIR}") {
        return place_below(SharedBase::Skill, Utf8Path::new(""), rest);
    }
    if let Some(found) = place_below(SharedBase::Skill, Utf8Path::new(""), path) {
        return Some(found);
    }
    let below_root = origin.dir().strip_prefix(&origin.root).ok()?;
    if let Some(found) = place_below(SharedBase::Root, below_root, path) {
        return Some(found);
    }
    let skills = origin.root.file_name().filter(|_| has_plugin)?;
    place_below(SharedBase::Plugin, &Utf8Path::new(skills).join(below_root), path)
}

/// Resolves a path from a folder below a base. Returns `None` if it leaves the base.
fn place_below(base: SharedBase, from: &Utf8Path, path: &str) -> Option<SharedFileLocation> {
    let mut parts: Vec<&str> = from.components().map(|part| part.as_str()).collect();
    for part in Utf8Path::new(path).components() {
        match part {
            Utf8Component::Normal(name) => parts.push(name),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                parts.pop()?;
            }
            Utf8Component::Prefix(_) | Utf8Component::RootDir => return None,
        }
    }
    let path: Utf8PathBuf = parts.iter().collect();
    fs::is_beneath(&path).then_some(SharedFileLocation { base, path })
}

/// Reads and caches shared files.
pub(super) struct SharedFiles<'a> {
    skill: &'a Skill,
    read: &'a dyn Fn(&SharedFileLocation) -> Result<String, ReadError>,
    /// The files that were read, by location; `None` if one could not be read.
    known: Vec<(SharedFileLocation, Option<MarkdownDocument>)>,
}

impl<'a> SharedFiles<'a> {
    pub(super) fn new(
        skill: &'a Skill,
        read: &'a dyn Fn(&SharedFileLocation) -> Result<String, ReadError>,
    ) -> Self {
        SharedFiles { skill, read, known: Vec::new() }
    }

    /// Returns the file that a pointer names. Reports a pointer that cannot be followed.
    pub(super) fn open_file(
        &mut self,
        pointer: &SharedFilePointer,
        source: &Source,
        out: &mut ReviewDiagnostics,
    ) -> Option<&MarkdownDocument> {
        let Some(place) = resolve_pointer(self.skill, &pointer.path) else {
            let message = format!("`{}` is outside the skill and its root", pointer.path);
            out.add(&codes::REVIEW_POINTER_OUTSIDE, message, source, pointer.span);
            return None;
        };
        let at = match self.known.iter().position(|(known, _)| *known == place) {
            Some(at) => at,
            None if self.known.len() == REVIEW_POINTERS_MAX => {
                let message = format!(
                    "the skill points to more than {REVIEW_POINTERS_MAX} shared files, the limit; `{}` is not read",
                    pointer.path
                );
                out.add(&codes::REVIEW_CUT, message, source, pointer.span);
                return None;
            }
            None => {
                let document = self.read_file(&place, pointer, source, out);
                self.known.push((place, document));
                self.known.len() - 1
            }
        };
        self.known[at].1.as_ref()
    }

    fn read_file(
        &self,
        place: &SharedFileLocation,
        pointer: &SharedFilePointer,
        source: &Source,
        out: &mut ReviewDiagnostics,
    ) -> Option<MarkdownDocument> {
        match (self.read)(place) {
            Ok(text) => {
                let shared = Source::new(place.file_path(self.skill), text);
                let text = shared.text();
                let all = Span::new(0, text.len());
                // A shared file may have frontmatter of its own.
                let body = frontmatter::split(text, text.len()).map_or(all, |parts| parts.body);
                Some(MarkdownDocument::parse(&shared, body))
            }
            Err(error @ (ReadError::PathRefused | ReadError::LinkLeaves)) => {
                let message = format!("`{}` is not read: {error}", pointer.path);
                out.add(&codes::REVIEW_POINTER_OUTSIDE, message, source, pointer.span);
                None
            }
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", pointer.path);
                out.add(&codes::REVIEW_POINTER_DEAD, message, source, pointer.span);
                None
            }
        }
    }
}

/// The blocks of a shared file that a pointer refers to: those below its anchor, or else those about the skill's
/// subject, or else all. Returns `None` if the anchor does not exist.
pub(super) fn blocks_meant<'a>(
    document: &'a MarkdownDocument,
    anchor: Option<&str>,
    subjects: &[Vec<String>],
    counts: impl Fn(&DocumentBlock) -> bool,
) -> Option<Vec<&'a DocumentBlock>> {
    if let Some(anchor) = anchor.filter(|anchor| !anchor.is_empty()) {
        return below_anchor(document, anchor);
    }
    let about = document.blocks_below(|title| title.rank > 1 && names_subject(title, subjects));
    if about.iter().any(|block| counts(block)) {
        return Some(about);
    }
    Some(document.blocks.iter().collect())
}

/// The blocks below the title that equals the anchor, or else starts with it.
fn below_anchor<'a>(
    document: &'a MarkdownDocument,
    anchor: &str,
) -> Option<Vec<&'a DocumentBlock>> {
    let wanted = normalise_words(anchor);
    let names: Vec<String> =
        document.titles.iter().map(|title| normalise_words(&title.text)).collect();
    let starts = |name: &String| {
        name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with(' '))
    };
    let found = names.iter().position(|name| *name == wanted);
    let found = found.or_else(|| names.iter().position(starts))?;
    let mut below: Vec<bool> = Vec::with_capacity(names.len());
    for (at, title) in document.titles.iter().enumerate() {
        below.push(at == found || title.parent.is_some_and(|above| below[above]));
    }
    let is_below = |block: &&DocumentBlock| block.title.is_some_and(|at| below[at]);
    Some(document.blocks.iter().filter(is_below).collect())
}
