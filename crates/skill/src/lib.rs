//! Everything about a skill before anyone selects it: the record and its dialects, lint, discovery, the
//! catalog, activation within a budget, and rendering for the peers.
//!
//! It knows nothing of models, networks and databases, asks neither the environment nor the clock, and
//! runs nothing: places, limits, trust and the time are passed in.
//!
//! # A tour
//!
//! - [`load`](mod@load) reads one file into a [`skill::Skill`], whatever [`dialect`] it is written in, and says
//!   what was odd about it; [`write`](mod@write) writes a record back.
//! - [`discover`](mod@discover) finds the roots of a [`profile`], [`walk`](mod@walk)s them and makes a
//!   [`catalog::Catalog`], an immutable snapshot. [`plugin`] and [`pack`] are two of the places.
//! - [`library::Library`] holds a snapshot that is replaced as a whole when the disk changes.
//! - [`lint`](mod@lint) checks files; every finding has one of the [`codes`].
//! - [`depend`] orders skills by what they need; [`resources`] lists the files beside them.
//! - [`activate`](mod@activate) puts a skill's body into a conversation: [`arguments`] filled in, cut to a
//!   budget; [`ledger::Ledger`] remembers what is in the conversation already.
//! - [`render`] writes skills for agents and programs; [`openskills`] and [`skills_ref`] write what those
//!   two tools write.
//! - [`budget`] tells what clients with little room make of a long list of skills.
//! - [`trust`] says which skills may be given capabilities; [`limits`] holds the caps on everything.
//!
//! ```
//! use camino::Utf8PathBuf;
//! use repertoire_skill::activate::{Request as Activate, activate};
//! use repertoire_skill::discover::{Request, discover};
//! use repertoire_skill::profile::{Places, ProfileId};
//! use repertoire_skill::render::skill_content::skill_content;
//! use repertoire_skill::trust::Trust;
//! use repertoire_text::fs::write_atomic;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let here = Utf8PathBuf::try_from(dir.path().canonicalize()?)?;
//! let file = here.join(".agents/skills/greet/SKILL.md");
//! let text = "---\nname: greet\ndescription: Greets. Use when: somebody arrives.\n---\nSay hello to $1.\n";
//! write_atomic(&file, text.as_bytes())?;
//!
//! // Nothing is read from the environment: the caller says where the user stands and lives.
//! let places = Places { home: here.join("home"), pack: here.join("pack"), here };
//! let catalog = discover(&Request::new(ProfileId::Repertoire, places));
//! let entry = catalog.get("greet").expect("it was written a moment ago");
//! assert_eq!(entry.trust, Trust::Untrusted);
//!
//! // The unquoted colon was mended, and that is not kept secret.
//! assert_eq!(entry.skill.description, "Greets. Use when: somebody arrives.");
//! assert_eq!(catalog.diagnostics()[0].code.id, "RS030");
//!
//! let request = Activate { arguments: "Ada", ..Activate::default() };
//! assert!(skill_content(&activate(entry, &request)).contains("Say hello to Ada."));
//! # Ok(())
//! # }
//! ```

pub mod activate;
pub mod arguments;
pub mod budget;
pub mod catalog;
pub mod codes;
pub mod depend;
pub mod dialect;
pub mod discover;
pub mod hidden;
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
