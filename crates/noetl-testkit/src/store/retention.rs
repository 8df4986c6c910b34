//! Retention of the frail store.

use async_trait::async_trait;
use noetl_store::StoreError;
use noetl_store::retention::{Policy, Report, Retention};

use super::FrailStore;

#[async_trait]
impl Retention for FrailStore {
    async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Report, StoreError> {
        self.asks("purge").await?;
        let mut answer = self.inner.purge(policy, dry_run).await?;
        self.answered("purge", &mut answer).await?;
        Ok(answer)
    }
}
