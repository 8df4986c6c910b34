//! Retention over all shards and the cluster store.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::Sharded;
use crate::StoreError;
use crate::retention::{Kept, Policy, Report, Retention};

#[async_trait]
impl Retention for Sharded {
    /// A part of the log is dropped when no shard has any of it left. Secrets that belong to an
    /// execution are in the cluster store and go when they expire, not with it.
    async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Report, StoreError> {
        let reports = self.all(|store| store.purge(policy, dry_run)).await?;
        let mut whole = Report::default();
        let (mut dropped, mut held) = (BTreeSet::new(), BTreeSet::new());
        for (shard, report) in self.shards.iter().zip(reports) {
            whole.removed.add(&report.removed);
            dropped.extend(report.dropped);
            for Kept { partition, reason } in report.kept {
                let known = whole.kept.iter_mut().find(|kept| kept.partition == partition);
                match known {
                    Some(kept) => {
                        kept.reason = format!("{}; {reason} in {}", kept.reason, shard.name)
                    }
                    None => whole.kept.push(Kept { partition: partition.clone(), reason }),
                }
                held.insert(partition);
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
