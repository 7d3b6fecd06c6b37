//! The builder of a [`System`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_model::prices::ModelPrices;
use repertoire_model::{ModelClient, ModelEndpoints, ModelProvider};
use repertoire_select::{SelectionModel, SelectionSettings, SkillSelector};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::profile::{ProfileId, Root, RootContents, SearchDirectories};

use super::{System, SystemInner};
use crate::config::AgentConfig;
use crate::event::EventSink;
use crate::middleware::{TurnMiddleware, standard_chain};
use crate::tool::Tool;
use crate::tools::{self, ResearchSettings};
use repertoire_sandbox::confinement::LazySandbox;
use repertoire_text::clock::{Clock, SystemClock};

#[derive(Debug, thiserror::Error)]
pub enum SystemBuildError {
    #[error("there is no folder {path} to take {what} from")]
    NoFolder {
        path: Utf8PathBuf,
        /// Either "skills" or "agents".
        what: &'static str,
    },
    #[error("two tools are called `{name}`")]
    TwoTools { name: String },
    #[error("the working folder {path} cannot be used: {source}")]
    WorkDir { path: Utf8PathBuf, source: std::io::Error },
    #[error("no temporary folder for output can be made: {source}; name one with `spill_dir`")]
    SpillDir { source: std::io::Error },
}

/// Creates a selector for a catalog.
pub type SelectorFactory = Arc<dyn Fn(&Catalog, SelectionSettings) -> SkillSelector + Send + Sync>;

/// Builds a [`System`].
#[must_use]
pub struct SystemBuilder {
    roots: Vec<Root>,
    request: Option<DiscoveryRequest>,
    make_selector: SelectorFactory,
    research: ResearchSettings,
    config: AgentConfig,
    endpoints: ModelEndpoints,
    provider: Option<Arc<dyn ModelProvider>>,
    prices: ModelPrices,
    own_tools: Vec<Arc<dyn Tool>>,
    own_middleware: Vec<Arc<dyn TurnMiddleware>>,
    work_dir: Utf8PathBuf,
    spill_dir: Option<Utf8PathBuf>,
    environment: Vec<(String, String)>,
    sandbox: LazySandbox,
    sink: Option<EventSink>,
    clock: Arc<dyn Clock>,
}

impl Default for SystemBuilder {
    fn default() -> Self {
        SystemBuilder {
            roots: Vec::new(),
            request: None,
            make_selector: Arc::new(|catalog, settings| {
                SkillSelector::from_catalog(catalog, SelectionModel::embedded(), settings)
            }),
            research: ResearchSettings::default(),
            config: AgentConfig::default(),
            endpoints: ModelEndpoints::default(),
            provider: None,
            prices: ModelPrices::builtin(),
            own_tools: Vec::new(),
            own_middleware: Vec::new(),
            work_dir: Utf8PathBuf::from("."),
            spill_dir: None,
            environment: Vec::new(),
            sandbox: LazySandbox::default(),
            sink: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl SystemBuilder {
    /// Adds agents from a folder of Markdown files. If called repeatedly, earlier folders take
    /// precedence.
    pub fn agents_from(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.roots.push(Root { holds: RootContents::Agents, ..Root::named_by_user(dir) });
        self
    }

    /// Adds skills from a folder. If called repeatedly, earlier folders take precedence. These
    /// skills are trusted.
    pub fn skills_from(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.roots.push(Root::named_by_user(dir));
        self
    }

    /// Adds skills and agents from the locations of a profile, in addition to explicit folders.
    pub fn discover(mut self, request: DiscoveryRequest) -> Self {
        self.request = Some(request);
        self
    }

    /// Sets how the selector for a catalog is created when it is first needed: with other vectors,
    /// or with an index that was saved to disk.
    pub fn selector(mut self, make: SelectorFactory) -> Self {
        self.make_selector = make;
        self
    }

    /// Sets which addresses the `research` tool may reach.
    pub fn research(mut self, settings: ResearchSettings) -> Self {
        self.research = settings;
        self
    }

    /// Sets the configuration.
    pub fn config(mut self, config: AgentConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the addresses and credentials of model services.
    pub fn endpoints(mut self, endpoints: ModelEndpoints) -> Self {
        self.endpoints = endpoints;
        self
    }

    /// Replaces the HTTP client by another provider.
    pub fn provider(mut self, provider: Arc<dyn ModelProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets the price list of models.
    pub fn prices(mut self, prices: ModelPrices) -> Self {
        self.prices = prices;
        self
    }

    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.own_tools.push(tool);
        self
    }

    /// Adds a middleware to every turn, right before the model call.
    pub fn middleware(mut self, link: Arc<dyn TurnMiddleware>) -> Self {
        self.own_middleware.push(link);
        self
    }

    /// Sets the working folder of tools; the current folder by default.
    pub fn work_dir(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.work_dir = dir.into();
        self
    }

    /// Sets the folder for output that is too large for a conversation, and for private folders of
    /// programs. By default, a temporary folder that is deleted with the system. Don't choose a
    /// folder inside the working folder: programs could change its contents.
    pub fn spill_dir(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.spill_dir = Some(dir.into());
        self
    }

    /// Sets the environment of programs that tools start. Empty by default.
    pub fn environment(mut self, environment: Vec<(String, String)>) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the sandbox for programs. There is none by default, and then commands need permission.
    pub fn sandbox(mut self, sandbox: impl Into<LazySandbox>) -> Self {
        self.sandbox = sandbox.into();
        self
    }

    /// Sets a sink for all events.
    pub fn on_event(mut self, sink: EventSink) -> Self {
        self.sink = Some(sink);
        self
    }

    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the system. Loads skills and agents; does not use the network.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder is missing or two tools have the same name.
    pub fn build(self) -> Result<System, SystemBuildError> {
        let work_dir = self
            .work_dir
            .canonicalize_utf8()
            .map_err(|source| SystemBuildError::WorkDir { path: self.work_dir.clone(), source })?;
        for root in &self.roots {
            if !root.dir.is_dir() {
                let what = if root.holds == RootContents::Agents { "agents" } else { "skills" };
                return Err(SystemBuildError::NoFolder { path: root.dir.clone(), what });
            }
        }
        let request = match self.request {
            Some(mut request) => {
                request.extra_roots.splice(0..0, self.roots);
                request
            }
            None => explicit_roots_request(self.roots, &work_dir),
        };
        let mut tools = tools::builtin_tools_with(self.research);
        tools.extend(self.own_tools);
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SystemBuildError::TwoTools { name: twice[0].to_owned() });
        }
        let (spill_dir, own_spill_dir) = match self.spill_dir {
            Some(dir) => (dir, None),
            None => {
                let (dir, keep) = create_temp_dir_outside(&work_dir)
                    .map_err(|source| SystemBuildError::SpillDir { source })?;
                (dir, Some(Arc::new(keep)))
            }
        };
        let library = SkillLibrary::open(request);
        let prices = self.prices;
        let provider = self.provider.unwrap_or_else(|| {
            Arc::new(
                ModelClient::new(self.endpoints, self.config.timeouts).with_prices(prices.clone()),
            )
        });
        Ok(System {
            inner: Arc::new(SystemInner {
                library: Arc::new(library),
                is_fresh: Arc::new(AtomicBool::new(true)),
                selector: Default::default(),
                make_selector: self.make_selector,
                provider,
                prices,
                breakers: Arc::default(),
                config: self.config,
                tools,
                chain: standard_chain(self.own_middleware),
                work_dir,
                spill_dir,
                _own_spill_dir: own_spill_dir,
                readable: Vec::new(),
                environment: self.environment,
                sandbox: self.sandbox,
                sink: self.sink,
                clock: self.clock,
                conversations: Default::default(),
                places_at_work: Default::default(),
            }),
        })
    }
}

/// Creates a temporary folder outside of the working folder, if possible.
fn create_temp_dir_outside(
    work_dir: &Utf8Path,
) -> std::io::Result<(Utf8PathBuf, tempfile::TempDir)> {
    let usual = std::env::temp_dir();
    let places = [usual.as_path(), Path::new("/var/tmp"), Path::new("/dev/shm")];
    let is_outside = |place: &&&Path| {
        place.canonicalize().is_ok_and(|place| !place.starts_with(work_dir.as_std_path()))
    };
    let place = places.iter().find(is_outside).copied().unwrap_or(&usual);
    let keep = tempfile::Builder::new().prefix("repertoire-").tempdir_in(place)?;
    let dir = Utf8PathBuf::from_path_buf(keep.path().canonicalize()?)
        .map_err(|path| std::io::Error::other(format!("`{}` is not UTF-8", path.display())))?;
    Ok((dir, keep))
}

/// A discovery request for the named folders only.
fn explicit_roots_request(roots: Vec<Root>, work_dir: &Utf8Path) -> DiscoveryRequest {
    let places = SearchDirectories {
        here: work_dir.to_owned(),
        home: work_dir.to_owned(),
        pack: work_dir.to_owned(),
    };
    let mut request = DiscoveryRequest::new(ProfileId::Repertoire, places);
    request.roots = Some(roots);
    request.sync_pack = false;
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_folders_are_outside_of_the_working_folder_by_default() {
        let keep = tempfile::tempdir().unwrap();
        let work = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        for work in [work.clone(), work.parent().unwrap().to_owned()] {
            let system = SystemBuilder::default().work_dir(&work).build().unwrap();
            let spill = system.workplace_of("x").spill_dir;
            assert!(!spill.starts_with(&work), "{spill} is in {work}");
            assert!(spill.parent().unwrap().is_dir());
        }
    }
}
