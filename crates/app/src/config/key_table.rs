//! The mechanism behind the table of keys: one macro makes the keys, the struct of their values, and the code that
//! reads the values.

use camino::Utf8Path;
use toml::Value;

use super::value::{ConfigValue, PathAnchors};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigValueKind {
    /// `true` or `false`.
    Bool,
    /// A whole number from 0.
    Number,
    /// A number from 0 to 1.
    Share,
    /// A path. Relative paths start from the file's folder.
    Path,
    /// A list of paths.
    Paths,
    /// One of the profiles.
    Profile,
    /// A text.
    Text,
    /// A number from 0, with a fraction.
    Amount,
    /// A time such as `10m`.
    Duration,
    /// A number of bytes, or a text such as `512MiB`.
    Size,
    /// The name of a model, `service/model`.
    Model,
    /// One of the given words.
    Word(&'static [&'static str]),
    /// Permission rules such as `bash(git status:*)`. A project's rules are added to the user's.
    Rules,
    /// A table with keys of its own.
    Table,
    /// A list of texts.
    Texts,
    /// A text that is not displayed.
    Secret,
}

/// The sources that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The user and every project: a preference, or a rule that forbids more.
    Anyone,
    /// The user, and a project once the user has agreed to the value: it starts programs, gives
    /// them network access, or lets them read more.
    UserOrConsentedProject,
    /// The user and the base branch. Only `rep github run` uses it, and that reads nothing from a
    /// pull request.
    UserOrBaseBranch,
    /// Only the user: it decides where data goes, raises a limit, weakens the sandbox, or grants
    /// trust.
    User,
}

/// A configuration key. The keys are the fields of [`KEY`](super::KEY), and there are no others.
#[derive(Debug)]
pub struct ConfigKey {
    pub name: &'static str,
    pub shape: ConfigValueKind,
    /// The default, as TOML. Empty for none.
    pub default: &'static str,
    /// A description for people.
    pub about: &'static str,
    pub set_by: SetBy,
    /// Returns true if the value can be read as one of this key.
    pub(super) accepts: fn(&Value) -> bool,
}

/// Each key exists once, so that its address identifies it.
impl PartialEq for ConfigKey {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ConfigKey {}

/// Makes the items of the configuration from the table of keys: `ConfigValues`, `ConfigKeys`, `KEY` and `KEYS`.
macro_rules! config_keys {
    ($($field:ident($name:literal): $type:ty $(= $default:literal)?, $set_by:ident, $about:literal;)*) => {
        /// The effective values of all keys, one field a key.
        #[derive(Clone, Debug)]
        pub struct ConfigValues {
            $(#[doc = $about] pub $field: field_type!($type $(, $default)?),)*
        }

        impl ConfigValues {
            /// Reads the values of all settings. Relative paths start from the folder of their setting.
            pub(super) fn read(settings: &[ConfigSetting], home: &camino::Utf8Path) -> Self {
                ConfigValues {
                    $($field: read_field!((settings, &KEY.$field, home), $type $(, $default)?),)*
                }
            }
        }

        /// All keys, with the same fields as [`ConfigValues`].
        pub struct ConfigKeys {
            $(#[doc = concat!("`", $name, "`")] pub $field: ConfigKey,)*
        }

        /// The keys by field, for code that needs the name or the origin of a value.
        pub static KEY: ConfigKeys = ConfigKeys {
            $($field: ConfigKey {
                name: $name,
                shape: <$type as ConfigValue>::KIND,
                default: concat!("" $(, $default)?),
                about: $about,
                set_by: SetBy::$set_by,
                accepts: accepts_value::<$type>,
            },)*
        };

        /// The keys in the order of the table.
        pub static KEYS: &[&ConfigKey] = &[$(&KEY.$field),*];

        $(const _: () = assert!(
            is_field_name(stringify!($field), $name),
            concat!("the field of `", $name, "` is to be named like the key, with `_` for `.`")
        );)*
    };
}

/// The type of a field: optional if the key has no default.
macro_rules! field_type {
    ($type:ty) => { Option<$type> };
    ($type:ty, $default:literal) => { $type };
}

/// Reads the value of a field from the settings.
macro_rules! read_field {
    (($($source:expr),*), $type:ty) => { $crate::config::value::read_optional::<$type>($($source),*) };
    (($($source:expr),*), $type:ty, $default:literal) => {
        $crate::config::value::read_required::<$type>($($source),*)
    };
}

pub(super) use {config_keys, field_type, read_field};

/// Returns true if a value can be read as a `T`. Where paths start from does not matter for that.
pub(super) fn accepts_value<T: ConfigValue>(value: &Value) -> bool {
    let nowhere = Utf8Path::new("");
    T::from_toml(value, &PathAnchors { base: nowhere, home: nowhere }).is_some()
}

/// Returns true if `field` is the name of the key with `_` for `.`.
pub(super) const fn is_field_name(field: &str, name: &str) -> bool {
    let (field, name) = (field.as_bytes(), name.as_bytes());
    let mut at = 0;
    while at < field.len() && at < name.len() {
        let wanted = if name[at] == b'.' { b'_' } else { name[at] };
        if field[at] != wanted {
            return false;
        }
        at += 1;
    }
    field.len() == name.len()
}
