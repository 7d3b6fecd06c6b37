//! The environment variables of a workflow run, as a value.

/// The variables set by Actions, as far as they are used. An empty one counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionsEnvironment {
    /// `GITHUB_EVENT_NAME`.
    pub event_name: Option<String>,
    /// `GITHUB_EVENT_PATH`: the file with the payload.
    pub event_path: Option<String>,
    /// `GITHUB_REPOSITORY`: `owner/name`.
    pub repository: Option<String>,
    /// `GITHUB_ACTOR`: the account that caused the first attempt.
    pub actor: Option<String>,
    /// `GITHUB_TRIGGERING_ACTOR`: the account that caused this attempt.
    pub triggering_actor: Option<String>,
    /// `GITHUB_RUN_ID`.
    pub run_id: Option<String>,
    /// `GITHUB_RUN_ATTEMPT`: the number of the attempt, from 1.
    pub run_attempt: Option<String>,
    /// `GITHUB_SERVER_URL`: the base URL of the website.
    pub server_url: Option<String>,
    /// `GITHUB_SHA`: the commit.
    pub sha: Option<String>,
    /// `GITHUB_REF_NAME`: the branch or tag.
    pub ref_name: Option<String>,
}

impl ActionsEnvironment {
    /// Selects the used variables of an environment.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> ActionsEnvironment
    where
        N: AsRef<str>,
        V: Into<String>,
    {
        let mut around = ActionsEnvironment::default();
        for (name, value) in pairs {
            let value = value.into();
            if let Some(place) = around.field_of(name.as_ref())
                && !value.trim().is_empty()
            {
                *place = Some(value);
            }
        }
        around
    }

    /// Returns true if this is not the first attempt of the run.
    pub fn is_rerun(&self) -> bool {
        self.run_attempt.as_deref().is_some_and(|attempt| attempt.trim() != "1")
    }

    fn field_of(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "GITHUB_EVENT_NAME" => Some(&mut self.event_name),
            "GITHUB_EVENT_PATH" => Some(&mut self.event_path),
            "GITHUB_REPOSITORY" => Some(&mut self.repository),
            "GITHUB_ACTOR" => Some(&mut self.actor),
            "GITHUB_TRIGGERING_ACTOR" => Some(&mut self.triggering_actor),
            "GITHUB_RUN_ID" => Some(&mut self.run_id),
            "GITHUB_RUN_ATTEMPT" => Some(&mut self.run_attempt),
            "GITHUB_SERVER_URL" => Some(&mut self.server_url),
            "GITHUB_SHA" => Some(&mut self.sha),
            "GITHUB_REF_NAME" => Some(&mut self.ref_name),
            _ => None,
        }
    }
}
