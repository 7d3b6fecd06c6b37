//! The state of a run across turns, as tools see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use repertoire_model::ModelName;
use repertoire_skill::activate::{Activation, ActivationRequest};
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::ledger::{Ledger, LedgerRecordOutcome as Recorded};
use tokio_util::sync::CancellationToken;

use crate::effect::EffectLimit;
use crate::event::{EventEmitter, EventKind, LoadedBy, ToolDenial};
use crate::permission::{PermissionAsker, RunPermissions};
use crate::spending::RunBudget;
use crate::system::System;
use crate::tools;
use repertoire_sandbox::workplace::RunWorkplace;

/// A run in progress.
pub struct AgentRun {
    pub system: System,
    /// The id of the conversation.
    pub conversation: String,
    /// The depth of delegation.
    pub depth: u32,
    /// The working folder and its sandbox.
    pub workplace: RunWorkplace,
    pub events: EventEmitter,
    pub cancel: CancellationToken,
    /// The limits of the run, and its usage so far.
    pub spending: Arc<RunBudget>,
    /// Asks the user where permissions require it; `None` in an unattended run.
    pub asker: Option<Arc<dyn PermissionAsker>>,
    /// State that tools keep between calls.
    pub state: tools::ToolState,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) permissions: Mutex<RunPermissions>,
    /// Skills that fit the task, best first; the skill list describes them in full.
    pub(crate) winners: Mutex<Vec<String>>,
    pub(crate) denials: Mutex<Vec<ToolDenial>>,
    /// The limit on the run's effects: that of its own agent, and those of all delegating agents.
    pub(crate) limit: Mutex<EffectLimit>,
    /// The names of the tools that the agent may use.
    pub(crate) offered: Mutex<Vec<String>>,
    /// The chain of delegating agents, ending with this one.
    pub(crate) at_work: Vec<String>,
    /// The model that the caller of the top-level run requested; sub-agents without a model of
    /// their own inherit it.
    pub(crate) model: Option<ModelName>,
    /// True if the folder may be untrusted, so that nothing in it is trusted. Sub-agents inherit
    /// this.
    pub(crate) is_strangers: bool,
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// A loaded skill.
#[derive(Clone, Debug)]
pub struct LoadedSkill {
    pub activation: Activation,
    /// True if the skill was already in the conversation and has not changed.
    pub already: bool,
}

impl AgentRun {
    /// Creates a run with a conversation of its own, the system's permissions and limits, and no
    /// way to ask the user.
    pub fn new(system: System, workplace: RunWorkplace, events: EventEmitter) -> Self {
        let config = system.config();
        let permissions = config.permissions.clone().in_dir(&workplace.dir);
        AgentRun {
            conversation: String::new(),
            depth: 0,
            cancel: CancellationToken::new(),
            spending: Arc::new(RunBudget::new(config.limits)),
            asker: None,
            state: tools::ToolState::hiding_paths(permissions.hidden_paths()),
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

    /// Loads a skill into the conversation, through the ledger, and emits the events.
    pub fn load_skill(
        &self,
        entry: &CatalogEntry,
        request: &ActivationRequest<'_>,
        by: LoadedBy,
        reason: &str,
    ) -> LoadedSkill {
        let now_ms = self.system.clock().now_ms();
        let (activation, recorded) = lock_unpoisoned(&self.ledger).activate(entry, request, now_ms);
        let already = recorded.outcome == Recorded::AlreadyActive;
        // A flat file has no folder of its own; its neighbours don't belong to it.
        if activation.origin.is_folder() {
            self.workplace.add_readable(activation.origin.dir());
        }
        self.events.emit(EventKind::SkillLoaded {
            skill: activation.id.clone(),
            digest: activation.digest.to_string(),
            by,
            reason: reason.to_owned(),
            already,
            trusted: activation.trust == repertoire_skill::trust::TrustLevel::Trusted,
            tokens: repertoire_skill::activate::estimate_tokens(&activation.body),
        });
        if let Some(cut) = activation.truncation_event().filter(|_| !already) {
            self.events
                .emit(EventKind::SkillTruncated { skill: cut.name, max_chars: cut.max_chars });
        }
        LoadedSkill { activation, already }
    }

    /// Skills that fit the task, best first.
    pub fn winners(&self) -> Vec<String> {
        lock_unpoisoned(&self.winners).clone()
    }

    /// The permissions in force.
    pub fn permissions(&self) -> RunPermissions {
        lock_unpoisoned(&self.permissions).clone()
    }

    /// The limit on the run's effects.
    pub fn limit(&self) -> EffectLimit {
        lock_unpoisoned(&self.limit).clone()
    }

    /// Changes the permissions for the rest of the run.
    pub fn change_permissions(&self, change: impl FnOnce(&mut RunPermissions)) {
        change(&mut lock_unpoisoned(&self.permissions));
    }

    /// The calls denied so far.
    pub fn denials(&self) -> Vec<ToolDenial> {
        lock_unpoisoned(&self.denials).clone()
    }
}

/// Locks a mutex, ignoring poison: the data stays valid if a holder panicked.
pub(crate) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
