//! The configuration of a system, apart from the options of each run.

use std::collections::BTreeMap;

use repertoire_model::ModelName;
use repertoire_model::client::Timeouts;
use repertoire_model::retry::Policy;
use repertoire_select::Settings;
use repertoire_skill::activate::{Budget, References};

use crate::limits::CATALOG_CHARS_MAX;
use crate::permission::Permissions;
use crate::spending::RunLimits;
use repertoire_sandbox::limits::ToolLimits;

/// The model to use if none is configured.
pub const DEFAULT_MODEL: &str = "anthropic/claude-haiku-4-5";

/// The configuration of a system. [`Config::default`] is the behaviour of `rep` without a
/// configuration file.
///
/// ```
/// use repertoire_agent::Config;
///
/// let mut config = Config::default();
/// config.auto_trigger.max_skills = 1;
/// config.limits.cost_usd_max = Some(0.50);
/// assert_eq!(config.auto_trigger.threshold, 0.6);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The model for agents that don't specify one.
    pub model: ModelName,
    /// Settings for selecting skills: `skills.auto_trigger`.
    pub auto_trigger: Settings,
    /// Limits on the text of a skill in a conversation.
    pub skill_budget: Budget,
    /// Controls whether references are loaded together with their skill.
    pub references: References,
    /// The maximum length of the skill list in the `skill` tool's description, in characters.
    pub catalog_chars_max: usize,
    pub permissions: Permissions,
    pub limits: RunLimits,
    pub tools: ToolLimits,
    /// The timeouts of model calls.
    pub timeouts: Timeouts,
    /// The retry policy of model calls.
    pub retry: Policy,
    /// The number of earlier uses of each skill, which slightly raises its score in selection.
    pub usage: BTreeMap<String, u32>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: DEFAULT_MODEL.parse().expect("the constant is a model's name"),
            auto_trigger: Settings::default(),
            skill_budget: Budget::default(),
            references: References::OnDemand,
            catalog_chars_max: CATALOG_CHARS_MAX,
            permissions: Permissions::default(),
            limits: RunLimits::default(),
            tools: ToolLimits::default(),
            timeouts: Timeouts::default(),
            retry: Policy::default(),
            usage: BTreeMap::new(),
        }
    }
}
