//! Explains why a subscription receives messages or not.
//!
//! The row contains the requested state, the lease names the runtime, and the runtime reports
//! obstacles in the subscription's event log.

use noetl_model::{Event, Fact, Seq, SubscriptionId, Tenant, Timestamp, Value};
use noetl_playbook::subscription_spec;
use noetl_store::{Lease, SubscriptionRow, SubscriptionState};

use super::running::acting;
use super::{SubscriptionError, Subscriptions};

/// Events read at a time, and maximum number of reads. Runtimes report an obstacle twice a minute
/// at most, so this covers weeks.
const PAGE: usize = 1000;
const PAGES_MAX: usize = 100;

/// Explanation of a subscription's state.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionWhy {
    pub row: SubscriptionRow,
    pub what: String,
    /// Event that would change the state; `None` if all is well.
    pub would_move_it: Option<String>,
    /// Time since which the reason holds.
    pub since: Timestamp,
    /// Runtime that holds the lease, and the expiration of that lease.
    pub runtime: Option<(String, Timestamp)>,
}

/// Latest reported obstacles between a source and executions.
#[derive(Default)]
struct Told {
    source: Option<(Timestamp, String)>,
    dispatch: Option<(Timestamp, String)>,
}

impl Told {
    fn hear(&mut self, event: &Event) {
        let Fact::Reported(said) = &event.fact else { return };
        let reason = || {
            let reason = said.payload.as_ref().and_then(|told| told.get("reason"));
            (event.at, reason.and_then(Value::as_str).unwrap_or("no reason was given").to_owned())
        };
        match said.event_type.as_str() {
            "subscription.source.unavailable" => self.source = Some(reason()),
            "subscription.source.connected" => self.source = None,
            "subscription.circuit.opened" => self.dispatch = Some(reason()),
            "subscription.circuit.closed" => self.dispatch = None,
            _ => {}
        }
    }
}

impl Subscriptions {
    /// Returns the explanation of a subscription's state, or `None` if it does not exist.
    pub async fn why(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionWhy>, SubscriptionError> {
        let row = match self.get(tenant, id).await {
            Err(SubscriptionError::Unregistered(_)) => return Ok(None),
            row => row?,
        };
        let is_pushed = self.is_pushed(tenant, &row).await?;
        let name = acting(id);
        let leases = self.store.live(&name).await.map_err(SubscriptionError::Store)?;
        let lease = leases.into_iter().find(|lease| lease.name == name);
        let told = self.told(id).await?;
        Ok(Some(explained(row, is_pushed, lease, told)))
    }

    /// Returns `true` if messages are pushed, so no runtime has to fetch them.
    async fn is_pushed(
        &self,
        tenant: &Tenant,
        row: &SubscriptionRow,
    ) -> Result<bool, SubscriptionError> {
        let entry = self.store.entry_at(tenant, &row.path, None).await;
        let entry = entry.map_err(SubscriptionError::Store)?;
        let spec = entry.and_then(|entry| subscription_spec(&entry.content));
        let mode = spec.as_ref().and_then(|spec| spec.get("mode")).and_then(Value::as_str);
        Ok(mode == Some("push"))
    }

    async fn told(&self, id: SubscriptionId) -> Result<Told, SubscriptionError> {
        let mut told = Told::default();
        let mut after = Seq(0);
        for _ in 0..PAGES_MAX {
            let page = self.events(id, after, PAGE).await?;
            page.iter().for_each(|event| told.hear(event));
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.seq,
                _ => break,
            }
        }
        Ok(told)
    }
}

fn explained(
    row: SubscriptionRow,
    is_pushed: bool,
    lease: Option<Lease>,
    told: Told,
) -> SubscriptionWhy {
    let id = row.id;
    let runtime = lease.map(|lease| (lease.holder, lease.until));
    let (what, would, since) = match row.state {
        SubscriptionState::Registered => (
            "it was registered and has not been activated".to_owned(),
            Some(format!(
                "a runtime (`noetl dev`, `noetl worker --subscriptions`) activates what it may act on; \
                 or `noetl subscription activate {id}`"
            )),
            row.updated_at,
        ),
        SubscriptionState::Paused => (
            "it is paused, and its messages stay where they are".to_owned(),
            Some(format!("`noetl subscription resume {id}`")),
            row.updated_at,
        ),
        SubscriptionState::Draining => (
            "it takes nothing more, and ends when what was begun is answered for".to_owned(),
            Some("the runtime that acts on it, or the next one, ends it".to_owned()),
            row.updated_at,
        ),
        SubscriptionState::Deactivated => (
            "it was deactivated".to_owned(),
            Some(format!("`noetl subscription activate {id}`, or registering its path again")),
            row.updated_at,
        ),
        SubscriptionState::Active => active(&row, is_pushed, runtime.as_ref(), told),
    };
    SubscriptionWhy { row, what, would_move_it: would, since, runtime }
}

fn active(
    row: &SubscriptionRow,
    is_pushed: bool,
    runtime: Option<&(String, Timestamp)>,
    told: Told,
) -> (String, Option<String>, Timestamp) {
    if is_pushed {
        return ("it takes messages as they are sent to it".to_owned(), None, row.updated_at);
    }
    let Some((runtime, _)) = runtime else {
        let would = "a runtime: `noetl dev`, or `noetl worker --subscriptions`".to_owned();
        return ("no runtime acts on it".to_owned(), Some(would), row.updated_at);
    };
    if let Some((since, reason)) = told.source {
        let what = format!("runtime '{runtime}' does not get at its source: {reason}");
        return (what, Some("it is tried again every few seconds".to_owned()), since);
    }
    if let Some((since, reason)) = told.dispatch {
        let what = format!("runtime '{runtime}' has messages that cannot be started: {reason}");
        return (what, Some("they are kept, and tried again by themselves".to_owned()), since);
    }
    (format!("runtime '{runtime}' takes its messages"), None, row.updated_at)
}
