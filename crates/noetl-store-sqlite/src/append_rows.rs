//! Inserts appends, with entries for events that no search over appends finds.

use std::ops::RangeInclusive;

use noetl_model::row::body::AppendRow;
use rusqlite::{CachedStatement, Connection, params};

use crate::encoded_append::{rows, stored_seq};
use crate::encoded_events::{EncodedEvents, is_late};

/// Statements that insert appends.
pub(crate) struct AppendRows<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
}

impl<'c> AppendRows<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        let insert = connection.prepare_cached(include_str!("../queries/append_insert.sql"))?;
        Ok(Self { connection, insert })
    }

    /// Inserts the events of a log after `position`. `newest` is the largest event ID of the log;
    /// if it is unknown, each event gets an entry in `event_lookup`.
    pub(crate) fn add(
        &mut self,
        events: &EncodedEvents,
        mut position: i64,
        mut newest: Option<i64>,
    ) -> rusqlite::Result<()> {
        let mut ids = events.ids.iter();
        for AppendRow { head, body } in &events.appends {
            let (first, last) = (stored_seq(head.first_seq), stored_seq(head.last_seq));
            for (seq, ids) in (first..=last).zip(&mut ids) {
                if is_late(&mut newest, ids.id) {
                    self.locate(head.execution.get(), (ids.id, false), seq)?;
                }
                if let Some(key) = ids.key {
                    self.locate(head.execution.get(), (key, true), seq)?;
                }
            }
            position += length(first..=last);
            self.insert.execute(params![
                position,
                head.execution.get(),
                first,
                last,
                head.last_event.get(),
                newest.filter(|newest| *newest != head.last_event.get()),
                head.created_at.as_micros(),
                body,
            ])?;
        }
        Ok(())
    }

    /// Adds an entry. Of several events with the same key, the first keeps it; two with the same ID
    /// are an error.
    fn locate(&self, execution: i64, (id, is_key): (i64, bool), seq: i64) -> rusqlite::Result<()> {
        let sql = match is_key {
            false => {
                "insert into event_lookup (execution_id, id, is_key, seq) values (?1, ?2, ?3, ?4)"
            }
            true => {
                "insert or ignore into event_lookup (execution_id, id, is_key, seq) \
                 values (?1, ?2, ?3, ?4)"
            }
        };
        self.connection.prepare_cached(sql)?.execute((execution, id, is_key, seq))?;
        Ok(())
    }
}

fn length(range: RangeInclusive<i64>) -> i64 {
    rows(range.count())
}
