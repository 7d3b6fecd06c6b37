//! Selects the few skills that fit a task, with reasons, and abstains if none does.

pub mod background;
pub mod codes;
pub mod document;
pub mod eval;
mod evidence;
mod expand;
pub mod index;
pub mod json;
pub mod limits;
pub mod lint;
pub mod model;
pub mod passages;
mod query;
pub mod selection;
pub mod selector;
pub mod settings;
mod stages;
pub mod strings;
pub mod task;
pub mod vectors;
pub mod words;

pub use document::Document;
pub use index::Index;
pub use model::Model;
pub use selection::Selection;
pub use selector::Selector;
pub use settings::{Settings, Stage, Stages};
pub use task::Task;
