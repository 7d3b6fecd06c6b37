//! What all clients of one server share.

use std::sync::{Arc, Mutex, PoisonError};

use repertoire_agent::form::Form;
use repertoire_skill::catalog::Entry;
use rmcp::ErrorData;

use super::shelf::Shelf;
use crate::house::House;

/// What all clients of one server share.
pub(super) struct State {
    /// What is served.
    pub(super) house: House,
    /// The one form that this server was started to fill in.
    pub(super) form: Option<Form>,
    /// Skills that are served beside those of the house.
    extra: Arc<[Entry]>,
    shelf: Mutex<Option<Arc<Shelf>>>,
}

impl State {
    pub(super) fn new(house: House, extra: Vec<Entry>) -> Self {
        State { house, form: None, extra: extra.into(), shelf: Mutex::new(None) }
    }

    /// The same, to fill in one form.
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

    /// Settles the names and reads the index ahead of whoever asks first.
    pub(super) fn warm(self: &Arc<Self>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let state = Arc::clone(self);
            runtime.spawn_blocking(move || {
                state.shelf();
                state.house.selector();
            });
        }
    }

    /// Does something that reads files, out of the way of everybody else.
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
