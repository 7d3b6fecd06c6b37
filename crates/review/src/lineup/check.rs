//! Validates a complete line-up, after files have been merged.

use repertoire_skill::name::nearest;

use super::limits::{AGENTS_MAX, PAIRS_MAX};
use super::load::is_agent_name;
use super::{Lineup, Pair};
use crate::finding::Phase;
use crate::record::Depth;

/// A reason why a line-up cannot be used for a review.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error(
        "`{0}` is no name of an agent; use small letters, digits and hyphens, and `-agent` at the end"
    )]
    BadName(String),
    /// Two agents share a name, or an agent has the name of the synthesis agent.
    #[error("there are two agents `{0}`; give one another name")]
    SameName(String),
    #[error("there are {0} agents, and {AGENTS_MAX} is the limit; take some out")]
    TooManyAgents(usize),
    #[error("there are {0} pairs, and {PAIRS_MAX} is the limit; take some out")]
    TooManyPairs(usize),
    #[error("`phases.{0}` is empty; name the phases, such as `[patterns, quick, validation]`")]
    NoPhases(&'static str),
    #[error(
        "no agent takes part in the phase `{0}`; give one `{0}: strong`, or take the phase out"
    )]
    NoAgent(Phase),
    /// A phase lacks the model that it needs.
    #[error("`{0}` is missing; say `strong` or `fast`")]
    NoTier(&'static str),
    #[error("`synthesis.agent` is missing; name it, such as `synthesis-agent`")]
    NoSynthesisAgent,
    /// A pair names a category that no agent has.
    #[error("a pair asks about `{category}`, and no agent has that category; {hint}")]
    NoCategory { category: String, hint: String },
}

/// Returns the problems of a line-up; an empty list if it is valid.
pub fn check(lineup: &Lineup) -> Vec<Problem> {
    let mut problems = names(lineup);
    if lineup.agents.len() > AGENTS_MAX {
        problems.push(Problem::TooManyAgents(lineup.agents.len()));
    }
    if lineup.synthesis.pairs.len() > PAIRS_MAX {
        problems.push(Problem::TooManyPairs(lineup.synthesis.pairs.len()));
    }
    problems.extend(phases(lineup));
    problems.extend(tiers(lineup));
    problems.extend(lineup.synthesis.pairs.iter().flat_map(|pair| categories(lineup, pair)));
    problems
}

fn names(lineup: &Lineup) -> Vec<Problem> {
    let own = lineup.agents.iter().map(|agent| &agent.name);
    let synthesis = Some(&lineup.synthesis.agent).filter(|name| !name.is_empty());
    let names: Vec<&String> = own.chain(synthesis).collect();
    let mut problems = Vec::new();
    for (at, &name) in names.iter().enumerate() {
        if !is_agent_name(name) {
            problems.push(Problem::BadName(name.clone()));
        }
        if names[..at].contains(&name) {
            problems.push(Problem::SameName(name.clone()));
        }
    }
    problems
}

fn phases(lineup: &Lineup) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = Vec::new();
    for (word, phases) in [("quick", &lineup.phases.quick), ("deep", &lineup.phases.deep)] {
        if phases.is_empty() {
            problems.push(Problem::NoPhases(word));
        }
        for &phase in phases {
            let has_agents = matches!(phase, Phase::Thorough | Phase::Quick | Phase::Gaps);
            if has_agents && !seen.contains(&phase) && lineup.agents_in(phase).next().is_none() {
                problems.push(Problem::NoAgent(phase));
            }
            seen.push(phase);
        }
    }
    problems
}

/// Checks that a synthesis with questions has an agent, a model, and a model that validates insights.
fn tiers(lineup: &Lineup) -> Vec<Problem> {
    let quick = has_synthesis(lineup, Depth::Quick);
    let deep = has_synthesis(lineup, Depth::Deep);
    let synthesis = &lineup.synthesis;
    let mut problems = Vec::new();
    if (quick || deep) && synthesis.agent.is_empty() {
        problems.push(Problem::NoSynthesisAgent);
    }
    if quick && synthesis.quick.is_none() {
        problems.push(Problem::NoTier("synthesis.quick"));
    }
    if deep && synthesis.deep.is_none() {
        problems.push(Problem::NoTier("synthesis.deep"));
    }
    if (quick || deep) && lineup.validation.insights.is_none() {
        problems.push(Problem::NoTier("validation.insights"));
    }
    problems
}

/// Returns true if a review of this depth asks synthesis questions.
fn has_synthesis(lineup: &Lineup, depth: Depth) -> bool {
    lineup.phases_at(depth).contains(&Phase::Synthesis) && lineup.pairs_at(depth).next().is_some()
}

fn categories(lineup: &Lineup, pair: &Pair) -> Vec<Problem> {
    let missing = pair.categories.iter().filter(|category| lineup.of_category(category).is_none());
    missing.map(|category| missing_category(lineup, category)).collect()
}

fn missing_category(lineup: &Lineup, category: &str) -> Problem {
    let known = lineup.agents.iter().map(|agent| agent.category.as_str());
    let hint = match nearest(category, known) {
        Some(near) => format!("is `{near}` meant?"),
        None => "add an agent for it, or take the pair out".to_owned(),
    };
    Problem::NoCategory { category: category.to_owned(), hint }
}
