//! Runs a review: one phase after the other, with concurrent agent calls within a phase.
//!
//! The pipeline only orders the work. Decisions about single findings are in `sifting`, `admit` and `validate`.

use std::collections::BTreeMap;

use crate::extract::Severity;
use futures_util::StreamExt;
use futures_util::stream;
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

/// The inputs of a review.
pub struct Plan {
    pub depth: Depth,
    pub lineup: Lineup,
    /// The change, rules and tests under review.
    pub gathered: Gathered,
    /// The skills that take part.
    pub skills: Vec<Resolved>,
    /// Requested skills that could not be used.
    pub unresolved: Vec<Unresolved>,
    /// Agents that the user has disabled.
    pub skip_agents: Vec<String>,
    /// Additional instructions of the user.
    pub instructions: String,
    /// Findings below this severity are left out.
    pub min_severity: Severity,
    /// The maximum number of concurrent calls.
    pub at_once: usize,
    /// The findings of an earlier review.
    pub baseline: Baseline,
    /// Findings that the repository has suppressed in its ignore file.
    pub ignore: IgnoreFile,
    pub patterns: PatternSet,
    /// Warnings from the preparation, to be shown in the report.
    pub warnings: Vec<String>,
}

/// A progress event of a running review.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A phase begins, with this number of calls.
    Phase(Phase, usize),
    /// An agent is being called.
    Asked(Phase, &'a str),
    /// A call has ended, with or without an answer.
    Answered(&'a Call),
}

/// Receives progress events.
pub type Listener<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

impl Plan {
    /// The phases of this depth, in the order in which they run.
    pub fn phases(&self) -> &[Phase] {
        match self.depth {
            Depth::Patterns => &[Phase::Patterns],
            Depth::Quick => &self.lineup.phases.quick,
            Depth::Deep => &self.lineup.phases.deep,
        }
    }

    /// The agents of a phase, with their model tiers.
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

    /// The categories that are looked for, by agents or by patterns.
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

    /// The pairs of this depth for which both categories have an agent.
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

    /// The planned number of calls in each phase. Calls that depend on findings are not counted.
    pub fn planned(&self) -> Vec<PlannedPhase> {
        let one =
            |phase: &Phase| PlannedPhase { phase: *phase, calls: self.calls_in(*phase) as u32 };
        self.phases().iter().filter(|phase| **phase != Phase::Patterns).map(one).collect()
    }

    fn calls_in(&self, phase: Phase) -> usize {
        match phase {
            Phase::Synthesis => self.pairs().len(),
            phase => self.agents(phase).len(),
        }
    }

    /// The instructions that skills give to each agent.
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

    /// The questions for the agents of a phase. `before` are the findings of earlier phases.
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

    /// All questions that are known before any answer arrives, with their phases.
    pub fn preview(&self) -> Vec<(Phase, Question)> {
        let told = self.told();
        let asked = self.phases().iter().flat_map(|phase| {
            self.questions(*phase, &told, &[]).into_iter().map(|question| (*phase, question))
        });
        asked.collect()
    }
}

/// The intermediate results of a running review.
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
    /// Returns true if every call so far has failed.
    fn is_hopeless(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|call| call.outcome.is_missing())
    }
}

/// Runs a review. `id` and `started_ms` go into the record; the caller fills in the duration.
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
            // If every call has failed, the cause is probably general, such as a wrong key: don't make more calls.
            if work.is_hopeless() {
                break;
            }
            match phase {
                Phase::Thorough | Phase::Quick | Phase::Gaps => room.look(*phase, &mut work).await,
                Phase::Synthesis => room.synthesise(&mut work).await,
                Phase::Patterns => room.patterns(&mut work),
                // Validation always comes last, in `believe`.
                Phase::Validation => {}
            }
        }
    }
    let believed = room.believe(&mut work).await;
    let (findings, insights) = room.report(believed, &mut work);
    record(plan, work, findings, insights, (id, started_ms))
}

/// The environment of a running review.
struct Room<'a> {
    plan: &'a Plan,
    panel: &'a dyn Panel,
    listener: Listener<'a>,
    cancel: &'a CancellationToken,
    told: &'a Told,
}

impl Room<'_> {
    /// Searches the change for patterns. A match of a trusted skill's pattern needs no validation.
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

    /// Asks the agents of a phase concurrently. Answers are read in the order of the line-up, so that ids are
    /// deterministic.
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

    /// Asks about the pairs of categories that both have findings.
    async fn synthesise(&self, work: &mut Work) {
        let phase = Phase::Synthesis;
        let pairs = self.plan.pairs();
        let (mut asked, mut skipped) = (Vec::new(), Vec::new());
        for pair in pairs {
            let findings = findings_of_pair(pair, &work.findings);
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

    /// Validates the findings and insights. Returns the severity and validation of those that stand, by id.
    async fn believe(&self, work: &mut Work) -> BTreeMap<String, (Severity, Validation)> {
        let (mut settled, due) = sifting::sift(self.plan, &self.told.false_positive_rules, work);
        let mut batches = validate::batches(due.iter(), &self.plan.lineup);
        // Only the first batches are asked about, so put the worst findings first.
        if batches.len() > REVIEW_BATCHES_MAX {
            batches.sort_by_key(|batch| std::cmp::Reverse(worst_severity(batch, &due)));
        }
        let thoughts: Vec<Thought> = work.thoughts.clone();
        if !thoughts.is_empty() {
            let tier = self.plan.lineup.validation.insights.unwrap_or(ModelTier::Strong);
            let ids = thoughts.iter().map(|thought| thought.id.clone()).collect();
            batches.push(Batch { about: "insights".to_owned(), tier, ids });
        }
        let ask = self.plan.phases().contains(&Phase::Validation) && !work.is_hopeless();
        let questions: Vec<Question> = if ask {
            let asked = batches.iter().take(REVIEW_BATCHES_MAX);
            asked.map(|batch| self.batch_question(batch, &due, work)).collect()
        } else {
            Vec::new()
        };
        // Findings without a validator call are reported as unverified, which is not the same as invalid.
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
        // Don't recognise insights by the name of the batch: a file may have that name as well.
        let thoughts: Vec<&Thought> = work.thoughts.iter().filter(|one| named(&one.id)).collect();
        let prompt = if thoughts.is_empty() {
            let findings: Vec<&Finding> = due.iter().filter(|one| named(&one.id)).collect();
            let path = batch.about.as_str().into();
            briefing.validation(path, &findings, &self.told.false_positive_rules)
        } else {
            let behind = |finding: &&Finding| {
                thoughts.iter().any(|thought| thought.related.contains(&finding.id))
            };
            let findings: Vec<&Finding> = work.findings.iter().filter(behind).collect();
            briefing.insights(&thoughts, &findings)
        };
        Question {
            name: batch.name(),
            tier: batch.tier,
            prompt,
            schema: ("verdicts", validate::schema()),
        }
    }

    /// Merges and sorts the validated findings, and selects the insights that still have their findings.
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

    /// Asks all questions, at most `at_once` concurrently. Returns the answers in the order of the questions.
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
            // Report progress immediately. The record is written in order once all answers are in.
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

fn findings_of_pair(pair: &Pair, findings: &[Finding]) -> Vec<Finding> {
    let in_pair = findings.iter().filter(|finding| pair.categories.contains(&finding.category));
    in_pair.cloned().collect()
}

fn worst_severity(batch: &Batch, findings: &[Finding]) -> Option<Severity> {
    let in_batch = findings.iter().filter(|finding| batch.ids.contains(&finding.id));
    in_batch.map(|finding| finding.severity).max()
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
    let tests = work.tests.iter().filter_map(|(finding, test)| {
        let catches = Some(reported_id(&findings, finding)?);
        Some(TestRecommendation {
            test: test.test.clone(),
            catches,
            file: test.file.clone().map(Into::into),
        })
    });
    let categories = plan.categories();
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
            .map(|key| CategoryRecord {
                key: key.clone(),
                title: category_title(&plan.lineup, key),
            })
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

/// Returns the id of the reported finding that an agent's finding was merged into.
fn reported_id(reported: &[Reported], finding_id: &str) -> Option<String> {
    let has_member = |one: &&Reported| one.members.iter().any(|member| member == finding_id);
    reported.iter().find(has_member).map(|one| one.id.clone())
}

fn category_title(lineup: &Lineup, key: &str) -> String {
    lineup.of_category(key).map_or_else(|| key.to_owned(), |agent| agent.title.clone())
}

/// Warnings about calls without an answer, grouped by reason.
fn unanswered(calls: &[Call]) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for call in calls.iter().filter(|call| call.outcome.is_missing()) {
        let reason = call.reason.as_deref().unwrap_or("nobody knows why");
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&call.agent),
            None => by_reason.push((reason, vec![&call.agent])),
        }
    }
    by_reason
        .iter()
        .map(|(reason, names)| format!("no answer from {}: {reason}", names.join(", ")))
        .collect()
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
