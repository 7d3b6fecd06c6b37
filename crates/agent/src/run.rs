//! What a run carries from turn to turn, and what tools see of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use repertoire_model::ModelName;
use repertoire_skill::activate::{Activation, Request};
use repertoire_skill::catalog::Entry;
use repertoire_skill::ledger::{Ledger, Outcome as Recorded};
use tokio_util::sync::CancellationToken;

use crate::effect::EffectLimit;
use crate::event::{Denial, EventKind, Events, LoadedBy};
use crate::permission::{Asker, Permissions};
use crate::spending::Spending;
use crate::system::System;
use crate::tools;
use repertoire_sandbox::workplace::Workplace;

/// A run in progress, as tools see it.
pub struct Run {
    /// The system that it runs in.
    pub system: System,
    /// The conversation that it belongs to.
    pub conversation: String,
    /// How deep it was delegated.
    pub depth: u32,
    /// Where it works.
    pub workplace: Workplace,
    /// Whom it tells what happens.
    pub events: Events,
    /// Ends it.
    pub cancel: CancellationToken,
    /// What it may use, and has used.
    pub spending: Arc<Spending>,
    /// Who is asked where permissions say so; nobody in a run without a person.
    pub asker: Option<Arc<dyn Asker>>,
    /// What tools remember between calls.
    pub state: tools::State,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) permissions: Mutex<Permissions>,
    /// Skills that fit the task, the best first: they are described in full.
    pub(crate) winners: Mutex<Vec<String>>,
    pub(crate) denials: Mutex<Vec<Denial>>,
    /// The limit on its effects: its own agent's, and those of every agent above it.
    pub(crate) limit: Mutex<EffectLimit>,
    /// The names of the tools that its agent may use.
    pub(crate) offered: Mutex<Vec<String>>,
    /// The agents that wait for this one, and itself.
    pub(crate) at_work: Vec<String>,
    /// The model that was asked for by the one who started it all; sub-agents without one of their own take it.
    pub(crate) model: Option<ModelName>,
    /// Whether the folder may be a stranger's, so that nothing of it is taken on trust. Sub-agents work in the same one.
    pub(crate) is_strangers: bool,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// A skill that was put into the conversation, or was there.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The skill's text and what is known of it.
    pub activation: Activation,
    /// Whether it was there before and has not changed.
    pub already: bool,
}

impl Run {
    /// A run of nothing yet: a conversation of its own, the system's permissions and limits, and nobody to ask.
    pub fn new(system: System, workplace: Workplace, events: Events) -> Self {
        let config = system.config();
        let permissions = config.permissions.clone().in_dir(&workplace.dir);
        Run {
            conversation: String::new(),
            depth: 0,
            cancel: CancellationToken::new(),
            spending: Arc::new(Spending::new(config.limits)),
            asker: None,
            state: tools::State::hiding(permissions.hidden()),
            ledger: Mutex::default(),
            permissions: Mutex::new(permissions),
            winners: Mutex::default(),
            denials: Mutex::default(),
            limit: Mutex::default(),
            offered: Mutex::default(),
            at_work: Vec::new(),
            is_strangers: false,
            model: None,
            workplace,
            events,
            system,
        }
    }

    /// Puts a skill into the conversation, through the ledger, and tells of it.
    pub fn load(&self, entry: &Entry, request: &Request<'_>, by: LoadedBy, reason: &str) -> Loaded {
        let now_ms = self.system.clock().now_ms();
        let (activation, recorded) = lock(&self.ledger).activate(entry, request, now_ms);
        let already = recorded.outcome == Recorded::AlreadyActive;
        // A flat file has no folder of its own, and what lies beside it is not its.
        if activation.origin.is_folder() {
            self.workplace.add_readable(activation.origin.dir());
        }
        self.events.emit(EventKind::SkillLoaded {
            skill: activation.id.clone(),
            digest: activation.digest.to_string(),
            by,
            reason: reason.to_owned(),
            already,
            trusted: activation.trust == repertoire_skill::trust::Trust::Trusted,
            tokens: repertoire_skill::activate::tokens(&activation.body),
        });
        if let Some(cut) = activation.truncated().filter(|_| !already) {
            self.events
                .emit(EventKind::SkillTruncated { skill: cut.name, max_chars: cut.max_chars });
        }
        Loaded { activation, already }
    }

    /// Skills that fit the task, the best first.
    pub fn winners(&self) -> Vec<String> {
        lock(&self.winners).clone()
    }

    /// The permissions in force.
    pub fn permissions(&self) -> Permissions {
        lock(&self.permissions).clone()
    }

    /// The limit on what the run may do to its surroundings.
    pub fn limit(&self) -> EffectLimit {
        lock(&self.limit).clone()
    }

    /// Changes the permissions for the rest of the run.
    pub fn change_permissions(&self, change: impl FnOnce(&mut Permissions)) {
        change(&mut lock(&self.permissions));
    }

    /// Calls that were not allowed so far.
    pub fn denials(&self) -> Vec<Denial> {
        lock(&self.denials).clone()
    }
}

/// A lock whose holder panicked still holds what it held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
