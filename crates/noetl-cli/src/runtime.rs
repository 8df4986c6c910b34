//! Runs a control plane with its local worker, for `noetl run`, `dev`, and `server`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_catalog::{QuotaSettings, QuotaSettingsError};
use noetl_control::{ControlPlane, Options};
use noetl_engine::ExecutionLimits;
use noetl_journal::{OpenError, SubmitError};
use noetl_local::Worker;
use noetl_model::MachineId;
use noetl_otlp::ExporterTask;
use noetl_publishing::{AnnouncerHandle, PublisherHandle, SystemConsumersHandle};
use noetl_secrets::EncryptionKey;
use noetl_store::{RetentionPolicy, SystemClock};
use noetl_tools::ToolRegistry;
use tokio::task::JoinHandle;

use crate::arguments::IsolationArguments;
use crate::bus::BusSetup;
use crate::egress::fence;
use crate::error::{CliError, ErrorKind};
use crate::settings::{number, setting, switch};
use crate::stores::{OpenStores, StoreLocation};
use crate::{isolation, notifications, results, signals, traces};

/// A running control plane with its local worker.
pub(crate) struct LocalRuntime {
    pub(crate) control: Arc<ControlPlane>,
    /// Stream to which events are published, if configured.
    pub(crate) bus: Option<Arc<dyn EventStream>>,
    publishing: Option<PublisherHandle>,
    announcing: Option<AnnouncerHandle>,
    reading: Option<SystemConsumersHandle>,
    exporter: Option<ExporterTask>,
    stores: OpenStores,
    worker: JoinHandle<()>,
}

/// Settings of a control plane that depend on the verb.
pub(crate) struct Setup {
    /// Location of the databases.
    pub(crate) place: StoreLocation,
    /// Maximum number of steps that the local worker runs at a time; 0 for none.
    pub(crate) slots: usize,
    /// Whether to resume unfinished executions of earlier processes, and to run schedules.
    pub(crate) resume: bool,
    /// Time for running steps to finish on shutdown.
    pub(crate) grace: Duration,
    /// Key that encrypts credentials. Without it, credentials are unavailable.
    pub(crate) encryption_key: Option<EncryptionKey>,
    /// Retention policy. `None` retains everything.
    pub(crate) retention: Option<RetentionPolicy>,
    /// Settings of the message bus.
    pub(crate) bus: BusSetup,
    /// URL at which workers reach this server; empty if it has no listener.
    pub(crate) reached_at: String,
    /// Directories with files of the program itself. Steps can't access them.
    pub(crate) own: Vec<PathBuf>,
}

impl LocalRuntime {
    pub(crate) async fn open(setup: Setup) -> Result<Self, CliError> {
        signals::survive_file_size_limit();
        let (traces, exporter) = traces::open()?;
        let said = IsolationArguments::default();
        let mut tools = tools(&said)?;
        isolation::own(&mut tools.own, &setup.place, &setup.own);
        if setup.slots > 0 {
            isolation::settle(&mut tools, &said).await?;
        }
        let stores = setup.place.open().await?;
        let options = Options {
            slots: setup.slots,
            machine: machine()?,
            blobs: results::place()?,
            env: Arc::new(template_environment()),
            resume: setup.resume,
            // `noetl run` must not start executions of schedules.
            schedules: setup.resume,
            encryption_key: setup.encryption_key,
            audit_required: switch("NOETL_SECRET_AUDIT_REQUIRED")?,
            retention: setup.retention,
            lease: lease()?,
            worker_lease: worker_lease()?,
            lost_reports: lost_reports()?,
            caps: caps()?,
            replay_window: replay_window()?,
            quotas: quotas()?,
            notices: notifications::notices(tools.clone())?,
            traces,
            ..Options::default()
        };
        let (routed, shards) = (stores.routed.clone(), stores.shards.clone());
        let control =
            ControlPlane::open_sharded(options, routed, shards, Arc::new(SystemClock)).await;
        let control = Arc::new(control.map_err(|error| not_started(&error))?);
        let worker = Worker::new(control.journal.local.clone(), ToolRegistry::standard(tools));
        let worker = tokio::spawn(worker.run(setup.grace));
        let commands = setup.bus.open();
        let bus: Option<Arc<dyn EventStream>> = match &commands {
            Some(bus) => Some(bus.clone()),
            None => None,
        };
        let publishing = setup.bus.publish(bus.as_ref(), &stores, &control);
        let announcing =
            setup.bus.announce(commands.as_ref(), &stores, &control, &setup.reached_at);
        let reading = setup.bus.read(commands.as_ref(), &control);
        Ok(Self { control, bus, publishing, announcing, reading, exporter, stores, worker })
    }

    /// Stops claiming commands, waits for running ones, and closes the database.
    pub(crate) async fn close(self) {
        self.control.drain();
        // A worker that panicked has nothing left to report.
        let _ = self.worker.await;
        // The stream consumers write to the control plane, so they stop first.
        if let Some(reading) = self.reading {
            reading.close().await;
        }
        self.control.close().await;
        drop(self.control);
        if let Some(announcing) = self.announcing {
            announcing.close().await;
        }
        if let Some(publishing) = self.publishing {
            publishing.close().await;
        }
        self.stores.close().await;
        if let Some(exporter) = self.exporter {
            exporter.close().await;
        }
    }
}

fn not_started(error: &OpenError) -> CliError {
    let kind = match error {
        OpenError::Identity(_) | OpenError::Store(_) | OpenError::Resume(SubmitError::Store(_)) => {
            ErrorKind::Config
        }
        OpenError::Resume(_) => ErrorKind::Internal,
    };
    CliError::from_error(kind, error)
}

/// Reads the machine ID of this process. If it is not set, the process acquires a free one.
fn machine() -> Result<Option<MachineId>, CliError> {
    let wanted = number("NOETL_SERVER_MACHINE_ID", 0..=i64::from(MachineId::MAX))?;
    Ok(wanted.and_then(|number| u16::try_from(number).ok()).and_then(MachineId::new))
}

/// Reads the limits of a single execution.
fn caps() -> Result<ExecutionLimits, CliError> {
    let most = |name, range: std::ops::RangeInclusive<i64>, default: u32| {
        let number = number(name, range)?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).unwrap_or(default))
    };
    let defaults = ExecutionLimits::default();
    Ok(ExecutionLimits {
        loop_items: most("NOETL_LOOP_ITEMS_MAX", 1..=10_000_000, defaults.loop_items)?,
        in_flight: most("NOETL_LOOP_IN_FLIGHT", 1..=100_000, defaults.in_flight)?,
        depth: most("NOETL_PLAYBOOK_DEPTH_MAX", 1..=1000, defaults.depth)?,
        events: number("NOETL_EVENTS_MAX", 100..=i64::MAX)?
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(defaults.events),
    })
}

/// Reads the dedup window of webhook signatures from `NOETL_WEBHOOK_REPLAY_SECS`: 0 to 7 days, in
/// seconds. 0 turns deduplication by signature off.
fn replay_window() -> Result<Duration, CliError> {
    let seconds = number("NOETL_WEBHOOK_REPLAY_SECS", 0..=7 * 24 * 3600)?;
    let seconds = seconds.and_then(|number| u64::try_from(number).ok());
    Ok(seconds.map_or(Options::default().replay_window, Duration::from_secs))
}

/// Reads the quotas of tenants from `NOETL_QUOTAS`.
fn quotas() -> Result<QuotaSettings, CliError> {
    const QUOTAS: &str = "NOETL_QUOTAS";
    let text = setting(QUOTAS).unwrap_or_default();
    text.parse().map_err(|error: QuotaSettingsError| {
        CliError::new(ErrorKind::Config, format!("{QUOTAS}: {error}"))
            .hint(format!("as in {QUOTAS}='executions=1000 starts=50; acme: executions=10'"))
    })
}

/// Reads the lease duration of this process from `NOETL_LEASE_SECS`: 3 to 3,600 seconds. Other
/// processes take over its work when the lease expires.
fn lease() -> Result<Duration, CliError> {
    let seconds = number("NOETL_LEASE_SECS", 3..=3600)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().lease, Duration::from_secs))
}

/// Reads the lease duration of remote workers from `NOETL_WORKER_LEASE_SECS`: 3 to 3,600 seconds.
/// Other workers get the commands of a worker whose lease expires.
fn worker_lease() -> Result<Duration, CliError> {
    let seconds = number("NOETL_WORKER_LEASE_SECS", 3..=3600)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().worker_lease, Duration::from_secs))
}

/// Reads the time for which a published worker may hold a command whose report may be lost, from
/// `NOETL_LOST_REPORT_SECS`: 5 to 86,400 seconds.
fn lost_reports() -> Result<Duration, CliError> {
    let seconds = number("NOETL_LOST_REPORT_SECS", 5..=86_400)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().lost_reports, Duration::from_secs))
}

/// Returns the variables that templates see as `env`: only those named in `NOETL_TEMPLATE_ENV`.
fn template_environment() -> BTreeMap<String, String> {
    let names = setting("NOETL_TEMPLATE_ENV").unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.filter_map(|name| setting(name).map(|value| (name.to_owned(), value))).collect()
}

/// Returns the options of the tools that this process runs.
pub(crate) fn tools(said: &IsolationArguments) -> Result<noetl_tools::Options, CliError> {
    let mut options = noetl_tools::Options { fence: fence()?, ..noetl_tools::Options::default() };
    if let Some(python) = setting("NOETL_PYTHON") {
        options.python = PathBuf::from(python);
    }
    isolation::isolate(&mut options, said)?;
    Ok(options)
}
