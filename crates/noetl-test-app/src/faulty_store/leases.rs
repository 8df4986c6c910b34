//! Command leases and the database of a [`FaultyStore`].

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Map, Tenant};
use noetl_store::{
    ActiveLease, CommandLeaseStore, CommandRow, Connections, Database, HeldBy, HeldLimit, Sql,
    SqlError, StoreError,
};

use super::FaultyStore;

#[async_trait]
impl CommandLeaseStore for FaultyStore {
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        self.before_call("renew_held").await?;
        let mut response = self.inner.renew_leases(scope, worker, commands, lasts).await?;
        self.after_call("renew_held", &mut response).await?;
        Ok(response)
    }

    async fn touch_worker(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        self.before_call("heard_of").await?;
        let mut response = self.inner.touch_worker(scope, worker).await?;
        self.after_call("heard_of", &mut response).await?;
        Ok(response)
    }

    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        self.before_call("end_held").await?;
        let mut response = self.inner.release_leases(scope, worker).await?;
        self.after_call("end_held", &mut response).await?;
        Ok(response)
    }

    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError> {
        self.before_call("limit_held").await?;
        let mut response = self.inner.limit_held(scope, by, within).await?;
        self.after_call("limit_held", &mut response).await?;
        Ok(response)
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError> {
        self.before_call("held").await?;
        let mut response = self.inner.held(commands).await?;
        self.after_call("held", &mut response).await?;
        Ok(response)
    }

    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError> {
        self.before_call("held_of").await?;
        let mut response = self.inner.held_of(execution).await?;
        self.after_call("held_of", &mut response).await?;
        Ok(response)
    }

    async fn claim_expired(
        &self,
        limit: usize,
        again: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        self.before_call("take_ended").await?;
        let mut response = self.inner.claim_expired(limit, again).await?;
        self.after_call("take_ended", &mut response).await?;
        Ok(response)
    }
}

#[async_trait]
impl Database for FaultyStore {
    async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        self.check_up().map_err(SqlError::Store)?;
        self.inner.run_sql(sql).await
    }

    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        self.before_call("table_names").await?;
        let mut response = self.inner.table_names().await?;
        self.after_call("table_names", &mut response).await?;
        Ok(response)
    }

    fn connections(&self) -> Option<Connections> {
        self.inner.connections()
    }
}
