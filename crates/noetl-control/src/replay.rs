//! Replaying a log: what its events say up to some event, time or number of them.
//!
//! Rows are read in pages in the order of their ids and folded one by one, so that a log of any
//! length costs the memory of its state and of two pages. The fold goes on from a kept state
//! when there is one that no later row contradicts ([`kept`]); that only ever saves work, and the
//! answer has the same checksum with and without it.

mod kept;
mod pass;
mod payloads;
mod turns;

use std::sync::Arc;

use noetl_engine::replay::{Projection, ReplayState, Scope};
use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, SubscriptionId, Tenant, Value};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{Store, StoreError, Until, row_bytes};

use self::pass::Pass;
use self::turns::Turns;
use crate::results::Results;
use crate::stored_results::StoredResults;

pub use self::payloads::{PayloadLabel, PayloadResolution, Payloads, PayloadsSummary, Resolution};

/// The organization of rows that name none.
pub const ORGANIZATION: &str = "default";

/// Rows of a page, of which two are in memory at a time: enough that a read costs more than asking
/// for it. The store ends a page of large rows sooner.
const PAGE: usize = 5_000;

#[derive(Debug, Clone)]
pub struct ReplayRequest {
    pub execution: ExecutionId,
    /// Whose it has to be; another's has no events.
    pub tenant: Tenant,
    /// Whose its rows have to be; rows that name none are of [`ORGANIZATION`].
    pub organization: String,
    /// Up to where.
    pub until: Until,
    /// What the caller is interested in; it is noted, and everything is folded.
    pub projection: Projection,
    /// How many events at most, the oldest first; all of them when `None`.
    pub limit: Option<u64>,
    /// Whether to look up what the references refer to.
    pub resolve_payloads: bool,
}

/// What a replay came to.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The state, sealed.
    pub state: ReplayState,
    /// Whether there are more events than the limit let in.
    pub is_truncated: bool,
    /// What became of the references, when that was asked for.
    pub payloads: Option<Payloads>,
}

/// An execution folded to its present end.
#[derive(Debug, Clone)]
pub struct Advanced {
    /// The state, sealed.
    pub state: ReplayState,
    /// The largest event id in it.
    pub version: EventId,
    /// How many events are in it.
    pub events: u64,
    /// The `meta` of the event it began with.
    pub start_meta: Option<Value>,
}

/// The replay service. Cheap to clone.
#[derive(Clone)]
pub struct Replay {
    store: Arc<dyn Store>,
    results: Results,
    stored: StoredResults,
    turns: Arc<Turns>,
}

impl Replay {
    pub(crate) fn new(store: Arc<dyn Store>, results: Results, stored: StoredResults) -> Self {
        Self { store, results, stored, turns: Arc::default() }
    }

    /// Replays a log. One that does not exist, or is another tenant's, has no events.
    pub async fn state(&self, request: &ReplayRequest) -> Result<Replayed, StoreError> {
        let _turn = self.turns.take(request.limit).await;
        let pass = Pass::new(Scope {
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
                let pass = Pass { is_theirs, is_execution: owner.is_some(), ..pass };
                self.fold(pass, request.until, request.limit).await?
            }
        };
        let payloads = match request.resolve_payloads {
            true => Some(self.resolve(&request.tenant, &folded.state).await?),
            false => None,
        };
        let Pass { state, is_truncated, .. } = folded;
        Ok(Replayed { state, is_truncated, payloads })
    }

    /// Folds an execution to its present end, from where it was folded to before when that is
    /// known. `None` when it has no events.
    pub async fn advance(&self, execution: ExecutionId) -> Result<Option<Advanced>, StoreError> {
        let _turn = self.turns.take(None).await;
        let owner = self.store.tenant_of(execution).await?;
        let pass = Pass::new(Scope {
            tenant_id: owner.clone().unwrap_or_default().to_string(),
            organization_id: ORGANIZATION.to_owned(),
            execution_id: execution.get(),
            projection: Projection::All,
        });
        let is_execution = owner.is_some();
        let pass = Pass { is_theirs: is_execution, is_execution, is_of_everybody: true, ..pass };
        let Pass { state, start_meta, .. } = self.fold(pass, Until::End, None).await?;
        let advanced = state.last_event_id.map(|version| Advanced {
            version: EventId::new(version),
            events: state.event_count,
            start_meta,
            state,
        });
        Ok(advanced)
    }

    /// Whether the log is of a subscription of the tenant that asks.
    async fn is_subscription(&self, request: &ReplayRequest) -> Result<bool, StoreError> {
        let id = SubscriptionId::new(request.execution.get());
        Ok(self.store.subscription(&request.tenant, id).await?.is_some())
    }

    async fn fold(&self, pass: Pass, until: Until, limit: Option<u64>) -> Result<Pass, StoreError> {
        let execution = ExecutionId::new(pass.state.execution_id);
        let mut pass = kept::seeded(&*self.store, pass, until, limit).await?;
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
        if until == Until::End && !pass.is_truncated {
            pass = kept::keep(&*self.store, pass).await?;
        }
        pass.sealed().await
    }
}

/// Whether no page comes after this one. One with fewer rows than were asked for need not be the
/// last, because the store ends a page of large rows sooner; but it is when it is small too. To
/// look for an empty page instead would never end while somebody appends.
fn is_last(rows: &[EventRow], asked: usize) -> bool {
    let bytes = || rows.iter().map(row_bytes).sum::<usize>();
    rows.len() < asked && bytes() < PAGE_BYTES / 2
}
