//! Leases of commands, in the shard of their execution, and operator access to the database.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Map, Tenant};

use super::Sharded;
use crate::{
    ActiveLease, CommandLeaseStore, CommandRow, Connections, Database, HeldBy, HeldLimit, Sql,
    SqlError, StoreError,
};

#[async_trait]
impl CommandLeaseStore for Sharded {
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        let renewed = self.all(|store| store.renew_leases(scope, worker, commands, lasts)).await?;
        let mut renewed = renewed.concat();
        renewed.sort_unstable();
        Ok(renewed)
    }

    async fn touch_worker(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        Ok(self.all(|store| store.touch_worker(scope, worker)).await?.into_iter().sum())
    }

    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        Ok(self.all(|store| store.release_leases(scope, worker)).await?.into_iter().sum())
    }

    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError> {
        Ok(self.all(|store| store.limit_held(scope, by, within)).await?.concat())
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError> {
        let mut held = self.all(|store| store.held(commands)).await?.concat();
        held.sort_unstable();
        Ok(held)
    }

    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.held_of(execution).await)
    }

    async fn claim_expired(
        &self,
        limit: usize,
        reclaim_after: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let taken =
            self.fan_out(limit, Vec::len, |store, share| store.claim_expired(share, reclaim_after));
        let taken = taken.await.work()?;
        Ok(taken.into_iter().flat_map(|(_, rows)| rows).collect())
    }
}

/// Operator access to the cluster store, where statements about the whole deployment belong.
#[async_trait]
impl Database for Sharded {
    async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        self.cluster.store.run_sql(sql).await
    }

    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        self.cluster.named(self.cluster.store.table_names().await)
    }

    fn connections(&self) -> Option<Connections> {
        self.cluster.store.connections()
    }
}
