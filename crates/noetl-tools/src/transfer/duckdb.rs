//! DuckDB as source and target of a transfer.

use duckdb::params_from_iter;
use noetl_model::{Failure, Map};

use super::Side;
use super::flow::{
    RowMessage, RowReceiver, RowSender, WriteMode, WritePlan, WriteTarget, list, on_conflict,
    picked,
};
use crate::config::wrong;
use crate::duckdb::{DuckdbLocation, bind, cells, failed, open, stored_cell};
use crate::own::FileGuard;
use crate::sql::{Dialect, Params, Script, StopFlag, column_names, number_names, quoted};

/// Reads the rows of one statement.
pub(super) async fn read(side: &Side<'_>, flow: RowSender) -> Result<(), Failure> {
    let location = DuckdbLocation::read(side.settings)?;
    let (settings, stop) = (side.settings.clone(), side.stop.clone());
    let guard = side.guard.clone();
    let work =
        tokio::task::spawn_blocking(move || read_all(&location, &guard, &settings, &stop, flow));
    side.stop.supervise(work, side.call, None).await
}

fn read_all(
    location: &DuckdbLocation,
    guard: &FileGuard,
    settings: &Map,
    stop: &StopFlag,
    mut flow: RowSender,
) -> Result<(), Failure> {
    let nothing = Map::new();
    let script = Script::read_from(settings, &nothing, "duckdb", Dialect::DuckDb)?;
    let [part] = script.parts.as_slice() else {
        return Err(wrong("a source reads one statement, and there are several"));
    };
    let failing = |error: duckdb::Error| failed(&error, None);
    let (text, names) = match part.params {
        Params::List(_) => (part.statement.text.to_owned(), Vec::new()),
        params @ Params::Named { .. } => {
            let takes = |name: &str| Ok(params.value(name)?.is_some());
            number_names(part.statement.text, Dialect::DuckDb, takes)?
        }
    };
    let opened = open(location, guard, stop)?;
    let mut prepared = opened.connection.prepare(&text).map_err(failing)?;
    bind(&mut prepared, &part.params, &names, 0)?;
    prepared.raw_execute().map_err(failing)?;
    let columns: Vec<String> =
        prepared.schema().fields().iter().map(|field| field.name().clone()).collect();
    flow.begin_blocking(column_names(columns.iter().map(String::as_str)))?;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(failing)? {
        flow.row_blocking(cells(row, columns.len()).map_err(failing)?)?;
    }
    flow.end_blocking()?;
    Ok(())
}

/// Writes all rows in one transaction.
pub(super) async fn write(
    side: &Side<'_>,
    plan: &WritePlan,
    receiver: RowReceiver,
) -> Result<u64, Failure> {
    let location = DuckdbLocation::read(side.settings)?;
    if location.is_in_memory() {
        return Err(wrong("needs `db_path`: what is written in memory is gone with the step"));
    }
    let (plan, stop, guard) = (plan.clone(), side.stop.clone(), side.guard.clone());
    let work =
        tokio::task::spawn_blocking(move || write_all(&location, &guard, &plan, &stop, receiver));
    side.stop.supervise(work, side.call, None).await
}

fn write_all(
    location: &DuckdbLocation,
    guard: &FileGuard,
    plan: &WritePlan,
    stop: &StopFlag,
    mut receiver: RowReceiver,
) -> Result<u64, Failure> {
    let failing = |error: duckdb::Error| failed(&error, None);
    let columns = plan.columns(&receiver.columns_blocking()?)?;
    let opened = open(location, guard, stop)?;
    let connection = &opened.connection;
    // Dropping the connection without a commit rolls back.
    connection.execute_batch("begin transaction").map_err(failing)?;
    let (text, places) = match &plan.into {
        WriteTarget::Table { table, mode } => {
            let table = quoted(table, true);
            if *mode == WriteMode::Replace {
                connection.execute_batch(&format!("delete from {table}")).map_err(failing)?;
            }
            let names = list(columns.iter().map(|(name, _)| name));
            let marks = vec!["?"; columns.len()].join(", ");
            let mut text = format!("insert into {table} ({names}) values ({marks})");
            if let WriteMode::Upsert(keys) = mode {
                text.push(' ');
                text.push_str(&on_conflict(&columns, keys));
            }
            (text, (0..columns.len()).collect())
        }
        WriteTarget::Query(query) => {
            let place_of = |name: &str| columns.iter().position(|(column, _)| column == name);
            let takes = |name: &str| match place_of(name) {
                Some(_) => Ok(true),
                None => Err(wrong(format!(
                    "`query` asks for `:{name}`, which the source does not have"
                ))),
            };
            let (text, names) = number_names(query, Dialect::DuckDb, takes)?;
            let places: Vec<usize> = names.iter().filter_map(|name| place_of(name)).collect();
            (text, places)
        }
    };
    let mut prepared = connection.prepare(&text).map_err(failing)?;
    let mut count = 0;
    loop {
        match receiver.next_blocking()? {
            RowMessage::Columns(_) => {}
            RowMessage::Rows(rows) => {
                for row in rows {
                    let row = picked(&row, &columns);
                    let values = places.iter().map(|place| stored_cell(&row[*place]));
                    prepared.execute(params_from_iter(values)).map_err(failing)?;
                    count += 1;
                }
            }
            RowMessage::End => break,
        }
    }
    drop(prepared);
    connection.execute_batch("commit").map_err(failing)?;
    Ok(count)
}
