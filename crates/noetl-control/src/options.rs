//! Settings of a control plane.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::QuotaSettings;
use noetl_engine::ExecutionLimits;
use noetl_journal::{Notifications, Traces};
use noetl_model::MachineId;
use noetl_remote::LEASE;
use noetl_secrets::EncryptionKey;
use noetl_store::{Blobs, RetentionPolicy};

/// Settings of a control plane.
#[derive(Clone)]
pub struct Options {
    /// Number of commands that the worker in this process runs at a time; 0 for no worker. Default:
    /// 16.
    pub slots: usize,
    /// Machine ID in minted IDs; any free one if `None`.
    pub machine: Option<MachineId>,
    /// Maximum size of cached execution state, in bytes. Evicted state is read from the store.
    /// Default: 256 MiB.
    pub cache_bytes: usize,
    /// Store of large results; the database if `None`.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// Variables that templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Duration of the process lease. Other processes take over the work of a process that has not
    /// renewed its lease for this long. A process that cannot reach its store for longer stops
    /// until it has a new name. Default: 90 s.
    pub lease: Duration,
    /// Duration of a lease of a remote worker that names its commands in renewals. Default:
    /// [`LEASE`].
    pub worker_lease: Duration,
    /// Time after which a command of a worker that doesn't name its commands is reissued, counted from
    /// a restart of the server or a gap in the worker's heartbeats. Default: 5 minutes.
    pub lost_reports: Duration,
    /// Whether unfinished executions resume at startup. Default: `true`.
    pub resume: bool,
    /// Whether this process starts scheduled runs. Default: `true`.
    pub schedules: bool,
    /// Encryption key of credentials. Without it, credentials cannot be stored or read.
    pub encryption_key: Option<EncryptionKey>,
    /// Whether a secret is withheld if its use cannot be recorded. Default: `false`.
    pub audit_required: bool,
    /// Limits of a single execution.
    pub caps: ExecutionLimits,
    /// Quotas of each tenant. Default: unlimited.
    pub quotas: QuotaSettings,
    /// Dedup window of webhook signatures, for listeners without `dedup` and without a signed time.
    /// Zero turns it off. Default: 5 minutes.
    pub replay_window: Duration,
    /// Notifications about executions. Default: none.
    pub notices: Notifications,
    /// Retention policy, applied once a day; nothing is purged if `None`.
    pub retention: Option<RetentionPolicy>,
    /// Export of trace spans. Default: none.
    pub traces: Traces,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            slots: 16,
            machine: None,
            cache_bytes: 256 << 20,
            blobs: None,
            env: Arc::default(),
            lease: Duration::from_secs(90),
            worker_lease: LEASE,
            lost_reports: Duration::from_secs(300),
            resume: true,
            schedules: true,
            encryption_key: None,
            audit_required: false,
            caps: ExecutionLimits::default(),
            quotas: QuotaSettings::default(),
            replay_window: Duration::from_secs(300),
            notices: Notifications::default(),
            retention: None,
            traces: Traces::default(),
        }
    }
}

impl Options {
    pub(crate) fn secrets(&self) -> noetl_secrets::Options {
        let (encryption_key, audit_required) = (self.encryption_key.clone(), self.audit_required);
        noetl_secrets::Options { encryption_key, audit_required }
    }

    pub(crate) fn journal(&self) -> noetl_journal::Options {
        noetl_journal::Options {
            slots: self.slots,
            cache_bytes: self.cache_bytes,
            env: self.env.clone(),
            lease: self.lease,
            lost_reports: self.lost_reports,
            resume: self.resume,
            limits: self.caps,
            notifications: self.notices.clone(),
            traces: self.traces.clone(),
        }
    }

    pub(crate) fn remote(&self) -> noetl_remote::Options {
        noetl_remote::Options { lease: self.worker_lease }
    }

    pub(crate) fn triggers(&self) -> noetl_triggers::Options {
        noetl_triggers::Options { schedules: self.schedules, replay_window: self.replay_window }
    }
}
