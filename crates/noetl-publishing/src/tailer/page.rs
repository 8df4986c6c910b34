//! Converts rows to messages and tracks their outcome.

use std::collections::{BTreeMap, HashMap};

use noetl_bus::{PublishAck, PublishError, StreamMessage};
use noetl_journal::type_label;
use noetl_model::Timestamp;
use noetl_store::TailRow;
use noetl_store::outbox::subject;
use noetl_store::tail::{by_reference, message_id};
use tracing::warn;

use crate::stream_metrics::StreamMetrics;

/// Event type under which a row without one is published.
const UNTYPED: &str = "unknown";

/// Maximum number of attempts for a row that the bus rejects.
const TRIES_MAX: u32 = 3;

/// Source of a row, which determines its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CursorSource {
    /// A commit lane of the log.
    Lane(u16),
    /// Rows of an adopted database, which have no commit lane.
    Adopted,
}

/// Number of rejections by row. Bounded by the rows of one page.
#[derive(Debug, Default)]
pub(super) struct RejectedRows(HashMap<(CursorSource, i64), u32>);

impl RejectedRows {
    fn tries(&self, source: CursorSource, position: i64) -> u32 {
        self.0.get(&(source, position)).copied().unwrap_or_default()
    }
}

struct PageRow {
    source: CursorSource,
    position: i64,
    label: &'static str,
    event: String,
    /// Message of the row; `None` once it is sent, or if the row cannot be published.
    message: Option<StreamMessage>,
    is_sent: bool,
}

/// Rows published together. The rows of a source are in order.
#[derive(Default)]
pub(super) struct Page {
    entries: Vec<PageRow>,
    pub(super) oldest: Option<Timestamp>,
}

/// Outcome of publishing a page.
#[derive(Debug, Default)]
pub(super) struct PageOutcome {
    /// Last position of each source before the first unpublished row.
    pub(super) reached: BTreeMap<CursorSource, i64>,
    /// Whether every row was published or skipped.
    pub(super) is_complete: bool,
    /// Whether the stream does not exist.
    pub(super) has_no_stream: bool,
    /// Error of the first row that was neither published nor skipped.
    pub(super) error: Option<PublishError>,
}

impl Page {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds rows of one source.
    pub(super) fn add(
        &mut self,
        source: CursorSource,
        rows: Vec<TailRow>,
        limit: usize,
        refused: &RejectedRows,
        metrics: &StreamMetrics,
    ) {
        for row in rows {
            let is_refused = refused.tries(source, row.position) > 0;
            let message = message(&row, limit, is_refused, metrics);
            if message.is_none() {
                let (execution, event) = (row.row.execution_id, row.row.event_id);
                warn!(execution.id = %execution, event.id = %event, "skipping event that cannot be published");
            }
            let created_at = row.row.created_at;
            self.oldest = Some(self.oldest.map_or(created_at, |oldest| oldest.min(created_at)));
            self.entries.push(PageRow {
                source,
                position: row.position,
                label: type_label(row.row.event_type.as_deref()),
                event: message_id(&row.row),
                is_sent: message.is_some(),
                message,
            });
        }
    }

    /// Returns the last position of each source.
    pub(super) fn ends(&self) -> BTreeMap<CursorSource, i64> {
        self.entries.iter().map(|entry| (entry.source, entry.position)).collect()
    }

    /// Removes and returns the messages to publish, in order.
    pub(super) fn messages(&mut self) -> Vec<StreamMessage> {
        self.entries.iter_mut().filter_map(|entry| entry.message.take()).collect()
    }

    /// Computes the outcome from the responses, one for each of [`Self::messages`].
    pub(super) fn outcome(
        &self,
        answers: Vec<Result<PublishAck, PublishError>>,
        refused: &mut RejectedRows,
        metrics: &StreamMetrics,
    ) -> PageOutcome {
        let mut outcome = PageOutcome { is_complete: true, ..PageOutcome::default() };
        let mut broken: Vec<CursorSource> = Vec::new();
        let mut still: HashMap<(CursorSource, i64), u32> = HashMap::new();
        let mut answers = answers.into_iter();
        for entry in &self.entries {
            let answer = entry.is_sent.then(|| answers.next()).flatten();
            let (is_done, is_kept) = match answer {
                Some(Ok(PublishAck::New | PublishAck::Known)) => (true, true),
                None => (true, false),
                Some(Err(error)) => {
                    let is_over =
                        error.is_own_fault() && is_given_up(entry, &error, refused, &mut still);
                    if !is_over {
                        outcome.has_no_stream |= error == PublishError::NoStream;
                        outcome.error.get_or_insert(error);
                    }
                    (is_over, false)
                }
            };
            if !is_done {
                outcome.is_complete = false;
                broken.push(entry.source);
            }
            // Rows after a gap are published again, and counted then.
            if broken.contains(&entry.source) {
                continue;
            }
            outcome.reached.insert(entry.source, entry.position);
            match is_kept {
                true => metrics.add_published(entry.label),
                false => metrics.add_skipped(entry.label),
            }
        }
        refused.0 = still;
        outcome
    }
}

/// Counts a rejection. Returns `true` if the row has no attempts left.
fn is_given_up(
    entry: &PageRow,
    error: &PublishError,
    refused: &RejectedRows,
    still: &mut HashMap<(CursorSource, i64), u32>,
) -> bool {
    let tries = refused.tries(entry.source, entry.position) + 1;
    still.insert((entry.source, entry.position), tries);
    if tries >= TRIES_MAX {
        warn!(message.id = entry.event, %error, "skipping event rejected by the bus");
    }
    tries >= TRIES_MAX
}

/// Returns the message of a row: whole if it fits, else by reference. A row that was rejected is
/// made as small as possible, because the bus may accept less than it advertises.
fn message(
    row: &TailRow,
    limit: usize,
    is_refused: bool,
    metrics: &StreamMetrics,
) -> Option<StreamMessage> {
    let whole = row.payload().ok()?;
    let payload = if whole.len() <= limit && !is_refused {
        whole
    } else {
        let least = by_reference(&whole, if is_refused { SMALL.min(limit) } else { limit });
        let smaller = least.or_else(|| by_reference(&whole, limit))?;
        if smaller.len() < whole.len() {
            metrics.add_referenced(type_label(row.row.event_type.as_deref()));
        }
        smaller
    };
    let event_type = row.row.event_type.as_deref().unwrap_or(UNTYPED);
    Some(StreamMessage {
        subject: subject(Some(event_type)),
        id: message_id(&row.row),
        payload: payload.into_bytes(),
    })
}

/// Payload size in bytes that every bus accepts.
const SMALL: usize = 64 * 1024;
