//! Offers newly issued commands to workers with a free slot, within the decision that issues them.
//!
//! A remote worker that reports a completion has a free slot. If the completion issues a command
//! that the worker accepts, the decision claims that command for it, and the response returns it (a
//! handoff). A chain of steps then costs one request and one commit per step. The handoff is skipped
//! while another command of the pool has waited too long. Free slots of the local worker get the
//! other commands.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::command::DEFAULT_POOL;
use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, Event, ExecutionId, Fact, Tenant};
use noetl_store::CommandFilter;

use super::batch::{BatchItem, LocalClaim};
use super::claim::is_left_to_remote;
use super::writer::WriterDeps;
use crate::dispatch::PendingCommand;

/// Remote worker that renews its leases by command ID.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    pub name: Arc<str>,
    /// Duration of the lease on a newly claimed command, until the first renewal.
    pub lease: Duration,
    /// Commands the worker accepts as a handoff. `None` accepts none.
    pub next: Option<Arc<CommandFilter>>,
}

/// Offers the commands of one decision. Holds the slots it reserved; dropping it frees them.
pub(super) struct Offers<'a> {
    parts: &'a WriterDeps,
    execution: ExecutionId,
    tenant: &'a Tenant,
    /// Remote worker that reported, while it may still get a command.
    reporter: Option<(&'a Arc<str>, &'a CommandFilter)>,
    /// Command claimed for the reporting worker.
    pub(super) handed: Option<CommandId>,
    pub(super) claims: Vec<LocalClaim>,
}

impl<'a> Offers<'a> {
    pub(super) fn new(
        parts: &'a WriterDeps,
        execution: ExecutionId,
        tenant: &'a Tenant,
        reporter: Option<&'a LeaseHolder>,
    ) -> Self {
        let reporter = reporter.and_then(|holder| Some((&holder.name, holder.next.as_deref()?)));
        let reporter = reporter
            .filter(|(_, wanted)| wanted.tenant.as_ref().is_none_or(|accepted| accepted == tenant));
        Self { parts, execution, tenant, reporter, handed: None, claims: Vec::new() }
    }

    /// Returns the worker that claims this command, or `None` to leave it pending.
    pub(super) fn offer(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
    ) -> Option<Arc<str>> {
        self.offer_to_reporter(command, issued).or_else(|| self.offer_to_local(command, issued))
    }

    fn offer_to_reporter(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
    ) -> Option<Arc<str>> {
        let pool = issued.pool.as_deref().unwrap_or(DEFAULT_POOL);
        // The worker gets the first command it accepts, or none.
        let (name, wanted) =
            self.reporter.take_if(|(_, wanted)| wanted.takes(pool, &issued.tool))?;
        if self.parts.dispatch.calls().must_yield(wanted, self.parts.clock.now()) {
            return None;
        }
        self.handed = Some(command);
        Some(name.clone())
    }

    fn offer_to_local(
        &mut self,
        command: CommandId,
        issued: &Arc<CommandSpec>,
    ) -> Option<Arc<str>> {
        let dispatch = &self.parts.dispatch;
        if !dispatch.has_worker() || is_left_to_remote(self.parts, issued, self.tenant) {
            return None;
        }
        let slot = dispatch.reserve()?;
        let waiting = PendingCommand { execution: self.execution, command };
        let (issued, tenant) = (issued.clone(), self.tenant.clone());
        self.claims.push(LocalClaim { waiting, slot, issued, tenant, waited: false });
        Some(self.parts.identity.worker())
    }
}

/// Adds a lease for each command that the worker claimed with these events.
pub(super) fn record_leases(item: &mut BatchItem, claims: Range<usize>, to: &LeaseHolder) {
    let claimed = |event: &Arc<Event>| match &event.fact {
        Fact::CommandClaimed { command, worker, .. } if *worker == to.name => Some(*command),
        _ => None,
    };
    let claimed = item.decision.events[claims].iter().filter_map(claimed);
    item.leases.extend(claimed.map(|command| (command, to.lease)));
}
