//! A review from beginning to end: phases with barriers between them, agents of a phase at once, and decisions in between.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::stream;
use crate::extract::Severity;
use tokio_util::sync::CancellationToken;

use super::admit::{self, Asked, Test};
use super::aggregate::{self, Believed};
use super::asking::{Answer, Panel, Question};
use super::baseline::Baseline;
use super::change::ChangedFile;
use super::finding::{Finding, Phase};
use super::instructions::{self, Resolved, Told};
use super::lineup::{Agent, Lineup, ModelTier, Pair};
use super::patterns::PatternSet;
use super::prints;
use super::prompt::Briefing;
use super::record::{
    Call, CallOutcome, CategoryRecord, Depth, FalseClaim, FileRecord, Insight, LeftOut,
    PlannedPhase, Reported, Review, SkillRecord, TestRecommendation, Unresolved, VERSION,
    Validation,
};
use super::scope::Gathered;
use super::suppress::IgnoreFile;
use super::synthesis::{self, Thought};
use super::validate::{self, Batch};
use crate::limits::REVIEW_BATCHES_MAX;

mod sifting;

/// Everything that a review begins with.
pub struct Plan {
    /// How deep it looks.
    pub depth: Depth,
    /// Who reviews.
    pub lineup: Lineup,
    /// What is looked at.
    pub gathered: Gathered,
    /// Skills that take part.
    pub skills: Vec<Resolved>,
    /// Skills that were asked for and do not.
    pub unresolved: Vec<Unresolved>,
    /// Agents that the user has left out.
    pub skip_agents: Vec<String>,
    /// What the user said besides.
    pub instructions: String,
    /// What is reported at least.
    pub min_severity: Severity,
    /// Calls at once.
    pub at_once: usize,
    /// What was reported before.
    pub baseline: Baseline,
    /// What the repository has said to be meant so.
    pub ignore: IgnoreFile,
    /// Patterns of the skills.
    pub patterns: PatternSet,
    /// What is known already that a reader should know.
    pub warnings: Vec<String>,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A phase begins, with so many calls.
    Phase(Phase, usize),
    /// Somebody is asked.
    Asked(Phase, &'a str),
    /// Somebody answered, or did not.
    Answered(&'a Call),
}

/// Who is told.
pub type Listener<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

impl Plan {
    /// The phases, in order.
    pub fn phases(&self) -> &[Phase] {
        match self.depth {
            Depth::Patterns => &[Phase::Patterns],
            Depth::Quick => &self.lineup.phases.quick,
            Depth::Deep => &self.lineup.phases.deep,
        }
    }

    /// The agents of a phase with their kinds of models.
    fn agents(&self, phase: Phase) -> Vec<(&Agent, ModelTier)> {
        let here =
            self.lineup.agents.iter().filter(|agent| !self.skip_agents.contains(&agent.name));
        here.filter_map(|agent| agent.tier(phase).map(|tier| (agent, tier))).collect()
    }

    /// The agents that take part in any phase, in the order of the line-up.
    fn taking_part(&self) -> Vec<&Agent> {
        let takes_part = |agent: &&Agent| {
            let is_skipped = self.skip_agents.contains(&agent.name);
            !is_skipped && self.phases().iter().any(|phase| agent.tier(*phase).is_some())
        };
        self.lineup.agents.iter().filter(takes_part).collect()
    }

    /// What is looked for: the categories of agents that take part, and those of patterns.
    pub fn categories(&self) -> Vec<String> {
        let agents = self.taking_part().into_iter().map(|agent| agent.category.clone());
        let mut out: Vec<String> = agents.collect();
        for category in self.patterns.categories() {
            if !out.contains(&category) {
                out.push(category);
            }
        }
        out
    }

    /// The pairs of this depth whose categories are looked for.
    fn pairs(&self) -> Vec<&Pair> {
        let categories: Vec<&String> =
            self.taking_part().iter().map(|agent| &agent.category).collect();
        let here =
            self.lineup.synthesis.pairs.iter().filter(|pair| pair.depths.contains(&self.depth));
        here.filter(|pair| pair.categories.iter().all(|category| categories.contains(&category)))
            .collect()
    }

    fn synthesis_tier(&self) -> ModelTier {
        let synthesis = &self.lineup.synthesis;
        let tier = if self.depth == Depth::Quick { synthesis.quick } else { synthesis.deep };
        tier.unwrap_or(ModelTier::Strong)
    }

    /// How many calls each phase will have, as far as that is known before.
    pub fn planned(&self) -> Vec<PlannedPhase> {
        let calls = |phase: Phase| match phase {
            Phase::Synthesis => self.pairs().len(),
            phase => self.agents(phase).len(),
        };
        let one = |phase: &Phase| PlannedPhase { phase: *phase, calls: calls(*phase) as u32 };
        self.phases().iter().filter(|phase| **phase != Phase::Patterns).map(one).collect()
    }

    /// What skills tell each agent.
    pub fn told(&self) -> Told {
        let mut names: Vec<&str> =
            self.taking_part().iter().map(|agent| agent.name.as_str()).collect();
        if !self.lineup.synthesis.agent.is_empty() {
            names.push(&self.lineup.synthesis.agent);
        }
        instructions::generate(&self.skills, &names, &self.skip_agents)
    }

    fn briefing(&self) -> Briefing<'_> {
        Briefing {
            lineup: &self.lineup,
            scope: &self.gathered.scope,
            change: &self.gathered.change,
            rules: &self.gathered.rules,
            tests: &self.gathered.related_tests,
            instructions: &self.instructions,
        }
    }

    /// What the agents of a phase are asked, when so much has been found before.
    pub fn questions(&self, phase: Phase, told: &Told, before: &[Finding]) -> Vec<Question> {
        let briefing = self.briefing();
        let one = |(agent, tier): (&Agent, ModelTier)| Question {
            name: agent.name.clone(),
            tier,
            prompt: briefing.agent(agent, phase, told.agents.get(&agent.name), before),
            schema: ("findings", admit::schema(agent)),
        };
        self.agents(phase).into_iter().map(one).collect()
    }

    /// Every question that can be known before anybody has answered, phase by phase.
    pub fn preview(&self) -> Vec<(Phase, Question)> {
        let told = self.told();
        let asked = self.phases().iter().flat_map(|phase| {
            self.questions(*phase, &told, &[]).into_iter().map(|question| (*phase, question))
        });
        asked.collect()
    }
}

/// What a review has come to so far.
#[derive(Default)]
struct Work {
    findings: Vec<Finding>,
    left_out: Vec<LeftOut>,
    false_claims: Vec<FalseClaim>,
    tests: Vec<(String, Test)>,
    thoughts: Vec<Thought>,
    calls: Vec<Call>,
    warnings: Vec<String>,
}

impl Work {
    /// Whether everybody was asked in vain.
    fn is_hopeless(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|call| call.outcome.is_missing())
    }
}

/// Runs a review. `id` and `started_ms` are its name and time; the caller adds how long it took.
pub async fn run(
    plan: &Plan,
    panel: &dyn Panel,
    listener: Listener<'_>,
    cancel: &CancellationToken,
    (id, started_ms): (String, u64),
) -> Review {
    let told = plan.told();
    let mut work = Work { warnings: plan.warnings.clone(), ..Work::default() };
    work.warnings.extend(plan.gathered.warnings.iter().cloned());
    if plan.depth != Depth::Patterns {
        work.warnings.extend(told.warnings.iter().cloned());
    }
    let room = Room { plan, panel, listener, cancel, told: &told };
    if !plan.gathered.change.files.is_empty() {
        for phase in plan.phases() {
            // Where nobody could answer, nobody else will: a wrong key, a program that does not start.
            if work.is_hopeless() {
                break;
            }
            match phase {
                Phase::Thorough | Phase::Quick | Phase::Gaps => room.look(*phase, &mut work).await,
                Phase::Synthesis => room.synthesise(&mut work).await,
                Phase::Patterns => room.patterns(&mut work),
                // It comes last, whatever else there is.
                Phase::Validation => {}
            }
        }
    }
    let believed = room.believe(&mut work).await;
    let (findings, insights) = room.report(believed, &mut work);
    record(plan, work, findings, insights, (id, started_ms))
}

/// Where a review happens.
struct Room<'a> {
    plan: &'a Plan,
    panel: &'a dyn Panel,
    listener: Listener<'a>,
    cancel: &'a CancellationToken,
    told: &'a Told,
}

impl Room<'_> {
    /// Patterns run over the change. What a trusted skill's pattern matches needs nobody's opinion.
    fn patterns(&self, work: &mut Work) {
        let is_over = || self.cancel.is_cancelled();
        let scan = self.plan.patterns.scan(&self.plan.gathered.change, Some(&is_over));
        if scan.cut {
            let said = "the patterns were stopped before they had gone through the change";
            work.warnings.push(said.to_owned());
        }
        for hit in scan.hits {
            if hit.more > 0 {
                work.warnings.push(format!(
                    "the pattern `{}` matches {} more often than can be listed; the rest is not looked at",
                    hit.pattern, hit.file
                ));
            }
            sifting::take_hit(self.plan, hit, work);
        }
    }

    /// Agents look at the change, all of a phase at once; what they say is read in the order of the line-up.
    async fn look(&self, phase: Phase, work: &mut Work) {
        let questions = self.plan.questions(phase, self.told, &work.findings);
        let answers = self.ask_all(phase, &questions).await;
        let before = work.findings.clone();
        let agents = self.plan.agents(phase);
        for ((question, answer), (agent, _)) in questions.iter().zip(answers).zip(agents) {
            let Gathered { change, tree, .. } = &self.plan.gathered;
            let asked = Asked { agent, phase, change, root: tree.dir(), before: &before };
            let next = work.findings.len() + 1;
            let read = answer.value.as_ref().and_then(|value| admit::admit(value, asked, next));
            let mut call = self.call(phase, question, &answer, read.is_some());
            if let Some(admitted) = read {
                call.answered = admitted.answered;
                call.admitted = admitted.findings.len() as u32;
                work.findings.extend(admitted.findings);
                work.left_out.extend(admitted.left_out);
                work.tests.extend(admitted.tests);
            }
            work.calls.push(call);
        }
    }

    /// Pairs of categories that both have findings.
    async fn synthesise(&self, work: &mut Work) {
        let phase = Phase::Synthesis;
        let pairs = self.plan.pairs();
        let sides = |pair: &Pair| -> Vec<Finding> {
            let of = |finding: &&Finding| pair.categories.contains(&finding.category);
            work.findings.iter().filter(of).cloned().collect()
        };
        let (mut asked, mut skipped) = (Vec::new(), Vec::new());
        for pair in pairs {
            let findings = sides(pair);
            let empty = pair
                .categories
                .iter()
                .find(|category| !findings.iter().any(|finding| finding.category == **category));
            match empty {
                Some(category) => {
                    skipped.push((pair, format!("there are no findings of `{category}`")))
                }
                None => asked.push((self.pair_question(pair, &findings), pair, findings)),
            }
        }
        let questions: Vec<Question> =
            asked.iter().map(|(question, ..)| question.clone()).collect();
        let answers = self.ask_all(phase, &questions).await;
        for ((question, pair, findings), answer) in asked.into_iter().zip(answers) {
            let findings: Vec<&Finding> = findings.iter().collect();
            let next = work.thoughts.len() + 1;
            let read = answer
                .value
                .as_ref()
                .and_then(|value| synthesis::admit(value, pair, &findings, &question.name, next));
            let mut call = self.call(phase, &question, &answer, read.is_some());
            if let Some((thoughts, left_out)) = read {
                call.answered = (thoughts.len() + left_out.len()) as u32;
                call.admitted = thoughts.len() as u32;
                work.thoughts.extend(thoughts);
                work.left_out.extend(left_out);
            }
            work.calls.push(call);
        }
        for (pair, reason) in skipped {
            work.calls.push(skipped_call(
                phase,
                pair_name(pair),
                self.plan.synthesis_tier(),
                reason,
            ));
        }
    }

    fn pair_question(&self, pair: &Pair, findings: &[Finding]) -> Question {
        let questions = synthesis::questions(&self.plan.lineup, pair, &self.plan.skills);
        let findings: Vec<&Finding> = findings.iter().collect();
        let told = self.told.agents.get(&self.plan.lineup.synthesis.agent);
        Question {
            name: pair_name(pair),
            tier: self.plan.synthesis_tier(),
            prompt: self.plan.briefing().synthesis(&questions, &findings, told),
            schema: ("insights", synthesis::schema()),
        }
    }

    /// What is true of what was found.
    async fn believe(&self, work: &mut Work) -> BTreeMap<String, (Severity, Validation)> {
        let (mut settled, due) = sifting::sift(self.plan, &self.told.false_positive_rules, work);
        let mut batches = validate::batches(due.iter(), &self.plan.lineup);
        let worst = |batch: &Batch| {
            let named = due.iter().filter(|finding| batch.ids.contains(&finding.id));
            named.map(|finding| finding.severity).max()
        };
        if batches.len() > REVIEW_BATCHES_MAX {
            batches.sort_by_key(|batch| std::cmp::Reverse(worst(batch)));
        }
        let thoughts: Vec<Thought> = work.thoughts.clone();
        if !thoughts.is_empty() {
            let tier = self.plan.lineup.validation.insights.unwrap_or(ModelTier::Strong);
            let ids = thoughts.iter().map(|thought| thought.id.clone()).collect();
            batches.push(Batch { about: "insights".to_owned(), tier, ids });
        }
        let ask = self.plan.phases().contains(&Phase::Validation) && !work.is_hopeless();
        let questions: Vec<Question> = match ask {
            true => {
                let asked = batches.iter().take(REVIEW_BATCHES_MAX);
                asked.map(|batch| self.batch_question(batch, &due, work)).collect()
            }
            false => Vec::new(),
        };
        // Who is not asked about has no verdict, which is told, and is not the same as a bad one.
        for id in batches.iter().skip(questions.len()).flat_map(|batch| &batch.ids) {
            sifting::settle(id, None, work, &mut settled);
        }
        let answers = self.ask_all(Phase::Validation, &questions).await;
        for ((batch, question), answer) in batches.iter().zip(&questions).zip(answers) {
            let read = answer.value.as_ref().and_then(|value| validate::read(value, &batch.ids));
            let mut call = self.call(Phase::Validation, question, &answer, read.is_some());
            let verdicts = read.unwrap_or_default();
            call.answered = verdicts.len() as u32;
            call.admitted = verdicts.len() as u32;
            work.calls.push(call);
            for id in &batch.ids {
                sifting::settle(id, verdicts.get(id), work, &mut settled);
            }
        }
        settled
    }

    fn batch_question(&self, batch: &Batch, due: &[Finding], work: &Work) -> Question {
        let briefing = self.plan.briefing();
        let named = |id: &String| batch.ids.contains(id);
        // Not by its name: a file may be called so as well.
        let thoughts: Vec<&Thought> = work.thoughts.iter().filter(|one| named(&one.id)).collect();
        let prompt = match !thoughts.is_empty() {
            true => {
                let behind = |finding: &&Finding| {
                    thoughts.iter().any(|thought| thought.related.contains(&finding.id))
                };
                let findings: Vec<&Finding> = work.findings.iter().filter(behind).collect();
                briefing.insights(&thoughts, &findings)
            }
            false => {
                let findings: Vec<&Finding> = due.iter().filter(|one| named(&one.id)).collect();
                briefing.validation(
                    batch.about.as_str().into(),
                    &findings,
                    &self.told.false_positive_rules,
                )
            }
        };
        Question {
            name: batch.name(),
            tier: batch.tier,
            prompt,
            schema: ("verdicts", validate::schema()),
        }
    }

    /// What is left, joined and sorted, and the insights that still stand.
    fn report(
        &self,
        settled: BTreeMap<String, (Severity, Validation)>,
        work: &mut Work,
    ) -> (Vec<Reported>, Vec<Insight>) {
        let believed: Vec<Believed> = sifting::believed(self.plan, &settled, work);
        let categories: Vec<String> =
            self.plan.lineup.agents.iter().map(|agent| agent.category.clone()).collect();
        let mut reported = aggregate::aggregate(believed, &categories);
        for one in &mut reported {
            if let Some(file) = self.plan.gathered.change.file(&one.file) {
                one.excerpt = aggregate::excerpt(file, one.lines);
            }
        }
        let insights = sifting::insights(self.plan, &settled, &reported, work);
        (reported, insights)
    }

    /// Asks all questions, so many at once, and gives the answers in the order of the questions.
    async fn ask_all(&self, phase: Phase, questions: &[Question]) -> Vec<Answer> {
        if questions.is_empty() {
            return Vec::new();
        }
        (self.listener)(Progress::Phase(phase, questions.len()));
        let one = async |question: &Question| {
            if self.cancel.is_cancelled() {
                let error = Some("the review was interrupted".to_owned());
                return Answer { error, is_broke: true, ..Answer::default() };
            }
            (self.listener)(Progress::Asked(phase, &question.name));
            let answer = self.panel.ask(question).await;
            // Told at once; the record is made of it in order afterwards.
            let is_read = answer.value.is_some();
            (self.listener)(Progress::Answered(&self.call(phase, question, &answer, is_read)));
            answer
        };
        let numbered = questions.iter().enumerate();
        let asked = stream::iter(numbered).map(async |(at, question)| (at, one(question).await));
        let mut answers: Vec<(usize, Answer)> =
            asked.buffer_unordered(self.plan.at_once.max(1)).collect().await;
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn call(&self, phase: Phase, question: &Question, answer: &Answer, is_read: bool) -> Call {
        let outcome = match (answer.is_broke, is_read) {
            (true, _) => CallOutcome::Unasked,
            (false, true) => CallOutcome::Completed,
            (false, false) => CallOutcome::Failed,
        };
        let unread = || "the answer does not have the shape that was asked for".to_owned();
        Call {
            phase,
            agent: question.name.clone(),
            tier: question.tier,
            model: answer.model.clone(),
            outcome,
            reason: (outcome != CallOutcome::Completed)
                .then(|| answer.error.clone().unwrap_or_else(unread)),
            answered: 0,
            admitted: 0,
            duration_ms: u64::try_from(answer.duration.as_millis()).unwrap_or(u64::MAX),
            input_tokens: answer.input_tokens,
            output_tokens: answer.output_tokens,
            cost_usd: answer.cost_usd,
        }
    }
}

fn pair_name(pair: &Pair) -> String {
    let [one, other] = &pair.categories;
    format!("synthesis ({one} + {other})")
}

fn skipped_call(phase: Phase, agent: String, tier: ModelTier, reason: String) -> Call {
    Call {
        phase,
        agent,
        tier,
        model: None,
        outcome: CallOutcome::Skipped,
        reason: Some(reason),
        answered: 0,
        admitted: 0,
        duration_ms: 0,
        input_tokens: 0,
        output_tokens: 0,
        cost_usd: None,
    }
}

fn record(
    plan: &Plan,
    work: Work,
    findings: Vec<Reported>,
    insights: Vec<Insight>,
    (id, started_ms): (String, u64),
) -> Review {
    let named = |finding: &String| {
        findings
            .iter()
            .find(|reported| reported.members.contains(finding))
            .map(|reported| reported.id.clone())
    };
    let tests = work.tests.iter().filter_map(|(finding, test)| {
        let catches = Some(named(finding)?);
        Some(TestRecommendation {
            test: test.test.clone(),
            catches,
            file: test.file.clone().map(Into::into),
        })
    });
    let categories = plan.categories();
    let title = |key: &String| {
        let agent = plan.lineup.agents.iter().find(|agent| agent.category == *key);
        agent.map_or_else(|| key.clone(), |agent| agent.title.clone())
    };
    Review {
        version: VERSION,
        id,
        subject: plan.lineup.subject,
        depth: plan.depth,
        scope: plan.gathered.scope.clone(),
        started_ms,
        duration_ms: 0,
        files: plan.gathered.change.files.iter().map(file_record).collect(),
        skipped: plan.gathered.change.skipped.clone(),
        unchanged: Vec::new(),
        min_severity: plan.min_severity,
        still_open: Vec::new(),
        categories: categories
            .iter()
            .map(|key| CategoryRecord { key: key.clone(), title: title(key) })
            .collect(),
        skills: plan.skills.iter().map(skill_record).collect(),
        unresolved_skills: plan.unresolved.clone(),
        warnings: [work.warnings, unanswered(&work.calls)].concat(),
        test_recommendations: tests.collect(),
        findings,
        insights,
        left_out: work.left_out,
        false_claims: work.false_claims,
        calls: work.calls,
        planned: plan.planned(),
    }
}

/// Calls without an answer are something that a reader has to know, those with the same reason at once.
fn unanswered(calls: &[Call]) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for call in calls.iter().filter(|call| call.outcome.is_missing()) {
        let reason = call.reason.as_deref().unwrap_or("nobody knows why");
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&call.agent),
            None => by_reason.push((reason, vec![&call.agent])),
        }
    }
    let said = |(reason, names): &(&str, Vec<&str>)| {
        format!("no answer from {}: {reason}", names.join(", "))
    };
    by_reason.iter().map(said).collect()
}

fn file_record(file: &ChangedFile) -> FileRecord {
    FileRecord {
        path: file.path.clone(),
        old_path: file.old_path.clone(),
        status: file.status,
        added: file.added(),
        removed: file.removed(),
        digest: prints::change_digest(file),
    }
}

fn skill_record(resolved: &Resolved) -> SkillRecord {
    let Resolved { skill, trusted, .. } = resolved;
    SkillRecord {
        name: skill.name.clone(),
        source: skill.source.clone(),
        kind: skill.kind,
        trusted: *trusted,
    }
}
