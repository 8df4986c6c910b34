//! Implements [`CommandLeaseStore`], the leases of commands by remote workers, on columns of `command`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Tenant};
use noetl_store::command_leases::SILENCE_MAX;
use noetl_store::{ActiveLease, CommandLeaseStore, CommandRow, HeldBy, HeldLimit, StoreError};
use sqlx::Row;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{PgTimestamptz, interval};
use crate::commands::command;

#[async_trait]
impl CommandLeaseStore for PostgresStore {
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        let sql = include_str!("../queries/command_renew_held.sql");
        let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
        let make = || {
            sqlx::query(sql)
                .bind(scope.map(Tenant::as_str))
                .bind(plain(worker))
                .bind(commands.clone())
                .bind(interval(lasts))
        };
        let renewed = self
            .by_key()
            .change("renew leases of commands", make, |row| Ok(CommandId::new(row.try_get(0)?)));
        let mut renewed = renewed.await?;
        renewed.sort_unstable();
        Ok(renewed)
    }

    async fn touch_worker(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/command_heard_of.sql");
        let scope = scope.map(Tenant::as_str);
        let make = || sqlx::query(sql).bind(scope).bind(plain(worker)).bind(interval(SILENCE_MAX));
        self.by_key().touch("note a sign of life", make).await
    }

    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/command_end_held.sql");
        let scope = scope.map(Tenant::as_str);
        let make = || sqlx::query(sql).bind(scope).bind(plain(worker));
        self.by_key().touch("end leases of commands", make).await
    }

    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError> {
        let (scope, within) = (scope.map(Tenant::as_str), interval(within));
        let make = || match by {
            HeldBy::Worker(worker) => {
                let sql = include_str!("../queries/command_limit_worker.sql");
                sqlx::query(sql).bind(scope).bind(plain(worker)).bind(within)
            }
            HeldBy::Commands(commands) => {
                let sql = include_str!("../queries/command_limit_listed.sql");
                let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
                sqlx::query(sql).bind(scope).bind(commands).bind(within)
            }
        };
        let limited = self.by_key().change("limit leases of commands", make, |row| {
            Ok(row.try_get::<PgTimestamptz, _>(0)?.0)
        });
        let limited = limited.await?;
        let limit = |at_most| HeldLimit { at_most, commands: limited.len() };
        Ok(limited.first().copied().map(limit).into_iter().collect())
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError> {
        let sql = include_str!("../queries/command_held.sql");
        let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
        self.by_key()
            .list(
                "read leases of commands",
                || sqlx::query(sql).bind(&commands),
                |row| {
                    Ok(ActiveLease {
                        id: CommandId::new(row.try_get(0)?),
                        execution: ExecutionId::new(row.try_get(1)?),
                        until: row.try_get::<PgTimestamptz, _>(2)?.0,
                        at_most: row.try_get::<Option<PgTimestamptz>, _>(3)?.map(|at| at.0),
                    })
                },
            )
            .await
    }

    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError> {
        let sql = include_str!("../queries/command_held_of.sql");
        let make = || sqlx::query(sql).bind(execution.get());
        self.list("read the leases of an execution", make, command).await
    }

    async fn claim_expired(
        &self,
        limit: usize,
        reclaim_after: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let sql = include_str!("../queries/command_take_ended.sql");
        let make = || sqlx::query(sql).bind(rows(limit)).bind(interval(reclaim_after));
        let taken = self.in_order().change("take ended leases", make, |row| {
            Ok((row.try_get::<PgTimestamptz, _>(12)?.0, command(row)?))
        });
        let mut taken = taken.await?;
        taken.sort_by_key(|(ended, row)| (*ended, row.id));
        Ok(taken.into_iter().map(|(_, row)| row).collect())
    }
}
