//! A sandbox that is looked for when the first program starts: finding out what the kernel allows takes some
//! milliseconds, and many runs start no program at all.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::Sandbox;

/// A sandbox that is known, or will be when somebody asks. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    found: Arc<OnceLock<Sandbox>>,
    helper: Arc<[String]>,
}

impl Probed {
    /// A sandbox that is looked for when it is needed; see [`Sandbox::probe`].
    pub fn later(helper: Vec<String>) -> Self {
        Probed { found: Arc::default(), helper: helper.into() }
    }
}

impl From<Sandbox> for Probed {
    fn from(sandbox: Sandbox) -> Self {
        Probed { found: Arc::new(OnceLock::from(sandbox)), helper: Arc::default() }
    }
}

/// Looks for it, if nobody has done so yet.
impl Deref for Probed {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        self.found.get_or_init(|| match self.helper.is_empty() {
            true => Sandbox::default(),
            false => Sandbox::probe(&self.helper),
        })
    }
}
