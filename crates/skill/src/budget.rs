//! Simulates how common clients list skills that exceed their budget for the list.
//!
//! Every client cuts in its own way, and skills that are cut are found less often or never. The rules are
//! those that the clients document, for a context window of 200,000 tokens. It is not known which skills a
//! user calls most, so they are taken in catalog order.

use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::Entry;
use crate::render::catalog::{is_offered, level};

/// A client that lists skills in its prompt.
#[derive(Debug)]
pub struct Client {
    /// The name of the client on the command line.
    pub id: &'static str,
    /// The display name.
    pub name: &'static str,
    /// The budget for the list, in characters.
    pub chars_max: usize,
    /// The maximum length of a description that it shows, in characters.
    pub entry_chars_max: usize,
    /// The number of characters per line besides name and description.
    overhead: usize,
    cuts: Cuts,
}

/// The rule by which a client cuts when its budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cuts {
    /// List every name, and drop descriptions.
    Descriptions,
    /// Shorten all descriptions to the same length, then drop them, then drop names.
    Evenly,
    /// Drop the skills that do not fit.
    Entries,
}

/// The clients whose rules are known.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "claude",
        name: "Claude Code",
        chars_max: 8_000,
        entry_chars_max: 1_536,
        overhead: 4,
        cuts: Cuts::Descriptions,
    },
    Client {
        id: "codex",
        name: "Codex",
        chars_max: 16_000,
        entry_chars_max: 1_024,
        overhead: 12,
        cuts: Cuts::Evenly,
    },
    Client {
        id: "copilot",
        name: "Copilot CLI",
        chars_max: 15_000,
        entry_chars_max: 1_024,
        overhead: 60,
        cuts: Cuts::Entries,
    },
];

impl Client {
    /// Looks up a client by its id.
    pub fn of(id: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.id == id)
    }
}

/// A client's budget for the list of skills.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BudgetJson {
    /// The name of the client.
    pub client: String,
    /// The budget, in characters.
    pub chars_max: usize,
    /// The number of characters that the whole list needs.
    pub chars_needed: usize,
    /// The number of skills that fit with their whole descriptions.
    pub fit: usize,
    /// The number of skills that do not.
    pub cut: usize,
}

/// How a client lists a skill.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// With the whole description.
    Whole,
    /// With the start of the description.
    Shortened,
    /// By name alone.
    NameOnly,
    /// Not listed.
    Hidden,
}

/// A skill in a client's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownSkill {
    /// The name of the skill.
    pub name: String,
    /// How the skill is listed.
    pub shown: Shown,
    /// The number of characters of the description that are shown.
    pub chars_shown: usize,
    /// The number of characters of the whole description.
    pub chars: usize,
    /// The number of characters that its line takes of the budget.
    pub chars_used: usize,
}

/// The list of skills as a client would show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The skills offered to a model, in order.
    pub skills: Vec<ShownSkill>,
    /// The number of characters that the whole list would need.
    pub chars_needed: usize,
}

impl Budget {
    /// Simulates how `client` lists the skills of a catalog.
    pub fn of(client: &Client, entries: &[Entry]) -> Self {
        let mut skills: Vec<ShownSkill> =
            entries.iter().filter(|entry| is_offered(entry)).map(whole).collect();
        let name_chars = |one: &ShownSkill| one.name.chars().count() + client.overhead;
        let chars_needed = skills.iter().map(|one| name_chars(one) + one.chars).sum();
        let names: Vec<usize> = skills.iter().map(name_chars).collect();
        // Clients shorten a long description even if the budget is not used up.
        let wanted: Vec<usize> =
            skills.iter().map(|one| one.chars.min(client.entry_chars_max)).collect();
        let given = match client.cuts {
            Cuts::Descriptions => drop_descriptions(&names, &wanted, client.chars_max),
            Cuts::Evenly => shorten_evenly(&names, &wanted, client.chars_max),
            Cuts::Entries => drop_entries(&names, &wanted, client.chars_max),
        };
        for ((one, name), given) in skills.iter_mut().zip(names).zip(given) {
            one.chars_shown = given.unwrap_or(0);
            one.chars_used = given.map_or(0, |chars| name + chars);
            one.shown = match given {
                None => Shown::Hidden,
                Some(chars) if chars == one.chars => Shown::Whole,
                Some(0) => Shown::NameOnly,
                Some(_) => Shown::Shortened,
            };
        }
        Budget { skills, chars_needed }
    }

    /// Counts the skills that are listed in the given way.
    pub fn count(&self, shown: Shown) -> usize {
        self.skills.iter().filter(|one| one.shown == shown).count()
    }

    /// The number of characters that the list takes of the budget.
    pub fn chars_used(&self) -> usize {
        self.skills.iter().map(|one| one.chars_used).sum()
    }

    /// Summarises the result as JSON.
    pub fn summary(&self, client: &Client) -> BudgetJson {
        let fit = self.count(Shown::Whole);
        BudgetJson {
            client: client.name.to_owned(),
            chars_max: client.chars_max,
            chars_needed: self.chars_needed,
            fit,
            cut: self.skills.len() - fit,
        }
    }
}

fn whole(entry: &Entry) -> ShownSkill {
    let chars = entry.skill.description.chars().count();
    let name = entry.id.clone();
    ShownSkill { name, shown: Shown::Whole, chars_shown: chars, chars, chars_used: 0 }
}

/// The number of characters of each description; `None` for a skill that is not listed at all.
type Given = Vec<Option<usize>>;

fn drop_descriptions(names: &[usize], wanted: &[usize], chars_max: usize) -> Given {
    let mut room = chars_max.saturating_sub(names.iter().sum());
    let given = wanted.iter().map(|chars| match room.checked_sub(*chars) {
        Some(left) => {
            room = left;
            Some(*chars)
        }
        None => Some(0),
    });
    given.collect()
}

fn shorten_evenly(names: &[usize], wanted: &[usize], chars_max: usize) -> Given {
    match chars_max.checked_sub(names.iter().sum()) {
        Some(room) => {
            let level = level(wanted.to_vec(), room);
            wanted.iter().map(|chars| Some(*chars.min(&level))).collect()
        }
        None => drop_entries(names, &vec![0; names.len()], chars_max),
    }
}

fn drop_entries(names: &[usize], wanted: &[usize], chars_max: usize) -> Given {
    let mut room = chars_max;
    // A line that does not fit leaves the budget unchanged for a shorter one.
    let given = names.iter().zip(wanted).map(|(name, chars)| {
        room = room.checked_sub(name + chars)?;
        Some(*chars)
    });
    given.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::described;

    fn client(cuts: Cuts, chars_max: usize) -> Client {
        Client { id: "x", name: "X", chars_max, entry_chars_max: 50, overhead: 1, cuts }
    }

    /// Names of one character, so that a line costs two characters plus its description.
    fn shown(cuts: Cuts, chars_max: usize, descriptions: &[usize]) -> Vec<(Shown, usize)> {
        let names = ["a", "b", "c", "d"];
        let entries: Vec<Entry> = names
            .iter()
            .zip(descriptions)
            .map(|(name, chars)| described(name, &"x".repeat(*chars), "", "body"))
            .collect();
        let budget = Budget::of(&client(cuts, chars_max), &entries);
        let used = budget.chars_used();
        assert!(used <= chars_max || cuts == Cuts::Descriptions, "{used} of {chars_max}");
        budget.skills.iter().map(|one| (one.shown, one.chars_shown)).collect()
    }

    #[test]
    fn what_fits_is_whole_whatever_the_client() {
        for cuts in [Cuts::Descriptions, Cuts::Evenly, Cuts::Entries] {
            let found = shown(cuts, 26, &[10, 12]);
            assert_eq!(found, [(Shown::Whole, 10), (Shown::Whole, 12)], "{cuts:?}");
        }
    }

    #[test]
    fn a_client_that_drops_descriptions_keeps_every_name() {
        let found = shown(Cuts::Descriptions, 20, &[10, 12, 4]);
        assert_eq!(found, [(Shown::Whole, 10), (Shown::NameOnly, 0), (Shown::Whole, 4)]);
        let found = shown(Cuts::Descriptions, 3, &[10, 12]);
        assert_eq!(found, [(Shown::NameOnly, 0), (Shown::NameOnly, 0)]);
    }

    #[test]
    fn a_client_that_cuts_evenly_leaves_short_ones_whole() {
        let found = shown(Cuts::Evenly, 20, &[2, 30, 30]);
        assert_eq!(found, [(Shown::Whole, 2), (Shown::Shortened, 6), (Shown::Shortened, 6)]);
        let found = shown(Cuts::Evenly, 5, &[10, 12, 4]);
        assert_eq!(found, [(Shown::NameOnly, 0), (Shown::NameOnly, 0), (Shown::Hidden, 0)]);
    }

    #[test]
    fn a_client_that_drops_entries_hides_them() {
        let found = shown(Cuts::Entries, 20, &[10, 12, 4]);
        assert_eq!(found, [(Shown::Whole, 10), (Shown::Hidden, 0), (Shown::Whole, 4)]);
    }

    #[test]
    fn a_description_longer_than_a_client_shows_is_shortened_where_there_is_room() {
        assert_eq!(shown(Cuts::Descriptions, 500, &[80]), [(Shown::Shortened, 50)]);
    }
}
