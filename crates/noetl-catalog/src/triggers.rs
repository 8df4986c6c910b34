//! The seam to triggers: documents that start executions have rows and listeners of their own.

use async_trait::async_trait;
use noetl_model::Tenant;
use noetl_store::StoreError;

/// Kind of the documents that define subscriptions.
pub const SUBSCRIPTION_KIND: &str = "subscription";

/// Kind of the documents that define schedules.
pub const SCHEDULE_KIND: &str = "schedule";

/// Follows the documents that start executions.
#[async_trait]
pub trait TriggerDocuments: Send + Sync {
    /// Returns the paths of other subscriptions whose latest version has the listener `name`.
    async fn shared_listeners(
        &self,
        tenant: &Tenant,
        path: &str,
        name: &str,
    ) -> Result<Vec<String>, StoreError>;

    /// Applies the latest version of the document at `path`, or its deletion. `kind` is the kind of
    /// the document if it was just registered. Idempotent.
    async fn sync_document(
        &self,
        tenant: &Tenant,
        path: &str,
        kind: Option<&str>,
    ) -> Result<(), StoreError>;
}
