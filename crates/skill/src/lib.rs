//! Everything about a skill up to its selection: the record and its dialects, lint, discovery, the catalog,
//! activation within a budget, and rendering for agents.
//!
//! This crate knows nothing of models, networks and databases, reads neither the environment nor the clock,
//! and runs nothing: directories, limits, trust and the time are passed in.
//!
//! # A tour
//!
//! - [`load`](mod@load) reads one file of any [`dialect`] into a [`skill::Skill`] and reports what is wrong
//!   with it; [`write`](mod@write) writes a record back.
//! - [`discover`](mod@discover) finds the roots of a [`profile`], [`walk`](mod@walk)s them and builds a
//!   [`catalog::Catalog`], an immutable snapshot. [`plugin`] and [`pack`] are two sources of roots.
//! - [`library::SkillLibrary`] holds a snapshot that is replaced as a whole when the disk changes.
//! - [`lint`](mod@lint) checks files; every finding has one of the [`codes`].
//! - [`dependencies`] orders skills by their dependencies; [`resources`] lists the files beside them.
//! - [`activate`](mod@activate) puts a skill's body into a conversation: [`arguments`] filled in, cut to a
//!   budget; [`ledger::Ledger`] records which skills the conversation already contains.
//! - [`render`] writes skills for agents and programs; [`openskills`] and [`skills_ref`] reproduce the output
//!   of those two tools.
//! - [`budget`] simulates how clients with a small budget list many skills.
//! - [`trust`] decides which skills may be given capabilities; [`limits`] holds the limits on everything.
//!
//! ```
//! use camino::Utf8PathBuf;
//! use repertoire_skill::activate::{ActivationRequest, activate_skill};
//! use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
//! use repertoire_skill::profile::{SearchDirectories, ProfileId};
//! use repertoire_skill::render::skill_content::skill_content;
//! use repertoire_skill::trust::TrustLevel;
//! use repertoire_text::fs::write_atomic;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let here = Utf8PathBuf::try_from(dir.path().canonicalize()?)?;
//! let file = here.join(".agents/skills/greet/SKILL.md");
//! let text = "---\nname: greet\ndescription: Greets. Use when: somebody arrives.\n---\nSay hello to $1.\n";
//! write_atomic(&file, text.as_bytes())?;
//!
//! // Nothing is read from the environment: the caller passes the directories.
//! let places = SearchDirectories { home: here.join("home"), pack: here.join("pack"), here };
//! let catalog = discover_catalog(&DiscoveryRequest::new(ProfileId::Repertoire, places));
//! let entry = catalog.get("greet").expect("it was written a moment ago");
//! assert_eq!(entry.trust, TrustLevel::Untrusted);
//!
//! // The unquoted colon was repaired, and a diagnostic reports it.
//! assert_eq!(entry.skill.description, "Greets. Use when: somebody arrives.");
//! assert_eq!(catalog.diagnostics()[0].code.id, "RS030");
//!
//! let request = ActivationRequest { arguments: "Ada", ..ActivationRequest::default() };
//! assert!(skill_content(&activate_skill(entry, &request)).contains("Say hello to Ada."));
//! # Ok(())
//! # }
//! ```

pub mod activate;
pub mod arguments;
pub mod budget;
pub mod catalog;
pub mod codes;
pub mod dependencies;
pub mod dialect;
pub mod discover;
pub mod hidden_text;
pub mod ledger;
pub mod library;
pub mod limits;
pub mod lint;
pub mod load;
pub mod name;
pub mod openskills;
pub mod pack;
pub mod plugin;
pub mod profile;
pub mod render;
pub mod resources;
pub mod skill;
pub mod skills_ref;
#[cfg(test)]
mod testing;
pub mod trust;
pub mod walk;
pub mod write;
