//! Merges two line-ups.

use super::{CategoryPair, LineupPhases, ReviewAgent, ReviewLineup};

/// The origin of a line-up, which decides what it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineupSource {
    /// The user's own line-up: it may add and replace.
    User,
    /// A line-up of the repository: it may add but not replace, so that a repository cannot weaken its own review.
    Project,
}

/// The result of [`merge_lineups`].
#[derive(Clone, Debug, PartialEq)]
pub struct MergedLineup {
    pub lineup: ReviewLineup,
    /// Explanations of what was not merged.
    pub warnings: Vec<String>,
}

/// Merges `additions` into `base`. Agents are matched by name and pairs by their categories: a match is replaced in
/// place, others are appended. Lists of rules are united; texts and model tiers replace those of the base. A line-up
/// for another subject adds nothing.
pub fn merge_lineups(
    base: ReviewLineup,
    additions: ReviewLineup,
    source: LineupSource,
) -> MergedLineup {
    let mut merge = LineupMerge { source, warnings: Vec::new() };
    let mut lineup = base;
    if lineup.subject != additions.subject {
        return MergedLineup { lineup, warnings: Vec::new() };
    }
    let LineupPhases { quick, deep } = additions.phases;
    merge.merge_list("phases.quick", &mut lineup.phases.quick, quick);
    merge.merge_list("phases.deep", &mut lineup.phases.deep, deep);
    merge.merge_text("instructions", &mut lineup.instructions, additions.instructions);
    let gaps = additions.gaps_instructions;
    merge.merge_text("gaps_instructions", &mut lineup.gaps_instructions, gaps);
    for agent in additions.agents {
        merge.merge_agent(&mut lineup.agents, agent);
    }
    let (own, other) = (&mut lineup.synthesis, additions.synthesis);
    merge.merge_text("synthesis.agent", &mut own.agent, other.agent);
    merge.merge_option("synthesis.quick", &mut own.quick, other.quick);
    merge.merge_option("synthesis.deep", &mut own.deep, other.deep);
    merge.merge_text("synthesis.instructions", &mut own.instructions, other.instructions);
    for pair in other.pairs {
        merge.merge_pair(&mut own.pairs, pair);
    }
    append_missing(&mut own.skill_questions, other.skill_questions);
    let (own, other) = (&mut lineup.validation, additions.validation);
    merge.merge_text("validation.instructions", &mut own.instructions, other.instructions);
    merge.merge_option("validation.insights", &mut own.insights, other.insights);
    merge.merge_option("validation.quick_from", &mut own.quick_from, other.quick_from);
    append_missing(&mut own.false_positives, other.false_positives);
    MergedLineup { lineup, warnings: merge.warnings }
}

fn append_missing<T: PartialEq>(own: &mut Vec<T>, other: Vec<T>) {
    for one in other {
        if !own.contains(&one) {
            own.push(one);
        }
    }
}

struct LineupMerge {
    source: LineupSource,
    warnings: Vec<String>,
}

impl LineupMerge {
    /// Returns true if an existing value may be replaced. Adds a warning otherwise.
    fn may_replace(&mut self, what: &str) -> bool {
        if self.source == LineupSource::Project {
            self.warnings.push(format!(
                "the repository's line-up has {what}, which is there already and stays as it is; \
                 only a line-up of your own can replace it"
            ));
        }
        self.source == LineupSource::User
    }

    fn merge_text(&mut self, key: &str, own: &mut String, other: String) {
        let differs = !other.is_empty() && *own != other;
        if differs && (own.is_empty() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn merge_option<T: PartialEq>(&mut self, key: &str, own: &mut Option<T>, other: Option<T>) {
        let differs = other.is_some() && *own != other;
        if differs && (own.is_none() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn merge_list<T: PartialEq>(&mut self, key: &str, own: &mut Vec<T>, other: Vec<T>) {
        let differs = !other.is_empty() && *own != other;
        if differs && (own.is_empty() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn merge_agent(&mut self, agents: &mut Vec<ReviewAgent>, agent: ReviewAgent) {
        match agents.iter_mut().find(|known| known.name == agent.name) {
            None => agents.push(agent),
            Some(known) if *known == agent => {}
            Some(known) => {
                if self.may_replace(&format!("an agent `{}`", agent.name)) {
                    *known = agent;
                }
            }
        }
    }

    fn merge_pair(&mut self, pairs: &mut Vec<CategoryPair>, pair: CategoryPair) {
        match pairs.iter_mut().find(|known| known.has_categories(&pair.categories)) {
            None => pairs.push(pair),
            Some(known) if *known == pair => {}
            Some(known) => {
                let [a, b] = &pair.categories;
                if self.may_replace(&format!("a pair `{a}` and `{b}`")) {
                    *known = pair;
                }
            }
        }
    }
}
