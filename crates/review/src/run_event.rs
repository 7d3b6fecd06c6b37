//! The events of a review in the journal, and the state that follows from them.
//!
//! The calls of agents are steps, which all kinds of runs have; the events here are those that only reviews have.

use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::run::RunUsage;
use repertoire_journal::{Event, Payload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::extract::ReviewSeverity;
use super::finding::Phase;
use super::pipeline::ReviewPlan;
use super::record::{
    CallOutcome, ReviewCall, ReviewDepth, ReviewRecord, ReviewSubject, ScopeRecord,
};

/// The request of a review run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewRequest {
    /// The commits and files under review.
    pub scope: ScopeRecord,
    pub subject: ReviewSubject,
    pub depth: ReviewDepth,
    /// The number of files under review.
    pub files: usize,
    /// The names of the skills that take part.
    pub skills: Vec<String>,
    /// The agents that were left out.
    pub skip_agents: Vec<String>,
    pub min_severity: ReviewSeverity,
    /// True if the review continues an earlier one.
    pub incremental: bool,
}

impl ReviewRequest {
    pub fn from_plan(plan: &ReviewPlan, incremental: bool) -> Self {
        ReviewRequest {
            scope: plan.gathered.scope.clone(),
            subject: plan.lineup.subject,
            depth: plan.depth,
            files: plan.gathered.change.files.len(),
            skills: plan.skills.iter().map(|resolved| resolved.skill.name.clone()).collect(),
            skip_agents: plan.skip_agents.clone(),
            min_severity: plan.min_severity,
            incremental,
        }
    }
}

/// An event of a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "data", rename_all = "snake_case")]
pub enum ReviewEvent {
    /// A phase began, with this number of calls.
    PhaseStarted { phase: Phase, calls: u32 },
    /// An agent was called.
    AgentAsked { phase: Phase, agent: String },
    /// The engine has checked the answer of an agent.
    AnswerChecked {
        phase: Phase,
        agent: String,
        /// The number of findings, insights or verdicts in the answer.
        answered: u32,
        /// The number of them that were accepted.
        admitted: u32,
    },
    /// The review has a result, and its files are written.
    ReviewFinished(ReviewResult),
}

/// The result of a review, with the digests of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewResult {
    pub verdict: ReviewVerdict,
    pub files: usize,
    pub findings: usize,
    pub insights: usize,
    /// The number of findings that were not reported.
    pub left_out: usize,
    /// The number of findings of earlier reviews that are still open.
    pub still_open: usize,
    pub failed_calls: usize,
    /// The highest severity that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<ReviewSeverity>,
    /// The SHA-256 digest of `review.json`.
    pub record_digest: String,
    /// The SHA-256 digest of `change.json`.
    pub change_digest: String,
}

/// The verdict of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// Nothing is reported.
    Clean,
    /// Findings or insights are reported.
    Findings,
    /// Nothing is reported, but not every agent has answered.
    Incomplete,
}

impl ReviewResult {
    pub fn from_record(
        review: &ReviewRecord,
        record_digest: String,
        change_digest: String,
    ) -> Self {
        let failed_calls = review.failed_calls().count();
        let verdict = match (review.is_clean(), failed_calls) {
            (false, _) => ReviewVerdict::Findings,
            (true, 0) => ReviewVerdict::Clean,
            (true, _) => ReviewVerdict::Incomplete,
        };
        ReviewResult {
            verdict,
            files: review.files.len(),
            findings: review.findings.len(),
            insights: review.insights.len(),
            left_out: review.left_out.len(),
            still_open: review.still_open.len(),
            failed_calls,
            worst: review.worst_severity(),
            record_digest,
            change_digest,
        }
    }

    /// The result in a few words: `3 findings, the worst Major`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        match self.findings {
            0 if self.failed_calls == 0 && self.insights == 0 => parts.push("clean".to_owned()),
            0 => {}
            1 => parts.push("1 finding".to_owned()),
            count => parts.push(format!("{count} findings")),
        }
        parts.extend(self.worst.map(|worst| format!("the worst {worst}")));
        if self.still_open > 0 {
            parts.push(format!("{} still open", self.still_open));
        }
        if self.failed_calls > 0 {
            parts.push(format!("{} without an answer", self.failed_calls));
        }
        parts.join(", ")
    }
}

impl ReviewEvent {
    /// The event as the journal stores it.
    pub fn to_payload(&self) -> Payload {
        // The tagged form always has a name, and serialising it cannot fail.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        Payload::KindEvent { name, data: value["data"].take() }
    }

    /// Reads an event of the journal; `None` if it is none of a review, or one of a later version.
    pub fn from_payload(payload: &Payload) -> Option<Self> {
        let Payload::KindEvent { name, data } = payload else { return None };
        serde_json::from_value(json!({ "name": name, "data": data })).ok()
    }
}

/// The events of a call that has ended: a step of the run. Agents work at the same time and the steps of a run follow
/// each other, so a step is recorded when it ends, with its duration.
pub fn step_events(step: u32, call: &ReviewCall) -> [Payload; 2] {
    let outcome = match call.outcome {
        CallOutcome::Completed | CallOutcome::Skipped => StepOutcome::Ok,
        CallOutcome::Failed => StepOutcome::Failed,
        CallOutcome::Unasked => StepOutcome::Stopped,
    };
    let started = Payload::StepStarted {
        step,
        kind: call.phase.to_string(),
        task: Some(TaskRef { id: call.agent.clone(), label: call.agent.clone() }),
        attempt: 1,
        iteration: 1,
        head: None,
        detail: json!({ "tier": call.tier, "model": call.model }),
    };
    let spent = RunUsage {
        cost_micro_usd: call.cost_usd.map_or(0, |cost| (cost * 1e6).round() as u64),
        unpriced: call.cost_usd.is_none() && call.input_tokens + call.output_tokens > 0,
        input_tokens: call.input_tokens,
        output_tokens: call.output_tokens,
        time_ms: call.duration_ms,
    };
    let reason = call.reason.clone();
    let result = Value::Null;
    [started, Payload::StepFinished { step, outcome, reason, head: None, spent, result }]
}

/// The state of a review run, which follows from its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReviewProgress {
    pub phase: Option<Phase>,
    /// The number of agents that were called.
    pub asked: u32,
    /// The number of calls that have ended.
    pub ended: u32,
    /// The number of findings, insights and verdicts that agents gave.
    pub answered: u32,
    /// The number of them that were accepted.
    pub admitted: u32,
    pub result: Option<ReviewResult>,
}

impl ReviewProgress {
    /// Folds the events of a run. Events of later versions are skipped.
    pub fn replay(events: &[Event]) -> Self {
        events.iter().fold(ReviewProgress::default(), |state, event| state.after(&event.payload))
    }

    fn after(mut self, payload: &Payload) -> Self {
        if matches!(payload, Payload::StepFinished { .. }) {
            self.ended += 1;
        }
        match ReviewEvent::from_payload(payload) {
            Some(ReviewEvent::PhaseStarted { phase, .. }) => self.phase = Some(phase),
            Some(ReviewEvent::AgentAsked { .. }) => self.asked += 1,
            Some(ReviewEvent::AnswerChecked { answered, admitted, .. }) => {
                self.answered += answered;
                self.admitted += admitted;
            }
            Some(ReviewEvent::ReviewFinished(result)) => self.result = Some(result),
            None => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::lineup::ModelTier;
    use super::*;

    fn call(outcome: CallOutcome) -> ReviewCall {
        ReviewCall {
            phase: Phase::Quick,
            agent: "security-agent".into(),
            tier: ModelTier::Strong,
            model: None,
            outcome,
            reason: None,
            answered: 3,
            admitted: 2,
            duration_ms: 1_200,
            input_tokens: 10,
            output_tokens: 5,
            cost_usd: Some(0.25),
        }
    }

    fn result() -> ReviewResult {
        ReviewResult {
            verdict: ReviewVerdict::Findings,
            files: 2,
            findings: 2,
            insights: 0,
            left_out: 1,
            still_open: 0,
            failed_calls: 1,
            worst: Some(ReviewSeverity::Major),
            record_digest: "sha256:1".into(),
            change_digest: "sha256:2".into(),
        }
    }

    fn events(payloads: Vec<Payload>) -> Vec<Event> {
        let run = repertoire_journal::RunId::known("a-review");
        let event = |(at, payload)| Event { v: 1, run: run.clone(), seq: at, at_ms: at, payload };
        (1..).zip(payloads).map(event).collect()
    }

    #[test]
    fn the_state_of_a_review_follows_from_its_events() {
        let (phase, agent) = (Phase::Quick, "security-agent".to_owned());
        let mut told = vec![
            ReviewEvent::PhaseStarted { phase, calls: 1 }.to_payload(),
            ReviewEvent::AgentAsked { phase, agent: agent.clone() }.to_payload(),
        ];
        let asked = ReviewProgress::replay(&events(told.clone()));
        assert_eq!((asked.phase, asked.asked, asked.ended), (Some(phase), 1, 0));
        told.extend(step_events(1, &call(CallOutcome::Completed)));
        let checked = ReviewEvent::AnswerChecked { phase, agent, answered: 3, admitted: 2 };
        told.push(checked.to_payload());
        told.push(Payload::KindEvent { name: "from_the_future".into(), data: json!({ "n": 1 }) });
        told.push(ReviewEvent::ReviewFinished(result()).to_payload());
        let over = ReviewProgress::replay(&events(told));
        let expected = ReviewProgress {
            phase: Some(phase),
            asked: 1,
            ended: 1,
            answered: 3,
            admitted: 2,
            result: Some(result()),
        };
        assert_eq!(over, expected);
    }

    #[test]
    fn an_event_is_stored_by_its_name_and_read_back() {
        let event = ReviewEvent::AgentAsked { phase: Phase::Gaps, agent: "tests".into() };
        let payload = event.to_payload();
        let data = json!({ "phase": "gaps", "agent": "tests" });
        assert_eq!(payload, Payload::KindEvent { name: "agent_asked".into(), data });
        assert_eq!(ReviewEvent::from_payload(&payload), Some(event));
    }

    #[test]
    fn a_call_is_a_step_with_what_it_used() {
        let [_, finished] = step_events(4, &call(CallOutcome::Failed));
        let Payload::StepFinished { step, outcome, spent, .. } = finished else {
            panic!("{finished:?}")
        };
        assert_eq!((step, outcome), (4, StepOutcome::Failed));
        assert_eq!((spent.cost_micro_usd, spent.unpriced, spent.time_ms), (250_000, false, 1_200));
    }

    #[test]
    fn a_result_is_summed_up_in_a_few_words() {
        assert_eq!(result().summary(), "2 findings, the worst Major, 1 without an answer");
        let clean = ReviewResult { findings: 0, failed_calls: 0, worst: None, ..result() };
        assert_eq!(clean.summary(), "clean");
        let silent = ReviewResult { findings: 0, worst: None, ..result() };
        assert_eq!(silent.summary(), "1 without an answer");
    }
}
