//! The table of dead letters.

use super::row_digest::{RowDigest, RowHasher};
use super::rows::{decode_json, require_fit};
use super::sql::{IdentifiedRow, SqlStatement};
use super::tx::to_signed;
use super::{CheckedTable, JournalStore, StoreFault, StoreTx};
use crate::journal::JournalPage;
use crate::letter::{DeadLetter, LetterFilter, LetterPriority};
use crate::sanitise;

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const LETTER_LOCK: i64 = 0x7265_705f_6465_6164;

/// The id, then the scope, status, priority, state and digest, and the batch that wrote it last.
type LetterRow = IdentifiedRow<(String, String, i64, String, RowDigest, String)>;

impl StoreTx {
    /// Locks the dead letters. Without the lock, two transactions could add the same letter.
    pub(crate) async fn lock_letters(&mut self) -> Result<(), StoreFault> {
        self.lock_name(LETTER_LOCK).await
    }

    pub(crate) async fn load_letter(
        &mut self,
        id: &str,
    ) -> Result<Option<(DeadLetter, String)>, StoreFault> {
        const SQL: &str = "SELECT id, scope, status, priority, state, row_digest, batch FROM letter \
            WHERE id = $1";
        let row: Option<LetterRow> = self.fetch_optional(SqlStatement::new(SQL).bind(id)).await?;
        row.map(decode_letter).transpose()
    }

    /// Returns the open letter with this digest.
    pub(crate) async fn find_open_letter(
        &mut self,
        scope: &str,
        digest: &str,
    ) -> Result<Option<(DeadLetter, String)>, StoreFault> {
        const SQL: &str = "SELECT id, scope, status, priority, state, row_digest, batch FROM letter \
            WHERE scope = $1 AND digest = $2 \
            AND status IN ('queued', 'retrying') ORDER BY number LIMIT 1";
        let row: Option<LetterRow> =
            self.fetch_optional(SqlStatement::new(SQL).bind(scope).bind(digest)).await?;
        row.map(decode_letter).transpose()
    }

    pub(crate) async fn insert_letter(
        &mut self,
        letter: &DeadLetter,
        digest: &str,
        batch: &str,
    ) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO letter \
            (id, scope, status, priority, digest, state, batch, row_digest) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let state = serde_json::json!(letter).to_string();
        let row_digest = digest_of_letter(letter, &state);
        self.execute(
            SqlStatement::new(SQL)
                .bind(letter.id.as_str())
                .bind(letter.scope.as_str())
                .bind(letter.status.as_str())
                .bind(priority_rank(letter.priority))
                .bind(digest)
                .bind(state)
                .bind(batch)
                .bind(row_digest),
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn update_letter(
        &mut self,
        letter: &DeadLetter,
        batch: &str,
    ) -> Result<(), StoreFault> {
        const SQL: &str = "UPDATE letter SET status = $2, state = $3, batch = $4, row_digest = $5 \
            WHERE id = $1";
        let state = serde_json::json!(letter).to_string();
        let row_digest = digest_of_letter(letter, &state);
        self.execute(
            SqlStatement::new(SQL)
                .bind(letter.id.as_str())
                .bind(letter.status.as_str())
                .bind(state)
                .bind(batch)
                .bind(row_digest),
        )
        .await?;
        Ok(())
    }
}

impl JournalStore {
    /// Returns letters whose id begins or ends with `part`.
    pub(crate) async fn letters_by_part(
        &self,
        part: &str,
        limit: i64,
    ) -> Result<Vec<DeadLetter>, StoreFault> {
        const SQL: &str = "SELECT id, scope, status, priority, state, row_digest, batch FROM letter \
            WHERE length(id) >= length($1) \
            AND (substr(id, 1, length($1)) = $1 OR substr(id, length(id) - length($1) + 1) = $1) \
            ORDER BY number DESC LIMIT $2";
        self.require_complete(CheckedTable::Letter).await?;
        let rows: Vec<LetterRow> =
            self.fetch_all(SqlStatement::new(SQL).bind(part).bind(limit)).await?;
        rows.into_iter().map(|row| Ok(decode_letter(row)?.0)).collect()
    }

    /// Returns a page of letters by descending priority, then the oldest first.
    pub(crate) async fn list_letters(
        &self,
        filter: &LetterFilter,
        limit: u32,
    ) -> Result<JournalPage<DeadLetter>, StoreFault> {
        const SQL: &str = "SELECT id, scope, status, priority, state, row_digest, batch FROM letter \
            WHERE number > 0";
        self.require_complete(CheckedTable::Letter).await?;
        let mut query = SqlStatement::new(SQL);
        if let Some(scope) = &filter.scope {
            query.push(" AND scope = ").push_bind(scope.as_str());
        }
        if !filter.statuses.is_empty() {
            let statuses = filter.statuses.iter().map(|status| status.as_str());
            query.push(" AND status IN (").push_list(statuses).push(")");
        }
        // One row more shows whether there is a next page.
        query.push(" ORDER BY priority DESC, number LIMIT ").push_bind(i64::from(limit) + 1);
        query.push(" OFFSET ").push_bind(to_signed(filter.after));
        let mut rows: Vec<LetterRow> = self.fetch_all(query).await?;
        let next = (rows.len() > limit as usize).then(|| filter.after + u64::from(limit));
        rows.truncate(limit as usize);
        let rows = rows.into_iter();
        let rows = rows.map(|row| (row.id.clone(), decode_letter(row).map(|(letter, _)| letter)));
        self.collect_page(rows, next).await
    }
}

/// Verifies a letter and decodes it. Returns it with the batch that wrote it last.
fn decode_letter(row: LetterRow) -> Result<(DeadLetter, String), StoreFault> {
    let IdentifiedRow { id, cells } = row;
    let (scope, status, priority, state, row_digest, batch) = cells?;
    let digest = letter_digest((&id, &scope, &status), priority, &state);
    let id = sanitise::name(&id);
    require_fit(digest == row_digest, || format!("dead letter {id} does not fit its digest"))?;
    Ok((decode_json(&id, "a dead letter", &state)?, batch))
}

fn digest_of_letter(letter: &DeadLetter, state: &str) -> RowDigest {
    let key = (letter.id.as_str(), letter.scope.as_str(), letter.status.as_str());
    letter_digest(key, priority_rank(letter.priority), state)
}

/// `key` is the id, the scope and the status.
pub(crate) fn letter_digest(key: (&str, &str, &str), priority: i64, state: &str) -> RowDigest {
    let hasher = RowHasher::for_table("letter").text(key.0).text(key.1).text(key.2);
    hasher.number(priority).text(state).finish()
}

fn priority_rank(priority: LetterPriority) -> i64 {
    match priority {
        LetterPriority::Low => 0,
        LetterPriority::Medium => 1,
        LetterPriority::High => 2,
        LetterPriority::Critical => 3,
    }
}
