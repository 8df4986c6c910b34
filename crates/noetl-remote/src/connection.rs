//! Connections of remote workers, over which the server pushes commands.
//!
//! A worker declares its pools, tool kinds, and slots. The session claims and leases pending
//! commands for its free slots, and the next command of an execution together with a completion.
//! This module knows messages and no socket: the routes of the server send and receive.
//!
//! The state of a worker outlives its sessions. A worker that reconnects lists the commands that it
//! holds, so a command that was claimed and never received is sent again. Leases, not sessions,
//! decide who owns a command.

mod declaration;
mod feed;
mod session;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_journal::TenantScope;
use noetl_model::{CommandId, Tenant};
use noetl_store::StoreError;

pub use self::declaration::{ConnectError, LEASE_MAX, LEASE_MIN, WorkerDeclaration};
pub use self::session::{Resumed, SessionReporter, WorkerSession};
use self::worker::ConnectedWorker;
use crate::leasing::{LeaseError, LeaseService};
use crate::reports::Reports;

/// Time after its last session for which the state of a worker is retained: longer than any lease.
const RETAINED_FOR: Duration = Duration::from_secs(600);

/// Maximum number of workers whose state is retained without a session.
const RETAINED_MAX: usize = 10_000;

/// Caller that opens a connection.
#[derive(Debug, Clone)]
pub struct ConnectionCaller {
    /// Tenant of the worker's registration.
    pub tenant: Tenant,
    /// Tenant whose commands the worker may run.
    pub scope: TenantScope,
    /// Identity of the caller, such as the ID of a token.
    pub actor: Arc<str>,
}

type Workers = HashMap<(Tenant, String), Arc<ConnectedWorker>>;

/// Connections of remote workers. Cheap to clone.
#[derive(Clone)]
pub struct WorkerConnections(Arc<WorkerConnectionsInner>);

struct WorkerConnectionsInner {
    leasing: LeaseService,
    reports: Reports,
    workers: Mutex<Workers>,
}

impl WorkerConnections {
    pub(crate) fn new(leasing: &LeaseService, reports: &Reports) -> Self {
        let (leasing, reports) = (leasing.clone(), reports.clone());
        Self(Arc::new(WorkerConnectionsInner { leasing, reports, workers: Mutex::default() }))
    }

    /// Opens a session for a worker, and ends the earlier session of its name. Renews the leases of
    /// the commands that the worker holds, and queues those that it was not sent or did not
    /// receive.
    pub async fn open(
        &self,
        caller: ConnectionCaller,
        declaration: WorkerDeclaration,
        holds: Vec<CommandId>,
    ) -> Result<(WorkerSession, Resumed), ConnectError> {
        let lease = declaration.check(self.0.leasing.duration(), &holds)?;
        let wanted = declaration.filters(&caller.scope);
        let WorkerDeclaration { name, public_key, slots, .. } = declaration;
        let (tenant, scope) = (&caller.tenant, &caller.scope);
        let recorded = self.0.leasing.workers.record_connection(
            tenant,
            scope,
            &name,
            &wanted,
            Some(&public_key),
            slots,
        );
        recorded.await.map_err(LeaseError::Worker)?;
        let leasing = self.0.leasing.with_lease(lease);
        let worker = self.worker(tenant, &name);
        let (number, is_other) = worker.attach((caller.actor.clone(), public_key), slots);
        let session = WorkerSession {
            leasing,
            reports: self.0.reports.clone(),
            worker,
            number,
            id: format!("{:016x}", noetl_identity::entropy()),
            name: name.into(),
            caller,
            wanted: wanted.into(),
        };
        let resumed = match is_other {
            false => session.resume(holds).await?,
            true => Resumed { drop: holds, ..Resumed::default() },
        };
        session.start_feed();
        Ok((session, resumed))
    }

    /// Returns the state of a worker. Removes states of workers that have been gone for long.
    fn worker(&self, tenant: &Tenant, name: &str) -> Arc<ConnectedWorker> {
        // Each critical section leaves the map consistent.
        let mut workers = self.0.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = if workers.len() < RETAINED_MAX { RETAINED_FOR } else { Duration::ZERO };
        workers.retain(|_, worker| worker.gone_for().is_none_or(|gone| gone < limit));
        workers.entry((tenant.clone(), name.to_owned())).or_default().clone()
    }
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        Self::Lease(LeaseError::Store(error))
    }
}
