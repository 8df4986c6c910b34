//! Leases of commands in the frail store, and the database below it.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, Map, Tenant};
use noetl_store::{
    CommandRow, Connections, Database, HeldCommand, Holdings, Sql, SqlError, StoreError,
};

use super::FrailStore;

#[async_trait]
impl Holdings for FrailStore {
    async fn renew_held(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        self.asks("renew_held").await?;
        let mut answer = self.inner.renew_held(scope, worker, commands, lasts).await?;
        self.answered("renew_held", &mut answer).await?;
        Ok(answer)
    }

    async fn heard_of(&self, scope: Option<&Tenant>, worker: &str) -> Result<usize, StoreError> {
        self.asks("heard_of").await?;
        let mut answer = self.inner.heard_of(scope, worker).await?;
        self.answered("heard_of", &mut answer).await?;
        Ok(answer)
    }

    async fn end_held(&self, scope: Option<&Tenant>, worker: &str) -> Result<usize, StoreError> {
        self.asks("end_held").await?;
        let mut answer = self.inner.end_held(scope, worker).await?;
        self.answered("end_held", &mut answer).await?;
        Ok(answer)
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<HeldCommand>, StoreError> {
        self.asks("held").await?;
        let mut answer = self.inner.held(commands).await?;
        self.answered("held", &mut answer).await?;
        Ok(answer)
    }

    async fn take_ended(
        &self,
        limit: usize,
        again: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        self.asks("take_ended").await?;
        let mut answer = self.inner.take_ended(limit, again).await?;
        self.answered("take_ended", &mut answer).await?;
        Ok(answer)
    }
}

#[async_trait]
impl Database for FrailStore {
    async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        self.answer().map_err(SqlError::Store)?;
        self.inner.run_sql(sql).await
    }

    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        self.asks("table_names").await?;
        let mut answer = self.inner.table_names().await?;
        self.answered("table_names", &mut answer).await?;
        Ok(answer)
    }

    fn connections(&self) -> Option<Connections> {
        self.inner.connections()
    }
}
