//! Claims commands for remote workers that renew their leases by command ID.
//!
//! A worker that reports a completion has a free slot. If the completion issues a command that the
//! worker accepts, the writer claims that command in the same transaction and returns it with the
//! response (a handoff). A chain of steps then costs one request and one commit per step. The
//! handoff is skipped while another command of the pool has waited too long.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Claim, Input, Status};
use noetl_model::command::DEFAULT_POOL;
use noetl_model::{CommandId, CommandState, Event, Fact};
use noetl_store::CommandFilter;

use super::batch::BatchItem;
use super::decide::decide_plain;
use super::writer::WriterDeps;

/// Remote worker that renews its leases by command ID.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    pub name: Arc<str>,
    /// Duration of the lease on a newly claimed command, until the first renewal.
    pub lease: Duration,
    /// Commands the worker accepts as a handoff. `None` accepts none.
    pub next: Option<Arc<CommandFilter>>,
}

/// Adds a lease for each command that the worker claimed with these events.
pub(super) fn record_leases(item: &mut BatchItem, claims: Range<usize>, to: &LeaseHolder) {
    let claimed = |event: &Arc<Event>| match &event.fact {
        Fact::CommandClaimed { command, worker, .. } if *worker == to.name => Some(*command),
        _ => None,
    };
    let claimed = item.events[claims].iter().filter_map(claimed);
    item.leases.extend(claimed.map(|command| (command, to.lease)));
}

/// Claims a command issued by a report for the reporting worker, and returns its ID. Returns `None`
/// if no issued command matches or another command has to go first.
pub(super) fn claim_next(
    parts: &WriterDeps,
    item: &mut BatchItem,
    led_to: Range<usize>,
    to: &LeaseHolder,
) -> Option<CommandId> {
    let wanted = to.next.as_ref()?;
    let BatchItem { cached, events, .. } = item;
    let is_theirs = wanted.tenant.as_ref().is_none_or(|tenant| *tenant == cached.tenant);
    if !is_theirs || cached.state.status() != Status::Running {
        return None;
    }
    let command = events[led_to].iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) => {
            let command: CommandId = event.id.into();
            let pool = issued.pool.as_deref().unwrap_or(DEFAULT_POOL);
            let open = cached.state.open_command(command)?;
            let is_free = open.state == CommandState::Pending;
            (is_free && wanted.takes(pool, &issued.tool)).then_some(command)
        }
        _ => None,
    })?;
    if parts.dispatch.calls().must_yield(wanted, parts.clock.now()) {
        return None;
    }
    let input = Input::Claim(Claim { command, worker: to.name.clone() });
    let claims = decide_plain(parts, cached, input).ok()?;
    let claims = item.add(claims);
    record_leases(item, claims, to);
    Some(command)
}
