//! Reproduces the output and files of the npm tool OpenSkills 1.5.0, byte for byte.
//!
//! The renderers ([`render_list`], [`read_block`], [`render_block`], [`update_block`]) are pure and take plain
//! values, so that they serve two callers. The compatible commands feed them from [`scan_skills`] and [`find`],
//! which search the same folders as OpenSkills and read descriptions as it does, bugs included. Our own
//! commands feed them with our records in [`OpenSkillsStyle::Repertoire`], which avoids what would damage a file.
//!
//! Deliberate differences in compatible mode: a name that leaves the four roots is not found. A `SKILL.md`
//! that is a link out of its folder, has more than 2 MiB or cannot be read is reported and skipped, where
//! OpenSkills follows it or fails with a stack trace. Output is never coloured. This module does not write
//! files.

mod collate;
mod discover;
mod entry;
mod js;
mod list;
mod read;
mod sync;
mod update;

pub use discover::{OpenSkillsSkill, find, find_all_skills, scan_skills};
pub use entry::{OpenSkillsEntry, OpenSkillsStyle, SkillLocation};
pub use list::render_list;
pub use read::{MISSING_ARGUMENT, NO_NAMES, not_found, read_block, split_names};
pub use sync::{
    NO_SKILLS_TO_SYNC, NOT_MARKDOWN, created_message, file_stem, is_markdown, new_file,
    outcome_message, render_block,
};
pub use update::{BlockUpdateOutcome, MarkerError, UpdatedSkillsFile, update_block};
