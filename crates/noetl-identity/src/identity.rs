//! Identity of this process among those that share a store: its machine ID, and the name its local
//! worker claims under. Both depend on a lease. A process that lost its lease mints no IDs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::command::LOCAL_WORKER;
use noetl_model::{MachineId, Timestamp};
use noetl_store::{CommandRow, IdentityStore, Lease, LeaseStore, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ids::{self, IdGenerator};

/// Prefix of lease names, followed by the machine ID.
pub const LEASES: &str = "machine/";

/// Renewals per lease duration. A process tolerates an unavailable store for all but one of these
/// parts of the lease.
const RENEWALS: u32 = 3;

/// Retry interval of a failed renewal, as a fraction of the lease duration (1/45).
const RETRIES: u32 = 45;

/// Errors of acquiring a machine ID.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Another process holds the requested machine ID.
    #[error("machine number {number} is in use by {holder}")]
    Taken { number: MachineId, holder: String },
    #[error("all {} machine numbers are in use", u32::from(MachineId::MAX) + 1)]
    None,
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Machine ID and worker name of this process. Cheap to clone.
#[derive(Clone)]
pub struct ProcessIdentity {
    store: Arc<dyn IdentityStore>,
    holder: Arc<str>,
    /// Duration of a lease between renewals.
    ttl: Duration,
    state: Arc<Mutex<IdentityState>>,
}

struct IdentityState {
    lease: Lease,
    machine: MachineId,
    worker: Arc<str>,
    /// Time until which the lease is certainly held, by the monotonic clock of this process.
    until: Instant,
}

impl ProcessIdentity {
    /// Acquires a lease on the requested machine ID, or on any if `wanted` is `None`.
    pub async fn acquire(
        store: Arc<dyn IdentityStore>,
        wanted: Option<MachineId>,
        ttl: Duration,
    ) -> Result<Self, IdentityError> {
        let holder: Arc<str> = format!("{}-{:016x}", std::process::id(), ids::entropy()).into();
        let state = lease(&*store, &holder, wanted, ttl).await?;
        Ok(Self { store, holder, ttl, state: Arc::new(Mutex::new(state)) })
    }

    pub fn machine(&self) -> MachineId {
        self.lock().machine
    }

    /// Returns the name under which the local worker claims commands.
    pub fn worker(&self) -> Arc<str> {
        self.lock().worker.clone()
    }

    /// Returns the leases of other processes that share the store.
    pub async fn others(&self) -> Result<Vec<Lease>, StoreError> {
        let mut live = self.store.live(LEASES).await?;
        live.retain(|lease| *lease.holder != *self.holder);
        Ok(live)
    }

    /// Returns `true` if this process certainly still holds its machine ID.
    pub fn is_held(&self) -> bool {
        Instant::now() < self.lock().until
    }

    /// Renews the lease until the control plane shuts down, then releases it. Acquires another
    /// machine ID if the lease was lost.
    pub async fn renew_until_closed(self, ids: IdGenerator, closing: CancellationToken) {
        let renew_after = self.ttl / RENEWALS;
        let mut pause = renew_after;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = closing.cancelled() => break,
            }
            pause = match self.renew(&ids).await {
                Ok(()) => renew_after,
                Err(error) => {
                    warn!(%error, "failed to renew machine ID lease, retrying");
                    self.ttl / RETRIES
                }
            };
        }
        let lease = self.lock().lease.clone();
        // If the release fails, the lease expires by itself.
        let _ = self.store.release(&lease).await;
    }

    async fn renew(&self, ids: &IdGenerator) -> Result<(), IdentityError> {
        let (lease, asked) = (self.lock().lease.clone(), Instant::now());
        if self.store.renew(&lease, self.ttl).await.map_err(IdentityError::Store)? {
            self.lock().until = asked + self.ttl;
            return Ok(());
        }
        // Other processes may have acted on the expired lease, so this process continues under a
        // new machine ID and worker name.
        let state = self::lease(&*self.store, &self.holder, None, self.ttl).await?;
        info!(machine = %state.machine, "acquired new machine ID");
        // The previous holder may have minted IDs by a clock that is ahead of this one.
        if let Some(newest) = self.store.newest_id().await.map_err(IdentityError::Store)? {
            ids.advance_past(newest);
        }
        ids.change_machine(state.machine);
        *self.lock() = state;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IdentityState> {
        // Every critical section is a few assignments that cannot panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn lease(
    store: &dyn IdentityStore,
    holder: &str,
    wanted: Option<MachineId>,
    ttl: Duration,
) -> Result<IdentityState, IdentityError> {
    let asked = Instant::now();
    let (machine, lease) = match wanted {
        Some(number) => {
            let name = format!("{LEASES}{number}");
            let taken = store.acquire(&name, holder, ttl).await.map_err(IdentityError::Store)?;
            let Some(lease) = taken else {
                let other = store.lease(&name).await.map_err(IdentityError::Store)?;
                let holder = other.map_or_else(|| "another process".into(), |lease| lease.holder);
                return Err(IdentityError::Taken { number, holder });
            };
            (number, lease)
        }
        None => {
            let taken = store.acquire_any(LEASES, 0..MachineId::MAX + 1, holder, ttl).await;
            let (number, lease) =
                taken.map_err(IdentityError::Store)?.ok_or(IdentityError::None)?;
            (MachineId::new(number).ok_or(IdentityError::None)?, lease)
        }
    };
    let worker = if store.is_shared() { shared_name(&lease) } else { LOCAL_WORKER.to_owned() };
    Ok(IdentityState { machine, worker: worker.into(), lease, until: asked + ttl })
}

/// Returns the worker name `local:<lease>:<epoch>`, by which other processes check whether this one
/// is alive.
fn shared_name(lease: &Lease) -> String {
    format!("{LOCAL_WORKER}:{}:{}", lease.name, lease.epoch)
}

/// Returns the time until which a local worker of another process is certainly alive, or `None` if
/// `worker` has no lease in `live`.
pub fn lease_of(worker: &str, live: &[Lease]) -> Option<Timestamp> {
    live.iter().find(|lease| shared_name(lease) == worker).map(|lease| lease.until)
}

/// Returns the live leases, read after the commands `read`. A process that started in between and
/// claimed one of the commands is then included.
pub async fn alive_after(
    store: &dyn LeaseStore,
    read: &[CommandRow],
) -> Result<Vec<Lease>, StoreError> {
    match read.iter().any(|row| row.worker.is_some()) {
        true => store.live(LEASES).await,
        false => Ok(Vec::new()),
    }
}

/// Returns `true` if `worker` is the local worker of a process whose lease is not in `live`.
pub fn is_gone(worker: &str, live: &[Lease]) -> bool {
    let is_ours = worker.starts_with(&format!("{LOCAL_WORKER}:{LEASES}"));
    is_ours && !live.iter().any(|lease| shared_name(lease) == worker)
}
