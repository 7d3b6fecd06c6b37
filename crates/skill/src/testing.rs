//! Builds skills for tests without touching the disk.

use std::sync::Arc;

use repertoire_text::{Limits, Source};

use crate::activate::{Activation, Listing, Request, activate};
use crate::catalog::Entry;
use crate::load::load;
use crate::resources::{Group, Resource};
use crate::skill::Origin;
use crate::trust::Trust;

/// Builds a trusted skill with additional frontmatter lines and a body.
pub(crate) fn entry(name: &str, fields: &str, body: &str) -> Entry {
    let description = format!("Does {name}. Use when asked for {name}.");
    described(name, &description, fields, body)
}

/// Like [`entry`], with a description.
pub(crate) fn described(name: &str, description: &str, fields: &str, body: &str) -> Entry {
    let description =
        repertoire_text::yaml::emit_scalar(description, repertoire_text::yaml::Style::Double);
    let text = format!("---\nname: {name}\ndescription: {description}\n{fields}---\n{body}");
    let file = format!("/skills/{name}/SKILL.md");
    let loaded = load(Source::new(file.as_str(), text), Origin::file(file), &Limits::default());
    let skill = Arc::new(loaded.skill.expect("the frontmatter is good"));
    Entry { id: name.to_owned(), skill, trust: Trust::Trusted }
}

/// Builds an activation of a trusted skill, without resources.
pub(crate) fn activation(name: &str, body: &str) -> Activation {
    activate(&entry(name, "", body), &Request { listing: Listing::Skipped, ..Request::default() })
}

pub(crate) fn resource(path: &str) -> Resource {
    Resource { group: Group::of(path.into()), path: path.into(), bytes: 1 }
}
