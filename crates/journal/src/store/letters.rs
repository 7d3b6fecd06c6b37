//! The table of dead letters.

use sqlx::QueryBuilder;

use super::complete_query::CompleteAnswer;
use super::read::decode_json;
use super::tx::to_signed;
use super::{JournalStore, StoreFault, StoreTx, on};
use crate::letter::{DeadLetter, LetterFilter, LetterPriority};

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const LETTER_LOCK: i64 = 0x7265_705f_6465_6164;

/// The id, the state, and the batch that wrote it last.
type LetterRow = (String, String, String);

impl StoreTx {
    /// Locks the dead letters. Without the lock, two transactions could add the same letter. SQLite
    /// needs none, since it has a single writer.
    pub(crate) async fn lock_letters(&mut self) -> Result<(), StoreFault> {
        if let StoreTx::Postgres(tx) = self {
            let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LETTER_LOCK);
            lock.execute(tx.connection()).await?;
        }
        Ok(())
    }

    pub(crate) async fn load_letter(
        &mut self,
        id: &str,
    ) -> Result<Option<(DeadLetter, String)>, StoreFault> {
        const SQL: &str = "SELECT id, state, batch FROM letter WHERE id = $1";
        let row: Option<LetterRow> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(id)
            .complete_optional(conn)
            .await?);
        decode_letter(row)
    }

    /// Returns the open letter with this digest.
    pub(crate) async fn find_open_letter(
        &mut self,
        scope: &str,
        digest: &str,
    ) -> Result<Option<(DeadLetter, String)>, StoreFault> {
        const SQL: &str = "SELECT id, state, batch FROM letter WHERE scope = $1 AND digest = $2 \
            AND status IN ('queued', 'retrying') ORDER BY number LIMIT 1";
        let row: Option<LetterRow> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(scope)
            .bind(digest)
            .complete_optional(conn)
            .await?);
        decode_letter(row)
    }

    pub(crate) async fn insert_letter(
        &mut self,
        letter: &DeadLetter,
        digest: &str,
        batch: &str,
    ) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO letter (id, scope, status, priority, digest, state, batch) \
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(letter.id.as_str())
            .bind(letter.scope.as_str())
            .bind(letter.status.as_str())
            .bind(priority_rank(letter.priority))
            .bind(digest)
            .bind(serde_json::json!(letter).to_string())
            .bind(batch)
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    pub(crate) async fn update_letter(
        &mut self,
        letter: &DeadLetter,
        batch: &str,
    ) -> Result<(), StoreFault> {
        const SQL: &str = "UPDATE letter SET status = $2, state = $3, batch = $4 WHERE id = $1";
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(letter.id.as_str())
            .bind(letter.status.as_str())
            .bind(serde_json::json!(letter).to_string())
            .bind(batch)
            .execute(conn)
            .await
            .map(drop))?;
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
        const SQL: &str = "SELECT id, state FROM letter WHERE length(id) >= length($1) \
            AND (substr(id, 1, length($1)) = $1 OR substr(id, length(id) - length($1) + 1) = $1) \
            ORDER BY number DESC LIMIT $2";
        let rows: Vec<(String, String)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(part)
            .bind(limit)
            .complete_all(conn)
            .await?);
        rows.iter().map(|(id, state)| Ok(decode_json(id, "a dead letter", state)?)).collect()
    }

    /// Returns letters by descending priority, then the oldest first.
    pub(crate) async fn list_letters(
        &self,
        filter: &LetterFilter,
        limit: u32,
    ) -> Result<Vec<DeadLetter>, StoreFault> {
        const SQL: &str = "SELECT id, state FROM letter WHERE number > ";
        let rows: Vec<(String, String)> = on!(self, (conn, sql = SQL, SQL) => {
            let mut query = QueryBuilder::new(sql);
            query.push_bind(0_i64);
            if let Some(scope) = &filter.scope {
                query.push(" AND scope = ").push_bind(scope.as_str());
            }
            if !filter.statuses.is_empty() {
                query.push(" AND status IN (");
                let mut words = query.separated(", ");
                for status in &filter.statuses {
                    words.push_bind(status.as_str());
                }
                query.push(")");
            }
            query.push(" ORDER BY priority DESC, number LIMIT ").push_bind(i64::from(limit));
            query.push(" OFFSET ").push_bind(to_signed(filter.after));
            query.build_query_as().complete_all(conn).await?
        });
        rows.iter().map(|(id, state)| Ok(decode_json(id, "a dead letter", state)?)).collect()
    }
}

fn decode_letter(row: Option<LetterRow>) -> Result<Option<(DeadLetter, String)>, StoreFault> {
    row.map(|(id, state, batch)| Ok((decode_json(&id, "a dead letter", &state)?, batch)))
        .transpose()
}

fn priority_rank(priority: LetterPriority) -> i64 {
    match priority {
        LetterPriority::Low => 0,
        LetterPriority::Medium => 1,
        LetterPriority::High => 2,
        LetterPriority::Critical => 3,
    }
}
