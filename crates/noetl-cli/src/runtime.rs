//! A control plane with its worker, as `run` and `dev` use it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_control::{
    Announcing, Caps, Control, EncryptionKey, OpenError, Options, Publishing, QuotaSettings,
    QuotaSettingsError, SubmitError, SystemReading,
};
use noetl_model::MachineId;
use noetl_otlp::Exporter;
use noetl_store::{Policy, SystemClock};
use noetl_tools::Registry;
use noetl_worker::Worker;
use tokio::task::JoinHandle;

use crate::arguments::IsolationArguments;
use crate::bus::BusSetup;
use crate::failure::{Failure, Kind};
use crate::fence::fence;
use crate::settings::{number, setting, switch};
use crate::stores::{Place, Stores};
use crate::{isolation, notices, results, signals, traces};

/// A control plane with its worker.
pub(crate) struct Runtime {
    pub(crate) control: Arc<Control>,
    /// Where events are published, if that was named.
    pub(crate) bus: Option<Arc<dyn EventStream>>,
    publishing: Option<Publishing>,
    announcing: Option<Announcing>,
    reading: Option<SystemReading>,
    exporter: Option<Exporter>,
    stores: Stores,
    worker: JoinHandle<()>,
}

/// What `run` and `dev` differ in.
pub(crate) struct Setup {
    /// Where everything is kept.
    pub(crate) place: Place,
    /// How many steps run at a time.
    pub(crate) slots: usize,
    /// Whether unfinished executions of an earlier process go on.
    pub(crate) resume: bool,
    /// How long running steps may take to end when the process is told to stop.
    pub(crate) grace: Duration,
    /// What credentials are encrypted with; without it there are none.
    pub(crate) encryption_key: Option<EncryptionKey>,
    /// How long what is kept; everything stays when there is none.
    pub(crate) retention: Option<Policy>,
    /// Where events are published and commands are announced.
    pub(crate) bus: BusSetup,
    /// Where this server listens; empty when nobody can reach it.
    pub(crate) reached_at: String,
    /// Directories that the program keeps its files in. Steps cannot use them.
    pub(crate) own: Vec<PathBuf>,
}

impl Runtime {
    pub(crate) async fn open(setup: Setup) -> Result<Self, Failure> {
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
            // Whoever runs one playbook and leaves starts nothing of others.
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
            notices: notices::notices(tools.clone())?,
            traces,
            ..Options::default()
        };
        let (routed, shards) = (stores.routed.clone(), stores.shards.clone());
        let control = Control::open_sharded(options, routed, shards, Arc::new(SystemClock)).await;
        let control = Arc::new(control.map_err(|error| not_started(&error))?);
        let worker = Worker::new(control.local.clone(), Registry::standard(tools));
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

    /// Stops taking commands, lets running ones end, and closes the database.
    pub(crate) async fn close(self) {
        self.control.drain();
        // A worker that panicked has nothing left to report.
        let _ = self.worker.await;
        // What is read needs a control plane that takes it.
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

fn not_started(error: &OpenError) -> Failure {
    let kind = match error {
        OpenError::Identity(_) | OpenError::Store(_) | OpenError::Resume(SubmitError::Store(_)) => {
            Kind::Config
        }
        OpenError::Resume(_) => Kind::Internal,
    };
    Failure::from_error(kind, error)
}

/// The number this process claims in the ids it mints; it takes a free one when none is named.
fn machine() -> Result<Option<MachineId>, Failure> {
    let wanted = number("NOETL_SERVER_MACHINE_ID", 0..=i64::from(MachineId::MAX))?;
    Ok(wanted.and_then(|number| u16::try_from(number).ok()).and_then(MachineId::new))
}

/// What one execution may ask for.
fn caps() -> Result<Caps, Failure> {
    let most = |name, range: std::ops::RangeInclusive<i64>, default: u32| {
        let number = number(name, range)?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).unwrap_or(default))
    };
    let defaults = Caps::default();
    Ok(Caps {
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
fn replay_window() -> Result<Duration, Failure> {
    let seconds = number("NOETL_WEBHOOK_REPLAY_SECS", 0..=7 * 24 * 3600)?;
    let seconds = seconds.and_then(|number| u64::try_from(number).ok());
    Ok(seconds.map_or(Options::default().replay_window, Duration::from_secs))
}

/// How much each tenant may take up.
fn quotas() -> Result<QuotaSettings, Failure> {
    const QUOTAS: &str = "NOETL_QUOTAS";
    let text = setting(QUOTAS).unwrap_or_default();
    text.parse().map_err(|error: QuotaSettingsError| {
        Failure::new(Kind::Config, format!("{QUOTAS}: {error}"))
            .hint(format!("as in {QUOTAS}='executions=1000 starts=50; acme: executions=10'"))
    })
}

/// How long others wait for this process when it falls silent.
fn lease() -> Result<Duration, Failure> {
    let seconds = number("NOETL_LEASE_SECS", 3..=3600)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().lease, Duration::from_secs))
}

/// How long a worker elsewhere may be silent before others are given what it holds.
fn worker_lease() -> Result<Duration, Failure> {
    let seconds = number("NOETL_WORKER_LEASE_SECS", 3..=3600)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().worker_lease, Duration::from_secs))
}

/// Returns the time for which a published worker may hold a command whose report may be lost.
fn lost_reports() -> Result<Duration, Failure> {
    let seconds = number("NOETL_LOST_REPORT_SECS", 5..=86_400)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map_or(Options::default().lost_reports, Duration::from_secs))
}

/// What templates see as `env`: the variables named in `NOETL_TEMPLATE_ENV`, and no others.
fn template_environment() -> BTreeMap<String, String> {
    let names = setting("NOETL_TEMPLATE_ENV").unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.filter_map(|name| setting(name).map(|value| (name.to_owned(), value))).collect()
}

/// How the tools of this process are made.
pub(crate) fn tools(said: &IsolationArguments) -> Result<noetl_tools::Options, Failure> {
    let mut options = noetl_tools::Options { fence: fence()?, ..noetl_tools::Options::default() };
    if let Some(python) = setting("NOETL_PYTHON") {
        options.python = PathBuf::from(python);
    }
    isolation::isolate(&mut options, said)?;
    Ok(options)
}
