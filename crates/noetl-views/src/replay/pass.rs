//! One fold over the pages of a log.

use noetl_engine::replay::{ReplayEvent, ReplayScope, ReplayState};
use noetl_model::row::{EventRow, types};
use noetl_model::{EventId, Origin, Seq, Tenant, Timestamp, Value};
use noetl_store::StoreError;

use super::{ORGANIZATION, PAGE};

/// Minimum number of rows in a page, if the limit allows fewer.
const PAGE_MIN: usize = 500;

/// A fold in progress, with attributes of the rows folded so far.
pub(super) struct FoldPass {
    pub(super) state: ReplayState,
    /// ID of the last row read.
    pub(super) last: Option<EventId>,
    /// Number of events that may still be folded.
    pub(super) room: Option<u64>,
    /// Whether an event was left out because of the limit.
    pub(super) is_truncated: bool,
    /// `meta` of the execution's first event.
    pub(super) start_meta: Option<Value>,
    /// Largest sequence number of a folded row.
    pub(super) last_place: Seq,
    /// Latest time of a folded row.
    pub(super) newest: Timestamp,
    /// Number of rows folded since the snapshot.
    pub(super) fresh: u64,
    /// Whether every row so far belongs to the default organization.
    pub(super) is_plain: bool,
    /// Whether a snapshot was found that later rows contradict.
    pub(super) is_outdated: bool,
    /// Whether the whole log is known to belong to the tenant. Otherwise, each row has to name the
    /// tenant.
    pub(super) is_theirs: bool,
    /// Whether it is the log of an execution.
    pub(super) is_execution: bool,
    /// Whether rows of all tenants and organizations are folded.
    pub(super) is_of_everybody: bool,
}

impl FoldPass {
    pub(super) fn new(scope: ReplayScope) -> Self {
        Self {
            state: ReplayState::new(scope),
            last: None,
            room: None,
            is_truncated: false,
            start_meta: None,
            last_place: Seq::START,
            newest: Timestamp::from_micros(i64::MIN),
            fresh: 0,
            is_plain: true,
            is_outdated: false,
            is_theirs: false,
            is_execution: false,
            is_of_everybody: false,
        }
    }

    /// Returns `true` if a snapshot may cover rows of this fold: the execution exists, so its purge
    /// deletes the snapshot, and the rows belong to the default organization.
    pub(super) fn may_be_kept(&self) -> bool {
        let is_of_plain_rows = self.is_of_everybody || self.state.organization_id == ORGANIZATION;
        self.is_execution && is_of_plain_rows
    }

    /// Returns the number of rows to read: one more than the limit allows, which shows whether the
    /// limit truncates. Rows of other tenants don't count toward the limit, so there may be any
    /// number of them to skip.
    pub(super) fn wanted(&self) -> usize {
        let room = self.room.map_or(PAGE, |room| usize::try_from(room).unwrap_or(PAGE));
        room.saturating_add(1).clamp(PAGE_MIN, PAGE)
    }

    /// Returns `true` if the limit certainly allows more than this many rows.
    pub(super) fn has_room_beyond(&self, rows: usize) -> bool {
        self.room.is_none_or(|room| usize::try_from(room).is_ok_and(|room| room > rows))
    }

    /// Folds a page on a blocking thread, because it may take long.
    pub(super) async fn take(self, rows: Vec<EventRow>) -> Result<Self, StoreError> {
        spawn_fold(move || {
            let mut pass = self;
            for row in rows {
                if pass.is_truncated {
                    break;
                }
                pass.fold(&row);
            }
            pass
        })
        .await
    }

    /// Adds the checksums on a blocking thread.
    pub(super) async fn sealed(mut self) -> Result<Self, StoreError> {
        spawn_fold(move || {
            self.state.seal();
            self
        })
        .await
    }

    fn fold(&mut self, row: &EventRow) {
        self.last = Some(row.event_id);
        let event = ReplayEvent::from_row(row);
        let tenant = event.tenant_id.as_deref().unwrap_or(Tenant::DEFAULT);
        let organization = event.organization_id.as_deref().unwrap_or(ORGANIZATION);
        // Rows written by this control plane belong to the owner of the log; only imported rows
        // name their tenant.
        let says_so = row.origin == Origin::Imported && tenant == self.state.tenant_id;
        let is_theirs = self.is_theirs || says_so;
        let is_wanted = is_theirs && organization == self.state.organization_id;
        if !is_wanted && !self.is_of_everybody {
            return;
        }
        if self.room == Some(0) {
            self.is_truncated = true;
            return;
        }
        self.room = self.room.map(|room| room - 1);
        self.is_plain &= organization == ORGANIZATION;
        self.last_place = self.last_place.max(row.seq);
        self.newest = self.newest.max(row.created_at);
        self.fresh += 1;
        let is_start = matches!(
            event.event_type.as_deref(),
            Some(types::PLAYBOOK_STARTED | "playbook.started" | "playbook.initialized")
        );
        if is_start && self.start_meta.is_none() && row.meta.is_some() {
            self.start_meta = Some(Value::Object(event.meta.clone()));
        }
        self.state.apply(&event);
    }
}

/// Runs a computation on a blocking thread.
pub(super) async fn spawn_fold<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::backend("replay a log", error))
}
