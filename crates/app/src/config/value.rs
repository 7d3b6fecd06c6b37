//! The types of values: how each is read from TOML. A value that cannot be read is refused when its file is read, so
//! that the rest of the program only sees finished values.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_model::{ApiSecret, ModelName};
use repertoire_skill::profile::ProfileId;
use repertoire_text::duration::parse_duration;
use toml::Value;

use super::key_table::{ConfigKey, ConfigValueKind};
use super::origin::ConfigSetting;

/// A type that the value of a key can have.
pub(super) trait ConfigValue: Sized {
    const KIND: ConfigValueKind;

    /// Reads a value. `None` if it is not of this kind.
    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self>;
}

/// The folders that paths start from.
pub(super) struct PathAnchors<'a> {
    /// The folder of relative paths.
    pub(super) base: &'a Utf8Path,
    /// The folder that `~` stands for.
    pub(super) home: &'a Utf8Path,
}

impl PathAnchors<'_> {
    fn resolve(&self, text: &str) -> Utf8PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.base.join(text),
        }
    }
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareNumber(pub f64);

/// A number of bytes, which people may write as `512MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCount(pub u64);

/// Permission rules as they are written. They are parsed where they are used, since a wrong rule stops only commands
/// that start agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTexts(pub Vec<String>);

/// Reads the value of a key that may have none.
pub(super) fn read_optional<T: ConfigValue>(
    settings: &[ConfigSetting],
    key: &ConfigKey,
    home: &Utf8Path,
) -> Option<T> {
    let setting = settings.iter().find(|setting| setting.key == key)?;
    T::from_toml(setting.value.as_ref()?, &PathAnchors { base: &setting.base, home })
}

/// Reads the value of a key that has a default.
pub(super) fn read_required<T: ConfigValue>(
    settings: &[ConfigSetting],
    key: &ConfigKey,
    home: &Utf8Path,
) -> T {
    read_optional(settings, key, home)
        .expect("every layer is checked, and a test checks the defaults")
}

impl ConfigValue for bool {
    const KIND: ConfigValueKind = ConfigValueKind::Bool;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_bool()
    }
}

impl ConfigValue for u64 {
    const KIND: ConfigValueKind = ConfigValueKind::Number;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        u64::try_from(value.as_integer()?).ok()
    }
}

/// A larger number becomes the largest one: these are limits, where both mean the same.
impl ConfigValue for u32 {
    const KIND: ConfigValueKind = ConfigValueKind::Number;

    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self> {
        Some(u32::try_from(u64::from_toml(value, anchors)?).unwrap_or(u32::MAX))
    }
}

impl ConfigValue for usize {
    const KIND: ConfigValueKind = ConfigValueKind::Number;

    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self> {
        Some(usize::try_from(u64::from_toml(value, anchors)?).unwrap_or(usize::MAX))
    }
}

impl ConfigValue for f64 {
    const KIND: ConfigValueKind = ConfigValueKind::Amount;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        read_float(value).filter(|number| *number >= 0.0)
    }
}

impl ConfigValue for ShareNumber {
    const KIND: ConfigValueKind = ConfigValueKind::Share;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        read_float(value).filter(|number| (0.0..=1.0).contains(number)).map(ShareNumber)
    }
}

impl ConfigValue for ByteCount {
    const KIND: ConfigValueKind = ConfigValueKind::Size;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        if let Some(number) = value.as_integer() {
            return u64::try_from(number).ok().map(ByteCount);
        }
        parse_byte_count(value.as_str()?).map(ByteCount)
    }
}

impl ConfigValue for Duration {
    const KIND: ConfigValueKind = ConfigValueKind::Duration;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        parse_duration(value.as_str()?).ok()
    }
}

impl ConfigValue for String {
    const KIND: ConfigValueKind = ConfigValueKind::Text;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl ConfigValue for ApiSecret {
    const KIND: ConfigValueKind = ConfigValueKind::Secret;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_str().map(ApiSecret::new)
    }
}

impl ConfigValue for Vec<String> {
    const KIND: ConfigValueKind = ConfigValueKind::Texts;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

impl ConfigValue for RuleTexts {
    const KIND: ConfigValueKind = ConfigValueKind::Rules;

    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self> {
        Vec::from_toml(value, anchors).map(RuleTexts)
    }
}

impl ConfigValue for Utf8PathBuf {
    const KIND: ConfigValueKind = ConfigValueKind::Path;

    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self> {
        value.as_str().map(|text| anchors.resolve(text))
    }
}

impl ConfigValue for Vec<Utf8PathBuf> {
    const KIND: ConfigValueKind = ConfigValueKind::Paths;

    fn from_toml(value: &Value, anchors: &PathAnchors<'_>) -> Option<Self> {
        value.as_array()?.iter().map(|item| Utf8PathBuf::from_toml(item, anchors)).collect()
    }
}

impl ConfigValue for toml::Table {
    const KIND: ConfigValueKind = ConfigValueKind::Table;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_table().cloned()
    }
}

impl ConfigValue for ModelName {
    const KIND: ConfigValueKind = ConfigValueKind::Model;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        value.as_str()?.parse().ok()
    }
}

impl ConfigValue for ProfileId {
    const KIND: ConfigValueKind = ConfigValueKind::Profile;

    fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
        let word = value.as_str()?;
        ProfileId::ALL.iter().copied().find(|id| id.as_str() == word)
    }
}

/// Returns the value as a float. An integer such as `1` is accepted, too.
fn read_float(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// Parses a number of bytes, such as `512MiB`, `2GB` or `1048576`.
fn parse_byte_count(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1024,
        "m" | "mib" => 1024 * 1024,
        "g" | "gib" => 1024 * 1024 * 1024,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::key_table::is_field_name;
    use crate::config::layers::default_settings;
    use crate::config::{ConfigValues, KEYS};

    #[test]
    fn sizes_have_units_of_both_kinds() {
        let size = |value: Value| {
            let nowhere = PathAnchors { base: "".into(), home: "".into() };
            ByteCount::from_toml(&value, &nowhere).map(|count| count.0)
        };
        assert_eq!(size("2GiB".into()), Some(2_147_483_648));
        assert_eq!(size("512 MB".into()), Some(512_000_000));
        assert_eq!(size("64k".into()), Some(65_536));
        assert_eq!(size(7.into()), Some(7));
        for wrong in ["", "GiB", "-1", "1.5GiB", "2 parsecs", "99999999999999999999"] {
            assert_eq!(size(wrong.into()), None, "{wrong}");
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_key() {
        let settings = default_settings("/project".into());
        for (key, setting) in KEYS.iter().zip(&settings) {
            assert_eq!(setting.value.is_some(), !key.default.is_empty(), "{}", key.name);
            assert!(setting.value.as_ref().is_none_or(key.accepts), "{}", key.name);
        }
        let values = ConfigValues::read(&settings, "/home/u".into());
        assert_eq!(values.plan_step_time, Duration::from_secs(60 * 60));
        assert_eq!((values.plan_max_time, values.limits_command_disk), (None, ByteCount(1 << 31)));
    }

    #[test]
    fn every_word_of_a_key_is_accepted_and_no_other() {
        for key in KEYS {
            let ConfigValueKind::Word(words) = key.shape else { continue };
            assert!(words.iter().all(|word| (key.accepts)(&Value::from(*word))), "{}", key.name);
            assert!(!(key.accepts)(&Value::from("other")), "{}", key.name);
        }
    }

    #[test]
    fn limits_beyond_their_type_are_the_largest_ones() {
        let nowhere = PathAnchors { base: "".into(), home: "".into() };
        let large = Value::from(5_000_000_000_i64);
        assert_eq!(u32::from_toml(&large, &nowhere), Some(u32::MAX));
        assert_eq!(u32::from_toml(&Value::from(-1), &nowhere), None);
    }

    #[test]
    fn a_field_is_named_like_its_key() {
        assert!(is_field_name("plan_step_time", "plan.step_time"));
        for other in ["plan_step", "plan_step_time_max", "plan_stop_time"] {
            assert!(!is_field_name(other, "plan.step_time"), "{other}");
        }
    }

    #[test]
    fn a_secret_is_not_printed_with_the_values() {
        let mut settings = default_settings("/project".into());
        let secret = settings.iter_mut().find(|one| one.key.name == "database_url").unwrap();
        secret.value = Some(Value::from("postgres://u:hunter2@host/db"));
        let values = ConfigValues::read(&settings, "/home/u".into());
        assert_eq!(values.database_url.as_ref().unwrap().reveal(), "postgres://u:hunter2@host/db");
        assert!(!format!("{values:?}").contains("hunter2"));
    }
}
