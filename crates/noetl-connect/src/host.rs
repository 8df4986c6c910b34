//! Services of a connection, and conversions that belong to the server's API.

use noetl_access::Caller;
use noetl_api::completions::CompletionItem;
use noetl_api::workers::LeasedCommand;
use noetl_journal::{LogError, StepLogs};
use noetl_model::{CommandId, ExecutionId, Tenant, Timestamp};
use noetl_remote::{
    Completion, ConnectError, LeaseError, LeaseService, LeasedRow, ReportError, WorkerConnections,
};
use noetl_results::Content;
use noetl_secrets::WorkerAccess;
use noetl_store::StoreError;
use tokio_util::sync::CancellationToken;

/// Services and conversions of one connection. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionHost {
    pub connections: WorkerConnections,
    pub leasing: LeaseService,
    pub logs: StepLogs,
    pub content: Content,
    pub worker_access: WorkerAccess,
    /// Tenant of the caller.
    pub tenant: Tenant,
    /// Cancelled when the server stops.
    pub stopping: CancellationToken,
    pub conversions: Conversions,
}

/// Conversions between the server's API and the services.
#[derive(Debug, Clone, Copy)]
pub struct Conversions {
    pub command: fn(&LeasedRow) -> LeasedCommand,
    pub completion: fn(CompletionItem) -> Completion,
    /// Returns the pool that a caller works for, if it may work for the requested one.
    pub pool: fn(&Caller, Option<String>) -> Result<Option<String>, Refusal>,
    pub refusal: fn(ConnectionFailure) -> Refusal,
}

/// Failure of a service.
#[derive(Debug)]
pub enum ConnectionFailure {
    Connect(ConnectError),
    Lease(LeaseError),
    Report(ExecutionId, ReportError),
    Log(LogError),
    Store(StoreError),
}

/// Failure as the API shows it.
#[derive(Debug)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// Whether the caller is at fault, so that a retry fails in the same way.
    pub is_client_error: bool,
}

impl ConnectionHost {
    pub(crate) fn now(&self) -> Timestamp {
        self.logs.now()
    }

    pub(crate) fn refusal(&self, failure: ConnectionFailure) -> Refusal {
        (self.conversions.refusal)(failure)
    }

    /// Returns `true` if the caller may report on a command. Limits only tokens that are bound to a
    /// pool; the command lookup checks the tenant.
    pub(crate) async fn owns(&self, caller: &Caller, command: CommandId) -> Result<bool, Refusal> {
        match caller.binding().filter(|binding| binding.pool.is_some()) {
            None => Ok(true),
            Some(binding) => {
                let owns = self.worker_access.owns(&binding, command).await;
                owns.map_err(|error| self.refusal(ConnectionFailure::Store(error)))
            }
        }
    }
}
