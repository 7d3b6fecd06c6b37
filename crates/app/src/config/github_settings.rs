//! The settings that decide which GitHub events start a run, and who may trigger one.

use repertoire_github::actor::ActorRules;
use repertoire_github::trigger::TriggerSettings;

use super::RepConfig;

impl RepConfig {
    /// Returns the settings that decide which events start a mode. `prompt` and `mode` are the
    /// values given by the caller.
    pub fn trigger_settings(&self, prompt: Option<&str>, mode: Option<&str>) -> TriggerSettings {
        let (values, usual) = (self.values(), TriggerSettings::default());
        TriggerSettings {
            phrase: non_empty(&values.github_trigger_phrase).unwrap_or(usual.phrase),
            label: non_empty(&values.github_label_trigger),
            assignee: values.github_assignee_trigger.as_deref().and_then(non_empty),
            task_label: non_empty(&values.github_task_label).unwrap_or(usual.task_label),
            bot_login: non_empty(&values.github_bot_login).unwrap_or(usual.bot_login),
            also_own: Vec::new(),
            continuous: values.github_continuous_enabled,
            prompt: prompt.map(str::to_owned),
            manual: mode.is_some(),
        }
    }

    /// Returns the rules on who may trigger a run.
    pub fn github_rules(&self) -> ActorRules {
        let values = self.values();
        ActorRules {
            allowed_bots: values.github_allowed_bots.clone(),
            allowed_non_write_users: values.github_allowed_non_write_users.clone(),
            bot_login: self.trigger_settings(None, None).bot_login,
            also_own: Vec::new(),
        }
    }
}

/// Returns the text without spaces around it. `None` if nothing is left, which switches a trigger off.
fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
