//! Rows of executions and commands: from one shard, or merged from all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use noetl_model::{CommandId, ExecutionId, Tenant};

use super::fan_out::ShardResults;
use super::{NamedStore, Sharded};
use crate::{
    CommandFilter, CommandRow, CommandStore, ExecutionFilter, ExecutionRow, ExecutionStatus,
    ExecutionStore, StartCounts, StoreError, TimeBuckets,
};

#[async_trait]
impl ExecutionStore for Sharded {
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let shard = self.of_execution(id);
        shard.named(shard.store.execution(tenant, id).await)
    }

    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        let shard = self.of_execution(id);
        shard.named(shard.store.tenant_of(id).await)
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        // All skipped rows may be in one shard, so query each from its start.
        let limit = filter.offset.saturating_add(filter.limit);
        let from_the_first = &ExecutionFilter { offset: 0, limit, ..filter.clone() };
        let rows = self.all(|store| store.executions(tenant, from_the_first)).await?;
        let mut rows = rows.concat();
        rows.sort_by_key(|row| Reverse((row.started_at, row.id)));
        Ok(rows.into_iter().skip(filter.offset).take(filter.limit).collect())
    }

    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError> {
        let mut counts = BTreeMap::new();
        for (status, more) in self.all(|store| store.executions_by_status(tenant)).await?.concat() {
            let (_, count) = counts.entry(status.as_str()).or_insert((status, 0));
            *count += more;
        }
        Ok(counts.into_values().collect())
    }

    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError> {
        let mut counts = BTreeMap::new();
        let all = self.all(|store| store.executions_by_start(tenant, stretch)).await?.concat();
        for StartCounts { place, status, count: more } in all {
            let (_, count) = counts.entry((place, status.as_str())).or_insert((status, 0));
            *count += more;
        }
        let started = |((place, _), (status, count))| StartCounts { place, status, count };
        Ok(counts.into_iter().map(started).collect())
    }

    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError> {
        let mut rows = self.all(|store| store.every_execution(after, limit)).await?.concat();
        rows.sort_by_key(|(_, row)| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let mut ids = self.all(|store| store.unfinished(after, limit)).await?.concat();
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }
}

#[async_trait]
impl CommandStore for Sharded {
    /// Queries all shards, because a command's ID does not identify its execution. Returns the
    /// first row found without waiting for the others: a shard that is down may take long to fail.
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError> {
        let ask = async |shard: &NamedStore| shard.named(shard.store.command(id).await);
        let mut asked: FuturesUnordered<_> = self.shards.iter().map(ask).collect();
        let mut failed = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(Some(row)) => return Ok(Some(row)),
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let mut rows = self.all(|store| store.open_commands(after, limit)).await?.concat();
        rows.sort_by_key(|row| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let asked = self.shards.iter().map(|shard| shard.store.pending_commands(wanted, limit));
        let mut found = ShardResults { answers: Vec::new(), failed: Vec::new() };
        let answers = self.shards.iter().zip(join_all(asked).await).enumerate();
        for (number, (shard, answer)) in answers {
            match shard.named(answer) {
                Ok(rows) => found.answers.push((number, rows)),
                Err(error) => found.failed.push(error),
            }
        }
        let mut rows: Vec<_> = found.work()?.into_iter().flat_map(|(_, rows)| rows).collect();
        rows.sort_by_key(|row| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError> {
        let mut pools = BTreeMap::new();
        for (pool, count) in self.all(|store| store.pending_by_pool()).await?.concat() {
            *pools.entry(pool).or_default() += count;
        }
        Ok(pools.into_iter().collect())
    }
}
