//! Replays an event log up to an event, a time, or a number of events.
//!
//! Rows are read in pages, in order of event ID, and folded one by one, so a log of any length
//! needs memory for its state and two pages. The fold starts from a snapshot if one exists that no
//! later row contradicts ([`kept`]). A snapshot only saves work: the checksum is the same with and
//! without it.

mod pass;
mod payloads;
mod permits;
mod snapshots;

use std::sync::Arc;

use noetl_engine::replay::{Projection, ReplayScope, ReplayState};
use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, SubscriptionId, Tenant, Value};
use noetl_results::{ResultStorage, StoredResults};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{ReadBound, StoreError, ViewStore, row_bytes};

use self::pass::FoldPass;
use self::permits::FoldLimiter;

pub use self::payloads::{PayloadLabel, PayloadResolution, Payloads, PayloadsSummary, Resolution};

/// Organization of rows that name none.
pub const ORGANIZATION: &str = "default";

/// Maximum number of rows in a page. Two pages are in memory at a time. The store ends a page of
/// large rows earlier.
const PAGE: usize = 5_000;

#[derive(Debug, Clone)]
pub struct ReplayRequest {
    pub execution: ExecutionId,
    /// Tenant that must own the log. The log of another tenant appears empty.
    pub tenant: Tenant,
    /// Organization of the rows to fold. Rows that name none belong to [`ORGANIZATION`].
    pub organization: String,
    /// Point at which the replay ends.
    pub until: ReadBound,
    /// Projection the caller asked for. Recorded in the state; everything is folded in any case.
    pub projection: Projection,
    /// Maximum number of events, oldest first; all if `None`.
    pub limit: Option<u64>,
    /// Whether to look up the values of references.
    pub resolve_payloads: bool,
}

#[derive(Debug, Clone)]
pub struct Replayed {
    pub state: ReplayState,
    /// Whether the log has more events than the limit.
    pub is_truncated: bool,
    /// Resolution of the references, if it was requested.
    pub payloads: Option<Payloads>,
}

/// State of an execution at its latest event.
#[derive(Debug, Clone)]
pub struct AdvancedState {
    pub state: ReplayState,
    /// Largest event ID in the state.
    pub version: EventId,
    /// Number of events in the state.
    pub events: u64,
    /// `meta` of the execution's first event.
    pub start_meta: Option<Value>,
}

/// Replays event logs. Cheap to clone.
#[derive(Clone)]
pub struct Replay {
    store: Arc<dyn ViewStore>,
    results: ResultStorage,
    stored: StoredResults,
    turns: Arc<FoldLimiter>,
}

impl Replay {
    pub(crate) fn new(
        store: Arc<dyn ViewStore>,
        results: ResultStorage,
        stored: StoredResults,
    ) -> Self {
        Self { store, results, stored, turns: Arc::default() }
    }

    /// Replays a log. A log that does not exist or belongs to another tenant yields an empty state.
    pub async fn state(&self, request: &ReplayRequest) -> Result<Replayed, StoreError> {
        let _turn = self.turns.take(request.limit).await;
        let pass = FoldPass::new(ReplayScope {
            tenant_id: request.tenant.to_string(),
            organization_id: request.organization.clone(),
            execution_id: request.execution.get(),
            projection: request.projection,
        });
        let owner = self.store.tenant_of(request.execution).await?;
        let folded = match &owner {
            Some(owner) if *owner != request.tenant => pass.sealed().await?,
            owner => {
                let is_theirs = owner.is_some() || self.is_subscription(request).await?;
                let pass = FoldPass { is_theirs, is_execution: owner.is_some(), ..pass };
                self.fold(pass, request.until, request.limit).await?
            }
        };
        let payloads = match request.resolve_payloads {
            true => Some(self.resolve(&request.tenant, &folded.state).await?),
            false => None,
        };
        let FoldPass { state, is_truncated, .. } = folded;
        Ok(Replayed { state, is_truncated, payloads })
    }

    /// Folds an execution to its latest event, from a snapshot if possible. Returns `None` if it
    /// has no events.
    pub async fn advance(
        &self,
        execution: ExecutionId,
    ) -> Result<Option<AdvancedState>, StoreError> {
        let _turn = self.turns.take(None).await;
        let owner = self.store.tenant_of(execution).await?;
        let pass = FoldPass::new(ReplayScope {
            tenant_id: owner.clone().unwrap_or_default().to_string(),
            organization_id: ORGANIZATION.to_owned(),
            execution_id: execution.get(),
            projection: Projection::All,
        });
        let is_execution = owner.is_some();
        let pass =
            FoldPass { is_theirs: is_execution, is_execution, is_of_everybody: true, ..pass };
        let FoldPass { state, start_meta, .. } = self.fold(pass, ReadBound::End, None).await?;
        let advanced = state.last_event_id.map(|version| AdvancedState {
            version: EventId::new(version),
            events: state.event_count,
            start_meta,
            state,
        });
        Ok(advanced)
    }

    /// Returns `true` if the log belongs to a subscription of the requesting tenant.
    async fn is_subscription(&self, request: &ReplayRequest) -> Result<bool, StoreError> {
        let id = SubscriptionId::new(request.execution.get());
        Ok(self.store.subscription(&request.tenant, id).await?.is_some())
    }

    async fn fold(
        &self,
        pass: FoldPass,
        until: ReadBound,
        limit: Option<u64>,
    ) -> Result<FoldPass, StoreError> {
        let execution = ExecutionId::new(pass.state.execution_id);
        let mut pass = snapshots::resume_from_snapshot(&*self.store, pass, until, limit).await?;
        pass.room = limit.map(|limit| limit.saturating_sub(pass.state.event_count));
        let (mut after, mut ahead) = (pass.last, None);
        while !pass.is_truncated {
            let wanted = pass.wanted();
            let (rows, asked) = match ahead.take() {
                Some(ahead) => ahead,
                None => (self.store.read_rows(execution, after, until, wanted).await?, wanted),
            };
            after = rows.last().map(|row| row.event_id);
            if is_last(&rows, asked) {
                pass = pass.take(rows).await?;
                break;
            }
            if pass.has_room_beyond(rows.len()) {
                // The next page is read while this one is folded.
                let next = self.store.read_rows(execution, after, until, PAGE);
                let (folded, next) = tokio::join!(pass.take(rows), next);
                (pass, ahead) = (folded?, Some((next?, PAGE)));
            } else {
                pass = pass.take(rows).await?;
            }
        }
        if until == ReadBound::End && !pass.is_truncated {
            pass = snapshots::save_snapshot(&*self.store, pass).await?;
        }
        pass.sealed().await
    }
}

/// Returns `true` if this page is the last. A page with fewer rows than requested need not be,
/// because the store ends a page of large rows early; but it is if it is also small in bytes.
/// Waiting for an empty page instead would not terminate while events are appended.
fn is_last(rows: &[EventRow], asked: usize) -> bool {
    let bytes = || rows.iter().map(row_bytes).sum::<usize>();
    rows.len() < asked && bytes() < PAGE_BYTES / 2
}
