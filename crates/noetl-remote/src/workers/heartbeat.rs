//! Records heartbeats and other activity of remote and published workers.

use std::time::Duration;

use noetl_model::Tenant;
use noetl_model::command::is_remote_worker;
use noetl_store::{RuntimeKind, StoreError};
use tokio::time::Instant;
use tracing::warn;

use super::{REMEMBERED_MAX, Registration, TenantScope, WorkerError, Workers, check_name};

/// Minimum time between two renewals of a worker's leases because of its reports, which can be
/// thousands per second.
const NOTED_EVERY: Duration = Duration::from_secs(10);

impl Workers {
    /// Records a heartbeat of a runtime. Registers an unknown runtime, because a published worker
    /// never registers twice.
    pub async fn heartbeat(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        check_name(name)?;
        self.served.worker_seen(name);
        let since = self.store.heartbeat(tenant, kind, name).await.map_err(WorkerError::Store)?;
        if since.is_none() {
            let (name, status) = (name.to_owned(), "ready".to_owned());
            self.lock().keys.remove(&(tenant.clone(), name.clone()));
            let said = Registration { name, status, ..Registration::default() };
            self.write(tenant, kind, said).await?;
        }
        if kind == RuntimeKind::WorkerPool {
            if let Some(gap) = self.gap(tenant, name, since) {
                let limited = self.lost.after_gap(scope, name, gap).await;
                limited.map_err(WorkerError::Store)?;
                self.gap_is_over(tenant, name);
            }
            self.note(scope, name).await.map_err(WorkerError::Store)?;
        }
        Ok(())
    }

    /// Records a request of a worker as activity. Never fails, because the request itself is more
    /// important.
    pub(crate) async fn heard(&self, scope: &TenantScope, worker: &str) {
        if !is_remote_worker(worker) || !self.is_due(scope, worker) {
            return;
        }
        if let Err(error) = self.note(scope, worker).await {
            self.lock().noted.remove(&(scope.clone(), worker.to_owned()));
            warn!(%error, "failed to record worker activity");
        }
    }

    /// Returns the gap before a heartbeat, or an earlier one after which the leases aren't limited
    /// yet.
    fn gap(&self, tenant: &Tenant, name: &str, since: Option<Duration>) -> Option<Duration> {
        let mut remembered = self.lock();
        if remembered.rhythms.len() >= REMEMBERED_MAX {
            remembered.rhythms.clear();
        }
        let rhythm = remembered.rhythms.entry((tenant.clone(), name.to_owned())).or_default();
        rhythm.arrived(since);
        rhythm.gap()
    }

    fn gap_is_over(&self, tenant: &Tenant, name: &str) {
        let mut remembered = self.lock();
        if let Some(rhythm) = remembered.rhythms.get_mut(&(tenant.clone(), name.to_owned())) {
            rhythm.gap_is_over();
        }
    }

    async fn note(&self, scope: &TenantScope, worker: &str) -> Result<(), StoreError> {
        if self.store.touch_worker(scope.as_ref(), worker).await? > 0 {
            self.held.record();
        }
        Ok(())
    }

    /// Returns `true` if activity of this worker has to be recorded, and marks it as recorded.
    fn is_due(&self, scope: &TenantScope, worker: &str) -> bool {
        let mut remembered = self.lock();
        let (key, now) = ((scope.clone(), worker.to_owned()), Instant::now());
        if remembered.noted.get(&key).is_some_and(|last| now < *last + NOTED_EVERY) {
            return false;
        }
        if remembered.noted.len() >= REMEMBERED_MAX {
            remembered.noted.clear();
        }
        remembered.noted.insert(key, now);
        true
    }
}
