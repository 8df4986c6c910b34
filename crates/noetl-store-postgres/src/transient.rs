//! Implements [`VariableStore`], the variables of executions, on the table `transient`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{NewVariable, StoreError, Variable, VariableKind, VariableStore};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, instant, number, parsed, value};

#[async_trait]
impl VariableStore for PostgresStore {
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError> {
        let sql = include_str!("../queries/transient_put.sql");
        let make = || {
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(execution.get());
            query
                .bind(new.iter().map(|variable| &*variable.name).collect::<Vec<_>>())
                .bind(new.iter().map(|variable| variable.kind.as_str()).collect::<Vec<_>>())
                .bind(new.iter().map(|variable| variable.value.to_string()).collect::<Vec<_>>())
                .bind(
                    new.iter().map(|variable| variable.source_step.as_deref()).collect::<Vec<_>>(),
                )
                .bind(new.iter().map(|variable| variable.scope.as_deref()).collect::<Vec<_>>())
                .bind(
                    new.iter()
                        .map(|v| v.expires_at.map(PgTimestamptz::clamped))
                        .collect::<Vec<_>>(),
                )
        };
        self.touch("keep variables", make).await?;
        Ok(())
    }

    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        let sql = include_str!("../queries/transient_read.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(execution.get()).bind(name);
        Ok(self.change("read a variable", make, variable).await?.into_iter().next())
    }

    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        let sql = include_str!("../queries/transient_list.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(execution.get());
        self.list("list variables", make, variable).await
    }

    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.remove_variables(tenant, execution, Some(name)).await? > 0)
    }

    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        self.remove_variables(tenant, execution, None).await
    }

    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/transient_purge.sql");
        self.touch("purge variables", || sqlx::query(sql).bind(rows(limit))).await
    }
}

impl PostgresStore {
    /// Deletes one variable or all, and returns how many of them had not expired.
    async fn remove_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: Option<&str>,
    ) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/transient_delete.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(execution.get()).bind(name);
        let were_alive: Vec<bool> =
            self.change("remove variables", make, |row| row.try_get(0)).await?;
        Ok(were_alive.into_iter().filter(|was_alive| *was_alive).count())
    }
}

fn variable(row: &PgRow) -> Result<Variable, sqlx::Error> {
    let kept = NewVariable {
        name: row.try_get(0)?,
        kind: parsed(row, 1, VariableKind::from_text)?,
        value: value(row, 2)?,
        source_step: row.try_get(3)?,
        scope: row.try_get(4)?,
        expires_at: instant(row, 5)?,
    };
    Ok(Variable {
        kept,
        created_at: row.try_get::<PgTimestamptz, _>(6)?.0,
        accessed_at: instant(row, 7)?,
        access_count: number(row, 8)?,
    })
}
