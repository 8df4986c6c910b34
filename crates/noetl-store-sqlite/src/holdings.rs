//! Implements [`CommandLeaseStore`], the leases of commands by remote workers, on columns of `command`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Tenant, Timestamp};
use noetl_store::command_leases::SILENCE_MAX;
use noetl_store::{ActiveLease, CommandLeaseStore, CommandRow, HeldBy, HeldLimit, StoreError};
use rusqlite::params;

use crate::SqliteStore;
use crate::commands::command;
use crate::encoded_append::rows;

#[async_trait]
impl CommandLeaseStore for SqliteStore {
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        let (scope, worker) = (scope.cloned(), worker.to_owned());
        let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
        let commands = serde_json::json!(commands).to_string();
        self.write("renew leases of commands", move |connection, now| {
            let sql = include_str!("../queries/command_renew_held.sql");
            let mut renew = connection.prepare_cached(sql)?;
            let scope = scope.as_ref().map(Tenant::as_str);
            let asked = params![scope, worker, commands, now.plus(lasts).as_micros()];
            let renewed = renew.query_map(asked, |row| Ok(CommandId::new(row.get(0)?)))?;
            let mut renewed = renewed.collect::<rusqlite::Result<Vec<_>>>()?;
            renewed.sort_unstable();
            Ok(renewed)
        })
        .await
    }

    async fn touch_worker(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let (scope, worker) = (scope.cloned(), worker.to_owned());
        self.write("note a sign of life", move |connection, now| {
            let sql = include_str!("../queries/command_heard_of.sql");
            let scope = scope.as_ref().map(Tenant::as_str);
            let until = now.plus(SILENCE_MAX).as_micros();
            connection.prepare_cached(sql)?.execute(params![scope, worker, until])
        })
        .await
    }

    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let (scope, worker) = (scope.cloned(), worker.to_owned());
        self.write("end leases of commands", move |connection, now| {
            let sql = include_str!("../queries/command_end_held.sql");
            let scope = scope.as_ref().map(Tenant::as_str);
            connection.prepare_cached(sql)?.execute(params![scope, worker, now.as_micros()])
        })
        .await
    }

    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError> {
        let (worker, commands) = match by {
            HeldBy::Worker(worker) => (Some(worker.to_owned()), None),
            HeldBy::Commands(commands) => {
                let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
                (None, Some(serde_json::json!(commands).to_string()))
            }
        };
        let scope = scope.cloned();
        self.write("limit leases of commands", move |connection, now| {
            let sql = include_str!("../queries/command_limit_held.sql");
            let scope = scope.as_ref().map(Tenant::as_str);
            let at_most = now.plus(within);
            let asked = params![scope, worker, at_most.as_micros(), commands];
            let commands = connection.prepare_cached(sql)?.execute(asked)?;
            let limit = (commands > 0).then_some(HeldLimit { at_most, commands });
            Ok(limit.into_iter().collect())
        })
        .await
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError> {
        let commands: Vec<i64> = commands.iter().map(|id| id.get()).collect();
        let commands = serde_json::json!(commands).to_string();
        self.read("read leases of commands", move |connection| {
            let sql = include_str!("../queries/command_held.sql");
            let mut list = connection.prepare_cached(sql)?;
            let held = list.query_map([commands], |row| {
                Ok(ActiveLease {
                    id: CommandId::new(row.get(0)?),
                    execution: ExecutionId::new(row.get(1)?),
                    until: Timestamp::from_micros(row.get(2)?),
                    at_most: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_micros),
                })
            })?;
            held.collect::<rusqlite::Result<Vec<_>>>()
        })
        .await
    }

    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError> {
        self.read("read the leases of an execution", move |connection| {
            let sql = include_str!("../queries/command_held_of.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([execution.get()], command)?.collect()
        })
        .await
    }

    async fn claim_expired(
        &self,
        limit: usize,
        reclaim_after: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let now = self.clock().now();
        let sql = include_str!("../queries/command_ended.sql");
        // Usually there are none, and this check writes nothing.
        let any = self.read("look for ended leases", move |connection| {
            let mut list = connection.prepare_cached(sql)?;
            list.exists(params![now.as_micros(), rows(limit)])
        });
        if !any.await? {
            return Ok(Vec::new());
        }
        self.write("take ended leases", move |connection, now| {
            let mut list = connection.prepare_cached(sql)?;
            let ended = list.query_map(params![now.as_micros(), rows(limit)], command)?;
            let ended = ended.collect::<rusqlite::Result<Vec<_>>>()?;
            let sql = "update command set lease_until = ?2 where id = ?1";
            let mut put_off = connection.prepare_cached(sql)?;
            for row in &ended {
                put_off.execute([row.id.get(), now.plus(reclaim_after).as_micros()])?;
            }
            Ok(ended)
        })
        .await
    }
}
