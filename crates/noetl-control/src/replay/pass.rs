//! One fold, page by page.

use noetl_engine::replay::{ReplayEvent, ReplayState, Scope};
use noetl_model::row::{EventRow, types};
use noetl_model::{EventId, Origin, Seq, Tenant, Timestamp, Value};
use noetl_store::StoreError;

use super::{ORGANIZATION, PAGE};

/// Rows of a page when there is room for fewer.
const PAGE_MIN: usize = 500;

/// A fold under way, and what is known of the rows it took.
pub(super) struct Pass {
    pub(super) state: ReplayState,
    /// The last row that was looked at.
    pub(super) last: Option<EventId>,
    /// How many more events may be folded.
    pub(super) room: Option<u64>,
    /// Whether there was an event without room for it.
    pub(super) is_truncated: bool,
    /// The `meta` of the event the execution began with.
    pub(super) start_meta: Option<Value>,
    /// The largest place of a folded row.
    pub(super) last_place: Seq,
    /// The latest time of a folded row.
    pub(super) newest: Timestamp,
    /// How many rows were folded since the kept state.
    pub(super) fresh: u64,
    /// Whether every row so far is of the organization that rows have when they name none.
    pub(super) is_plain: bool,
    /// Whether a kept state was found that later rows contradict.
    pub(super) is_outdated: bool,
    /// Whether the whole log is known to be the tenant's. Else every row has to say so.
    pub(super) is_theirs: bool,
    /// Whether it is the log of an execution.
    pub(super) is_execution: bool,
    /// Whether it takes rows whosever they are.
    pub(super) is_of_everybody: bool,
}

impl Pass {
    pub(super) fn new(scope: Scope) -> Self {
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

    /// Whether a kept state may stand for rows of this fold: it is of an execution that is there,
    /// with which it goes when that does, and of rows that name no organization.
    pub(super) fn may_be_kept(&self) -> bool {
        let is_of_plain_rows = self.is_of_everybody || self.state.organization_id == ORGANIZATION;
        self.is_execution && is_of_plain_rows
    }

    /// How many rows are worth reading: one more than there is room for shows whether the limit
    /// cuts. Rows of others take no room, so there may be any number of them to pass over.
    pub(super) fn wanted(&self) -> usize {
        let room = self.room.map_or(PAGE, |room| usize::try_from(room).unwrap_or(PAGE));
        room.saturating_add(1).clamp(PAGE_MIN, PAGE)
    }

    /// Whether there is certainly room left after this many rows.
    pub(super) fn has_room_beyond(&self, rows: usize) -> bool {
        self.room.is_none_or(|room| usize::try_from(room).is_ok_and(|room| room > rows))
    }

    /// Folds a page. It is plain computation and may be some work, so it leaves the thread that
    /// serves others.
    pub(super) async fn take(self, rows: Vec<EventRow>) -> Result<Self, StoreError> {
        aside(move || {
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

    /// Adds the checksums.
    pub(super) async fn sealed(mut self) -> Result<Self, StoreError> {
        aside(move || {
            self.state.seal();
            self
        })
        .await
    }

    fn fold(&mut self, row: &EventRow) {
        self.last = Some(row.event_id);
        let event = ReplayEvent::of(row);
        let tenant = event.tenant_id.as_deref().unwrap_or(Tenant::DEFAULT);
        let organization = event.organization_id.as_deref().unwrap_or(ORGANIZATION);
        // What was written here belongs to whom its log does; only rows from elsewhere say it.
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

/// Does some computation on a thread that nobody waits for but the caller.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::backend("replay a log", error))
}
