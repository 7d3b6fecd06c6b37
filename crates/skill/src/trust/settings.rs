//! The settings of a project that start programs, widen the sandbox or open the network, in a form that can be shown,
//! compared and pinned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::skill::Digest;

/// The first line of the text that is digested, so that no other text of the program has the same digest.
const DIGEST_LABEL: &str = "repertoire acting settings 1\n";

/// Acting settings by their full key, such as `plan.checks.test.command`, each with its value as TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActingSettings(BTreeMap<String, String>);

/// A difference between the settings that were agreed to and those that are there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange<'a> {
    /// The value is the same.
    Same(&'a str),
    /// The key is new.
    Added(&'a str),
    /// The key is gone.
    Removed(&'a str),
    /// The value is another one.
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

    /// Whether nothing acts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The settings of some keys, with everything beneath them: `plan.checks` has `plan.checks.test.command`.
    pub fn part(&self, keys: &[&str]) -> ActingSettings {
        let is_beneath = |full: &str, key: &str| {
            full.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let wanted = |full: &str| keys.iter().any(|key| is_beneath(full, key));
        self.iter().filter(|(full, _)| wanted(full)).collect()
    }

    /// The digest of all keys and values.
    pub fn digest(&self) -> Digest {
        let mut text = DIGEST_LABEL.to_owned();
        for (key, value) in self.iter() {
            // With their lengths, no two lists of settings make the same text.
            text.push_str(&format!("{}:{key}={}:{value}\n", key.len(), value.len()));
        }
        Digest::of(text.as_bytes())
    }

    /// Every key of either, sorted, with how its value differs from the one that was agreed to.
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

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for ActingSettings {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(settings: I) -> Self {
        let pairs = settings.into_iter().map(|(key, value)| (key.into(), value.into()));
        ActingSettings(pairs.collect())
    }
}

/// The acting settings of a project that a person has agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinnedSettings {
    /// The digest that has to be the same.
    pub(super) digest: Digest,
    /// The settings, so that changes can be shown.
    pub(super) settings: ActingSettings,
}

impl PinnedSettings {
    pub(super) fn of(settings: &ActingSettings) -> Self {
        PinnedSettings { digest: settings.digest(), settings: settings.clone() }
    }

    /// Whether the settings of these keys are those that were agreed to.
    pub(super) fn covers(&self, settings: &ActingSettings, keys: &[&str]) -> bool {
        self.digest == self.settings.digest() && self.settings.part(keys) == settings.part(keys)
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
