//! Queries that fail if their result is incomplete.
//!
//! The thread of a SQLite connection sends rows over a channel. If it panics, the channel closes,
//! and sqlx's own `fetch_all` and `fetch_optional` take that for the end of the rows: a damaged
//! file could look like an empty journal. sqlx also sends a message at the end of each statement,
//! so a missing end is an error here.

use std::future::Future;

use futures_util::{Stream, TryStreamExt};
use sqlx::query::QueryAs;
use sqlx::{Database, Either, Executor, FromRow, IntoArguments};

/// Fetches rows, and fails if the connection ended before the statement did.
pub(crate) trait CompleteAnswer<'q, DB: Database, O>: Sized {
    /// Returns all rows.
    fn complete_all<'e, 'c: 'e, E>(
        self,
        executor: E,
    ) -> impl Future<Output = Result<Vec<O>, sqlx::Error>> + Send
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>;

    /// Returns the first row, if there is one.
    fn complete_optional<'e, 'c: 'e, E>(
        self,
        executor: E,
    ) -> impl Future<Output = Result<Option<O>, sqlx::Error>> + Send
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>;

    /// Returns the first row; no row is an error.
    fn complete_one<'e, 'c: 'e, E>(
        self,
        executor: E,
    ) -> impl Future<Output = Result<O, sqlx::Error>> + Send
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>;
}

impl<'q, DB, O, A> CompleteAnswer<'q, DB, O> for QueryAs<'q, DB, O, A>
where
    DB: Database,
    A: 'q + IntoArguments<DB> + Send,
    O: Send + Unpin + for<'r> FromRow<'r, DB::Row>,
{
    async fn complete_all<'e, 'c: 'e, E>(self, executor: E) -> Result<Vec<O>, sqlx::Error>
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>,
    {
        #[expect(deprecated, reason = "the only method that passes on the end of a statement")]
        collect_complete(self.fetch_many(executor)).await
    }

    async fn complete_optional<'e, 'c: 'e, E>(self, executor: E) -> Result<Option<O>, sqlx::Error>
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>,
    {
        Ok(self.complete_all(executor).await?.into_iter().next())
    }

    async fn complete_one<'e, 'c: 'e, E>(self, executor: E) -> Result<O, sqlx::Error>
    where
        'q: 'e,
        E: 'e + Executor<'c, Database = DB>,
    {
        self.complete_optional(executor).await?.ok_or(sqlx::Error::RowNotFound)
    }
}

/// Collects the rows of one statement, up to the message that ends it.
async fn collect_complete<Q, O>(
    mut answer: impl Stream<Item = Result<Either<Q, O>, sqlx::Error>> + Unpin,
) -> Result<Vec<O>, sqlx::Error> {
    let (mut rows, mut has_ended) = (Vec::new(), false);
    while let Some(part) = answer.try_next().await? {
        match part {
            Either::Right(row) => rows.push(row),
            Either::Left(_) => has_ended = true,
        }
    }
    if has_ended { Ok(rows) } else { Err(sqlx::Error::WorkerCrashed) }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_database_worker_that_panics_is_an_error() {
        let parts = |ends: bool| {
            let mut parts: Vec<Result<Either<(), u8>, sqlx::Error>> =
                vec![Ok(Either::Right(1)), Ok(Either::Right(2))];
            if ends {
                parts.push(Ok(Either::Left(())));
            }
            stream::iter(parts)
        };
        assert_eq!(collect_complete(parts(true)).await.unwrap(), [1, 2]);
        let crashed = collect_complete(parts(false)).await;
        assert!(matches!(crashed, Err(sqlx::Error::WorkerCrashed)), "{crashed:?}");
        let nothing: [Result<Either<(), u8>, sqlx::Error>; 0] = [];
        assert!(collect_complete(stream::iter(nothing)).await.is_err());
    }
}
