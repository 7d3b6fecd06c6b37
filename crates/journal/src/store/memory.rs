//! The tables of the memory: observations, failures and fixes.

use sqlx::QueryBuilder;

use super::complete_query::CompleteAnswer;
use super::read::{decode_json, to_unsigned};
use super::tx::to_signed;
use super::{JournalStore, StoreFault, StoreTx, on};
use crate::memory::{FailureKnowledge, KnownFailure, KnownFix, MemoryObservation};
use crate::memory_operations::FailureFilter;
use crate::run::RunId;

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const MEMORY_LOCK: i64 = 0x7265_705f_6d65_6d00;

const FAILURE: &str = "SELECT state FROM failure WHERE scope = $1 AND signature = $2";
const FIXES: &str = "SELECT state FROM fix WHERE scope = $1 AND signature = $2 ORDER BY id";

/// An observation with its scope and signature.
pub(crate) struct MemoryEntry {
    pub(crate) scope: String,
    pub(crate) signature: String,
    pub(crate) at_ms: u64,
    pub(crate) run: Option<RunId>,
    pub(crate) observation: MemoryObservation,
}

impl StoreTx {
    /// Locks the memory. The result of the fold depends on the order of observations, which is the
    /// order of their ids; the lock makes that the order of commits as well.
    pub(crate) async fn lock_memory(&mut self) -> Result<(), StoreFault> {
        if let StoreTx::Postgres(tx) = self {
            let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MEMORY_LOCK);
            lock.execute(tx.connection()).await?;
        }
        Ok(())
    }

    /// Returns true if this batch was stored already.
    pub(crate) async fn has_memory(
        &mut self,
        entry: &MemoryEntry,
        batch: &str,
    ) -> Result<bool, StoreFault> {
        const SQL: &str =
            "SELECT count(*) FROM memory WHERE scope = $1 AND signature = $2 AND batch = $3";
        let (count,): (i64,) = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(entry.scope.as_str())
            .bind(entry.signature.as_str())
            .bind(batch)
            .complete_one(conn)
            .await?);
        Ok(count > 0)
    }

    /// Stores an observation and updates the failure and its fixes. The memory must be locked.
    pub(crate) async fn store_observation(
        &mut self,
        entry: &MemoryEntry,
        batch: &str,
    ) -> Result<(), StoreFault> {
        let before = self.load_knowledge(&entry.scope, &entry.signature).await?;
        let mut known = before.clone();
        known.apply(&entry.scope, &entry.signature, &entry.observation, entry.at_ms);
        const SQL: &str = "INSERT INTO memory (scope, signature, at_ms, run, body, batch) \
            VALUES ($1, $2, $3, $4, $5, $6)";
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(entry.scope.as_str())
            .bind(entry.signature.as_str())
            .bind(to_signed(entry.at_ms))
            .bind(entry.run.as_ref().map(RunId::as_str))
            .bind(serde_json::json!(entry.observation).to_string())
            .bind(batch)
            .execute(conn)
            .await
            .map(drop))?;
        self.put_known(&before, &known).await
    }

    async fn load_knowledge(
        &mut self,
        scope: &str,
        signature: &str,
    ) -> Result<FailureKnowledge, StoreFault> {
        let failure: Option<(String,)> = on!(self, (conn, sql = FAILURE, FAILURE) => {
            sqlx::query_as(sql).bind(scope).bind(signature).complete_optional(conn).await?
        });
        let fixes: Vec<(String,)> = on!(self, (conn, sql = FIXES, FIXES) => {
            sqlx::query_as(sql).bind(scope).bind(signature).complete_all(conn).await?
        });
        decode_knowledge(signature, failure, &fixes)
    }

    async fn put_known(
        &mut self,
        before: &FailureKnowledge,
        now: &FailureKnowledge,
    ) -> Result<(), StoreFault> {
        let Some(failure) = &now.failure else { return Ok(()) };
        if before.failure.as_ref() != Some(failure) {
            self.put_failure(failure).await?;
        }
        for (id, fix) in &now.fixes {
            if before.fixes.get(id) != Some(fix) {
                self.put_fix(failure, fix).await?;
            }
        }
        for id in before.fixes.keys().filter(|id| !now.fixes.contains_key(*id)) {
            const SQL: &str = "DELETE FROM fix WHERE scope = $1 AND signature = $2 AND id = $3";
            on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
                .bind(failure.scope.as_str())
                .bind(failure.signature.as_str())
                .bind(id.as_str())
                .execute(conn)
                .await
                .map(drop))?;
        }
        Ok(())
    }

    async fn put_failure(&mut self, failure: &KnownFailure) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO failure (scope, signature, category, seen, last_ms, state) \
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (scope, signature) DO UPDATE SET \
            category = excluded.category, seen = excluded.seen, last_ms = excluded.last_ms, \
            state = excluded.state";
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(failure.scope.as_str())
            .bind(failure.signature.as_str())
            .bind(failure.category.as_str())
            .bind(to_signed(failure.seen))
            .bind(to_signed(failure.last_ms))
            .bind(serde_json::json!(failure).to_string())
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    async fn put_fix(&mut self, failure: &KnownFailure, fix: &KnownFix) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO fix (scope, signature, id, state) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (scope, signature, id) DO UPDATE SET state = excluded.state";
        on!(self, (conn, sql = SQL, SQL) => sqlx::query(sql)
            .bind(failure.scope.as_str())
            .bind(failure.signature.as_str())
            .bind(fix.id.as_str())
            .bind(serde_json::json!(fix).to_string())
            .execute(conn)
            .await
            .map(drop))?;
        Ok(())
    }

    /// Deletes a failure, or all failures of a scope, and returns their number. The memory must be
    /// locked.
    pub(crate) async fn delete_known(
        &mut self,
        scope: &str,
        signature: Option<&str>,
    ) -> Result<u64, StoreFault> {
        const ALL: [&str; 3] = [
            "DELETE FROM memory WHERE scope = $1 AND ($2 IS NULL OR signature = $2)",
            "DELETE FROM fix WHERE scope = $1 AND ($2 IS NULL OR signature = $2)",
            "DELETE FROM failure WHERE scope = $1 AND ($2 IS NULL OR signature = $2)",
        ];
        // Failures come last, so that their number is returned.
        let mut gone = 0;
        for one in ALL {
            gone = on!(self, (conn, sql = one, one) => sqlx::query(sql)
                .bind(scope)
                .bind(signature)
                .execute(conn)
                .await?
                .rows_affected());
        }
        Ok(gone)
    }
}

impl JournalStore {
    pub(crate) async fn known(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<FailureKnowledge, StoreFault> {
        let failure: Option<(String,)> = on!(self, (conn, sql = FAILURE, FAILURE) => {
            sqlx::query_as(sql).bind(scope).bind(signature).complete_optional(conn).await?
        });
        let fixes: Vec<(String,)> = on!(self, (conn, sql = FIXES, FIXES) => {
            sqlx::query_as(sql).bind(scope).bind(signature).complete_all(conn).await?
        });
        decode_knowledge(signature, failure, &fixes)
    }

    /// Returns failures by descending frequency.
    pub(crate) async fn list_failures(
        &self,
        filter: &FailureFilter,
        limit: u32,
    ) -> Result<Vec<KnownFailure>, StoreFault> {
        const SQL: &str = "SELECT signature, state FROM failure WHERE scope = ";
        let rows: Vec<(String, String)> = on!(self, (conn, sql = SQL, SQL) => {
            let mut query = QueryBuilder::new(sql);
            query.push_bind(filter.scope.as_str());
            if let Some(category) = &filter.category {
                query.push(" AND category = ").push_bind(category.as_str());
            }
            if let Some(start) = &filter.signature {
                query.push(" AND substr(signature, 1, length(").push_bind(start.as_str());
                query.push(")) = ").push_bind(start.as_str());
            }
            query.push(" ORDER BY seen DESC, signature LIMIT ").push_bind(i64::from(limit));
            query.push(" OFFSET ").push_bind(to_signed(filter.after));
            query.build_query_as().complete_all(conn).await?
        });
        rows.iter()
            .map(|(signature, state)| Ok(decode_json(signature, "a failure", state)?))
            .collect()
    }

    /// Returns the scopes in the memory, with the number of failures of each.
    pub(crate) async fn list_scopes(&self, limit: u32) -> Result<Vec<(String, u64)>, StoreFault> {
        const SQL: &str = "SELECT scope, count(*) FROM failure GROUP BY scope \
            ORDER BY count(*) DESC, scope LIMIT $1";
        let rows: Vec<(String, i64)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(i64::from(limit))
            .complete_all(conn)
            .await?);
        Ok(rows.into_iter().map(|(scope, count)| (scope, to_unsigned(count))).collect())
    }

    /// Returns the observations of a signature, oldest first.
    pub(crate) async fn list_observations(
        &self,
        scope: &str,
        signature: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, u64, MemoryObservation)>, StoreFault> {
        const SQL: &str = "SELECT id, at_ms, body FROM memory \
            WHERE scope = $1 AND signature = $2 AND id > $3 ORDER BY id LIMIT $4";
        let rows: Vec<(i64, i64, String)> = on!(self, (conn, sql = SQL, SQL) => sqlx::query_as(sql)
            .bind(scope)
            .bind(signature)
            .bind(after)
            .bind(i64::from(limit))
            .complete_all(conn)
            .await?);
        rows.iter()
            .map(|(id, at_ms, body)| {
                Ok((*id, to_unsigned(*at_ms), decode_json(signature, "an observation", body)?))
            })
            .collect()
    }
}

fn decode_knowledge(
    signature: &str,
    failure: Option<(String,)>,
    fixes: &[(String,)],
) -> Result<FailureKnowledge, StoreFault> {
    let failure =
        failure.map(|(state,)| decode_json(signature, "a failure", &state)).transpose()?;
    let fixes = fixes.iter().map(|(state,)| {
        let fix: KnownFix = decode_json(signature, "a fix", state)?;
        Ok((fix.id.clone(), fix))
    });
    Ok(FailureKnowledge { failure, fixes: fixes.collect::<Result<_, StoreFault>>()? })
}
