//! How a system behaves, apart from what each run asks for.

use std::collections::BTreeMap;

use repertoire_model::ModelName;
use repertoire_model::client::Timeouts;
use repertoire_model::retry::Policy;
use repertoire_select::Settings;
use repertoire_skill::activate::{Budget, References};

use crate::limits::CATALOG_CHARS_MAX;
use repertoire_sandbox::limits::ToolLimits;
use crate::permission::Permissions;
use crate::spending::RunLimits;

/// The model when nobody says which.
pub const DEFAULT_MODEL: &str = "anthropic/claude-haiku-4-5";

/// How a system behaves. [`Config::default`] is what `rep` does without a configuration file.
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
    /// The model of agents that ask for none.
    pub model: ModelName,
    /// How skills are chosen for a task: `skills.auto_trigger`.
    pub auto_trigger: Settings,
    /// How much of a skill goes into a conversation.
    pub skill_budget: Budget,
    /// Whether references go in with a skill.
    pub references: References,
    /// Most characters of the list of skills in the `skill` tool's description.
    pub catalog_chars_max: usize,
    /// Who may do what.
    pub permissions: Permissions,
    /// What a run may use.
    pub limits: RunLimits,
    /// Caps on tools.
    pub tools: ToolLimits,
    /// How long to wait for a model.
    pub timeouts: Timeouts,
    /// When and how often a failed call of the model is made again.
    pub retry: Policy,
    /// How often each skill was used before, which makes it a little likelier to be chosen.
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
