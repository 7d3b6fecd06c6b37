//! Validates a complete line-up, after files have been merged.

use repertoire_skill::name::nearest_name;

use super::limits::{AGENTS_MAX, PAIRS_MAX};
use super::load::is_agent_name;
use super::{CategoryPair, ReviewLineup};
use crate::finding::Phase;
use crate::record::ReviewDepth;

/// A reason why a line-up cannot be used for a review.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineupProblem {
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
pub fn check_lineup(lineup: &ReviewLineup) -> Vec<LineupProblem> {
    let mut problems = check_names(lineup);
    if lineup.agents.len() > AGENTS_MAX {
        problems.push(LineupProblem::TooManyAgents(lineup.agents.len()));
    }
    if lineup.synthesis.pairs.len() > PAIRS_MAX {
        problems.push(LineupProblem::TooManyPairs(lineup.synthesis.pairs.len()));
    }
    problems.extend(check_phases(lineup));
    problems.extend(check_synthesis_tiers(lineup));
    problems.extend(lineup.synthesis.pairs.iter().flat_map(|pair| check_categories(lineup, pair)));
    problems
}

fn check_names(lineup: &ReviewLineup) -> Vec<LineupProblem> {
    let own = lineup.agents.iter().map(|agent| &agent.name);
    let synthesis = Some(&lineup.synthesis.agent).filter(|name| !name.is_empty());
    let names: Vec<&String> = own.chain(synthesis).collect();
    let mut problems = Vec::new();
    for (at, &name) in names.iter().enumerate() {
        if !is_agent_name(name) {
            problems.push(LineupProblem::BadName(name.clone()));
        }
        if names[..at].contains(&name) {
            problems.push(LineupProblem::SameName(name.clone()));
        }
    }
    problems
}

fn check_phases(lineup: &ReviewLineup) -> Vec<LineupProblem> {
    let mut problems = Vec::new();
    let mut seen = Vec::new();
    for (word, phases) in [("quick", &lineup.phases.quick), ("deep", &lineup.phases.deep)] {
        if phases.is_empty() {
            problems.push(LineupProblem::NoPhases(word));
        }
        for &phase in phases {
            let has_agents = matches!(phase, Phase::Thorough | Phase::Quick | Phase::Gaps);
            if has_agents && !seen.contains(&phase) && lineup.agents_in(phase).next().is_none() {
                problems.push(LineupProblem::NoAgent(phase));
            }
            seen.push(phase);
        }
    }
    problems
}

/// Checks that a synthesis with questions has an agent, a model, and a model that validates insights.
fn check_synthesis_tiers(lineup: &ReviewLineup) -> Vec<LineupProblem> {
    let quick = has_synthesis(lineup, ReviewDepth::Quick);
    let deep = has_synthesis(lineup, ReviewDepth::Deep);
    let synthesis = &lineup.synthesis;
    let mut problems = Vec::new();
    if (quick || deep) && synthesis.agent.is_empty() {
        problems.push(LineupProblem::NoSynthesisAgent);
    }
    if quick && synthesis.quick.is_none() {
        problems.push(LineupProblem::NoTier("synthesis.quick"));
    }
    if deep && synthesis.deep.is_none() {
        problems.push(LineupProblem::NoTier("synthesis.deep"));
    }
    if (quick || deep) && lineup.validation.insights.is_none() {
        problems.push(LineupProblem::NoTier("validation.insights"));
    }
    problems
}

/// Returns true if a review of this depth asks synthesis questions.
fn has_synthesis(lineup: &ReviewLineup, depth: ReviewDepth) -> bool {
    lineup.phases_at(depth).contains(&Phase::Synthesis) && lineup.pairs_at(depth).next().is_some()
}

fn check_categories(lineup: &ReviewLineup, pair: &CategoryPair) -> Vec<LineupProblem> {
    let missing =
        pair.categories.iter().filter(|category| lineup.agent_of_category(category).is_none());
    missing.map(|category| missing_category(lineup, category)).collect()
}

fn missing_category(lineup: &ReviewLineup, category: &str) -> LineupProblem {
    let known = lineup.agents.iter().map(|agent| agent.category.as_str());
    let hint = match nearest_name(category, known) {
        Some(near) => format!("is `{near}` meant?"),
        None => "add an agent for it, or take the pair out".to_owned(),
    };
    LineupProblem::NoCategory { category: category.to_owned(), hint }
}
