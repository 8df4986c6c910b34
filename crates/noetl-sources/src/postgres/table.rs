//! Source for a table whose rows are deleted or marked when they are acked.
//!
//! Without `claim`, this process tracks the rows in flight; the holder of the subscription's lease
//! is their only consumer. With `claim`, a column contains the time until which a row is claimed.
//! Rows are claimed with SKIP LOCKED, and rows whose claim expires are redelivered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use noetl_tools::NotifyHandling;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_postgres::{Client, Statement};

use super::columns::Table;
use super::rows::{self, FetchedRow};
use super::{TableQuery, asked, connect, quoted};
use crate::source::{Delivery, DeliveryAck, Source, SourceError, number, text};

/// Default duration of a claim in seconds.
const CLAIM_DEFAULT_SECS: u64 = 30;

/// Nominal ack deadline without `claim`, when no other consumer could receive the row.
const ACK_WAIT: Duration = Duration::from_secs(3600);

/// Upper bound for counting the backlog. Counting further would cost more than it is worth.
pub(super) const COUNTED_MAX: i64 = 100_000;

pub(super) struct TableSource {
    table: String,
    reader: Mutex<TableReader>,
    acker: Arc<RowAcker>,
    look: PollSchedule,
    claim: Option<Duration>,
}

struct TableReader {
    client: Client,
    read: Statement,
    claim: Option<Statement>,
}

/// Acks rows over a separate connection, so that acks don't wait for reads.
struct RowAcker {
    client: Client,
    done: Statement,
    /// With `claim`: sets the time until which a row is claimed.
    hold: Option<Statement>,
    count: Statement,
    /// Without `claim`: rows in flight (`None`) and the redelivery time of nacked rows.
    in_flight: Shared<HashMap<String, Option<Instant>>>,
}

impl TableSource {
    pub(super) async fn open(wanted: TableQuery<'_>, marks: bool) -> Result<Self, SourceError> {
        let settings = wanted.settings;
        let look = PollSchedule::new(wanted.poll);
        let client = look.connect(&wanted).await?;
        let table = Table::read(&client, settings, wanted.table).await?;
        let (name, key) = (&table.name, &table.key);
        let one = table.parameter(1);
        let mut open = table.condition.clone();
        let done = match marks {
            false => format!("delete from {name} t where {key} = {one}"),
            true => {
                let column = text(settings, "done")?;
                let missing = || SourceError::Settings("`ack: update` needs `done`".to_owned());
                let (column, is_open, value) = table.done(column.ok_or_else(missing)?)?;
                open = format!("{open} and {is_open}");
                format!("update {name} t set {column} = {value} where {key} = {one}")
            }
        };
        let count = format!(
            "select count(*) from (select 1 from {name} t where {open} limit {COUNTED_MAX}) c"
        );
        let (message, order) = (&table.message, table.order(settings)?);
        let claim = match text(settings, "claim")? {
            Some(column) => Some(table.time("claim", column)?),
            None => None,
        };
        let read = match &claim {
            Some(column) => format!(
                "select {message} from {name} t where {open} and (t.{column} is null or t.{column} < now()) \
                 order by {order} limit $1 for update skip locked"
            ),
            None => format!(
                "select {message} from {name} t where {open} and {key} <> all ({}) \
                 order by {order} limit $1",
                table.parameters(2)
            ),
        };
        let what = format!("table '{}'", wanted.table);
        let speaker = connect(settings, NotifyHandling::Ignored).await?;
        let until = "now() + $2::float8 * interval '1 second'";
        let hold = match &claim {
            Some(column) => {
                let hold = format!("update {name} t set {column} = {until} where {key} = {one}");
                Some(asked(&what, speaker.prepare(&hold)).await?)
            }
            None => None,
        };
        let claiming = match &claim {
            Some(column) => {
                let keys = table.parameters(1);
                let all =
                    format!("update {name} t set {column} = {until} where {key} = any ({keys})");
                Some(asked(&what, client.prepare(&all)).await?)
            }
            None => None,
        };
        let secs = number(settings, "claim_secs")?.unwrap_or(CLAIM_DEFAULT_SECS);
        let acker = RowAcker {
            done: asked(&what, speaker.prepare(&done)).await?,
            count: asked(&what, speaker.prepare(&count)).await?,
            hold,
            client: speaker,
            in_flight: Shared::default(),
        };
        let read = asked(&what, client.prepare(&read)).await?;
        Ok(Self {
            table: wanted.table.to_owned(),
            reader: Mutex::new(TableReader { client, read, claim: claiming }),
            acker: Arc::new(acker),
            look,
            claim: claim.map(|_| Duration::from_secs(secs)),
        })
    }

    async fn read(
        &self,
        reader: &mut TableReader,
        most: usize,
    ) -> Result<Vec<FetchedRow>, SourceError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let reading = async {
            let transaction = reader.client.transaction().await?;
            let table = &self.table;
            let rows = match (&reader.claim, self.claim) {
                (Some(claim), Some(lease)) => {
                    let rows = rows::read(&transaction, &reader.read, &[&most], table).await?;
                    let keys: Vec<&str> = rows.iter().map(|row| &*row.key).collect();
                    transaction.execute(claim, &[&keys, &lease.as_secs_f64()]).await?;
                    rows
                }
                _ => {
                    let in_flight = self.acker.excluded(Instant::now());
                    rows::read(&transaction, &reader.read, &[&most, &in_flight], table).await?
                }
            };
            transaction.commit().await?;
            Ok(rows)
        };
        asked("rows are not read", reading).await
    }
}

impl RowAcker {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<Instant>>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys of rows to exclude from a read. Removes nacked rows whose redelivery time
    /// has passed.
    fn excluded(&self, now: Instant) -> Vec<String> {
        let mut in_flight = self.lock();
        in_flight.retain(|_, until| until.is_none_or(|until| until > now));
        in_flight.keys().cloned().collect()
    }
}

#[async_trait]
impl Source for TableSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut reader = self.reader.lock().await;
        if !self.look.wait_due(wait).await {
            return Ok(Vec::new());
        }
        let rows = self.read(&mut reader, most.max(1)).await?;
        self.look.record_poll(!rows.is_empty());
        let delivered = rows.into_iter().map(|FetchedRow { key, message }| {
            if self.claim.is_none() {
                self.acker.lock().insert(key.clone(), None);
            }
            let (acker, claim) = (self.acker.clone(), self.claim);
            let handle = RowAck { key, acker, claim, is_answered: AtomicBool::new(false) };
            Delivery::new(message, handle)
        });
        Ok(delivered.collect())
    }

    fn ack_wait(&self) -> Duration {
        self.claim.unwrap_or(ACK_WAIT)
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        let count = self.acker.client.query_one(&self.acker.count, &[]);
        let row = asked("rows are not counted", count).await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).ok())
    }

    async fn close(&self) {}
}

struct RowAck {
    key: String,
    acker: Arc<RowAcker>,
    claim: Option<Duration>,
    is_answered: AtomicBool,
}

impl RowAck {
    async fn hold(&self, until: Duration) -> Result<(), SourceError> {
        let Some(hold) = &self.acker.hold else { return Ok(()) };
        let until = until.as_secs_f64();
        asked(
            "failed to extend the claim of a row",
            self.acker.client.execute(hold, &[&self.key, &until]),
        )
        .await?;
        Ok(())
    }
}

#[async_trait]
impl DeliveryAck for RowAck {
    async fn ack(&self) -> Result<(), SourceError> {
        let acker = &self.acker;
        asked("not acknowledged", acker.client.execute(&acker.done, &[&self.key])).await?;
        self.is_answered.store(true, Ordering::Release);
        self.acker.lock().remove(&self.key);
        Ok(())
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        if self.claim.is_none() {
            self.acker.lock().insert(self.key.clone(), Some(Instant::now() + after));
        }
        self.is_answered.store(true, Ordering::Release);
        self.hold(after).await
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        match self.claim {
            Some(claim) => self.hold(claim).await,
            None => Ok(()),
        }
    }
}

/// A row that was neither acked nor nacked is read again.
impl Drop for RowAck {
    fn drop(&mut self) {
        if !self.is_answered.load(Ordering::Acquire) {
            self.acker.lock().remove(&self.key);
        }
    }
}

/// Poll schedule of a table: at intervals, on a notification, and immediately after a poll that
/// found rows.
pub(super) struct PollSchedule {
    every: Duration,
    next: Shared<Instant>,
    woken: Arc<Notify>,
}

impl PollSchedule {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, next: Shared::new(Instant::now()), woken: Arc::default() }
    }

    /// Opens a connection that wakes this schedule on a notification.
    pub(super) async fn connect(&self, wanted: &TableQuery<'_>) -> Result<Client, SourceError> {
        let client = connect(wanted.settings, NotifyHandling::Wake(self.woken.clone())).await?;
        if let Some(channel) = wanted.channel {
            let listen = format!("listen {}", quoted(channel));
            asked("failed to listen on the channel", client.batch_execute(&listen)).await?;
        }
        Ok(client)
    }

    /// Waits up to `wait` for the next poll. Returns `true` if it is due.
    pub(super) async fn wait_due(&self, wait: Duration) -> bool {
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if next <= now {
            return true;
        }
        tokio::select! {
            () = tokio::time::sleep_until(next.min(now + wait)) => next <= now + wait,
            () = self.woken.notified() => true,
        }
    }

    /// Schedules the next poll, depending on whether the last one found rows.
    pub(super) fn record_poll(&self, something: bool) {
        let pause = if something { Duration::ZERO } else { self.every };
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + pause;
    }
}
