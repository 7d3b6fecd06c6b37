//! The state shared by all clients of a server.

use std::sync::{Arc, Mutex, PoisonError};

use repertoire_agent::form::AnswerForm;
use repertoire_skill::catalog::CatalogEntry;
use rmcp::ErrorData;

use super::skill_index::ServedSkills;
use crate::serve_state::ServeState;

/// The state shared by all clients of a server.
pub(super) struct McpState {
    pub(super) serve_state: ServeState,
    /// The form for which this server was started.
    pub(super) form: Option<AnswerForm>,
    /// Skills that are served in addition to those of the catalog.
    extra: Arc<[CatalogEntry]>,
    shelf: Mutex<Option<Arc<ServedSkills>>>,
}

impl McpState {
    pub(super) fn new(serve_state: ServeState, extra: Vec<CatalogEntry>) -> Self {
        McpState { serve_state, form: None, extra: extra.into(), shelf: Mutex::new(None) }
    }

    /// Restricts the server to one form.
    pub(super) fn with_form(self, form: Option<AnswerForm>) -> Self {
        McpState { form, ..self }
    }

    /// The skills as they are served now.
    pub(super) fn served_skills(&self) -> Arc<ServedSkills> {
        let catalog = self.serve_state.catalog();
        let mut made = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(shelf) if shelf.generation() == catalog.generation() => Arc::clone(shelf),
            _ => {
                let shelf = Arc::new(ServedSkills::new(catalog, Arc::clone(&self.extra)));
                *made = Some(Arc::clone(&shelf));
                shelf
            }
        }
    }

    /// Computes the names and loads the index in the background, before the first request.
    pub(super) fn warm_up(self: &Arc<Self>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let state = Arc::clone(self);
            runtime.spawn_blocking(move || {
                state.served_skills();
                state.serve_state.selector();
            });
        }
    }

    /// Runs a function that reads files on a blocking thread.
    pub(super) async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&McpState) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let state = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&state)).await.map_err(|_| {
            ErrorData::internal_error("this request could not be answered; ask again", None)
        })
    }
}
