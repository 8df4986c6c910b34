//! Appends to event logs within a transaction.
//!
//! The version check comes first, as the condition of the statement that updates the execution row.
//! An item that fails it has written nothing, so that items need no savepoints. An error that only
//! a bug of the caller can cause rejects the whole transaction.

use std::time::Duration;

use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandState, EventId, Tenant, Timestamp};
use noetl_store::command_leases::{HELD_MAX, LeaseGrant, TIMEOUT_GRACE, lease_of};
use noetl_store::{CommandChange, CommandRow, Committed, Malformed, StartAppend, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::append_rows::AppendRows;
use crate::encoded_append::{EncodedAppend, EncodedTimer, rows, stored_seq};
use crate::encoded_events::EncodedEvents;
use crate::error::store_error;
use crate::event_search;
use crate::outbox_writer::OutboxWriter;

/// Statement that deletes one timer.
pub(crate) const DELETE_TIMER: &str = "delete from due where id = ?1";

const ACTION: &str = "append to the event log";

/// Statements of an append, prepared once and looked up once per transaction.
pub(crate) struct Appender<'c> {
    connection: &'c Connection,
    start: CachedStatement<'c>,
    head: CachedStatement<'c>,
    advance: CachedStatement<'c>,
    go_on: CachedStatement<'c>,
    events: AppendRows<'c>,
    command: CachedStatement<'c>,
    move_on: CachedStatement<'c>,
    newest: Option<i64>,
    /// Largest position ever assigned. Rows at the end of the table may have been deleted, so the
    /// table itself doesn't contain it.
    position: i64,
    /// Writer of outbox rows. `None` if the outbox is disabled.
    outgoing: Option<OutboxWriter<'c>>,
    /// Current time by the store's clock, from which leases start.
    now: Timestamp,
}

impl<'c> Appender<'c> {
    /// Creates an appender. `now` is the current time of the store.
    pub(crate) fn new(
        connection: &'c Connection,
        now: Timestamp,
        has_outbox: bool,
    ) -> Result<Self, StoreError> {
        let prepare = |sql| connection.prepare_cached(sql).map_err(failed);
        Ok(Self {
            connection,
            start: prepare(include_str!("../queries/execution_start.sql"))?,
            head: prepare("select newest_event_id, ended_at from execution where id = ?1")?,
            advance: prepare(include_str!("../queries/execution_advance.sql"))?,
            go_on: prepare(include_str!("../queries/execution_go_on.sql"))?,
            events: AppendRows::new(connection).map_err(failed)?,
            command: prepare(include_str!("../queries/command_insert.sql"))?,
            move_on: prepare(include_str!("../queries/command_move.sql"))?,
            newest: None,
            position: last_position(connection).map_err(failed)?,
            outgoing: has_outbox
                .then(|| OutboxWriter::new(connection, now))
                .transpose()
                .map_err(failed)?,
            now,
        })
    }

    /// Writes an item completely, or nothing of it.
    pub(crate) fn append(&mut self, item: &EncodedAppend) -> Result<Committed, StoreError> {
        let (outcome, newest) = match &item.start {
            Some(start) => (self.start(start, item)?, Some(i64::MIN)),
            None => self.advance(item)?,
        };
        if outcome != Committed::Appended {
            return Ok(outcome);
        }
        self.check_ids(item, newest)?;
        self.events.add(&item.events, self.position, newest).map_err(failed)?;
        self.position += rows(item.events.ids.len());
        for change in &item.changes {
            self.change(item, change)?;
        }
        for digest in &item.blobs {
            self.refer(item, digest).map_err(failed)?;
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.add(item).map_err(failed)?;
        }
        self.send(item).map_err(failed)?;
        self.newest = self.newest.max(Some(item.newest));
        Ok(outcome)
    }

    /// Inserts timers, then deletes delivered ones, because an item may deliver its own timer.
    fn send(&mut self, item: &EncodedAppend) -> rusqlite::Result<()> {
        if !item.due.is_empty() {
            let sql = include_str!("../queries/due_insert.sql");
            let mut insert = self.connection.prepare_cached(sql)?;
            for EncodedTimer { row, payload } in &item.due {
                insert.execute(params![
                    row.id.get(),
                    item.row.id.get(),
                    row.kind,
                    row.target.get(),
                    row.at.as_micros(),
                    payload,
                ])?;
            }
        }
        if !item.delivered.is_empty() {
            let mut remove = self.connection.prepare_cached(DELETE_TIMER)?;
            for id in &item.delivered {
                remove.execute([id.get()])?;
            }
        }
        Ok(())
    }

    /// Records the largest event ID and the last position. Must be the last call in the
    /// transaction.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Some(newest) = self.newest else { return Ok(()) };
        raise(self.connection, newest, self.position).map_err(failed)
    }

    fn start(
        &mut self,
        start: &StartAppend,
        item: &EncodedAppend,
    ) -> Result<Committed, StoreError> {
        let row = &item.row;
        let key = start.key.cast_signed();
        let inserted = self.start.execute(params![
            row.id.get(),
            start.tenant.as_str(),
            key,
            row.catalog.get(),
            &*row.path,
            row.playbook_version,
            row.parent.map(|parent| parent.get()),
            row.status.as_str(),
            stored_seq(row.version),
            row.started_at.as_micros(),
            row.updated_at.as_micros(),
            row.ended_at.map(|at| at.as_micros()),
            row.error,
            row.steps_entered,
            row.steps_completed,
            row.steps_failed,
            row.steps_running,
            row.current_step.as_deref(),
            item.last,
            item.newest,
        ]);
        if inserted.map_err(failed)? == 1 {
            return Ok(Committed::Appended);
        }
        let sql = "select start_key = ?2 and tenant_id = ?3 from execution where id = ?1";
        let mut read = self.connection.prepare_cached(sql).map_err(failed)?;
        let same = read.query_row(params![row.id.get(), key, start.tenant.as_str()], |r| r.get(0));
        Ok(if same.map_err(failed)? { Committed::Repeated } else { Committed::Taken })
    }

    /// Updates the execution row. Also returns the largest event ID before the append, or `None` if
    /// it is unknown.
    fn advance(&mut self, item: &EncodedAppend) -> Result<(Committed, Option<i64>), StoreError> {
        let row = &item.row;
        let head = self.head.query_row([row.id.get()], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?.is_some()))
        });
        let (before, has_ended) = head.optional().map_err(failed)?.unwrap_or_default();
        let newest = before.map(|newest| newest.max(item.newest));
        // The first statement updates a row whose status does not change, without touching its
        // indexes. If it doesn't match, the second one decides.
        for statement in [&mut self.go_on, &mut self.advance] {
            let updated = statement.execute(params![
                row.id.get(),
                item.expected,
                row.status.as_str(),
                stored_seq(row.version),
                row.updated_at.as_micros(),
                row.ended_at.map(|at| at.as_micros()),
                row.error,
                row.steps_entered,
                row.steps_completed,
                row.steps_failed,
                row.steps_running,
                row.current_step.as_deref(),
                item.last,
                item.after,
                newest,
            ]);
            if updated.map_err(failed)? == 1 {
                if item.is_end && has_ended {
                    return Err(Malformed::SecondEnd { execution: row.id }.into());
                }
                return Ok((Committed::Appended, before));
            }
        }
        let sql = "select coalesce(max(version), 0) from execution where id = ?1";
        let mut read = self.connection.prepare_cached(sql).map_err(failed)?;
        let found: i64 = read.query_row([row.id.get()], |r| r.get(0)).map_err(failed)?;
        Ok((Committed::Conflict { found: noetl_model::Seq(found.unsigned_abs()) }, before))
    }

    /// Checks that late event IDs are unused. Others are above all IDs of the log.
    fn check_ids(&self, item: &EncodedAppend, newest: Option<i64>) -> Result<(), StoreError> {
        for event in item.events.late(newest).map(EventId::new) {
            let execution = item.row.id;
            let ascending = event_search::find_ascending(self.connection, execution, event);
            let late = event_search::has_late_id(self.connection, execution, event);
            if ascending.map_err(failed)?.is_some() || late.map_err(failed)? {
                return Err(Malformed::EventTaken { execution, event }.into());
            }
        }
        Ok(())
    }

    /// Inserts a blob reference. Runs after the update of the execution row, which has its tenant.
    fn refer(&self, item: &EncodedAppend, digest: &str) -> rusqlite::Result<()> {
        let sql = include_str!("../queries/blob_ref_insert.sql");
        self.connection.prepare_cached(sql)?.execute((item.row.id.get(), digest))?;
        Ok(())
    }

    fn change(&mut self, item: &EncodedAppend, change: &CommandChange) -> Result<(), StoreError> {
        match change {
            CommandChange::Insert(row) => {
                let lease = lease_of(&item.leases, row.id, row.state, row.worker.as_deref());
                self.insert_command(row, lease)
            }
            CommandChange::Move { id, state, worker, ended_at } => {
                let lease = lease_of(&item.leases, *id, *state, worker.as_deref());
                let moved = self.move_on.execute(params![
                    id.get(),
                    CommandState::as_str(*state),
                    worker.as_deref(),
                    ended_at.map(|at| at.as_micros()),
                    state.stage(),
                    lease.map(|lease| self.now.plus(lease.lasts).as_micros()),
                    self.now.as_micros(),
                    micros(HELD_MAX),
                    micros(TIMEOUT_GRACE),
                    lease.is_some_and(|lease| lease.is_named),
                ]);
                moved.map(|_| ()).map_err(failed)
            }
            CommandChange::Release { id } => {
                let sql = "update command set lease_until = null, lease_max = null where id = ?1";
                let mut release = self.connection.prepare_cached(sql).map_err(failed)?;
                release.execute([id.get()]).map(|_| ()).map_err(failed)
            }
        }
    }

    fn insert_command(
        &mut self,
        row: &CommandRow,
        lease: Option<LeaseGrant>,
    ) -> Result<(), StoreError> {
        let lease = lease.map(|lease| lease.holding(None, row.limit_ms, self.now));
        let inserted = self.command.execute(params![
            row.id.get(),
            row.execution.get(),
            stored_seq(row.issued),
            &*row.step,
            &*row.tool,
            row.attempt,
            &*row.pool,
            row.limit_ms,
            row.state.as_str(),
            row.worker.as_deref(),
            row.issued_at.as_micros(),
            row.ended_at.map(|at| at.as_micros()),
            lease.map(|lease| lease.until.as_micros()),
            lease.and_then(|lease| lease.at_most).map(|at| at.as_micros()),
        ]);
        match inserted.map_err(failed)? {
            0 => Err(Malformed::CommandTaken { command: row.id }.into()),
            _ => Ok(()),
        }
    }
}

/// Appends a row to the log of a subscription, and to the outbox if `outbox` has the current time.
///
/// The caller assigns the sequence number.
pub(crate) fn append_row(
    connection: &Connection,
    (tenant, catalog): (&Tenant, CatalogId),
    row: &EventRow,
    outbox: Option<Timestamp>,
) -> rusqlite::Result<()> {
    let position = last_position(connection)?;
    if let Some(now) = outbox {
        let previous = noetl_model::Seq(row.seq.0.saturating_sub(1));
        let previous = event_search::id_at(connection, row.execution_id, previous)?;
        OutboxWriter::new(connection, now)?.add_row(tenant, catalog, previous, row)?;
    }
    let events = EncodedEvents::encode(std::slice::from_ref(row));
    AppendRows::new(connection)?.add(&events, position, None)?;
    raise(connection, row.event_id.get(), position + 1)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// Records the largest event ID and the last position of the log.
pub(crate) fn raise(connection: &Connection, newest: i64, position: i64) -> rusqlite::Result<()> {
    let sql = include_str!("../queries/log_head_raise.sql");
    connection.prepare_cached(sql)?.execute([newest, position])?;
    Ok(())
}

pub(crate) fn last_position(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "select coalesce(max(last_position), 0) from log_head";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

fn failed(error: rusqlite::Error) -> StoreError {
    store_error(ACTION, error)
}
