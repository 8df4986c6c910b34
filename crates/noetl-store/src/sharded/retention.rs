//! Retention over all shards and the cluster store.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::Sharded;
use crate::StoreError;
use crate::retention::{Kept, Policy, Report, Retention};

#[async_trait]
impl Retention for Sharded {
    /// A part of the log is dropped when no shard has any of it left; one that a shard keeps says
    /// which shard.
    async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Report, StoreError> {
        let reports = self.all(|store| store.purge(policy, dry_run)).await?;
        let mut whole = Report::default();
        let (mut dropped, mut held) = (BTreeSet::new(), BTreeSet::new());
        for (shard, report) in self.shards.iter().zip(reports) {
            whole.removed.add(&report.removed);
            dropped.extend(report.dropped);
            for Kept { partition, reason } in report.kept {
                held.insert(partition.clone());
                let reason = format!("{}: {reason}", shard.name);
                whole.kept.push(Kept { partition, reason });
            }
        }
        whole.dropped = dropped.difference(&held).cloned().collect();
        // The cluster store may be one of the shards, which has purged already.
        if !self.shards.iter().any(|shard| Arc::ptr_eq(&shard.store, &self.cluster.store)) {
            let cluster = self.cluster.named(self.cluster.store.purge(policy, dry_run).await)?;
            whole.removed.add(&cluster.removed);
        }
        Ok(whole)
    }
}
