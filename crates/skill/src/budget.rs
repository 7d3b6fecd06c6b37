//! Simulates how common clients list skills that exceed their budget for the list.
//!
//! Every client cuts in its own way, and skills that are cut are found less often or never. The rules are
//! those that the clients document, for a context window of 200,000 tokens. It is not known which skills a
//! user calls most, so they are taken in catalog order.

use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::CatalogEntry;
use crate::render::catalog::{fair_level, is_offered};

/// A client that lists skills in its prompt.
#[derive(Debug)]
pub struct ListingClient {
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
    cuts: ListingCutRule,
}

/// The rule by which a client cuts when its budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListingCutRule {
    /// List every name, and drop descriptions.
    Descriptions,
    /// Shorten all descriptions to the same length, then drop them, then drop names.
    Evenly,
    /// Drop the skills that do not fit.
    Entries,
}

/// The clients whose rules are known.
pub const CLIENTS: &[ListingClient] = &[
    ListingClient {
        id: "claude",
        name: "Claude Code",
        chars_max: 8_000,
        entry_chars_max: 1_536,
        overhead: 4,
        cuts: ListingCutRule::Descriptions,
    },
    ListingClient {
        id: "codex",
        name: "Codex",
        chars_max: 16_000,
        entry_chars_max: 1_024,
        overhead: 12,
        cuts: ListingCutRule::Evenly,
    },
    ListingClient {
        id: "copilot",
        name: "Copilot CLI",
        chars_max: 15_000,
        entry_chars_max: 1_024,
        overhead: 60,
        cuts: ListingCutRule::Entries,
    },
];

impl ListingClient {
    /// Looks up a client by its id.
    pub fn from_id(id: &str) -> Option<&'static ListingClient> {
        CLIENTS.iter().find(|client| client.id == id)
    }
}

/// A client's budget for the list of skills.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListingBudgetJson {
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
pub enum ListingState {
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
pub struct ListedSkill {
    /// The name of the skill.
    pub name: String,
    /// How the skill is listed.
    pub shown: ListingState,
    /// The number of characters of the description that are shown.
    pub chars_shown: usize,
    /// The number of characters of the whole description.
    pub chars: usize,
    /// The number of characters that its line takes of the budget.
    pub chars_used: usize,
}

/// The list of skills as a client would show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientListing {
    /// The skills offered to a model, in order.
    pub skills: Vec<ListedSkill>,
    /// The number of characters that the whole list would need.
    pub chars_needed: usize,
}

impl ClientListing {
    /// Simulates how `client` lists the skills of a catalog.
    pub fn for_client(client: &ListingClient, entries: &[CatalogEntry]) -> Self {
        let mut skills: Vec<ListedSkill> =
            entries.iter().filter(|entry| is_offered(entry)).map(list_in_full).collect();
        let name_chars = |one: &ListedSkill| one.name.chars().count() + client.overhead;
        let chars_needed = skills.iter().map(|one| name_chars(one) + one.chars).sum();
        let names: Vec<usize> = skills.iter().map(name_chars).collect();
        // Clients shorten a long description even if the budget is not used up.
        let wanted: Vec<usize> =
            skills.iter().map(|one| one.chars.min(client.entry_chars_max)).collect();
        let given = match client.cuts {
            ListingCutRule::Descriptions => drop_descriptions(&names, &wanted, client.chars_max),
            ListingCutRule::Evenly => shorten_evenly(&names, &wanted, client.chars_max),
            ListingCutRule::Entries => drop_entries(&names, &wanted, client.chars_max),
        };
        for ((one, name), given) in skills.iter_mut().zip(names).zip(given) {
            one.chars_shown = given.unwrap_or(0);
            one.chars_used = given.map_or(0, |chars| name + chars);
            one.shown = match given {
                None => ListingState::Hidden,
                Some(chars) if chars == one.chars => ListingState::Whole,
                Some(0) => ListingState::NameOnly,
                Some(_) => ListingState::Shortened,
            };
        }
        ClientListing { skills, chars_needed }
    }

    /// Counts the skills that are listed in the given way.
    pub fn count_shown(&self, shown: ListingState) -> usize {
        self.skills.iter().filter(|one| one.shown == shown).count()
    }

    /// The number of characters that the list takes of the budget.
    pub fn chars_used(&self) -> usize {
        self.skills.iter().map(|one| one.chars_used).sum()
    }

    /// Summarises the result as JSON.
    pub fn to_budget_json(&self, client: &ListingClient) -> ListingBudgetJson {
        let fit = self.count_shown(ListingState::Whole);
        ListingBudgetJson {
            client: client.name.to_owned(),
            chars_max: client.chars_max,
            chars_needed: self.chars_needed,
            fit,
            cut: self.skills.len() - fit,
        }
    }
}

fn list_in_full(entry: &CatalogEntry) -> ListedSkill {
    let chars = entry.skill.description.chars().count();
    let name = entry.id.clone();
    ListedSkill { name, shown: ListingState::Whole, chars_shown: chars, chars, chars_used: 0 }
}

/// The number of characters of each description; `None` for a skill that is not listed at all.
type DescriptionLengths = Vec<Option<usize>>;

fn drop_descriptions(names: &[usize], wanted: &[usize], chars_max: usize) -> DescriptionLengths {
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

fn shorten_evenly(names: &[usize], wanted: &[usize], chars_max: usize) -> DescriptionLengths {
    match chars_max.checked_sub(names.iter().sum()) {
        Some(room) => {
            let level = fair_level(wanted.to_vec(), room);
            wanted.iter().map(|chars| Some(*chars.min(&level))).collect()
        }
        None => drop_entries(names, &vec![0; names.len()], chars_max),
    }
}

fn drop_entries(names: &[usize], wanted: &[usize], chars_max: usize) -> DescriptionLengths {
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
    use crate::testing::make_described_entry;

    fn client(cuts: ListingCutRule, chars_max: usize) -> ListingClient {
        ListingClient { id: "x", name: "X", chars_max, entry_chars_max: 50, overhead: 1, cuts }
    }

    /// Names of one character, so that a line costs two characters plus its description.
    fn shown(
        cuts: ListingCutRule,
        chars_max: usize,
        descriptions: &[usize],
    ) -> Vec<(ListingState, usize)> {
        let names = ["a", "b", "c", "d"];
        let entries: Vec<CatalogEntry> = names
            .iter()
            .zip(descriptions)
            .map(|(name, chars)| make_described_entry(name, &"x".repeat(*chars), "", "body"))
            .collect();
        let budget = ClientListing::for_client(&client(cuts, chars_max), &entries);
        let used = budget.chars_used();
        assert!(used <= chars_max || cuts == ListingCutRule::Descriptions, "{used} of {chars_max}");
        budget.skills.iter().map(|one| (one.shown, one.chars_shown)).collect()
    }

    #[test]
    fn what_fits_is_whole_whatever_the_client() {
        for cuts in [ListingCutRule::Descriptions, ListingCutRule::Evenly, ListingCutRule::Entries]
        {
            let found = shown(cuts, 26, &[10, 12]);
            assert_eq!(found, [(ListingState::Whole, 10), (ListingState::Whole, 12)], "{cuts:?}");
        }
    }

    #[test]
    fn a_client_that_drops_descriptions_keeps_every_name() {
        let found = shown(ListingCutRule::Descriptions, 20, &[10, 12, 4]);
        assert_eq!(
            found,
            [(ListingState::Whole, 10), (ListingState::NameOnly, 0), (ListingState::Whole, 4)]
        );
        let found = shown(ListingCutRule::Descriptions, 3, &[10, 12]);
        assert_eq!(found, [(ListingState::NameOnly, 0), (ListingState::NameOnly, 0)]);
    }

    #[test]
    fn a_client_that_cuts_evenly_leaves_short_ones_whole() {
        let found = shown(ListingCutRule::Evenly, 20, &[2, 30, 30]);
        assert_eq!(
            found,
            [(ListingState::Whole, 2), (ListingState::Shortened, 6), (ListingState::Shortened, 6)]
        );
        let found = shown(ListingCutRule::Evenly, 5, &[10, 12, 4]);
        assert_eq!(
            found,
            [(ListingState::NameOnly, 0), (ListingState::NameOnly, 0), (ListingState::Hidden, 0)]
        );
    }

    #[test]
    fn a_client_that_drops_entries_hides_them() {
        let found = shown(ListingCutRule::Entries, 20, &[10, 12, 4]);
        assert_eq!(
            found,
            [(ListingState::Whole, 10), (ListingState::Hidden, 0), (ListingState::Whole, 4)]
        );
    }

    #[test]
    fn a_description_longer_than_a_client_shows_is_shortened_where_there_is_room() {
        assert_eq!(
            shown(ListingCutRule::Descriptions, 500, &[80]),
            [(ListingState::Shortened, 50)]
        );
    }
}
