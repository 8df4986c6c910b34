//! Heartbeats and other signs of life of remote and published workers.

use std::time::Duration;

use noetl_model::command::is_elsewhere;
use noetl_model::{Tenant, Timestamp};
use noetl_store::{RuntimeKind, StoreError};
use tokio::time::Instant;
use tracing::warn;

use super::{REMEMBERED_MAX, Registration, Scope, WorkerError, Workers, check_name};
use crate::lost_reports::GAP;

/// Shortest time between two renewals of a worker's leases because of its reports, which can be thousands
/// per second.
const NOTED_EVERY: Duration = Duration::from_secs(10);

impl Workers {
    /// Notes that a runtime is there. One that is not known is from now on: a published worker never
    /// registers twice.
    pub async fn heartbeat(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        check_name(name)?;
        self.served.heard(name);
        let gap = match kind {
            RuntimeKind::WorkerPool => self.gap(tenant, name).await?,
            _ => None,
        };
        if !self.store.heartbeat(tenant, kind, name).await.map_err(WorkerError::Store)? {
            let (name, status) = (name.to_owned(), "ready".to_owned());
            self.lock().keys.remove(&(tenant.clone(), name.clone()));
            let said = Registration { name, status, ..Registration::default() };
            self.write(tenant, kind, said).await?;
        }
        if let Some(last) = gap {
            let limited = self.lost.after_gap(scope, name, last).await;
            limited.map_err(WorkerError::Store)?;
        }
        if kind == RuntimeKind::WorkerPool {
            self.heartbeat_arrived(tenant, name);
            self.note(scope, name).await.map_err(WorkerError::Store)?;
        }
        Ok(())
    }

    /// Takes a word of a worker as a sign of life. Never fails: the word itself counts for more.
    pub(crate) async fn heard(&self, scope: &Scope, worker: &str) {
        if !is_elsewhere(worker) || !self.is_due(scope, worker) {
            return;
        }
        if let Err(error) = self.note(scope, worker).await {
            self.lock().noted.remove(&(scope.clone(), worker.to_owned()));
            warn!(%error, "a worker's sign of life is not noted");
        }
    }

    /// Returns when the last heartbeat of a worker arrived at any server, if that is longer ago than
    /// [`GAP`]. The store is asked only when none arrived at this server meanwhile.
    async fn gap(&self, tenant: &Tenant, name: &str) -> Result<Option<Timestamp>, WorkerError> {
        let last = self.lock().heartbeats.get(&(tenant.clone(), name.to_owned())).copied();
        if last.is_some_and(|last| last.elapsed() <= GAP) {
            return Ok(None);
        }
        let listed = self.listed(tenant, name).await?;
        let now = self.clock.now();
        Ok(listed.map(|row| row.heartbeat).filter(|heartbeat| now.since(*heartbeat) > GAP))
    }

    /// Remembers a heartbeat. Not before the leases of a gap are limited: if that fails, the worker's
    /// next heartbeat has to find the gap.
    fn heartbeat_arrived(&self, tenant: &Tenant, name: &str) {
        let mut remembered = self.lock();
        if remembered.heartbeats.len() >= REMEMBERED_MAX {
            remembered.heartbeats.clear();
        }
        remembered.heartbeats.insert((tenant.clone(), name.to_owned()), Instant::now());
    }

    async fn note(&self, scope: &Scope, worker: &str) -> Result<(), StoreError> {
        if self.store.heard_of(scope.as_ref(), worker).await? > 0 {
            self.held.seen();
        }
        Ok(())
    }

    /// Whether a sign of life of this worker is to be written down; it counts as written.
    fn is_due(&self, scope: &Scope, worker: &str) -> bool {
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
