//! Sanitises and truncates text before it becomes part of an event or a row.

use repertoire_text::secrets::{has_secret, redact};

use crate::error::JournalError;
use crate::event::Payload;
use crate::limits::{
    EVIDENCE_MAX, EXAMPLE_CHARS_MAX, FIX_BYTES_MAX, ID_CHARS_MAX, KIND_PAYLOAD_BYTES_MAX,
    LABELS_MAX, NAME_CHARS_MAX, NAMES_MAX, PAYLOAD_BYTES_MAX, PRECONDITIONS_MAX, TEXT_CHARS_MAX,
    WORKSPACE_CHARS_MAX,
};
use crate::memory::{CONFIDENCE_START, FailureFix, FixRemedy, KnownFix};
use crate::run::{Limits, RunId};

/// Returns text that fits into a column: without control characters (PostgreSQL cannot store
/// U+0000), and at most [`NAME_CHARS_MAX`] characters long.
pub(crate) fn name(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(NAME_CHARS_MAX).collect()
}

/// Checks that an id can be stored in columns and used in URLs.
pub(crate) fn check_id(id: &RunId) -> Result<(), JournalError> {
    if is_id(id.as_str()) {
        return Ok(());
    }
    let shown = RunId::known(name(id.as_str()));
    let why = format!(
        "this is no id: it has 1 to {ID_CHARS_MAX} letters, digits, `-`, `_` or `.`, and does not begin with `.`"
    );
    Err(JournalError::refused(&shown, why))
}

/// Returns true if text has the format of an id. An id is also the name of a folder, so it is neither
/// `..` nor hidden.
pub(crate) fn is_id(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty()
        && text.len() <= ID_CHARS_MAX
        && !text.starts_with('.')
        && text.chars().all(letter)
}

/// Truncates the free text of a payload, and refuses values that the store cannot take.
pub(crate) fn fit_payload(run: &RunId, mut payload: Payload) -> Result<Payload, JournalError> {
    for text in texts_of(&mut payload) {
        truncate_text(text);
    }
    match &mut payload {
        Payload::RunCreated { kind, name: title, workspace, labels, limits, .. } => {
            *kind = name(kind);
            *title = name(title);
            *labels = labels.iter().map(|label| name(label)).collect();
            *workspace = workspace.replace('\0', " ");
            refuse_larger("the workspace", workspace.chars().count(), WORKSPACE_CHARS_MAX)?;
            refuse_larger("the list of labels", labels.len(), LABELS_MAX)?;
            refuse_invalid_cost(run, limits)?;
        }
        Payload::RunResumed { limits: Some(limits), .. } => refuse_invalid_cost(run, limits)?,
        Payload::RunStarted { worker } | Payload::LeaseTaken { worker, .. } => {
            *worker = name(worker);
        }
        Payload::FailureSeen { scope, signature, category, code, tool, example } => {
            refuse_signature(run, signature)?;
            fit_failure(scope, category, tool, example)?;
            *code = code.take().map(|code| name(&code));
        }
        Payload::FixTried { scope, signature, fix, reason, .. } => {
            refuse_signature(run, signature)?;
            refuse_scope(scope)?;
            fit_fix(fix)?;
            *reason = redact(reason).into_owned();
        }
        Payload::SkillsDiscovered { locations, names, .. } => {
            locations.truncate(NAMES_MAX);
            names.truncate(NAMES_MAX);
        }
        _ => {}
    }
    Ok(payload)
}

/// Redacts and truncates the text of a failure.
pub(crate) fn fit_failure(
    scope: &mut String,
    category: &mut String,
    tool: &mut String,
    example: &mut String,
) -> Result<(), JournalError> {
    refuse_scope(scope)?;
    *category = name(category);
    *tool = name(tool);
    *example = redact(example).replace('\0', " ").chars().take(EXAMPLE_CHARS_MAX).collect();
    Ok(())
}

/// Checks a fix. If it contains a secret, it is replaced by a note: it must not be stored with the
/// secret, and would not work without it.
pub(crate) fn fit_fix(fix: &mut FailureFix) -> Result<(), JournalError> {
    let holds_secret = match &fix.remedy {
        FixRemedy::Patch(text) | FixRemedy::Advice(text) => has_secret(text),
        FixRemedy::Command(words) => {
            words.iter().any(|word| has_secret(word)) || has_secret(&fix.remedy.to_text())
        }
    };
    if holds_secret {
        let why = format!("a {} held a secret, and was not kept", fix.remedy.kind());
        fix.remedy = FixRemedy::Advice(why);
    }
    refuse_larger("the content of a fix (in bytes)", fix.remedy.to_text().len(), FIX_BYTES_MAX)?;
    refuse_larger("the list of preconditions", fix.preconditions.len(), PRECONDITIONS_MAX)?;
    fix.preconditions = fix.preconditions.iter().map(|text| name(&redact(text))).collect();
    Ok(())
}

/// Makes the numbers of an imported record consistent.
pub(crate) fn fit_record(known: &mut KnownFix) {
    known.tried = known.worked.saturating_add(known.failed);
    if !(0.0..=1.0).contains(&known.confidence) {
        known.confidence = CONFIDENCE_START;
    }
    known.last_reason = redact(&known.last_reason).chars().take(EXAMPLE_CHARS_MAX).collect();
    known.evidence.retain(|run| is_id(run.as_str()));
    known.evidence.truncate(EVIDENCE_MAX);
}

fn refuse_signature(run: &RunId, signature: &str) -> Result<(), JournalError> {
    if is_id(signature) {
        return Ok(());
    }
    Err(JournalError::refused(run, format!("`{}` is no signature", name(signature))))
}

/// Refuses a scope that is too long. It is not truncated, because a truncated scope would name
/// another repository.
pub(crate) fn refuse_scope(scope: &mut String) -> Result<(), JournalError> {
    *scope = scope.replace('\0', " ");
    refuse_larger("the scope", scope.chars().count(), WORKSPACE_CHARS_MAX)
}

/// Serialises a payload for the store.
pub(crate) fn serialise_payload(payload: &Payload) -> Result<String, JournalError> {
    let text = serde_json::json!(payload).to_string();
    let limit = payload_bytes_max(payload);
    refuse_larger(&format!("{} (in bytes)", payload.name()), text.len(), limit)?;
    Ok(text)
}

fn payload_bytes_max(payload: &Payload) -> usize {
    match payload {
        Payload::KindEvent { .. } | Payload::RunCreated { attended: true, .. } => {
            KIND_PAYLOAD_BYTES_MAX
        }
        _ => PAYLOAD_BYTES_MAX,
    }
}

pub(crate) fn refuse_larger(what: &str, size: usize, limit: usize) -> Result<(), JournalError> {
    if size > limit {
        return Err(JournalError::TooLarge { what: what.to_owned(), size, limit });
    }
    Ok(())
}

/// Refuses a negative or non-finite cost limit. JSON has no infinity, so it would be read back as
/// no limit at all.
fn refuse_invalid_cost(run: &RunId, limits: &Limits) -> Result<(), JournalError> {
    match limits.cost_usd {
        Some(cost) if !cost.is_finite() || cost < 0.0 => {
            let why =
                format!("a limit of {cost} dollars makes no sense: give a number from 0, or none");
            Err(JournalError::refused(run, why))
        }
        _ => Ok(()),
    }
}

/// Returns the free text of a payload, which people or models wrote and which may be truncated.
fn texts_of(payload: &mut Payload) -> Vec<&mut String> {
    match payload {
        Payload::LeaseReleased { reason, .. }
        | Payload::StepInterrupted { reason, .. }
        | Payload::RunFailed { reason }
        | Payload::RunWaiting { reason, .. }
        | Payload::RunDeferred { reason, .. }
        | Payload::RunPaused { reason }
        | Payload::RunCancelled { reason }
        | Payload::PostmortemStart { reason }
        | Payload::PlanFallback { reason }
        | Payload::PlanRestored { reason }
        | Payload::FixTried { reason, .. }
        | Payload::TaskMarked { reason, .. } => vec![reason],
        Payload::StepFinished { reason, .. } => reason.as_mut().into_iter().collect(),
        Payload::RunCompleted { summary, .. } => vec![summary],
        Payload::WatchdogSignal { evidence, .. } => vec![evidence],
        Payload::WatchdogRewrite { text, .. } => vec![text],
        Payload::Steered { note, .. } | Payload::Learned { note, .. } => vec![note],
        Payload::SkillsLoadFailed { error, .. } => vec![error],
        Payload::SkillsSelected { errors, .. } => errors.iter_mut().collect(),
        Payload::PauseRequested { by }
        | Payload::CancelRequested { by }
        | Payload::RunResumed { by, .. }
        | Payload::RunRetried { by, .. } => vec![by],
        _ => Vec::new(),
    }
}

pub(crate) fn truncate_text(text: &mut String) {
    let Some((at, _)) = text.char_indices().nth(TEXT_CHARS_MAX) else { return };
    let left = text.chars().count() - TEXT_CHARS_MAX;
    text.truncate(at);
    text.push_str(&format!(" [{left} characters were cut]"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_and_say_so() {
        let run = RunId::known("r");
        let payload = Payload::RunFailed { reason: "ä".repeat(TEXT_CHARS_MAX + 3) };
        let Payload::RunFailed { reason } = fit_payload(&run, payload).unwrap() else { panic!() };
        assert!(reason.ends_with("ä [3 characters were cut]"));
    }

    #[test]
    fn what_is_too_large_is_refused_with_its_size() {
        let data = serde_json::Value::String("x".repeat(PAYLOAD_BYTES_MAX));
        let error = serialise_payload(&Payload::Note { name: "n".into(), data }).unwrap_err();
        assert!(error.to_string().contains("NOTE (in bytes) has 1048"), "{error}");
    }

    #[test]
    fn ids_are_plain() {
        for good in ["0199-af", "a.b_c"] {
            assert!(check_id(&RunId::known(good)).is_ok());
        }
        for bad in ["", "a b", "a\0", "ü", "a/b", &"x".repeat(ID_CHARS_MAX + 1)] {
            assert!(check_id(&RunId::known(bad)).is_err(), "{bad:?}");
        }
    }
}
