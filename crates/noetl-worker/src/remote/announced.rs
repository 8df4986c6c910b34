//! Command source that leases commands over HTTP when a bus announces them.
//!
//! An announcement only tells the worker when to poll. The lease request decides which commands
//! there are and which worker gets them, so a lost announcement loses no command. While the bus is
//! unavailable or has no consumer for this pool, the lease request is a long poll, as without a
//! bus. The worker also polls periodically without an announcement, because commands that published
//! workers cannot run are not announced.
//!
//! An announcement is acked once the lease request that followed it has a response. If the worker
//! dies in between, the bus redelivers the announcement to another worker.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_bus::CommandConsumer;
use noetl_model::DEFAULT_POOL;
use noetl_work::{COMMAND_STREAM, CommandOutcome, LEASE_BATCH_MAX, consumers_of_pool};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::lease::LeasePoller;
use super::lend::OwnedCommand;
use super::metrics::{WorkerEvent, WorkerMetrics};
use crate::services::Services;
use crate::source::CommandSource;
use crate::task::CommandTask;

/// Duration of the long poll while no announcements arrive. A bus that recovers may go unnoticed
/// for this long.
const DEAF_WAIT: Duration = Duration::from_secs(5);

/// Time after a successful claim until the worker polls without an announcement.
const LOOK_FIRST: Duration = Duration::from_millis(250);

/// Upper bound of that interval. It doubles while polls return nothing, so an idle worker sends few
/// requests.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Commands of a server, leased when a bus announces them.
pub(crate) struct AnnouncedSource {
    lease: LeasePoller,
    bus: Arc<dyn CommandConsumer>,
    /// Locked by the task that claims; there is one at a time.
    hearing: Mutex<Hearing>,
}

/// State of the bus subscription between polls.
struct Hearing {
    /// Consumers that deliver announcements; empty while the bus is not used.
    readers: Vec<String>,
    look_after: Duration,
}

/// Parameters of the next lease request.
struct NextLease {
    /// Receipts of the announcements that triggered the request.
    receipts: Vec<String>,
    /// Duration of the long poll; zero to return at once.
    wait: Duration,
}

impl NextLease {
    const fn nothing(wait: Duration) -> Self {
        Self { receipts: Vec::new(), wait }
    }
}

impl AnnouncedSource {
    pub(crate) fn new(lease: LeasePoller, bus: Arc<dyn CommandConsumer>) -> Self {
        let hearing = Mutex::new(Hearing { readers: Vec::new(), look_after: LOOK_FIRST });
        Self { lease, bus, hearing }
    }

    fn counters(&self) -> &WorkerMetrics {
        &self.lease.link.counters
    }

    /// Waits for something to ask for.
    async fn hear(&self, hearing: &mut Hearing, free: usize) -> NextLease {
        if hearing.readers.is_empty() {
            hearing.readers = self.readers().await;
            // Pending commands may have been announced to workers that have since stopped.
            let wait = if hearing.readers.is_empty() { DEAF_WAIT } else { Duration::ZERO };
            return NextLease::nothing(wait);
        }
        let max = free.clamp(1, LEASE_BATCH_MAX);
        let next = self.bus.next(COMMAND_STREAM, &hearing.readers, max, hearing.look_after).await;
        match next {
            Ok(deliveries) => {
                deliveries.iter().for_each(|_| self.counters().count(WorkerEvent::Announced));
                let receipts = deliveries.into_iter().map(|delivery| delivery.receipt).collect();
                NextLease { receipts, wait: Duration::ZERO }
            }
            Err(error) => {
                hearing.readers.clear();
                if self.counters().set_bus_up(false) {
                    warn!(%error, "command announcements unavailable, polling instead");
                }
                NextLease::nothing(DEAF_WAIT)
            }
        }
    }

    /// Returns the consumers of this worker's pool that the server created, or none while the bus
    /// is unavailable.
    async fn readers(&self) -> Vec<String> {
        if !self.bus.is_connected() {
            return Vec::new();
        }
        let Ok(Some(state)) = self.bus.state(COMMAND_STREAM).await else { return Vec::new() };
        let pool = self.lease.pool.as_deref().unwrap_or(DEFAULT_POOL);
        let readers = consumers_of_pool(pool, &state.consumers);
        if !readers.is_empty() && self.counters().set_bus_up(true) {
            info!(pool, readers = readers.join(", "), "receiving command announcements");
        }
        readers
    }
}

#[async_trait]
impl CommandSource for AnnouncedSource {
    type Claim = OwnedCommand;

    async fn take(&self, free: usize) -> Option<Vec<(CommandTask, OwnedCommand)>> {
        let mut hearing = self.hearing.lock().await;
        loop {
            let received = tokio::select! {
                received = self.hear(&mut hearing, free) => received,
                () = self.lease.draining.cancelled() => return None,
            };
            let Some(claimed) = self.lease.take_within(free, received.wait).await else {
                self.bus.nack(&received.receipts).await;
                return None;
            };
            self.bus.done(&received.receipts).await;
            if !claimed.is_empty() {
                hearing.look_after = LOOK_FIRST;
                return Some(claimed);
            }
            hearing.look_after = (hearing.look_after * 2).min(LOOK_MAX);
        }
    }

    async fn over(&self) {
        self.lease.over().await;
    }

    fn services(&self, claim: &OwnedCommand) -> Arc<dyn Services> {
        self.lease.services(claim)
    }

    async fn lost(&self, claim: &OwnedCommand) {
        self.lease.lost(claim).await;
    }

    async fn report(
        &self,
        claim: OwnedCommand,
        ended: CommandOutcome,
    ) -> Option<(CommandTask, OwnedCommand)> {
        self.lease.report(claim, ended).await
    }
}

#[cfg(test)]
mod tests {
    use noetl_api::Client;
    use noetl_api::workers::RegisterRequest;
    use noetl_bus::{Consumer, EventStream, MemoryStream, StreamMessage, StreamSettings};
    use noetl_store::SystemClock;
    use tokio_util::sync::CancellationToken;

    use super::super::leases::HeldLeases;
    use super::super::lend::Lender;
    use super::super::line::{Line, LineState};
    use super::super::link::ServerLink;
    use super::super::reporter::Reporter;
    use super::super::step_logs::LogShipper;
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
    fn announced(bus: &Arc<MemoryStream>) -> (AnnouncedSource, CancellationToken) {
        let client = Client::new("http://127.0.0.1:9").unwrap();
        let link = Arc::new(ServerLink::new(client, "w".to_owned(), Arc::default()));
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
        let (line, _) = Line::new(LineState::Unsupported, 1);
        let (leases, reporter) =
            (HeldLeases::default(), Reporter::start(&link, None, line.clone(), &stop));
        let lender =
            Lender { link: link.clone(), leases: leases.clone(), reporter: reporter.clone() };
        let lease = LeasePoller {
            leases,
            reporter,
            lender,
            lines: LogShipper::start(&link, line.clone(), Arc::new(SystemClock), &stop),
            line,
            link,
            pool: None,
            registration: Arc::new(registration),
            draining: draining.clone(),
        };
        (AnnouncedSource::new(lease, bus.clone()), draining)
    }

    #[tokio::test]
    async fn a_worker_stopped_before_the_response_does_not_ack_the_announcement() {
        let bus = Arc::new(MemoryStream::new());
        bus.ensure(&stream("noetl.commands.shared.>")).await.unwrap();
        let (announced, draining) = announced(&bus);
        *announced.hearing.lock().await =
            Hearing { readers: vec![READER.to_owned()], look_after: Duration::from_secs(60) };
        let (subject, id) = ("noetl.commands.shared.1".to_owned(), "1".to_owned());
        bus.publish(vec![StreamMessage { subject, id, payload: Vec::new() }]).await;
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
        let (claimed, ()) = tokio::join!(announced.take(4), stopping);
        assert!(claimed.is_none());
        assert!(bus.give(READER).is_some(), "somebody else is given it");
    }

    #[tokio::test]
    async fn a_consumer_with_another_filter_is_not_used() {
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
        let received = announced.hear(&mut hearing, 1).await;
        assert!(hearing.readers.is_empty() && received.wait == DEAF_WAIT, "the call waits instead");
    }
}
