//! The bus that commands are announced and events are published on, from flags and the environment.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{CommandBus, CommandReader, EventStream};
use noetl_bus_nats::{Address, NatsStream};
use noetl_control::{
    Announcing, AnnouncingOptions, Control, Publishing, PublishingOptions, SystemReaders,
    SystemReading,
};
use noetl_model::Clock;
use noetl_store::{OutboxOptions, SystemClock};

use crate::arguments::BusArguments;
use crate::failure::{Failure, Kind};
use crate::settings::{number, setting, switch};
use crate::stores::Stores;

/// Where the bus is.
pub(crate) const NATS_URL: &str = "NOETL_NATS_URL";

/// Whether committed rows are published as the log has them.
const STREAM: &str = "NOETL_EVENT_STREAM_ENABLED";

/// Whether the outbox is written.
const OUTBOX: &str = "NOETL_OUTBOX_ENABLED";

/// Whether this program empties the outbox itself.
const RELAY: &str = "NOETL_OUTBOX_RELAY";

/// Whether this program keeps rows of the stream, as a system pool would.
const MATERIALIZER: &str = "NOETL_MATERIALIZER_ENABLED";

/// Whether this program brings snapshots up to date with the stream, as a system pool would.
const PROJECTOR: &str = "NOETL_PROJECTOR_ENABLED";

/// Where workers reach this server, when that is not where it listens.
const PUBLIC_URL: &str = "NOETL_PUBLIC_SERVER_URL";

/// What helps where a bus is needed and none is named.
const NAME_A_BUS: &str = "name a NATS server with --nats-url or NOETL_NATS_URL";

/// What the settings say of the bus.
#[derive(Debug, Default)]
pub(crate) struct BusSetup {
    address: Option<Address>,
    way: Option<Way>,
    /// How the stream is made, whoever makes it.
    options: PublishingOptions,
    /// Who reads the stream in this process.
    readers: SystemReaders,
    /// Where workers reach this server, if that was named.
    server_url: Option<String>,
    /// Over how many subjects the commands of the system pool are spread.
    system_shards: u32,
}

/// How events get to the bus.
#[derive(Debug)]
enum Way {
    Tail,
    Relay,
}

impl BusArguments {
    /// What is to be done. Nothing is connected yet.
    pub(crate) fn setup(&self) -> Result<BusSetup, Failure> {
        let address = address(self.nats_url.as_deref())?;
        let options = options()?;
        let is_relayed = switch(RELAY)?;
        let way = match (switch(STREAM)?, is_relayed) {
            (true, true) => {
                let message = format!("{STREAM} and {RELAY} are both on");
                return Err(Failure::new(Kind::Config, message)
                    .hint("each publishes every event: leave one of them out"));
            }
            (true, false) => Some(Way::Tail),
            (false, true) => Some(Way::Relay),
            (false, false) => None,
        };
        if is_relayed && !outbox()?.is_on {
            let message = format!("{RELAY} has nothing to publish without {OUTBOX}");
            return Err(Failure::new(Kind::Config, message).hint(format!("set {OUTBOX}=true too")));
        }
        if way.is_some() && address.is_none() {
            let name = if is_relayed { RELAY } else { STREAM };
            let message = format!("{name} is on, and there is no bus to publish to");
            return Err(Failure::new(Kind::Config, message).hint(NAME_A_BUS));
        }
        let readers =
            SystemReaders { materialize: switch(MATERIALIZER)?, project: switch(PROJECTOR)? };
        if readers.any() && address.is_none() {
            let name = if readers.materialize { MATERIALIZER } else { PROJECTOR };
            let message = format!("{name} is on, and there is no bus to read from");
            return Err(Failure::new(Kind::Config, message).hint(NAME_A_BUS));
        }
        let (server_url, system_shards) = (server_url()?, system_shards()?);
        Ok(BusSetup { address, way, options, readers, server_url, system_shards })
    }
}

impl BusSetup {
    /// Begins to connect, if there is anything to connect to.
    pub(crate) fn open(&self) -> Option<Arc<dyn CommandReader>> {
        let address = self.address.clone()?;
        Some(Arc::new(NatsStream::open(address)))
    }

    /// Begins to announce commands to workers that listen on the bus, if there is one. `reached_at` is
    /// this server's address as far as it knows itself.
    pub(crate) fn announce(
        &self,
        bus: Option<&Arc<dyn CommandReader>>,
        stores: &Stores,
        control: &Control,
        reached_at: &str,
    ) -> Option<Announcing> {
        let server_url = self.server_url.as_deref().unwrap_or(reached_at);
        let system_shards = self.system_shards;
        let options = AnnouncingOptions { system_shards, ..AnnouncingOptions::new(server_url) };
        let databases = stores.shards.clone();
        let bus: Arc<dyn CommandBus> = bus?.clone();
        Some(Announcing::start(&options, databases, bus, control))
    }

    /// Begins to read the stream, if that is wanted.
    pub(crate) fn read(
        &self,
        bus: Option<&Arc<dyn CommandReader>>,
        control: &Control,
    ) -> Option<SystemReading> {
        let bus = bus.filter(|_| self.readers.any())?;
        Some(SystemReading::start(self.readers, &self.options, bus, control))
    }

    /// Begins to publish, if that is wanted.
    pub(crate) fn publish(
        &self,
        bus: Option<&Arc<dyn EventStream>>,
        stores: &Stores,
        control: &Control,
    ) -> Option<Publishing> {
        let (bus, commits) = (bus?, control.watch.commits());
        let (clock, options): (Arc<dyn Clock>, _) = (Arc::new(SystemClock), &self.options);
        Some(match self.way.as_ref()? {
            Way::Tail => {
                let databases = stores.databases();
                Publishing::tail(options, databases, bus, &commits, &clock, &control.metrics)
            }
            Way::Relay => {
                let store = stores.routed.clone();
                Publishing::relay(options, store, bus, &commits, &clock, &control.metrics)
            }
        })
    }
}

/// Where the bus is, if that was said.
pub(crate) fn address(url: Option<&str>) -> Result<Option<Address>, Failure> {
    let url = url.map(str::trim).filter(|url| !url.is_empty());
    url.map(Address::parse).transpose().map_err(|error| {
        // The value may hold a password, so it is not shown.
        Failure::new(Kind::Config, format!("{NATS_URL}: {error}"))
            .hint("use nats://user:password@host:port, several parted by commas")
    })
}

fn server_url() -> Result<Option<String>, Failure> {
    let url = setting(PUBLIC_URL).filter(|url| !url.trim().is_empty());
    match url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            let message = format!("{PUBLIC_URL}: '{url}' is no address");
            Err(Failure::new(Kind::Config, message)
                .hint("use http://host:port, as workers reach this server"))
        }
        url => Ok(url),
    }
}

fn system_shards() -> Result<u32, Failure> {
    let count = number("NOETL_COMMAND_SHARD_COUNT", 1..=1024)?;
    let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    Ok(if switch("NOETL_SHARD_SUBJECT_ROUTE")? { count } else { 1 })
}

/// How the stores keep their outbox.
pub(crate) fn outbox() -> Result<OutboxOptions, Failure> {
    let defaults = OutboxOptions::default();
    let lease = seconds("NOETL_OUTBOX_LEASE_SECS", 1, 86_400)?;
    Ok(OutboxOptions { is_on: switch(OUTBOX)?, lease: lease.unwrap_or(defaults.lease) })
}

fn options() -> Result<PublishingOptions, Failure> {
    let defaults = PublishingOptions::default();
    let batch = number("NOETL_EVENT_STREAM_BATCH", 1..=5000)?;
    let poll = number("NOETL_EVENT_STREAM_POLL_MS", 1..=3_600_000)?;
    let poll = poll.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    // A server refuses a window that is longer than what it keeps.
    let year = 366 * 86_400;
    let age_max = seconds("NOETL_EVENT_STREAM_RETENTION_SECS", 1, year)?;
    let age_max = age_max.unwrap_or(defaults.age_max);
    let window = seconds("NOETL_EVENT_STREAM_DEDUP_SECS", 1, year)?;
    let window = window.unwrap_or(defaults.duplicate_window.min(age_max));
    if window > age_max {
        let message =
            "NOETL_EVENT_STREAM_DEDUP_SECS is more than NOETL_EVENT_STREAM_RETENTION_SECS";
        return Err(Failure::new(Kind::Config, message)
            .hint("a message that is gone cannot be known any more"));
    }
    let lease = seconds("NOETL_EVENT_STREAM_LEASE_SECS", 1, 3600)?;
    Ok(PublishingOptions {
        batch: batch.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(defaults.batch),
        poll: poll.unwrap_or(defaults.poll),
        backfill: switch("NOETL_EVENT_STREAM_BACKFILL")?,
        duplicate_window: window,
        age_max,
        lease: lease.unwrap_or(defaults.lease),
    })
}

fn seconds(name: &str, least: i64, most: i64) -> Result<Option<Duration>, Failure> {
    let seconds = number(name, least..=most)?;
    Ok(seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
}
