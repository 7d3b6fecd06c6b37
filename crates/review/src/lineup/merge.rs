//! Merges two line-ups.

use super::{Agent, Lineup, Pair, Phases};

/// The origin of a line-up, which decides what it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's own line-up: it may add and replace.
    User,
    /// A line-up of the repository: it may add but not replace, so that a repository cannot weaken its own review.
    Project,
}

/// The result of [`merge`].
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    pub lineup: Lineup,
    /// Explanations of what was not merged.
    pub warnings: Vec<String>,
}

/// Merges `additions` into `base`. Agents are matched by name and pairs by their categories: a match is replaced in
/// place, others are appended. Lists of rules are united; texts and model tiers replace those of the base. A line-up
/// for another subject adds nothing.
pub fn merge(base: Lineup, additions: Lineup, source: Source) -> Merged {
    let mut merge = Merge { source, warnings: Vec::new() };
    let mut lineup = base;
    if lineup.subject != additions.subject {
        return Merged { lineup, warnings: Vec::new() };
    }
    let Phases { quick, deep } = additions.phases;
    merge.list("phases.quick", &mut lineup.phases.quick, quick);
    merge.list("phases.deep", &mut lineup.phases.deep, deep);
    merge.text("instructions", &mut lineup.instructions, additions.instructions);
    let gaps = additions.gaps_instructions;
    merge.text("gaps_instructions", &mut lineup.gaps_instructions, gaps);
    for agent in additions.agents {
        merge.agent(&mut lineup.agents, agent);
    }
    let (own, other) = (&mut lineup.synthesis, additions.synthesis);
    merge.text("synthesis.agent", &mut own.agent, other.agent);
    merge.option("synthesis.quick", &mut own.quick, other.quick);
    merge.option("synthesis.deep", &mut own.deep, other.deep);
    merge.text("synthesis.instructions", &mut own.instructions, other.instructions);
    for pair in other.pairs {
        merge.pair(&mut own.pairs, pair);
    }
    grow(&mut own.skill_questions, other.skill_questions);
    let (own, other) = (&mut lineup.validation, additions.validation);
    merge.text("validation.instructions", &mut own.instructions, other.instructions);
    merge.option("validation.insights", &mut own.insights, other.insights);
    merge.option("validation.quick_from", &mut own.quick_from, other.quick_from);
    grow(&mut own.false_positives, other.false_positives);
    Merged { lineup, warnings: merge.warnings }
}

fn grow<T: PartialEq>(own: &mut Vec<T>, other: Vec<T>) {
    for one in other {
        if !own.contains(&one) {
            own.push(one);
        }
    }
}

struct Merge {
    source: Source,
    warnings: Vec<String>,
}

impl Merge {
    /// Returns true if an existing value may be replaced. Adds a warning otherwise.
    fn may_replace(&mut self, what: &str) -> bool {
        if self.source == Source::Project {
            self.warnings.push(format!(
                "the repository's line-up has {what}, which is there already and stays as it is; \
                 only a line-up of your own can replace it"
            ));
        }
        self.source == Source::User
    }

    fn text(&mut self, key: &str, own: &mut String, other: String) {
        let differs = !other.is_empty() && *own != other;
        if differs && (own.is_empty() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn option<T: PartialEq>(&mut self, key: &str, own: &mut Option<T>, other: Option<T>) {
        let differs = other.is_some() && *own != other;
        if differs && (own.is_none() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn list<T: PartialEq>(&mut self, key: &str, own: &mut Vec<T>, other: Vec<T>) {
        let differs = !other.is_empty() && *own != other;
        if differs && (own.is_empty() || self.may_replace(&format!("`{key}`"))) {
            *own = other;
        }
    }

    fn agent(&mut self, agents: &mut Vec<Agent>, agent: Agent) {
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

    fn pair(&mut self, pairs: &mut Vec<Pair>, pair: Pair) {
        match pairs.iter_mut().find(|known| known.is_about(&pair.categories)) {
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
