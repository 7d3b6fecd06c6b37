//! A sandbox that is probed when the first program starts: probing takes a few milliseconds, and many runs start no
//! program at all.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::Sandbox;

/// A sandbox that is either known or probed on first use. Clones share the result.
#[derive(Clone, Debug, Default)]
pub struct LazySandbox {
    found: Arc<OnceLock<Sandbox>>,
    helper: Arc<[String]>,
}

impl LazySandbox {
    /// Returns a sandbox that is probed on first use; see [`Sandbox::probe`].
    pub fn on_first_use(helper: Vec<String>) -> Self {
        LazySandbox { found: Arc::default(), helper: helper.into() }
    }
}

impl From<Sandbox> for LazySandbox {
    fn from(sandbox: Sandbox) -> Self {
        LazySandbox { found: Arc::new(OnceLock::from(sandbox)), helper: Arc::default() }
    }
}

/// Probes the sandbox on first use.
impl Deref for LazySandbox {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        self.found.get_or_init(|| {
            if self.helper.is_empty() { Sandbox::default() } else { Sandbox::probe(&self.helper) }
        })
    }
}
