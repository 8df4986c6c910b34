//! Durable buffer for messages while executions cannot be started, so that the source can delete
//! them.
//!
//! Each entry is one object. Its name begins with an increasing number, so that name order is
//! arrival order. An entry is durable before its message is acked, and it is deleted once its
//! execution is durable.

mod backend;
mod entry;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Map, SubscriptionId};
use noetl_playbook::subscription::{OnFull, Spool as Settings};
use noetl_store::SystemClock;

use self::backend::SpoolStorage;
use crate::control_plane::{FaultOwner, StartFailure};
use crate::source::{Delivery, DeliveryAck, Message, SourceError};

pub(crate) use self::entry::key_of_order;

/// Default size limit of a spool in bytes: 10 GiB.
const BYTES_MAX: u64 = 10 << 30;

/// Outcome of spooling a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpoolOutcome {
    Yes,
    /// The spool is full. The message stays at its source, unacked.
    Full,
    /// The spool is full. The message must be dead-lettered.
    Aside,
}

/// Spool of one subscription. Only the holder of the subscription's lease uses it.
pub(crate) struct Spool {
    storage: SpoolStorage,
    prefix: String,
    bytes_max: u64,
    on_full: OnFull,
    age_max: Option<Duration>,
    next: AtomicU64,
    usage: Mutex<SpoolUsage>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SpoolUsage {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// A listed entry of a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpoolEntry {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl Spool {
    /// Opens the spool of a subscription, including entries of earlier processes.
    pub(crate) async fn open(
        settings: &Settings,
        subscription: SubscriptionId,
        credential: &Map,
    ) -> Result<Arc<Self>, SourceError> {
        let storage = SpoolStorage::open(settings, credential).await?;
        let prefix = subscription.to_string();
        let listed = storage.list(&prefix).await?;
        let last = listed.last().and_then(|listed| entry::number_of(&listed.name));
        let usage = SpoolUsage {
            entries: listed.len() as u64,
            bytes: listed.iter().map(|listed| listed.bytes).sum(),
        };
        let retention = &settings.retention;
        Ok(Arc::new(Self {
            storage,
            prefix,
            bytes_max: retention.max_bytes.unwrap_or(BYTES_MAX),
            on_full: retention.on_full.unwrap_or(OnFull::StopAcking),
            age_max: retention.max_age_hours.map(|hours| Duration::from_secs(hours * 3600)),
            // Greater than every existing number, even if the clock of an earlier writer was ahead.
            next: AtomicU64::new(now().max(last.map_or(0, |last| last + 1))),
            usage: Mutex::new(usage),
        }))
    }

    /// Returns the number and total size of the entries.
    pub(crate) fn holds(&self) -> SpoolUsage {
        *self.lock()
    }

    /// Returns `true` if the entries exceed the size limit.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes > self.bytes_max
    }

    /// Reserves consecutive numbers for `count` messages that arrived together and returns the
    /// first. A message sorts before later arrivals, no matter when it is stored.
    pub(crate) fn arrivals(&self, count: usize) -> u64 {
        self.next.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// Stores a message under its arrival number. The entry is durable when this returns.
    pub(crate) async fn append(
        &self,
        message: &Message,
        number: u64,
    ) -> Result<SpoolOutcome, SourceError> {
        let text = entry::write(message, now());
        let bytes = text.len() as u64;
        {
            let mut usage = self.lock();
            if usage.bytes.saturating_add(bytes) > self.bytes_max {
                match self.on_full {
                    OnFull::StopAcking => return Ok(SpoolOutcome::Full),
                    OnFull::DropToDlq => return Ok(SpoolOutcome::Aside),
                    OnFull::AlertOnly => {}
                }
            }
            // Counted before the write, so that concurrent writes cannot all find room.
            usage.entries += 1;
            usage.bytes += bytes;
        }
        let name = entry::name(&self.prefix, number);
        let put = self.storage.put(&name, text).await;
        if put.is_err() {
            self.forget(bytes);
        }
        put.map(|()| SpoolOutcome::Yes)
    }

    /// Returns all entries, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<SpoolEntry>, SourceError> {
        self.storage.list(&self.prefix).await
    }

    /// Reads the message of an entry. Returns `None` if the entry no longer exists.
    pub(crate) async fn read(
        self: &Arc<Self>,
        listed: SpoolEntry,
    ) -> Result<Option<SpooledMessage>, SourceError> {
        let Some(text) = self.storage.get(&listed.name).await? else { return Ok(None) };
        let (message, fault) = match entry::read(&text) {
            Ok((message, at)) => (message, self.expired(at)),
            Err(error) => {
                let reason = format!("the entry of the spool cannot be read: {error}");
                (entry::damaged(&listed.name, text), Some(fault("spool_damaged", reason)))
            }
        };
        let handle = SpoolAck { spool: self.clone(), name: listed.name, bytes: listed.bytes };
        Ok(Some(SpooledMessage { delivery: Delivery::new(message, handle), fault }))
    }

    fn expired(&self, at: u64) -> Option<StartFailure> {
        let age = Duration::from_micros(now().saturating_sub(at));
        let reason = "it was in the spool for longer than retention.max_age_hours".to_owned();
        self.age_max.filter(|most| age > *most).map(|_| fault("spool_expired", reason))
    }

    fn forget(&self, bytes: u64) {
        let mut usage = self.lock();
        usage.entries = usage.entries.saturating_sub(1);
        usage.bytes = usage.bytes.saturating_sub(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, SpoolUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message read from the spool.
pub(crate) struct SpooledMessage {
    pub(crate) delivery: Delivery,
    /// Reason the message can never start an execution, if there is one.
    pub(crate) fault: Option<StartFailure>,
}

/// Ack handle of an entry. Acking or terminating the message deletes the entry.
struct SpoolAck {
    spool: Arc<Spool>,
    name: String,
    bytes: u64,
}

impl SpoolAck {
    async fn remove(&self) -> Result<(), SourceError> {
        self.spool.storage.delete(&self.name).await?;
        self.spool.forget(self.bytes);
        Ok(())
    }
}

#[async_trait]
impl DeliveryAck for SpoolAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.remove().await
    }

    async fn nack(&self, _after: Duration) -> Result<(), SourceError> {
        Ok(())
    }

    async fn term(&self) -> Result<(), SourceError> {
        self.remove().await
    }

    async fn extend(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

fn fault(code: &str, reason: String) -> StartFailure {
    StartFailure { of: FaultOwner::Message, code: code.to_owned(), reason }
}

/// Returns the time in microseconds, the initial value of entry numbers.
fn now() -> u64 {
    u64::try_from(noetl_model::Clock::now(&SystemClock).as_micros()).unwrap_or(0)
}
