//! Implements [`ImportStore`]: one transaction per call, with a few statements regardless of the number
//! of rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Seq, Tenant};
use noetl_store::outbox::{CODEC, Envelope, subject};
use noetl_store::{Import, ImportOutcome, ImportStore, ImportedExecution, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::PostgresStore;
use crate::arrays::{plain, stored_seq};
use crate::column::{PgTimestamp, PgTimestamptz};
use crate::error::{StatementOutcome, fate, store_error, write_error};
use crate::event_rows::found_ids;
use crate::executions::execution;

mod appends;

use self::appends::ImportAppends;

const ACTION: &str = "import rows";

/// Maximum number of attempts of an import that the server rolls back because of conflicts.
const TRIES_MAX: usize = 10;

#[async_trait]
impl ImportStore for PostgresStore {
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut tries = 1;
        loop {
            let mut transaction = self.in_order().begin(ACTION).await?;
            let imported = Importer::new(self, &mut transaction).import(&rows).await;
            match imported {
                Ok(outcomes) => match transaction.commit().await {
                    Ok(()) => return Ok(outcomes),
                    Err(error) if fate(&error) == StatementOutcome::Full => {
                        return Err(store_error(ACTION, error));
                    }
                    Err(error) => return Err(StoreError::Unknown(error.into())),
                },
                Err(error) if fate(&error) == StatementOutcome::Retry && tries < TRIES_MAX => {
                    tries += 1
                }
                // Nothing was committed, even if the connection was lost.
                Err(error) if fate(&error) == StatementOutcome::Unknown => {
                    return Err(store_error(ACTION, error));
                }
                Err(error) if fate(&error) == StatementOutcome::Data => {
                    return Err(StoreError::Refused(error.into()));
                }
                Err(error) => return Err(write_error(ACTION, error)),
            }
        }
    }

    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let ids: Vec<i64> = executions.iter().map(|id| id.get()).collect();
        let sql = "select execution_id from noetl.execution \
                   where execution_id = any ($1) and origin = 'imported'";
        let found = self.list(
            "look for imported executions",
            || sqlx::query(sql).bind(ids.clone()),
            |row| Ok(ExecutionId::new(row.try_get(0)?)),
        );
        Ok(found.await?.into_iter().collect())
    }
}

/// State of an execution before the import, updated as rows are added.
struct ImportTarget {
    tenant: Tenant,
    is_imported: bool,
    listed: ImportedExecution,
    last: Option<EventId>,
    /// Largest ID of the log.
    newest: Option<EventId>,
    is_unplaced: bool,
    /// Whether this import assigned sequence numbers to its existing rows.
    is_placed: bool,
}

struct Importer<'a> {
    store: &'a PostgresStore,
    connection: &'a mut PgConnection,
}

impl<'a> Importer<'a> {
    fn new(store: &'a PostgresStore, connection: &'a mut PgConnection) -> Self {
        Self { store, connection }
    }

    /// Builds a statement, which is unnamed behind a transaction-pooling proxy.
    fn query<'q>(&self, sql: &'static str) -> crate::client::Statement<'q> {
        sqlx::query(sql).persistent(!self.store.how().speaker.is_pooled)
    }

    async fn import(mut self, rows: &[Import]) -> Result<Vec<ImportOutcome>, sqlx::Error> {
        let mut known = self.open(rows).await?;
        let mut seen = self.duplicates(rows, &known).await?;
        let mut kept: Vec<(EventRow, Option<EventId>)> = Vec::new();
        let mut outcomes = Vec::with_capacity(rows.len());
        for import in rows {
            let outcome = match known.get_mut(&import.execution) {
                None => ImportOutcome::StartedHere,
                Some(known) if !known.is_imported => ImportOutcome::StartedHere,
                Some(known) if known.tenant != import.tenant => ImportOutcome::Foreign,
                Some(_) if !seen.insert((import.execution, import.event)) => {
                    ImportOutcome::Duplicate
                }
                Some(known) => {
                    let seq = known.listed.add(import);
                    let row = EventRow::from(&import.event(seq));
                    kept.push((row, known.last.replace(import.event)));
                    ImportOutcome::Kept
                }
            };
            outcomes.push(outcome);
        }
        if !kept.is_empty() {
            self.write(known, kept).await?;
        } else if known.values().any(|known| known.is_placed) {
            self.close(&known).await?;
        }
        Ok(outcomes)
    }

    /// Creates missing executions and locks all of them until the transaction ends.
    async fn open(
        &mut self,
        rows: &[Import],
    ) -> Result<HashMap<ExecutionId, ImportTarget>, sqlx::Error> {
        let mut first: BTreeMap<ExecutionId, &Import> = BTreeMap::new();
        for import in rows {
            first.entry(import.execution).or_insert(import);
        }
        let ids: Vec<i64> = first.keys().map(|id| id.get()).collect();
        let tenants: Vec<&str> = first.values().map(|import| import.tenant.as_str()).collect();
        let times: Vec<PgTimestamptz> =
            first.values().map(|import| PgTimestamptz(import.at)).collect();
        let open = self.query(include_str!("../queries/import_open.sql"));
        open.bind(&ids).bind(tenants).bind(times).execute(&mut *self.connection).await?;
        let lock = self.query(include_str!("../queries/import_lock.sql"));
        let found = lock.bind(&ids).fetch_all(&mut *self.connection).await?;
        let mut known = HashMap::with_capacity(found.len());
        for row in &found {
            let mut one = decode(row)?;
            let id = one.listed.row.id;
            if one.is_imported && (one.is_unplaced || one.listed.row.version == Seq::START) {
                one.listed.row.version = self.next_seq(id).await?;
                one.is_placed = one.listed.row.version > Seq::START;
            }
            known.insert(id, one);
        }
        Ok(known)
    }

    /// Assigns sequence numbers to the rows of an adopted log, and returns the last one.
    async fn next_seq(&mut self, execution: ExecutionId) -> Result<Seq, sqlx::Error> {
        let place = self.query("select noetl.place_imported_1($1)");
        place.bind(execution.get()).execute(&mut *self.connection).await?;
        let sql = "select coalesce(max(seq), 0) from noetl.event_row where execution_id = $1";
        let last = self.query(sql).bind(execution.get()).fetch_one(&mut *self.connection).await?;
        Ok(Seq(last.try_get::<i64, _>(0)?.unsigned_abs()))
    }

    /// Returns the rows that their logs already contain. A log has no row with an ID above its largest.
    async fn duplicates(
        &mut self,
        rows: &[Import],
        known: &HashMap<ExecutionId, ImportTarget>,
    ) -> Result<HashSet<(ExecutionId, EventId)>, sqlx::Error> {
        let is_possible = |row: &&Import| {
            let newest = known.get(&row.execution).and_then(|known| known.newest);
            newest.is_some_and(|newest| row.event <= newest)
        };
        let asked = || rows.iter().filter(is_possible);
        let executions: Vec<i64> = asked().map(|row| row.execution.get()).collect();
        if executions.is_empty() {
            return Ok(HashSet::new());
        }
        let events: Vec<i64> = asked().map(|row| row.event.get()).collect();
        let sql = include_str!("../queries/import_known.sql");
        let find = self.query(sql).bind(executions).bind(events);
        let mut found = HashSet::new();
        for row in find.fetch_all(&mut *self.connection).await? {
            let execution = ExecutionId::new(row.try_get(6)?);
            found.extend(found_ids(&row, execution)?.into_iter().map(|event| (execution, event)));
        }
        Ok(found)
    }

    async fn write(
        &mut self,
        mut known: HashMap<ExecutionId, ImportTarget>,
        kept: Vec<(EventRow, Option<EventId>)>,
    ) -> Result<(), sqlx::Error> {
        if self.store.how().has_outbox {
            self.send(&known, &kept).await?;
        }
        let count = i64::try_from(kept.len()).unwrap_or(i64::MAX);
        let kept = kept.into_iter().map(|(row, _)| row).collect();
        let ImportAppends { rows, entries } = ImportAppends::encode(kept, &mut known);
        self.close(&known).await?;
        if !entries.is_empty() {
            let insert = self.query(include_str!("../queries/import_lookups.sql"));
            insert
                .bind(entries.iter().map(|entry| entry.execution).collect::<Vec<_>>())
                .bind(entries.iter().map(|entry| entry.id).collect::<Vec<_>>())
                .bind(entries.iter().map(|entry| entry.is_key).collect::<Vec<_>>())
                .bind(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>())
                .execute(&mut *self.connection)
                .await?;
        }
        let lane = self.store.how().speaker.lane;
        let sql = "update noetl.lane set position = position + $2 where lane = $1 \
                   returning position - $2";
        let drawn = self.query(sql).bind(lane).bind(count).fetch_one(&mut *self.connection).await?;
        let base: i64 = drawn.try_get(0)?;
        macro_rules! columns {
            ($query:expr, |$head:ident, $row:ident| $($column:expr),+ $(,)?) => {
                $query$(.bind(rows.iter().map(|$row| {
                    let $head = &$row.0.head;
                    // Each column uses only some of these two values.
                    let _ = $head;
                    $column
                }).collect::<Vec<_>>()))+
            };
        }
        let insert = self.query(include_str!("../queries/import_appends.sql"));
        let insert = columns!(
            insert,
            |head, row| head.execution.get(),
            stored_seq(head.first_seq),
            stored_seq(head.last_seq),
            head.last_event.get(),
            row.1.map(EventId::get),
            PgTimestamp(head.created_at),
            row.0.body.as_str(),
        );
        insert.bind(lane).bind(base).execute(&mut *self.connection).await?;
        Ok(())
    }

    /// Writes the outbox rows. Runs before the update of the lane, because other writers wait for
    /// that row.
    async fn send(
        &mut self,
        known: &HashMap<ExecutionId, ImportTarget>,
        kept: &[(EventRow, Option<EventId>)],
    ) -> Result<(), sqlx::Error> {
        let mut bodies = Vec::with_capacity(kept.len());
        for (row, previous) in kept {
            let of = &known[&row.execution_id];
            let (tenant, catalog) = (&of.tenant, of.listed.row.catalog);
            let envelope = Envelope { tenant, catalog, previous: *previous, row };
            bodies.push(envelope.payload().map_err(|error| sqlx::Error::Encode(error.into()))?);
        }
        let rows = || kept.iter().map(|(row, _)| row);
        let tenant = |row: &EventRow| known[&row.execution_id].tenant.as_str();
        let insert = self.query(include_str!("../queries/import_outbox.sql"));
        insert
            .bind(rows().map(|row| row.execution_id.get()).collect::<Vec<_>>())
            .bind(rows().map(|row| row.event_id.get()).collect::<Vec<_>>())
            .bind(rows().map(tenant).collect::<Vec<_>>())
            .bind(rows().map(|row| subject(row.event_type.as_deref())).collect::<Vec<_>>())
            .bind(bodies)
            .bind(CODEC)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    async fn close(
        &mut self,
        known: &HashMap<ExecutionId, ImportTarget>,
    ) -> Result<(), sqlx::Error> {
        let ours = || known.values().filter(|known| known.is_imported);
        macro_rules! columns {
            ($query:expr, |$known:ident, $row:ident| $($column:expr),+ $(,)?) => {
                $query$(.bind(ours().map(|$known| {
                    let $row = &$known.listed.row;
                    // Each column uses only some of these two values.
                    let _ = &$row;
                    $column
                }).collect::<Vec<_>>()))+
            };
        }
        let close = self.query(include_str!("../queries/import_close.sql"));
        let close = columns!(
            close,
            |known, row| row.id.get(),
            row.catalog.get(),
            plain(&row.path),
            row.path.to_lowercase(),
            row.parent.map(|parent| parent.get()),
            row.status.as_str(),
            stored_seq(row.version),
            PgTimestamptz(row.started_at),
            PgTimestamptz(row.updated_at),
            row.ended_at.map(PgTimestamptz),
            row.error.as_deref().map(plain),
            i64::from(row.steps_entered),
            i64::from(row.steps_completed),
            i64::from(row.steps_failed),
            row.current_step.as_deref().map(plain),
            known.last.map_or(0, EventId::get),
            known.listed.end.map(EventId::get),
            known.newest.map(EventId::get),
        );
        close.execute(&mut *self.connection).await?;
        Ok(())
    }
}

fn decode(row: &PgRow) -> Result<ImportTarget, sqlx::Error> {
    Ok(ImportTarget {
        tenant: Tenant::new(row.try_get::<&str, _>(16)?),
        is_imported: row.try_get::<&str, _>(17)? == "imported",
        listed: ImportedExecution {
            row: execution(row)?,
            end: row.try_get::<Option<i64>, _>(18)?.map(EventId::new),
        },
        last: row.try_get::<Option<i64>, _>(19)?.map(EventId::new),
        is_unplaced: row.try_get(20)?,
        newest: row.try_get::<Option<i64>, _>(21)?.map(EventId::new),
        is_placed: false,
    })
}
