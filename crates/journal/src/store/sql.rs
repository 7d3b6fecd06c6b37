//! Statements that every store can run.
//!
//! A statement is written once. Its values and the cells of its rows have one of three types, which
//! every store converts to the types of its database ([`StoreDatabase`]). Parts of the text in which
//! the databases differ come from the store's [`SqlDialect`].

use std::borrow::Cow;
use std::pin::Pin;

use futures_util::{Stream, TryStreamExt};
use sqlx::error::BoxDynError;
use sqlx::{
    AssertSqlSafe, Database, Either, Executor, IntoArguments, SqlSafeStr, SqlStr, Transaction,
};

/// A future of a store, whatever its database is.
pub(crate) type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parts of statements in which the databases differ.
pub(crate) struct SqlDialect {
    /// The current time in milliseconds since 1970. The parameter has the time of this process, or
    /// null if the database has its own clock.
    pub(crate) now: fn(parameter: &str) -> String,
    /// Makes a query use this index of the table before it.
    pub(crate) use_index: fn(index: &str) -> String,
    /// A query for the texts in a JSON array.
    pub(crate) json_texts: fn(array: &str) -> String,
    /// A condition: every text of the first JSON array is in the second.
    pub(crate) json_within: fn(inner: &str, outer: &str) -> String,
    /// Locks the run `r` of a query; waits for other transactions.
    pub(crate) lock_run: &'static str,
    /// Locks the run `r` of a query; leaves out runs that other transactions have locked.
    pub(crate) lock_free_run: &'static str,
    /// Locks something until the transaction ends; its name is parameter `$1`. `None` if there is
    /// only one writer.
    pub(crate) lock_name: Option<&'static str>,
    /// Tells listeners of the run with the id `$1`. `None` if there are no listeners.
    pub(crate) notify_run: Option<&'static str>,
    /// Ends an update of a run, and tells listeners of it.
    pub(crate) and_notify: &'static str,
    /// The column of an event that orders transactions.
    pub(crate) event_transaction: &'static str,
    /// A condition: the event comes after transaction `$1` and id `$2`, and no event that is
    /// committed later can precede it.
    pub(crate) event_follows: &'static str,
    /// The order of the events of all runs.
    pub(crate) event_order: &'static str,
    /// A query for the place after the last event of all runs.
    pub(crate) last_event: &'static str,
    /// Explains a query; the last column of each row is a line of its plan.
    pub(crate) explain: &'static str,
}

/// A value of a statement. A null has a type, too.
#[derive(Clone, Debug)]
pub(crate) enum SqlValue<'a> {
    Text(Option<Cow<'a, str>>),
    Number(Option<i64>),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> From<&'a str> for SqlValue<'a> {
    fn from(text: &'a str) -> Self {
        SqlValue::Text(Some(text.into()))
    }
}

impl From<String> for SqlValue<'_> {
    fn from(text: String) -> Self {
        SqlValue::Text(Some(text.into()))
    }
}

impl<'a> From<Option<&'a str>> for SqlValue<'a> {
    fn from(text: Option<&'a str>) -> Self {
        SqlValue::Text(text.map(Cow::from))
    }
}

impl From<i64> for SqlValue<'_> {
    fn from(number: i64) -> Self {
        SqlValue::Number(Some(number))
    }
}

impl From<Option<i64>> for SqlValue<'_> {
    fn from(number: Option<i64>) -> Self {
        SqlValue::Number(number)
    }
}

impl<'a> From<&'a [u8]> for SqlValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        SqlValue::Bytes(bytes.into())
    }
}

impl From<Vec<u8>> for SqlValue<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        SqlValue::Bytes(bytes.into())
    }
}

/// A statement with its values. User input is only ever a value, never part of the text.
pub(crate) struct SqlStatement<'a> {
    text: Cow<'static, str>,
    values: Vec<SqlValue<'a>>,
}

impl<'a> SqlStatement<'a> {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        SqlStatement { text: text.into(), values: Vec::new() }
    }

    /// Adds the value of the next parameter.
    #[must_use]
    pub(crate) fn bind(mut self, value: impl Into<SqlValue<'a>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds to the text.
    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        self.text.to_mut().push_str(text);
        self
    }

    /// Adds a parameter with its value to the text.
    pub(crate) fn push_bind(&mut self, value: impl Into<SqlValue<'a>>) -> &mut Self {
        self.values.push(value.into());
        let parameter = format!("${}", self.values.len());
        self.push(&parameter)
    }

    /// Adds parameters with their values to the text, separated by commas.
    pub(crate) fn push_list<V: Into<SqlValue<'a>>>(
        &mut self,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        for (at, value) in values.into_iter().enumerate() {
            self.push(if at == 0 { "" } else { ", " }).push_bind(value);
        }
        self
    }

    fn into_parts<DB: StoreDatabase>(self) -> Result<(SqlStr, DB::Arguments), sqlx::Error> {
        let mut arguments = DB::Arguments::default();
        for value in self.values {
            DB::add_value(&mut arguments, value).map_err(sqlx::Error::Encode)?;
        }
        Ok((AssertSqlSafe(self.text).into_sql_str(), arguments))
    }
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SqlCell {
    Null,
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
    /// A value that the journal does not write, with the reason it cannot be read.
    Unreadable(String),
}

impl SqlCell {
    /// Keeps a value that cannot be read as a cell: it concerns its row only.
    pub(crate) fn keep_unreadable(read: Result<Self, sqlx::Error>) -> Result<Self, sqlx::Error> {
        match read {
            Err(sqlx::Error::ColumnDecode { source, .. }) => {
                Ok(SqlCell::Unreadable(source.to_string()))
            }
            read => read,
        }
    }
}

/// A type that a cell can be converted to.
pub(crate) trait FromSqlCell: Sized {
    /// Returns `None` if the cell has another type.
    fn from_cell(cell: SqlCell) -> Option<Self>;
}

impl FromSqlCell for String {
    fn from_cell(cell: SqlCell) -> Option<Self> {
        if let SqlCell::Text(text) = cell { Some(text) } else { None }
    }
}

impl FromSqlCell for i64 {
    fn from_cell(cell: SqlCell) -> Option<Self> {
        if let SqlCell::Number(number) = cell { Some(number) } else { None }
    }
}

impl FromSqlCell for bool {
    fn from_cell(cell: SqlCell) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromSqlCell for Vec<u8> {
    fn from_cell(cell: SqlCell) -> Option<Self> {
        if let SqlCell::Bytes(bytes) = cell { Some(bytes) } else { None }
    }
}

impl<T: FromSqlCell> FromSqlCell for Option<T> {
    fn from_cell(cell: SqlCell) -> Option<Self> {
        if cell == SqlCell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

/// The cells of a row that were not taken yet.
pub(crate) struct SqlRow {
    cells: std::vec::IntoIter<SqlCell>,
    taken: usize,
}

impl SqlRow {
    pub(crate) fn new(cells: Vec<SqlCell>) -> Self {
        SqlRow { cells: cells.into_iter(), taken: 0 }
    }

    /// Takes the next cell. A cell of another type was not written by the journal.
    pub(crate) fn take<T: FromSqlCell>(&mut self) -> Result<T, sqlx::Error> {
        let at = self.taken;
        self.taken += 1;
        let cell =
            self.cells.next().ok_or(sqlx::Error::ColumnIndexOutOfBounds { index: at, len: at })?;
        let why = match &cell {
            SqlCell::Unreadable(why) => why.clone(),
            _ => "the value has another type than the journal writes".to_owned(),
        };
        T::from_cell(cell)
            .ok_or_else(|| sqlx::Error::ColumnDecode { index: at.to_string(), source: why.into() })
    }

    /// Takes the last cell.
    pub(crate) fn take_last<T: FromSqlCell>(mut self) -> Result<T, sqlx::Error> {
        let before = self.cells.len().saturating_sub(1);
        self.cells.by_ref().take(before).for_each(drop);
        self.take()
    }
}

/// A type that a row can be converted to.
pub(crate) trait FromSqlRow: Sized {
    fn from_row(row: SqlRow) -> Result<Self, sqlx::Error>;
}

macro_rules! tuple_from_row {
    ($($cell:ident)+) => {
        impl<$($cell: FromSqlCell),+> FromSqlRow for ($($cell,)+) {
            fn from_row(mut row: SqlRow) -> Result<Self, sqlx::Error> {
                Ok(($(row.take::<$cell>()?,)+))
            }
        }
    };
}
tuple_from_row!(A);
tuple_from_row!(A B);
tuple_from_row!(A B C);
tuple_from_row!(A B C D);
tuple_from_row!(A B C D E);
tuple_from_row!(A B C D E F);
tuple_from_row!(A B C D E F G);
tuple_from_row!(A B C D E F G H);

/// A row with an id. A value that cannot be read does not hide the id.
pub(crate) struct IdentifiedRow<T> {
    pub(crate) id: String,
    pub(crate) cells: Result<T, sqlx::Error>,
}

impl<T: FromSqlRow> FromSqlRow for IdentifiedRow<T> {
    fn from_row(mut row: SqlRow) -> Result<Self, sqlx::Error> {
        Ok(IdentifiedRow { id: row.take()?, cells: T::from_row(row) })
    }
}

/// Converts the values and cells of a database.
pub(crate) trait StoreDatabase: Database {
    fn add_value(arguments: &mut Self::Arguments, value: SqlValue<'_>) -> Result<(), BoxDynError>;

    /// Returns the cells of a row.
    fn read_cells(row: &Self::Row) -> Result<Vec<SqlCell>, sqlx::Error>;
}

/// The error for a cell of a type that the journal does not use.
pub(crate) fn foreign_type(at: usize, name: &str) -> sqlx::Error {
    let source = format!("the journal stores no values of type {name}").into();
    sqlx::Error::ColumnDecode { index: at.to_string(), source }
}

/// A connection to a store, possibly in a transaction.
pub(crate) trait SqlConnection: Send {
    /// Returns all rows.
    fn fetch<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>>;

    /// Returns the number of changed rows.
    fn execute<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<u64, sqlx::Error>>;

    /// Runs several statements without values.
    fn run_script(&mut self, sql: &'static str) -> StoreFuture<'_, Result<(), sqlx::Error>>;
}

/// A transaction passes everything on to its connection.
impl<DB> SqlConnection for Transaction<'static, DB>
where
    DB: Database,
    DB::Connection: SqlConnection,
{
    fn fetch<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<Vec<SqlRow>, sqlx::Error>> {
        (**self).fetch(statement)
    }

    fn execute<'a>(
        &'a mut self,
        statement: SqlStatement<'a>,
    ) -> StoreFuture<'a, Result<u64, sqlx::Error>> {
        (**self).execute(statement)
    }

    fn run_script(&mut self, sql: &'static str) -> StoreFuture<'_, Result<(), sqlx::Error>> {
        (**self).run_script(sql)
    }
}

/// Returns all rows as values of one type.
pub(crate) async fn fetch_all<T: FromSqlRow>(
    connection: &mut dyn SqlConnection,
    statement: SqlStatement<'_>,
) -> Result<Vec<T>, sqlx::Error> {
    connection.fetch(statement).await?.into_iter().map(T::from_row).collect()
}

/// Returns the first row; no row is an error.
pub(crate) async fn fetch_one<T: FromSqlRow>(
    connection: &mut dyn SqlConnection,
    statement: SqlStatement<'_>,
) -> Result<T, sqlx::Error> {
    let rows = fetch_all(connection, statement).await?;
    rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)
}

/// Fetches the rows of a statement, and fails if the connection ended before the statement did.
///
/// The thread of a SQLite connection sends rows over a channel. If it panics, the channel closes,
/// and sqlx's own `fetch_all` takes that for the end of the rows: a damaged file could look like an
/// empty journal. sqlx also sends a message at the end of each statement, so a missing end is an
/// error here.
pub(crate) async fn fetch_rows<'c, DB, E>(
    statement: SqlStatement<'_>,
    executor: E,
) -> Result<Vec<SqlRow>, sqlx::Error>
where
    DB: StoreDatabase,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
{
    let (text, arguments) = statement.into_parts::<DB>()?;
    let answer = executor.fetch_many(sqlx::query_with(text, arguments));
    let rows = collect_complete(answer).await?;
    rows.iter().map(|row| Ok(SqlRow::new(DB::read_cells(row)?))).collect()
}

/// Returns the result of a statement that changes rows.
pub(crate) async fn execute_statement<'c, DB, E>(
    statement: SqlStatement<'_>,
    executor: E,
) -> Result<DB::QueryResult, sqlx::Error>
where
    DB: StoreDatabase,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
{
    let (text, arguments) = statement.into_parts::<DB>()?;
    sqlx::query_with(text, arguments).execute(executor).await
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

    #[test]
    fn parameters_are_numbered_in_the_order_of_their_values() {
        let mut statement = SqlStatement::new("SELECT id FROM run WHERE number < $1").bind(7);
        statement.push(" AND status IN (").push_list(["queued", "running"]).push(")");
        assert_eq!(statement.text, "SELECT id FROM run WHERE number < $1 AND status IN ($2, $3)");
        assert_eq!(statement.values.len(), 3);
    }

    #[test]
    fn a_cell_of_another_type_is_an_error() {
        let row = || SqlRow::new(vec![SqlCell::Text("a".into()), SqlCell::Null]);
        let pair = <(String, Option<i64>)>::from_row(row()).unwrap();
        assert_eq!(pair, ("a".to_owned(), None));
        assert!(<(String, i64)>::from_row(row()).is_err());
        assert!(<(String, Option<i64>, i64)>::from_row(row()).is_err());
        assert_eq!(row().take_last::<Option<String>>().unwrap(), None);
    }
}
