//! Implements [`VariableStore`], the variables of executions, on the table `transient`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Timestamp};
use noetl_store::{NewVariable, StoreError, Variable, VariableKind, VariableStore};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, micros, parsed, value};
use crate::encoded_append::rows;

#[async_trait]
impl VariableStore for SqliteStore {
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        self.write("keep variables", move |connection, now| {
            let sql = include_str!("../queries/transient_put.sql");
            let mut put = connection.prepare_cached(sql)?;
            for variable in new {
                put.execute(params![
                    tenant.as_str(),
                    execution.get(),
                    variable.name,
                    variable.kind.as_str(),
                    variable.value.to_string(),
                    variable.source_step,
                    variable.scope,
                    micros(variable.expires_at),
                    now.as_micros(),
                ])?;
            }
            Ok(())
        })
        .await
    }

    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        let tenant = tenant.clone();
        let name = name.to_owned();
        self.write("read a variable", move |connection, now| {
            let sql = include_str!("../queries/transient_read.sql");
            let mut read = connection.prepare_cached(sql)?;
            read.query_row((tenant.as_str(), execution.get(), name, now.as_micros()), variable)
                .optional()
        })
        .await
    }

    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        let tenant = tenant.clone();
        let clock = self.clock();
        self.read("list variables", move |connection| {
            let sql = include_str!("../queries/transient_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), execution.get(), clock.now().as_micros()), variable)?
                .collect()
        })
        .await
    }

    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let name = name.to_owned();
        self.write("remove a variable", move |connection, now| {
            Ok(delete(connection, &tenant, execution, Some(&name), now)? > 0)
        })
        .await
    }

    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        let tenant = tenant.clone();
        self.write("remove variables", move |connection, now| {
            delete(connection, &tenant, execution, None, now)
        })
        .await
    }

    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError> {
        self.write("purge variables", move |connection, now| {
            let sql = include_str!("../queries/transient_purge.sql");
            connection.prepare_cached(sql)?.execute((now.as_micros(), rows(limit)))
        })
        .await
    }
}

/// Deletes one variable or all, and returns how many of them had not expired.
fn delete(
    connection: &Connection,
    tenant: &Tenant,
    execution: ExecutionId,
    name: Option<&str>,
    now: Timestamp,
) -> rusqlite::Result<usize> {
    let sql = include_str!("../queries/transient_delete.sql");
    let mut delete = connection.prepare_cached(sql)?;
    let which = (tenant.as_str(), execution.get(), name, now.as_micros());
    let removed = delete.query_map(which, |row| row.get(0))?;
    let removed: Vec<bool> = removed.collect::<rusqlite::Result<_>>()?;
    Ok(removed.into_iter().filter(|was_alive| *was_alive).count())
}

fn variable(row: &Row<'_>) -> rusqlite::Result<Variable> {
    let kept = NewVariable {
        name: row.get(0)?,
        kind: parsed(row, 1, VariableKind::from_text)?,
        value: value(row, 2)?,
        source_step: row.get(3)?,
        scope: row.get(4)?,
        expires_at: instant(row, 5)?,
    };
    Ok(Variable {
        kept,
        created_at: Timestamp::from_micros(row.get(6)?),
        accessed_at: instant(row, 7)?,
        access_count: count(row, 8)?,
    })
}
