//! Runs a review: one phase after the other, with concurrent agent calls within a phase.
//!
//! The pipeline only orders the work. Decisions about single findings are in `sifting`, `admit` and `validate`.

use std::collections::BTreeMap;

use crate::extract::ReviewSeverity;
use futures_util::StreamExt;
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use super::admit::{self, Asked, ProposedTest};
use super::aggregate::{self, ValidatedFinding};
use super::baseline::ReviewBaseline;
use super::change::ReviewedFile;
use super::finding::{Phase, ReviewFinding};
use super::fingerprints;
use super::instructions::{self, ResolvedSkill, ReviewInstructions};
use super::lineup::{CategoryPair, ModelTier, ReviewAgent, ReviewLineup};
use super::patterns::PatternSet;
use super::prompt::ReviewPromptContext;
use super::questions::{Answer, Question, ReviewAnswerProvider};
use super::record::{
    CallOutcome, CategoryRecord, FalseClaim, FileRecord, FindingValidation, LeftOutFinding,
    PlannedPhase, ReportedFinding, ReviewCall, ReviewDepth, ReviewInsight, ReviewRecord,
    SkillRecord, TestRecommendation, UnresolvedSkill, VERSION,
};
use super::scope::ReviewInputs;
use super::suppress::IgnoreFile;
use super::synthesis::{self, ProposedInsight};
use super::validate::{self, ValidationBatch};
use crate::limits::REVIEW_BATCHES_MAX;

mod triage;

/// The inputs of a review.
pub struct ReviewPlan {
    pub depth: ReviewDepth,
    pub lineup: ReviewLineup,
    /// The change, rules and tests under review.
    pub gathered: ReviewInputs,
    /// The skills that take part.
    pub skills: Vec<ResolvedSkill>,
    /// Requested skills that could not be used.
    pub unresolved: Vec<UnresolvedSkill>,
    /// Agents that the user has disabled.
    pub skip_agents: Vec<String>,
    /// Additional instructions of the user.
    pub instructions: String,
    /// Findings below this severity are left out.
    pub min_severity: ReviewSeverity,
    /// The maximum number of concurrent calls.
    pub at_once: usize,
    /// The findings of an earlier review.
    pub baseline: ReviewBaseline,
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
    Answered(&'a ReviewCall),
    /// The engine has checked the answer of a call, which now has its counts.
    Checked(&'a ReviewCall),
}

/// Receives progress events.
pub type ReviewListener<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

impl ReviewPlan {
    /// The phases of this depth, in the order in which they run.
    pub fn phases(&self) -> &[Phase] {
        match self.depth {
            ReviewDepth::Patterns => &[Phase::Patterns],
            ReviewDepth::Quick => &self.lineup.phases.quick,
            ReviewDepth::Deep => &self.lineup.phases.deep,
        }
    }

    /// The agents of a phase, with their model tiers.
    fn agents_in(&self, phase: Phase) -> Vec<(&ReviewAgent, ModelTier)> {
        let here =
            self.lineup.agents.iter().filter(|agent| !self.skip_agents.contains(&agent.name));
        here.filter_map(|agent| agent.tier_in(phase).map(|tier| (agent, tier))).collect()
    }

    /// The agents that take part in any phase, in the order of the line-up.
    fn participating_agents(&self) -> Vec<&ReviewAgent> {
        let takes_part = |agent: &&ReviewAgent| {
            let is_skipped = self.skip_agents.contains(&agent.name);
            !is_skipped && self.phases().iter().any(|phase| agent.tier_in(*phase).is_some())
        };
        self.lineup.agents.iter().filter(takes_part).collect()
    }

    /// The categories that are looked for, by agents or by patterns.
    pub fn categories(&self) -> Vec<String> {
        let agents = self.participating_agents().into_iter().map(|agent| agent.category.clone());
        let mut out: Vec<String> = agents.collect();
        for category in self.patterns.categories() {
            if !out.contains(&category) {
                out.push(category);
            }
        }
        out
    }

    /// The pairs of this depth for which both categories have an agent.
    fn synthesis_pairs(&self) -> Vec<&CategoryPair> {
        let categories: Vec<&String> =
            self.participating_agents().iter().map(|agent| &agent.category).collect();
        let here =
            self.lineup.synthesis.pairs.iter().filter(|pair| pair.depths.contains(&self.depth));
        here.filter(|pair| pair.categories.iter().all(|category| categories.contains(&category)))
            .collect()
    }

    fn synthesis_tier(&self) -> ModelTier {
        let synthesis = &self.lineup.synthesis;
        let tier = if self.depth == ReviewDepth::Quick { synthesis.quick } else { synthesis.deep };
        tier.unwrap_or(ModelTier::Strong)
    }

    /// The planned number of calls in each phase. Calls that depend on findings are not counted.
    pub fn planned_phases(&self) -> Vec<PlannedPhase> {
        let one =
            |phase: &Phase| PlannedPhase { phase: *phase, calls: self.calls_in(*phase) as u32 };
        self.phases().iter().filter(|phase| **phase != Phase::Patterns).map(one).collect()
    }

    fn calls_in(&self, phase: Phase) -> usize {
        match phase {
            Phase::Synthesis => self.synthesis_pairs().len(),
            phase => self.agents_in(phase).len(),
        }
    }

    /// The instructions that skills give to each agent.
    pub fn skill_instructions(&self) -> ReviewInstructions {
        let mut names: Vec<&str> =
            self.participating_agents().iter().map(|agent| agent.name.as_str()).collect();
        if !self.lineup.synthesis.agent.is_empty() {
            names.push(&self.lineup.synthesis.agent);
        }
        instructions::generate_instructions(&self.skills, &names, &self.skip_agents)
    }

    fn prompt_context(&self) -> ReviewPromptContext<'_> {
        ReviewPromptContext {
            lineup: &self.lineup,
            scope: &self.gathered.scope,
            change: &self.gathered.change,
            rules: &self.gathered.rules,
            tests: &self.gathered.related_tests,
            instructions: &self.instructions,
        }
    }

    /// The questions for the agents of a phase. `before` are the findings of earlier phases.
    pub fn questions(
        &self,
        phase: Phase,
        told: &ReviewInstructions,
        before: &[ReviewFinding],
    ) -> Vec<Question> {
        let briefing = self.prompt_context();
        let one = |(agent, tier): (&ReviewAgent, ModelTier)| Question {
            name: agent.name.clone(),
            tier,
            prompt: briefing.agent_prompt(agent, phase, told.agents.get(&agent.name), before),
            schema: ("findings", admit::findings_schema(agent)),
        };
        self.agents_in(phase).into_iter().map(one).collect()
    }

    /// All questions that are known before any answer arrives, with their phases.
    pub fn preview_questions(&self) -> Vec<(Phase, Question)> {
        let told = self.skill_instructions();
        let asked = self.phases().iter().flat_map(|phase| {
            self.questions(*phase, &told, &[]).into_iter().map(|question| (*phase, question))
        });
        asked.collect()
    }
}

/// The intermediate results of a running review.
#[derive(Default)]
struct ReviewRunState {
    findings: Vec<ReviewFinding>,
    left_out: Vec<LeftOutFinding>,
    false_claims: Vec<FalseClaim>,
    tests: Vec<(String, ProposedTest)>,
    thoughts: Vec<ProposedInsight>,
    calls: Vec<ReviewCall>,
    warnings: Vec<String>,
}

impl ReviewRunState {
    /// Returns true if every call so far has failed.
    fn all_calls_failed(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|call| call.outcome.is_missing())
    }
}

/// Runs a review. `id` and `started_ms` go into the record; the caller fills in the duration.
#[tracing::instrument(name = "review", skip_all)]
pub async fn run_review(
    plan: &ReviewPlan,
    panel: &dyn ReviewAnswerProvider,
    listener: ReviewListener<'_>,
    cancel: &CancellationToken,
    (id, started_ms): (String, u64),
) -> ReviewRecord {
    let told = plan.skill_instructions();
    let mut work = ReviewRunState { warnings: plan.warnings.clone(), ..ReviewRunState::default() };
    work.warnings.extend(plan.gathered.warnings.iter().cloned());
    if plan.depth != ReviewDepth::Patterns {
        work.warnings.extend(told.warnings.iter().cloned());
    }
    let room = ReviewRunner { plan, panel, listener, cancel, told: &told };
    if !plan.gathered.change.files.is_empty() {
        for phase in plan.phases() {
            // If every call has failed, the cause is probably general, such as a wrong key: don't make more calls.
            if work.all_calls_failed() {
                break;
            }
            match phase {
                Phase::Thorough | Phase::Quick | Phase::Gaps => {
                    room.run_agents(*phase, &mut work).await
                }
                Phase::Synthesis => room.run_synthesis(&mut work).await,
                Phase::Patterns => room.run_patterns(&mut work),
                // Validation always comes last, in `believe`.
                Phase::Validation => {}
            }
        }
    }
    let believed = room.validate_findings(&mut work).await;
    let (findings, insights) = room.build_report(believed, &mut work);
    build_record(plan, work, findings, insights, (id, started_ms))
}

/// The environment of a running review.
struct ReviewRunner<'a> {
    plan: &'a ReviewPlan,
    panel: &'a dyn ReviewAnswerProvider,
    listener: ReviewListener<'a>,
    cancel: &'a CancellationToken,
    told: &'a ReviewInstructions,
}

impl ReviewRunner<'_> {
    /// Searches the change for patterns. A match of a trusted skill's pattern needs no validation.
    fn run_patterns(&self, work: &mut ReviewRunState) {
        let is_over = || self.cancel.is_cancelled();
        let scan = self.plan.patterns.scan_change(&self.plan.gathered.change, Some(&is_over));
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
            triage::admit_hit(self.plan, hit, work);
        }
    }

    /// Asks the agents of a phase concurrently. Answers are read in the order of the line-up, so that ids are
    /// deterministic.
    async fn run_agents(&self, phase: Phase, work: &mut ReviewRunState) {
        let questions = self.plan.questions(phase, self.told, &work.findings);
        let answers = self.ask_all(phase, &questions).await;
        let before = work.findings.clone();
        let agents = self.plan.agents_in(phase);
        for ((question, answer), (agent, _)) in questions.iter().zip(answers).zip(agents) {
            let ReviewInputs { change, tree, .. } = &self.plan.gathered;
            let asked = Asked { agent, phase, change, root: tree.dir(), before: &before };
            let next = work.findings.len() + 1;
            let read =
                answer.value.as_ref().and_then(|value| admit::admit_findings(value, asked, next));
            let mut call = self.call(phase, question, &answer, read.is_some());
            if let Some(admitted) = read {
                call.answered = admitted.answered;
                call.admitted = admitted.findings.len() as u32;
                work.findings.extend(admitted.findings);
                work.left_out.extend(admitted.left_out);
                work.tests.extend(admitted.tests);
            }
            (self.listener)(Progress::Checked(&call));
            work.calls.push(call);
        }
    }

    /// Asks about the pairs of categories that both have findings.
    async fn run_synthesis(&self, work: &mut ReviewRunState) {
        let phase = Phase::Synthesis;
        let pairs = self.plan.synthesis_pairs();
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
            let findings: Vec<&ReviewFinding> = findings.iter().collect();
            let next = work.thoughts.len() + 1;
            let read = answer.value.as_ref().and_then(|value| {
                synthesis::admit_insights(value, pair, &findings, &question.name, next)
            });
            let mut call = self.call(phase, &question, &answer, read.is_some());
            if let Some((thoughts, left_out)) = read {
                call.answered = (thoughts.len() + left_out.len()) as u32;
                call.admitted = thoughts.len() as u32;
                work.thoughts.extend(thoughts);
                work.left_out.extend(left_out);
            }
            (self.listener)(Progress::Checked(&call));
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

    fn pair_question(&self, pair: &CategoryPair, findings: &[ReviewFinding]) -> Question {
        let questions = synthesis::questions(&self.plan.lineup, pair, &self.plan.skills);
        let findings: Vec<&ReviewFinding> = findings.iter().collect();
        let told = self.told.agents.get(&self.plan.lineup.synthesis.agent);
        Question {
            name: pair_name(pair),
            tier: self.plan.synthesis_tier(),
            prompt: self.plan.prompt_context().synthesis_prompt(&questions, &findings, told),
            schema: ("insights", synthesis::insights_schema()),
        }
    }

    /// Validates the findings and insights. Returns the severity and validation of those that stand, by id.
    async fn validate_findings(
        &self,
        work: &mut ReviewRunState,
    ) -> BTreeMap<String, (ReviewSeverity, FindingValidation)> {
        let (mut settled, due) =
            triage::sift_findings(self.plan, &self.told.false_positive_rules, work);
        let mut batches = validate::batch_findings(due.iter(), &self.plan.lineup);
        // Only the first batches are asked about, so put the worst findings first.
        if batches.len() > REVIEW_BATCHES_MAX {
            batches.sort_by_key(|batch| std::cmp::Reverse(worst_severity(batch, &due)));
        }
        let thoughts: Vec<ProposedInsight> = work.thoughts.clone();
        if !thoughts.is_empty() {
            let tier = self.plan.lineup.validation.insights.unwrap_or(ModelTier::Strong);
            let ids = thoughts.iter().map(|thought| thought.id.clone()).collect();
            batches.push(ValidationBatch { about: "insights".to_owned(), tier, ids });
        }
        let ask = self.plan.phases().contains(&Phase::Validation) && !work.all_calls_failed();
        let questions: Vec<Question> = if ask {
            let asked = batches.iter().take(REVIEW_BATCHES_MAX);
            asked.map(|batch| self.batch_question(batch, &due, work)).collect()
        } else {
            Vec::new()
        };
        // Findings without a validator call are reported as unverified, which is not the same as invalid.
        for id in batches.iter().skip(questions.len()).flat_map(|batch| &batch.ids) {
            triage::settle_finding(id, None, work, &mut settled);
        }
        let answers = self.ask_all(Phase::Validation, &questions).await;
        for ((batch, question), answer) in batches.iter().zip(&questions).zip(answers) {
            let read =
                answer.value.as_ref().and_then(|value| validate::read_verdicts(value, &batch.ids));
            let mut call = self.call(Phase::Validation, question, &answer, read.is_some());
            let verdicts = read.unwrap_or_default();
            call.answered = verdicts.len() as u32;
            call.admitted = verdicts.len() as u32;
            (self.listener)(Progress::Checked(&call));
            work.calls.push(call);
            for id in &batch.ids {
                triage::settle_finding(id, verdicts.get(id), work, &mut settled);
            }
        }
        settled
    }

    fn batch_question(
        &self,
        batch: &ValidationBatch,
        due: &[ReviewFinding],
        work: &ReviewRunState,
    ) -> Question {
        let briefing = self.plan.prompt_context();
        let named = |id: &String| batch.ids.contains(id);
        // Don't recognise insights by the name of the batch: a file may have that name as well.
        let thoughts: Vec<&ProposedInsight> =
            work.thoughts.iter().filter(|one| named(&one.id)).collect();
        let prompt = if thoughts.is_empty() {
            let findings: Vec<&ReviewFinding> = due.iter().filter(|one| named(&one.id)).collect();
            let path = batch.about.as_str().into();
            briefing.validation_prompt(path, &findings, &self.told.false_positive_rules)
        } else {
            let behind = |finding: &&ReviewFinding| {
                thoughts.iter().any(|thought| thought.related.contains(&finding.id))
            };
            let findings: Vec<&ReviewFinding> = work.findings.iter().filter(behind).collect();
            briefing.insights_prompt(&thoughts, &findings)
        };
        Question {
            name: batch.name(),
            tier: batch.tier,
            prompt,
            schema: ("verdicts", validate::verdicts_schema()),
        }
    }

    /// Merges and sorts the validated findings, and selects the insights that still have their findings.
    fn build_report(
        &self,
        settled: BTreeMap<String, (ReviewSeverity, FindingValidation)>,
        work: &mut ReviewRunState,
    ) -> (Vec<ReportedFinding>, Vec<ReviewInsight>) {
        let believed: Vec<ValidatedFinding> = triage::validated_findings(self.plan, &settled, work);
        let categories: Vec<String> =
            self.plan.lineup.agents.iter().map(|agent| agent.category.clone()).collect();
        let mut reported = aggregate::merge_findings(believed, &categories);
        for one in &mut reported {
            if let Some(file) = self.plan.gathered.change.find_file(&one.file) {
                one.excerpt = aggregate::make_excerpt(file, one.lines);
            }
        }
        let insights = triage::validated_insights(self.plan, &settled, &reported, work);
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
            let on_call = || (self.listener)(Progress::Asked(phase, &question.name));
            let answer = self.panel.ask(question, &on_call).await;
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

    fn call(
        &self,
        phase: Phase,
        question: &Question,
        answer: &Answer,
        is_read: bool,
    ) -> ReviewCall {
        let outcome = match (answer.is_broke, is_read) {
            (true, _) => CallOutcome::Unasked,
            (false, true) => CallOutcome::Completed,
            (false, false) => CallOutcome::Failed,
        };
        let unread = || "the answer does not have the shape that was asked for".to_owned();
        ReviewCall {
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

fn findings_of_pair(pair: &CategoryPair, findings: &[ReviewFinding]) -> Vec<ReviewFinding> {
    let in_pair = findings.iter().filter(|finding| pair.categories.contains(&finding.category));
    in_pair.cloned().collect()
}

fn worst_severity(batch: &ValidationBatch, findings: &[ReviewFinding]) -> Option<ReviewSeverity> {
    let in_batch = findings.iter().filter(|finding| batch.ids.contains(&finding.id));
    in_batch.map(|finding| finding.severity).max()
}

fn pair_name(pair: &CategoryPair) -> String {
    let [one, other] = &pair.categories;
    format!("synthesis ({one} + {other})")
}

fn skipped_call(phase: Phase, agent: String, tier: ModelTier, reason: String) -> ReviewCall {
    ReviewCall {
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

fn build_record(
    plan: &ReviewPlan,
    work: ReviewRunState,
    findings: Vec<ReportedFinding>,
    insights: Vec<ReviewInsight>,
    (id, started_ms): (String, u64),
) -> ReviewRecord {
    let tests = work.tests.iter().filter_map(|(finding, test)| {
        let catches = Some(reported_id(&findings, finding)?);
        Some(TestRecommendation {
            test: test.test.clone(),
            catches,
            file: test.file.clone().map(Into::into),
        })
    });
    let categories = plan.categories();
    ReviewRecord {
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
        warnings: [work.warnings, unanswered_warnings(&work.calls)].concat(),
        test_recommendations: tests.collect(),
        findings,
        insights,
        left_out: work.left_out,
        false_claims: work.false_claims,
        calls: work.calls,
        planned: plan.planned_phases(),
    }
}

/// Returns the id of the reported finding that an agent's finding was merged into.
fn reported_id(reported: &[ReportedFinding], finding_id: &str) -> Option<String> {
    let has_member = |one: &&ReportedFinding| one.members.iter().any(|member| member == finding_id);
    reported.iter().find(has_member).map(|one| one.id.clone())
}

fn category_title(lineup: &ReviewLineup, key: &str) -> String {
    lineup.agent_of_category(key).map_or_else(|| key.to_owned(), |agent| agent.title.clone())
}

/// Warnings about calls without an answer, grouped by reason.
fn unanswered_warnings(calls: &[ReviewCall]) -> Vec<String> {
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

fn file_record(file: &ReviewedFile) -> FileRecord {
    FileRecord {
        path: file.path.clone(),
        old_path: file.old_path.clone(),
        status: file.status,
        added: file.added_count(),
        removed: file.removed_count(),
        digest: fingerprints::change_digest(file),
    }
}

fn skill_record(resolved: &ResolvedSkill) -> SkillRecord {
    let ResolvedSkill { skill, trusted, .. } = resolved;
    SkillRecord {
        name: skill.name.clone(),
        source: skill.source.clone(),
        kind: skill.kind,
        trusted: *trusted,
    }
}
