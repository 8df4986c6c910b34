//! Retention over all shards and the cluster store.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{NamedStore, Sharded};
use crate::StoreError;
use crate::retention::{PurgeReport, RetainedPartition, RetentionPolicy, RetentionStore};

#[async_trait]
impl RetentionStore for Sharded {
    /// Reports a partition as dropped only if no shard retains any of it. Keychain entries of an
    /// execution are in the cluster store and are removed when they expire, not with the execution.
    async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<PurgeReport, StoreError> {
        let mut reports = self.all(|store| store.purge(policy, dry_run)).await?;
        let mut parts: Vec<&NamedStore> = self.shards.iter().collect();
        // If the cluster store is one of the shards, it has already purged.
        if self.has_cluster_apart() {
            reports.push(self.cluster.named(self.cluster.store.purge(policy, dry_run).await)?);
            parts.push(&self.cluster);
        }
        let mut whole = PurgeReport::default();
        let (mut dropped, mut held) = (BTreeSet::new(), BTreeSet::new());
        for (part, report) in parts.into_iter().zip(reports) {
            whole.removed.add(&report.removed);
            dropped.extend(report.dropped);
            for RetainedPartition { partition, reason } in report.kept {
                let known = whole.kept.iter_mut().find(|kept| kept.partition == partition);
                match known {
                    Some(kept) => {
                        kept.reason = format!("{}; {reason} in {}", kept.reason, part.name)
                    }
                    None => {
                        whole.kept.push(RetainedPartition { partition: partition.clone(), reason })
                    }
                }
                held.insert(partition);
            }
        }
        whole.dropped = dropped.difference(&held).cloned().collect();
        Ok(whole)
    }
}
