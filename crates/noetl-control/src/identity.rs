//! Who this process is among those that share a store: a machine number that nobody else has, and
//! the name its worker claims under. Both are leased; a process that lost its lease stops minting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{MachineId, Timestamp};
use noetl_store::{CommandRow, Lease, Store, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ids::{self, Ids};
use crate::local::LOCAL_WORKER;

/// The names of the leases, before the number.
pub(crate) const LEASES: &str = "machine/";

/// How often a lease is renewed while it lasts once: a process may be cut off from its store for all
/// but one of these parts of it.
const RENEWALS: u32 = 3;

/// How soon a renewal is tried again that the store did not answer, in parts of the lease.
const RETRIES: u32 = 45;

/// Why a process has no number.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The number that was asked for is another's.
    #[error("machine number {number} is in use by {holder}")]
    Taken { number: MachineId, holder: String },
    #[error("all {} machine numbers are in use", u32::from(MachineId::MAX) + 1)]
    None,
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// This process's number and name. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Identity {
    store: Arc<dyn Store>,
    holder: Arc<str>,
    /// How long a lease lasts.
    ttl: Duration,
    state: Arc<Mutex<State>>,
}

struct State {
    lease: Lease,
    machine: MachineId,
    worker: Arc<str>,
    /// Until when the lease certainly holds, by this process's own clock, which cannot be set.
    until: Instant,
}

impl Identity {
    /// Leases the number that is wanted, or any.
    pub(crate) async fn take(
        store: Arc<dyn Store>,
        wanted: Option<MachineId>,
        ttl: Duration,
    ) -> Result<Self, IdentityError> {
        let holder: Arc<str> = format!("{}-{:016x}", std::process::id(), ids::entropy()).into();
        let state = lease(&*store, &holder, wanted, ttl).await?;
        Ok(Self { store, holder, ttl, state: Arc::new(Mutex::new(state)) })
    }

    pub(crate) fn machine(&self) -> MachineId {
        self.lock().machine
    }

    /// The name under which the worker in this process claims.
    pub(crate) fn worker(&self) -> Arc<str> {
        self.lock().worker.clone()
    }

    /// Returns the leases of other processes that share the store.
    pub(crate) async fn others(&self) -> Result<Vec<Lease>, StoreError> {
        let mut live = self.store.live(LEASES).await?;
        live.retain(|lease| *lease.holder != *self.holder);
        Ok(live)
    }

    /// Whether the number is certainly still this process's.
    pub(crate) fn is_held(&self) -> bool {
        Instant::now() < self.lock().until
    }

    /// Renews the lease until the control plane closes, then gives it back. A lost number is
    /// replaced by another.
    pub(crate) async fn keep(self, ids: Ids, closing: CancellationToken) {
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
                    warn!(%error, "the machine number's lease was not renewed");
                    self.ttl / RETRIES
                }
            };
        }
        let lease = self.lock().lease.clone();
        // Without an answer it ends by itself.
        let _ = self.store.release(&lease).await;
    }

    async fn renew(&self, ids: &Ids) -> Result<(), IdentityError> {
        let (lease, asked) = (self.lock().lease.clone(), Instant::now());
        if self.store.renew(&lease, self.ttl).await.map_err(IdentityError::Store)? {
            self.lock().until = asked + self.ttl;
            return Ok(());
        }
        // Others may have acted on its end, so this is a new beginning under another name.
        let state = self::lease(&*self.store, &self.holder, None, self.ttl).await?;
        info!(machine = %state.machine, "another machine number was leased");
        // Whoever had the number before may have minted by a clock that is ahead of this one.
        if let Some(newest) = self.store.newest_id().await.map_err(IdentityError::Store)? {
            ids.go_past(newest);
        }
        ids.change_machine(state.machine);
        *self.lock() = state;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every critical section is a few assignments that cannot panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn lease(
    store: &dyn Store,
    holder: &str,
    wanted: Option<MachineId>,
    ttl: Duration,
) -> Result<State, IdentityError> {
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
    Ok(State { machine, worker: worker.into(), lease, until: asked + ttl })
}

/// `local:<lease>:<epoch>`: whoever reads it can find out whether that process is still there.
fn shared_name(lease: &Lease) -> String {
    format!("{LOCAL_WORKER}:{}:{}", lease.name, lease.epoch)
}

/// Until when a worker of this name is certainly there, if it is one in a process. `live` holds the
/// live leases.
pub(crate) fn lease_of(worker: &str, live: &[Lease]) -> Option<Timestamp> {
    live.iter().find(|lease| shared_name(lease) == worker).map(|lease| lease.until)
}

/// The live leases, asked for after these commands were read: a process that began in between, and
/// claimed one of them, is among those that are there.
pub(crate) async fn alive_after(
    store: &dyn Store,
    read: &[CommandRow],
) -> Result<Vec<Lease>, StoreError> {
    match read.iter().any(|row| row.worker.is_some()) {
        true => store.live(LEASES).await,
        false => Ok(Vec::new()),
    }
}

/// Whether a worker of this name was one in a process that is gone. `live` holds the live leases.
pub(crate) fn is_gone(worker: &str, live: &[Lease]) -> bool {
    let is_ours = worker.starts_with(&format!("{LOCAL_WORKER}:{LEASES}"));
    is_ours && !live.iter().any(|lease| shared_name(lease) == worker)
}
