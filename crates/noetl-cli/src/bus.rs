//! Configures the message bus, which announces commands and publishes events, from flags and the
//! environment.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{CommandBus, CommandConsumer, EventStream};
use noetl_bus_nats::{Address, NatsStream};
use noetl_control::ControlPlane;
use noetl_model::Clock;
use noetl_publishing::{
    AnnouncerHandle, AnnouncerOptions, PublisherHandle, PublisherOptions, SystemConsumers,
    SystemConsumersHandle,
};
use noetl_store::SystemClock;

use crate::arguments::BusArguments;
use crate::error::{CliError, ErrorKind};
use crate::outbox::{self, OUTBOX};
use crate::settings::{number, seconds, setting, switch};
use crate::stores::OpenStores;

/// Variable with the address of the NATS server.
pub(crate) const NATS_URL: &str = "NOETL_NATS_URL";

/// Switch: publish committed events directly from the event log.
const STREAM: &str = "NOETL_EVENT_STREAM_ENABLED";

/// Switch: publish the rows of the outbox from this process.
const RELAY: &str = "NOETL_OUTBOX_RELAY";

/// Switch: write events of the stream to the database in this process, as a system pool does.
const MATERIALIZER: &str = "NOETL_MATERIALIZER_ENABLED";

/// Switch: update snapshots from the stream in this process, as a system pool does.
const PROJECTOR: &str = "NOETL_PROJECTOR_ENABLED";

/// Variable with the URL at which workers reach this server, if it differs from the listen address.
const PUBLIC_URL: &str = "NOETL_PUBLIC_SERVER_URL";

/// Hint for settings that require a bus when none is configured.
const NAME_A_BUS: &str = "name a NATS server with --nats-url or NOETL_NATS_URL";

/// Settings of the bus.
#[derive(Debug, Default)]
pub(crate) struct BusSetup {
    address: Option<Address>,
    way: Option<Way>,
    /// Settings of the stream, for the process that creates it.
    options: PublisherOptions,
    /// System consumers of the stream in this process.
    readers: SystemConsumers,
    /// URL at which workers reach this server, if configured.
    server_url: Option<String>,
    /// Number of subjects over which the commands of the system pool are distributed.
    system_shards: u32,
}

/// Origin of the events that this process publishes.
#[derive(Debug)]
enum Way {
    Tail,
    Relay,
}

impl BusArguments {
    /// Reads the settings of the bus from the flags and the environment. Opens no connection.
    ///
    /// # Errors
    ///
    /// Returns a failure if the settings contradict each other, or require a bus and none is
    /// configured.
    pub(crate) fn setup(&self) -> Result<BusSetup, CliError> {
        let address = address(self.nats_url.as_deref())?;
        let options = options()?;
        let is_relayed = switch(RELAY)?;
        let way = match (switch(STREAM)?, is_relayed) {
            (true, true) => {
                let message = format!("{STREAM} and {RELAY} are both on");
                return Err(CliError::new(ErrorKind::Config, message)
                    .hint("each publishes every event: leave one of them out"));
            }
            (true, false) => Some(Way::Tail),
            (false, true) => Some(Way::Relay),
            (false, false) => None,
        };
        if is_relayed && !outbox::options()?.is_on {
            let message = format!("{RELAY} has nothing to publish without {OUTBOX}");
            return Err(
                CliError::new(ErrorKind::Config, message).hint(format!("set {OUTBOX}=true too"))
            );
        }
        if way.is_some() && address.is_none() {
            let name = if is_relayed { RELAY } else { STREAM };
            let message = format!("{name} is on, and there is no bus to publish to");
            return Err(CliError::new(ErrorKind::Config, message).hint(NAME_A_BUS));
        }
        let readers =
            SystemConsumers { materialize: switch(MATERIALIZER)?, project: switch(PROJECTOR)? };
        if readers.any() && address.is_none() {
            let name = if readers.materialize { MATERIALIZER } else { PROJECTOR };
            let message = format!("{name} is on, and there is no bus to read from");
            return Err(CliError::new(ErrorKind::Config, message).hint(NAME_A_BUS));
        }
        let (server_url, system_shards) = (server_url()?, system_shards()?);
        Ok(BusSetup { address, way, options, readers, server_url, system_shards })
    }
}

impl BusSetup {
    /// Starts to connect to the bus in the background, or returns `None` if none is configured.
    pub(crate) fn open(&self) -> Option<Arc<dyn CommandConsumer>> {
        let address = self.address.clone()?;
        Some(Arc::new(NatsStream::open(address)))
    }

    /// Starts to announce commands on the bus, or returns `None` without a bus.
    ///
    /// `reached_at` is the URL of this server as derived from its listen address. The configured
    /// public URL overrides it.
    pub(crate) fn announce(
        &self,
        bus: Option<&Arc<dyn CommandConsumer>>,
        stores: &OpenStores,
        control: &ControlPlane,
        reached_at: &str,
    ) -> Option<AnnouncerHandle> {
        let server_url = self.server_url.as_deref().unwrap_or(reached_at);
        let system_shards = self.system_shards;
        let options = AnnouncerOptions { system_shards, ..AnnouncerOptions::new(server_url) };
        let databases = stores.shards.clone();
        let bus: Arc<dyn CommandBus> = bus?.clone();
        Some(AnnouncerHandle::start(&options, databases, bus, &control.journal))
    }

    /// Starts the system consumers of the stream, or returns `None` if none is enabled.
    pub(crate) fn read(
        &self,
        bus: Option<&Arc<dyn CommandConsumer>>,
        control: &ControlPlane,
    ) -> Option<SystemConsumersHandle> {
        let bus = bus.filter(|_| self.readers.any())?;
        Some(SystemConsumersHandle::start(
            self.readers,
            &self.options,
            bus,
            &control.publishing.imports,
            &control.views.projections,
            &control.journal.metrics,
        ))
    }

    /// Starts to publish events, or returns `None` if publishing is not enabled.
    pub(crate) fn publish(
        &self,
        bus: Option<&Arc<dyn EventStream>>,
        stores: &OpenStores,
        control: &ControlPlane,
    ) -> Option<PublisherHandle> {
        let (bus, commits) = (bus?, control.journal.watch.commits());
        let (clock, options): (Arc<dyn Clock>, _) = (Arc::new(SystemClock), &self.options);
        Some(match self.way.as_ref()? {
            Way::Tail => {
                let databases = stores.databases();
                PublisherHandle::tail(
                    options,
                    databases,
                    bus,
                    &commits,
                    &clock,
                    &control.journal.metrics,
                )
            }
            Way::Relay => {
                let store = stores.routed.clone();
                PublisherHandle::relay(
                    options,
                    store,
                    bus,
                    &commits,
                    &clock,
                    &control.journal.metrics,
                )
            }
        })
    }
}

/// Parses the address of the bus. `None` or an empty text means that there is no bus.
pub(crate) fn address(url: Option<&str>) -> Result<Option<Address>, CliError> {
    let url = url.map(str::trim).filter(|url| !url.is_empty());
    url.map(Address::parse).transpose().map_err(|error| {
        // The value may contain a password, so the message omits it.
        CliError::new(ErrorKind::Config, format!("{NATS_URL}: {error}"))
            .hint("use nats://user:password@host:port, several parted by commas")
    })
}

fn server_url() -> Result<Option<String>, CliError> {
    let url = setting(PUBLIC_URL).filter(|url| !url.trim().is_empty());
    match url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            let message = format!("{PUBLIC_URL}: '{url}' is no address");
            Err(CliError::new(ErrorKind::Config, message)
                .hint("use http://host:port, as workers reach this server"))
        }
        url => Ok(url),
    }
}

fn system_shards() -> Result<u32, CliError> {
    let count = number("NOETL_COMMAND_SHARD_COUNT", 1..=1024)?;
    let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    Ok(if switch("NOETL_SHARD_SUBJECT_ROUTE")? { count } else { 1 })
}

fn options() -> Result<PublisherOptions, CliError> {
    let defaults = PublisherOptions::default();
    let batch = number("NOETL_EVENT_STREAM_BATCH", 1..=5000)?;
    let poll = number("NOETL_EVENT_STREAM_POLL_MS", 1..=3_600_000)?;
    let poll = poll.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    // NATS rejects a dedup window that is longer than the retention of the stream.
    let year = 366 * 86_400;
    let age_max = seconds("NOETL_EVENT_STREAM_RETENTION_SECS", 1, year)?;
    let age_max = age_max.unwrap_or(defaults.age_max);
    let window = seconds("NOETL_EVENT_STREAM_DEDUP_SECS", 1, year)?;
    let window = window.unwrap_or(defaults.duplicate_window.min(age_max));
    if window > age_max {
        let message =
            "NOETL_EVENT_STREAM_DEDUP_SECS is more than NOETL_EVENT_STREAM_RETENTION_SECS";
        return Err(CliError::new(ErrorKind::Config, message)
            .hint("a message that is gone cannot be known any more"));
    }
    let lease = seconds("NOETL_EVENT_STREAM_LEASE_SECS", 1, 3600)?;
    Ok(PublisherOptions {
        batch: batch.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(defaults.batch),
        poll: poll.unwrap_or(defaults.poll),
        backfill: switch("NOETL_EVENT_STREAM_BACKFILL")?,
        duplicate_window: window,
        age_max,
        lease: lease.unwrap_or(defaults.lease),
    })
}
