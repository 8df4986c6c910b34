//! Serializes registrations of a worker, whichever process receives them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use noetl_model::Tenant;
use noetl_store::{Lease, RemoteStore, StoreError};
use tokio::sync::{Mutex, OwnedMutexGuard};

use noetl_identity as ids;

/// Prefix of the lease names, before the number, and count of numbers. Each lease is a row, so
/// several worker names share one.
const LEASES: &str = "worker_registering/";
const NUMBERS: u64 = 64;

/// Duration of the lease, after which a dead process no longer blocks others.
const TTL: Duration = Duration::from_secs(5);

/// Poll interval while another process holds the lease.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Registration locks. Cheap to clone.
#[derive(Clone)]
pub(super) struct RegistrationLocks {
    store: Arc<dyn RemoteStore>,
    /// Whether other processes use the store.
    is_shared: bool,
    here: Arc<Mutex<()>>,
}

pub(super) struct RegistrationLock {
    store: Arc<dyn RemoteStore>,
    lease: Option<Lease>,
    _here: OwnedMutexGuard<()>,
}

impl RegistrationLocks {
    pub(super) fn new(store: Arc<dyn RemoteStore>) -> Self {
        Self { is_shared: store.is_shared(), store, here: Arc::default() }
    }

    /// Waits until no other registration of this worker name is in progress.
    pub(super) async fn take(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<RegistrationLock, StoreError> {
        let here = self.here.clone().lock_owned().await;
        let mut lease = None;
        if self.is_shared {
            let place = lock_key(tenant, name);
            let holder = format!("{}-{:016x}", std::process::id(), ids::entropy());
            while lease.is_none() {
                lease = self.store.acquire(&place, &holder, TTL).await?;
                if lease.is_none() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
        Ok(RegistrationLock { store: self.store.clone(), lease, _here: here })
    }
}

impl RegistrationLock {
    /// Releases the lock. A lock that is dropped instead is held until its lease expires.
    pub(super) async fn end(self) {
        if let Some(lease) = &self.lease {
            // If the release fails, the lease expires by itself.
            let _ = self.store.release(lease).await;
        }
    }
}

/// Returns the lease name of a worker. Equal in all processes of one version.
fn lock_key(tenant: &Tenant, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (tenant.as_str(), name).hash(&mut hasher);
    format!("{LEASES}{}", hasher.finish() % NUMBERS)
}

#[cfg(test)]
mod tests {
    use noetl_store::MemoryStore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_two_processes_one_registers_a_worker_at_a_time() {
        let store = Arc::new(MemoryStore::new());
        // Each process has its own.
        let process =
            || RegistrationLocks { is_shared: true, ..RegistrationLocks::new(store.clone()) };
        let (one, other) = (process(), process());
        let tenant = Tenant::default();
        let first = one.take(&tenant, "w").await.unwrap();
        let second = tokio::spawn(async move { other.take(&tenant, "w").await.map(|_| ()) });
        tokio::time::sleep(LOOK_EVERY * 4).await;
        assert!(!second.is_finished(), "it is another's turn");
        first.end().await;
        second.await.unwrap().unwrap();
    }
}
