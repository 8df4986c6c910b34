//! Claims for workers elsewhere that name what they hold.
//!
//! A worker that says how a command ended has a place free. If it would take what the end leads to,
//! that is claimed for it in the same transaction, and goes out with the answer: a chain of steps
//! costs one request and one commit each. Who waits longer than a moment comes first.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Claim, Input, Status};
use noetl_model::command::DEFAULT_POOL;
use noetl_model::{CommandId, CommandState, Event, Fact};
use noetl_store::Wanted;

use super::batch::Item;
use super::decide::decide_plain;
use super::writer::WriterParts;

/// A worker elsewhere that names what it holds.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    pub(crate) name: Arc<str>,
    /// How long it holds what it has not named yet.
    pub(crate) lease: Duration,
    /// What it takes of what its report leads to; nothing when `None`.
    pub(crate) next: Option<Arc<Wanted>>,
}

/// Notes for how long a worker holds what it has claimed with these events.
pub(super) fn lease(item: &mut Item, claims: Range<usize>, to: &Elsewhere) {
    let claimed = |event: &Arc<Event>| match &event.fact {
        Fact::CommandClaimed { command, worker, .. } if *worker == to.name => Some(*command),
        _ => None,
    };
    let claimed = item.events[claims].iter().filter_map(claimed);
    item.leases.extend(claimed.map(|command| (command, to.lease)));
}

/// Claims a command that a report led to for the worker that said it.
pub(super) fn hand_over(
    parts: &WriterParts,
    item: &mut Item,
    led_to: Range<usize>,
    to: &Elsewhere,
) -> Option<CommandId> {
    let wanted = to.next.as_ref()?;
    let Item { cached, events, .. } = item;
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
    if parts.dispatch.calls().is_anothers_turn(wanted, parts.clock.now()) {
        return None;
    }
    let input = Input::Claim(Claim { command, worker: to.name.clone() });
    let claims = decide_plain(parts, cached, input).ok()?;
    let claims = item.add(claims);
    lease(item, claims, to);
    Some(command)
}
