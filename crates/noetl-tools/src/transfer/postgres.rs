//! Postgres as source and target of a transfer.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use noetl_model::{Failure, Map};
use tokio_postgres::types::Type;

use super::Side;
use super::flow::{
    Row, RowMessage, RowReceiver, RowSender, WriteMode, WritePlan, WriteTarget, list, on_conflict,
    picked,
};
use crate::config::wrong;
use crate::postgres::{
    CellParam, Param, Pool, PostgresSettings, Session, bound, copy_field, decode_row,
};
use crate::sql::{Dialect, Script, column_names, number_names, quoted};

/// Reads the rows of one statement.
pub(super) async fn read(pool: &Pool, side: &Side<'_>, mut flow: RowSender) -> Result<(), Failure> {
    let settings = PostgresSettings::read(side.settings)?;
    let nothing = Map::new();
    let script = Script::read_from(side.settings, &nothing, "postgres", Dialect::Postgres)?;
    let [part] = script.parts.as_slice() else {
        return Err(wrong("a source reads one statement, and there are several"));
    };
    let session = pool.session(&settings, "").await?;
    side.stopper.watch(&session);
    let failed = |error: &tokio_postgres::Error| session.failed(error, None);
    let (text, values) = bound(part)?;
    let prepared = session.client().prepare(&text).await.map_err(|error| failed(&error))?;
    if prepared.params().len() != values.len() {
        return Err(wrong(format!(
            "the query takes {} parameters, and there are {}",
            prepared.params().len(),
            values.len()
        )));
    }
    let names = prepared.columns().iter().map(|column| column.name());
    flow.begin(column_names(names)).await?;
    let params = values.into_iter().map(Param);
    let rows = session.client().query_raw(&prepared, params).await;
    let mut rows = pin!(rows.map_err(|error| failed(&error))?);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| failed(&error))?;
        flow.row(decode_row(&row)?).await?;
    }
    flow.end().await?;
    session.release();
    Ok(())
}

/// Writes all rows in one transaction.
pub(super) async fn write(
    pool: &Pool,
    side: &Side<'_>,
    plan: &WritePlan,
    mut receiver: RowReceiver,
) -> Result<u64, Failure> {
    let settings = PostgresSettings::read(side.settings)?;
    let columns = receiver.columns().await?;
    let columns = plan.columns(&columns)?;
    let session = pool.session(&settings, "begin").await?;
    side.stopper.watch(&session);
    let rows = match &plan.into {
        WriteTarget::Table { table, mode } => {
            let target = TableTarget { session: &session, table, columns: &columns };
            target.write(mode, &mut receiver).await?
        }
        WriteTarget::Query(query) => run_each(&session, query, &columns, &mut receiver).await?,
    };
    run(&session, "commit").await?;
    session.release();
    Ok(rows)
}

/// Target table, and the columns to write.
struct TableTarget<'a> {
    session: &'a Session,
    table: &'a str,
    columns: &'a [(String, usize)],
}

/// Temporary table that contains the rows before they are merged.
const WAITING: &str = "noetl_transfer";

impl TableTarget<'_> {
    async fn write(&self, mode: &WriteMode, receiver: &mut RowReceiver) -> Result<u64, Failure> {
        let table = quoted(self.table, true);
        let names = list(self.columns.iter().map(|(name, _)| name));
        let types = self.types(&table, &names).await?;
        match mode {
            WriteMode::Append => self.copy(&table, &names, &types, receiver).await,
            WriteMode::Replace => {
                run(self.session, &format!("delete from {table}")).await?;
                self.copy(&table, &names, &types, receiver).await
            }
            WriteMode::Upsert(keys) => {
                let waiting = format!(
                    "create temporary table {WAITING} on commit drop as \
                     select {names} from {table} with no data"
                );
                run(self.session, &waiting).await?;
                let rows = self.copy(WAITING, &names, &types, receiver).await?;
                // If a key occurs several times, its last row counts; `ctid` is the order of
                // insertion.
                let key = list(keys);
                let merge = format!(
                    "insert into {table} ({names}) \
                     select distinct on ({key}) {names} from {WAITING} order by {key}, ctid desc \
                     {}",
                    on_conflict(self.columns, keys)
                );
                run(self.session, &merge).await?;
                Ok(rows)
            }
        }
    }

    /// Returns the types of the columns, which determine the encoding of values.
    async fn types(&self, table: &str, names: &str) -> Result<Vec<Type>, Failure> {
        let text = format!("select {names} from {table}");
        let prepared = self.session.client().prepare(&text).await;
        let prepared = prepared.map_err(|error| self.session.failed(&error, None))?;
        Ok(prepared.columns().iter().map(|column| column.type_().clone()).collect())
    }

    async fn copy(
        &self,
        table: &str,
        names: &str,
        types: &[Type],
        receiver: &mut RowReceiver,
    ) -> Result<u64, Failure> {
        let failed = |error: tokio_postgres::Error| self.session.failed(&error, None);
        let text = format!("copy {table} ({names}) from stdin");
        let sink = self.session.client().copy_in::<_, Bytes>(&text).await.map_err(failed)?;
        let mut sink = pin!(sink);
        loop {
            match receiver.next().await? {
                RowMessage::Columns(_) => {}
                RowMessage::Rows(rows) => {
                    let lines = self.lines(rows, types)?;
                    sink.send(lines).await.map_err(failed)?;
                }
                RowMessage::End => return sink.finish().await.map_err(failed),
            }
        }
    }

    fn lines(&self, rows: Vec<Row>, types: &[Type]) -> Result<Bytes, Failure> {
        let mut lines = BytesMut::new();
        for row in rows {
            for (at, ((name, place), ty)) in self.columns.iter().zip(types).enumerate() {
                if at > 0 {
                    lines.extend_from_slice(b"\t");
                }
                if let Some(cell) = row.get(*place) {
                    copy_field(cell, ty, &mut lines)
                        .map_err(|error| wrong(format!("column '{name}': {error}")))?;
                }
            }
            lines.extend_from_slice(b"\n");
        }
        Ok(lines.freeze())
    }
}

/// Runs a statement once per row, with many of them in flight.
async fn run_each(
    session: &Session,
    query: &str,
    columns: &[(String, usize)],
    receiver: &mut RowReceiver,
) -> Result<u64, Failure> {
    let failed = |error: tokio_postgres::Error| session.failed(&error, None);
    let place_of = |name: &str| columns.iter().position(|(column, _)| column == name);
    let takes = |name: &str| match place_of(name) {
        Some(_) => Ok(true),
        None => Err(wrong(format!("`query` asks for `:{name}`, which the source does not have"))),
    };
    let (text, names) = number_names(query, Dialect::Postgres, takes)?;
    let places: Vec<usize> = names.iter().filter_map(|name| place_of(name)).collect();
    let prepared = session.client().prepare(&text).await.map_err(failed)?;
    let mut count = 0;
    loop {
        match receiver.next().await? {
            RowMessage::Columns(_) => {}
            RowMessage::Rows(rows) => {
                let rows: Vec<Row> = rows.iter().map(|row| picked(row, columns)).collect();
                let running = rows.iter().map(|row| {
                    let params: Vec<_> =
                        places.iter().map(|place| CellParam(&row[*place])).collect();
                    let prepared = &prepared;
                    async move { session.client().execute_raw(prepared, params).await }
                });
                futures::future::try_join_all(running).await.map_err(failed)?;
                count += rows.len() as u64;
            }
            RowMessage::End => return Ok(count),
        }
    }
}

async fn run(session: &Session, text: &str) -> Result<(), Failure> {
    session.client().batch_execute(text).await.map_err(|error| session.failed(&error, None))
}
