//! A folder with skills and agents, a scripted model, and everything that happened.

use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use repertoire_agent::system::SystemBuilder;
use repertoire_agent::{AgentConfig, AgentEvent, EventKind, RunOptions, System};
use repertoire_model::{ModelEndpoint, ModelEndpoints, ModelService};
use repertoire_scripted::{ModelScript, RecordedRequest, ScriptedServer};
use repertoire_text::fs::write_atomic;

pub(crate) struct Workspace {
    _dir: tempfile::TempDir,
    pub(crate) here: Utf8PathBuf,
    pub(crate) server: ScriptedServer,
    events: Arc<Mutex<Vec<AgentEvent>>>,
}

impl Workspace {
    pub(crate) async fn new(script: ModelScript) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
        for name in ["agents", "library", "work"] {
            std::fs::create_dir(here.join(name)).unwrap();
        }
        let server = ScriptedServer::start(script).await;
        Workspace { _dir: dir, here, server, events: Arc::default() }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        write_atomic(&self.here.join(path), text.as_bytes()).unwrap();
        self
    }

    pub(crate) fn skill(&self, name: &str, frontmatter: &str, body: &str) -> &Self {
        let text = format!("---\nname: {name}\n{frontmatter}\n---\n{body}\n");
        self.write(&format!("library/{name}/SKILL.md"), &text)
    }

    pub(crate) fn agent(&self, name: &str, frontmatter: &str, body: &str) -> &Self {
        let text = format!("---\nname: {name}\n{frontmatter}\n---\n{body}\n");
        self.write(&format!("agents/{name}.md"), &text)
    }

    pub(crate) fn builder(&self) -> SystemBuilder {
        let url = self.server.url();
        let at = |base_url: String| ModelEndpoint {
            base_url,
            key: Some(repertoire_model::ApiSecret::new("key-under-test")),
        };
        let endpoints = ModelEndpoints::default()
            .with(ModelService::Anthropic, at(url.clone()))
            .with(ModelService::OpenAi, at(format!("{url}/v1")))
            .with(ModelService::Compat, at(format!("{url}/v1")));
        let events = self.events.clone();
        System::builder()
            .agents_from(self.here.join("agents"))
            .skills_from(self.here.join("library"))
            .work_dir(self.here.join("work"))
            .spill_dir(self.here.join("output"))
            .endpoints(endpoints)
            .environment(vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())])
            .on_event(Arc::new(move |event| events.lock().unwrap().push(event.clone())))
    }

    pub(crate) fn system(&self) -> System {
        self.builder().config(config()).build().unwrap()
    }

    /// What happened so far.
    pub(crate) fn kinds(&self) -> Vec<EventKind> {
        self.events.lock().unwrap().iter().map(|event| event.kind.clone()).collect()
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }
}

/// The usual configuration, with waits that suit a test.
pub(crate) fn config() -> AgentConfig {
    let mut config = AgentConfig::default();
    config.retry.initial_ms = 10;
    config
}

pub(crate) fn in_conversation(id: &str) -> RunOptions {
    RunOptions { conversation: Some(id.to_owned()), ..RunOptions::default() }
}
