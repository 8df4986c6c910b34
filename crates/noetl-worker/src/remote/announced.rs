//! Commands that are announced on a bus, and taken by leases over HTTP.
//!
//! The bus says when to ask, and nothing else: what there is, and whose it becomes, the lease call
//! decides. So nothing is lost with the bus. While it is away, or has no reader of this pool, the call
//! waits for commands as it does without one; and now and then it is made without an announcement,
//! since what only workers of this kind can run is not announced.
//!
//! An announcement is answered for once the call that followed it was answered: a worker that ends
//! in between leaves it to another.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_bus::CommandReader;
use noetl_control::{BATCH_MAX, COMMAND_STREAM, Ended, readers_of};
use noetl_model::DEFAULT_POOL;
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::counters::{Counters, Happened};
use super::lease::{HttpLease, Lent};
use crate::perform::Command;
use crate::services::Services;
use crate::source::CommandSource;

/// How long the call waits while nothing is heard: so long a bus that is back may be missed.
const DEAF_WAIT: Duration = Duration::from_secs(5);

/// How long after something was taken it is asked without an announcement, at first.
const LOOK_FIRST: Duration = Duration::from_millis(250);

/// The same at most, when nothing was there: a worker with nothing to do is quiet.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// A worker's commands, from a server, when a bus says so.
pub(crate) struct Announced {
    lease: HttpLease,
    bus: Arc<dyn CommandReader>,
    /// Held by whoever takes; there is one at a time.
    hearing: Mutex<Hearing>,
}

/// What is known of the bus between calls.
struct Hearing {
    /// Through whom announcements are heard; none while they are not.
    readers: Vec<String>,
    look_after: Duration,
}

/// What to do next.
struct Heard {
    /// The announcements that led to it.
    receipts: Vec<String>,
    /// How long the call may wait.
    wait: Duration,
}

impl Heard {
    const fn nothing(wait: Duration) -> Self {
        Self { receipts: Vec::new(), wait }
    }
}

impl Announced {
    pub(crate) fn new(lease: HttpLease, bus: Arc<dyn CommandReader>) -> Self {
        let hearing = Mutex::new(Hearing { readers: Vec::new(), look_after: LOOK_FIRST });
        Self { lease, bus, hearing }
    }

    fn counters(&self) -> &Counters {
        &self.lease.link.counters
    }

    /// Waits for something to ask for.
    async fn hear(&self, hearing: &mut Hearing, free: usize) -> Heard {
        if hearing.readers.is_empty() {
            hearing.readers = self.readers().await;
            // What waits already may have been announced to others who are gone.
            let wait = if hearing.readers.is_empty() { DEAF_WAIT } else { Duration::ZERO };
            return Heard::nothing(wait);
        }
        let max = free.clamp(1, BATCH_MAX);
        let next = self.bus.next(COMMAND_STREAM, &hearing.readers, max, hearing.look_after).await;
        match next {
            Ok(given) => {
                given.iter().for_each(|_| self.counters().count(Happened::Heard));
                let receipts = given.into_iter().map(|given| given.receipt).collect();
                Heard { receipts, wait: Duration::ZERO }
            }
            Err(error) => {
                hearing.readers.clear();
                if self.counters().set_hears(false) {
                    warn!(%error, "commands are not heard of on the bus; asking without it");
                }
                Heard::nothing(DEAF_WAIT)
            }
        }
    }

    /// The readers of this worker's pool, as the server made them.
    async fn readers(&self) -> Vec<String> {
        if !self.bus.is_connected() {
            return Vec::new();
        }
        let Ok(Some(found)) = self.bus.state(COMMAND_STREAM).await else { return Vec::new() };
        let pool = self.lease.pool.as_deref().unwrap_or(DEFAULT_POOL);
        let readers = readers_of(pool, &found.consumers);
        if !readers.is_empty() && self.counters().set_hears(true) {
            info!(pool, readers = readers.join(", "), "commands are heard of on the bus");
        }
        readers
    }
}

#[async_trait]
impl CommandSource for Announced {
    type Claim = Lent;

    async fn take(&self, free: usize) -> Option<Vec<(Command, Lent)>> {
        let mut hearing = self.hearing.lock().await;
        loop {
            let heard = tokio::select! {
                heard = self.hear(&mut hearing, free) => heard,
                () = self.lease.draining.cancelled() => return None,
            };
            let Some(taken) = self.lease.take_within(free, heard.wait).await else {
                self.bus.again(&heard.receipts).await;
                return None;
            };
            self.bus.done(&heard.receipts).await;
            if !taken.is_empty() {
                hearing.look_after = LOOK_FIRST;
                return Some(taken);
            }
            hearing.look_after = (hearing.look_after * 2).min(LOOK_MAX);
        }
    }

    async fn over(&self) {
        self.lease.over().await;
    }

    fn services(&self, claim: &Lent) -> Arc<dyn Services> {
        self.lease.services(claim)
    }

    async fn lost(&self, claim: &Lent) {
        self.lease.lost(claim).await;
    }

    async fn report(&self, claim: Lent, ended: Ended) -> Option<(Command, Lent)> {
        self.lease.report(claim, ended).await
    }
}

#[cfg(test)]
mod tests {
    use noetl_api::Client;
    use noetl_api::workers::RegisterRequest;
    use noetl_bus::{Consumer, EventStream, MemoryStream, Message, StreamSettings};
    use noetl_store::SystemClock;
    use tokio_util::sync::CancellationToken;

    use super::super::held::Held;
    use super::super::lines::Lines;
    use super::super::link::Link;
    use super::super::reporter::Reporter;
    use super::*;

    const READER: &str = "worker-pool";

    fn stream(filter: &str) -> StreamSettings {
        StreamSettings {
            name: COMMAND_STREAM.to_owned(),
            subjects: vec!["noetl.commands.>".to_owned()],
            duplicate_window: Duration::from_secs(60),
            age_max: Duration::from_secs(60),
            consumers: vec![Consumer {
                name: READER.to_owned(),
                filter: filter.to_owned(),
                ack_wait: Duration::from_secs(30),
            }],
        }
    }

    /// A worker of a server that is not there.
    fn announced(bus: &Arc<MemoryStream>) -> (Announced, CancellationToken) {
        let client = Client::new("http://127.0.0.1:9").unwrap();
        let link = Arc::new(Link::new(client, "w".to_owned(), Arc::default()));
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let registration = RegisterRequest {
            name: "w".to_owned(),
            kind: "worker_pool".to_owned(),
            uri: None,
            status: "ready".to_owned(),
            labels: None,
            capabilities: None,
            capacity: None,
            runtime: None,
        };
        let lease = HttpLease {
            held: Held::default(),
            reporter: Reporter::start(&link, None, &stop),
            lines: Lines::start(&link, Arc::new(SystemClock), &stop),
            link,
            pool: None,
            registration: Arc::new(registration),
            draining: draining.clone(),
        };
        (Announced::new(lease, bus.clone()), draining)
    }

    #[tokio::test]
    async fn who_is_told_to_stop_before_the_server_answers_leaves_the_announcement_to_others() {
        let bus = Arc::new(MemoryStream::new());
        bus.ensure(&stream("noetl.commands.shared.>")).await.unwrap();
        let (announced, draining) = announced(&bus);
        *announced.hearing.lock().await =
            Hearing { readers: vec![READER.to_owned()], look_after: Duration::from_secs(60) };
        let (subject, id) = ("noetl.commands.shared.1".to_owned(), "1".to_owned());
        bus.publish(vec![Message { subject, id, payload: Vec::new() }]).await;
        let stopping = async {
            while announced.counters().render(1).contains("announcements_total 0")
                || !announced.counters().is_away()
            {
                tokio::task::yield_now().await;
            }
            assert_eq!(bus.give(READER), None, "it is this worker's");
            draining.cancel();
        };
        announced.counters().set_bus();
        let (taken, ()) = tokio::join!(announced.take(4), stopping);
        assert!(taken.is_none());
        assert!(bus.give(READER).is_some(), "somebody else is given it");
    }

    #[tokio::test]
    async fn a_reader_that_hears_something_else_is_not_listened_to() {
        let bus = Arc::new(MemoryStream::new());
        let (announced, _draining) = announced(&bus);
        assert!(announced.readers().await.is_empty(), "there is no stream");
        bus.ensure(&stream("noetl.commands.>")).await.unwrap();
        assert!(announced.readers().await.is_empty());
        let bus = Arc::new(MemoryStream::new());
        bus.ensure(&stream("noetl.commands.shared.>")).await.unwrap();
        let (announced, _draining) = super::tests::announced(&bus);
        assert_eq!(announced.readers().await, [READER]);
        bus.set_connected(false);
        let mut hearing = Hearing { readers: vec![READER.to_owned()], look_after: LOOK_FIRST };
        let heard = announced.hear(&mut hearing, 1).await;
        assert!(hearing.readers.is_empty() && heard.wait == DEAF_WAIT, "the call waits instead");
    }
}
