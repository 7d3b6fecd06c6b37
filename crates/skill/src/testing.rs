//! Builds skills for tests without touching the disk.

use std::sync::Arc;

use repertoire_text::{Limits, Source};

use crate::activate::{Activation, ActivationRequest, ResourceListingMode, activate_skill};
use crate::catalog::CatalogEntry;
use crate::load::load_skill;
use crate::resources::{ResourceFile, ResourceGroup};
use crate::skill::SkillOrigin;
use crate::trust::TrustLevel;

/// Builds a trusted skill with additional frontmatter lines and a body.
pub(crate) fn make_entry(name: &str, fields: &str, body: &str) -> CatalogEntry {
    let description = format!("Does {name}. Use when asked for {name}.");
    make_described_entry(name, &description, fields, body)
}

/// Like [`entry`], with a description.
pub(crate) fn make_described_entry(
    name: &str,
    description: &str,
    fields: &str,
    body: &str,
) -> CatalogEntry {
    let description =
        repertoire_text::yaml::emit_scalar(description, repertoire_text::yaml::YamlStyle::Double);
    let text = format!("---\nname: {name}\ndescription: {description}\n{fields}---\n{body}");
    let file = format!("/skills/{name}/SKILL.md");
    let loaded = load_skill(
        Source::new(file.as_str(), text),
        SkillOrigin::from_file(file),
        &Limits::default(),
    );
    let skill = Arc::new(loaded.skill.expect("the frontmatter is good"));
    CatalogEntry { id: name.to_owned(), skill, trust: TrustLevel::Trusted }
}

/// Builds an activation of a trusted skill, without resources.
pub(crate) fn make_activation(name: &str, body: &str) -> Activation {
    activate_skill(
        &make_entry(name, "", body),
        &ActivationRequest {
            listing: ResourceListingMode::Skipped,
            ..ActivationRequest::default()
        },
    )
}

pub(crate) fn make_resource(path: &str) -> ResourceFile {
    ResourceFile { group: ResourceGroup::from_path(path.into()), path: path.into(), bytes: 1 }
}
