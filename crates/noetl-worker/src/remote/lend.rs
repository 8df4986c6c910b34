//! Commands that this worker leases: decoded from the form in which the server sends them.

use std::sync::Arc;

use noetl_api::workers::LeasedCommand;
use noetl_model::event::CommandSpec;
use noetl_model::row::{EventRow, types};
use noetl_model::{
    CommandId, EventId, ExecutionId, Fact, Failure, FailureKind, Origin, Seq, Tenant,
};
use noetl_work::CommandOutcome;
use tokio_util::sync::CancellationToken;

use super::lease::{completion_of, finish};
use super::leases::{HeldLease, HeldLeases};
use super::link::ServerLink;
use super::metrics::WorkerEvent;
use super::reporter::Reporter;
use crate::task::CommandTask;

/// A command that this worker leases.
pub(crate) struct OwnedCommand {
    pub(super) execution: ExecutionId,
    pub(super) command: CommandId,
    pub(super) tenant: Tenant,
    pub(super) holding: HeldLease,
}

/// Decodes leased commands. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lender {
    pub(crate) link: Arc<ServerLink>,
    pub(crate) leases: HeldLeases,
    pub(crate) reporter: Reporter,
}

impl Lender {
    /// Adds a leased command, unless it is already leased because a response arrived twice. Reports
    /// a command that cannot be decoded as failed: no other worker of this version could decode it.
    pub(crate) fn lend(&self, leased: LeasedCommand) -> Option<(CommandTask, OwnedCommand)> {
        let (holding, cancel) = self.hold(leased.event_id.into())?;
        self.lend_held(leased, holding, cancel)
    }

    /// Adds a command that is not complete yet to the leased ones, unless it is already leased.
    pub(crate) fn hold(&self, command: CommandId) -> Option<(HeldLease, CancellationToken)> {
        let cancel = CancellationToken::new();
        Some((self.leases.hold(command, cancel.clone())?, cancel))
    }

    /// Like [`lend`](Self::lend), for a command in the leased ones.
    pub(crate) fn lend_held(
        &self,
        leased: LeasedCommand,
        holding: HeldLease,
        cancel: CancellationToken,
    ) -> Option<(CommandTask, OwnedCommand)> {
        let execution: ExecutionId = leased.execution_id.into();
        let command: CommandId = leased.event_id.into();
        self.link.counters.count(WorkerEvent::Claimed);
        let tenant = Tenant::new(leased.tenant_id.as_str());
        let lent = OwnedCommand { execution, command, tenant: tenant.clone(), holding };
        match issued(leased) {
            Ok(issued) => {
                Some((CommandTask { execution, id: command, tenant, issued, cancel }, lent))
            }
            Err(why) => {
                let message = format!("this worker cannot read the command: {why}");
                let ended = CommandOutcome::from(Err(Failure::new(FailureKind::Config, message)));
                let (reporter, link) = (self.reporter.clone(), self.link.clone());
                tokio::spawn(async move {
                    // No handoff: the slot is already in use by another command.
                    finish(&reporter, &link, &lent, completion_of(&lent, ended), false).await;
                });
                None
            }
        }
    }
}

/// Decodes the command from its `command.issued` event.
fn issued(leased: LeasedCommand) -> Result<Arc<CommandSpec>, String> {
    let (execution, id) = (leased.execution_id.into(), leased.event_id.get());
    let row = EventRow {
        execution_id: execution,
        event_id: EventId::new(id),
        seq: Seq(leased.issued.seq),
        created_at: leased.issued.created_at,
        origin: Origin::Decided,
        event_type: Some(types::COMMAND_ISSUED.into()),
        node_name: Some(leased.node_name.into()),
        node_type: Some(leased.action.into()),
        status: None,
        command_id: Some(CommandId::new(id)),
        parent_execution_id: None,
        worker_id: None,
        context: leased.issued.context.map(|text| Box::<str>::from(text).into()),
        result: None,
        meta: leased.issued.meta.map(|text| Box::<str>::from(text).into()),
        error: None,
        duration: None,
        idempotency_key: None,
        more: None,
    };
    match row.decode().map_err(|error| error.to_string())?.fact {
        Fact::CommandIssued(issued) => Ok(issued),
        _ => Err("it is something else".to_owned()),
    }
}
