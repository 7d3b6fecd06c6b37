//! Use counts of skills over all conversations. A skill that was used before is slightly more
//! likely to be selected.
//!
//! The counts only break near ties, so a damaged file is no error: counting starts again from zero.

use std::collections::BTreeMap;

use camino::Utf8Path;
use repertoire_agent::{AgentEvent, EventKind};
use repertoire_text::fs;
use serde::{Deserialize, Serialize};

use crate::limits::{USE_BYTES_MAX, USE_SKILLS_MAX};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillUse {
    /// Number of uses by skill name.
    pub skills: BTreeMap<String, u32>,
}

impl SkillUse {
    /// Reads the counts from disk; empty if the file is missing or damaged.
    pub fn read(path: &Utf8Path) -> Self {
        let text = fs::read_text(path, USE_BYTES_MAX).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Counts the skill of a `SkillLoaded` event, unless it was already loaded.
    pub fn count_event(&mut self, event: &AgentEvent) {
        if let EventKind::SkillLoaded { skill, already: false, .. } = &event.kind {
            let uses = self.skills.entry(skill.clone()).or_default();
            *uses = uses.saturating_add(1);
        }
    }

    /// Adds these counts to those on disk with an atomic write. If two processes do so at once, the
    /// counts of one may be lost.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add_to(&self, path: &Utf8Path) -> std::io::Result<()> {
        if self.skills.is_empty() {
            return Ok(());
        }
        let mut all = SkillUse::read(path);
        for (skill, uses) in &self.skills {
            let sum = all.skills.entry(skill.clone()).or_default();
            *sum = sum.saturating_add(*uses);
        }
        all.forget_the_rarest();
        let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::other)?;
        fs::write_atomic(path, text.as_bytes())
    }

    fn forget_the_rarest(&mut self) {
        while self.skills.len() > USE_SKILLS_MAX {
            let rarest = self.skills.iter().min_by_key(|(_, uses)| **uses);
            let Some(name) = rarest.map(|(name, _)| name.clone()) else { return };
            self.skills.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u32)]) -> SkillUse {
        let skills = pairs.iter().map(|(name, uses)| ((*name).to_owned(), *uses)).collect();
        SkillUse { skills }
    }

    #[test]
    fn counts_add_up_on_disk_and_a_damaged_file_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("usage.json");
        counts(&[("a", 1)]).add_to(&path).unwrap();
        counts(&[("a", 2), ("b", 1)]).add_to(&path).unwrap();
        assert_eq!(SkillUse::read(&path), counts(&[("a", 3), ("b", 1)]));
        fs::write_atomic(&path, b"{\"skills\": 7").unwrap();
        assert_eq!(SkillUse::read(&path), SkillUse::default());
    }

    #[test]
    fn the_rarest_are_forgotten_when_there_are_too_many() {
        let mut all = SkillUse::default();
        for number in 0..=USE_SKILLS_MAX {
            all.skills.insert(format!("s{number}"), 2);
        }
        all.skills.insert("rare".into(), 1);
        all.forget_the_rarest();
        assert_eq!(all.skills.len(), USE_SKILLS_MAX);
        assert!(!all.skills.contains_key("rare"));
    }
}
