//! The state shared by all clients of a server.

use std::sync::{Arc, Mutex, PoisonError};

use repertoire_agent::form::Form;
use repertoire_skill::catalog::Entry;
use rmcp::ErrorData;

use super::shelf::Shelf;
use crate::house::House;

/// The state shared by all clients of a server.
pub(super) struct State {
    pub(super) house: House,
    /// The form for which this server was started.
    pub(super) form: Option<Form>,
    /// Skills that are served in addition to those of the catalog.
    extra: Arc<[Entry]>,
    shelf: Mutex<Option<Arc<Shelf>>>,
}

impl State {
    pub(super) fn new(house: House, extra: Vec<Entry>) -> Self {
        State { house, form: None, extra: extra.into(), shelf: Mutex::new(None) }
    }

    /// Restricts the server to one form.
    pub(super) fn filling_in(self, form: Option<Form>) -> Self {
        State { form, ..self }
    }

    /// The skills as they are served now.
    pub(super) fn shelf(&self) -> Arc<Shelf> {
        let catalog = self.house.catalog();
        let mut made = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(shelf) if shelf.generation() == catalog.generation() => Arc::clone(shelf),
            _ => {
                let shelf = Arc::new(Shelf::new(catalog, Arc::clone(&self.extra)));
                *made = Some(Arc::clone(&shelf));
                shelf
            }
        }
    }

    /// Computes the names and loads the index in the background, before the first request.
    pub(super) fn warm(self: &Arc<Self>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let state = Arc::clone(self);
            runtime.spawn_blocking(move || {
                state.shelf();
                state.house.selector();
            });
        }
    }

    /// Runs a function that reads files on a blocking thread.
    pub(super) async fn reading<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let state = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&state)).await.map_err(|_| {
            ErrorData::internal_error("this request could not be answered; ask again", None)
        })
    }
}
