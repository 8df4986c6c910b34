//! Runs a control plane with its local worker, for `noetl run`, `dev`, and `server`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_catalog::{QuotaSettings, QuotaSettingsError};
use noetl_config::tree::{Executions, Secrets, Server, Steps};
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

use crate::bus::BusSetup;
use crate::egress::egress_policy;
use crate::error::{CliError, ErrorKind};
use crate::settings::{self, section};
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
    /// Location of the databases, from flags and settings.
    pub(crate) location: StoreLocation,
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
        let (server, executions): (Server, Executions) = (section()?, section()?);
        let (steps, secrets): (Steps, Secrets) = (section()?, section()?);
        let usual = Options::default();
        let mut tools = tools(&steps)?;
        isolation::own(&mut tools.own, &setup.location, &setup.own);
        if setup.slots > 0 {
            isolation::settle(&mut tools, &steps).await?;
        }
        let stores = setup.location.open().await?;
        let options = Options {
            slots: setup.slots,
            machine: server.machine_id.and_then(MachineId::new),
            blobs: results::blobs()?,
            env: Arc::new(template_environment(&executions)),
            resume: setup.resume,
            // `noetl run` must not start executions of schedules.
            schedules: setup.resume,
            encryption_key: setup.encryption_key,
            audit_required: secrets.audit_required,
            retention: setup.retention,
            lease: executions.lease_secs.unwrap_or(usual.lease),
            worker_lease: executions.worker_lease_secs,
            lost_reports: executions.lost_report_secs,
            caps: caps(&executions),
            replay_window: executions.webhook_replay_secs,
            quotas: quotas(&executions)?,
            notices: notifications::notices(tools.clone(), &executions)?,
            traces,
            ..usual
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

/// Returns the limits of a single execution.
fn caps(executions: &Executions) -> ExecutionLimits {
    ExecutionLimits {
        loop_items: executions.loop_items_max,
        in_flight: executions.loop_in_flight,
        depth: executions.playbook_depth_max,
        events: executions.events_max,
    }
}

/// Returns the quotas of tenants.
pub(crate) fn quotas(executions: &Executions) -> Result<QuotaSettings, CliError> {
    const QUOTAS: &str = "NOETL_QUOTAS";
    let text = executions.quotas.as_deref().unwrap_or_default();
    text.parse().map_err(|error: QuotaSettingsError| {
        let name = settings::current().name_of(QUOTAS);
        CliError::new(ErrorKind::Config, format!("{name}: {error}"))
            .hint(format!("as in {QUOTAS}='executions=1000 starts=50; acme: executions=10'"))
    })
}

/// Returns the variables that templates see as `env`: only those that the settings name.
fn template_environment(executions: &Executions) -> BTreeMap<String, String> {
    let names = executions.template_env.iter().flatten();
    names.filter_map(|name| Some((name.clone(), settings::variable(name)?))).collect()
}

/// Returns the options of the tools that this process runs.
pub(crate) fn tools(steps: &Steps) -> Result<noetl_tools::Options, CliError> {
    let mut options = noetl_tools::Options {
        egress: egress_policy()?,
        python: steps.python.clone(),
        ..noetl_tools::Options::default()
    };
    isolation::isolate(&mut options, steps)?;
    Ok(options)
}
