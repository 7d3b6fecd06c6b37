//! What the npm tool OpenSkills 1.5.0 prints and writes, byte for byte.
//!
//! The renderers ([`render_list`], [`read_block`], [`render_block`], [`update`]) are pure and take plain
//! values, so that they serve both users: compat, fed by [`scan`] and [`find`], which look where
//! OpenSkills looks and read descriptions as it does, bugs included; and our own records, in
//! [`Style::Repertoire`], which mends what would damage a file.
//!
//! Deliberate differences in compat: a name that leaves the four roots is not found, a `SKILL.md` that
//! is a link out of its folder, has more than 2 MiB or cannot be read is reported and passed over where
//! OpenSkills follows it or dies with a stack trace, and output is never coloured here.
//! Nothing here writes a file.

mod collate;
mod discover;
mod entry;
mod js;
mod list;
mod read;
mod sync;
mod update;

pub use discover::{Found, find, find_all, scan};
pub use entry::{Entry, Location, Style};
pub use list::render_list;
pub use read::{MISSING_ARGUMENT, NO_NAMES, not_found, read_block, split_names};
pub use sync::{
    NO_SKILLS_TO_SYNC, NOT_MARKDOWN, created_message, file_stem, is_markdown, new_file,
    outcome_message, render_block,
};
pub use update::{MarkerError, Outcome, Updated, update};
