//! Control-plane client of the subscription runtime in the process of its control plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use noetl_control::ControlPlane;
use noetl_journal::{StartError, SubmitError, SubscriptionError, TraceParent};
use noetl_model::{Map, SubscriptionId, Tenant, Value};
use noetl_playbook::subscription::MessageStart;
use noetl_remote::{EventReport, ReportError};
use noetl_secrets::{CredentialError, SecretRequest};
use noetl_sources::{
    ControlPlaneClient, ControlPlaneError, FaultOwner, RuntimeEvent, RuntimeReport, StartFailure,
    StartOutcome, SubscriptionGrant, SubscriptionView,
};
use noetl_store::{SubscriptionAction, SubscriptionRow};
use noetl_tools::ToolCredential;
use noetl_triggers::{DeadLetterError, DedupStart, MessageEntry};
use noetl_work::DeadLetter;
use tokio::sync::{Mutex, watch};

/// Starts in flight at a time: enough to share commits, few enough that one subscription doesn't
/// monopolize the journal.
const AT_ONCE: usize = 64;

/// Poll interval for one subscription that other processes may change.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Poll interval for the list of subscriptions that other processes may change.
const LIST_EVERY: Duration = Duration::from_secs(10);

/// Client of the control plane in the same process, for one tenant.
pub struct LocalControlPlane {
    control: Arc<ControlPlane>,
    tenant: Tenant,
    /// Signals changes since the last call of [`ControlPlaneClient::stirred`].
    moves: Mutex<watch::Receiver<()>>,
}

impl LocalControlPlane {
    /// Creates a client for a tenant of this control plane.
    pub fn new(control: Arc<ControlPlane>, tenant: Tenant) -> Self {
        let moves = Mutex::new(control.triggers.subscriptions.moves());
        Self { control, tenant, moves }
    }

    async fn start_one(&self, start: MessageStart) -> StartOutcome {
        let trace = start.trace.clone().map_or(TraceParent::Unsaid, TraceParent::Said);
        let entry = MessageEntry::Subscription;
        match self.control.triggers.messages.start(&self.tenant, entry, start, trace).await {
            Ok(DedupStart::New(started)) => StartOutcome::New(started.execution),
            Ok(DedupStart::Duplicate(execution)) => StartOutcome::Duplicate(execution),
            Err(error) => StartOutcome::Failed(fault(&error)),
        }
    }
}

fn fault(error: &StartError) -> StartFailure {
    let (of, code) = match error {
        StartError::NotFound(_) => (FaultOwner::Playbook, "playbook_not_found"),
        StartError::Playbook(_) | StartError::Submit(SubmitError::Playbook(_)) => {
            (FaultOwner::Playbook, "playbook_unusable")
        }
        StartError::Unnamed => (FaultOwner::Message, "playbook_unnamed"),
        StartError::Submit(SubmitError::Refused(_)) => (FaultOwner::Message, "refused"),
        StartError::Quota(_) => (FaultOwner::Plane, "quota_exceeded"),
        StartError::Submit(_) | StartError::Store(_) => (FaultOwner::Plane, "unavailable"),
    };
    StartFailure { of, code: code.to_owned(), reason: chain(error) }
}

/// Formats an error with its chain of sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(because) = cause {
        text = format!("{text}: {because}");
        cause = because.source();
    }
    text
}

fn view(row: SubscriptionRow) -> SubscriptionView {
    SubscriptionView {
        id: row.id,
        path: row.path,
        state: row.state,
        moved_at: format!("{} {}", row.last_event, row.updated_at.with_offset()),
    }
}

fn of_subscription(error: &SubscriptionError) -> ControlPlaneError {
    match error {
        SubscriptionError::Store(_) | SubscriptionError::Contended(_) => {
            ControlPlaneError::Away(chain(error))
        }
        refused => ControlPlaneError::Refused(chain(refused)),
    }
}

#[async_trait]
impl ControlPlaneClient for LocalControlPlane {
    async fn document(&self, path: &str) -> Result<String, ControlPlaneError> {
        let entry = self.control.catalog.entry_at(&self.tenant, path, None).await;
        let entry = entry.map_err(|error| ControlPlaneError::Away(chain(&error)))?;
        let missing = || ControlPlaneError::Refused(format!("there is no document '{path}'"));
        entry.map(|entry| entry.content.to_string()).ok_or_else(missing)
    }

    async fn credential(&self, name: &str) -> Result<ToolCredential, ControlPlaneError> {
        let asking = SecretRequest {
            who: "subscription".to_owned(),
            operation: "subscribe",
            execution: None,
            parent: None,
            worker: None,
        };
        let revealed = self.control.secrets.credentials.reveal(&self.tenant, name, &asking).await;
        let (found, data) = revealed.map_err(|error| match error {
            CredentialError::Store(_)
            | CredentialError::Unrecorded(_)
            | CredentialError::ChangeUnrecorded(_) => ControlPlaneError::Away(chain(&error)),
            refused => ControlPlaneError::Refused(chain(&refused)),
        })?;
        let data = match data {
            Value::Object(data) => data,
            plain => Map::from_iter([("value".to_owned(), plain)]),
        };
        Ok(ToolCredential { name: found.kept.name, kind: found.kept.kind, data })
    }

    async fn register(&self, path: &str) -> Result<SubscriptionView, ControlPlaneError> {
        let row = self.control.triggers.subscriptions.register(&self.tenant, path).await;
        row.map(view).map_err(|error| of_subscription(&error))
    }

    async fn list(&self) -> Result<Vec<SubscriptionView>, ControlPlaneError> {
        let rows = self.control.triggers.subscriptions.list(&self.tenant).await;
        let rows = rows.map_err(|error| of_subscription(&error))?;
        Ok(rows.into_iter().map(view).collect())
    }

    async fn view(&self, id: SubscriptionId) -> Result<SubscriptionView, ControlPlaneError> {
        let row = self.control.triggers.subscriptions.get(&self.tenant, id).await;
        row.map(view).map_err(|error| of_subscription(&error))
    }

    async fn act(
        &self,
        id: SubscriptionId,
        action: SubscriptionAction,
    ) -> Result<SubscriptionView, ControlPlaneError> {
        let row = self.control.triggers.subscriptions.act(&self.tenant, id, action).await;
        row.map(view).map_err(|error| of_subscription(&error))
    }

    async fn changed(&self, seen: &SubscriptionView) -> SubscriptionView {
        let mut moves = self.control.triggers.subscriptions.moves();
        loop {
            let is_read = match self.view(seen.id).await {
                Ok(now) if now != *seen => return now,
                Ok(_) => true,
                Err(_) => false,
            };
            // Without other writers, every change is signaled in this process.
            if is_read && !self.control.triggers.subscriptions.is_shared() {
                let _ = moves.changed().await;
            } else {
                let _ = tokio::time::timeout(LOOK_EVERY, moves.changed()).await;
            }
        }
    }

    async fn stirred(&self) {
        let mut moves = self.moves.lock().await;
        if self.control.triggers.subscriptions.is_shared() {
            let _ = tokio::time::timeout(LIST_EVERY, moves.changed()).await;
        } else {
            let _ = moves.changed().await;
        }
    }

    async fn hold(
        &self,
        view: &SubscriptionView,
        holder: &str,
        ttl: Duration,
        reading: RuntimeReport,
    ) -> Result<SubscriptionGrant, ControlPlaneError> {
        let (subscriptions, tenant) = (&self.control.triggers.subscriptions, &self.tenant);
        let asked = async {
            let is_held = subscriptions.hold(tenant, view.id, holder, ttl).await?;
            let is_awaited = subscriptions.is_awaited(tenant, view.id, holder).await?;
            Ok(SubscriptionGrant { is_held, is_awaited })
        };
        let hold: SubscriptionGrant = asked.await.map_err(|error| of_subscription(&error))?;
        // Counted only on success: a caller without a response sends the same counts again.
        let counted = &self.control.journal.metrics.subscriptions;
        counted.add(&view.path, reading.counts);
        if let Some(backlog) = reading.backlog.filter(|_| hold.is_held) {
            counted.set_backlog(&view.path, backlog);
        }
        Ok(hold)
    }

    async fn let_go(&self, view: &SubscriptionView, holder: &str) -> Result<(), ControlPlaneError> {
        self.control.journal.metrics.subscriptions.clear_backlog(&view.path);
        let gone = self.control.triggers.subscriptions.let_go(&self.tenant, view.id, holder).await;
        gone.map_err(|error| of_subscription(&error))
    }

    async fn start(
        &self,
        starts: Vec<MessageStart>,
        _together: Option<usize>,
    ) -> Vec<StartOutcome> {
        stream::iter(starts).map(|start| self.start_one(start)).buffered(AT_ONCE).collect().await
    }

    async fn note(&self, note: RuntimeEvent) -> Result<(), ControlPlaneError> {
        let report = EventReport {
            execution: note.log,
            step: "ingress".to_owned(),
            event_type: note.event_type.to_owned(),
            status: Some(note.status.to_owned()),
            payload: Some(note.payload),
            meta: None,
            worker: None,
            event: None,
            columns: None,
        };
        let taken = self.control.remote.reports.record(&self.tenant, report).await;
        taken.map(|_| ()).map_err(|error| of_report(&error))
    }

    async fn bury(&self, id: SubscriptionId, letter: DeadLetter) -> Result<(), ControlPlaneError> {
        let kept = self.control.triggers.dead_letters.keep(&self.tenant, id, letter).await;
        kept.map(|_| ()).map_err(|error| match error {
            DeadLetterError::Subscription(error) => of_subscription(&error),
            DeadLetterError::Report(error) => of_report(&error),
            DeadLetterError::Object(error) => ControlPlaneError::Away(chain(&error)),
        })
    }
}

fn of_report(error: &ReportError) -> ControlPlaneError {
    match error {
        ReportError::Store(_) | ReportError::Submit(_) => ControlPlaneError::Away(chain(error)),
        refused => ControlPlaneError::Refused(chain(refused)),
    }
}
