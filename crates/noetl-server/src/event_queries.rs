//! Queries that combine rows with a range of an event log.
//!
//! An event log can have 100,000 events, so every query reads a window: a page, the events after a
//! sequence number, or the first event. The execution's row gives the length of the log, from which
//! the windows are computed. A complete log is streamed.

pub(crate) mod brief;
mod durations;
mod found;
mod whole;

use noetl_api::commands::Command;
use noetl_api::events::{EventView, EventsReply};
use noetl_api::executions::{ExecutionDetail, Pagination, StatusReply};
use noetl_api::{Id, IdForm};
use noetl_journal::TenantScope;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Fact, Seq, StepOutcome, Value};
use noetl_store::{ExecutionRow, ExecutionStatus};

use self::durations::Durations;
pub(crate) use self::whole::whole;
use crate::app::App;
use crate::error::{ApiError, unknown_execution};
use crate::shape;

/// Maximum events of one range.
pub(crate) const EVENTS_MAX: u64 = 2000;
/// Number of newest events that a status query searches for step names. Limited because clients
/// poll the status.
const STATUS_EVENTS: u64 = 1000;
/// Batch size of the search for an execution's final event, newest first. That event is the last
/// one, or close to the end if workers reported after it.
const END_WINDOW: u64 = 256;

/// Range of an event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRange {
    /// Up to `size` events after the sequence number `after`, oldest first.
    After { after: u64, size: u64 },
    /// A page of events, newest first, counted from the newest event.
    Page {
        /// Page number, from 1.
        page: u64,
        /// Events per page, at least 1.
        size: u64,
    },
}

/// Filter on the events of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventFilter {
    /// Includes only events after this one.
    pub(crate) since: Option<EventId>,
    /// Includes only events of these types. Empty for all types.
    pub(crate) types: Vec<String>,
}

/// Returns the row of an execution of the tenant, or a 404 error.
pub(crate) async fn row(app: &App, id: ExecutionId) -> Result<ExecutionRow, ApiError> {
    let row = app.control.journal.executions.get(&app.tenant, id).await?;
    row.ok_or_else(|| unknown_execution(id))
}

/// Returns an execution with a range of its event log.
pub(crate) async fn detail(
    app: &App,
    id: ExecutionId,
    stretch: EventRange,
    only: &EventFilter,
    ids: IdForm,
) -> Result<ExecutionDetail, ApiError> {
    let row = row(app, id).await?;
    let (events, total) = found::events(app, &row, stretch, only).await?;
    let mut events = shown(&events, &row, ids);
    if matches!(stretch, EventRange::Page { .. }) {
        events.reverse();
    }
    Ok(ExecutionDetail {
        summary: shape::execution(&row, ids),
        workload: workload(app, id).await?,
        result: result(app, &row).await?,
        truncated: false,
        pagination: pagination(stretch, total),
        events,
    })
}

/// Returns the status of an execution, with the names of its succeeded steps.
pub(crate) async fn status(
    app: &App,
    id: ExecutionId,
    ids: IdForm,
) -> Result<StatusReply, ApiError> {
    let row = row(app, id).await?;
    let total = row.version.0;
    let events = window(app, id, total.saturating_sub(STATUS_EVENTS), total).await?;
    let mut steps: Vec<String> = Vec::new();
    for event in &events {
        if let Fact::StepExited { step, outcome: StepOutcome::Done, .. } = &event.fact
            && !steps.iter().any(|known| **known == **step)
        {
            steps.push(step.to_string());
        }
    }
    Ok(shape::status(&row, steps, ids))
}

/// Returns a range of an event log after a sequence number.
pub(crate) async fn events(
    app: &App,
    id: ExecutionId,
    after: u64,
    size: u64,
    ids: IdForm,
) -> Result<EventsReply, ApiError> {
    let row = row(app, id).await?;
    let (from, to) = bounds(EventRange::After { after, size }, row.version.0);
    let events = window(app, id, from, to).await?;
    Ok(EventsReply {
        execution_id: Id::new(id.get(), ids),
        next_after: events.last().map_or(after, |event| event.seq.0),
        events: shown(&events, &row, ids),
        total_events: row.version.0,
    })
}

/// Converts consecutive events to their API form, oldest first.
pub(crate) fn shown(events: &[Event], of: &ExecutionRow, ids: IdForm) -> Vec<EventView> {
    let mut lasted = Durations::default();
    let mut view = |event: &Event| shape::event(event, of, lasted.record(event, of), ids);
    events.iter().map(&mut view).collect()
}

/// Returns a command, or `None` if it doesn't exist in the scope.
pub(crate) async fn command(
    app: &App,
    scope: &TenantScope,
    id: CommandId,
) -> Result<Option<Command>, ApiError> {
    let Some((row, issued)) = app.control.remote.reports.command(id).await? else {
        return Ok(None);
    };
    let of = match scope {
        Some(tenant) => app.control.journal.executions.get(tenant, row.execution).await?,
        None => execution_of(app, row.execution).await?,
    };
    Ok(of.map(|of| shape::command(&row, &issued, &of)))
}

/// Returns the row of an execution of any tenant.
async fn execution_of(app: &App, id: ExecutionId) -> Result<Option<ExecutionRow>, ApiError> {
    let Some(tenant) = app.control.remote.workers.tenant_of(id).await? else { return Ok(None) };
    Ok(app.control.journal.executions.get(&tenant, id).await?)
}

/// Returns the sequence number before the first event of a range, and the one of its last event.
fn bounds(stretch: EventRange, total: u64) -> (u64, u64) {
    match stretch {
        EventRange::After { after, size } => {
            (after.min(total), after.saturating_add(size).min(total))
        }
        EventRange::Page { page, size } => {
            let newer = page.saturating_sub(1).saturating_mul(size);
            let to = total.saturating_sub(newer);
            (to.saturating_sub(size), to)
        }
    }
}

fn pagination(stretch: EventRange, total_events: u64) -> Option<Pagination> {
    let EventRange::Page { page, size: page_size } = stretch else { return None };
    let total_pages = total_events.div_ceil(page_size.max(1));
    let (has_next, has_prev) = (page < total_pages, page > 1);
    Some(Pagination { page, page_size, total_events, total_pages, has_next, has_prev })
}

async fn window(app: &App, id: ExecutionId, from: u64, to: u64) -> Result<Vec<Event>, ApiError> {
    let size = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    if size == 0 {
        return Ok(Vec::new());
    }
    Ok(app.control.journal.executions.events(id, Seq(from), size).await?)
}

async fn workload(app: &App, id: ExecutionId) -> Result<Option<Value>, ApiError> {
    let first = window(app, id, 0, 1).await?;
    Ok(first.into_iter().find_map(|event| match event.fact {
        Fact::PlaybookStarted(started) => Some(Value::Object(started.workload)),
        _ => None,
    }))
}

/// Returns the result of a completed execution. `None` for any other status.
async fn result(app: &App, row: &ExecutionRow) -> Result<Option<Value>, ApiError> {
    if row.status != ExecutionStatus::Completed {
        return Ok(None);
    }
    let mut to = row.version.0;
    while to > 0 {
        let from = to.saturating_sub(END_WINDOW);
        let events = window(app, row.id, from, to).await?;
        let found = events.into_iter().rev().find_map(|event| match event.fact {
            Fact::PlaybookCompleted { result, .. } => Some(result),
            _ => None,
        });
        if found.is_some() {
            return Ok(found);
        }
        to = from;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_the_newest_event() {
        assert_eq!(bounds(EventRange::Page { page: 1, size: 10 }, 25), (15, 25));
        assert_eq!(bounds(EventRange::Page { page: 3, size: 10 }, 25), (0, 5));
        assert_eq!(bounds(EventRange::Page { page: 4, size: 10 }, 25), (0, 0));
        assert_eq!(bounds(EventRange::Page { page: u64::MAX, size: 10 }, 25), (0, 0));
        let last = pagination(EventRange::Page { page: 3, size: 10 }, 25).expect("a page");
        assert_eq!((last.total_pages, last.has_next, last.has_prev), (3, false, true));
    }

    #[test]
    fn a_place_past_the_end_gives_nothing() {
        assert_eq!(bounds(EventRange::After { after: 30, size: 10 }, 25), (25, 25));
        assert_eq!(bounds(EventRange::After { after: u64::MAX, size: 10 }, 25), (25, 25));
        assert_eq!(bounds(EventRange::After { after: 20, size: 10 }, 25), (20, 25));
    }
}
