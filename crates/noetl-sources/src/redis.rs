//! Source for a Redis stream, read through a consumer group.
//!
//! The group records pending entries by consumer. After opening, the source first reads entries
//! pending for a consumer of its own name. It claims entries of other consumers that have been idle
//! for a while. It recreates a group that no longer exists, as after a flush.

mod entry;
mod settings;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Shared, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Map;
use noetl_playbook::subscription::Subscription;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::entry::RedisEntry;
use self::settings::RedisSettings;
use crate::source::{Delivery, DeliveryAck, Message, Source, SourceError, SourceFactory, chain};

/// Time the server has to respond, in addition to the requested wait.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Target size of one read in bytes. Redis limits only the number of entries, so the count adapts
/// to the size of the last ones.
const BYTES_WANTED: usize = 8 << 20;

/// Number of entries in the first read.
const COUNT_FIRST: usize = 8;

/// Opens sources of kind `redis`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Redis;

#[async_trait]
impl SourceFactory for Redis {
    fn kind(&self) -> &'static str {
        "redis"
    }

    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let settings = RedisSettings::read(settings, &subscription.path)?;
        // Reads block the connection, and acks must not wait for them.
        let reader = settings.connect().await?;
        let acker = EntryAcker {
            connection: settings.connect().await?,
            settings,
            pending: Shared::default(),
        };
        acker.make_group().await?;
        let reader = RedisReader {
            connection: reader,
            left: Some("0".to_owned()),
            claim_at: Instant::now(),
            claim_from: "0-0".to_owned(),
            count: COUNT_FIRST,
        };
        Ok(Arc::new(StreamSource { reader: Mutex::new(reader), acker: Arc::new(acker) }))
    }
}

struct StreamSource {
    reader: Mutex<RedisReader>,
    acker: Arc<EntryAcker>,
}

struct RedisReader {
    connection: MultiplexedConnection,
    /// ID after which to continue with its own pending entries; `None` after the last.
    left: Option<String>,
    /// Next time to claim entries of other consumers. `claim_from` is the ID to continue from.
    claim_at: Instant,
    claim_from: String,
    count: usize,
}

/// Acks entries and tracks those in flight.
struct EntryAcker {
    connection: MultiplexedConnection,
    settings: RedisSettings,
    /// Delivered entries, with the time of redelivery if nacked.
    pending: Shared<HashMap<String, PendingEntry>>,
}

struct PendingEntry {
    message: Message,
    redeliver_at: Option<Instant>,
}

impl EntryAcker {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingEntry>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, command: &Cmd) -> Result<Value, RedisError> {
        command.query_async(&mut self.connection.clone()).await
    }

    /// Creates the group, and the stream if it doesn't exist. Leaves an existing group unchanged.
    async fn make_group(&self) -> Result<(), SourceError> {
        let RedisSettings { stream, group, from, .. } = &self.settings;
        let mut command = redis::cmd("XGROUP");
        command.arg("CREATE").arg(stream).arg(group).arg(from).arg("MKSTREAM");
        match self.ask(&command).await {
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(()),
            made => made.map(drop).map_err(|error| wrong("the group is not made", &error)),
        }
    }

    async fn ack(&self, id: &str) -> Result<(), SourceError> {
        let RedisSettings { stream, group, .. } = &self.settings;
        let mut command = redis::cmd("XACK");
        command.arg(stream).arg(group).arg(id);
        let reply = self.ask(&command).await;
        reply.map(drop).map_err(|error| wrong("not acknowledged", &error))
    }

    fn due(&self, now: Instant, most: usize) -> Vec<(String, Message)> {
        let mut pending = self.lock();
        let due =
            pending.iter_mut().filter(|(_, entry)| entry.redeliver_at.is_some_and(|at| at <= now));
        let messages = due.take(most).map(|(id, entry)| {
            entry.redeliver_at = None;
            (id.clone(), entry.message.clone())
        });
        messages.collect()
    }

    fn schedule_redelivery(&self, id: &str, after: Duration) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.redeliver_at = Some(Instant::now() + after);
        }
    }
}

/// Classifies an error as one that needs a configuration change or one that may resolve itself.
fn wrong(what: &str, error: &RedisError) -> SourceError {
    let message = chain(what, error);
    if error.kind() == ErrorKind::AuthenticationFailed {
        return SourceError::Settings(message);
    }
    match error.code() {
        Some("NOAUTH" | "WRONGPASS" | "NOPERM" | "WRONGTYPE") => SourceError::Settings(message),
        _ => SourceError::Away(message),
    }
}

impl StreamSource {
    /// Reads entries from the first of these that has any: its own pending entries, idle entries of
    /// other consumers, and new ones.
    async fn read(
        &self,
        reader: &mut RedisReader,
        most: usize,
        wait: Duration,
    ) -> Result<Vec<RedisEntry>, RedisError> {
        let count = reader.count.min(most);
        if let Some(after) = reader.left.clone() {
            let entries = self.of_group(reader, count, None, &after).await?;
            match entries.last() {
                Some(last) => reader.left = Some(last.id.clone()),
                None => reader.left = None,
            }
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        if reader.claim_at <= Instant::now() {
            let entries = self.of_others(reader, count).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        self.of_group(reader, count, Some(wait), ">").await
    }

    async fn of_group(
        &self,
        reader: &mut RedisReader,
        count: usize,
        wait: Option<Duration>,
        after: &str,
    ) -> Result<Vec<RedisEntry>, RedisError> {
        let RedisSettings { stream, group, consumer, .. } = &self.acker.settings;
        let mut command = redis::cmd("XREADGROUP");
        command.arg("GROUP").arg(group).arg(consumer).arg("COUNT").arg(count);
        if let Some(wait) = wait {
            // `BLOCK 0` would wait forever.
            command.arg("BLOCK").arg(u64::try_from(wait.as_millis()).unwrap_or(1000).max(1));
        }
        command.arg("STREAMS").arg(stream).arg(after);
        reader.connection.set_response_timeout(TIMEOUT + wait.unwrap_or_default());
        let reply: Value = command.query_async(&mut reader.connection).await?;
        Ok(entry::of_streams(reply))
    }

    async fn of_others(
        &self,
        reader: &mut RedisReader,
        count: usize,
    ) -> Result<Vec<RedisEntry>, RedisError> {
        let RedisSettings { stream, group, consumer, claim, .. } = &self.acker.settings;
        let mut command = redis::cmd("XAUTOCLAIM");
        command.arg(stream).arg(group).arg(consumer);
        command.arg(u64::try_from(claim.as_millis()).unwrap_or(u64::MAX));
        command.arg(&reader.claim_from).arg("COUNT").arg(count);
        let reply: Value = command.query_async(&mut reader.connection).await?;
        let (next, entries) = entry::of_claim(reply);
        reader.claim_from = next;
        if reader.claim_from == "0-0" {
            // The scan has reached the end of the pending entries.
            reader.claim_at = Instant::now() + *claim / 2;
        }
        Ok(entries)
    }

    fn delivery(&self, id: String, message: Message) -> Delivery {
        let acker = self.acker.clone();
        Delivery::new(message, RedisAck { id, acker, is_answered: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Source for StreamSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut reader = self.reader.lock().await;
        let due = self.acker.due(Instant::now(), most);
        if !due.is_empty() {
            return Ok(due.into_iter().map(|(id, message)| self.delivery(id, message)).collect());
        }
        let entries = match self.read(&mut reader, most.max(1), wait).await {
            Err(error) if matches!(error.code(), Some("NOGROUP" | "UNBLOCKED")) => {
                self.acker.make_group().await?;
                // The deleted group's pending entries are gone with it.
                self.acker.lock().clear();
                return Ok(Vec::new());
            }
            entries => entries.map_err(|error| wrong("entries are not read", &error))?,
        };
        let bytes: usize = entries.iter().map(RedisEntry::bytes).sum();
        if !entries.is_empty() {
            let each = (bytes / entries.len()).max(1);
            reader.count = (BYTES_WANTED / each).clamp(1, reader.count.saturating_mul(2).min(1000));
        }
        let mut delivered = Vec::new();
        for entry in entries {
            let id = entry.id.clone();
            let Some(message) = entry.message(&self.acker.settings) else {
                // The entry was deleted from the stream while it was pending.
                self.acker.ack(&id).await?;
                continue;
            };
            {
                let mut pending = self.acker.lock();
                if pending.contains_key(&id) {
                    continue;
                }
                pending.insert(
                    id.clone(),
                    PendingEntry { message: message.clone(), redeliver_at: None },
                );
            }
            delivered.push(self.delivery(id, message));
        }
        Ok(delivered)
    }

    fn ack_wait(&self) -> Duration {
        self.acker.settings.claim
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        let RedisSettings { stream, group, .. } = &self.acker.settings;
        let mut command = redis::cmd("XINFO");
        command.arg("GROUPS").arg(stream);
        let reply = self.acker.ask(&command).await;
        let reply = reply.map_err(|error| wrong("the group is not known", &error))?;
        Ok(entry::waiting(reply, group))
    }

    async fn close(&self) {}
}

struct RedisAck {
    id: String,
    acker: Arc<EntryAcker>,
    is_answered: AtomicBool,
}

#[async_trait]
impl DeliveryAck for RedisAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.acker.ack(&self.id).await?;
        self.is_answered.store(true, Ordering::Release);
        self.acker.lock().remove(&self.id);
        Ok(())
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        self.is_answered.store(true, Ordering::Release);
        self.acker.schedule_redelivery(&self.id, after);
        Ok(())
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.ack().await
    }

    /// Claims the entry again, which resets the idle time that other consumers check.
    async fn extend(&self) -> Result<(), SourceError> {
        let RedisSettings { stream, group, consumer, .. } = &self.acker.settings;
        let mut command = redis::cmd("XCLAIM");
        command.arg(stream).arg(group).arg(consumer).arg(0).arg(&self.id).arg("JUSTID");
        let reply = self.acker.ask(&command).await;
        reply.map(drop).map_err(|error| wrong("failed to extend the claim of an entry", &error))
    }
}

impl Drop for RedisAck {
    fn drop(&mut self) {
        if !self.is_answered.load(Ordering::Acquire) {
            self.acker.schedule_redelivery(&self.id, Duration::ZERO);
        }
    }
}
