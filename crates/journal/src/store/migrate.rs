//! The schema: numbered SQL files, each applied once, in an exclusive transaction.
//!
//! Processes of the previous version that are open during a migration continue with their own SQL,
//! and notice the new version only when they open the journal again. So a migration may add things
//! they can ignore (a table, an index, a column with a default). If they must not continue, the
//! migration has to rename the table they use.

use super::StoreFault;
use super::seal::seal_all;
use super::sql::{SqlConnection, SqlStatement, fetch_all, fetch_one};
use crate::error::JournalError;

/// The text of a migration.
pub(super) type SqlMigration = &'static str;

/// The migration that adds digests. The rows of an older journal get theirs right after it.
const DIGESTS: i64 = 4;

const MAKE_VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS journal_version (version BIGINT NOT NULL PRIMARY KEY)";
const VERSION: &str = "SELECT COALESCE(MAX(version), 0) FROM journal_version";
const ADD_VERSION: &str = "INSERT INTO journal_version (version) VALUES ($1)";

/// Applies the migrations that are missing, in a transaction that excludes all others. Before an
/// existing store is changed, `check` looks for damage: its rows are problems, or `ok`.
pub(super) async fn apply_migrations(
    connection: &mut dyn SqlConnection,
    migrations: &'static [SqlMigration],
    place: &str,
    check: Option<&'static str>,
) -> Result<(), StoreFault> {
    connection.run_script(MAKE_VERSIONS).await?;
    let version = read_version(connection).await?;
    let missing: Vec<_> = missing_migrations(migrations, version, place)?.collect();
    if let Some(check) = check
        && version > 0
        && !missing.is_empty()
    {
        refuse_damaged(connection, check).await?;
    }
    for (number, sql) in missing {
        connection.run_script(sql).await?;
        connection.execute(SqlStatement::new(ADD_VERSION).bind(number)).await?;
        if number == DIGESTS && version > 0 {
            seal_all(connection).await?;
        }
    }
    Ok(())
}

/// Returns the number of the last migration that was applied to a journal.
pub(super) async fn read_version(connection: &mut dyn SqlConnection) -> Result<i64, StoreFault> {
    let (version,) = fetch_one(connection, SqlStatement::new(VERSION)).await?;
    Ok(version)
}

pub(super) fn is_newest_version(version: i64, migrations: &[SqlMigration]) -> bool {
    usize::try_from(version) == Ok(migrations.len())
}

async fn refuse_damaged(
    connection: &mut dyn SqlConnection,
    check: &'static str,
) -> Result<(), StoreFault> {
    let found: Vec<(String,)> = fetch_all(connection, SqlStatement::new(check)).await?;
    match found.into_iter().map(|(line,)| line).find(|line| line != "ok") {
        Some(what) => Err(StoreFault::FileDamage(what)),
        None => Ok(()),
    }
}

/// Returns the migrations still to be applied, with their numbers.
fn missing_migrations(
    migrations: &'static [&'static str],
    found: i64,
    place: &str,
) -> Result<impl Iterator<Item = (i64, &'static str)>, JournalError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(JournalError::Newer { place: place.to_owned(), found, known });
    }
    Ok((1..).zip(migrations.iter().copied()).filter(move |(number, _)| *number > found))
}
