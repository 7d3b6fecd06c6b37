//! The configuration of a system, apart from the options of each run.

use std::collections::BTreeMap;

use repertoire_model::ModelName;
use repertoire_model::client::CallTimeouts;
use repertoire_model::retry::RetryPolicy;
use repertoire_select::SelectionSettings;
use repertoire_skill::activate::{ActivationBudget, ReferenceMode};

use crate::limits::CATALOG_CHARS_MAX;
use crate::permission::RunPermissions;
use crate::spending::RunLimits;
use repertoire_sandbox::limits::ToolLimits;

/// The model to use if none is configured.
pub const DEFAULT_MODEL: &str = "anthropic/claude-haiku-4-5";

/// The configuration of a system. [`AgentConfig::default`] is the behaviour of `rep` without a
/// configuration file.
///
/// ```
/// use repertoire_agent::AgentConfig;
///
/// let mut config = AgentConfig::default();
/// config.auto_trigger.max_skills = 1;
/// config.limits.cost_usd_max = Some(0.50);
/// assert_eq!(config.auto_trigger.threshold, 0.6);
/// ```
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The model for agents that don't specify one.
    pub model: ModelName,
    /// Settings for selecting skills: `skills.auto_trigger`.
    pub auto_trigger: SelectionSettings,
    /// Limits on the text of a skill in a conversation.
    pub skill_budget: ActivationBudget,
    /// Controls whether references are loaded together with their skill.
    pub references: ReferenceMode,
    /// The maximum length of the skill list in the `skill` tool's description, in characters.
    pub catalog_chars_max: usize,
    pub permissions: RunPermissions,
    pub limits: RunLimits,
    pub tools: ToolLimits,
    /// The timeouts of model calls.
    pub timeouts: CallTimeouts,
    /// The retry policy of model calls.
    pub retry: RetryPolicy,
    /// The number of earlier uses of each skill, which slightly raises its score in selection.
    pub usage: BTreeMap<String, u32>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        AgentConfig {
            model: DEFAULT_MODEL.parse().expect("the constant is a model's name"),
            auto_trigger: SelectionSettings::default(),
            skill_budget: ActivationBudget::default(),
            references: ReferenceMode::OnDemand,
            catalog_chars_max: CATALOG_CHARS_MAX,
            permissions: RunPermissions::default(),
            limits: RunLimits::default(),
            tools: ToolLimits::default(),
            timeouts: CallTimeouts::default(),
            retry: RetryPolicy::default(),
            usage: BTreeMap::new(),
        }
    }
}
