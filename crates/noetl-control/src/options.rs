//! What a control plane can be told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Caps;
use noetl_model::MachineId;
use noetl_store::{Blobs, Policy};

use crate::leasing::LEASE;
use crate::notices::Notices;
use crate::quotas::QuotaSettings;
use crate::sealing::EncryptionKey;
use crate::traces::Traces;

/// Settings of one control plane.
#[derive(Clone)]
pub struct Options {
    /// How many commands a worker in this process runs at a time; 0 for none.
    pub slots: usize,
    /// This process's number in the ids it mints; any that is free when `None`.
    pub machine: Option<MachineId>,
    /// How many bytes of execution state are kept in memory. Evicted state is read back.
    pub cache_bytes: usize,
    /// Where large results are kept; in the database when `None`.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// What templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// How long others wait for a process that fell silent before they take up what it held. A
    /// process that is cut off from its store for longer stops until it has a new name.
    pub lease: Duration,
    /// How long a worker elsewhere that names what it holds may be silent before others are given it.
    pub worker_lease: Duration,
    /// Time after which a command of a worker that doesn't name its commands is reissued, counted from
    /// a restart of the server or a gap in the worker's heartbeats. Default: 5 minutes.
    pub lost_reports: Duration,
    /// Whether unfinished executions found at the start go on.
    pub resume: bool,
    /// Whether what is due by the clock is started by this process.
    pub schedules: bool,
    /// What credentials are encrypted with; without it there are none.
    pub encryption_key: Option<EncryptionKey>,
    /// Whether no secret is given whose use cannot be recorded.
    pub audit_required: bool,
    /// What one execution may ask for.
    pub caps: Caps,
    /// How much each tenant may take up. Default: as much as it likes.
    pub quotas: QuotaSettings,
    /// Dedup window of webhook signatures, for listeners without `dedup` and without a signed time.
    /// Zero turns it off. Default: 5 minutes.
    pub replay_window: Duration,
    /// How people are told of executions; nobody is when `None`.
    pub notices: Notices,
    /// How long what is kept, applied once a day; everything stays when `None`.
    pub retention: Option<Policy>,
    /// Where spans go; nowhere by default.
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
            caps: Caps::default(),
            quotas: QuotaSettings::default(),
            replay_window: Duration::from_secs(300),
            notices: Notices::default(),
            retention: None,
            traces: Traces::default(),
        }
    }
}
