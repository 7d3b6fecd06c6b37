//! The settings that decide which GitHub events start a run, and who may trigger one.

use repertoire_github::actor::ActorRules;
use repertoire_github::trigger::TriggerSettings;

use super::RepConfig;

impl RepConfig {
    /// Returns the settings that decide which events start a mode. `prompt` and `mode` are the
    /// values given by the caller.
    pub fn trigger_settings(&self, prompt: Option<&str>, mode: Option<&str>) -> TriggerSettings {
        let usual = TriggerSettings::default();
        let text = |key: &str| self.get_text(key).map(str::trim).filter(|text| !text.is_empty());
        let or = |key: &str, usual: String| text(key).map_or(usual, str::to_owned);
        TriggerSettings {
            phrase: or("github.trigger_phrase", usual.phrase),
            label: text("github.label_trigger").map(str::to_owned),
            assignee: text("github.assignee_trigger").map(str::to_owned),
            task_label: or("github.task_label", usual.task_label),
            bot_login: or("github.bot_login", usual.bot_login),
            also_own: Vec::new(),
            continuous: self.get_bool("github.continuous.enabled"),
            prompt: prompt.map(str::to_owned),
            manual: mode.is_some(),
        }
    }

    /// Returns the rules on who may trigger a run.
    pub fn github_rules(&self) -> ActorRules {
        ActorRules {
            allowed_bots: self.get_texts("github.allowed_bots"),
            allowed_non_write_users: self.get_texts("github.allowed_non_write_users"),
            bot_login: self.trigger_settings(None, None).bot_login,
            also_own: Vec::new(),
        }
    }
}
