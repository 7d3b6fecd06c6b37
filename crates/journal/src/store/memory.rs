//! The tables of the memory: observations, failures and fixes.

use super::row_digest::{RowDigest, RowHasher};
use super::rows::{decode_json, require_fit, to_unsigned};
use super::sql::SqlStatement;
use super::tx::to_signed;
use super::{CheckedTable, JournalStore, StoreFault, StoreTx};
use crate::memory::{FailureKnowledge, KnownFailure, KnownFix, MemoryObservation};
use crate::memory_operations::FailureFilter;
use crate::run::RunId;
use crate::sanitise;

/// The key of the advisory lock: an arbitrary number that is used for nothing else.
const MEMORY_LOCK: i64 = 0x7265_705f_6d65_6d00;

const FAILURE: &str = "SELECT scope, signature, category, seen, last_ms, state, row_digest \
    FROM failure WHERE scope = $1 AND signature = $2";
const FIXES: &str = "SELECT scope, signature, id, state, row_digest FROM fix \
    WHERE scope = $1 AND signature = $2 ORDER BY id";

/// The scope, signature, category, count, last time, state and digest of a failure.
type FailureRow = (String, String, String, i64, i64, String, RowDigest);
/// The scope, signature, id, state and digest of a fix.
type FixRow = (String, String, String, String, RowDigest);
/// The id, time, run, body and digest of an observation.
type ObservationRow = (i64, i64, Option<String>, String, RowDigest);

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
        self.lock_name(MEMORY_LOCK).await
    }

    /// Returns true if this batch was stored already.
    pub(crate) async fn has_memory(
        &mut self,
        entry: &MemoryEntry,
        batch: &str,
    ) -> Result<bool, StoreFault> {
        const SQL: &str =
            "SELECT count(*) FROM memory WHERE scope = $1 AND signature = $2 AND batch = $3";
        let (count,): (i64,) = self
            .fetch_one(
                SqlStatement::new(SQL)
                    .bind(entry.scope.as_str())
                    .bind(entry.signature.as_str())
                    .bind(batch),
            )
            .await?;
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
        const SQL: &str = "INSERT INTO memory (scope, signature, at_ms, run, body, batch, row_digest) \
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (at_ms, run) = (to_signed(entry.at_ms), entry.run.as_ref().map(RunId::as_str));
        let body = serde_json::json!(entry.observation).to_string();
        let row_digest = observation_digest(&entry.scope, &entry.signature, at_ms, run, &body);
        self.execute(
            SqlStatement::new(SQL)
                .bind(entry.scope.as_str())
                .bind(entry.signature.as_str())
                .bind(at_ms)
                .bind(run)
                .bind(body)
                .bind(batch)
                .bind(row_digest),
        )
        .await?;
        self.put_known(&before, &known).await
    }

    async fn load_knowledge(
        &mut self,
        scope: &str,
        signature: &str,
    ) -> Result<FailureKnowledge, StoreFault> {
        let failure: Option<FailureRow> =
            self.fetch_optional(SqlStatement::new(FAILURE).bind(scope).bind(signature)).await?;
        let fixes: Vec<FixRow> =
            self.fetch_all(SqlStatement::new(FIXES).bind(scope).bind(signature)).await?;
        decode_knowledge(failure, fixes)
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
            self.execute(
                SqlStatement::new(SQL)
                    .bind(failure.scope.as_str())
                    .bind(failure.signature.as_str())
                    .bind(id.as_str()),
            )
            .await?;
        }
        Ok(())
    }

    async fn put_failure(&mut self, failure: &KnownFailure) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO failure \
            (scope, signature, category, seen, last_ms, state, row_digest) \
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (scope, signature) DO UPDATE SET \
            category = excluded.category, seen = excluded.seen, last_ms = excluded.last_ms, \
            state = excluded.state, row_digest = excluded.row_digest";
        let (scope, signature) = (failure.scope.as_str(), failure.signature.as_str());
        let (seen, last_ms) = (to_signed(failure.seen), to_signed(failure.last_ms));
        let state = serde_json::json!(failure).to_string();
        let key = (scope, signature, failure.category.as_str());
        let row_digest = failure_digest(key, seen, last_ms, &state);
        self.execute(
            SqlStatement::new(SQL)
                .bind(scope)
                .bind(signature)
                .bind(failure.category.as_str())
                .bind(seen)
                .bind(last_ms)
                .bind(state)
                .bind(row_digest),
        )
        .await?;
        Ok(())
    }

    async fn put_fix(&mut self, failure: &KnownFailure, fix: &KnownFix) -> Result<(), StoreFault> {
        const SQL: &str = "INSERT INTO fix (scope, signature, id, state, row_digest) \
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (scope, signature, id) DO UPDATE \
            SET state = excluded.state, row_digest = excluded.row_digest";
        let (scope, signature) = (failure.scope.as_str(), failure.signature.as_str());
        let state = serde_json::json!(fix).to_string();
        let row_digest = fix_digest(scope, signature, &fix.id, &state);
        self.execute(
            SqlStatement::new(SQL)
                .bind(scope)
                .bind(signature)
                .bind(fix.id.as_str())
                .bind(state)
                .bind(row_digest),
        )
        .await?;
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
            gone = self.execute(SqlStatement::new(one).bind(scope).bind(signature)).await?;
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
        self.require_complete(CheckedTable::Failure).await?;
        self.require_complete(CheckedTable::Fix).await?;
        let failure: Option<FailureRow> =
            self.fetch_optional(SqlStatement::new(FAILURE).bind(scope).bind(signature)).await?;
        let fixes: Vec<FixRow> =
            self.fetch_all(SqlStatement::new(FIXES).bind(scope).bind(signature)).await?;
        decode_knowledge(failure, fixes)
    }

    /// Returns failures by descending frequency.
    pub(crate) async fn list_failures(
        &self,
        filter: &FailureFilter,
        limit: u32,
    ) -> Result<Vec<KnownFailure>, StoreFault> {
        const SQL: &str = "SELECT scope, signature, category, seen, last_ms, state, row_digest \
            FROM failure WHERE scope = $1";
        self.require_complete(CheckedTable::Failure).await?;
        let mut query = SqlStatement::new(SQL).bind(filter.scope.as_str());
        if let Some(category) = &filter.category {
            query.push(" AND category = ").push_bind(category.as_str());
        }
        if let Some(start) = &filter.signature {
            query.push(" AND substr(signature, 1, length(").push_bind(start.as_str());
            query.push(")) = ").push_bind(start.as_str());
        }
        query.push(" ORDER BY seen DESC, signature LIMIT ").push_bind(i64::from(limit));
        query.push(" OFFSET ").push_bind(to_signed(filter.after));
        let rows: Vec<FailureRow> = self.fetch_all(query).await?;
        rows.into_iter().map(decode_failure).collect()
    }

    /// Returns the scopes in the memory, with the number of failures of each.
    pub(crate) async fn list_scopes(&self, limit: u32) -> Result<Vec<(String, u64)>, StoreFault> {
        const SQL: &str = "SELECT scope, count(*) FROM failure GROUP BY scope \
            ORDER BY count(*) DESC, scope LIMIT $1";
        self.require_complete(CheckedTable::Failure).await?;
        let rows: Vec<(String, i64)> =
            self.fetch_all(SqlStatement::new(SQL).bind(i64::from(limit))).await?;
        Ok(rows.into_iter().map(|(scope, count)| (scope, to_unsigned(count))).collect())
    }

    /// Returns the signatures of which there are observations.
    pub(crate) async fn list_observed_signatures(
        &self,
        scope: &str,
    ) -> Result<Vec<String>, StoreFault> {
        const SQL: &str =
            "SELECT DISTINCT signature FROM memory WHERE scope = $1 ORDER BY signature";
        self.require_complete(CheckedTable::Memory).await?;
        let rows: Vec<(String,)> = self.fetch_all(SqlStatement::new(SQL).bind(scope)).await?;
        Ok(rows.into_iter().map(|(signature,)| signature).collect())
    }

    /// Returns the observations of a signature, oldest first.
    pub(crate) async fn list_observations(
        &self,
        scope: &str,
        signature: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, u64, MemoryObservation)>, StoreFault> {
        const SQL: &str = "SELECT id, at_ms, run, body, row_digest FROM memory \
            WHERE scope = $1 AND signature = $2 AND id > $3 ORDER BY id LIMIT $4";
        self.require_complete(CheckedTable::Memory).await?;
        let rows: Vec<ObservationRow> = self
            .fetch_all(
                SqlStatement::new(SQL)
                    .bind(scope)
                    .bind(signature)
                    .bind(after)
                    .bind(i64::from(limit)),
            )
            .await?;
        let decode = |(id, at_ms, run, body, row_digest): ObservationRow| {
            let digest = observation_digest(scope, signature, at_ms, run.as_deref(), &body);
            require_fit(digest == row_digest, || {
                format!("observation {id} of failure {signature} does not fit its digest")
            })?;
            Ok((id, to_unsigned(at_ms), decode_json(signature, "an observation", &body)?))
        };
        rows.into_iter().map(decode).collect()
    }
}

fn decode_knowledge(
    failure: Option<FailureRow>,
    fixes: Vec<FixRow>,
) -> Result<FailureKnowledge, StoreFault> {
    let failure = failure.map(decode_failure).transpose()?;
    let fixes = fixes.into_iter().map(decode_fix);
    Ok(FailureKnowledge { failure, fixes: fixes.collect::<Result<_, StoreFault>>()? })
}

fn decode_failure(row: FailureRow) -> Result<KnownFailure, StoreFault> {
    let (scope, signature, category, seen, last_ms, state, row_digest) = row;
    let digest = failure_digest((&scope, &signature, &category), seen, last_ms, &state);
    let signature = sanitise::name(&signature);
    require_fit(digest == row_digest, || format!("failure {signature} does not fit its digest"))?;
    Ok(decode_json(&signature, "a failure", &state)?)
}

fn decode_fix(row: FixRow) -> Result<(String, KnownFix), StoreFault> {
    let (scope, signature, id, state, row_digest) = row;
    let digest = fix_digest(&scope, &signature, &id, &state);
    let signature = sanitise::name(&signature);
    require_fit(digest == row_digest, || {
        format!("a fix of failure {signature} does not fit its digest")
    })?;
    let fix: KnownFix = decode_json(&signature, "a fix", &state)?;
    Ok((fix.id.clone(), fix))
}

/// `key` is the scope, the signature and the category.
pub(crate) fn failure_digest(
    key: (&str, &str, &str),
    seen: i64,
    last_ms: i64,
    state: &str,
) -> RowDigest {
    let hasher = RowHasher::for_table("failure").text(key.0).text(key.1).text(key.2);
    hasher.number(seen).number(last_ms).text(state).finish()
}

pub(crate) fn fix_digest(scope: &str, signature: &str, id: &str, state: &str) -> RowDigest {
    RowHasher::for_table("fix").text(scope).text(signature).text(id).text(state).finish()
}

pub(crate) fn observation_digest(
    scope: &str,
    signature: &str,
    at_ms: i64,
    run: Option<&str>,
    body: &str,
) -> RowDigest {
    RowHasher::for_table("memory")
        .text(scope)
        .text(signature)
        .number(at_ms)
        .number(i64::from(run.is_some()))
        .text(run.unwrap_or_default())
        .text(body)
        .finish()
}
