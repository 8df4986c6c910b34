//! A spool: where messages are kept while nothing can be started, so that their source may forget
//! them.
//!
//! An entry is one object. Its name begins with a number that grows, so that the order of names is the
//! order messages came in. It is durable before the source is told, and goes when its execution is.

mod entry;
mod place;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Map, SubscriptionId};
use noetl_playbook::subscription::{OnFull, Spool as Settings};
use noetl_store::SystemClock;

use self::place::Place;
use crate::plane::{Fault, FaultOf};
use crate::source::{Acknowledge, Delivery, Message, SourceError};

pub(crate) use self::entry::key_of_order;

/// The most a spool keeps when its document does not say.
const BYTES_MAX: u64 = 10 << 30;

/// What became of a message that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// There is no room: it stays with its source.
    Full,
    /// There is no room: it is to be put aside.
    Aside,
}

/// The spool of one subscription. Whoever holds the lease of the subscription has it alone.
pub(crate) struct Spool {
    place: Place,
    prefix: String,
    bytes_max: u64,
    on_full: OnFull,
    age_max: Option<Duration>,
    next: AtomicU64,
    held: Mutex<Holding>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// An entry as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl Spool {
    /// Opens the spool of a subscription, with whatever was left in it.
    pub(crate) async fn open(
        settings: &Settings,
        subscription: SubscriptionId,
        credential: &Map,
    ) -> Result<Arc<Self>, SourceError> {
        let place = Place::open(settings, credential).await?;
        let prefix = subscription.to_string();
        let listed = place.list(&prefix).await?;
        let last = listed.last().and_then(|listed| entry::number_of(&listed.name));
        let held = Holding {
            entries: listed.len() as u64,
            bytes: listed.iter().map(|listed| listed.bytes).sum(),
        };
        let retention = &settings.retention;
        Ok(Arc::new(Self {
            place,
            prefix,
            bytes_max: retention.max_bytes.unwrap_or(BYTES_MAX),
            on_full: retention.on_full.unwrap_or(OnFull::StopAcking),
            age_max: retention.max_age_hours.map(|hours| Duration::from_secs(hours * 3600)),
            // Above all that is there, whatever the clock of whoever wrote it said.
            next: AtomicU64::new(now().max(last.map_or(0, |last| last + 1))),
            held: Mutex::new(held),
        }))
    }

    /// How much there is.
    pub(crate) fn holds(&self) -> Holding {
        *self.lock()
    }

    /// Whether it holds more than it should.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes > self.bytes_max
    }

    /// Numbers of so many messages that came together, the first of them. Whenever one of them is kept,
    /// it stands before those that came later.
    pub(crate) fn arrivals(&self, count: usize) -> u64 {
        self.next.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// Keeps a message under the number of its arrival. When this returns, it is durable.
    pub(crate) async fn keep(&self, message: &Message, number: u64) -> Result<Kept, SourceError> {
        let text = entry::write(message, now());
        let bytes = text.len() as u64;
        {
            let mut held = self.lock();
            if held.bytes.saturating_add(bytes) > self.bytes_max {
                match self.on_full {
                    OnFull::StopAcking => return Ok(Kept::Full),
                    OnFull::DropToDlq => return Ok(Kept::Aside),
                    OnFull::AlertOnly => {}
                }
            }
            // Counted before it is there, so that many at once do not all find room.
            held.entries += 1;
            held.bytes += bytes;
        }
        let name = entry::name(&self.prefix, number);
        let put = self.place.put(&name, text).await;
        if put.is_err() {
            self.forget(bytes);
        }
        put.map(|()| Kept::Yes)
    }

    /// Everything there is, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<Listed>, SourceError> {
        self.place.list(&self.prefix).await
    }

    /// The message of an entry; none when it is gone.
    pub(crate) async fn read(
        self: &Arc<Self>,
        listed: Listed,
    ) -> Result<Option<Spooled>, SourceError> {
        let Some(text) = self.place.get(&listed.name).await? else { return Ok(None) };
        let (message, fault) = match entry::read(&text) {
            Ok((message, at)) => (message, self.expired(at)),
            Err(error) => {
                let reason = format!("the entry of the spool cannot be read: {error}");
                (entry::damaged(&listed.name, text), Some(fault("spool_damaged", reason)))
            }
        };
        let handle = Entry { spool: self.clone(), name: listed.name, bytes: listed.bytes };
        Ok(Some(Spooled { delivery: Delivery::new(message, handle), fault }))
    }

    fn expired(&self, at: u64) -> Option<Fault> {
        let age = Duration::from_micros(now().saturating_sub(at));
        let reason = "it was in the spool for longer than retention.max_age_hours".to_owned();
        self.age_max.filter(|most| age > *most).map(|_| fault("spool_expired", reason))
    }

    fn forget(&self, bytes: u64) {
        let mut held = self.lock();
        held.entries = held.entries.saturating_sub(1);
        held.bytes = held.bytes.saturating_sub(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that was kept.
pub(crate) struct Spooled {
    pub(crate) delivery: Delivery,
    /// Why it can never be started.
    pub(crate) fault: Option<Fault>,
}

/// The handle of an entry: it goes when its message is dealt with.
struct Entry {
    spool: Arc<Spool>,
    name: String,
    bytes: u64,
}

impl Entry {
    async fn remove(&self) -> Result<(), SourceError> {
        self.spool.place.delete(&self.name).await?;
        self.spool.forget(self.bytes);
        Ok(())
    }
}

#[async_trait]
impl Acknowledge for Entry {
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

fn fault(code: &str, reason: String) -> Fault {
    Fault { of: FaultOf::Message, code: code.to_owned(), reason }
}

/// The time in microseconds, which numbers begin with.
fn now() -> u64 {
    u64::try_from(noetl_model::Clock::now(&SystemClock).as_micros()).unwrap_or(0)
}
