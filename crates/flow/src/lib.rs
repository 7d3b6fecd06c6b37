//! Workflows as data: steps, outcomes and gates that an engine enforces.
pub mod check;
pub mod codes;
pub mod engine;
pub mod external;
pub mod file;
pub mod graph;
pub mod items;
pub mod limits;
pub mod render;
pub mod state;
pub mod step;
pub mod template;
pub mod workflow;

pub use check::Checked;
pub use engine::{Input, next, start};
pub use state::{RunId, State};
pub use step::{StepView, view};
pub use workflow::Workflow;
