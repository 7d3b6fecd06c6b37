//! A sandbox that is looked for while other things are done: finding out what the kernel allows takes a few
//! milliseconds, and a run needs the answer only when its first program starts.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::Sandbox;

/// A sandbox that is known, or will be when somebody asks.
#[derive(Clone, Debug)]
pub struct Probed {
    found: Arc<OnceLock<Sandbox>>,
    looking: Arc<Mutex<Option<JoinHandle<Sandbox>>>>,
}

impl Probed {
    /// Begins to look for a sandbox; see [`Sandbox::probe`].
    pub fn later(helper: Vec<String>) -> Self {
        let looking = std::thread::spawn(move || Sandbox::probe(&helper));
        Probed { found: Arc::default(), looking: Arc::new(Mutex::new(Some(looking))) }
    }
}

impl From<Sandbox> for Probed {
    fn from(sandbox: Sandbox) -> Self {
        Probed { found: Arc::new(OnceLock::from(sandbox)), looking: Arc::default() }
    }
}

impl Default for Probed {
    fn default() -> Self {
        Probed::from(Sandbox::default())
    }
}

/// Waits for the answer, if it is not there yet.
impl Deref for Probed {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        self.found.get_or_init(|| {
            let looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner).take();
            let reason = || "looking for one failed".into();
            let failed = |_| Sandbox::Unavailable { reason: reason() };
            looking.map_or_else(Sandbox::default, |looking| looking.join().unwrap_or_else(failed))
        })
    }
}
