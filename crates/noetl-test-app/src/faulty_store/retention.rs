//! Retention of a [`FaultyStore`].

use async_trait::async_trait;
use noetl_store::StoreError;
use noetl_store::retention::{PurgeReport, RetentionPolicy, RetentionStore};

use super::FaultyStore;

#[async_trait]
impl RetentionStore for FaultyStore {
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError> {
        self.before_call("purge").await?;
        let mut response = self.inner.purge(policy, dry_run).await?;
        self.after_call("purge", &mut response).await?;
        Ok(response)
    }
}
