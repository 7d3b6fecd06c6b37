//! The view of a skill that selection works on.

use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::dependencies::{self, DependencyMatch};
use repertoire_skill::skill::{ContentDigest, Skill, SkillTriggers};

/// A skill as text and triggers. The index copies none of the text, so a document only borrows it.
#[derive(Clone, Debug)]
pub struct SkillDocument<'a> {
    /// The identifier used to request the skill, and the one in reports.
    pub id: &'a str,
    /// Equal digests mean equal name and text.
    pub digest: ContentDigest,
    pub name: &'a str,
    /// All fields that say what the skill does and when to use it: description, tags, capabilities, keywords.
    pub description: Vec<&'a str>,
    /// The instructions, in Markdown.
    pub body: &'a str,
    pub triggers: SkillTriggers,
    /// True if the skill may be picked without being named in the task.
    pub is_offered: bool,
    /// The agent that the skill asks to run in.
    pub agent: Option<&'a str>,
    /// The ids of the catalog's skills that this one depends on.
    pub needs: Vec<&'a str>,
}

impl<'a> SkillDocument<'a> {
    /// Creates a document from name, description and body alone.
    pub fn new(id: &'a str, name: &'a str, description: &'a str, body: &'a str) -> Self {
        SkillDocument {
            id,
            digest: ContentDigest::hash_bytes(format!("{name}\0{description}\0{body}").as_bytes()),
            name,
            description: vec![description],
            body,
            triggers: SkillTriggers::default(),
            is_offered: true,
            agent: None,
            needs: Vec::new(),
        }
    }

    /// Builds the documents of all skills in a catalog, in catalog order. Agents are left out.
    pub fn from_catalog(catalog: &'a Catalog) -> Vec<Self> {
        let skills = catalog.entries().iter().filter(|entry| !entry.skill.is_agent());
        skills.map(|entry| SkillDocument::from_entry(entry, catalog)).collect()
    }

    /// Builds the document of one catalog entry, with its dependencies resolved.
    pub fn from_entry(entry: &'a CatalogEntry, catalog: &'a Catalog) -> Self {
        let skill = &*entry.skill;
        let needs = dependencies::match_dependencies(skill, catalog.entries())
            .into_iter()
            .filter_map(|(_, met)| match met {
                DependencyMatch::By(entry) => Some(entry.id.as_str()),
                _ => None,
            });
        SkillDocument { needs: needs.collect(), ..SkillDocument::from_skill(&entry.id, skill) }
    }

    /// Builds the document of a skill outside a catalog, so without dependencies.
    pub(crate) fn from_skill(id: &'a str, skill: &'a Skill) -> Self {
        let mut description = vec![skill.description.as_str()];
        description.extend(skill.claude.when_to_use.as_deref());
        description.extend(skill.tags.iter().map(String::as_str));
        description.extend(skill.capabilities.iter().map(String::as_str));
        description.extend(skill.triggers.keywords.iter().map(String::as_str));
        SkillDocument {
            id,
            digest: digest_of(&skill.name, &skill.digest()),
            name: &skill.name,
            description,
            body: skill.body(),
            triggers: skill.triggers.clone(),
            is_offered: skill.is_offered(),
            agent: skill.claude.agent.as_deref(),
            needs: Vec::new(),
        }
    }
}

/// Combines the digest of the file with the name, because the name may come from the folder rather than the
/// file.
fn digest_of(name: &str, file: &ContentDigest) -> ContentDigest {
    let mut bytes = file.as_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    ContentDigest::hash_bytes(&bytes)
}
