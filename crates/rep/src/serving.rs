//! From the configuration to a house that can be served.

use std::sync::Arc;

use repertoire_agent::clock::{Clock as _, SystemClock};
use repertoire_serve::House;
use repertoire_serve::house::{Extras, Parts};
use repertoire_skill::library::Library;

use crate::cli::Ctx;
use crate::failure::Failure;

impl Ctx<'_> {
    /// Everything that is served of this project.
    pub(crate) async fn house(&self) -> Result<House, Failure> {
        let parts = Parts {
            library: Arc::new(Library::open(self.config.request()?)),
            make_selector: self.make_selector()?,
            settings: self.config.selection(),
            journal: self.journal(None).await?,
            project: self.project_dir(None),
            data: self.env.data_dir(),
            workplace: self.make_workplace()?,
            clock: Arc::new(|| SystemClock.now_ms()),
        };
        let extras = Extras { tools: self.env.tool_environment(false), ..Extras::default() };
        Ok(House::with(parts, extras))
    }
}
