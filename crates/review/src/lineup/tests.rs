//! Tests of line-ups: those of the pack, every message about a file, and what two make together.

use super::limits::{AGENTS_MAX, FILE_BYTES_MAX, TEXT_CHARS_MAX};
use super::*;

const OWN_AGENT: &str = "
agents:
  - name: licence-agent
    category: licences
    title: Licences
    instructions: Look at licences.
    quick: fast
    validator: fast
";

fn read(text: &str) -> ReviewLineup {
    load_lineup(text, "mine.yaml".into()).unwrap()
}

/// Reads a file for code and expects this message.
#[track_caller]
fn refused(rest: &str, message: &str) {
    refused_whole(&format!("subject: code\n{rest}"), message);
}

#[track_caller]
fn refused_whole(text: &str, message: &str) {
    assert_eq!(load_lineup(text, "mine.yaml".into()).unwrap_err().to_string(), message);
}

/// The agent of the tests with one line put in another one's place.
fn agent_with(line: &str, other: &str) -> String {
    assert!(OWN_AGENT.contains(line));
    OWN_AGENT.trim_start().replace(line, other)
}

fn problems(lineup: &ReviewLineup) -> Vec<String> {
    check_lineup(lineup).iter().map(ToString::to_string).collect()
}

fn planned(subject: ReviewSubject, depth: ReviewDepth) -> Vec<(Phase, u32)> {
    builtin_lineup(subject).planned_phases(depth).iter().map(|one| (one.phase, one.calls)).collect()
}

#[test]
fn the_reviews_of_the_pack_have_the_calls_that_they_promise() {
    use Phase::{Gaps, Quick, Synthesis, Thorough};
    let deep = [(Thorough, 9), (Gaps, 5), (Synthesis, 5)];
    assert_eq!(planned(ReviewSubject::Code, ReviewDepth::Deep), deep);
    assert_eq!(planned(ReviewSubject::Code, ReviewDepth::Quick), [(Quick, 4), (Synthesis, 3)]);
    assert_eq!(
        planned(ReviewSubject::Docs, ReviewDepth::Deep),
        [(Thorough, 6), (Gaps, 3), (Synthesis, 4)]
    );
    assert_eq!(planned(ReviewSubject::Docs, ReviewDepth::Quick), [(Quick, 4), (Synthesis, 3)]);
    assert_eq!(planned(ReviewSubject::Code, ReviewDepth::Patterns), []);
}

/// The models of all agents as a table: thorough, gaps, quick, validator.
fn table(subject: ReviewSubject) -> String {
    let word = |tier: Option<ModelTier>| tier.map_or("-", ModelTier::as_str);
    let mut agents = builtin_lineup(subject).agents;
    agents.sort_by(|a, b| a.name.cmp(&b.name));
    let rows = agents.iter().map(|agent| {
        let [a, b, c] = [agent.thorough, agent.gaps, agent.quick].map(word);
        let (name, category) = (&agent.name, &agent.category);
        format!("{name} {category} {a} {b} {c} {}\n", agent.validator.as_str())
    });
    rows.collect()
}

#[test]
fn the_agents_of_the_pack_have_their_models() {
    assert_eq!(
        table(ReviewSubject::Code),
        "\
api-contracts-agent api-contracts fast - - fast
architecture-agent architecture strong - - strong
bug-detection-agent bugs strong fast strong strong
compliance-agent compliance fast fast - fast
error-handling-agent error-handling fast - fast fast
performance-agent performance strong fast - strong
security-agent security strong fast strong strong
technical-debt-agent technical-debt strong fast - fast
test-coverage-agent test-coverage fast - fast fast
"
    );
    assert_eq!(
        table(ReviewSubject::Docs),
        "\
accuracy-agent accuracy strong fast strong strong
clarity-agent clarity fast - fast fast
completeness-agent completeness strong fast - strong
consistency-agent consistency fast fast - fast
examples-agent examples strong - strong strong
structure-agent structure fast - fast fast
"
    );
}

#[test]
fn the_line_ups_of_the_pack_are_whole_and_every_agent_has_something_to_say() {
    for subject in [ReviewSubject::Code, ReviewSubject::Docs] {
        let lineup = builtin_lineup(subject);
        assert_eq!(lineup.subject, subject);
        assert_eq!(problems(&lineup), Vec::<String>::new());
        assert_eq!(lineup.synthesis.agent, "synthesis-agent");
        let synthesis =
            [ReviewDepth::Quick, ReviewDepth::Deep].map(|depth| lineup.synthesis.tier_at(depth));
        assert_eq!(synthesis, [Some(ModelTier::Fast); 2]);
        assert_eq!(lineup.validation.insights, Some(ModelTier::Strong));
        assert_eq!(lineup.validation.quick_from, Some(ReviewSeverity::Major));
        for agent in &lineup.agents {
            let words = agent.instructions.split_whitespace().count();
            assert!((150..=300).contains(&words), "{} has {words} words", agent.name);
            assert!(!agent.false_positives.is_empty(), "{}", agent.name);
        }
    }
}

#[test]
fn the_agents_of_the_pack_are_given_what_they_need() {
    let lineup = builtin_lineup(ReviewSubject::Code);
    let given = |what: AgentInput| {
        let agents = lineup.agents.iter().filter(|agent| agent.receives.contains(&what));
        let mut names: Vec<&str> = agents.map(|agent| agent.name.as_str()).collect();
        names.sort_unstable();
        names
    };
    let tests = ["bug-detection-agent", "technical-debt-agent", "test-coverage-agent"];
    assert_eq!(given(AgentInput::RelatedTests), tests);
    assert_eq!(given(AgentInput::Rules), ["architecture-agent", "compliance-agent"]);
    let security = lineup.find_agent("security-agent").unwrap();
    let details: Vec<&str> = security.details.iter().map(|detail| detail.name.as_str()).collect();
    assert_eq!(details, ["attack_vector", "impact"]);
    let questions = lineup.synthesis.skill_questions.iter();
    let questions: Vec<_> =
        questions.map(|one| (one.skill.as_str(), one.question.as_str())).collect();
    assert_eq!(
        questions,
        [
            ("reviewing-security", "Do findings align with OWASP categories?"),
            ("reviewing-performance", "Are performance issues in hot paths?"),
        ]
    );
}

#[test]
fn a_line_up_is_the_same_after_serde() {
    let lineup = builtin_lineup(ReviewSubject::Code);
    let json = serde_json::to_value(&lineup).unwrap();
    assert_eq!(serde_json::from_value::<ReviewLineup>(json).unwrap(), lineup);
}

#[test]
fn a_file_that_adds_needs_little() {
    let lineup = read(&format!("subject: code{OWN_AGENT}"));
    assert_eq!(lineup.agents.len(), 1);
    assert_eq!(lineup.agents[0].tier_in(Phase::Quick), Some(ModelTier::Fast));
    assert_eq!(lineup.phases, LineupPhases::default());
    // Words are read in any case, and null is nothing.
    let lineup = read("subject: Code\nphases:\nvalidation: {quick_from: minor}\n");
    assert_eq!(lineup.validation.quick_from, Some(ReviewSeverity::Minor));
}

#[test]
fn what_is_no_line_up_is_refused_with_its_line() {
    refused_whole(
        "- a\n",
        "mine.yaml:1: a line-up is a mapping of fields, and this is a list; its fields are subject, phases, instructions, gaps_instructions, agents, synthesis, validation",
    );
    refused_whole("agents: []\n", "mine.yaml:1: a line-up needs `subject`: `code` or `docs`");
    refused_whole(
        "subject: tests\n",
        "mine.yaml:1: `tests` is no word for `subject`; known are code, docs",
    );
    refused("agnets: []\n", "mine.yaml:2: `agnets` is no field of a line-up; is `agents` meant?");
    refused(
        "colour: red\n",
        "mine.yaml:2: `colour` is no field of a line-up; known are subject, phases, instructions, gaps_instructions, agents, synthesis, validation",
    );
    refused(
        "agents: security\n",
        "mine.yaml:2: `agents` is a list, and this is text; begin each entry with `- `",
    );
    refused(
        "instructions: [a]\n",
        "mine.yaml:2: `instructions` is a text, and this is a list; write it after `|`",
    );
    refused(
        "synthesis: yes\n",
        "mine.yaml:2: `synthesis` is a mapping of fields, and this is text; its fields are agent, quick, deep, instructions, pairs, skill_questions",
    );
    refused(
        "phases:\n  deep: [gaps, thorough]\n",
        "mine.yaml:3: phases come once each, and in this order: patterns, thorough, quick, gaps, synthesis, validation",
    );
    refused(
        "phases:\n  deep: [thorogh]\n",
        "mine.yaml:3: `thorogh` is no word for `deep`; is `thorough` meant?",
    );
    refused(
        "validation:\n  quick_from: bad\n",
        "mine.yaml:3: `bad` is no word for `quick_from`; known are Critical, Major, Minor, Suggestion",
    );
    refused(
        "validation:\n  insights: {a: b}\n",
        "mine.yaml:3: `insights` is a word, and this is a mapping; use strong, fast",
    );
}

#[test]
fn a_file_that_is_no_yaml_is_refused_with_its_line() {
    let error = load_lineup("subject: code\nagents: [\n", "mine.yaml".into()).unwrap_err();
    assert!(error.line >= 2 && error.message.contains("; "), "{error}");
}

#[test]
fn what_is_no_agent_is_refused_with_its_line() {
    let name = "name: licence-agent";
    refused(
        &agent_with(name, "name: Licences"),
        "mine.yaml:3: `Licences` is no name of an agent; use small letters, digits and hyphens, and `-agent` at the end",
    );
    refused(
        &agent_with(name, "name: -agent"),
        "mine.yaml:3: `-agent` is no name of an agent; use small letters, digits and hyphens, and `-agent` at the end",
    );
    refused(
        &agent_with(name, "receives: [rules]"),
        "mine.yaml:3: an agent needs `name`: such as `licence-agent`",
    );
    refused(
        &agent_with("category: licences", "category: L L"),
        "mine.yaml:4: `L L` is no key of a category; use small letters, digits and hyphens",
    );
    refused(
        &agent_with("title: Licences", "title: ''"),
        "mine.yaml:5: an agent needs `title`: the name of its category, such as `Licences`",
    );
    refused(
        &agent_with("    quick: fast\n", ""),
        "mine.yaml:3: `licence-agent` takes part in no phase; give it `thorough`, `gaps` or `quick` with `strong` or `fast`",
    );
    refused(
        &agent_with("quick: fast", "quick: opus"),
        "mine.yaml:7: `opus` is no word for `quick`; known are strong, fast",
    );
    refused(
        &agent_with("    validator: fast\n", ""),
        "mine.yaml:3: an agent needs `validator`: `strong` or `fast`",
    );
    refused(
        &agent_with("quick: fast", "quik: fast"),
        "mine.yaml:7: `quik` is no field of an agent; is `quick` meant?",
    );
    refused(
        &agent_with("validator: fast", "validator: fast\n    details: [{name: Attack, ask: x}]"),
        "mine.yaml:9: `Attack` is no key of a detail; use small letters, digits and underscores",
    );
    let twice = format!(
        "{}{}",
        OWN_AGENT.trim_start(),
        OWN_AGENT.trim_start().trim_start_matches("agents:\n")
    );
    refused(&twice, "mine.yaml:9: `licence-agent` is there twice; give one another name");
}

#[test]
fn what_is_no_pair_is_refused_with_its_line() {
    let pair = |text: &str| format!("synthesis:\n  pairs:\n    - {text}\n");
    refused(
        &pair("{categories: [bugs], question: Why?, depths: [deep]}"),
        "mine.yaml:4: a pair is of two different categories; write `categories: [bugs, security]`",
    );
    refused(
        &pair("{categories: [bugs, bugs], question: Why?, depths: [deep]}"),
        "mine.yaml:4: a pair is of two different categories; write `categories: [bugs, security]`",
    );
    refused(
        &pair("{categories: [a, b], depths: [deep]}"),
        "mine.yaml:4: a pair needs `question`: what to ask of findings of both",
    );
    refused(
        &pair("{categories: [a, b], question: Why?}"),
        "mine.yaml:4: a pair needs `depths`: `[quick]`, `[deep]` or both",
    );
    refused(
        &pair("{categories: [a, b], question: Why?, depths: [patterns]}"),
        "mine.yaml:4: `patterns` is no word for `depths`; known are quick, deep",
    );
    refused(
        &pair(
            "{categories: [a, b], question: Why?, depths: [deep]}\n    - {categories: [b, a], question: Why not?, depths: [quick]}",
        ),
        "mine.yaml:5: `b` and `a` are a pair already; put both depths and one question there",
    );
    refused(
        "synthesis:\n  skill_questions:\n    - skill: a\n",
        "mine.yaml:4: a question of a skill needs `question`: what is asked when it takes part",
    );
}

#[test]
fn what_is_too_much_is_refused_with_its_line() {
    let text = "x".repeat(TEXT_CHARS_MAX + 1);
    refused(
        &format!("instructions: {text}\n"),
        "mine.yaml:2: this text has 20001 characters, and 20000 is the limit; put what a reviewer needs only at times into a skill",
    );
    let agents = "  - {}\n".repeat(AGENTS_MAX + 1);
    refused(
        &format!("agents:\n{agents}"),
        "mine.yaml:43: `agents` has 41 entries, and 40 is the limit; take some out",
    );
    let rules = "    - x\n".repeat(201);
    refused(
        &format!("validation:\n  false_positives:\n{rules}"),
        "mine.yaml:204: `false_positives` has 201 entries, and 200 is the limit; take some out",
    );
    let long = "#".repeat(FILE_BYTES_MAX);
    refused(
        &long,
        "mine.yaml:1: the file has 524302 bytes, and 524288 is the limit; shorten the instructions",
    );
}

#[test]
fn an_agent_of_the_user_joins_or_takes_the_place_of_another() {
    let text = format!("subject: code{OWN_AGENT}");
    let MergedLineup { lineup, warnings } =
        merge_lineups(builtin_lineup(ReviewSubject::Code), read(&text), LineupSource::User);
    assert_eq!((lineup.agents.len(), warnings.len()), (10, 0));
    assert_eq!(lineup.agents[9].name, "licence-agent");
    assert_eq!(problems(&lineup), Vec::<String>::new());

    let own = agent_with("licence-agent", "security-agent").replace("licences", "security");
    let MergedLineup { lineup, warnings } = merge_lineups(
        builtin_lineup(ReviewSubject::Code),
        read(&format!("subject: code\n{own}")),
        LineupSource::User,
    );
    assert_eq!((lineup.agents.len(), warnings.len()), (9, 0));
    assert_eq!(lineup.agents[0].instructions, "Look at security.");
    assert_eq!(problems(&lineup), Vec::<String>::new());
}

const ALL_OF_IT: &str = "\
subject: code
phases: {quick: [quick, validation]}
instructions: Be kind.
synthesis:
  deep: strong
  pairs:
    - {categories: [test-coverage, architecture], question: Why?, depths: [quick]}
    - {categories: [security, test-coverage], question: What is untested?, depths: [deep]}
  skill_questions: [{skill: mine, question: Is it mine?}]
validation:
  quick_from: Critical
  false_positives: [Anything in `old/`.]
agents:
  - {name: security-agent, category: security, title: S, instructions: Nothing., quick: fast, validator: fast}
";

#[test]
fn a_user_may_replace_what_is_there() {
    let MergedLineup { lineup, warnings } =
        merge_lineups(builtin_lineup(ReviewSubject::Code), read(ALL_OF_IT), LineupSource::User);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(lineup.phases.quick, [Phase::Quick, Phase::Validation]);
    assert_eq!(lineup.instructions, "Be kind.");
    assert_eq!(lineup.synthesis.deep, Some(ModelTier::Strong));
    assert_eq!(lineup.synthesis.pairs[0].question, "Why?");
    assert_eq!(lineup.synthesis.pairs.len(), 8);
    assert_eq!(lineup.synthesis.skill_questions.len(), 3);
    assert_eq!(lineup.validation.quick_from, Some(ReviewSeverity::Critical));
    assert_eq!(lineup.validation.false_positives.last().unwrap(), "Anything in `old/`.");
    assert_eq!(problems(&lineup), Vec::<String>::new());
}

#[test]
fn a_repository_may_only_add() {
    let base = builtin_lineup(ReviewSubject::Code);
    let MergedLineup { lineup, warnings } =
        merge_lineups(base.clone(), read(ALL_OF_IT), LineupSource::Project);
    let what = |warning: &String| {
        let rest = warning.strip_prefix("the repository's line-up has ").unwrap();
        rest.split_once(", which is there already and stays as it is;").unwrap().0.to_owned()
    };
    assert_eq!(
        warnings.iter().map(what).collect::<Vec<_>>(),
        [
            "`phases.quick`",
            "`instructions`",
            "an agent `security-agent`",
            "`synthesis.deep`",
            "a pair `test-coverage` and `architecture`",
            "`validation.quick_from`",
        ]
    );
    assert_eq!(lineup.agents, base.agents);
    assert_eq!((&lineup.phases, &lineup.instructions), (&base.phases, &base.instructions));
    assert_eq!(lineup.synthesis.pairs.len(), base.synthesis.pairs.len() + 1);
    assert_eq!(lineup.validation.quick_from, base.validation.quick_from);
    assert_eq!(lineup.validation.false_positives.last().unwrap(), "Anything in `old/`.");
    let own = read(&format!("subject: code{OWN_AGENT}"));
    let MergedLineup { lineup, warnings } = merge_lineups(base, own, LineupSource::Project);
    assert_eq!((lineup.agents.len(), warnings.len()), (10, 0));
}

#[test]
fn a_line_up_for_another_subject_adds_nothing() {
    let base = builtin_lineup(ReviewSubject::Docs);
    let merged = merge_lineups(base.clone(), read(ALL_OF_IT), LineupSource::User);
    assert_eq!(merged, MergedLineup { lineup: base.clone(), warnings: Vec::new() });
    // Merging a line-up with itself changes nothing and is nothing to warn about.
    let merged = merge_lineups(base.clone(), base.clone(), LineupSource::Project);
    assert_eq!(merged, MergedLineup { lineup: base, warnings: Vec::new() });
}

#[test]
fn a_line_up_that_cannot_review_says_all_that_is_missing() {
    assert_eq!(
        problems(&ReviewLineup::default()),
        [
            "`phases.quick` is empty; name the phases, such as `[patterns, quick, validation]`",
            "`phases.deep` is empty; name the phases, such as `[patterns, quick, validation]`",
        ]
    );
    let mut lineup = builtin_lineup(ReviewSubject::Code);
    lineup.agents.truncate(1);
    lineup.agents[0].gaps = None;
    lineup.agents[0].name = "synthesis-agent".into();
    lineup.synthesis.pairs.truncate(1);
    lineup.synthesis.pairs[0].categories = ["secrity".into(), "weather".into()];
    (lineup.synthesis.deep, lineup.validation.insights) = (None, None);
    assert_eq!(
        problems(&lineup),
        [
            "there are two agents `synthesis-agent`; give one another name",
            "no agent takes part in the phase `gaps`; give one `gaps: strong`, or take the phase out",
            "`synthesis.deep` is missing; say `strong` or `fast`",
            "`validation.insights` is missing; say `strong` or `fast`",
            "a pair asks about `secrity`, and no agent has that category; is `security` meant?",
            "a pair asks about `weather`, and no agent has that category; add an agent for it, or take the pair out",
        ]
    );
    lineup.synthesis.agent = "Synthesis".into();
    lineup.synthesis.pairs[0].depths = vec![ReviewDepth::Quick];
    lineup.synthesis.quick = None;
    let found = problems(&lineup);
    assert!(found[0].starts_with("`Synthesis` is no name of an agent;"), "{found:?}");
    assert!(found.contains(&"`synthesis.quick` is missing; say `strong` or `fast`".to_owned()));
    lineup.synthesis.agent.clear();
    let missing = "`synthesis.agent` is missing; name it, such as `synthesis-agent`";
    assert!(problems(&lineup).contains(&missing.to_owned()));
}

#[test]
fn many_files_together_are_still_within_the_limits() {
    let mut lineup = builtin_lineup(ReviewSubject::Code);
    let (agent, pair) = (lineup.agents[0].clone(), lineup.synthesis.pairs[0].clone());
    for number in 0..AGENTS_MAX {
        let name = format!("a{number}-agent");
        lineup.agents.push(ReviewAgent { name, ..agent.clone() });
        lineup.synthesis.pairs.push(pair.clone());
    }
    assert_eq!(
        problems(&lineup),
        [
            "there are 49 agents, and 40 is the limit; take some out",
            "there are 47 pairs, and 40 is the limit; take some out",
        ]
    );
}
