//! The context of every operation: the environment and the configuration.

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::{ConfigFlags, RepConfig};
use crate::env::AppEnvironment;
use crate::error::AppError;

/// The environment and the configuration, from which systems, plans and reviews are assembled.
#[derive(Clone, Debug)]
pub struct AppContext<'a> {
    pub env: &'a AppEnvironment,
    pub config: RepConfig,
}

impl<'a> AppContext<'a> {
    /// Loads the configuration of the environment's working folder.
    ///
    /// # Errors
    ///
    /// Returns the first mistake in a file or a variable.
    pub fn load(env: &'a AppEnvironment, flags: &ConfigFlags) -> Result<Self, AppError> {
        Ok(AppContext { env, config: RepConfig::load(env, &env.here, flags)? })
    }

    /// Returns a path as the user typed it where that still resolves, so that it can be copied from
    /// the output. If the working folder was changed, joins the path to it.
    pub fn typed_path(&self, path: &Utf8Path) -> Utf8PathBuf {
        if self.env.moved { self.env.here.join(path) } else { path.to_owned() }
    }
}
