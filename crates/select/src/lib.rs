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
pub mod string_table;
pub mod task;
pub mod tokenizer;
pub mod vectors;

pub use document::SkillDocument;
pub use index::SkillIndex;
pub use model::SelectionModel;
pub use selection::Selection;
pub use selector::SkillSelector;
pub use settings::{SelectionSettings, SelectionStage, StageSet};
pub use task::Task;
