//! Folds events into runs and steps: one pure function, used both when events are written and when
//! they are replayed.

use serde_json::Value;

use crate::event::{Event, Payload};
use crate::run::{
    JournalWorktree, Limits, Run, RunId, RunStatus, RunStopRequest, RunUsage, Step, StepStatus,
};

/// An event that cannot follow the events before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The first event of a run must be RUN_CREATED, and no later one may be.
    #[error(
        "event {seq} ({event}) of run {run} cannot stand there: a run begins with RUN_CREATED, once"
    )]
    NotTheFirst { run: RunId, seq: u64, event: &'static str },
    /// There is a gap in the sequence, or a duplicate.
    #[error("event {found} of run {run} follows event {last}")]
    OutOfOrder { run: RunId, last: u64, found: u64 },
    /// A step event that does not fit the state of the run.
    #[error("run {run}: {event} for step {step}, {problem}")]
    Step { run: RunId, step: u32, event: &'static str, problem: &'static str },
    /// An event that cannot happen to a run that has ended.
    #[error("run {run} is {status}, so {event} cannot happen to it")]
    Over { run: RunId, status: RunStatus, event: &'static str },
}

/// The state folded from the events of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldedRun {
    /// The run; `None` before its first event.
    pub run: Option<Run>,
    /// The steps, by number. When events are appended, only the open step has to be here.
    pub steps: Vec<Step>,
}

impl FoldedRun {
    /// Folds all events of a run, from the first.
    ///
    /// # Errors
    ///
    /// If an event cannot follow the events before it.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, FoldError> {
        let mut folded = FoldedRun::default();
        for event in events {
            folded.apply(event)?;
        }
        Ok(folded)
    }

    /// Folds one more event.
    ///
    /// # Errors
    ///
    /// If the event cannot follow. The state is unchanged then.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        let Some(run) = &mut self.run else {
            self.run = Some(create_from_event(event).ok_or_else(|| misplaced_creation(event))?);
            return Ok(());
        };
        if matches!(event.payload, Payload::RunCreated { .. }) {
            return Err(misplaced_creation(event));
        }
        if event.seq != run.seq + 1 {
            let (last, found) = (run.seq, event.seq);
            return Err(FoldError::OutOfOrder { run: event.run.clone(), last, found });
        }
        refuse_after_the_end(run, event)?;
        apply_to_step(run, &mut self.steps, event)?;
        apply_to_run(run, event);
        run.seq = event.seq;
        run.updated_ms = event.at_ms;
        Ok(())
    }
}

/// The error for a run that does not begin with RUN_CREATED, or has more than one.
fn misplaced_creation(event: &Event) -> FoldError {
    FoldError::NotTheFirst { run: event.run.clone(), seq: event.seq, event: event.payload.name() }
}

fn create_from_event(event: &Event) -> Option<Run> {
    let Payload::RunCreated { kind, name, workspace, labels, priority, limits, request, attended } =
        &event.payload
    else {
        return None;
    };
    (event.seq == 1).then(|| Run {
        id: event.run.clone(),
        kind: kind.clone(),
        name: name.clone(),
        workspace: workspace.clone(),
        labels: labels.clone(),
        priority: *priority,
        status: if *attended { RunStatus::Running } else { RunStatus::Queued },
        reason: None,
        choices: Vec::new(),
        wish: None,
        seq: 1,
        token: 0,
        worker: None,
        not_before_ms: 0,
        limits: *limits,
        spent: RunUsage::default(),
        steps: 0,
        open_step: None,
        worktree: None,
        created_ms: event.at_ms,
        started_ms: None,
        ended_ms: None,
        updated_ms: event.at_ms,
        request: request.clone(),
        attended: *attended,
    })
}

/// Refuses events after the end of a run, except for the post-mortem, the delivery of the work,
/// notes, and a new attempt.
fn refuse_after_the_end(run: &Run, event: &Event) -> Result<(), FoldError> {
    let may_follow = matches!(
        event.payload,
        Payload::RunResumed { .. }
            | Payload::RunRetried { .. }
            | Payload::LeaseReleased { .. }
            | Payload::WorktreeRemoved { .. }
            | Payload::Delivered { .. }
            | Payload::PostmortemStart { .. }
            | Payload::PostmortemEnd { .. }
            | Payload::Learned { .. }
            | Payload::Note { .. }
    );
    if run.status.is_over() && !may_follow {
        let (status, event) = (run.status, event.payload.name());
        return Err(FoldError::Over { run: run.id.clone(), status, event });
    }
    Ok(())
}

fn apply_to_step(run: &mut Run, steps: &mut Vec<Step>, event: &Event) -> Result<(), FoldError> {
    let Some(number) = event.payload.step() else { return Ok(()) };
    let wrong = |problem| FoldError::Step {
        run: event.run.clone(),
        step: number,
        event: event.payload.name(),
        problem,
    };
    if let Payload::StepStarted { kind, task, attempt, iteration, head, detail, .. } =
        &event.payload
    {
        if run.open_step.is_some() {
            return Err(wrong("while another step is under way"));
        }
        if number != run.steps + 1 {
            return Err(wrong("which is not the next number"));
        }
        run.steps = number;
        run.open_step = Some(number);
        steps.push(Step {
            run: run.id.clone(),
            number,
            kind: kind.clone(),
            task: task.clone(),
            attempt: *attempt,
            iteration: *iteration,
            status: StepStatus::Running,
            outcome: None,
            reason: None,
            token: run.token,
            worker: run.worker.clone(),
            head_before: head.clone(),
            head_after: None,
            spent: RunUsage::default(),
            started_ms: event.at_ms,
            ended_ms: None,
            detail: detail.clone(),
            result: Value::Null,
        });
        return Ok(());
    }
    if run.open_step != Some(number) {
        return Err(wrong("which is not under way"));
    }
    let step = steps.iter_mut().find(|step| step.number == number);
    let step = step.ok_or_else(|| wrong("which is not known"))?;
    run.open_step = None;
    step.ended_ms = Some(event.at_ms);
    match &event.payload {
        Payload::StepFinished { outcome, reason, head, spent, result, .. } => {
            step.status = StepStatus::Finished;
            step.outcome = Some(*outcome);
            step.reason.clone_from(reason);
            step.head_after.clone_from(head);
            step.spent = *spent;
            step.result = result.clone();
            run.spent = run.spent.plus(*spent);
        }
        Payload::StepInterrupted { reason, .. } => {
            step.status = StepStatus::Interrupted;
            step.reason = Some(reason.clone());
        }
        _ => {}
    }
    Ok(())
}

fn apply_to_run(run: &mut Run, event: &Event) {
    match &event.payload {
        Payload::LeaseTaken { worker, token } => {
            run.token = *token;
            run.worker = Some(worker.clone());
            set_status(run, RunStatus::Running, None);
        }
        Payload::LeaseReleased { .. } => {
            run.worker = None;
            if run.status == RunStatus::Running {
                set_status(run, RunStatus::Queued, None);
            }
        }
        Payload::LeaseExpired { .. } => {
            run.worker = None;
            set_status(run, RunStatus::Queued, None);
        }
        Payload::RunStarted { .. } => {
            run.started_ms.get_or_insert(event.at_ms);
        }
        Payload::RunCompleted { summary, .. } => {
            end_run(run, RunStatus::Completed, summary, event.at_ms)
        }
        Payload::RunFailed { reason } => end_run(run, RunStatus::Failed, reason, event.at_ms),
        Payload::RunCancelled { reason } => end_run(run, RunStatus::Cancelled, reason, event.at_ms),
        Payload::RunWaiting { reason, choices } => {
            set_status(run, RunStatus::Waiting, Some(reason));
            run.choices.clone_from(choices);
        }
        Payload::RunDeferred { reason, until_ms } => {
            set_status(run, RunStatus::Queued, Some(reason));
            run.not_before_ms = *until_ms;
        }
        Payload::RunPaused { reason } => {
            set_status(run, RunStatus::Paused, Some(reason));
            run.wish = None;
        }
        Payload::PauseRequested { .. } => run.wish = run.wish.or(Some(RunStopRequest::Pause)),
        Payload::CancelRequested { .. } => run.wish = Some(RunStopRequest::Cancel),
        Payload::RunResumed { limits, .. } => requeue_run(run, *limits),
        Payload::RunRetried { .. } => requeue_run(run, None),
        Payload::WorktreeCreated { path, branch, base_branch, base, .. } => {
            run.worktree = Some(JournalWorktree {
                path: path.clone(),
                branch: branch.clone(),
                base_branch: base_branch.clone(),
                base: base.clone(),
            });
        }
        Payload::WorktreeRemoved { .. } => run.worktree = None,
        _ => {}
    }
}

fn set_status(run: &mut Run, status: RunStatus, reason: Option<&String>) {
    run.status = status;
    run.reason = reason.cloned();
    run.choices = Vec::new();
    run.not_before_ms = 0;
}

fn end_run(run: &mut Run, status: RunStatus, reason: &String, at_ms: u64) {
    set_status(run, status, Some(reason));
    run.wish = None;
    run.ended_ms = Some(at_ms);
}

/// Puts a run back into the queue. If a worker holds it and it is running, it stays with that
/// worker. An attended run continues at once.
fn requeue_run(run: &mut Run, limits: Option<Limits>) {
    let stays = run.worker.is_some() && run.status == RunStatus::Running;
    let status = if stays || run.attended { RunStatus::Running } else { RunStatus::Queued };
    set_status(run, status, None);
    run.wish = None;
    run.ended_ms = None;
    if let Some(limits) = limits {
        run.limits = limits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EVENT_VERSION, StepOutcome};

    fn event(seq: u64, payload: Payload) -> Event {
        Event { v: EVENT_VERSION, run: RunId::known("r"), seq, at_ms: 1_000 + seq, payload }
    }

    fn create() -> Payload {
        Payload::RunCreated {
            kind: "plan".into(),
            name: "a run".into(),
            workspace: "/repo".into(),
            labels: Default::default(),
            priority: 0,
            limits: Limits::default(),
            request: Value::Null,
            attended: false,
        }
    }

    fn step_started(step: u32) -> Payload {
        Payload::StepStarted {
            step,
            kind: "implementation".into(),
            task: None,
            attempt: 1,
            iteration: 1,
            head: None,
            detail: Value::Null,
        }
    }

    fn step_finished(step: u32, cost_micro_usd: u64) -> Payload {
        Payload::StepFinished {
            step,
            outcome: StepOutcome::Ok,
            reason: None,
            head: None,
            spent: RunUsage { cost_micro_usd, ..RunUsage::default() },
            result: Value::Null,
        }
    }

    fn folded(payloads: Vec<Payload>) -> Result<FoldedRun, FoldError> {
        let events: Vec<Event> = (1..).zip(payloads).map(|(seq, p)| event(seq, p)).collect();
        FoldedRun::replay(&events)
    }

    fn taken(token: u64) -> Payload {
        Payload::LeaseTaken { worker: "w".into(), token }
    }

    #[test]
    fn a_run_goes_through_its_steps_and_adds_up_what_they_cost() {
        let ended = Payload::RunCompleted { summary: "done".into(), head: None };
        let payloads = vec![
            create(),
            taken(1),
            step_started(1),
            step_finished(1, 3),
            step_started(2),
            step_finished(2, 4),
            ended,
        ];
        let folded = folded(payloads).unwrap();
        let run = folded.run.unwrap();
        assert_eq!((run.status, run.spent.cost_micro_usd, run.steps), (RunStatus::Completed, 7, 2));
        assert_eq!(folded.steps.iter().map(|step| step.token).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(run.ended_ms, Some(1_007));
    }

    #[test]
    fn a_step_ends_once() {
        let twice = folded(vec![
            create(),
            taken(1),
            step_started(1),
            step_finished(1, 0),
            step_finished(1, 0),
        ]);
        assert!(matches!(twice, Err(FoldError::Step { problem: "which is not under way", .. })));
        let two = folded(vec![create(), taken(1), step_started(1), step_started(2)]);
        assert!(matches!(two, Err(FoldError::Step { .. })));
    }

    #[test]
    fn a_run_begins_once_and_without_gaps() {
        assert!(matches!(folded(vec![taken(1)]), Err(FoldError::NotTheFirst { .. })));
        assert!(matches!(folded(vec![create(), create()]), Err(FoldError::NotTheFirst { .. })));
        let gap = [event(1, create()), event(3, taken(1))];
        assert!(matches!(FoldedRun::replay(&gap), Err(FoldError::OutOfOrder { found: 3, .. })));
    }

    #[test]
    fn nothing_goes_on_after_the_end_but_another_try() {
        let failed = Payload::RunFailed { reason: "r:x".into() };
        let late = folded(vec![create(), taken(1), failed.clone(), step_started(1)]);
        assert!(matches!(late, Err(FoldError::Over { status: RunStatus::Failed, .. })));
        let again = Payload::RunRetried { by: "me".into(), tasks: Vec::new() };
        let released =
            Payload::LeaseReleased { worker: "w".into(), token: 1, reason: "over".into() };
        let run = folded(vec![create(), taken(1), failed, released, again]).unwrap().run.unwrap();
        assert_eq!((run.status, run.ended_ms), (RunStatus::Queued, None));
    }

    #[test]
    fn a_lost_lease_puts_the_run_back_and_a_wish_waits_for_its_worker() {
        let wish = Payload::PauseRequested { by: "me".into() };
        let lost = Payload::LeaseExpired { worker: "w".into(), token: 1 };
        let run = folded(vec![create(), taken(1), wish, lost]).unwrap().run.unwrap();
        assert_eq!(
            (run.status, run.wish, run.worker),
            (RunStatus::Queued, Some(RunStopRequest::Pause), None)
        );
    }

    #[test]
    fn the_tag_of_an_event_is_its_name() {
        for payload in [create(), taken(1), step_started(1), step_finished(1, 0)] {
            let json = serde_json::to_value(&payload).unwrap();
            assert_eq!(json["type"], payload.name());
            assert_eq!(serde_json::from_value::<Payload>(json).unwrap(), payload);
        }
    }
}
