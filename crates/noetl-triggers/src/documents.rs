//! Keeps schedules and listeners in step with the documents of the catalog.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_catalog::TriggerDocuments;
use noetl_identity::IdGenerator;
use noetl_journal::Subscriptions;
use noetl_model::{Clock, Tenant};
use noetl_secrets::Credentials;
use noetl_store::{StoreError, TriggerStore};

use crate::listeners::Listeners;
use crate::schedules::ScheduleRows;

/// Follows the documents of schedules and subscriptions. Cheap to clone.
#[derive(Clone)]
pub struct DocumentTriggers {
    pub(crate) subscriptions: Subscriptions,
    pub(crate) listeners: Listeners,
    pub(crate) schedules: ScheduleRows,
}

impl DocumentTriggers {
    /// Creates the service. The secrets that listeners verify are in `credentials`.
    pub fn new(
        store: Arc<dyn TriggerStore>,
        clock: &Arc<dyn Clock>,
        ids: &IdGenerator,
        subscriptions: &Subscriptions,
        credentials: &Credentials,
    ) -> Self {
        let listeners = Listeners::new(store.clone(), subscriptions.clone(), credentials.clone());
        let schedules = ScheduleRows::new(store, clock.clone(), ids.clone());
        Self { subscriptions: subscriptions.clone(), listeners, schedules }
    }
}

#[async_trait]
impl TriggerDocuments for DocumentTriggers {
    async fn shared_listeners(
        &self,
        tenant: &Tenant,
        path: &str,
        name: &str,
    ) -> Result<Vec<String>, StoreError> {
        self.listeners.others(tenant, path, name).await
    }

    async fn sync_document(
        &self,
        tenant: &Tenant,
        path: &str,
        kind: Option<&str>,
    ) -> Result<(), StoreError> {
        self.schedules.sync_document(tenant, path, kind).await
    }
}
