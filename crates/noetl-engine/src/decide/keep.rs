//! Records a report of a worker or client. The report is shown and does not affect state.

use noetl_model::Fact;
use noetl_model::event::ReportedEvent;

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::RecordReport;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: RecordReport) -> Result<(), Rejection> {
    draft.known()?;
    // Reports must not grow the event log of a finished execution without bound.
    if draft.state.status.is_final() && draft.state.version.0 >= draft.moment.caps.events {
        return Err(Rejection::AlreadyFinished(draft.state.status));
    }
    let id = input.id.unwrap_or_else(|| (draft.moment.ids)());
    let report = ReportedEvent { key: input.key.or(input.said.key), ..input.said };
    draft.record_as(id, Fact::Reported(Box::new(report)));
    Ok(())
}
