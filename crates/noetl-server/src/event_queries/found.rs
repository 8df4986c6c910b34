//! Selects events of a log by sequence number, event ID, or type.

use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId};
use noetl_store::ExecutionRow;

use super::{EventFilter, EventRange, bounds, window};
use crate::app::App;
use crate::error::ApiError;

/// Number of newest events that are searched for a type. Older events are not found.
const SEARCHED_MAX: u64 = 100_000;
/// Events per read of the store.
const PAGE: u64 = 1000;

/// Returns the selected events, oldest first, and the number of events to page through.
pub(super) async fn events(
    app: &App,
    row: &ExecutionRow,
    stretch: EventRange,
    only: &EventFilter,
) -> Result<(Vec<Event>, u64), ApiError> {
    let total = row.version.0;
    let floor = match only.since {
        None => 0,
        Some(event) => places_up_to(app, row.id, event, total).await?,
    };
    if !only.types.is_empty() {
        return of_types(app, row, stretch, floor, &only.types).await;
    }
    let (from, to) = match stretch {
        EventRange::After { .. } => bounds(stretch, total),
        EventRange::Page { .. } => {
            let (from, to) = bounds(stretch, total - floor);
            (from + floor, to + floor)
        }
    };
    Ok((window(app, row.id, from.max(floor), to.max(floor)).await?, total - floor))
}

/// Searches for events of the given types, from the newest event backward.
async fn of_types(
    app: &App,
    row: &ExecutionRow,
    stretch: EventRange,
    floor: u64,
    types: &[String],
) -> Result<(Vec<Event>, u64), ApiError> {
    let total = row.version.0;
    let (skip, take, floor) = match stretch {
        EventRange::Page { page, size } => {
            (page.saturating_sub(1).saturating_mul(size), size, floor)
        }
        EventRange::After { after, size } => {
            // Oldest first: the range is fixed by `after`, and only its events are filtered.
            let (from, to) = bounds(EventRange::After { after, size }, total);
            let mut events = window(app, row.id, from.max(floor), to.max(floor)).await?;
            events.retain(|event| is_one_of(event, types));
            let found = events.len() as u64;
            return Ok((events, found));
        }
    };
    let floor = floor.max(total.saturating_sub(SEARCHED_MAX));
    let (mut kept, mut found, mut to) = (Vec::new(), 0, total);
    while to > floor {
        let from = to.saturating_sub(PAGE).max(floor);
        for event in window(app, row.id, from, to).await?.into_iter().rev() {
            if is_one_of(&event, types) {
                if found >= skip && found - skip < take {
                    kept.push(event);
                }
                found += 1;
            }
        }
        to = from;
    }
    kept.reverse();
    Ok((kept, found))
}

pub(super) fn is_one_of(event: &Event, types: &[String]) -> bool {
    let row = EventRow::from(event);
    row.event_type.is_some_and(|of| types.iter().any(|wanted| *wanted == *of))
}

/// Returns the number of events up to and including `event`. Event IDs grow with the sequence
/// number, so the result is defined even for an ID that is not in the log.
pub(super) async fn places_up_to(
    app: &App,
    id: ExecutionId,
    event: EventId,
    total: u64,
) -> Result<u64, ApiError> {
    if let Some(place) = app.control.journal.executions.seq_of(id, event).await? {
        return Ok(place.0.min(total));
    }
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = low + (high - low) / 2;
        let found = window(app, id, middle, middle + 1).await?;
        match found.first() {
            Some(found) if found.id <= event => low = middle + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}
