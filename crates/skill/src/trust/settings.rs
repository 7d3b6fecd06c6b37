//! The settings of a project that start programs, widen the sandbox or open the network, in a form that can
//! be shown, compared and pinned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::skill::ContentDigest;

/// The first line of the digested text, so that no other text of the program has the same digest.
const DIGEST_LABEL: &str = "repertoire acting settings 1\n";

/// Acting settings by their full key, such as `plan.checks.test.command`, each with its value as TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActingSettings(BTreeMap<String, String>);

/// The difference between a setting that was agreed to and its present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange<'a> {
    /// The value is unchanged.
    Same(&'a str),
    /// The key is new.
    Added(&'a str),
    /// The key was removed.
    Removed(&'a str),
    /// The value changed.
    Changed {
        /// The value that was agreed to.
        before: &'a str,
        /// The present value.
        now: &'a str,
    },
}

impl ActingSettings {
    /// Adds a value, as TOML.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.0.insert(key.into(), value.into());
    }

    /// Returns true if there are no acting settings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the settings of some keys and everything beneath them: `plan.checks` includes
    /// `plan.checks.test.command`.
    pub fn select_keys(&self, keys: &[&str]) -> ActingSettings {
        let wanted = |full: &str| keys.iter().any(|key| is_beneath(full, key));
        self.iter().filter(|(full, _)| wanted(full)).collect()
    }

    /// Computes the digest of all keys and values.
    pub fn digest(&self) -> ContentDigest {
        let mut text = DIGEST_LABEL.to_owned();
        for (key, value) in self.iter() {
            // The lengths make the text unambiguous: different settings never give the same text.
            text.push_str(&format!("{}:{key}={}:{value}\n", key.len(), value.len()));
        }
        ContentDigest::hash_bytes(text.as_bytes())
    }

    /// Compares with the settings that were agreed to, and returns every key of either, sorted.
    pub fn compared_with<'a>(
        &'a self,
        agreed: &'a ActingSettings,
    ) -> BTreeMap<&'a str, SettingChange<'a>> {
        let removed = agreed.iter().map(|(key, before)| (key, SettingChange::Removed(before)));
        let mut all: BTreeMap<&str, SettingChange<'_>> = removed.collect();
        for (key, now) in self.iter() {
            let change = match agreed.0.get(key) {
                None => SettingChange::Added(now),
                Some(before) if before == now => SettingChange::Same(now),
                Some(before) => SettingChange::Changed { before, now },
            };
            all.insert(key, change);
        }
        all
    }
}

/// Returns true if a full key is `key` itself or beneath it.
fn is_beneath(full: &str, key: &str) -> bool {
    full.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for ActingSettings {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(settings: I) -> Self {
        let pairs = settings.into_iter().map(|(key, value)| (key.into(), value.into()));
        ActingSettings(pairs.collect())
    }
}

/// The acting settings of a project that the user has agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinnedSettings {
    /// The digest that has to match.
    pub(super) digest: ContentDigest,
    /// The settings, so that changes can be shown.
    pub(super) settings: ActingSettings,
}

impl PinnedSettings {
    pub(super) fn from_settings(settings: &ActingSettings) -> Self {
        PinnedSettings { digest: settings.digest(), settings: settings.clone() }
    }

    /// Returns true if the settings of these keys are those that were agreed to.
    pub(super) fn covers(&self, settings: &ActingSettings, keys: &[&str]) -> bool {
        self.digest == self.settings.digest()
            && self.settings.select_keys(keys) == settings.select_keys(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_every_key_and_value_apart() {
        let lists: [&[(&str, &str)]; 6] = [
            &[],
            &[("a", "1")],
            &[("a", "2")],
            &[("b", "1")],
            &[("a", "1"), ("b", "2")],
            &[("a", "1\n1:b=1:2")],
        ];
        let digests = lists.map(|list| list.iter().copied().collect::<ActingSettings>().digest());
        let different: std::collections::BTreeSet<String> =
            digests.iter().map(ToString::to_string).collect();
        assert_eq!(different.len(), lists.len());
    }

    #[test]
    fn a_comparison_has_what_is_new_gone_and_different() {
        let agreed = ActingSettings::from_iter([("a", "1"), ("b", "1"), ("c", "1")]);
        let now = ActingSettings::from_iter([("a", "1"), ("b", "2"), ("d", "1")]);
        let compared: Vec<_> = now.compared_with(&agreed).into_iter().collect();
        assert_eq!(
            compared,
            [
                ("a", SettingChange::Same("1")),
                ("b", SettingChange::Changed { before: "1", now: "2" }),
                ("c", SettingChange::Removed("1")),
                ("d", SettingChange::Added("1")),
            ]
        );
    }
}
