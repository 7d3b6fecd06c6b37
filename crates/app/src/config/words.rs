//! Keys whose value is one of a few words, and the words of each.

use repertoire_agent::permission::PermissionMode;
use repertoire_journal::QueueOrder;
use repertoire_plan::PlanDeliveryMode;
use repertoire_review::extract::ReviewSeverity;
use repertoire_review::record::ReviewDepth;
use toml::Value;

use super::key_table::ConfigValueKind;
use super::value::{ConfigValue, PathAnchors};

/// Whether commands of agents run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxSetting {
    /// Use a sandbox if this machine has one.
    Auto,
    Off,
    /// Run nothing without a sandbox.
    Require,
}

/// The findings that make a review fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewFailOn {
    /// Findings of this severity and above.
    Severity(ReviewSeverity),
    Never,
}

/// Makes a type the value of keys, given its words in the order in which people see them.
macro_rules! config_words {
    ($type:ty { $($word:literal => $value:expr,)* }) => {
        impl ConfigValue for $type {
            const KIND: ConfigValueKind = ConfigValueKind::Word(&[$($word),*]);

            fn from_toml(value: &Value, _: &PathAnchors<'_>) -> Option<Self> {
                match value.as_str()? {
                    $($word => Some($value),)*
                    _ => None,
                }
            }
        }
    };
}

config_words!(PermissionMode {
    "default" => PermissionMode::Default,
    "read-only" => PermissionMode::ReadOnly,
    "accept-edits" => PermissionMode::AcceptEdits,
    "full" => PermissionMode::Full,
});

config_words!(SandboxSetting {
    "auto" => SandboxSetting::Auto,
    "off" => SandboxSetting::Off,
    "require" => SandboxSetting::Require,
});

config_words!(ReviewDepth {
    "quick" => ReviewDepth::Quick,
    "deep" => ReviewDepth::Deep,
});

config_words!(ReviewSeverity {
    "critical" => ReviewSeverity::Critical,
    "major" => ReviewSeverity::Major,
    "minor" => ReviewSeverity::Minor,
    "suggestion" => ReviewSeverity::Suggestion,
});

config_words!(ReviewFailOn {
    "critical" => ReviewFailOn::Severity(ReviewSeverity::Critical),
    "major" => ReviewFailOn::Severity(ReviewSeverity::Major),
    "minor" => ReviewFailOn::Severity(ReviewSeverity::Minor),
    "suggestion" => ReviewFailOn::Severity(ReviewSeverity::Suggestion),
    "never" => ReviewFailOn::Never,
});

config_words!(PlanDeliveryMode {
    "keep" => PlanDeliveryMode::Keep,
    "merge" => PlanDeliveryMode::Merge,
    "squash" => PlanDeliveryMode::Squash,
    "branch" => PlanDeliveryMode::Branch,
});

config_words!(QueueOrder {
    "fifo" => QueueOrder::Fifo,
    "newest" => QueueOrder::NewestFirst,
});
