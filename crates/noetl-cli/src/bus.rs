//! Configures the message bus, which announces commands and publishes events.

use std::sync::Arc;

use noetl_bus::{CommandBus, CommandConsumer, EventStream};
use noetl_bus_nats::{Address, NatsStream};
use noetl_config::Settings;
use noetl_config::tree::{Bus, Server};
use noetl_control::ControlPlane;
use noetl_model::Clock;
use noetl_publishing::{
    AnnouncerHandle, AnnouncerOptions, PublisherHandle, PublisherOptions, SystemConsumers,
    SystemConsumersHandle,
};
use noetl_store::SystemClock;

use crate::error::{CliError, ErrorKind};
use crate::outbox::OUTBOX;
use crate::settings;
use crate::stores::OpenStores;

const NATS_URL: &str = "NOETL_NATS_URL";
const STREAM: &str = "NOETL_EVENT_STREAM_ENABLED";
const RELAY: &str = "NOETL_OUTBOX_RELAY";
const MATERIALIZER: &str = "NOETL_MATERIALIZER_ENABLED";
const PROJECTOR: &str = "NOETL_PROJECTOR_ENABLED";
const PUBLIC_URL: &str = "NOETL_PUBLIC_SERVER_URL";

/// Hint for settings that require a bus when none is configured.
const NAME_A_BUS: &str = "name a NATS server with --nats-url or NOETL_NATS_URL";

/// Settings of the bus, decoded once at startup.
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

impl BusSetup {
    /// Returns the configured bus. Opens no connection.
    ///
    /// # Errors
    ///
    /// Returns a failure if the settings contradict each other, or require a bus and none is
    /// configured.
    pub(crate) fn configured(settings: &Settings) -> Result<Self, CliError> {
        let bus: Bus = settings::decode(settings)?;
        let address = address(settings, &bus)?;
        let options = options(settings, &bus)?;
        let name = |variable: &str| settings.name_of(variable);
        let way = match (bus.event_stream_enabled, bus.outbox_relay) {
            (true, true) => {
                let message = format!("{} and {} are both on", name(STREAM), name(RELAY));
                return Err(CliError::new(ErrorKind::Config, message)
                    .hint("each publishes every event: leave one of them out"));
            }
            (true, false) => Some(Way::Tail),
            (false, true) => Some(Way::Relay),
            (false, false) => None,
        };
        if bus.outbox_relay && !bus.outbox_enabled {
            let message = format!("{} has nothing to publish without {OUTBOX}", name(RELAY));
            return Err(
                CliError::new(ErrorKind::Config, message).hint(format!("set {OUTBOX}=true too"))
            );
        }
        if way.is_some() && address.is_none() {
            let name = name(if bus.outbox_relay { RELAY } else { STREAM });
            let message = format!("{name} is on, and there is no bus to publish to");
            return Err(CliError::new(ErrorKind::Config, message).hint(NAME_A_BUS));
        }
        let readers = SystemConsumers {
            materialize: bus.materializer_enabled,
            project: bus.projector_enabled,
        };
        if readers.any() && address.is_none() {
            let name = name(if readers.materialize { MATERIALIZER } else { PROJECTOR });
            let message = format!("{name} is on, and there is no bus to read from");
            return Err(CliError::new(ErrorKind::Config, message).hint(NAME_A_BUS));
        }
        let server_url = server_url(settings)?;
        let system_shards = if bus.shard_subject_route { bus.command_shard_count } else { 1 };
        Ok(Self { address, way, options, readers, server_url, system_shards })
    }

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
        let databases = stores.shards.iter().map(|shard| shard.clone() as _).collect();
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

/// Parses the address of the bus. A blank text means that there is no bus.
pub(crate) fn address(settings: &Settings, bus: &Bus) -> Result<Option<Address>, CliError> {
    let url = bus.nats_url.as_ref().map(|url| url.expose().trim()).filter(|url| !url.is_empty());
    url.map(Address::parse).transpose().map_err(|error| {
        // The value may contain a password, so the message omits it.
        CliError::new(ErrorKind::Config, format!("{}: {error}", settings.name_of(NATS_URL)))
            .hint("use nats://user:password@host:port, or a comma-separated list of them")
    })
}

fn server_url(settings: &Settings) -> Result<Option<String>, CliError> {
    let server: Server = settings::decode(settings)?;
    match server.public_url.filter(|url| !url.trim().is_empty()) {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            // The value may contain a password.
            let message = format!("{} is not an HTTP address", settings.name_of(PUBLIC_URL));
            Err(CliError::new(ErrorKind::Config, message)
                .hint("use http://host:port, as workers reach this server"))
        }
        url => Ok(url),
    }
}

fn options(settings: &Settings, bus: &Bus) -> Result<PublisherOptions, CliError> {
    let age_max = bus.event_stream_retention_secs;
    // NATS rejects a dedup window that is longer than the retention of the stream.
    let usual = PublisherOptions::default().duplicate_window.min(age_max);
    let duplicate_window = bus.event_stream_dedup_secs.unwrap_or(usual);
    if duplicate_window > age_max {
        let message = format!(
            "{} is more than {}",
            settings.name_of("NOETL_EVENT_STREAM_DEDUP_SECS"),
            settings.name_of("NOETL_EVENT_STREAM_RETENTION_SECS")
        );
        return Err(CliError::new(ErrorKind::Config, message)
            .hint("a message that is gone cannot be known any more"));
    }
    Ok(PublisherOptions {
        batch: bus.event_stream_batch,
        poll: bus.event_stream_poll_ms,
        backfill: bus.event_stream_backfill,
        duplicate_window,
        age_max,
        lease: bus.event_stream_lease_secs,
    })
}
