//! What selection sees of a skill.

use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::depend::{self, Met};
use repertoire_skill::skill::{Digest, Skill, Triggers};

/// A skill as text and triggers. It borrows: an index keeps none of the text.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The name to ask for, and the one that is reported.
    pub id: &'a str,
    /// The same digest is the same name and text.
    pub digest: Digest,
    /// Its name.
    pub name: &'a str,
    /// What it does and when to use it, from all fields that say so.
    pub description: Vec<&'a str>,
    /// The instructions, in Markdown.
    pub body: &'a str,
    /// What makes it apply.
    pub triggers: Triggers,
    /// Whether it may be picked without being named.
    pub is_offered: bool,
    /// The agent that it asks for.
    pub agent: Option<&'a str>,
    /// Names of the skills that it needs.
    pub needs: Vec<&'a str>,
}

impl<'a> Document<'a> {
    /// A document of name, description and body alone.
    pub fn new(id: &'a str, name: &'a str, description: &'a str, body: &'a str) -> Self {
        Document {
            id,
            digest: Digest::of(format!("{name}\0{description}\0{body}").as_bytes()),
            name,
            description: vec![description],
            body,
            triggers: Triggers::default(),
            is_offered: true,
            agent: None,
            needs: Vec::new(),
        }
    }

    /// Every skill of a catalog, in its order. Agents are no skills.
    pub fn all(catalog: &'a Catalog) -> Vec<Self> {
        let skills = catalog.entries().iter().filter(|entry| !entry.skill.is_agent());
        skills.map(|entry| Document::of(entry, catalog)).collect()
    }

    /// An entry of a catalog.
    pub fn of(entry: &'a Entry, catalog: &'a Catalog) -> Self {
        let skill = &*entry.skill;
        let needs =
            depend::met(skill, catalog.entries()).into_iter().filter_map(|(_, met)| match met {
                Met::By(entry) => Some(entry.id.as_str()),
                _ => None,
            });
        Document { needs: needs.collect(), ..Document::of_skill(&entry.id, skill) }
    }

    /// A skill by itself, under a name to ask for.
    pub(crate) fn of_skill(id: &'a str, skill: &'a Skill) -> Self {
        let words = |list: &'a [String]| list.iter().map(String::as_str);
        let mut description = vec![skill.description.as_str()];
        description.extend(skill.claude.when_to_use.as_deref());
        description.extend(words(&skill.tags));
        description.extend(words(&skill.capabilities));
        description.extend(words(&skill.triggers.keywords));
        Document {
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

/// A name may come from a folder, and is indexed with the file.
fn digest_of(name: &str, file: &Digest) -> Digest {
    let mut bytes = file.as_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    Digest::of(&bytes)
}
