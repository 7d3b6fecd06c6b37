//! Repertoire: the skill runtime for AI agents, as one library and one binary.
//!
//! The crates are re-exported here: [`text`] for sources, diagnostics and YAML; [`skill`] for the
//! skill record, discovery, lint, the catalog and rendering; [`select`] for choosing skills for a
//! task; [`model`] for the protocols of language models; [`agent`] for running agents; [`drive`]
//! for saved conversations.
//!
//! ```
//! use repertoire::skill::discover::{Request, discover};
//! use repertoire::skill::profile::{Places, ProfileId};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let here = camino::Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
//! let places = Places { home: here.join("home"), pack: here.join("pack"), here };
//! let catalog = discover(&Request::new(ProfileId::Repertoire, places));
//! assert!(catalog.get("error-analyzer").is_some());
//! ```

pub use repertoire_agent as agent;
pub use repertoire_drive as drive;
pub use repertoire_flow as flow;
pub use repertoire_model as model;
pub use repertoire_select as select;
pub use repertoire_serve as serve;
pub use repertoire_skill as skill;
pub use repertoire_text as text;

mod attending;
pub mod cli;
pub mod codes;
mod commands;
pub mod config;
mod consent;
pub mod demo;
pub mod env;
pub mod failure;
mod live;
mod planning;
mod project_files;
mod question;
mod reviewing;
mod rules;
mod running;
mod runs_text;
pub mod schema;
mod selecting;
mod serving;
mod tracing;
pub mod ui;
