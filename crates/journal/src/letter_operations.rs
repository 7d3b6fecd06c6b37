//! The dead-letter operations of a journal.

use repertoire_text::secrets::redact;

use crate::error::JournalError;
use crate::journal::{Journal, JournalPage, page};
use crate::letter::{DeadLetter, LetterFilter, LetterStatus, NewLetter};
use crate::limits::{AMBIGUOUS_MAX, ID_PART_CHARS_MIN, LETTER_BYTES_MAX};
use crate::redact::redact_value;
use crate::sanitise;
use crate::store::{StoreFault, StoreTx};
use crate::transaction::{OperationContext, OperationResult, StoreOperation};

impl Journal {
    /// Adds a dead letter. If the same failure is already queued, counts one more occurrence and
    /// returns the existing letter. Secrets are redacted.
    ///
    /// # Errors
    ///
    /// If the letter is too large, or the store cannot be used.
    pub async fn bury(&self, mut new: NewLetter) -> Result<DeadLetter, JournalError> {
        sanitise::refuse_scope(&mut new.scope)?;
        for name in [&mut new.class, &mut new.by] {
            *name = sanitise::name(name);
        }
        new.title = sanitise::name(&redact(&new.title));
        for words in [&mut new.reason, &mut new.question] {
            *words = redact(words).into_owned();
            sanitise::truncate_text(words);
        }
        redact_value(&mut new.data);
        let size = new.data.to_string().len();
        sanitise::refuse_larger("the data of a dead letter (in bytes)", size, LETTER_BYTES_MAX)?;
        if let Some(run) = &new.run {
            sanitise::check_id(run)?;
        }
        self.perform_write(&AddLetterOperation {
            id: uuid::Uuid::now_v7().to_string(),
            digest: new.digest(),
            new,
        })
        .await
    }

    /// Finds a dead letter by its id, or by the start or end of its id.
    ///
    /// # Errors
    ///
    /// [`JournalError::NoLetter`] if no letter matches, or more than one does.
    pub async fn find_letter(&self, text: &str) -> Result<DeadLetter, JournalError> {
        let text = text.trim();
        let none = |hint: String| JournalError::NoLetter { text: sanitise::name(text), hint };
        if !sanitise::is_id(text) || text.len() < ID_PART_CHARS_MIN {
            return Err(none("name it by its id, or by at least 4 characters of it".into()));
        }
        let most = i64::try_from(AMBIGUOUS_MAX).unwrap_or(i64::MAX);
        let mut found = self.perform_read(|| self.store().letters_by_part(text, most)).await?;
        if let Some(at) = found.iter().position(|letter| letter.id == text) {
            return Ok(found.swap_remove(at));
        }
        match found.len() {
            0 => Err(none("list them to see which there are".into())),
            1 => Ok(found.swap_remove(0)),
            _ => {
                let shorts: Vec<_> = found.iter().map(DeadLetter::short).collect();
                Err(none(format!("it is more than one: {}", shorts.join(", "))))
            }
        }
    }

    /// Lists dead letters, the most urgent first, then the oldest. Damaged ones are listed by their
    /// ids.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_letters(
        &self,
        filter: &LetterFilter,
    ) -> Result<JournalPage<DeadLetter>, JournalError> {
        let limit = page(filter.limit);
        let scope = filter.scope.as_ref().map(|scope| scope.replace('\0', " "));
        let clean = LetterFilter { scope, ..filter.clone() };
        self.perform_read(|| self.store().list_letters(&clean, limit)).await
    }

    /// Changes the status of a dead letter. If two callers start a retry at the same time, one is
    /// refused.
    ///
    /// # Errors
    ///
    /// [`JournalError::LetterRefused`] if the status transition is not allowed.
    pub async fn set_letter_status(
        &self,
        id: &str,
        to: LetterStatus,
        by: &str,
        why: &str,
    ) -> Result<DeadLetter, JournalError> {
        let (by, mut why) = (sanitise::name(by), redact(why).into_owned());
        sanitise::truncate_text(&mut why);
        self.perform_write(&SetLetterStatusOperation { id, to, by: &by, why: &why }).await
    }
}

struct AddLetterOperation {
    id: String,
    digest: String,
    new: NewLetter,
}

impl StoreOperation for AddLetterOperation {
    type Out = DeadLetter;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<DeadLetter>, StoreFault> {
        tx.lock_letters().await?;
        let (new, at_ms) = (&self.new, (work.clock)());
        if let Some((mut letter, batch)) = tx.find_open_letter(&new.scope, &self.digest).await? {
            // The same batch is a retry of a commit whose acknowledgement was lost: don't count it
            // again.
            if batch != work.batch {
                letter.record_occurrence(
                    new.reason.clone(),
                    new.run.clone(),
                    new.by.clone(),
                    at_ms,
                );
                tx.update_letter(&letter, work.batch).await?;
            }
            return Ok(OperationResult::without_receipt(letter));
        }
        let new = new.clone();
        let mut letter = DeadLetter {
            id: self.id.clone(),
            scope: new.scope,
            source: new.source,
            title: new.title,
            priority: new.priority,
            class: new.class,
            reason: new.reason,
            question: new.question,
            run: new.run,
            data: new.data,
            status: LetterStatus::Queued,
            times: 1,
            attempts: 0,
            history: Vec::new(),
            created_ms: at_ms,
            updated_ms: at_ms,
        };
        letter.add_history(at_ms, format!("given up: {}", letter.reason), new.by);
        tx.insert_letter(&letter, &self.digest, work.batch).await?;
        Ok(OperationResult::without_receipt(letter))
    }
}

struct SetLetterStatusOperation<'a> {
    id: &'a str,
    to: LetterStatus,
    by: &'a str,
    why: &'a str,
}

impl StoreOperation for SetLetterStatusOperation<'_> {
    type Out = DeadLetter;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<DeadLetter>, StoreFault> {
        tx.lock_letters().await?;
        let found = tx.load_letter(self.id).await?;
        let (mut letter, batch) = found.ok_or_else(|| JournalError::NoLetter {
            text: sanitise::name(self.id),
            hint: "list them to see which there are".into(),
        })?;
        if batch == work.batch {
            return Ok(OperationResult::without_receipt(letter));
        }
        letter.status.check_transition(self.to).map_err(|why| {
            let last = letter.history.last();
            let last = last.map(|last| format!(" (last, by {}: {})", last.by, last.what));
            JournalError::LetterRefused {
                letter: letter.short().to_owned(),
                why: format!("{why}{}", last.unwrap_or_default()),
            }
        })?;
        letter.status = self.to;
        letter.attempts += u64::from(self.to == LetterStatus::Retrying);
        let what = if self.why.is_empty() {
            self.to.to_string()
        } else {
            format!("{}: {}", self.to, self.why)
        };
        letter.add_history((work.clock)(), what, self.by.to_owned());
        tx.update_letter(&letter, work.batch).await?;
        Ok(OperationResult::without_receipt(letter))
    }
}
