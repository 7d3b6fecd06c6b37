//! Assembles the services behind `rep serve` and `rep mcp` from the configuration.

use std::sync::Arc;

use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::system::RunOptions;
use repertoire_journal::{Journal, Target};
use repertoire_select::SelectionSettings;
use repertoire_serve::ServeState;
use repertoire_serve::serve_state::{
    JournalOpener, PromptBuilder, PromptError, PromptRequest, ServeExtras, ServeParts,
};
use repertoire_skill::library::SkillLibrary;
use repertoire_text::clock::{Clock as _, SystemClock};

use crate::cli::CliContext;
use crate::failure::CliFailure;
use repertoire::agent_setup::{AgentRunOptions, build_failure, load_definition};

impl CliContext<'_> {
    /// Returns the services for agents (MCP), without those that only the web page needs.
    pub(crate) fn agent_services(&self) -> Result<ServeState, CliFailure> {
        Ok(ServeState::new(self.service_parts()?))
    }

    /// Returns all services, including those of the web page.
    pub(crate) fn all_services(&self) -> Result<ServeState, CliFailure> {
        let tools = self.env.tool_environment(false);
        let (preview, person) = (Some(self.make_prompt()?), Some(self.user_name()));
        Ok(ServeState::with_extras(
            self.service_parts()?,
            ServeExtras { tools, sandbox: self.configured_sandbox()?, preview, person },
        ))
    }

    fn service_parts(&self) -> Result<ServeParts, CliFailure> {
        Ok(ServeParts {
            library: Arc::new(SkillLibrary::open(self.config.discovery_request()?)),
            make_selector: self.make_selector()?,
            settings: self.config.selection_settings(),
            journal: open_journal(self.journal_target(None)),
            project: self.project_dir(None),
            data: self.env.data_dir(),
            workplace: self.make_workplace()?,
            clock: Arc::new(|| SystemClock.now_ms()),
        })
    }

    /// Returns a factory for the prompts that `rep run --dry-run` shows. MCP servers are not
    /// started for a preview, so their tools are missing.
    fn make_prompt(&self) -> Result<PromptBuilder, CliFailure> {
        let flags = AgentRunOptions::default();
        let system = self.system_builder(&flags)?.build().map_err(build_failure)?;
        let options = self.run_options(&flags)?;
        let configured = self.config.selection_settings();
        Ok(Arc::new(move |ask: PromptRequest| {
            let system = system.clone();
            let selection = SelectionSettings {
                max_skills: ask.max_skills.unwrap_or(configured.max_skills),
                threshold: ask.threshold.unwrap_or(configured.threshold),
                ..configured
            };
            let options = RunOptions {
                skills: ask.skills,
                paths: ask.paths,
                event: ask.event,
                selection: Some(selection),
                ..options.clone()
            };
            Box::pin(async move {
                let agent = ask.agent.as_deref().unwrap_or(DEFAULT_AGENT);
                load_definition(&system, agent)
                    .map_err(|failure| PromptError::NoAgent(failure.message))?;
                let made = system.preview(agent, ask.task, options).await;
                made.map_err(|error| PromptError::Refused(error.to_string()))
            })
        }))
    }
}

fn open_journal(target: Target) -> JournalOpener {
    Arc::new(move || {
        let target = target.clone();
        Box::pin(async move { Journal::open(&target, Arc::new(|| SystemClock.now_ms())).await })
    })
}
