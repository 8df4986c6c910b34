//! Retention of a [`FaultyStore`].

use async_trait::async_trait;
use noetl_store::StoreError;
use noetl_store::retention::{Policy, Report, Retention};

use super::FaultyStore;

#[async_trait]
impl Retention for FaultyStore {
    async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Report, StoreError> {
        self.before_call("purge").await?;
        let mut response = self.inner.purge(policy, dry_run).await?;
        self.after_call("purge", &mut response).await?;
        Ok(response)
    }
}
