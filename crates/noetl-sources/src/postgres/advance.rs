//! Source for an append-only table, with its read position stored in a separate table.
//!
//! Keys are assigned in order, but rows become visible in any order: a transaction with a smaller
//! key may commit after one with a larger key. The source therefore reads up to a key only after
//! every transaction that was writing to the table when the key was seen has ended. It blocks no
//! writer.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use noetl_tools::NotifyHandling;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::{Client, Statement};

use super::columns::Table;
use super::rows::{self, FetchedRow};
use super::table::{COUNTED_MAX, PollSchedule};
use super::{TableQuery, asked, connect, quoted};
use crate::ack_tracker::AckTracker;
use crate::source::{Delivery, DeliveryAck, Message, Source, SourceError, name_of, text};

const POSITIONS: &str = "noetl_subscription_position";

/// Nominal ack deadline. This source enforces none.
const ACK_WAIT: Duration = Duration::from_secs(3600);

/// Selects the transactions that hold a write lock on the table.
const WRITERS: &str = "select distinct virtualtransaction from pg_locks where locktype = 'relation' \
    and relation = to_regclass($1)::oid and granted and pid <> pg_backend_pid() and mode in \
    ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') \
    and database = (select oid from pg_database where datname = current_database())";

pub(super) struct AdvanceSource {
    table: String,
    reader: Mutex<CursorReader>,
    committer: Arc<CursorCommitter>,
    look: PollSchedule,
}

struct CursorReader {
    client: Client,
    /// Quoted name of the table.
    name: String,
    newest: Statement,
    read: Statement,
    writers: Statement,
    /// Key of the last delivered row.
    at: Option<String>,
    /// Key up to which rows may be read, if known.
    bound: Option<String>,
    /// Candidate for `bound`, with the transactions that must end first.
    awaited: Option<(String, HashSet<String>)>,
    count: u64,
}

struct CursorCommitter {
    client: Client,
    advance: Statement,
    waiting: Statement,
    name: String,
    /// Key up to which every row is acked.
    passed: Shared<Option<String>>,
    ledger: AckTracker<String, Message>,
}

impl AdvanceSource {
    pub(super) async fn open(wanted: TableQuery<'_>) -> Result<Self, SourceError> {
        let settings = wanted.settings;
        let look = PollSchedule::new(wanted.poll);
        let client = look.connect(&wanted).await?;
        let table = Table::read(&client, settings, wanted.table).await?;
        let what = format!("table '{}'", wanted.table);
        let positions = text(settings, "position_table")?.unwrap_or(POSITIONS);
        let positions = positions.split('.').map(quoted).collect::<Vec<_>>().join(".");
        let speaker = connect(settings, NotifyHandling::Ignored).await?;
        make(&speaker, &positions).await?;
        let own = text(settings, "consumer")?;
        let name = own.map_or_else(|| name_of(wanted.path), str::to_owned);
        let select = format!("select position from {positions} where name = $1");
        let row = asked("the position is not read", speaker.query_opt(&select, &[&name])).await?;
        let at: Option<String> = row.map(|row| row.get(0));

        let (of, key, condition) = (&table.name, &table.key, &table.condition);
        let (first, second) = (table.parameter(1), table.parameter(2));
        let newest = format!(
            "select max({key})::text from {of} t where ($1::text is null or {key} > {first}) and {condition}"
        );
        let read = format!(
            "select {} from {of} t where ($1::text is null or {key} > {first}) and {key} <= {second} \
             and {condition} order by {key} limit $3",
            table.message
        );
        // The position only advances: a slow consumer must not move it back behind later reads.
        let kind = &table.key_type;
        let advance = format!(
            "insert into {positions} as p (name, position, moved_at) values ($1, $2, now()) \
             on conflict (name) do update set position = excluded.position, moved_at = now() \
             where p.position::{kind} < excluded.position::{kind}"
        );
        let waiting = format!(
            "select count(*) from (select 1 from {of} t where ($1::text is null or {key} > {first}) \
             and {condition} limit {COUNTED_MAX}) c"
        );
        let committer = CursorCommitter {
            advance: asked(&what, speaker.prepare(&advance)).await?,
            waiting: asked(&what, speaker.prepare(&waiting)).await?,
            client: speaker,
            name,
            passed: Shared::new(at.clone()),
            ledger: AckTracker::default(),
        };
        let reader = CursorReader {
            newest: asked(&what, client.prepare(&newest)).await?,
            read: asked(&what, client.prepare(&read)).await?,
            writers: asked(&what, client.prepare(WRITERS)).await?,
            client,
            name: table.name,
            at,
            bound: None,
            awaited: None,
            count: 0,
        };
        Ok(Self {
            table: wanted.table.to_owned(),
            reader: Mutex::new(reader),
            committer: Arc::new(committer),
            look,
        })
    }

    fn delivery(&self, place: u64, message: Message) -> Delivery {
        let is_answered = AtomicBool::new(false);
        let handle = CursorAck { place, committer: self.committer.clone(), is_answered };
        Delivery::new(message, handle)
    }
}

/// Creates the table of positions if it doesn't exist. A user without the privilege must create it
/// beforehand.
async fn make(client: &Client, positions: &str) -> Result<(), SourceError> {
    if is_there(client, positions).await? {
        return Ok(());
    }
    let create = format!(
        "create table if not exists {positions} (name text primary key, position text not null, \
         moved_at timestamptz not null)"
    );
    match asked("the table of positions", client.batch_execute(&create)).await {
        // Another process may have created it concurrently.
        Err(_) if is_there(client, positions).await? => Ok(()),
        made => made,
    }
}

async fn is_there(client: &Client, table: &str) -> Result<bool, SourceError> {
    let look = "select to_regclass($1) is not null";
    let row = asked("the table of positions", client.query_one(look, &[&table])).await?;
    Ok(row.get(0))
}

impl CursorReader {
    /// Determines the key up to which rows may be read. Returns `false` if there are no new rows,
    /// or if a transaction that may add smaller keys is still writing.
    async fn bounded(&mut self) -> Result<bool, tokio_postgres::Error> {
        if self.bound.is_some() {
            return Ok(true);
        }
        if self.awaited.is_none() {
            let row = self.client.query_one(&self.newest, &[&self.at]).await?;
            let Some(newest) = row.get::<_, Option<String>>(0) else { return Ok(false) };
            // The order matters: a transaction that took a smaller key before is listed or has
            // ended.
            self.awaited = Some((newest, self.writers().await?));
        }
        let Some((newest, awaited)) = &self.awaited else { return Ok(false) };
        if !awaited.is_empty() && !self.writers().await?.is_disjoint(awaited) {
            return Ok(false);
        }
        self.bound = Some(newest.clone());
        self.awaited = None;
        Ok(true)
    }

    async fn writers(&self) -> Result<HashSet<String>, tokio_postgres::Error> {
        let rows = self.client.query(&self.writers, &[&self.name]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    async fn next(
        &mut self,
        most: usize,
        table: &str,
    ) -> Result<Vec<FetchedRow>, tokio_postgres::Error> {
        if !self.bounded().await? {
            return Ok(Vec::new());
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let transaction = self.client.transaction().await?;
        let rows =
            rows::read(&transaction, &self.read, &[&self.at, &self.bound, &most], table).await?;
        transaction.commit().await?;
        match rows.last() {
            Some(last) => {
                self.at = Some(last.key.clone());
                if self.at == self.bound {
                    self.bound = None;
                }
            }
            // The rows were deleted meanwhile.
            None => {
                self.at = self.bound.take();
            }
        }
        Ok(rows)
    }
}

#[async_trait]
impl Source for AdvanceSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut reader = self.reader.lock().await;
        let due = self.committer.ledger.due(Instant::now(), most);
        if !due.is_empty() {
            return Ok(due
                .into_iter()
                .map(|(place, message)| self.delivery(place, message))
                .collect());
        }
        if !self.look.wait_due(wait).await {
            return Ok(Vec::new());
        }
        let rows = asked("rows are not read", reader.next(most.max(1), &self.table)).await?;
        self.look.record_poll(!rows.is_empty());
        let delivered = rows.into_iter().map(|FetchedRow { key, message }| {
            reader.count += 1;
            self.committer.ledger.begin(reader.count, key, message.clone());
            self.delivery(reader.count, message)
        });
        Ok(delivered.collect())
    }

    fn ack_wait(&self) -> Duration {
        ACK_WAIT
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        let committer = &self.committer;
        let passed = committer.passed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let row = asked(
            "rows are not counted",
            committer.client.query_one(&committer.waiting, &[&passed]),
        )
        .await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).ok())
    }

    async fn close(&self) {}
}

struct CursorAck {
    place: u64,
    committer: Arc<CursorCommitter>,
    is_answered: AtomicBool,
}

#[async_trait]
impl DeliveryAck for CursorAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        let Some((_, key)) = self.committer.ledger.done(self.place) else { return Ok(()) };
        let committer = &self.committer;
        asked(
            "not acknowledged",
            committer.client.execute(&committer.advance, &[&committer.name, &key]),
        )
        .await?;
        *committer.passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        Ok(())
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        self.committer.ledger.schedule_redelivery(self.place, after);
        Ok(())
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

impl Drop for CursorAck {
    fn drop(&mut self) {
        if !self.is_answered.load(Ordering::Acquire) {
            self.committer.ledger.schedule_redelivery(self.place, Duration::ZERO);
        }
    }
}
