//! Inserts event rows, several per statement to amortize the cost of a statement.

use std::sync::LazyLock;

use noetl_model::row::EventRow;
use rusqlite::{CachedStatement, Connection, ToSql};

use crate::encoded_append::{rows, stored_seq};

/// Maximum number of rows per statement. A step has six events.
const ROWS_MAX: usize = 8;

/// Number of values of a row, in the order of the columns.
const COLUMNS: usize = 22;

/// Statements for one row, two rows, and so on, each prepared on first use.
pub(crate) struct EventRows<'c> {
    connection: &'c Connection,
    statements: [Option<CachedStatement<'c>>; ROWS_MAX],
}

impl<'c> EventRows<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, statements: Default::default() }
    }

    /// Inserts the rows of an append after `position`. `is_late` means that their IDs may be
    /// smaller than that of an earlier row.
    pub(crate) fn add(
        &mut self,
        events: &[EventRow],
        mut position: i64,
        is_late: bool,
    ) -> rusqlite::Result<()> {
        // Only the first row contains the number of rows in the append.
        let mut append_rows = Some(rows(events.len()));
        for some in events.chunks(ROWS_MAX) {
            let insert = self.statement(some.len())?;
            // Values that are not bound are null.
            insert.clear_bindings();
            for (row, event) in some.iter().enumerate() {
                position += 1;
                let placed = Placed { event, position, append_rows: append_rows.take(), is_late };
                placed.bind(insert, row * COLUMNS)?;
            }
            insert.raw_execute()?;
        }
        Ok(())
    }

    fn statement(&mut self, count: usize) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let statement = &mut self.statements[count - 1];
        if statement.is_none() {
            *statement = Some(self.connection.prepare_cached(&SQL[count - 1])?);
        }
        Ok(statement.as_mut().expect("it was prepared"))
    }
}

/// SQL texts for one row, two rows, and so on.
static SQL: LazyLock<[String; ROWS_MAX]> =
    LazyLock::new(|| std::array::from_fn(|before| sql(before + 1)));

fn sql(count: usize) -> String {
    let values = format!("({})", vec!["?"; COLUMNS].join(", "));
    format!("{}{}", include_str!("../queries/event_insert.sql"), vec![values; count].join(", "))
}

/// An event with the columns that locate it in its log.
struct Placed<'e> {
    event: &'e EventRow,
    position: i64,
    append_rows: Option<i64>,
    is_late: bool,
}

impl Placed<'_> {
    fn bind(&self, insert: &mut CachedStatement<'_>, before: usize) -> rusqlite::Result<()> {
        let row = self.event;
        let mut values = InsertValues { insert, at: before };
        values.next(row.execution_id.get())?;
        values.next(stored_seq(row.seq))?;
        values.next(row.event_id.get())?;
        values.next(row.created_at.as_micros())?;
        values.next(row.origin.as_str())?;
        values.any(row.event_type.as_deref())?;
        values.any(row.node_name.as_deref())?;
        values.any(row.node_type.as_deref())?;
        values.any(row.status.as_deref())?;
        values.any(row.command_id.map(|id| id.get()))?;
        values.any(row.parent_execution_id.map(|id| id.get()))?;
        values.any(row.worker_id.as_deref())?;
        values.any(row.meta.as_deref())?;
        values.any(row.error.as_deref())?;
        values.any(row.context.as_deref())?;
        values.any(row.result.as_deref())?;
        values.any(row.duration)?;
        values.any(row.idempotency_key)?;
        values.next(self.position)?;
        values.any(row.more.as_deref())?;
        values.any(self.append_rows)?;
        values.any(self.is_late.then_some(1))
    }
}

/// Binds the values of a statement in order.
struct InsertValues<'s, 'c> {
    insert: &'s mut CachedStatement<'c>,
    at: usize,
}

impl InsertValues<'_, '_> {
    fn next(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.any(Some(value))
    }

    fn any(&mut self, value: Option<impl ToSql>) -> rusqlite::Result<()> {
        self.at += 1;
        match value {
            Some(value) => self.insert.raw_bind_parameter(self.at, value),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;
    use rusqlite::types::Null;

    use super::{COLUMNS, ROWS_MAX, sql};
    use crate::{connection, migrate};

    #[test]
    fn adding_rows_takes_no_table_of_its_own() {
        let mut opened = connection::open(None).expect("a database");
        migrate::migrate(&mut opened, 0).expect("its schema");
        for count in 1..=ROWS_MAX {
            let mut plan = opened.prepare(&format!("explain {}", sql(count))).expect("a plan");
            let nothing = params_from_iter(std::iter::repeat_n(Null, count * COLUMNS));
            let read = plan.query_map(nothing, |row| row.get::<_, String>(1));
            let parts: Result<Vec<_>, _> = read.expect("a plan").collect();
            let parts = parts.expect("its parts");
            assert!(parts.iter().any(|part| part == "OpenWrite"), "{parts:?}");
            assert!(!parts.iter().any(|part| part == "OpenEphemeral"), "{count} rows: {parts:?}");
        }
    }
}
